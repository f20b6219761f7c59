//! The sweep: zero-opens, then requests in passes (rules 8 to 12, 16 to 19).

use std::collections::{BTreeMap, BTreeSet};

use cyclonest_workloads::Tensor;

use super::{Run, Transfer};
use crate::oracle::machine::{Place, Stage, reduction_latency};
use crate::oracle::nest::Setting;
use crate::oracle::plan::{Group, ResidencyId};
use crate::oracle::tally::{at, pass};

impl Run<'_, '_> {
    /// Returns whether anything was opened or requested.
    pub(super) fn sweep(&mut self) -> bool {
        let mut moved = self.zero_opens();
        loop {
            let mut ready: Vec<usize> = self.heads().into_iter().filter(|&g| self.is_ready(g)).collect();
            ready.sort_by_key(|&g| self.rank(&self.plan.groups[g]));
            if ready.is_empty() {
                return moved;
            }
            for g in ready {
                if self.is_ready(g) {
                    self.request(g);
                    moved = true;
                }
            }
        }
    }

    /// Outputs that start at zero, outer levels first, while slots last.
    fn zero_opens(&mut self) -> bool {
        let mut moved = false;
        let mut streams: Vec<usize> = (0..self.plan.streams.len()).collect();
        streams.retain(|&s| self.plan.streams[s].tensor == Tensor::Outputs);
        streams.sort_by_key(|&s| self.plan.streams[s].level);
        for s in streams {
            while let Some(&id) = self.plan.streams[s].residencies.get(self.streams[s].next) {
                let r = &self.plan.residencies[id];
                let parent_open = r.parent.is_none_or(|p| self.states[p].available);
                if r.fill.is_some() || !parent_open || self.streams[s].used >= self.plan.streams[s].slots {
                    break;
                }
                self.take(id);
                self.states[id].arrived = true;
                self.states[id].available = true;
                self.values.open(self.plan, id);
                if self.nest.keeps(Tensor::Outputs, r.level) && r.level == self.nest.event && !self.inner_outputs() {
                    // Rule 15: these updates need no read. (The reads of all updates come with the bursts.)
                    self.at_zero += r.tile.len();
                }
                self.log.push(format!(
                    "{} open O r{} at L{}{:?}",
                    self.now, r.position, r.level, r.instance
                ));
                moved = true;
            }
        }
        moved
    }

    fn inner_outputs(&self) -> bool {
        (self.nest.event + 1..self.nest.levels).any(|l| self.nest.keeps(Tensor::Outputs, l))
    }

    /// Takes the slot, or a place in the FIFO, of the next residency of a stream.
    fn take(&mut self, id: ResidencyId) {
        let r = &self.plan.residencies[id];
        let stream = &mut self.streams[r.stream];
        stream.next += 1;
        if stream.used < self.plan.streams[r.stream].slots {
            stream.used += 1;
        } else {
            stream.fifo.push(id);
            self.states[id].in_fifo = true;
        }
        self.states[id].requested = true;
    }

    /// The groups that the streams could ask for next, each once.
    fn heads(&self) -> Vec<usize> {
        let mut groups = Vec::new();
        for (stream, state) in self.plan.streams.iter().zip(&self.streams) {
            if let Some(&id) = stream.residencies.get(state.next) {
                groups.extend(self.plan.residencies[id].fill);
            }
            for &id in &stream.residencies[..state.next] {
                groups.extend(self.plan.residencies[id].drain.filter(|&g| self.requested[g].is_none()));
            }
        }
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    fn is_ready(&self, g: usize) -> bool {
        let group = &self.plan.groups[g];
        if self.requested[g].is_some() {
            return false;
        }
        let visit = &self.plan.visits.get(self.plan.residencies[group.members[0]].visit);
        if group.drain {
            // Rule 18: the fetch of the visit has been requested.
            let fetched = visit.and_then(|v| v.fetch).is_none_or(|f| self.requested[f].is_some());
            return fetched && group.members.iter().all(|&m| self.states[m].done);
        }
        let fetch = group.tensor == Tensor::Outputs;
        // Rule 18: all drains of the visit before have arrived.
        let previous = visit.and_then(|v| v.previous).filter(|_| fetch);
        let settled = previous.is_none_or(|p| self.visits[p].0 == self.plan.visits[p].drains.len());
        settled
            && group.members.iter().all(|&m| {
                let r = &self.plan.residencies[m];
                self.streams[r.stream].next == r.position
                    && r.parent.is_none_or(|p| self.states[p].available)
                    && self.has_room(m)
            })
    }

    /// A free slot, or room in the FIFO for an operand's new elements (rule 9).
    fn has_room(&self, id: ResidencyId) -> bool {
        let r = &self.plan.residencies[id];
        let (stream, state) = (&self.plan.streams[r.stream], &self.streams[r.stream]);
        if state.used < stream.slots {
            return true;
        }
        let waiting: u64 = state.fifo.iter().map(|&w| self.plan.residencies[w].new.len()).sum();
        r.tensor != Tensor::Outputs && waiting + r.new.len() <= stream.fifo
    }

    /// Order of requests in a pass: drains first, outer child levels first, I, O, W, then step and instance.
    fn rank(&self, group: &Group) -> (bool, usize, u8, Setting, Setting) {
        let r = &self.plan.residencies[group.members[0]];
        let tensor = match group.tensor {
            Tensor::Inputs => 0,
            Tensor::Outputs => 1,
            Tensor::Weights => 2,
        };
        (!group.drain, r.level, tensor, r.first_step.clone(), r.instance.clone())
    }

    fn request(&mut self, g: usize) {
        let group = &self.plan.groups[g];
        let number = self.transfers.len();
        self.requested[g] = Some(number);
        let mut payload = self.values.pick_up(self.plan, group);
        if self.options.drop_transfer == Some(number) {
            payload.clear();
        }
        let bits = self.nest.arch.bits(group.tensor, !group.finals);
        let bits = group.size
            * if group.tensor == Tensor::Outputs {
                bits
            } else {
                self.nest.arch.bits(group.tensor, false)
            };
        self.count(group, bits);
        let stages = self.path(group, bits);
        if !group.drain {
            for &m in &group.members {
                self.take(m);
            }
        } else if group.members.iter().all(|&m| {
            let r = &self.plan.residencies[m];
            r.tile.len() <= self.plan.streams[r.stream].fifo
        }) {
            self.freeing.extend(&group.members);
        }
        self.log.push(format!(
            "{} request {} {:?} L{}->L{} x{} {} words {:?}",
            self.now,
            if group.drain { "drain" } else { "fill" },
            group.tensor,
            group.from,
            group.to,
            group.members.len(),
            group.size,
            self.plan.residencies[group.members[0]].instance,
        ));
        self.transfers.push(Transfer {
            group: g,
            stages,
            reached: 0,
            start: 0,
            head: self.now,
            order: 0,
            left: u64::MAX,
            left_done: false,
            tail: 0,
            arrived: false,
            payload,
        });
        self.reach(number);
    }

    fn count(&mut self, group: &Group, bits: u64) {
        let (nest, tensor) = (self.nest, group.tensor);
        let (upper, lower) = (group.from.min(group.to), group.from.max(group.to));
        let kept = nest.keeps(tensor, lower);
        let members = group
            .members
            .iter()
            .map(|&m| self.plan.residencies[m].instance.clone())
            .collect();
        if group.drain {
            at(&mut self.counts, upper, tensor).updates += group.size;
        } else {
            at(&mut self.counts, upper, tensor).reads += group.size;
        }
        if kept {
            let all = group.size * group.members.len() as u64;
            let below = at(&mut self.counts, lower, tensor);
            *(if group.drain {
                &mut below.drains
            } else {
                &mut below.fills
            }) += all;
        }
        pass(
            nest,
            &mut self.counts,
            (tensor, !group.drain),
            upper..lower,
            &members,
            (group.size, bits),
        );
    }

    /// The stages of a transfer (rule 11).
    fn path(&mut self, group: &Group, bits: u64) -> Vec<Stage> {
        let (nest, tensor, size) = (self.nest, group.tensor, (group.size, bits));
        let (upper, lower) = (group.from.min(group.to), group.from.max(group.to));
        let members: Vec<&Setting> = group
            .members
            .iter()
            .map(|&m| &self.plan.residencies[m].instance)
            .collect();
        let latency = |level: usize| nest.arch.levels[level].bank(tensor).map_or(1, |b| b.latency);
        let source = &members[0][..nest.spatial_before(upper)];
        let outer = Stage {
            place: Place::Port(upper),
            resources: self
                .machine
                .port(nest, (upper, source), tensor, group.drain, size)
                .into_iter()
                .collect(),
            latency: if group.drain { 0 } else { latency(upper) },
        };
        let inner = nest.keeps(tensor, lower).then(|| Stage {
            place: Place::Port(lower),
            resources: members
                .iter()
                .filter_map(|m| self.machine.port(nest, (lower, m), tensor, !group.drain, size))
                .collect(),
            latency: if group.drain { latency(lower) } else { 0 },
        });
        let mut networks = Vec::new();
        for network in upper..lower {
            let mut instances: BTreeMap<&[u64], BTreeSet<&[u64]>> = BTreeMap::new();
            for m in &members {
                let child = &m[..nest.spatial_before(network + 1)];
                instances
                    .entry(&m[..nest.spatial_before(network)])
                    .or_default()
                    .insert(child);
            }
            let mut stage = Stage {
                place: Place::Network(network),
                resources: Vec::new(),
                latency: 0,
            };
            for (instance, children) in instances {
                let (resource, cycles) = self
                    .machine
                    .channel(nest, (network, instance), tensor, !group.drain, size);
                stage.resources.push(resource);
                let reduction = nest.arch.levels[network]
                    .below
                    .as_ref()
                    .map(|b| b.reduction)
                    .unwrap_or_default();
                let added = if group.drain {
                    reduction_latency(reduction, children.len() as u64)
                } else {
                    0
                };
                stage.latency = stage.latency.max(cycles + added);
            }
            networks.push(stage);
        }
        let mut stages: Vec<Stage> = std::iter::once(outer).chain(networks).chain(inner).collect();
        if group.drain {
            stages.reverse();
        }
        stages
    }
}
