//! Transfers on their way, hop by hop (rules 11, 12, 19).

use cyclonest_workloads::Tensor;

use super::components::{Cargo, SequencerId, StoreId, TransferId};
use super::{Engine, Event};
use crate::observe::Observer;
use crate::{Cycle, StageInfo, StageKind, StallReason};

impl<O: Observer> Engine<'_, O> {
    /// The head of a transfer reaches its next stage.
    pub(super) fn head(&mut self, id: TransferId) {
        self.enter_stage(id);
    }

    /// Reserves the resources of the stage that the head has reached; returns when the tail has left it.
    pub(super) fn enter_stage(&mut self, id: TransferId) -> Cycle {
        if self.s.refreshes.is_some() {
            self.refresh_stage(id);
        }
        let now = self.s.now;
        let t = &mut self.s.transfers[id.at()];
        let shape = &self.s.shapes[t.shape.at()];
        let stage = &shape.stages[t.stage as usize];
        let final_stage = t.stage as usize + 1 == shape.stages.len();
        let mut occupancy = stage.occupancy(t.elements, t.bits);
        let mut start = stage
            .resources
            .iter()
            .fold(now, |start, r| start.max(self.resources[r.at()].free));

        if final_stage && matches!(t.cargo, Cargo::Drain { .. }) {
            let q = &mut self.sequencers[t.sequencer.at()];
            let (parent_level, parent) = (q.parent_level, q.parent);
            let visit = q.visit_mut(t.group);
            if std::mem::replace(&mut visit.first_written, true) {
                // Read-modify-write: the read port works along with the write port.
                let instance = self.stores[parent.at()].instance;
                let read = self.s.wiring.read_port(parent_level, instance, Tensor::Outputs);
                let width = self.s.wiring.read_width(parent_level, Tensor::Outputs);
                let read_occupancy = width.cycles(t.elements, t.bits);
                let accesses = &mut self.s.counts.levels[parent_level].tensors[Tensor::Outputs];
                accesses.reads += t.elements;
                accesses.read_modify_writes += t.elements;
                let write = stage.resources[0];
                if read == write {
                    occupancy += read_occupancy;
                } else {
                    start = start.max(self.resources[read.at()].free);
                    let port = &mut self.resources[read.at()];
                    port.free = start + read_occupancy;
                    port.busy += read_occupancy;
                    t.tail = t.tail.max(start + read_occupancy);
                    if O::ACTIVE {
                        let skipped = self.s.offset;
                        self.observer.stage(
                            u64::from(id.0),
                            &StageInfo {
                                kind: StageKind::Read,
                                tensor: Tensor::Outputs,
                                level: parent_level,
                                instances: &[instance],
                                reached: now.0.wrapping_add(skipped),
                                start: start.0.wrapping_add(skipped),
                                end: (start + read_occupancy).0.wrapping_add(skipped),
                            },
                        );
                    }
                }
            }
        }

        for r in &stage.resources {
            let resource = &mut self.resources[r.at()];
            resource.free = start + occupancy;
            resource.busy += occupancy;
        }
        if stage.is_network {
            let tensor = self.sequencers[t.sequencer.at()].tensor;
            let up = matches!(t.cargo, Cargo::Drain { .. });
            let words = match stage.width {
                cyclonest_arch::Width::Unlimited => t.elements,
                width => width.cycles(t.elements, t.bits),
            };
            self.s.traffic.add(
                stage.level,
                tensor,
                up,
                &stage.passes,
                t.elements,
                words,
                t.elements * t.bits,
            );
        }
        if O::ACTIVE {
            let skipped = self.s.offset;
            self.observer.stage(
                u64::from(id.0),
                &StageInfo {
                    kind: stage.kind,
                    tensor: self.sequencers[t.sequencer.at()].tensor,
                    level: stage.level,
                    instances: &stage.instances,
                    reached: now.0.wrapping_add(skipped),
                    start: start.0.wrapping_add(skipped),
                    end: (start + occupancy).0.wrapping_add(skipped),
                },
            );
        }
        t.hops.push((now, start));
        t.tail = t.tail.max(start + occupancy + stage.remaining);
        let left = start + occupancy;
        if final_stage {
            let at = t.tail.max(now + 1);
            if self.s.lose != Some(t.number) {
                self.s.wheel.push(at, Event::Arrive(id));
            }
        } else {
            let at = (start + stage.latency).max(now + 1);
            t.stage += 1;
            self.s.wheel.push(at, Event::Head(id));
        }
        left
    }

    /// The ports that a transfer is about to reserve take the time of their refreshes first.
    #[cold]
    fn refresh_stage(&mut self, id: TransferId) {
        let t = &self.s.transfers[id.at()];
        let stage = &self.s.shapes[t.shape.at()].stages[t.stage as usize];
        let q = &self.sequencers[t.sequencer.at()];
        let parent = self.stores[q.parent.at()].instance;
        // A read-modify-write also takes the read port.
        let read = self.s.wiring.read_port(q.parent_level, parent, q.tensor);
        let ports: Vec<_> = stage.resources.iter().copied().chain([read]).collect();
        ports.into_iter().for_each(|port| self.catch_up(port));
    }

    /// The tail of a transfer arrives.
    pub(super) fn arrive(&mut self, id: TransferId) {
        let t = &self.s.transfers[id.at()];
        let (cargo, sequencer, group, shape, elements) = (t.cargo, t.sequencer, t.group, t.shape, t.elements);
        match cargo {
            Cargo::Fill | Cargo::Fetch => {
                let q = &self.sequencers[sequencer.at()];
                let (level, tensor, kept) = (q.level, q.tensor, !q.flow.every_step());
                let members = self.s.shape(shape).stores.len();
                if kept {
                    self.s.counts.levels[level].tensors[tensor].fills += elements * members as u64;
                }
                for i in 0..members {
                    let store = self.s.shape(shape).stores[i];
                    self.arrive_at(store, id);
                }
            }
            Cargo::Drain { .. } => {
                let q = &self.sequencers[sequencer.at()];
                let (parent, ordinal) = (q.parent, q.visit(group).parent);
                self.unload_drain(id, parent, ordinal);
                self.drain_arrives(sequencer, group, elements);
            }
        }
        if O::ACTIVE {
            self.observer.arrived(self.s.simulated(self.s.now).0, u64::from(id.0));
        }
        self.s.idle_transfers.push(id);
    }

    fn arrive_at(&mut self, id: StoreId, transfer: TransferId) {
        let t = &self.s.transfers[transfer.at()];
        let is_fetch = t.cargo == Cargo::Fetch;
        // Fills of a store arrive in order; a fetch may be overtaken by outputs that open at zero.
        let ordinal = if is_fetch {
            t.ordinal
        } else {
            self.stores[id.at()].arrived
        };
        if self.stores[id.at()].pe.is_some() {
            self.blame_flight(id, ordinal, transfer);
        } else {
            let t = &self.s.transfers[transfer.at()];
            let stages = &self.s.shapes[t.shape.at()].stages;
            let q = &self.sequencers[t.sequencer.at()];
            let in_flight = StallReason::InFlight {
                tensor: q.tensor,
                level: q.parent_level,
            };
            let now = self.s.now;
            let timeline = &mut self.stores[id.at()].record_mut(ordinal).timeline;
            for (&(reached, started), stage) in t.hops.iter().zip(stages) {
                timeline.until(reached, in_flight);
                timeline.until(started, wait_reason(q.tensor, stage.level, stage.is_network));
            }
            timeline.until(now, in_flight);
        }
        self.unload_into(transfer, id, ordinal);
        let store = &mut self.stores[id.at()];
        if !is_fetch {
            store.arrived += 1;
        }
        if is_fetch || store.slotted > ordinal {
            self.became_resident(id, ordinal);
        }
    }

    /// Residency `ordinal` of a store can be used from now on.
    pub(super) fn became_resident(&mut self, id: StoreId, ordinal: u64) {
        self.stores[id.at()].record_mut(ordinal).resident = true;
        if let Some(pe) = self.stores[id.at()].pe {
            self.wake(pe);
        } else {
            self.children_may_go_on(id, ordinal);
        }
    }

    fn drain_arrives(&mut self, sequencer: SequencerId, number: u64, elements: u64) {
        let q = &mut self.sequencers[sequencer.at()];
        let (parent, parent_level) = (q.parent, q.parent_level);
        let visit = q.visit_mut(number);
        visit.arrived += 1;
        let complete = visit.arrived as usize == visit.streams.len();
        let (next, parent_ordinal) = (visit.next.filter(|_| complete), visit.parent);
        self.s.counts.levels[parent_level].tensors[Tensor::Outputs].updates += elements;
        if let Some(next) = next {
            let now = self.s.now;
            let visit = self.sequencers[sequencer.at()].visit_mut(next);
            visit.blocked = false;
            visit.unblocked_at = now;
            self.consider_fetch(sequencer, next);
        }
        let q = &mut self.sequencers[sequencer.at()];
        while q.visits.front().is_some_and(|v| v.arrived as usize == v.streams.len()) {
            self.s
                .scratch
                .streams
                .extend(q.visits.pop_front().map(|visit| visit.streams));
            q.first += 1;
        }
        self.stores[parent.at()].record_mut(parent_ordinal).outstanding -= 1;
        if parent_level == 0 {
            self.s.last_arrival = self.s.simulated(self.s.now);
        } else {
            self.settle_closed(parent, parent_ordinal);
        }
    }

    /// A closed residency whose last child transfer is known gives its slot back (operands) or is done (outputs).
    pub(super) fn settle_closed(&mut self, id: StoreId, ordinal: u64) {
        let store = &mut self.stores[id.at()];
        if store.level == 0 || !store.record(ordinal).resident {
            return;
        }
        let is_output = store.tensor == Tensor::Outputs;
        let record = store.record_mut(ordinal);
        if !record.closed || record.outstanding > 0 || record.settled {
            return;
        }
        record.settled = true;
        let left = record.left;
        if is_output {
            self.residency_done(id, ordinal);
        } else {
            store.closing.push_back(ordinal);
            let at = left.max(self.s.now + 1);
            self.s.wheel.push(at, Event::Free(id));
        }
    }

    /// The oldest closing residency of an operand store gives its slot back.
    pub(super) fn free(&mut self, id: StoreId) {
        let store = &mut self.stores[id.at()];
        let ordinal = store.closing.pop_front().expect("one event per closing residency");
        store.record_mut(ordinal).released = true;
        self.retire_content(id, ordinal);
        self.slot_freed(id);
    }

    /// A slot of `store` is free: the FIFO moves up, and the next residency may be asked for.
    pub(super) fn slot_freed(&mut self, id: StoreId) {
        let store = &mut self.stores[id.at()];
        let moved = store.slotted;
        let usable = store.free_slot();
        store.forget_released();
        self.tell_occupancy(id);
        let store = &mut self.stores[id.at()];
        if usable {
            let (now, level) = (self.s.now, store.level);
            let waited = StallReason::Slot {
                tensor: store.tensor,
                level,
            };
            store.record_mut(moved).timeline.until(now, waited);
            self.became_resident(id, moved);
        }
        self.offer(id);
    }

    /// A drain has left its members' read ports: their slots are free.
    pub(super) fn drain_left(&mut self, id: TransferId) {
        let (shape, visit) = (self.s.transfers[id.at()].shape, self.s.transfers[id.at()].group);
        for i in 0..self.s.shape(shape).stores.len() {
            let store = self.s.shape(shape).stores[i];
            let ordinal = self.stores[store.at()].ordinal_of_visit(visit);
            self.stores[store.at()].record_mut(ordinal).released = true;
            self.retire_content(store, ordinal);
            self.slot_freed(store);
        }
    }

    /// The last output of a store's residency is complete.
    pub(super) fn done(&mut self, id: StoreId) {
        let ordinal = self.stores[id.at()].done;
        self.stores[id.at()].done += 1;
        self.residency_done(id, ordinal);
    }

    /// An output residency takes no more updates: its stream may drain when all members are there.
    fn residency_done(&mut self, id: StoreId, ordinal: u64) {
        let store = &self.stores[id.at()];
        let feeder = store.feeder.expect("the outermost level is never done");
        let record = store.record(ordinal);
        let (number, stream) = (record.group, record.stream);
        self.sequencers[feeder.at()].visit_mut(number).streams[stream as usize].done += 1;
        self.consider_drain(feeder, number, stream);
    }
}

/// Who holds up a head that has not been let in.
pub(super) fn wait_reason(tensor: Tensor, level: usize, is_network: bool) -> StallReason {
    if is_network {
        StallReason::Network { tensor, level }
    } else {
        StallReason::Port { tensor, level }
    }
}
