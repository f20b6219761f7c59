//! Latency from a rehearsal of the schedule by its first and its last PE.
//!
//! The loop nest is gone through with two PEs only: the one that every transfer serves first, and the one that it
//! serves last. What all others move is part of the occupancy of the ports and networks on the way. Residencies,
//! slots, store and forward, the order in which transfers reach a resource, partial sums and clipped tiles are those of
//! the timing contract; the PEs between the two are taken to drift apart no further than these.
//!
//! A loop is not gone through to its end: once two of its iterations in a row have taken equally long and nothing from
//! outside the loop is still on its way, all but the last are skipped, each for the same time. After [`Pace::bursts`]
//! bursts the rest is extrapolated from the last iteration of every loop.

mod cursor;
mod plan;

use cyclonest_workloads::{DimMap, Problem, Tensor};

use self::cursor::{Cursor, MAX_TURNS, turns};
use self::plan::{Path, Plan, Stream};
use super::latency::{RESOURCES, Timing};
use super::nest::Nest;
use super::traffic::Hardware;
use crate::cost::CostError;

/// Residencies of a stream that are remembered.
const RING: usize = 16;
/// Iterations of a run that are remembered.
const MAX_ENDS: usize = 33;
/// Resources whose backlog is followed.
const MAX_RESOURCES: usize = 32;
const NEVER: i64 = i64::MAX;
const OUTPUTS: usize = Tensor::Outputs as usize;

/// How much is gone through.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Bursts of one PE after which the rest is extrapolated.
    pub(super) bursts: usize,
}

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

/// Iterations of a loop.
#[derive(Debug, Clone, Copy)]
struct Lap {
    /// When the current iteration began, skipped time included; `None` before the first.
    began: Option<i64>,
    /// Cycles of the last one.
    last: Option<i64>,
    /// The state at its end.
    state: u64,
    /// Cycles of the last one that was not the first of its run, under the same outer iterations of reductions.
    steady: Option<f64>,
    /// When the iterations since the beginning of the run, or since the last skip, ended; the first entry is that
    /// beginning.
    ends: [i64; MAX_ENDS],
    count: usize,
    /// The first of them is the first of the run.
    entering: bool,
    /// Per resource in use and chain: how far beyond its end it was taken.
    backlog: [[i64; 2]; MAX_RESOURCES],
}

const NO_LAP: Lap = Lap {
    began: None,
    last: None,
    state: 0,
    steady: None,
    ends: [0; MAX_ENDS],
    count: 0,
    entering: true,
    backlog: [[0; 2]; MAX_RESOURCES],
};

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
    first_burst: i64,
    last_burst: i64,
    computing: i64,
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
            first_burst: 0,
            last_burst: 0,
            computing: 0,
        }
    }
}

impl Rehearsal {
    /// Estimated cycles of a mapping, of whose levels `keeps` says what they keep.
    ///
    /// # Errors
    /// If the mapping has too many loops.
    pub(super) fn run(
        &mut self,
        nest: &Nest,
        problem: &Problem,
        keeps: &[[bool; 3]],
        hardware: &Hardware,
        timing: &Timing,
        pace: Pace,
    ) -> Result<f64, CostError> {
        turns(nest, hardware.event, &mut self.plan.turns)?;
        self.plan.set(nest, problem, keeps, hardware, timing);
        self.begin(hardware.event);
        self.portion(pace);
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
                            if bursts >= 4 * pace.bursts {
                                return Ok(self.extrapolated(turn));
                            }
                        }
                    }
                }
            }
        }
        Ok((self.end + self.skipped) as f64)
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
            let apart = self.plan.several[stream.child] && (alone || self.plan.several[stream.parent] && above[0] != above[1]);
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
                    let waiting = (stream.fifo / usual).min(RING as u64 - slots - 2);
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

    /// Requests the next fill, or opens the next output residency, with a fetch where partial sums were left behind.
    fn fill(&mut self, index: usize, now: i64) {
        let Plan {
            streams,
            turns,
            bounds,
            ..
        } = &self.plan;
        let keeper = &mut self.keepers[index];
        let stream = &streams[keeper.stream];
        let own = &turns[..stream.turns];
        let at = keeper.cursor.at;
        let number = keeper.next;
        let elements = if stream.halo && number > 0 {
            stream.fresh(&keeper.before, &at, bounds)
        } else {
            stream.elements(&at, bounds)
        };
        let outputs = stream.tensor == Tensor::Outputs;
        let (mut fetched, mut partial) = (false, false);
        if outputs {
            for (k, turn) in own.iter().enumerate().filter(|(_, t)| t.dim.is_reduction()) {
                fetched |= keeper.cursor.trip[k] > 0;
                partial |= keeper.cursor.left(k, turns, bounds) > 1;
            }
        }
        // A fetch waits for the drains of the tile's previous visit (rule 18).
        if fetched && let Some(distance) = keeper.since(own)
            && distance <= number
        {
            let drained = keeper.at(number - distance).drained;
            if drained > now {
                self.fills[index].0 = drained;
                if drained != NEVER {
                    keeper.earliest = drained;
                }
                return;
            }
        }
        let parent_level = keeper.parent.map(|p| streams[self.keepers[p].stream].turns);
        let keeper = &mut self.keepers[index];
        let parent = keeper.in_parent;
        keeper.before = at;
        let moved = keeper.cursor.advance(own, bounds);
        keeper.over = moved.is_none();
        let last_in_parent = match (moved, parent_level) {
            (Some(turn), Some(outer)) => turn < outer,
            (Some(_), None) => false,
            (None, _) => true,
        };
        if last_in_parent {
            keeper.in_parent += 1;
        }
        keeper.next += 1;
        keeper.pass = if keeper.earliest == now { keeper.pass + 1 } else { 1 };
        keeper.earliest = now;
        *keeper.at_mut(number) = Residency {
            elements,
            parent,
            last_in_parent,
            fetched,
            partial,
            ..BLANK
        };
        // Siblings that add to the same sums start at zero (rule 17).
        let fetches = fetched && (keeper.chains[0] || stream.modifying == 0.0);
        let bits = stream.bits(true);
        if outputs && !fetches || elements == 0 {
            keeper.at_mut(number).ready = now;
            if !outputs {
                self.left(index, parent, last_in_parent, now);
            }
            self.update(index);
            self.update_users(index);
            return;
        }
        self.travel(Hop {
            time: now,
            keeper: index,
            residency: number,
            up: false,
            stage: 0,
            tail: now,
            elements,
            bits,
            parent,
            last: last_in_parent,
        });
        self.update(index);
    }

    /// Requests the drain of the next output residency that is done.
    fn drain(&mut self, index: usize, now: i64) {
        let keeper = &mut self.keepers[index];
        let stream = &self.plan.streams[keeper.stream];
        let number = keeper.draining;
        keeper.draining += 1;
        let residency = *keeper.at(number);
        if residency.elements <= stream.fifo {
            keeper.at_mut(number).freed = now + 1;
        }
        self.travel(Hop {
            time: now,
            keeper: index,
            residency: number,
            up: true,
            stage: 0,
            tail: now,
            elements: residency.elements,
            bits: stream.bits(residency.partial),
            parent: residency.parent,
            last: residency.last_in_parent,
        });
        self.update(index);
    }

    /// Takes a transfer along its path until it meets others, or to its end.
    fn travel(&mut self, mut hop: Hop) {
        let Plan { streams, several, .. } = &self.plan;
        let keeper = &self.keepers[hop.keeper];
        let stream = &streams[keeper.stream];
        let path: &Path = if hop.up { &stream.up } else { &stream.down };
        let stages = path.stages();
        let [first, last] = keeper.chains;
        let mut head = hop.time;
        let mut left = None;
        let from = hop.stage;
        while hop.stage < stages.len() {
            let stage = &stages[hop.stage];
            if stage.meets && hop.stage > from {
                break;
            }
            let cycles = stage.cycles(hop.elements, hop.bits);
            let (mut start, mut end) = (head, head);
            if cycles > 0 {
                // The transfers of the other members of the batch come behind those of the first PE and ahead of
                // those of the last one; on a resource that both share, each of the two takes care of its own.
                let apart = several[stage.level] || stage.own;
                let mut resources = [stage.resource, usize::MAX];
                if several[stage.level] {
                    if first && last && stage.own {
                        resources[1] = stage.resource + RESOURCES;
                    } else if !first {
                        resources[0] += RESOURCES;
                    }
                }
                let others = |passes: f64| (passes.max(0.0) * cycles as f64 + 0.5) as i64;
                let (mut before, mut after) = (0, 0);
                match (first, last) {
                    (true, true) => after = others(stage.passes - 1.0),
                    (true, false) => after = others(stage.passes - if apart { 1.0 } else { 2.0 }),
                    _ => before = if apart { others(stage.passes - 1.0) } else { 0 },
                }
                if std::env::var("TRACE").is_ok() { eprintln!("  {:?} L{}->L{} up {} chains {first}{last} #{} stage {} res {:?} head {head} cycles {cycles} passes {} before {before} after {after} free {}", stream.tensor, stream.parent, stream.child, hop.up, hop.residency, hop.stage, resources[0], stage.passes, self.free[resources[0]]); }
                for &resource in resources.iter().filter(|&&r| r != usize::MAX) {
                    let free = self.free[resource];
                    start = start.max(free + before);
                    if hop.stage == 0 && before > 0 {
                        start = start.max(head + before);
                    }
                }
                end = start + cycles;
                for &resource in resources.iter().filter(|&&r| r != usize::MAX) {
                    self.free[resource] = end + after;
                }
            }
            if hop.stage == 0 {
                left = Some(end);
            }
            hop.tail = hop.tail.max(end + stage.onward);
            head = start + stage.latency;
            hop.stage += 1;
        }
        if let Some(left) = left {
            self.has_left(&hop, left);
        }
        if hop.stage < self.stages(&hop) {
            hop.time = head;
            self.hops.push(hop);
        } else {
            self.arrived(&hop);
        }
    }

    fn stages(&self, hop: &Hop) -> usize {
        let stream = &self.plan.streams[self.keepers[hop.keeper].stream];
        if hop.up { stream.up.stages().len() } else { stream.down.stages().len() }
    }

    /// A transfer has left its first stage.
    fn has_left(&mut self, hop: &Hop, left: i64) {
        if hop.up {
            let residency = self.keepers[hop.keeper].at_mut(hop.residency);
            residency.freed = residency.freed.min(left.max(hop.time + 1));
            self.update(hop.keeper);
        } else if self.plan.streams[self.keepers[hop.keeper].stream].tensor != Tensor::Outputs {
            self.left(hop.keeper, hop.parent, hop.last, left);
        }
    }

    /// A fill has left the parent's read port: a parent's residency that it was the last to use is free.
    fn left(&mut self, index: usize, number: u64, last: bool, left: i64) {
        if let Some(parent) = self.keepers[index].parent
            && last
        {
            let users = self.keepers[parent].users;
            let above = self.keepers[parent].at_mut(number);
            above.done = (above.done.0 + 1, above.done.1.max(left));
            if above.done.0 == users {
                above.freed = above.done.1;
                self.update(parent);
            }
        }
    }

    fn arrived(&mut self, hop: &Hop) {
        let keeper = &mut self.keepers[hop.keeper];
        let (parent, settled) = (keeper.parent, keeper.settled);
        let residency = keeper.at_mut(hop.residency);
        if !hop.up {
            residency.ready = hop.tail;
            keeper.settled = settled.max(hop.tail);
            self.update_users(hop.keeper);
            return;
        }
        residency.drained = hop.tail;
        match parent {
            None => self.end = self.end.max(hop.tail),
            Some(parent) => {
                let above = self.keepers[parent].at_mut(hop.parent);
                above.done = (above.done.0 + u32::from(hop.last), above.done.1.max(hop.tail));
                self.update(parent);
            }
        }
        // Fetches of the same tile may have waited for it.
        self.update(hop.keeper);
    }

    /// Runs a burst of a PE; returns the loop that moves on then.
    fn burst(&mut self, index: usize, now: i64) -> Option<usize> {
        let pe = &self.pes[index];
        let sums = &self.keepers[pe.keepers[OUTPUTS]];
        let residency = sums.at(pe.using[OUTPUTS]);
        let opening = if pe.opening && !residency.fetched { residency.elements } else { 0 };
        let end = now + self.plan.burst(&pe.cursor, opening);
        let pe = &mut self.pes[index];
        let moved = pe.cursor.advance(&self.plan.turns, &self.plan.bounds);
        pe.over = moved.is_none();
        pe.free = end;
        pe.opening = false;
        for t in 0..3 {
            let pe = &mut self.pes[index];
            let (keeper, number) = (pe.keepers[t], pe.using[t]);
            let over = moved.is_none_or(|turn| turn < self.plan.streams[self.keepers[keeper].stream].turns);
            if !over {
                continue;
            }
            pe.using[t] += 1;
            let users = self.keepers[keeper].users;
            let residency = self.keepers[keeper].at_mut(number);
            let done = end + if t == OUTPUTS { self.plan.depth } else { 0 };
            residency.done = (residency.done.0 + 1, residency.done.1.max(done));
            if t == OUTPUTS {
                self.pes[index].opening = true;
            } else if residency.done.0 == users {
                residency.freed = residency.done.1;
            }
            self.update(keeper);
        }
        self.update_pe(index);
        moved
    }

    /// Marks the beginning of a run of the loops inside `turn`.
    fn enter(&mut self, turn: usize, now: i64) {
        for lap in &mut self.laps[turn + 1..self.plan.turns.len()] {
            lap.began = Some(now);
            (lap.ends[0], lap.count, lap.entering) = (now, 0, true);
        }
    }

    /// The first PE has begun another iteration of loop `turn`.
    fn lap(&mut self, turn: usize) {
        let now = self.pes[0].free + self.skipped;
        self.enter(turn, now);
        let state = self.state();
        let mut backlog = [[0; 2]; MAX_RESOURCES];
        for (backlog, resource) in backlog.iter_mut().zip(self.plan.resources()) {
            for (backlog, resource) in backlog.iter_mut().zip([resource, resource + RESOURCES]) {
                *backlog = (self.free[resource] - self.pes[0].free).max(0);
            }
        }
        let before = std::mem::replace(&mut self.laps[turn].backlog, backlog);
        let trip = self.pes[0].cursor.trip[turn];
        if std::env::var("TRACE").is_ok() { eprintln!("lap {turn} now {now} took {} trip {:?} pe {:?}", now - self.laps[turn].began.unwrap_or(0), &self.pes[0].cursor.trip[..self.plan.turns.len()], self.pes.iter().map(|p| p.free).collect::<Vec<_>>()); }
        let reduction = self.plan.turns[turn].dim.is_reduction();
        let lap = &mut self.laps[turn];
        let took = now - lap.began.unwrap_or(0);
        let recurs = lap.last == Some(took) && lap.state == state;
        (lap.began, lap.last, lap.state) = (Some(now), Some(took), state);
        if lap.count + 1 == MAX_ENDS {
            lap.ends.copy_within(2.., 1);
            lap.count -= 1;
        }
        lap.count += 1;
        lap.ends[lap.count] = now;
        // The later half, for the first iterations are not like the others.
        let usable = lap.count - usize::from(lap.entering);
        if usable > 0 {
            let half = usable.div_ceil(2);
            lap.steady = Some((now - lap.ends[lap.count - half]) as f64 / half as f64);
        }
        let steady = lap.steady;
        if reduction && trip == 1 {
            // From now on partial sums are fetched.
            for lap in &mut self.laps[turn + 1..self.plan.turns.len()] {
                lap.steady = None;
            }
        }
        if recurs {
            self.skip(turn, took as f64, &before);
        } else if trip + 1 >= self.most[turn]
            && let Some(steady) = steady
        {
            self.skip(turn, steady, &before);
        }
    }

    /// Divides the bursts among the loops: two iterations of every loop, and more from the inside out.
    fn portion(&mut self, pace: Pace) {
        let turns = &self.plan.turns;
        let mut product = 1;
        for (most, turn) in self.most.iter_mut().zip(turns) {
            *most = turn.trips.min(2);
            product *= *most as usize;
        }
        for k in (0..turns.len()).rev() {
            while product <= pace.bursts && self.most[k] < turns[k].trips {
                let more = product / self.most[k] as usize * (self.most[k] as usize + 1);
                if more > pace.bursts {
                    break;
                }
                self.most[k] += 1;
                product = more;
            }
        }
    }

    /// What the future depends on, as far as it is still to come (rule 27): how far streams are ahead, what is on its
    /// way, and how long resources are taken.
    fn state(&self) -> u64 {
        let now = self.pes[0].free;
        let mut hash = 0_u64;
        let mut add = |value: i64| {
            hash = (hash ^ value as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
        };
        let ahead = |time: i64| if time == NEVER { NEVER } else { (time - now).max(0) };
        for pe in &self.pes {
            add(pe.free - now);
            for (&keeper, &using) in pe.keepers.iter().zip(&pe.using) {
                add((self.keepers[keeper].next - using) as i64);
            }
        }
        for keeper in &self.keepers {
            add(ahead(keeper.settled));
            add((keeper.next - keeper.draining.min(keeper.next)) as i64);
            if let Some(parent) = keeper.parent {
                add((self.keepers[parent].next - keeper.in_parent.min(self.keepers[parent].next)) as i64);
            }
        }
        for hop in &self.hops {
            add(hop.time - now);
        }
        for resource in self.plan.resources() {
            add(ahead(self.free[resource]));
            add(ahead(self.free[resource + RESOURCES]));
        }
        hash
    }

    /// Skips iterations of loop `turn`, each of which takes `cycles`, if nothing from outside the loop is on its way.
    fn skip(&mut self, turn: usize, cycles: f64, before: &[[i64; 2]; MAX_RESOURCES]) {
        let now = self.pes[0].free;
        let own = self.pes[0].cursor;
        let mut ahead = own.trip[turn];
        let mut same_run = |cursor: &Cursor, over: bool| {
            ahead = ahead.max(cursor.trip[turn]);
            !over && cursor.trip[..turn] == own.trip[..turn]
        };
        for pe in &self.pes[1..] {
            if !same_run(&pe.cursor, pe.over) {
                return;
            }
        }
        for keeper in &self.keepers {
            if self.plan.streams[keeper.stream].turns > turn {
                if !same_run(&keeper.cursor, keeper.over) {
                    return;
                }
            } else if keeper.settled > now {
                return;
            }
        }
        let outside = |hop: &Hop| self.plan.streams[self.keepers[hop.keeper].stream].turns <= turn;
        if self.hops.iter().any(outside) {
            return;
        }
        let (turns, bounds) = (&self.plan.turns, &self.plan.bounds);
        let left = own.left(turn, turns, bounds) as u32;
        // The last iteration, which may be clipped, is gone through.
        let trips = (own.trip[turn] + left - 1).saturating_sub(ahead + 1);
        if trips == 0 {
            return;
        }
        for pe in &mut self.pes {
            pe.cursor.skip(turn, turns, trips);
        }
        for keeper in &mut self.keepers {
            if self.plan.streams[keeper.stream].turns > turn {
                keeper.cursor.skip(turn, turns, trips);
                keeper.before[turns[turn].dim] += u64::from(trips) * turns[turn].weight;
            }
        }
        if std::env::var("TRACE").is_ok() { eprintln!("skip {turn} {trips} x {cycles}"); }
        // Drains that pile up go on piling up, for they have left their slots and nobody waits for them.
        for ((before, after), resource) in before.iter().zip(&self.laps[turn].backlog).zip(self.plan.resources()) {
            if !self.plan.drains_only(resource) {
                continue;
            }
            for chain in 0..2 {
                let growth = after[chain] - before[chain];
                if before[chain] > 0 && growth > 0 {
                    self.free[resource + chain * RESOURCES] += i64::from(trips) * growth;
                }
            }
        }
        self.skipped += (f64::from(trips) * cycles).round() as i64;
        let now = now + self.skipped;
        let lap = &mut self.laps[turn];
        lap.began = Some(now);
        (lap.ends[0], lap.count, lap.entering) = (now, 0, false);
        self.enter(turn, now);
    }

    /// The end of the schedule as the last iterations of the loops let expect it, when loop `turn` has just moved on.
    fn extrapolated(&self, turn: usize) -> f64 {
        let (turns, bounds) = (&self.plan.turns, &self.plan.bounds);
        let pe = &self.pes[0];
        let mut cycles = (pe.free + self.skipped) as f64;
        // Cycles of one iteration, from the inside out.
        let mut iteration = 0.0;
        for k in (0..turns.len()).rev() {
            let turn_trips = {
                let full = bounds[turns[k].dim].div_ceil(turns[k].weight);
                f64::from(turns[k].trips).min(full as f64)
            };
            let own = match self.laps[k].last {
                Some(last) => last as f64,
                None => iteration,
            };
            let left = pe.cursor.left(k, turns, bounds) as f64;
            if k <= turn {
                cycles += own * (left - if k == turn { 0.0 } else { 1.0 });
            }
            iteration = own * turn_trips;
        }
        let lag = self.pes.iter().map(|pe| pe.free).max().unwrap_or(0) - pe.free;
        let mut after = self.plan.depth as f64 + lag.max(0) as f64;
        for stream in self.plan.streams.iter().filter(|s| s.tensor == Tensor::Outputs) {
            let elements = stream.elements(&DimMap([0; 8]), bounds);
            let stages = stream.up.stages();
            let latency: i64 = stages.iter().map(|s| s.latency).sum();
            let bits = stream.bits(false);
            let longest = stages.iter().map(|s| (s.passes * s.cycles(elements, bits) as f64) as i64).max();
            after += (latency + longest.unwrap_or(0)) as f64;
        }
        cycles + after
    }
}

impl Keeper {
    fn at(&self, number: u64) -> &Residency {
        &self.ring[number as usize % RING]
    }

    fn at_mut(&mut self, number: u64) -> &mut Residency {
        &mut self.ring[number as usize % RING]
    }

    /// When residency `number` can be used.
    fn ready(&self, number: u64) -> i64 {
        if number < self.next { self.at(number).ready } else { NEVER }
    }

    /// How many residencies ago the tile of the next one was visited last; `None` if too long ago to matter.
    fn since(&self, own: &[cursor::Turn]) -> Option<u64> {
        let mut distance = 1;
        for (k, turn) in own.iter().enumerate().rev() {
            if turn.dim.is_reduction() && self.cursor.trip[k] > 0 {
                return Some(distance);
            }
            distance *= u64::from(turn.trips);
            if distance >= RING as u64 / 2 {
                return None;
            }
        }
        None
    }
}
