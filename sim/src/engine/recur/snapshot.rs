//! The state of the whole machine: written relative, saved, and restored elsewhere.

use super::super::components::{Pe, PeId, Resource, Sequencer, Store, StoreId, Transfer, TransferId};
use super::super::{Engine, Event, Shared};
use super::{At, Recurrence};
use crate::Cycle;
use crate::mutate::{enter, key_ends};
use crate::observe::Observer;
use crate::relative::{Key, RelativeState, Shift};

/// All state of the machine, with positions and times as they were.
#[derive(Debug)]
pub(super) struct Saved {
    resources: Vec<Resource>,
    stores: Vec<Store>,
    sequencers: Vec<Sequencer>,
    pes: Vec<Pe>,
    transfers: Vec<Transfer>,
    idle_transfers: Vec<TransferId>,
    pending: Vec<(Cycle, Event)>,
    openable: Vec<(usize, StoreId)>,
    now: Cycle,
}

/// Where everything in the machine is in the loop nest, as indices.
#[derive(Debug)]
pub(super) struct Sites {
    /// Length of each, and whether it is finished.
    cursors: Vec<(u32, bool)>,
    /// What moves on: the next step of every sequencer, of every child, of every PE.
    indices: Vec<u64>,
    /// What is compared with: where residencies and visits began.
    marks: Vec<Vec<u64>>,
}

impl Sites {
    /// Size in memory, in words.
    pub(super) fn len(&self) -> usize {
        self.cursors.len() + self.indices.len() + self.marks.iter().map(|m| m.len() + 3).sum::<usize>()
    }

    /// The indices of every cursor, always in the same order; nothing for one that is finished.
    pub(super) fn cursors(&self) -> impl Iterator<Item = Option<&[u64]>> {
        let mut rest = self.indices.as_slice();
        self.cursors.iter().map(move |&(length, finished)| {
            let (indices, tail) = rest.split_at(length as usize);
            rest = tail;
            (!finished).then_some(indices)
        })
    }

    pub(super) fn marks(&self) -> impl Iterator<Item = &[u64]> {
        self.marks.iter().map(Vec::as_slice)
    }
}

impl<O: Observer> Engine<'_, O> {
    /// The relative state of the whole machine, after PE 0 has crossed a loop, with memory for so many words.
    pub(super) fn key(&self, crossed: usize, capacity: u64) -> Vec<u64> {
        let waiting = self.pes.iter().filter(|pe| !pe.computing && !pe.cursor.finished);
        let now = self.s.now;
        let settled = waiting.map(|pe| pe.blame_from).min().unwrap_or(now).min(now);
        let mut key = Key::new(now, settled, &self.s.plan.steps, &self.pes[0].cursor.indices);
        key.words.reserve(capacity as usize);
        enter("Crossing");
        key.word(crossed as u64);
        key.word(now.since(settled));
        for resource in self.resources.iter() {
            resource.add_to(&mut key);
        }
        for store in self.stores.iter() {
            if let Some(feeder) = store.feeder {
                let q = &self.sequencers[feeder.at()];
                key.group_first = q.first;
                key.parent_first = self.stores[q.parent.at()].first;
                (key.level, key.loops) = (q.level, q.steps.loops.len());
            } else {
                (key.level, key.loops) = (0, 0);
            }
            key.not_begun = match (store.pe, store.feeds) {
                (Some(pe), _) => self.pes[pe.at()].next_of(store.tensor),
                (None, Some(feeds)) => self.sequencers[feeds.at()].parent_ordinal + 1,
                (None, None) => 0,
            };
            store.add_to(&mut key);
        }
        for q in self.sequencers.iter() {
            key.parent_first = self.stores[q.parent.at()].first;
            q.add_to(&mut key);
        }
        (key.level, key.loops) = (self.s.plan.pe_level, self.pes[0].cursor.indices.len());
        for pe in self.pes.iter() {
            key.needs_first = pe.needs.map(|need| self.stores[need.store.at()].first);
            pe.add_to(&mut key);
        }
        enter("Event");
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
        enter("Openable");
        for (level, store) in self.openable() {
            key.word(level as u64);
            key.word(u64::from(store.0));
        }
        key_ends();
        key.words
    }

    fn write_transfer(&self, kind: u64, id: TransferId, key: &mut Key<'_>) {
        let t = &self.s.transfers[id.at()];
        key.word(kind);
        key.group_first = self.sequencers[t.sequencer.at()].first;
        key.parent_first = self.stores[self.s.shape(t.shape).stores[0].at()].first;
        t.add_to(key);
    }

    /// Stores that the next sweep will try to open.
    fn openable(&self) -> Vec<(usize, StoreId)> {
        let mut openable: Vec<(usize, StoreId)> = self.s.openable.iter().map(|o| o.0).collect();
        openable.sort_unstable();
        openable.dedup();
        openable
    }

    /// A copy of all state.
    pub(super) fn save(&self) -> Saved {
        let Shared {
            plan: _,   // does not change, or only remembers
            wiring: _, // likewise
            shapes: _,
            caches: _,
            transfers,
            idle_transfers,
            wheel,
            now,
            scratch: _, // empty between cycles, as
            candidates, // these
            openable: _,
            ready_pes,
            data: _,   // no fast-forward in a data check
            counts: _, // counters
            traffic: _,
            blame: _,
            fill_blame: _,
            values: _,   // told at the end
            deadlock: _, // likewise
            lose: _,     // no fast-forward with a fault
            recurrence: _,
            offset: _,
            refreshes: _,    // all ports are up to date, and edges look at the time of the next one
            last_arrival: _, // in simulated time, and overwritten after every skip
            events: _,       // counters
            transfer_count: _,
        } = &*self.s;
        debug_assert!(candidates.is_empty() && ready_pes.is_empty());
        Saved {
            resources: self.resources.to_vec(),
            stores: self.stores.to_vec(),
            sequencers: self.sequencers.to_vec(),
            pes: self.pes.to_vec(),
            transfers: transfers.clone(),
            idle_transfers: idle_transfers.clone(),
            pending: wheel.pending(),
            openable: self.openable(),
            now: *now,
        }
    }

    /// Where everything is in the loop nest.
    pub(super) fn sites(&self) -> Sites {
        let mut sites = Sites {
            cursors: Vec::new(),
            indices: Vec::new(),
            marks: Vec::new(),
        };
        let mut marks: Vec<(usize, usize, u64)> = Vec::new();
        let mut mark = |level: usize, loops: usize, rank: u64| {
            if marks.last() != Some(&(level, loops, rank)) {
                marks.push((level, loops, rank));
            }
        };
        let children = self
            .sequencers
            .iter()
            .flat_map(|q| q.feeds.iter().map(|feed| &feed.cursor));
        let cursors = self.sequencers.iter().map(|q| &q.cursor).chain(children);
        for cursor in cursors.chain(self.pes.iter().map(|pe| &pe.cursor)) {
            sites.cursors.push((cursor.indices.len() as u32, cursor.finished));
            sites.indices.extend_from_slice(&cursor.indices);
        }
        for q in self.sequencers.iter() {
            let loops = q.steps.loops.len();
            let current = q.feeds.iter().filter(|f| f.started && !f.cursor.finished);
            current.for_each(|feed| mark(q.level, loops, feed.begun));
            q.visits.iter().for_each(|visit| mark(q.level, loops, visit.step));
        }
        marks.sort_unstable();
        marks.dedup();
        for (level, loops, rank) in marks {
            let mut indices = Vec::new();
            self.s.plan.steps[level].indices_of(rank, loops, &mut indices);
            sites.marks.push(indices);
        }
        sites
    }

    fn visit_counters(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        visit(&mut self.s.events);
        visit(&mut self.s.transfer_count);
        self.resources.iter_mut().for_each(|r| r.counters(visit));
        self.pes.iter_mut().for_each(|pe| pe.counters(visit));
        self.s.blame.counters(visit);
        self.s.fill_blame.counters(visit);
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
        // Last, because there may be more of them later.
        for class in &mut self.s.plan.bursts.classes {
            visit(&mut class.times);
        }
    }

    /// All counters.
    pub(super) fn counters(&mut self) -> Vec<u64> {
        let time = self.s.simulated(self.s.now).0;
        for pe in self
            .pes
            .iter_mut()
            .filter(|pe| pe.cursor.finished && pe.last_burst_end.is_some())
        {
            pe.finished_for = time - pe.finished_at;
        }
        let mut counters = Vec::new();
        self.visit_counters(&mut |counter| counters.push(*counter));
        counters
    }

    /// Puts the machine, which is at `from`, at `to`.
    pub(super) fn go_to(&mut self, r: &Recurrence, from: &At, to: &At) {
        let mut seen = from.here.clone();
        if to.node != from.node {
            let node = r.memo.node(to.node);
            seen.clone_from(&node.here);
            let Saved {
                resources,
                stores,
                sequencers,
                pes,
                transfers,
                idle_transfers,
                pending,
                openable,
                now,
            } = &node.state;
            self.resources.copy_from_slice(resources);
            self.stores.clone_from_slice(stores);
            self.sequencers.clone_from_slice(sequencers);
            self.pes.clone_from_slice(pes);
            self.s.transfers.clone_from(transfers);
            self.s.idle_transfers.clone_from(idle_transfers);
            self.s.wheel.restore(*now, pending);
            self.s.openable = openable.iter().copied().map(std::cmp::Reverse).collect();
            self.s.now = *now;
        }
        self.s.offset = to.time.wrapping_sub(self.s.now.0);
        if let Some(refreshes) = &mut self.s.refreshes {
            refreshes
                .ports
                .iter_mut()
                .flatten()
                .for_each(|(_, done)| *done = to.time);
        }
        let mut i = 0;
        self.visit_counters(&mut |counter| {
            *counter = to.counters[i];
            i += 1;
        });
        for pe in self.pes.iter_mut().filter(|pe| pe.cursor.finished) {
            pe.finished_at = to.time.wrapping_sub(pe.finished_for);
        }
        self.shift(&seen, &to.here);
        self.s.caches.iter_mut().for_each(|cache| cache.latest.forget());
    }

    /// Moves every position along with PE 0.
    fn shift(&mut self, from: &[u64], to: &[u64]) {
        let plan = &self.s.plan;
        let mut shift = Shift::new(&plan.steps, from, to);
        for store in self.stores.iter_mut() {
            if let Some(feeder) = store.feeder {
                let q = &self.sequencers[feeder.at()];
                (shift.level, shift.loops) = (q.level, q.steps.loops.len());
                store.shift(&mut shift);
            }
        }
        for q in self.sequencers.iter_mut() {
            q.shift(&mut shift);
            for feed in q.feeds.iter_mut().filter(|feed| feed.started && !feed.cursor.finished) {
                let low = q.steps.low_at(feed.begun, &feed.base);
                feed.tile = plan.tile_at(q.tensor, q.level, &low);
            }
            for visit in &mut q.visits {
                let low = q.steps.low_at(visit.step, &q.feeds[visit.member as usize].base);
                visit.tile = plan.tile_at(q.tensor, q.level, &low);
            }
        }
        for transfer in &mut self.s.transfers {
            let q = &self.sequencers[transfer.sequencer.at()];
            (shift.level, shift.loops) = (q.level, q.steps.loops.len());
            transfer.shift(&mut shift);
        }
        for pe in self.pes.iter_mut() {
            pe.shift(&mut shift);
            pe.cursor.refresh(&plan.steps[plan.pe_level], &pe.base);
        }
    }
}
