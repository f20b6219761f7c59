//! The hardware as columns: one component type per kind of entity.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use cyclonest_arch::Width;
use cyclonest_workloads::{DimMap, Tensor};
use specs::{Component, DenseVecStorage};

use crate::Cycle;
use crate::engine::stall::Timeline;
use crate::engine::values::Content;
use crate::observe::StageKind;
use crate::plan::Tile;
use crate::plan::cursor::{Cursor, Steps};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(pub(crate) u32);
        impl $name {
            #[inline]
            pub(crate) const fn at(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(/// A port or channel.
    ResourceId);
id!(/// A buffer of one tensor in one instance of a level.
    StoreId);
id!(/// What feeds the stores below one parent store.
    SequencerId);
id!(/// A processing element.
    PeId);
id!(/// A transfer in flight; reused after its arrival.
    TransferId);
id!(/// A set of children served together, and the resources on their path.
    ShapeId);

/// A port or a network channel.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Resource {
    // state
    pub(crate) free: Cycle,
    // counter
    pub(crate) busy: u64,
}

impl Component for Resource {
    type Storage = DenseVecStorage<Self>;
}

/// A residency of a store (rule 3), from its generation until its slot is free again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    /// First step, as a rank among the steps of the level.
    pub(crate) first_step: u64,
    /// First step that no longer needs it although it is still the residency (its tile is empty there).
    pub(crate) unused_from: u64,
    /// Ordinal of the parent's residency that it comes from.
    pub(crate) parent: u64,
    /// Elements that are moved for it.
    pub(crate) new: u64,
    /// Number of its group (operands) or visit (outputs) in the sequencer.
    pub(crate) group: u64,
    /// Stream of the visit that drains it.
    pub(crate) stream: u32,
    /// Opened by moving the partial sum in, not at zero.
    pub(crate) fetched: bool,
    /// A burst has used it.
    pub(crate) touched: bool,
    /// No further child transfer will come from it (or go to it).
    pub(crate) closed: bool,
    /// Child transfers generated and not yet requested (operands) or arrived (outputs).
    pub(crate) outstanding: u32,
    /// Child transfers generated at all.
    pub(crate) children: u64,
    /// When the last requested child transfer leaves the read port.
    pub(crate) left: Cycle,
    /// It has arrived and has a slot (outputs: it is open).
    pub(crate) resident: bool,
    pub(crate) settled: bool,
    pub(crate) released: bool,
    /// Its elements, in a data check.
    pub(crate) content: Option<Box<Content>>,
    /// What held it up, until it was resident.
    pub(crate) timeline: Timeline,
}

/// A buffer of one tensor in one instance of a level: slots, and the residencies in, before and on the way.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    // wiring
    pub(crate) tensor: Tensor,
    pub(crate) level: usize,
    pub(crate) instance: u32,
    pub(crate) feeder: Option<SequencerId>,
    pub(crate) child: u32,
    pub(crate) feeds: Option<SequencerId>,
    pub(crate) pe: Option<PeId>,
    pub(crate) fifo: u64,
    pub(crate) slots: u64,
    // state
    pub(crate) free_slots: u64,
    pub(crate) fifo_used: u64,
    pub(crate) generated: u64,
    pub(crate) requested: u64,
    pub(crate) arrived: u64,
    /// Residencies that have (had) a slot; the ones after them wait in the FIFO.
    pub(crate) slotted: u64,
    pub(crate) done: u64,
    /// Residencies whose last child transfer is leaving the read port.
    pub(crate) closing: VecDeque<u64>,
    /// The next residency has been offered to its group.
    pub(crate) offered: bool,
    pub(crate) first: u64,
    pub(crate) records: VecDeque<Record>,
    /// Content of the last residency that lost its slot, with its ordinal: a halo may still be kept from it.
    pub(crate) retained: Option<(u64, Box<Content>)>,
}

impl Component for Store {
    type Storage = DenseVecStorage<Self>;
}

impl Store {
    #[inline]
    pub(crate) fn record(&self, ordinal: u64) -> &Record {
        &self.records[(ordinal - self.first) as usize]
    }

    #[inline]
    pub(crate) fn record_mut(&mut self, ordinal: u64) -> &mut Record {
        &mut self.records[(ordinal - self.first) as usize]
    }

    /// True if the next residency may be requested (rules 8 and 9).
    #[inline]
    pub(crate) fn accepts_next(&self) -> bool {
        self.free_slots > 0 || (self.fifo > 0 && self.fifo_used + self.record(self.requested).new <= self.fifo)
    }

    /// Takes a slot, or a place in the FIFO, for the next residency.
    #[inline]
    pub(crate) fn take(&mut self) -> u64 {
        let ordinal = self.requested;
        self.requested += 1;
        self.offered = false;
        if self.free_slots > 0 {
            self.free_slots -= 1;
            self.slotted += 1;
        } else {
            self.fifo_used += self.record(ordinal).new;
        }
        ordinal
    }

    /// Frees a slot; the first residency of the FIFO moves in. True if that one had already arrived.
    #[inline]
    pub(crate) fn free_slot(&mut self) -> bool {
        if self.slotted < self.requested {
            let moved = self.slotted;
            self.fifo_used -= self.record(moved).new;
            self.slotted += 1;
            moved < self.arrived
        } else {
            self.free_slots += 1;
            false
        }
    }

    /// The residency that belongs to a visit.
    #[inline]
    pub(crate) fn ordinal_of_visit(&self, number: u64) -> u64 {
        let at = self.records.iter().position(|r| r.group == number && !r.released);
        self.first + at.expect("a visit that has not drained has its residencies") as u64
    }

    /// Forgets residencies whose slot is free again.
    #[inline]
    pub(crate) fn forget_released(&mut self) {
        while self.records.front().is_some_and(|r| r.released) {
            self.records.pop_front();
            self.first += 1;
        }
    }
}

/// One stage of a path: the resources that it reserves together.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    pub(crate) resources: Vec<ResourceId>,
    /// The instances of `level` that they belong to.
    pub(crate) instances: Vec<u32>,
    pub(crate) width: Width,
    /// Core cycles per cycle of the resource, as a fraction.
    pub(crate) clock: (u64, u64),
    pub(crate) latency: u64,
    /// Latencies from this stage to the end.
    pub(crate) remaining: u64,
    /// Level of the port, or level above the network.
    pub(crate) level: usize,
    pub(crate) is_network: bool,
    pub(crate) kind: StageKind,
    /// Passes through network instances: degree and links.
    pub(crate) passes: Vec<(u64, u64)>,
}

impl Stage {
    /// Cycles that `elements` of `bits` bits occupy the stage.
    #[inline]
    pub(crate) fn occupancy(&self, elements: u64, bits: u64) -> u64 {
        let cycles = self.width.cycles(elements, bits);
        if self.clock.0 == self.clock.1 {
            cycles
        } else {
            (cycles * self.clock.0).div_ceil(self.clock.1)
        }
    }
}

/// A set of children served by one transfer, and its path.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) stores: Vec<StoreId>,
    pub(crate) stages: Vec<Stage>,
}

/// Children whose next residency comes (or is fetched) with one transfer (rule 10).
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) step: u64,
    pub(crate) parent: u64,
    pub(crate) elements: u64,
    pub(crate) shape: ShapeId,
    pub(crate) ready: u32,
    /// Queued for this cycle's sweep, or done.
    pub(crate) requested: bool,
    pub(crate) launched: bool,
}

/// Children that open the same output tile at the same step.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    pub(crate) step: u64,
    pub(crate) parent: u64,
    pub(crate) tile: Tile,
    /// The child that opens it first.
    pub(crate) member: u32,
    /// The store that fetches the partial sum, and the path to it.
    pub(crate) fetch: Option<(StoreId, ShapeId)>,
    pub(crate) fetch_queued: bool,
    pub(crate) fetch_requested: bool,
    /// The store that fetches has a free slot and is at this residency.
    pub(crate) fetch_ready: bool,
    /// Drains of the tile's previous visit are still on their way (rule 18).
    pub(crate) blocked: bool,
    pub(crate) unblocked_at: Cycle,
    pub(crate) next: Option<u64>,
    pub(crate) streams: Vec<DrainStream>,
    pub(crate) arrived: u32,
    /// A stream has reached the parent's write port (rule 19).
    pub(crate) first_written: bool,
    /// It is the last visit of its tile (rule 20).
    pub(crate) last: bool,
}

/// Children whose outputs are reduced on the way and drain as one (rule 19).
#[derive(Debug, Clone)]
pub(crate) struct DrainStream {
    pub(crate) shape: ShapeId,
    pub(crate) done: u32,
    pub(crate) requested: bool,
}

/// How residencies of the children follow from the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Operand kept at the child level.
    Operand,
    /// Operand that bypasses the PE level: every step is its own residency (rule 6).
    Stream,
    /// Outputs kept at the child level.
    Output,
    /// Outputs that bypass the PE level: every step is its own residency (rule 7).
    OutputStream,
}

impl Flow {
    pub(crate) const fn every_step(self) -> bool {
        matches!(self, Flow::Stream | Flow::OutputStream)
    }
}

/// A child store as its sequencer sees it.
#[derive(Debug, Clone)]
pub(crate) struct Feed {
    pub(crate) store: StoreId,
    /// Child index at every level from the parent's child level to its own.
    pub(crate) path: Arc<[u32]>,
    /// Equal for children that one transfer may serve (operands) or drain (outputs).
    pub(crate) class: u32,
    pub(crate) first_of_reduction: bool,
    /// It has a tile that is not empty; an input whose every row or column is padding has none.
    pub(crate) has_tiles: bool,
    /// Where its own tile starts when the parent's starts at 0.
    pub(crate) base: DimMap<u64>,
    /// Its next step that exists, from the sequencer's step on: a child at the edge has fewer than its siblings.
    pub(crate) cursor: Cursor,
    pub(crate) started: bool,
    /// Tile loaded first in the current residency, and the rank of the step where that was.
    pub(crate) tile: Tile,
    pub(crate) begun: u64,
    /// Current group or visit.
    pub(crate) group: u64,
    pub(crate) parent: u64,
    /// Tile of the last step was empty.
    pub(crate) idle: bool,
    /// The last step that existed for this child was the last one of the reduction (rule 20).
    pub(crate) reduced: bool,
}

impl Feed {
    /// True if the child exists at the sequencer's step, whose rank this is.
    #[inline]
    pub(crate) fn exists_at(&self, rank: u64) -> bool {
        debug_assert!(
            self.cursor.finished || self.cursor.rank >= rank,
            "a step of the child was passed over"
        );
        !self.cursor.finished && self.cursor.rank == rank
    }
}

/// Generates the residencies of one tensor for all children of one parent store, in step order.
#[derive(Debug, Clone)]
pub(crate) struct Sequencer {
    // wiring
    pub(crate) tensor: Tensor,
    pub(crate) flow: Flow,
    pub(crate) parent_level: usize,
    pub(crate) level: usize,
    pub(crate) parent: StoreId,
    pub(crate) halo: bool,
    pub(crate) steps: Arc<Steps>,
    /// Of the loops of `steps`, those outside the parent's level.
    pub(crate) outer_loops: usize,
    pub(crate) base: DimMap<u64>,
    /// Last temporal offset of C, R and S that exists.
    pub(crate) last_offsets: [u64; 3],
    // state
    pub(crate) cursor: Cursor,
    pub(crate) started: bool,
    pub(crate) parent_ordinal: u64,
    /// Lowest C, R and S where the parent's residency began.
    pub(crate) parent_reduction: [u64; 3],
    pub(crate) feeds: Vec<Feed>,
    pub(crate) first: u64,
    pub(crate) groups: VecDeque<Group>,
    pub(crate) visits: VecDeque<Visit>,
}

/// What one sequencer remembers so as not to look for it again: the shapes that were built so far, and where visits are.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    pub(crate) shapes: HashMap<(bool, Vec<u32>), ShapeId>,
    /// Shapes of the last step's groups by their place: up and down.
    pub(crate) recent: [Vec<(Vec<u32>, ShapeId)>; 2],
    pub(crate) latest: LatestVisits,
}

/// The latest visit of every tile of the parent's residency, by the corner of the tile.
#[derive(Debug, Default)]
pub(crate) struct LatestVisits {
    numbers: HashMap<u64, u64>,
    /// The parent's residency; nothing if the visits have changed meanwhile.
    of: Option<u64>,
}

impl LatestVisits {
    /// Number of the tile's latest visit, if that is still there; from now on it is `next`.
    pub(crate) fn replace(&mut self, q: &Sequencer, corner: u64, next: u64) -> Option<u64> {
        let of = Some(q.parent_ordinal);
        // Visits that are over stay in the table until it is twice as large as it need be.
        if self.of != of || self.numbers.len() > 2 * q.visits.len() + 64 {
            self.of = of;
            self.numbers.clear();
            let numbered = (q.first..).zip(&q.visits);
            let current = numbered.filter(|(_, visit)| visit.parent == q.parent_ordinal);
            self.numbers
                .extend(current.map(|(number, visit)| (visit.tile.corner, number)));
        }
        self.numbers.insert(corner, next).filter(|&number| number >= q.first)
    }

    /// The sequencer has other visits now.
    pub(crate) fn forget(&mut self) {
        self.of = None;
    }
}

impl Component for Sequencer {
    type Storage = DenseVecStorage<Self>;
}

impl Sequencer {
    #[inline]
    pub(crate) fn group_mut(&mut self, number: u64) -> &mut Group {
        &mut self.groups[(number - self.first) as usize]
    }

    #[inline]
    pub(crate) fn visit(&self, number: u64) -> &Visit {
        &self.visits[(number - self.first) as usize]
    }

    #[inline]
    pub(crate) fn visit_mut(&mut self, number: u64) -> &mut Visit {
        &mut self.visits[(number - self.first) as usize]
    }
}

/// An operand of a PE's next burst.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Need {
    pub(crate) store: StoreId,
    /// Ordinal of the next residency to begin; the current one is the one before.
    pub(crate) next: u64,
    /// The next burst uses the current residency.
    pub(crate) used: bool,
    /// The current residency's slot has not been given back.
    pub(crate) held: bool,
}

/// A processing element: the innermost event level and its lanes.
#[derive(Debug, Clone)]
pub(crate) struct Pe {
    pub(crate) cursor: Cursor,
    pub(crate) base: DimMap<u64>,
    /// Outputs, weights, inputs: the order in which a missing one is blamed (rule 23).
    pub(crate) needs: [Need; 3],
    pub(crate) computing: bool,
    /// From here on, nothing has been blamed yet.
    pub(crate) blame_from: Cycle,
    pub(crate) last_burst_end: Option<Cycle>,
    pub(crate) queued: bool,
    pub(crate) busy: u64,
    pub(crate) stalled: u64,
    /// Simulated time of the end of the last of all its bursts.
    pub(crate) finished_at: u64,
    /// Cycles since then; up to date only while a snapshot is taken.
    pub(crate) finished_for: u64,
}

impl Pe {
    /// Number of the next residency of a tensor that it will begin to use.
    pub(crate) fn next_of(&self, tensor: Tensor) -> u64 {
        let [outputs, weights, inputs] = self.needs.map(|need| need.next);
        match tensor {
            Tensor::Outputs => outputs,
            Tensor::Weights => weights,
            Tensor::Inputs => inputs,
        }
    }
}

impl Component for Pe {
    type Storage = DenseVecStorage<Self>;
}

/// What a transfer carries where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cargo {
    /// Operand to children.
    Fill,
    /// Partial sum to a child.
    Fetch,
    /// Output to the parent.
    Drain {
        /// Stream of the visit.
        stream: u32,
    },
}

/// A transfer on its way (rule 11).
#[derive(Debug, Clone)]
pub(crate) struct Transfer {
    pub(crate) cargo: Cargo,
    /// Position among all transfers, in the order of the requests.
    pub(crate) number: u64,
    /// First step that needs the cargo, for those who watch.
    pub(crate) step: u64,
    /// Residency that a fetch opens.
    pub(crate) ordinal: u64,
    pub(crate) sequencer: SequencerId,
    /// Group or visit.
    pub(crate) group: u64,
    pub(crate) shape: ShapeId,
    pub(crate) elements: u64,
    /// Bits per element.
    pub(crate) bits: u64,
    pub(crate) stage: u32,
    pub(crate) tail: Cycle,
    /// Per stage: when the head got there, and when it was let in.
    pub(crate) hops: Vec<(Cycle, Cycle)>,
}
