//! The sweep of a cycle: zero-opens, then requests (rules 8, 13, 16, 17, 18).

use std::cmp::Reverse;

use cyclonest_workloads::Tensor;

use super::components::{Cargo, Flow, SequencerId, StoreId, Transfer, TransferId};
use super::{Candidate, Engine, Event};
use crate::observe::Observer;
use crate::{Buffer, Cycle, StallReason, TransferInfo, TransferKind};

impl<O: Observer> Engine<'_, O> {
    /// `store` may have become able to take its next residency: tell the group or visit that it belongs to.
    pub(super) fn offer(&mut self, id: StoreId) {
        let store = &self.stores[id.at()];
        if store.offered || store.generated == store.requested {
            return;
        }
        let Some(feeder) = store.feeder else { return };
        let record = store.record(store.requested);
        let number = record.group;
        if matches!(self.sequencers[feeder.at()].flow, Flow::Operand | Flow::Stream) {
            if !store.accepts_next() {
                return;
            }
            self.stores[id.at()].offered = true;
            self.sequencers[feeder.at()].group_mut(number).ready += 1;
            self.consider_fill(feeder, number);
        } else if store.free_slots > 0 {
            if record.fetched {
                self.stores[id.at()].offered = true;
                self.sequencers[feeder.at()].visit_mut(number).fetch_ready = true;
                self.consider_fetch(feeder, number);
            } else {
                self.s.openable.push(Reverse((store.level, id)));
            }
        }
    }

    /// True if residency `ordinal` of a parent store can be read from (operands) or written to (outputs).
    fn is_resident(&self, parent: StoreId, ordinal: u64) -> bool {
        self.stores[parent.at()].record(ordinal).resident
    }

    fn consider_fill(&mut self, id: SequencerId, number: u64) {
        let q = &self.sequencers[id.at()];
        let group = &q.groups[(number - q.first) as usize];
        if group.requested
            || (group.ready as usize) < self.s.shape(group.shape).stores.len()
            || !self.is_resident(q.parent, group.parent)
        {
            return;
        }
        let candidate = self.candidate(id, 1, group.step, number, 0);
        self.sequencers[id.at()].group_mut(number).requested = true;
        self.s.candidates.push(candidate);
    }

    pub(super) fn consider_fetch(&mut self, id: SequencerId, number: u64) {
        let q = &self.sequencers[id.at()];
        let visit = q.visit(number);
        if visit.fetch_queued || !visit.fetch_ready || visit.blocked || !self.is_resident(q.parent, visit.parent) {
            return;
        }
        let candidate = self.candidate(id, 1, visit.step, number, 0);
        self.sequencers[id.at()].visit_mut(number).fetch_queued = true;
        self.s.candidates.push(candidate);
    }

    pub(super) fn consider_drain(&mut self, id: SequencerId, number: u64, stream: u32) {
        let q = &self.sequencers[id.at()];
        let visit = q.visit(number);
        let drain = &visit.streams[stream as usize];
        if drain.requested
            || (drain.done as usize) < self.s.shape(drain.shape).stores.len()
            || (visit.fetch.is_some() && !visit.fetch_requested)
        {
            return;
        }
        let candidate = self.candidate(id, 0, visit.step, number, stream);
        self.sequencers[id.at()].visit_mut(number).streams[stream as usize].requested = true;
        self.s.candidates.push(candidate);
    }

    fn candidate(&self, id: SequencerId, fills: u8, step: u64, group: u64, stream: u32) -> Candidate {
        let q = &self.sequencers[id.at()];
        let tensor = match q.tensor {
            Tensor::Inputs => 0,
            Tensor::Outputs => 1,
            Tensor::Weights => 2,
        };
        Candidate {
            fills,
            level: q.level as u8,
            tensor,
            step,
            sequencer: id,
            group,
            stream,
        }
    }

    /// Residency `ordinal` of a mid-level store can be used from now on: its children may go on.
    pub(super) fn children_may_go_on(&mut self, id: StoreId, ordinal: u64) {
        let Some(below) = self.stores[id.at()].feeds else {
            return;
        };
        if self.stores[id.at()].tensor == Tensor::Outputs {
            for feed in 0..self.sequencers[below.at()].feeds.len() {
                let child = self.sequencers[below.at()].feeds[feed].store;
                self.offer(child);
            }
            let q = &self.sequencers[below.at()];
            for number in q.first..q.first + q.visits.len() as u64 {
                if self.sequencers[below.at()].visit(number).parent == ordinal {
                    self.consider_fetch(below, number);
                }
            }
            return;
        }
        // A residency that no child needs anew is done with at once: look ahead to know.
        while {
            let record = self.stores[id.at()].record(ordinal);
            record.children == 0 && !record.closed && !self.sequencers[below.at()].cursor.finished
        } {
            self.generate_step(below);
        }
        let q = &self.sequencers[below.at()];
        for number in q.first..q.first + q.groups.len() as u64 {
            let q = &self.sequencers[below.at()];
            let group = &q.groups[(number - q.first) as usize];
            if group.parent > ordinal {
                break;
            }
            if group.parent == ordinal {
                self.consider_fill(below, number);
            }
        }
        self.settle_closed(id, ordinal);
    }

    pub(super) fn sweep(&mut self) {
        while let Some(Reverse((_, store))) = self.s.openable.pop() {
            self.open(store);
        }
        while !self.s.candidates.is_empty() {
            let mut pass = std::mem::take(&mut self.s.candidates);
            pass.sort_unstable();
            for &candidate in &pass {
                if candidate.fills == 0 {
                    self.request_drain(candidate);
                } else if self.sequencers[candidate.sequencer.at()].tensor == Tensor::Outputs {
                    self.request_fetch(candidate);
                } else {
                    self.request_fill(candidate);
                }
            }
        }
        // What the requests made possible waits one cycle (rule 13).
        if !self.s.openable.is_empty() {
            self.s.wheel.push(self.s.now + 1, Event::Sweep);
        }
    }

    /// Opens as many zero residencies of `store` as there are slots (rule 16).
    fn open(&mut self, id: StoreId) {
        loop {
            let store = &self.stores[id.at()];
            if store.free_slots == 0 || store.generated == store.requested {
                return;
            }
            let record = store.record(store.requested);
            let feeder = store.feeder.expect("the outermost level is open from the start");
            if record.fetched {
                self.offer(id);
                return;
            }
            let (parent, parent_ordinal) = (self.sequencers[feeder.at()].parent, record.parent);
            if !self.is_resident(parent, parent_ordinal) {
                return;
            }
            let ordinal = self.stores[id.at()].take();
            self.tell_occupancy(id);
            let now = self.s.now;
            if self.stores[id.at()].pe.is_some() {
                self.blame_request(id, ordinal, parent, parent_ordinal, Cycle(0));
            } else {
                let mut timeline = self.stores[parent.at()].record(parent_ordinal).timeline.clone();
                let level = self.stores[id.at()].level;
                timeline.until(
                    now,
                    StallReason::Slot {
                        tensor: Tensor::Outputs,
                        level,
                    },
                );
                self.stores[id.at()].record_mut(ordinal).timeline = timeline;
            }
            self.became_resident(id, ordinal);
            self.generate_for(feeder, id);
        }
    }

    fn request_fill(&mut self, candidate: Candidate) {
        let id = candidate.sequencer;
        let q = &self.sequencers[id.at()];
        let group = &q.groups[(candidate.group - q.first) as usize];
        let (parent, parent_ordinal, shape, elements) = (q.parent, group.parent, group.shape, group.elements);
        let (tensor, p) = (q.tensor, q.parent_level);
        self.take_members(shape, parent, parent_ordinal);
        self.s.counts.levels[p].tensors[tensor].reads += elements;
        let left = self.launch(Transfer {
            step: candidate.step,
            cargo: Cargo::Fill,
            ordinal: 0,
            sequencer: id,
            group: candidate.group,
            shape,
            elements,
            bits: self.s.wiring.bits(tensor, false),
            number: self.s.transfer_count,
            stage: 0,
            tail: Cycle(0),
            hops: Vec::new(),
        });
        let record = self.stores[parent.at()].record_mut(parent_ordinal);
        record.outstanding -= 1;
        record.left = record.left.max(left);
        let q = &mut self.sequencers[id.at()];
        q.group_mut(candidate.group).launched = true;
        while q.groups.front().is_some_and(|g| g.launched) {
            q.groups.pop_front();
            q.first += 1;
        }
        for i in 0..self.s.shape(shape).stores.len() {
            let store = self.s.shape(shape).stores[i];
            self.generate_for(id, store);
            self.offer(store);
        }
        self.settle_closed(parent, parent_ordinal);
    }

    fn request_fetch(&mut self, candidate: Candidate) {
        let id = candidate.sequencer;
        let q = &self.sequencers[id.at()];
        let visit = q.visit(candidate.group);
        let (store, shape) = visit.fetch.expect("only visits with a fetch ask for one");
        let (parent, parent_ordinal, elements, unblocked_at) =
            (q.parent, visit.parent, visit.tile.elements, visit.unblocked_at);
        let p = q.parent_level;
        let ordinal = self.stores[store.at()].take();
        self.tell_occupancy(store);
        if self.stores[store.at()].pe.is_some() {
            self.blame_request(store, ordinal, parent, parent_ordinal, unblocked_at);
        } else {
            let mut timeline = self.stores[parent.at()].record(parent_ordinal).timeline.clone();
            timeline.until(unblocked_at, StallReason::PartialSum { level: p });
            let level = self.stores[store.at()].level;
            timeline.until(
                self.s.now,
                StallReason::Slot {
                    tensor: Tensor::Outputs,
                    level,
                },
            );
            self.stores[store.at()].record_mut(ordinal).timeline = timeline;
        }
        self.s.counts.levels[p].tensors[Tensor::Outputs].reads += elements;
        self.launch(Transfer {
            step: candidate.step,
            cargo: Cargo::Fetch,
            ordinal,
            sequencer: id,
            group: candidate.group,
            shape,
            elements,
            bits: self.s.wiring.bits(Tensor::Outputs, true),
            number: self.s.transfer_count,
            stage: 0,
            tail: Cycle(0),
            hops: Vec::new(),
        });
        self.generate_for(id, store);
        self.offer(store);
        // Drains of the visit had to wait for this (rule 18).
        self.sequencers[id.at()].visit_mut(candidate.group).fetch_requested = true;
        for stream in 0..self.sequencers[id.at()].visit(candidate.group).streams.len() {
            self.consider_drain(id, candidate.group, stream as u32);
        }
    }

    fn request_drain(&mut self, candidate: Candidate) {
        let id = candidate.sequencer;
        let q = &self.sequencers[id.at()];
        let visit = q.visit(candidate.group);
        let shape = visit.streams[candidate.stream as usize].shape;
        let (elements, last, level, kept) = (visit.tile.elements, visit.last, q.level, !q.flow.every_step());
        let members = self.s.shape(shape).stores.len() as u64;
        if kept {
            self.s.counts.levels[level].tensors[Tensor::Outputs].drains += elements * members;
        }
        self.launch(Transfer {
            step: candidate.step,
            cargo: Cargo::Drain {
                stream: candidate.stream,
            },
            ordinal: 0,
            sequencer: id,
            group: candidate.group,
            shape,
            elements,
            bits: self.s.wiring.bits(Tensor::Outputs, !last),
            number: self.s.transfer_count,
            stage: 0,
            tail: Cycle(0),
            hops: Vec::new(),
        });
    }

    /// Every member of a fill takes its slot.
    fn take_members(&mut self, shape: super::components::ShapeId, parent: StoreId, parent_ordinal: u64) {
        for i in 0..self.s.shape(shape).stores.len() {
            let id = self.s.shape(shape).stores[i];
            let ordinal = self.stores[id.at()].take();
            self.tell_occupancy(id);
            if self.stores[id.at()].pe.is_some() {
                self.blame_request(id, ordinal, parent, parent_ordinal, Cycle(0));
            } else {
                let mut timeline = self.stores[parent.at()].record(parent_ordinal).timeline.clone();
                let store = &mut self.stores[id.at()];
                timeline.until(
                    self.s.now,
                    StallReason::Slot {
                        tensor: store.tensor,
                        level: store.level,
                    },
                );
                store.record_mut(ordinal).timeline = timeline;
            }
        }
    }

    /// Tells the observer how many slots of a store are taken.
    #[inline]
    pub(super) fn tell_occupancy(&mut self, id: StoreId) {
        if O::ACTIVE {
            let at = self.s.simulated(self.s.now).0;
            let store = &self.stores[id.at()];
            let buffer = Buffer {
                level: store.level,
                instance: store.instance,
                tensor: store.tensor,
            };
            self.observer.occupancy(at, buffer, store.slots - store.free_slots);
        }
    }

    /// Tells the observer of a transfer that has been requested.
    #[inline]
    pub(super) fn tell_request(&mut self, id: TransferId) {
        if O::ACTIVE {
            let at = self.s.simulated(self.s.now).0;
            let t = &self.s.transfers[id.at()];
            let q = &self.sequencers[t.sequencer.at()];
            let stores = &self.s.shapes[t.shape.at()].stores;
            let members: Vec<u32> = stores.iter().map(|s| self.stores[s.at()].instance).collect();
            let info = TransferInfo {
                transfer: u64::from(id.0),
                kind: match t.cargo {
                    Cargo::Fill => TransferKind::Fill,
                    Cargo::Fetch => TransferKind::Fetch,
                    Cargo::Drain { .. } => TransferKind::Drain,
                },
                tensor: q.tensor,
                parent_level: q.parent_level,
                level: q.level,
                parent: self.stores[q.parent.at()].instance,
                step: t.step,
                members: &members,
                elements: t.elements,
                bits: t.bits,
            };
            self.observer.requested(at, &info);
        }
    }

    /// Starts a transfer at its first stage; returns when it has left it.
    fn launch(&mut self, transfer: Transfer) -> Cycle {
        let drain = matches!(transfer.cargo, Cargo::Drain { .. });
        let (sequencer, elements) = (transfer.sequencer, transfer.elements);
        let id = self.s.transfer(transfer);
        self.tell_request(id);
        self.load_transfer(id);
        let left = self.enter_stage(id).max(self.s.now + 1);
        if drain {
            let store = self.s.shape(self.s.transfers[id.at()].shape).stores[0];
            let q = &self.sequencers[sequencer.at()];
            // A small output waits in the FIFO: its slot is free at once (rule 9), seen from the next cycle on.
            let early = q.flow == Flow::Output && elements <= self.stores[store.at()].fifo;
            self.s
                .wheel
                .push(if early { self.s.now + 1 } else { left }, Event::DrainLeft(id));
        }
        left
    }
}
