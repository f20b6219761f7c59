//! PEs: what the next burst needs, its start and its end (rules 13, 14, 15, 23).

use cyclonest_workloads::Tensor;

use super::components::{PeId, StoreId, TransferId};
use super::transfer::wait_reason;
use super::{Engine, Event};
use crate::observe::Observer;
use crate::{Cycle, StallReason};

/// Position of a tensor in [`Pe::needs`](super::components::Pe::needs).
const fn need_of(tensor: Tensor) -> usize {
    match tensor {
        Tensor::Outputs => 0,
        Tensor::Weights => 1,
        Tensor::Inputs => 2,
    }
}

impl<O: Observer> Engine<'_, O> {
    /// Finds the residencies that the PE's step needs.
    pub(super) fn find_needs(&mut self, id: PeId) {
        let pe = &mut self.pes[id.at()];
        if pe.cursor.finished {
            return;
        }
        let rank = pe.cursor.rank;
        for need in &mut pe.needs {
            let store = &self.stores[need.store.at()];
            if store.generated > need.next && store.record(need.next).first_step <= rank {
                need.next += 1;
                need.used = true;
                need.held = true;
            } else {
                let feeder = store.feeder.expect("the PE level is not the outermost");
                need.used = need.held
                    && !self.sequencers[feeder.at()].flow.every_step()
                    && store.record(need.next - 1).unused_from > rank;
            }
        }
        self.wake(id);
    }

    /// The PE may be able to start: look at it at the end of the cycle.
    pub(super) fn wake(&mut self, id: PeId) {
        let pe = &mut self.pes[id.at()];
        if !pe.queued {
            pe.queued = true;
            self.s.ready_pes.push(id);
        }
    }

    /// The first operand that the PE's step is missing, in the order of blame.
    pub(super) fn missing(&self, id: PeId) -> Option<usize> {
        let pe = &self.pes[id.at()];
        if pe.computing || pe.cursor.finished {
            return None;
        }
        pe.needs
            .iter()
            .position(|need| need.used && !self.stores[need.store.at()].record(need.next - 1).resident)
    }

    pub(super) fn start_bursts(&mut self) {
        let mut ready = std::mem::take(&mut self.s.ready_pes);
        for &id in &ready {
            self.pes[id.at()].queued = false;
            if !self.pes[id.at()].computing && !self.pes[id.at()].cursor.finished && self.missing(id).is_none() {
                self.start_burst(id);
            }
        }
        ready.clear();
        self.s.ready_pes = ready;
    }

    fn start_burst(&mut self, id: PeId) {
        let now = self.s.now;
        let pe = &mut self.pes[id.at()];
        debug_assert_eq!(pe.blame_from, now, "every stalled cycle is blamed on something");
        let need = pe.needs[need_of(Tensor::Outputs)];
        let record = self.stores[need.store.at()].record_mut(need.next - 1);
        let continuing = record.fetched || record.touched;
        record.touched = true;
        let class = self.s.plan.bursts.class_at(&pe.cursor.low, continuing);
        let class = &mut self.s.plan.bursts.classes[class as usize];
        class.times += 1;
        let cycles = class.cycles;
        if self.s.data.is_some() {
            let (low, [o, w, i]) = (pe.cursor.low, pe.needs.map(|n| (n.store, n.next.wrapping_sub(1))));
            let inputs = pe.needs[2].used.then_some(i);
            self.compute_values(&low, o, w, inputs);
        }
        let pe = &mut self.pes[id.at()];
        pe.computing = true;
        pe.busy += cycles;
        let end = now + cycles.max(1);
        self.s.wheel.push(end, Event::BurstEnd(id));
        if O::ACTIVE {
            self.observer
                .burst(id.0, self.s.simulated(now).0, self.s.simulated(end).0);
        }
    }

    pub(super) fn burst_end(&mut self, id: PeId) {
        let now = self.s.now;
        let level = self.s.plan.pe_level;
        let pe = &mut self.pes[id.at()];
        pe.computing = false;
        pe.blame_from = now;
        pe.last_burst_end = Some(now);
        let before = pe.needs;
        pe.cursor
            .advance(&self.s.plan.steps[level], &self.s.plan.problem.bounds);
        let finished = pe.cursor.finished;
        if finished {
            pe.finished_at = now.0.wrapping_add(self.s.offset);
        }
        if id.0 == 0 && !finished {
            let crossed = pe.cursor.changed;
            if let Some(recurrence) = &mut self.s.recurrence {
                recurrence.crossed = Some(recurrence.crossed.map_or(crossed, |c| c.min(crossed)));
            }
        }
        self.find_needs(id);
        for (i, old) in before.iter().enumerate() {
            let new = self.pes[id.at()].needs[i];
            // Over: another one has begun, or no later step uses it.
            let over = old.held && (finished || new.next != old.next || !self.needed_later(id, i));
            if !over {
                continue;
            }
            if new.next == old.next {
                self.pes[id.at()].needs[i].held = false;
            }
            self.residency_over(old.store, old.next - 1);
        }
    }

    /// True if a later step still uses the current residency of need `i`.
    fn needed_later(&self, id: PeId, i: usize) -> bool {
        let pe = &self.pes[id.at()];
        let need = pe.needs[i];
        let store = &self.stores[need.store.at()];
        let feeder = store.feeder.expect("the PE level is not the outermost");
        !self.sequencers[feeder.at()].flow.every_step() && store.record(need.next - 1).unused_from > pe.cursor.rank
    }

    /// The last burst that uses a residency has ended.
    fn residency_over(&mut self, store: StoreId, ordinal: u64) {
        if self.stores[store.at()].tensor == Tensor::Outputs {
            let depth = self.s.wiring.depth();
            if depth == 0 {
                self.done(store);
            } else {
                self.s.wheel.push(self.s.now + depth, Event::Done(store));
            }
        } else {
            self.stores[store.at()].record_mut(ordinal).released = true;
            self.retire_content(store, ordinal);
            self.slot_freed(store);
        }
    }

    /// Residency `ordinal` of a PE's store has just been requested (or opened): blame what came before.
    pub(super) fn blame_request(
        &mut self,
        store: StoreId,
        ordinal: u64,
        parent: StoreId,
        parent_ordinal: u64,
        unblocked_at: Cycle,
    ) {
        let (tensor, level) = (self.stores[store.at()].tensor, self.stores[store.at()].level);
        let Some(pe) = self.waiting_pe(store, ordinal) else {
            return;
        };
        let timeline = std::mem::take(&mut self.stores[parent.at()].record_mut(parent_ordinal).timeline);
        for &(end, reason) in &timeline.0 {
            self.blame(pe, end, reason);
        }
        self.stores[parent.at()].record_mut(parent_ordinal).timeline = timeline;
        if tensor == Tensor::Outputs {
            let parent_level = self.stores[parent.at()].level;
            self.blame(pe, unblocked_at, StallReason::PartialSum { level: parent_level });
            if let Some(end) = self.pes[pe.at()].last_burst_end {
                let emptied = (end + self.s.wiring.depth()).min(self.s.now);
                self.blame(pe, emptied, StallReason::Pipeline);
            }
        }
        self.blame(pe, self.s.now, StallReason::Slot { tensor, level });
    }

    /// Residency `ordinal` of a PE's store has just arrived: blame its journey.
    pub(super) fn blame_flight(&mut self, store: StoreId, ordinal: u64, transfer: TransferId) {
        let Some(pe) = self.waiting_pe(store, ordinal) else {
            return;
        };
        let t = &self.s.transfers[transfer.at()];
        let (shape, sequencer) = (t.shape, t.sequencer);
        let q = &self.sequencers[sequencer.at()];
        let (tensor, parent_level) = (q.tensor, q.parent_level);
        let in_flight = StallReason::InFlight {
            tensor,
            level: parent_level,
        };
        for i in 0..self.s.transfers[transfer.at()].hops.len() {
            let (reached, started) = self.s.transfers[transfer.at()].hops[i];
            let stage = &self.s.shape(shape).stages[i];
            let wait = wait_reason(tensor, stage.level, stage.is_network);
            self.blame(pe, reached, in_flight);
            self.blame(pe, started, wait);
        }
        self.blame(pe, self.s.now, in_flight);
    }

    /// The PE that waits for residency `ordinal` of its store before anything else.
    fn waiting_pe(&self, store: StoreId, ordinal: u64) -> Option<PeId> {
        let s = &self.stores[store.at()];
        let pe = s.pe?;
        let i = need_of(s.tensor);
        (self.pes[pe.at()].needs[i].next == ordinal + 1 && self.missing(pe) == Some(i)).then_some(pe)
    }

    /// The PE's cycles up to `end` that nothing has been blamed for go to `reason`.
    #[inline]
    fn blame(&mut self, id: PeId, end: Cycle, reason: StallReason) {
        let pe = &mut self.pes[id.at()];
        let from = pe.blame_from;
        let cycles = end.since(from);
        if cycles > 0 {
            pe.blame_from = end;
            pe.stalled += cycles;
            if pe.last_burst_end.is_none() {
                self.s.fill_blame.add(reason, cycles);
            }
            self.s.blame.add(reason, cycles);
            if O::ACTIVE {
                let (from, to) = (self.s.simulated(from).0, self.s.simulated(end).0);
                self.observer.stalled(id.0, from, to, reason);
            }
        }
    }
}
