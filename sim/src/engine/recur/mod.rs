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

use super::components::StoreId;
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
    /// Words of the last key: what a snapshot costs.
    key_words: u64,
    /// Words of all keys so far.
    spent: u64,
    /// States are being written down.
    running: bool,
    /// Keys that must be affordable before the next run.
    next_run: u64,
    pub(super) skipped_cycles: u64,
    pub(super) skipped_events: u64,
    eager: bool,
}

/// Longest period that is looked for, in crossings of a loop.
const LONGEST_PERIOD: usize = 16;

/// Words of a key that cost as much as simulating an event.
const WORDS_PER_EVENT: u64 = 12;

/// Of all events, skipped or not, one in so many may be spent on keys.
const SHARE: u64 = 16;

/// Keys in a run of crossings at most that must be affordable at its beginning.
const LONGEST_RUN: u64 = 64;

impl Recurrence {
    pub(crate) fn new(loops: usize, key_words: u64, eager: bool) -> Self {
        Recurrence {
            memo: Memo::default(),
            trails: (0..loops).map(|_| Trail::default()).collect(),
            crossed: None,
            key_words,
            spent: 0,
            running: false,
            next_run: 4,
            skipped_cycles: 0,
            skipped_events: 0,
            eager,
        }
    }

    /// True if it may pay to write the state down at this crossing: the work between two crossings of the loop must be
    /// large next to the cost, and all work so far next to that of all keys.
    ///
    /// States are looked for in runs of crossings, because a short period shows in crossings that follow each other.
    /// From run to run they get longer.
    fn pays(&mut self, crossed: usize, events: u64) -> bool {
        let since = events - self.trails[crossed].events;
        for trail in &mut self.trails[crossed..] {
            trail.events = events;
        }
        if self.eager {
            return true;
        }
        let affordable = (events / SHARE * WORDS_PER_EVENT).saturating_sub(self.spent) / self.key_words;
        if affordable == 0 {
            self.running = false;
        } else if !self.running && affordable >= self.next_run {
            self.running = true;
            self.next_run = (self.next_run * 2).min(LONGEST_RUN);
        }
        self.running && since >= self.key_words / WORDS_PER_EVENT
    }
}

impl<O: Observer> Engine<'_, O> {
    /// At the end of a cycle: if PE 0 has crossed an iteration of a loop, skips what is known to follow.
    #[inline]
    pub(super) fn look_for_recurrence(&mut self) {
        if let Some(recurrence) = &mut self.s.recurrence
            && let Some(crossed) = recurrence.crossed.take()
            && recurrence.pays(crossed, self.s.events)
        {
            self.crossing(crossed);
        }
    }

    /// The state at this crossing is written down, and what is known to follow is skipped.
    fn crossing(&mut self, crossed: usize) {
        // Taken out while it works on the engine.
        let mut recurrence = self.s.recurrence.take().expect("only called with fast-forward");
        let r = &mut *recurrence;
        self.catch_up_all();
        let key = self.key(crossed);
        r.key_words = key.len() as u64;
        r.spent += r.key_words;
        if r.memo.is_full() {
            r.memo = Memo::default();
            r.trails.iter_mut().for_each(|trail| trail.crossings.clear());
        }
        let node = match r.memo.find(&key) {
            Some(node) => node,
            None => {
                let (state, sites, here) = (self.save(), self.sites(), self.pes[0].cursor.indices.clone());
                r.memo.add(crossed, key, here, state, sites)
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
