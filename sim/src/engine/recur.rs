//! Exact fast-forward (rule 27).
//!
//! A schedule is a periodic nest, so the machine's relative state recurs. When PE 0 crosses an iteration of a loop, the
//! state is written down; if the same was seen before in the same run of that loop, the machine has gone through a
//! period. Everything that may still be generated along the loop is then checked to be of the same shape as what
//! was generated in the period: tiles unclipped, away from the padding, neither the last iteration nor the next turn
//! of a loop further out. As many periods as that allows are skipped: counters grow by what they grew in the period,
//! positions in the nest move on, and simulated time gets an offset; no handler reads absolute time.

use std::collections::HashMap;

use cyclonest_workloads::Dim;

use super::components::{PeId, StoreId, TransferId};
use super::{Engine, Event};
use crate::observe::Observer;
use crate::plan::cursor::Cursor;
use crate::relative::{Key, RelativeState, Unit};
use crate::{Cycle, Skipped};

/// A machine state that may recur.
#[derive(Debug)]
struct Snapshot {
    /// Iteration of the loop.
    iteration: u64,
    /// Simulated time, skipped stretches included.
    time: u64,
    words: Vec<u64>,
    positions: Vec<u64>,
    counters: Vec<u64>,
}

/// What is known about one loop.
#[derive(Debug, Default)]
struct LoopHistory {
    snapshots: HashMap<u64, Snapshot>,
    /// Events at the last crossing.
    events: u64,
    /// Crossings to let pass before the next attempt, and how many after the one that fails next.
    wait: u64,
    back_off: u64,
}

/// Fast-forward's memory and results.
#[derive(Debug, Default)]
pub(crate) struct Recurrence {
    loops: Vec<LoopHistory>,
    /// Loop that PE 0 has just crossed.
    pub(super) crossed: Option<usize>,
    /// Words of the last key: what a snapshot costs.
    key_words: u64,
    /// Cycles skipped so far: the distance of simulated from internal time.
    pub(super) skipped_cycles: u64,
    pub(super) skipped_events: u64,
    eager: bool,
}

/// Longest period tried, in iterations of a loop: older snapshots are dropped.
const LONGEST_PERIOD: u64 = 16;

impl Recurrence {
    pub(crate) fn new(loops: usize, key_words: u64, eager: bool) -> Self {
        Recurrence {
            eager,
            loops: (0..loops)
                .map(|_| LoopHistory {
                    back_off: 1,
                    ..LoopHistory::default()
                })
                .collect(),
            key_words,
            ..Recurrence::default()
        }
    }
}

impl<O: Observer> Engine<'_, O> {
    /// At the end of a cycle: if PE 0 has crossed an iteration of a loop, looks for a recurrence and skips ahead.
    pub(super) fn look_for_recurrence(&mut self) {
        let Some(recurrence) = &mut self.s.recurrence else {
            return;
        };
        let Some(crossed) = recurrence.crossed.take() else {
            return;
        };
        for inner in &mut recurrence.loops[crossed + 1..] {
            inner.snapshots.clear();
            inner.events = self.s.events;
        }
        let history = &mut recurrence.loops[crossed];
        let work = self.s.events - history.events;
        history.events = self.s.events;
        // A snapshot must be cheap next to the events of a period.
        if work < recurrence.key_words && !recurrence.eager {
            return;
        }
        if history.wait > 0 && !recurrence.eager {
            history.wait -= 1;
            return;
        }
        let cursor = &self.pes[0].cursor;
        if cursor.finished {
            return;
        }
        let iteration = cursor.indices[crossed];
        let key = self.key();
        let hash = key.hash();
        let snapshot = Snapshot {
            iteration,
            time: self.s.now.0 + self.skipped(),
            words: key.words,
            positions: self.all_positions(),
            counters: self.all_counters(),
        };
        let recurrence = self.s.recurrence.as_mut().expect("checked above");
        recurrence.key_words = snapshot.words.len() as u64;
        let history = &mut recurrence.loops[crossed];
        let seen = history.snapshots.remove(&hash).filter(|seen| {
            seen.words == snapshot.words
                && seen.counters.len() == snapshot.counters.len()
                && seen.positions.len() == snapshot.positions.len()
        });
        let Some(seen) = seen else {
            history
                .snapshots
                .retain(|_, s| s.iteration + LONGEST_PERIOD >= iteration);
            history.snapshots.insert(hash, snapshot);
            if history.snapshots.len() as u64 > 2 * history.back_off.min(LONGEST_PERIOD / 2) {
                // Nothing recurs yet: try less often.
                history.wait = history.back_off;
                history.back_off = (history.back_off * 2).min(1 << 10);
            }
            return;
        };
        let mut periods = self.periods_to_skip(crossed, &seen, &snapshot);
        if O::ACTIVE && periods > 0 {
            let until = self.observer.skip_until(snapshot.time);
            periods = periods.min(until.saturating_sub(snapshot.time) / (snapshot.time - seen.time).max(1));
        }
        if periods > 0 {
            self.skip(crossed, periods, &seen, &snapshot);
            let events = self.s.events;
            let recurrence = self.s.recurrence.as_mut().expect("checked above");
            for history in &mut recurrence.loops[crossed..] {
                history.snapshots.clear();
                history.events = events;
                history.back_off = 1;
            }
        } else {
            let recurrence = self.s.recurrence.as_mut().expect("checked above");
            recurrence.loops[crossed].snapshots.insert(hash, snapshot);
        }
    }

    fn skipped(&self) -> u64 {
        self.s.recurrence.as_ref().map_or(0, |r| r.skipped_cycles)
    }

    /// The relative state of the whole machine.
    fn key(&self) -> Key {
        let waiting = self.pes.iter().filter(|pe| !pe.computing && !pe.cursor.finished);
        let now = self.s.now;
        let settled = waiting.map(|pe| pe.blame_from).min().unwrap_or(now).min(now);
        let mut key = Key::new(now, settled);
        key.word(now.since(settled));
        for resource in self.resources.iter() {
            resource.write(&mut key);
        }
        for store in self.stores.iter() {
            if let Some(feeder) = store.feeder {
                let q = &self.sequencers[feeder.at()];
                key.group_first = q.first;
                key.parent_first = self.stores[q.parent.at()].first;
            }
            store.write(&mut key);
        }
        for q in self.sequencers.iter() {
            key.parent_first = self.stores[q.parent.at()].first;
            q.write(&mut key);
        }
        for pe in self.pes.iter() {
            key.needs_first = pe.needs.map(|need| self.stores[need.store.at()].first);
            pe.write(&mut key);
        }
        for (at, event) in self.s.wheel.pending() {
            key.ahead(at);
            match event {
                Event::Head(t) => self.write_transfer(0, t, &mut key),
                Event::Arrive(t) => self.write_transfer(1, t, &mut key),
                Event::DrainLeft(t) => self.write_transfer(2, t, &mut key),
                Event::Sweep => key.word(6),
                Event::Free(StoreId(id)) => key.word(u64::from(id) << 3 | 3),
                Event::BurstEnd(PeId(id)) => key.word(u64::from(id) << 3 | 4),
                Event::Done(StoreId(id)) => key.word(u64::from(id) << 3 | 5),
            }
        }
        key
    }

    fn write_transfer(&self, kind: u64, id: TransferId, key: &mut Key) {
        let t = &self.s.transfers[id.at()];
        key.word(kind);
        key.group_first = self.sequencers[t.sequencer.at()].first;
        key.parent_first = self.stores[self.s.shape(t.shape).stores[0].at()].first;
        t.write(key);
    }

    fn visit_positions(&mut self, visit: &mut dyn FnMut(Unit, &mut u64)) {
        self.stores.iter_mut().for_each(|store| store.positions(visit));
        self.sequencers.iter_mut().for_each(|q| q.positions(visit));
        self.pes.iter_mut().for_each(|pe| pe.positions(visit));
    }

    fn visit_counters(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        self.resources.iter_mut().for_each(|r| r.counters(visit));
        self.pes.iter_mut().for_each(|pe| pe.counters(visit));
        self.s.blame.counters(visit);
        self.s.traffic.counters(visit);
        for level in &mut self.s.counts.levels {
            for accesses in &mut level.tensors.0 {
                visit(&mut accesses.reads);
                visit(&mut accesses.fills);
                visit(&mut accesses.updates);
                visit(&mut accesses.drains);
                visit(&mut accesses.read_modify_writes);
            }
        }
        self.s
            .plan
            .bursts
            .classes
            .iter_mut()
            .for_each(|class| visit(&mut class.times));
        visit(&mut self.s.events);
        visit(&mut self.s.transfer_count);
    }

    fn all_positions(&mut self) -> Vec<u64> {
        let mut positions = Vec::new();
        self.visit_positions(&mut |_, position| positions.push(*position));
        positions
    }

    fn all_counters(&mut self) -> Vec<u64> {
        let mut counters = Vec::new();
        self.visit_counters(&mut |counter| counters.push(*counter));
        counters
    }

    /// How far a position moves when the loop advances by `iterations`, if it moves.
    fn shift_of(&self, unit: Unit, number: usize, iterations: u64) -> u64 {
        let l = &self.s.plan.steps[self.s.plan.pe_level].loops[number];
        match unit {
            Unit::Index(n) if n == number => iterations,
            Unit::Rank(level) if l.level < level => iterations * self.s.plan.steps[level].loops[number].weight,
            Unit::Low(dim) if dim == l.dim => iterations * l.stride,
            _ => 0,
        }
    }

    /// How many more periods are sure to be like the one between the two snapshots.
    fn periods_to_skip(&mut self, number: usize, seen: &Snapshot, now: &Snapshot) -> u64 {
        let period = now.iteration - seen.iteration;
        // Positions move with the loop, or stand still.
        let mut moved = Vec::with_capacity(now.positions.len());
        let mut units = Vec::with_capacity(now.positions.len());
        self.visit_positions(&mut |unit, _| units.push(unit));
        for ((before, after), unit) in seen.positions.iter().zip(&now.positions).zip(units) {
            let difference = after.wrapping_sub(*before);
            if difference != 0 && difference != self.shift_of(unit, number, period) {
                return 0;
            }
            moved.push(difference != 0);
        }
        // Who stands still must not come into reach of who moves.
        let mut at = 0;
        let mut record_moved: Vec<usize> = Vec::with_capacity(self.stores.len());
        for store in self.stores.iter() {
            record_moved.push(at);
            at += 2 * store.records.len();
        }
        let mut limit = u64::MAX;
        let mut sequencer_moved = Vec::with_capacity(self.sequencers.len());
        for q in self.sequencers.iter() {
            let has = q.steps.loops.len() > number;
            let moves = has && moved[at + number];
            sequencer_moved.push(moves);
            let depth = q.cursor.indices.len();
            at += depth + 3;
            let end = if moves {
                self.end_of_loop(number, &q.cursor, q.level)
            } else {
                0
            };
            for feed in &q.feeds {
                // A child that waits for a later turn of an outer loop must not be reached.
                if moves && !moved[at + number] && !feed.cursor.finished && feed.cursor.rank < end {
                    return 0;
                }
                at += depth + 11;
            }
            at += q.groups.len() + 9 * q.visits.len();
            if moves {
                limit = limit.min(self.iterations_alike(number, &q.cursor, period));
            }
        }
        for pe in self.pes.iter() {
            let moves = !pe.cursor.indices.is_empty() && moved[at + number];
            at += pe.cursor.indices.len();
            if pe.cursor.finished {
                continue;
            }
            if !moves {
                return 0;
            }
            limit = limit.min(self.iterations_alike(number, &pe.cursor, period));
            let end = self.end_of_loop(number, &pe.cursor, self.s.plan.pe_level);
            for need in &pe.needs {
                let store = &self.stores[need.store.at()];
                let stands = |ordinal: u64, field: usize| {
                    !moved[record_moved[need.store.at()] + 2 * (ordinal - store.first) as usize + field]
                };
                if store.generated > need.next && store.record(need.next).first_step < end && stands(need.next, 0) {
                    return 0;
                }
                if need.next > store.first {
                    let unused = store.record(need.next - 1).unused_from;
                    if unused > pe.cursor.rank && unused < end && stands(need.next - 1, 1) {
                        return 0;
                    }
                }
            }
        }
        for (i, q) in self.sequencers.iter().enumerate() {
            let outside = self.s.plan.steps[q.parent_level].loops.len() > number;
            if !sequencer_moved[i] || q.cursor.finished || !outside {
                continue;
            }
            let parent = &self.stores[q.parent.at()];
            let Some(feeder) = parent.feeder else { continue };
            let end = self.end_of_loop(number, &q.cursor, q.parent_level);
            let next = q.parent_ordinal + 1;
            if parent.generated > next {
                let place = record_moved[q.parent.at()] + 2 * (next - parent.first) as usize;
                if parent.record(next).first_step < end && !moved[place] {
                    return 0;
                }
            } else {
                let cursor = &self.sequencers[feeder.at()].cursor;
                if !cursor.finished && !sequencer_moved[feeder.at()] && cursor.rank < end {
                    return 0;
                }
            }
        }
        if limit == u64::MAX { 0 } else { limit / period }
    }

    /// Rank among the steps of `level` at which the loop further out than `number` turns next.
    fn end_of_loop(&self, number: usize, cursor: &Cursor, level: usize) -> u64 {
        let loops = &self.s.plan.steps[level].loops;
        let outer: u64 = loops[..number]
            .iter()
            .zip(&cursor.indices)
            .map(|(l, index)| l.weight * index)
            .sum();
        outer + loops[number].trips * loops[number].weight
    }

    /// How many iterations a cursor may move on while everything that it meets is like what it met in the last
    /// `period` iterations: full tiles in the loop's dimension, no padding, not the last iteration.
    fn iterations_alike(&self, number: usize, cursor: &Cursor, period: u64) -> u64 {
        let plan = &self.s.plan;
        let problem = &plan.problem;
        let loops = &plan.steps[plan.pe_level].loops;
        let l = &loops[number];
        let here = cursor.indices[number];
        let outer: u64 = loops[..number]
            .iter()
            .zip(&cursor.indices)
            .filter(|(o, _)| o.dim == l.dim)
            .map(|(o, index)| o.stride * index)
            .sum();
        let bound = problem.bounds[l.dim];
        let existing = (bound - outer).div_ceil(l.stride).min(l.trips);
        let Some(mut highest) = existing.checked_sub(2) else {
            return 0;
        };
        let Some(lowest) = here.checked_sub(period) else {
            return 0;
        };
        let b = &problem.bounds;
        let axis = match l.dim {
            Dim::P => Some((
                problem.real_rows(),
                problem.stride.0,
                (b[Dim::R] - 1) * problem.dilation.0,
            )),
            Dim::R => Some((
                problem.real_rows(),
                problem.dilation.0,
                (b[Dim::P] - 1) * problem.stride.0,
            )),
            Dim::Q => Some((
                problem.real_columns(),
                problem.stride.1,
                (b[Dim::S] - 1) * problem.dilation.1,
            )),
            Dim::S => Some((
                problem.real_columns(),
                problem.dilation.1,
                (b[Dim::Q] - 1) * problem.stride.1,
            )),
            _ => None,
        };
        for &base in &plan.bases[l.level][l.dim] {
            let origin = base + outer;
            let start = origin + lowest * l.stride;
            if start >= bound {
                continue;
            }
            // Iteration i covers [origin + i·stride, origin + (i+1)·stride).
            let mut end = bound;
            if let Some((real, step, reach)) = &axis {
                if start * step < real.start || real.end <= *reach {
                    return 0;
                }
                end = end.min((real.end - 1 - reach) / step + 1);
            }
            let Some(full) = (end.saturating_sub(origin) / l.stride).checked_sub(1) else {
                return 0;
            };
            highest = highest.min(full);
        }
        highest.saturating_sub(here)
    }

    /// Moves on by `periods` periods.
    fn skip(&mut self, number: usize, periods: u64, seen: &Snapshot, now: &Snapshot) {
        let mut i = 0;
        self.visit_positions(&mut |_, position| {
            *position = position.wrapping_add(periods.wrapping_mul(now.positions[i].wrapping_sub(seen.positions[i])));
            i += 1;
        });
        i = 0;
        self.visit_counters(&mut |counter| {
            *counter += periods * (now.counters[i] - seen.counters[i]);
            i += 1;
        });
        for q in self.sequencers.iter_mut() {
            if q.steps.loops.len() <= number {
                continue;
            }
            q.cursor.refresh(&q.steps, &q.base);
            for feed in &mut q.feeds {
                if !feed.cursor.finished {
                    feed.cursor.refresh(&q.steps, &feed.base);
                }
                if !feed.started {
                    continue;
                }
                feed.tile = self.s.plan.tile_at(q.tensor, q.level, &feed.low);
            }
            for visit in &mut q.visits {
                visit.tile = self.s.plan.tile_at(q.tensor, q.level, &visit.low);
            }
        }
        let cycles = periods * (now.time - seen.time);
        for pe in self.pes.iter_mut() {
            if pe.cursor.finished {
                pe.skipped += if pe.last_burst_end.is_some() { cycles } else { 0 };
            } else {
                pe.cursor.refresh(&self.s.plan.steps[self.s.plan.pe_level], &pe.base);
            }
        }
        let events = periods * (now.counters[now.counters.len() - 2] - seen.counters[seen.counters.len() - 2]);
        let recurrence = self.s.recurrence.as_mut().expect("only called with fast-forward");
        if O::ACTIVE {
            self.observer.skipped(Skipped {
                from: now.time,
                to: now.time + cycles,
                like: seen.time,
                period: now.time - seen.time,
                times: periods,
            });
        }
        recurrence.skipped_cycles += cycles;
        recurrence.skipped_events += events;
    }

    /// Simulated time of an internal one.
    pub(super) fn simulated(&self, internal: Cycle) -> Cycle {
        internal + self.skipped()
    }
}
