//! Exact fast-forward (rule 27).
//!
//! A schedule is a periodic nest, so the machine's relative state recurs. When PE 0 crosses an iteration of a loop, the
//! state is written down as a *node*; what happened until the next crossing of the same loop, or of one further out, is
//! an *edge* to another node: the growth of all counters, the time it took, and the places of the loop nest that
//! anything went through. When a machine comes to a node again, in whatever turn of the loops further out, and the
//! places that an edge would lead it through are like those that the edge was seen in (`alike`), the machine
//! will do the same again; so it is put at the other end of the edge at once. An edge that leads from a node to itself
//! is a period and taken as often as the places stay alike. Nodes are put together from relative state and do not know
//! where in the nest they are, so what was learnt in one turn of a loop serves in the others, and edges of outer loops
//! are put together from those of inner ones: the cost grows with the number of distinct stretches.
//!
//! No handler reads absolute time: internal time goes back when an old state is restored, and simulated time is the
//! internal one plus an offset.

mod alike;
mod memo;
mod snapshot;

use std::mem;
use std::sync::Arc;

use super::components::{Sequencer, Store, StoreId};
use super::{Engine, Event};
use crate::Skipped;
use crate::mutate::check_events;
use crate::observe::Observer;
use crate::relative::first_difference;
use memo::{Edge, Memo, NodeId};

/// A machine at a node, for real or as far as is known.
#[derive(Debug, Clone)]
struct At {
    node: NodeId,
    /// Indices of PE 0.
    here: Vec<u64>,
    /// Simulated time.
    time: u64,
    counters: Arc<[u64]>,
}

/// One loop: where its crossings were.
#[derive(Debug, Default)]
struct Trail {
    /// The crossings since the last one of a loop further out, that one included.
    crossings: Vec<At>,
    /// Events at the last crossing, seen or not.
    events: u64,
}

/// Fast-forward's memory and results.
#[derive(Debug)]
pub(crate) struct Recurrence {
    memo: Memo,
    trails: Vec<Trail>,
    /// Outermost loop that PE 0 has crossed in this cycle.
    pub(super) crossed: Option<usize>,
    /// Words of the last key, and the parts of the machine that it was about: what the next one will cost.
    last_key: (u64, u64),
    /// Words of the smallest key that there can be, or was.
    smallest_key: u64,
    /// Words of all keys so far.
    spent: u64,
    /// New states that may still be written down in this run of crossings.
    run: u64,
    /// Length of the next run, and the simulated events before which it does not begin.
    next_run: u64,
    next_start: u64,
    pub(super) skipped_cycles: u64,
    pub(super) skipped_events: u64,
    eager: bool,
}

/// Longest period that is looked for, in crossings of a loop.
const LONGEST_PERIOD: usize = 16;

/// Words of a key that cost as much as simulating an event, everything included that is done for a new state.
const WORDS_PER_EVENT: u64 = 6;

/// Of all events, skipped or not, one in so many may be spent on keys.
const SHARE: u64 = 16;

/// New states in the longest run of crossings.
const LONGEST_RUN: u64 = 64;

/// Keys at least that must be outweighed by the work that is left in the loop.
const KEYS_TO_LEARN: u64 = 16;

/// First guess at the words of a key per part of the machine.
const WORDS_PER_PART: u64 = 30;

impl Recurrence {
    /// Of a machine with so many `stores`, whose PEs are in so many `loops`.
    pub(crate) fn new(loops: usize, stores: u64, eager: bool) -> Self {
        Recurrence {
            memo: Memo::default(),
            trails: (0..loops).map(|_| Trail::default()).collect(),
            crossed: None,
            last_key: (WORDS_PER_PART, 1),
            smallest_key: WORDS_PER_PART * stores,
            spent: 0,
            run: 0,
            next_run: 2,
            next_start: 0,
            skipped_cycles: 0,
            skipped_events: 0,
            eager,
        }
    }

    /// True if it may pay to write the state down at this crossing.
    ///
    /// What is left to do in the loop must outweigh many keys. Then, either the work since the last crossing of the
    /// loop makes a key a trifle, or it belongs to a run of crossings: a short period shows in crossings that follow
    /// each other. A run goes on as long as states recur. Until some do, runs get longer and rarer, and all keys
    /// together cost a small share of the work, of which one half is known in advance by how far PE 0 has come.
    ///
    /// `parts` counts the parts of the machine that a key is about. Children that drift apart make keys many times
    /// longer for a while: then the next crossing is waited for.
    fn pays(&mut self, crossing: &Crossing, events: u64, parts: impl FnOnce() -> u64) -> bool {
        let since = events - self.trails[crossing.of].events;
        for trail in &mut self.trails[crossing.of..] {
            trail.events = events;
        }
        if self.eager {
            return true;
        }
        let half = u128::from(events) * u128::from(crossing.steps) / (2 * u128::from(crossing.step.max(1)));
        let known = events.max(u64::try_from(half).unwrap_or(u64::MAX));
        let budget = (known / SHARE).saturating_mul(WORDS_PER_EVENT);
        let left = budget.saturating_sub(self.spent);
        let simulated = events - self.skipped_events;
        let starts = |affordable: u64| affordable >= self.next_run && simulated >= self.next_start;
        let pays = |words: u64| {
            since.saturating_mul(crossing.left) >= KEYS_TO_LEARN * words / WORDS_PER_EVENT
                && (since >= SHARE * words / WORDS_PER_EVENT || left >= words && self.run > 0 || starts(left / words))
        };
        if !pays(self.smallest_key) {
            return false;
        }
        let (words, of) = self.last_key;
        let words = (parts() * words).div_ceil(of);
        if !pays(words) {
            return false;
        }
        if self.run == 0 && starts(left / words) {
            self.run = self.next_run;
            self.next_run = (self.next_run * 2).min(LONGEST_RUN);
        }
        true
    }

    /// A state was written down, and was known or not.
    fn wrote(&mut self, words: u64, parts: u64, known: bool, events: u64) {
        self.last_key = (words, parts);
        self.smallest_key = self.smallest_key.min(words);
        self.spent += words;
        if known {
            self.run = self.next_run;
        } else if self.run > 0 {
            self.run -= 1;
            if self.run == 0 {
                let simulated = events - self.skipped_events;
                self.next_start = simulated + simulated / 2;
            }
        }
    }
}

/// PE 0 goes on to the next iteration of a loop.
struct Crossing {
    /// The loop.
    of: usize,
    /// Iterations that are left in it, this one included.
    left: u64,
    /// Step of PE 0, and how many there are.
    step: u64,
    steps: u64,
}

/// Parts of the machine that come and go, and the stores that they are in: a key is about as long as they are many.
fn parts(stores: &[Store], sequencers: &[Sequencer]) -> u64 {
    let records: usize = stores.iter().map(|store| 1 + store.records.len()).sum();
    let requests: usize = sequencers.iter().map(|q| q.groups.len() + q.visits.len()).sum();
    (records + requests) as u64
}

impl<O: Observer> Engine<'_, O> {
    /// At the end of a cycle: if PE 0 has crossed an iteration of a loop, skips what is known to follow.
    #[inline]
    pub(super) fn look_for_recurrence(&mut self) {
        if let Some(recurrence) = &mut self.s.recurrence
            && let Some(crossed) = recurrence.crossed.take()
        {
            let (loops, cursor) = (&self.s.plan.steps[self.s.plan.pe_level].loops, &self.pes[0].cursor);
            let crossing = Crossing {
                of: crossed,
                left: loops[crossed].trips - cursor.indices[crossed],
                step: cursor.rank,
                steps: loops[0].trips.saturating_mul(loops[0].weight),
            };
            let (stores, sequencers) = (&*self.stores, &*self.sequencers);
            if recurrence.pays(&crossing, self.s.events, || parts(stores, sequencers)) {
                self.crossing(crossed);
            }
        }
    }

    /// The state at this crossing is written down, and what is known to follow is skipped.
    fn crossing(&mut self, crossed: usize) {
        // Taken out while it works on the engine.
        let mut recurrence = self.s.recurrence.take().expect("only called with fast-forward");
        let r = &mut *recurrence;
        self.catch_up_all();
        let key = self.key(crossed, r.last_key.0);
        if r.memo.is_full() {
            r.memo = Memo::default();
            r.trails.iter_mut().for_each(|trail| trail.crossings.clear());
        }
        let hash = memo::hash(&key);
        let known = r.memo.find(hash, &key);
        let parts = parts(self.stores, self.sequencers);
        r.wrote(key.len() as u64, parts, known.is_some(), self.s.events);
        let node = match known {
            Some(node) => node,
            None => {
                let (state, sites, here) = (self.save(), self.sites(), self.pes[0].cursor.indices.clone());
                r.memo.add(crossed, hash, key, here, state, sites)
            }
        };
        let mut at = At {
            node,
            here: self.pes[0].cursor.indices.clone(),
            time: self.s.simulated(self.s.now).0,
            counters: self.counters().into(),
        };
        let (start, start_events) = (at.clone(), self.s.events);
        self.reach(r, &at, None);
        while let Some((edge, times)) = self.find_edge(r, &at) {
            let level = edge.level;
            let time = edge.time * times;
            if O::ACTIVE {
                self.observer.skipped(Skipped {
                    from: at.time,
                    to: at.time + time,
                    like: edge.seen_at,
                    period: edge.time,
                    times,
                });
            }
            edge.take(&self.s.plan, &mut at, times);
            // Without a component, the counters' first is the only one sure to grow.
            check_events(at.counters[0]);
            if times > 1 {
                // In between were crossings that the trail does not know.
                r.trails[level].crossings.clear();
            }
            self.reach(r, &at, Some(level));
        }
        if at.time > start.time {
            self.go_to(r, &start, &at);
            r.skipped_cycles += at.time - start.time;
            r.skipped_events += self.s.events - start_events;
            r.trails.iter_mut().for_each(|trail| trail.events = self.s.events);
            self.tell_what_is_under_way();
        }
        self.s.recurrence = Some(recurrence);
    }

    /// After a skip, tells the observer where it has come to.
    fn tell_what_is_under_way(&mut self) {
        if !O::ACTIVE {
            return;
        }
        for store in 0..self.stores.len() {
            self.tell_occupancy(StoreId(store as u32));
        }
        for (at, event) in self.s.wheel.pending() {
            match event {
                Event::Head(transfer) | Event::Arrive(transfer) => self.tell_request(transfer),
                Event::BurstEnd(pe) => {
                    let (from, to) = (self.s.simulated(self.s.now), self.s.simulated(at));
                    self.observer.burst(pe.0, from.0, to.0);
                }
                _ => {}
            }
        }
    }

    /// An edge that may be taken, and how often; the longest first.
    fn find_edge<'r>(&mut self, r: &'r Recurrence, at: &At) -> Option<(&'r Edge, u64)> {
        let plan = &self.s.plan;
        let edges = &r.memo.node(at.node).edges;
        let mut order: Vec<usize> = (0..edges.len()).collect();
        // Of one loop, what comes back to the same state may be taken many times.
        order.sort_unstable_by_key(|&i| (edges[i].level, edges[i].target != at.node, i));
        for i in order {
            let edge = &edges[i];
            let allowed = edge.refreshes_allow(self.s.refreshes.as_ref(), at.time);
            if allowed == 0 || !edge.places.alike(plan, &edge.from, &at.here) {
                continue;
            }
            let mut times = 1;
            if edge.target == at.node {
                let l = edge.level;
                let elsewhere = first_difference(&edge.to, &edge.from).is_some_and(|first| first < l);
                if !elsewhere {
                    let step = edge.to[l] - edge.from[l];
                    times = edge.places.repeats(plan, &edge.from, &at.here, l, step);
                }
            }
            times = times.min(allowed);
            if O::ACTIVE {
                let until = self.observer.skip_until(at.time);
                times = times.min(until.saturating_sub(at.time) / edge.time.max(1));
            }
            if times > 0 {
                return Some((edge, times));
            }
        }
        None
    }

    /// The machine has come to a node, by simulation or by an edge of loop `by`: the edges that end here are added, and
    /// those that begin here are opened.
    fn reach(&mut self, r: &mut Recurrence, at: &At, by: Option<usize>) {
        let crossed = r.memo.node(at.node).crossed;
        for l in crossed..r.trails.len() {
            let trail = mem::take(&mut r.trails[l].crossings);
            // An edge says nothing of the loops further in, and of its own loop it is known.
            if let Some(last) = trail.last()
                && by.is_none_or(|by| l < by)
            {
                self.add_edge(r, l, last, at);
            }
            if l == crossed {
                let same = trail.iter().rposition(|earlier| earlier.node == at.node);
                if let Some(earlier) = same.filter(|&e| e + 1 < trail.len()) {
                    self.add_edge(r, l, &trail[earlier], at);
                }
                r.trails[l].crossings = trail;
            }
            let crossings = &mut r.trails[l].crossings;
            if crossings.len() == LONGEST_PERIOD {
                crossings.remove(0);
            }
            crossings.push(at.clone());
        }
    }

    /// Adds the edge between two places of the machine, unless it is known.
    fn add_edge(&mut self, r: &mut Recurrence, level: usize, from: &At, to: &At) {
        let plan = &self.s.plan;
        let node = r.memo.node(from.node);
        let known = node
            .edges
            .iter()
            .filter(|e| e.level == level && e.target == to.node)
            .any(|e| {
                e.refreshes_allow(self.s.refreshes.as_ref(), from.time) > 0 && e.places.alike(plan, &e.from, &from.here)
            });
        if known {
            return;
        }
        let Some(places) = r.memo.places(plan, level, from, to) else {
            return;
        };
        let grown = to.counters.iter().enumerate();
        let counters = grown
            .map(|(i, c)| c - from.counters.get(i).copied().unwrap_or(0))
            .collect();
        r.memo.connect(
            from.node,
            Edge {
                level,
                target: to.node,
                from: from.here.clone(),
                to: to.here.clone(),
                places,
                seen_at: from.time,
                time: to.time - from.time,
                counters,
            },
        );
    }
}
