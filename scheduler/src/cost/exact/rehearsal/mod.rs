//! Latency from a rehearsal of the schedule by its first and its last PE.
//!
//! The loop nest is gone through with two PEs only: the one that every transfer serves first, and the one that it
//! serves last. What all others move is part of the occupancy of the ports and networks on the way. Residencies,
//! slots, store and forward, the order in which transfers reach a resource, partial sums and clipped tiles are those of
//! the timing contract; the PEs between the two are taken to drift apart no further than these.
//!
//! A loop is not gone through to its end: once two of its iterations in a row have taken equally long and nothing from
//! outside the loop is still on its way, all but the last are skipped, each for the same time. Where they
//! do not repeat exactly, a number of bursts is divided among the loops, and what a loop has more is skipped at the mean
//! of its later iterations.

mod cursor;
mod fan;
mod laps;
mod moves;
mod path;
mod plan;
mod work;

use cyclonest_workloads::{DimMap, Problem, Tensor};

use self::cursor::{Cursor, MAX_TURNS, turns};
use self::laps::{Lap, NO_LAP};
use self::plan::Plan;
use super::hardware::Hardware;
use super::latency::{RESOURCES, Timing};
use super::nest::Nest;
use crate::cost::CostError;

/// Residencies of a stream that are remembered; more slots than fit are taken for as many as do.
const RING: usize = 16;
/// Drains of a tile's previous visit are waited for if that was fewer residencies ago.
const RECALLED: u64 = RING as u64 / 2;
const NEVER: i64 = i64::MAX;
const OUTPUTS: usize = Tensor::Outputs as usize;

/// What a residency has been through; times are [`NEVER`] until they are known.
#[derive(Debug, Clone, Copy)]
struct Residency {
    /// Operand: arrived. Output: open.
    ready: i64,
    /// Users that are done with it, and when the last of them was.
    done: (u32, i64),
    /// The slot is free again.
    freed: i64,
    /// Output: its drain has arrived.
    drained: i64,
    elements: u64,
    parent: u64,
    /// No later residency of this instance uses the parent's.
    last_in_parent: bool,
    /// Output: partial sums came from the parent, and go there.
    fetched: bool,
    partial: bool,
}

const BLANK: Residency = Residency {
    ready: NEVER,
    done: (0, 0),
    freed: NEVER,
    drained: NEVER,
    elements: 0,
    parent: 0,
    last_in_parent: false,
    fetched: false,
    partial: false,
};

/// One instance of a stream's child level: that of the first PE, of the last PE, or one for both.
#[derive(Debug, Clone)]
struct Keeper {
    stream: usize,
    parent: Option<usize>,
    /// Whether the first and the last PE belong to it.
    chains: [bool; 2],
    users: u32,
    /// The next tile, and the one before it; `None` in `over` as long as there is one.
    cursor: Cursor,
    before: DimMap<u64>,
    over: bool,
    /// Number of the next residency, and of the parent's that it is part of.
    next: u64,
    in_parent: u64,
    /// Output: number of the next residency to drain.
    draining: u64,
    /// Position in a sweep: outer levels first, then inputs, outputs, weights (rule 13).
    rank: u64,
    /// Not before this: the last request, and how many there were at that time.
    earliest: i64,
    pass: u32,
    /// Last arrival of a fill or fetch.
    settled: i64,
    ring: [Residency; RING],
}

/// A PE.
#[derive(Debug, Clone)]
struct Pe {
    cursor: Cursor,
    over: bool,
    /// Keeper of each tensor, and the number of its residency in use.
    keepers: [usize; 3],
    using: [u64; 3],
    /// The first burst on the output residency in use is still to come.
    opening: bool,
    free: i64,
    due: i64,
}

/// A transfer on its way to a stage where it meets others.
#[derive(Debug, Clone, Copy)]
struct Hop {
    time: i64,
    keeper: usize,
    residency: u64,
    up: bool,
    stage: usize,
    tail: i64,
    elements: u64,
    bits: u64,
    /// Number of the parent's residency, and whether this is the last transfer of it with this instance.
    parent: u64,
    last: bool,
}

/// Memory of the rehearsal, reused from one mapping to the next.
#[derive(Debug, Clone)]
pub(super) struct Rehearsal {
    plan: Plan,
    keepers: Vec<Keeper>,
    /// Per keeper, when it may act next: fill or open, with its turn in a sweep; drain.
    fills: Vec<(i64, u64)>,
    drains: Vec<i64>,
    pes: Vec<Pe>,
    hops: Vec<Hop>,
    /// Per resource, once for the first and once for the last PE.
    free: Vec<i64>,
    laps: [Lap; MAX_TURNS],
    /// Iterations of each loop that are gone through at most.
    most: [u32; MAX_TURNS],
    skipped: i64,
    end: i64,
}

impl Default for Rehearsal {
    fn default() -> Self {
        Rehearsal {
            plan: Plan::default(),
            keepers: Vec::new(),
            fills: Vec::new(),
            drains: Vec::new(),
            pes: Vec::new(),
            hops: Vec::new(),
            free: Vec::new(),
            laps: [NO_LAP; MAX_TURNS],
            most: [0; MAX_TURNS],
            skipped: 0,
            end: 0,
        }
    }
}

impl Rehearsal {
    /// Estimated cycles of a mapping, of whose levels `keeps` says what they keep. `most` is the number of bursts of one
    /// PE that is divided among the loops.
    ///
    /// # Errors
    /// If the mapping has too many loops, or nothing can move any more before the end.
    pub(super) fn run(
        &mut self,
        nest: &Nest,
        problem: &Problem,
        keeps: &[[bool; 3]],
        hardware: &Hardware,
        timing: &Timing,
        most: usize,
    ) -> Result<f64, CostError> {
        turns(nest, hardware.event, &mut self.plan.turns)?;
        self.plan.set(nest, problem, keeps, hardware, timing);
        self.begin(hardware.event);
        self.portion(most);
        let mut bursts = 0;
        loop {
            let mut best = (NEVER, 0, 0);
            for (i, hop) in self.hops.iter().enumerate() {
                if hop.time < best.0 {
                    best = (hop.time, 0, i);
                }
            }
            for (i, &due) in self.drains.iter().enumerate() {
                if due < best.0 {
                    best = (due, 1, i);
                }
            }
            let mut rank = 0;
            for (i, &(due, own)) in self.fills.iter().enumerate() {
                if due < best.0 || due == best.0 && best.1 == 2 && own < rank {
                    best = (due, 2, i);
                    rank = own;
                }
            }
            for (i, pe) in self.pes.iter().enumerate() {
                if pe.due < best.0 {
                    best = (pe.due, 3, i);
                }
            }
            match best {
                (NEVER, ..) => break,
                (_, 0, i) => {
                    let hop = self.hops.swap_remove(i);
                    self.travel(hop);
                }
                (now, 1, i) => self.drain(i, now),
                (now, 2, i) => self.fill(i, now),
                (now, _, i) => {
                    let moved = self.burst(i, now);
                    if i == 0 {
                        bursts += 1;
                        if let Some(turn) = moved {
                            self.lap(turn);
                            if bursts >= 4 * most {
                                return Ok(self.extrapolated(turn));
                            }
                        }
                    }
                }
            }
        }
        if self.pes.iter().any(|pe| !pe.over) || self.drains.iter().any(|&due| due != NEVER) {
            return Err(CostError::NotExpressible(
                "the rehearsal of the schedule gets stuck".into(),
            ));
        }
        Ok(self.end as f64)
    }

    /// Sets up keepers and PEs at time 0.
    fn begin(&mut self, event: usize) {
        self.keepers.clear();
        self.pes.clear();
        self.hops.clear();
        self.free.clear();
        self.free.resize(2 * RESOURCES, 0);
        self.laps[..self.plan.turns.len()].fill(NO_LAP);
        (self.skipped, self.end) = (0, 0);
        let mut at_pe = [[0; 3]; 2];
        let mut above: [Option<usize>; 2] = [None; 2];
        for (index, stream) in self.plan.streams.iter().enumerate() {
            if stream.parent == 0 {
                above = [None; 2];
            }
            let alone = if stream.tensor == Tensor::Outputs {
                stream.groups.1 > 1.0
            } else {
                stream.groups.0 > 1.0
            };
            let apart =
                self.plan.several[stream.child] && (alone || self.plan.several[stream.parent] && above[0] != above[1]);
            let chains: &[[bool; 2]] = if apart {
                &[[true, false], [false, true]]
            } else {
                &[[true, true]]
            };
            let parents = above;
            for &chains in chains {
                let number = self.keepers.len();
                let first = usize::from(!chains[0]);
                self.keepers.push(Keeper {
                    stream: index,
                    parent: parents[first],
                    chains,
                    users: 0,
                    cursor: Cursor::START,
                    before: DimMap([0; 8]),
                    over: false,
                    next: 0,
                    in_parent: 0,
                    draining: 0,
                    rank: (3 * stream.child + [2, 0, 1][stream.tensor as usize]) as u64,
                    earliest: 0,
                    pass: 0,
                    settled: 0,
                    ring: [BLANK; RING],
                });
                if let Some(parent) = parents[first] {
                    self.keepers[parent].users += 1;
                }
                for chain in 0..2 {
                    if chains[chain] {
                        above[chain] = Some(number);
                        if stream.child == event {
                            at_pe[chain][stream.tensor as usize] = number;
                        }
                    }
                }
            }
        }
        let both = at_pe[0] != at_pe[1];
        for keepers in at_pe.iter().take(if both { 2 } else { 1 }) {
            for &keeper in keepers {
                self.keepers[keeper].users += 1;
            }
            self.pes.push(Pe {
                cursor: Cursor::START,
                over: false,
                keepers: *keepers,
                using: [0; 3],
                opening: true,
                free: 0,
                due: NEVER,
            });
        }
        self.fills.clear();
        self.fills.resize(self.keepers.len(), (NEVER, 0));
        self.drains.clear();
        self.drains.resize(self.keepers.len(), NEVER);
        for keeper in 0..self.keepers.len() {
            self.update(keeper);
        }
    }

    /// Works out when a keeper may act next.
    fn update(&mut self, index: usize) {
        let keeper = &self.keepers[index];
        let stream = &self.plan.streams[keeper.stream];
        let mut due = [NEVER; 2];
        if !keeper.over {
            let mut at = keeper.earliest;
            let slots = stream.slots as u64;
            if keeper.next >= slots {
                let mut freed = keeper.at(keeper.next - slots).freed;
                // Behind a full buffer, a FIFO takes what it has room for (rule 9).
                if freed == NEVER && stream.fifo > 0 && stream.tensor != Tensor::Outputs {
                    let usual = keeper.at(keeper.next - 1).elements.max(1);
                    let waiting = (stream.fifo / usual).min(RING as u64 - slots - 1);
                    if waiting > 0 {
                        freed = if keeper.next >= slots + waiting {
                            keeper.at(keeper.next - slots - waiting).freed
                        } else {
                            0
                        };
                    }
                }
                at = at.max(freed);
            }
            if let Some(parent) = keeper.parent {
                at = at.max(self.keepers[parent].ready(keeper.in_parent));
            }
            due[0] = at;
        }
        if stream.tensor == Tensor::Outputs && keeper.draining < keeper.next {
            let residency = keeper.at(keeper.draining);
            if residency.done.0 == keeper.users {
                due[1] = residency.done.1;
            }
        }
        let pass = if due[0] == keeper.earliest { keeper.pass } else { 0 };
        self.fills[index] = (due[0], u64::from(pass) << 32 | keeper.rank);
        self.drains[index] = due[1];
    }

    fn update_users(&mut self, index: usize) {
        for child in 0..self.keepers.len() {
            if self.keepers[child].parent == Some(index) {
                self.update(child);
            }
        }
        for pe in 0..self.pes.len() {
            if self.pes[pe].keepers.contains(&index) {
                self.update_pe(pe);
            }
        }
    }

    fn update_pe(&mut self, index: usize) {
        let pe = &self.pes[index];
        let mut due = NEVER;
        if !pe.over {
            due = pe.free;
            for (&keeper, &using) in pe.keepers.iter().zip(&pe.using) {
                due = due.max(self.keepers[keeper].ready(using));
            }
        }
        self.pes[index].due = due;
    }
}

impl Keeper {
    fn at(&self, number: u64) -> &Residency {
        &self.ring[number as usize % RING]
    }

    fn at_mut(&mut self, number: u64) -> &mut Residency {
        &mut self.ring[number as usize % RING]
    }

    /// Residency `number`, if it is not forgotten yet.
    fn remembered(&mut self, number: u64) -> Option<&mut Residency> {
        (number + RING as u64 >= self.next).then(|| self.at_mut(number))
    }

    /// When residency `number` can be used.
    fn ready(&self, number: u64) -> i64 {
        if number < self.next {
            self.at(number).ready
        } else {
            NEVER
        }
    }

    /// How many residencies ago the tile of the next one was visited last; `None` if too long ago to matter.
    fn since(&self, own: &[cursor::Turn]) -> Option<u64> {
        let mut distance = 1;
        for (k, turn) in own.iter().enumerate().rev() {
            if turn.dim.is_reduction() && self.cursor.trip[k] > 0 {
                return Some(distance);
            }
            distance *= u64::from(turn.trips);
            if distance >= RECALLED {
                return None;
            }
        }
        None
    }
}
