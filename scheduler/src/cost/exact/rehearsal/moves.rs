//! What keepers and PEs do: fill, open, drain, compute.

use cyclonest_workloads::Tensor;

use super::path::Path;
use super::plan::Plan;
use super::{BLANK, Hop, NEVER, OUTPUTS, Rehearsal, Residency};
use crate::cost::exact::latency::RESOURCES;

impl Rehearsal {
    /// Requests the next fill, or opens the next output residency, with a fetch where partial sums were left behind.
    pub(super) fn fill(&mut self, index: usize, now: i64) {
        let Plan {
            streams, turns, bounds, ..
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
            for (k, _) in own.iter().enumerate().filter(|(_, t)| t.dim.is_reduction()) {
                fetched |= keeper.cursor.trip[k] > 0;
                partial |= keeper.cursor.left(k, turns, bounds) > 1;
            }
        }
        // A fetch waits for the drains of the tile's previous visit (rule 18).
        if fetched
            && let Some(distance) = keeper.since(own)
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
    pub(super) fn drain(&mut self, index: usize, now: i64) {
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
    pub(super) fn travel(&mut self, mut hop: Hop) {
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
            let mut cycles = stage.cycles(hop.elements, hop.bits);
            // Read-modify-writes (rule 19), on the mean of all drains; a shared port takes both one after the other.
            let modify = stage.modify.map(|(port, width, share)| {
                let read = width.cycles(hop.elements, hop.bits) as f64 * share;
                (port, read.round() as i64)
            });
            if let Some((port, read)) = modify
                && port == stage.resource
            {
                cycles += read;
            }
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
                if let Some((port, read)) = modify
                    && port != stage.resource
                {
                    let port = port + if several[stage.level] && !first { RESOURCES } else { 0 };
                    let all = others(stage.passes) * read / cycles.max(1);
                    self.free[port] = self.free[port].max(start) + if first { all } else { 0 };
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

    pub(super) fn stages(&self, hop: &Hop) -> usize {
        let stream = &self.plan.streams[self.keepers[hop.keeper].stream];
        if hop.up {
            stream.up.stages().len()
        } else {
            stream.down.stages().len()
        }
    }

    /// A transfer has left its first stage.
    pub(super) fn has_left(&mut self, hop: &Hop, left: i64) {
        if hop.up {
            if let Some(residency) = self.keepers[hop.keeper].remembered(hop.residency) {
                residency.freed = residency.freed.min(left.max(hop.time + 1));
            }
            self.update(hop.keeper);
        } else if self.plan.streams[self.keepers[hop.keeper].stream].tensor != Tensor::Outputs {
            self.left(hop.keeper, hop.parent, hop.last, left);
        }
    }

    /// A fill has left the parent's read port: a parent's residency that it was the last to use is free.
    pub(super) fn left(&mut self, index: usize, number: u64, last: bool, left: i64) {
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

    pub(super) fn arrived(&mut self, hop: &Hop) {
        let keeper = &mut self.keepers[hop.keeper];
        let (parent, settled) = (keeper.parent, keeper.settled);
        if !hop.up {
            keeper.at_mut(hop.residency).ready = hop.tail;
            keeper.settled = settled.max(hop.tail);
            self.update_users(hop.keeper);
            return;
        }
        if let Some(residency) = keeper.remembered(hop.residency) {
            residency.drained = hop.tail;
        }
        match parent {
            None => self.end = self.end.max(hop.tail + self.skipped),
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
    pub(super) fn burst(&mut self, index: usize, now: i64) -> Option<usize> {
        let pe = &self.pes[index];
        let sums = &self.keepers[pe.keepers[OUTPUTS]];
        let residency = sums.at(pe.using[OUTPUTS]);
        let opening = if pe.opening && !residency.fetched {
            residency.elements
        } else {
            0
        };
        let end = now + self.plan.work.length(&pe.cursor.at, &self.plan.bounds, opening);
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
}
