//! Iterations of loops: when they repeat, and what to skip.

use cyclonest_workloads::{DimMap, Tensor};

use super::cursor::Cursor;
use super::{Hop, NEVER, Rehearsal};
use crate::cost::exact::latency::RESOURCES;

/// Iterations of a run that are remembered.
const MAX_ENDS: usize = 33;
/// Resources whose backlog is followed.
const MAX_RESOURCES: usize = 32;

/// Iterations of a loop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lap {
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

pub(super) const NO_LAP: Lap = Lap {
    began: None,
    last: None,
    state: 0,
    steady: None,
    ends: [0; MAX_ENDS],
    count: 0,
    entering: true,
    backlog: [[0; 2]; MAX_RESOURCES],
};

impl Rehearsal {
    /// Marks the beginning of a run of the loops inside `turn`.
    pub(super) fn enter(&mut self, turn: usize, now: i64) {
        for lap in &mut self.laps[turn + 1..self.plan.turns.len()] {
            lap.began = Some(now);
            (lap.ends[0], lap.count, lap.entering) = (now, 0, true);
        }
    }

    /// The first PE has begun another iteration of loop `turn`.
    pub(super) fn lap(&mut self, turn: usize) {
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
    pub(super) fn portion(&mut self, bursts: usize) {
        let turns = &self.plan.turns;
        let mut product = 1;
        for (most, turn) in self.most.iter_mut().zip(turns) {
            *most = turn.trips.min(2);
            product *= *most as usize;
        }
        for k in (0..turns.len()).rev() {
            while product <= bursts && self.most[k] < turns[k].trips {
                let more = product / self.most[k] as usize * (self.most[k] as usize + 1);
                if more > bursts {
                    break;
                }
                self.most[k] += 1;
                product = more;
            }
        }
    }

    /// What the future depends on, as far as it is still to come (rule 27): how far streams are ahead, what is on its
    /// way, and how long resources are taken.
    pub(super) fn state(&self) -> u64 {
        let now = self.pes[0].free;
        let mut hash = 0_u64;
        let mut add = |value: i64| {
            hash = (hash ^ value as u64)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(23);
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
    pub(super) fn skip(&mut self, turn: usize, cycles: f64, before: &[[i64; 2]; MAX_RESOURCES]) {
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
        // Drains that pile up go on piling up.
        for ((before, after), resource) in before.iter().zip(&self.laps[turn].backlog).zip(self.plan.resources()) {
            if !self.plan.piles_up(resource, turn) {
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
    pub(super) fn extrapolated(&self, turn: usize) -> f64 {
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
            let longest = stages
                .iter()
                .map(|s| (s.passes * s.cycles(elements, bits) as f64) as i64)
                .max();
            after += (latency + longest.unwrap_or(0)) as f64;
        }
        cycles + after
    }
}
