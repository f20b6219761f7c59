//! Why a PE does not compute (rules 23 and 26).

use cyclonest_workloads::Tensor;

use super::Run;
use crate::oracle::Stall;
use crate::oracle::machine::Place;
use crate::oracle::plan::ResidencyId;

impl Run<'_, '_> {
    /// The first operand that the next step of a PE waits for, in the order of rule 23.
    pub(super) fn missing(&self, pe: usize) -> Option<ResidencyId> {
        let step = &self.plan.pes[pe].steps[self.pes[pe].step];
        [Tensor::Outputs, Tensor::Weights, Tensor::Inputs]
            .into_iter()
            .filter_map(|t| step.uses[t])
            .find(|&id| !self.states[id].available)
    }

    /// Books this cycle of every PE.
    pub(super) fn stalls(&mut self) {
        for pe in 0..self.pes.len() {
            let steps = &self.plan.pes[pe].steps;
            if self.pes[pe].until.is_some() {
                self.pes[pe].busy += 1;
                continue;
            }
            let reason = if steps.is_empty() {
                Stall::Unmapped
            } else if self.pes[pe].step == steps.len() {
                Stall::Finished
            } else {
                match self.missing(pe) {
                    Some(id) => self.blame(id, pe),
                    None => continue, // cannot be: the burst would have started
                }
            };
            if self.pes[pe].step > 0 && reason != Stall::Finished {
                self.pes[pe].between += 1;
            }
            *self.pes[pe].stalls.entry(reason).or_default() += 1;
        }
    }

    fn blame(&self, id: ResidencyId, pe: usize) -> Stall {
        let (r, state) = (&self.plan.residencies[id], &self.states[id]);
        let (tensor, level) = (r.tensor, r.level);
        if state.requested {
            if state.arrived {
                return Stall::Slot { tensor, level }; // in the FIFO
            }
            let Some(transfer) = r.fill.and_then(|g| self.requested[g]) else {
                return Stall::InFlight {
                    tensor,
                    level: r.parent_level,
                };
            };
            let t = &self.transfers[transfer];
            if t.start > self.now {
                return match t.stages[t.reached - 1].place {
                    Place::Port(level) => Stall::Port { tensor, level },
                    Place::Network(level) => Stall::Network { tensor, level },
                };
            }
            return Stall::InFlight {
                tensor,
                level: r.parent_level,
            };
        }
        if let Some(parent) = r.parent.filter(|&p| !self.states[p].available) {
            return self.blame(parent, pe);
        }
        if tensor == Tensor::Outputs {
            let previous = r.fill.and_then(|_| self.plan.visits[r.visit].previous);
            if previous.is_some_and(|p| self.visits[p].0 < self.plan.visits[p].drains.len()) {
                return Stall::PartialSum { level: r.parent_level };
            }
            if level == self.nest.event && self.now < self.pes[pe].ended + self.nest.arch.compute.depth {
                return Stall::Pipeline;
            }
        }
        Stall::Slot { tensor, level }
    }

    /// What every PE with work left waits for.
    pub(super) fn chain(&self) -> String {
        let waiting = self
            .pes
            .iter()
            .zip(&self.plan.pes)
            .enumerate()
            .filter(|(_, (s, p))| s.step < p.steps.len());
        waiting
            .filter_map(|(i, (_, pe))| {
                let id = self.missing(i)?;
                Some(format!("PE {:?}: {}", pe.instance, self.blame(id, i)))
            })
            .collect::<Vec<_>>()
            .join("; ")
    }
}
