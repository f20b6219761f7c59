//! The event-driven engine.
//!
//! Every cycle that has events runs in three phases (rule 13): completions, one sweep of opens and requests, burst
//! starts. The whole loop is one specs `System` that borrows every column once.

mod build;
pub(crate) mod components;
mod compute;
mod deadlock;
#[cfg(feature = "bench")]
pub(crate) mod plain;
mod recur;
mod refresh;
mod request;
mod sequence;
pub(crate) mod stall;
mod state;
mod traffic;
mod transfer;
pub(crate) mod values;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cyclonest_arch::{Accelerator, Counts, Mapping};
use cyclonest_workloads::{Problem, Tensor};
use specs::{RunNow, System, World, WorldExt, Write, WriteStorage};

use crate::observe::Observer;
use crate::outcome::{Outcome, StallReason, Values};
use crate::plan::Plan;
use crate::wheel::Wheel;
use crate::{Cycle, Options, SimError};
use components::{
    Cache, Pe, PeId, Resource, Sequencer, SequencerId, Shape, ShapeId, Store, StoreId, Transfer, TransferId,
};
use stall::Blame;
use traffic::TrafficCounters;

/// Something that completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The head of a transfer reaches its next stage.
    Head(TransferId),
    /// The tail of a transfer arrives.
    Arrive(TransferId),
    /// The last child transfer of a store's oldest closing residency has left its read port.
    Free(StoreId),
    /// A drain has left its members' read ports.
    DrainLeft(TransferId),
    /// A sweep is due: the last one made an open possible.
    Sweep,
    /// A PE has computed its step.
    BurstEnd(PeId),
    /// The last output of a store's oldest unfinished residency leaves the MAC pipeline.
    Done(StoreId),
}

/// A request that can be made in this cycle's sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    /// 0 for drains, 1 for fills and fetches.
    pub(crate) fills: u8,
    pub(crate) level: u8,
    pub(crate) tensor: u8,
    pub(crate) step: u64,
    pub(crate) sequencer: SequencerId,
    pub(crate) group: u64,
    pub(crate) stream: u32,
}

/// What is not a component: the static plan, the event queue, scratch lists and counters.
pub(crate) struct Shared {
    pub(crate) plan: Plan,
    pub(crate) wiring: build::Wiring,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) caches: Vec<Cache>,
    pub(crate) transfers: Vec<Transfer>,
    pub(crate) idle_transfers: Vec<TransferId>,
    pub(crate) wheel: Wheel<Event>,
    pub(crate) now: Cycle,
    pub(crate) scratch: sequence::Scratch,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) openable: BinaryHeap<Reverse<(usize, StoreId)>>,
    pub(crate) ready_pes: Vec<PeId>,
    pub(crate) data: Option<values::Data>,
    pub(crate) counts: Counts,
    pub(crate) traffic: TrafficCounters,
    pub(crate) blame: Blame,
    /// Of it, what was blamed before each PE's first burst.
    pub(crate) fill_blame: Blame,
    pub(crate) values: Values,
    pub(crate) deadlock: Option<String>,
    /// Transfer that never arrives, to test the detection of deadlocks.
    pub(crate) lose: Option<u64>,
    pub(crate) refreshes: Option<refresh::Refreshes>,
    /// In simulated time.
    pub(crate) last_arrival: Cycle,
    pub(crate) recurrence: Option<Box<recur::Recurrence>>,
    /// Simulated minus internal time: what was skipped (and gone back) so far, modulo 2⁶⁴.
    pub(crate) offset: u64,
    pub(crate) events: u64,
    pub(crate) transfer_count: u64,
}

/// All columns, borrowed for the length of a run.
pub(crate) struct Engine<'a, O> {
    pub(crate) resources: &'a mut [Resource],
    pub(crate) stores: &'a mut [Store],
    pub(crate) sequencers: &'a mut [Sequencer],
    pub(crate) pes: &'a mut [Pe],
    pub(crate) s: &'a mut Shared,
    pub(crate) observer: &'a mut O,
}

/// A machine with a mapping loaded, ready to run.
pub(crate) struct Built {
    world: World,
}

/// The hot loop as a system.
struct Run<'o, O> {
    arch: Accelerator,
    observer: &'o mut O,
}

impl<'a, O: Observer> System<'a> for Run<'_, O> {
    type SystemData = (
        WriteStorage<'a, Resource>,
        WriteStorage<'a, Store>,
        WriteStorage<'a, Sequencer>,
        WriteStorage<'a, Pe>,
        Write<'a, Option<Shared>>,
    );

    fn run(&mut self, (mut resources, mut stores, mut sequencers, mut pes, mut shared): Self::SystemData) {
        let mut engine = Engine {
            resources: resources.as_mut_slice(),
            stores: stores.as_mut_slice(),
            sequencers: sequencers.as_mut_slice(),
            pes: pes.as_mut_slice(),
            s: shared.as_mut().expect("inserted when the world was built"),
            observer: self.observer,
        };
        engine.run_to_end(&self.arch);
    }
}

impl Built {
    pub(crate) fn new(
        problem: &Problem,
        arch: &Accelerator,
        mapping: &Mapping,
        options: Options,
    ) -> Result<Self, SimError> {
        Ok(Built {
            world: build::world(problem, arch, mapping, options)?,
        })
    }

    /// Runs to the end and reduces the columns to an outcome.
    pub(crate) fn run(mut self, arch: &Accelerator, observer: &mut impl Observer) -> Result<Outcome, SimError> {
        let mut system = Run {
            arch: arch.clone(),
            observer,
        };
        system.run_now(&self.world);
        self.outcome(arch)
    }

    fn outcome(&mut self, arch: &Accelerator) -> Result<Outcome, SimError> {
        let mut resources = self.world.write_component::<Resource>();
        let mut pes = self.world.write_component::<Pe>();
        let mut shared = self.world.write_resource::<Option<Shared>>();
        let s = shared.as_mut().expect("inserted when the world was built");
        Self::reduce(resources.as_mut_slice(), pes.as_mut_slice(), s, arch)
    }

    /// Reduces the columns of a finished run to its outcome.
    fn reduce(resources: &[Resource], pes: &[Pe], s: &mut Shared, arch: &Accelerator) -> Result<Outcome, SimError> {
        if let Some(chain) = s.deadlock.take() {
            return Err(SimError::Deadlock { cycle: s.now.0, chain });
        }
        let cycles = s.last_arrival.0;
        let physical = arch.instances(arch.event_level());
        let mut stall_cycles: std::collections::BTreeMap<_, _> = s.blame.totals().collect();
        let (skipped_cycles, skipped_events) = s
            .recurrence
            .as_ref()
            .map_or((0, 0), |r| (r.skipped_cycles, r.skipped_events));
        let mut busy_cycles = 0;
        let mut finished = 0;
        let mut drain_cycles = cycles;
        let mut unmapped = (physical - pes.len() as u64) * cycles;
        for pe in pes.iter() {
            busy_cycles += pe.busy;
            match pe.last_burst_end {
                Some(_) => {
                    let after = cycles.saturating_sub(pe.finished_at);
                    finished += after;
                    drain_cycles = drain_cycles.min(after);
                }
                None => unmapped += cycles,
            }
        }
        stall_cycles.insert(StallReason::Finished, finished);
        if unmapped > 0 {
            stall_cycles.insert(StallReason::Unmapped, unmapped);
        }
        s.traffic.reduce_into(&mut s.counts);
        s.plan.bursts.reduce_into(&mut s.counts);
        let occupancy = s.wiring.occupancy(resources);
        Ok(Outcome {
            cycles,
            pes: physical,
            busy_cycles,
            stall_cycles,
            fill_stall_cycles: s.fill_blame.totals().collect(),
            drain_cycles,
            counts: s.counts.clone(),
            occupancy,
            values: s.values.clone(),
            skipped_cycles,
            skipped_events,
            events: s.events,
            transfers: s.transfer_count,
        })
    }
}

impl<O: Observer> Engine<'_, O> {
    /// Runs from the first request to the verdict.
    fn run_to_end(&mut self, arch: &Accelerator) {
        self.start();
        self.run();
        self.s.now = self.s.simulated(self.s.now);
        if self.pes.iter().all(|pe| pe.cursor.finished) && self.outputs_arrived() {
            self.s.values = self.verdict();
        } else {
            self.s.deadlock = Some(self.chain_of_blame(arch));
        }
    }

    /// Generates the first residencies and makes the first requests, at cycle 0.
    fn start(&mut self) {
        self.load_values();
        for sequencer in 0..self.sequencers.len() {
            let id = SequencerId(sequencer as u32);
            for feed in 0..self.sequencers[sequencer].feeds.len() {
                let store = self.sequencers[sequencer].feeds[feed].store;
                self.generate_for(id, store);
                self.offer(store);
            }
        }
        for pe in 0..self.pes.len() {
            self.find_needs(PeId(pe as u32));
        }
        self.sweep();
        self.start_bursts();
    }

    /// True if every output has reached the outermost level.
    fn outputs_arrived(&self) -> bool {
        let outermost = self.stores.iter().find(|s| s.level == 0 && s.tensor == Tensor::Outputs);
        outermost.is_some_and(|s| s.record(0).outstanding == 0)
    }

    /// The event loop.
    fn run(&mut self) {
        let mut batch = Vec::new();
        while let Some(now) = self.s.wheel.pop(&mut batch) {
            self.s.now = now;
            self.s.events += batch.len() as u64;
            crate::mutate::check_events(self.s.events);
            for &event in &batch {
                match event {
                    Event::Head(transfer) => self.head(transfer),
                    Event::Arrive(transfer) => self.arrive(transfer),
                    Event::Free(store) => self.free(store),
                    Event::DrainLeft(transfer) => self.drain_left(transfer),
                    Event::Sweep => {}
                    Event::BurstEnd(pe) => self.burst_end(pe),
                    Event::Done(store) => self.done(store),
                }
            }
            self.sweep();
            self.start_bursts();
            self.look_for_recurrence();
        }
    }
}

impl Shared {
    pub(crate) fn transfer(&mut self, transfer: Transfer) -> TransferId {
        self.transfer_count += 1;
        if let Some(id) = self.idle_transfers.pop() {
            let mut hops = std::mem::take(&mut self.transfers[id.at()].hops);
            hops.clear();
            self.transfers[id.at()] = Transfer { hops, ..transfer };
            id
        } else {
            self.transfers.push(transfer);
            TransferId(self.transfers.len() as u32 - 1)
        }
    }

    /// Simulated time of an internal one.
    #[inline]
    pub(crate) fn simulated(&self, internal: Cycle) -> Cycle {
        Cycle(internal.0.wrapping_add(self.offset))
    }

    #[inline]
    pub(crate) fn shape(&self, shape: ShapeId) -> &Shape {
        &self.shapes[shape.at()]
    }
}
