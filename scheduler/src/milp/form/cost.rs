//! What it costs: the objective and the rows that define its parts.

use cyclonest_workloads::Tensor;

use super::{BIG, Form, Formulation, Slot, fixed};
use crate::Objective;
use crate::milp::program::{Linear, Var};
use crate::milp::terms::{Inventory, shares};

/// A lower bound of log₂ Σ 2^occupancy: the largest, and the tangents at equal occupancies of all, and of every two
/// at 1:1, 1:3 and 3:1. The program has the same rows.
pub(crate) fn together(occupancies: &[f64]) -> f64 {
    let mut most = occupancies.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for (shares, constant) in tangents(occupancies.len()) {
        let sum: f64 = shares.iter().zip(occupancies).map(|(s, o)| s * o).sum();
        most = most.max(sum + constant);
    }
    most
}

/// Shares and constants of the tangents of the sum of `n` powers of two.
fn tangents(n: usize) -> Vec<(Vec<f64>, f64)> {
    let mut tangents = Vec::new();
    if n > 2 {
        tangents.push((vec![1.0 / n as f64; n], (n as f64).log2()));
    }
    for a in 0..n {
        for b in a + 1..n {
            for share in [0.25, 0.5, 0.75_f64] {
                let mut shares = vec![0.0; n];
                (shares[a], shares[b]) = (share, 1.0 - share);
                let entropy = -share * share.log2() - (1.0 - share) * (1.0 - share).log2();
                tangents.push((shares, entropy));
            }
        }
    }
    tangents
}

impl Form<'_> {
    /// log₂ of the elements that a child takes in: tile and visits.
    fn elements(&self, tensor: Tensor, child: usize) -> Linear {
        let mut elements = self.tile(tensor, child);
        elements.add(1.0, &self.visits(tensor, child));
        elements
    }

    /// All trips outside the child that are not skipped.
    fn visits(&self, tensor: Tensor, child: usize) -> Linear {
        #[cfg(test)]
        if let Some(visits) = self.visits.get(&(tensor, child)) {
            return visits.clone();
        }
        let mut visits = Linear::default();
        for level in 0..child {
            visits.add(1.0, &self.temporal(level, |_| true));
            if let Some(&skip) = self.skips.get(&(tensor, child, level)) {
                visits.plus(-1.0, skip);
            }
        }
        visits
    }

    fn copies(&self, tensor: Tensor, from: usize, child: usize) -> Linear {
        self.trips(|slot, dim| match slot {
            Slot::Spatial(level, _) if (from..child).contains(&level) => {
                tensor.is_relevant(dim) || !shares(self.space.arch, level, tensor)
            }
            _ => false,
        })
    }

    /// The objective and the rows that define it.
    pub(super) fn cost(&mut self, formulation: &Formulation<'_>) {
        let (inventory, weights) = (formulation.inventory, formulation.weights);
        let levels = self.space.arch.levels.len();
        let compute = self.trips(|slot, _| matches!(slot, Slot::Temporal(_)));
        let mut objective = Linear::default();
        objective.add(weights.compute, &compute);
        if weights.bottleneck > 0.0 {
            if formulation.objective != Objective::Energy {
                let busiest = self.busiest(inventory, &compute);
                objective.plus(weights.bottleneck, busiest);
            }
            if formulation.objective != Objective::Cycles {
                let costliest = self.costliest(inventory);
                objective.plus(weights.bottleneck, costliest);
            }
        }
        let mut all_traffic = Linear::default();
        for tensor in Tensor::ALL {
            let kept: Vec<usize> = (0..levels).filter(|&l| self.space.holds[l].contains(tensor)).collect();
            for pair in kept.windows(2) {
                let mut traffic = self.elements(tensor, pair[1]);
                traffic.add(1.0, &self.copies(tensor, pair[0], pair[1]));
                let factor = weights.factor(&self.space.arch.levels[pair[1]].name, tensor);
                objective.add(weights.traffic * factor, &traffic);
                all_traffic.add(factor, &traffic);
                objective.add(-weights.utilization, &self.tile(tensor, pair[1]));
            }
        }
        if weights.balance > 0.0 {
            let apart = self.program.real(0.0, f64::INFINITY);
            let mut distance = Linear::default();
            distance.plus(1.0, apart);
            let mut ahead = fixed(-weights.offset);
            ahead.add(weights.traffic, &all_traffic).add(-weights.compute, &compute);
            let mut behind = Linear::default();
            behind.add(-1.0, &ahead);
            self.program.at_most(ahead, &distance);
            self.program.at_most(behind, &distance);
            objective.plus(weights.balance, apart);
        }
        self.program.objective = objective;
    }

    /// The variable at or above log₂ of every occupancy.
    fn busiest(&mut self, inventory: &Inventory, compute: &Linear) -> Var {
        let busiest = self.program.real(-BIG, BIG);
        let mut top = Linear::default();
        top.plus(1.0, busiest);
        let mut compute = compute.clone();
        compute.constant += inventory.interval;
        let mut steps = self.trips(|slot, _| matches!(slot, Slot::Temporal(l) if l < self.space.event));
        steps.constant += inventory.step;
        let occupancies: Vec<Option<Linear>> = inventory
            .terms
            .iter()
            .map(|term| {
                let mut busy = self.elements(term.tensor, term.child);
                busy.add(1.0, &self.copies(term.tensor, term.from, term.child));
                busy.constant += term.fixed?;
                if let Some(&partial) = self.partial.get(&term.child) {
                    if term.fetch {
                        busy.plus(BIG, partial).constant -= BIG;
                    }
                    if term.tensor == Tensor::Outputs {
                        busy.plus(term.partial, partial);
                    }
                }
                Some(busy)
            })
            .collect();
        let mut rows = vec![compute.clone(), steps];
        rows.extend(occupancies.iter().flatten().cloned());
        let mut sums: Vec<Vec<&Linear>> = Vec::new();
        for group in &inventory.groups {
            let members = group.iter().filter(|&&i| !inventory.terms[i].fetch);
            sums.push(members.filter_map(|&i| occupancies[i].as_ref()).collect());
        }
        for &fill in &inventory.exposed {
            sums.extend(occupancies[fill].as_ref().map(|busy| vec![&compute, busy]));
        }
        for members in sums {
            for (shares, constant) in tangents(members.len()) {
                let mut sum = fixed(constant);
                members
                    .iter()
                    .zip(shares)
                    .filter(|(_, s)| *s > 0.0)
                    .for_each(|(member, share)| {
                        sum.add(share, member);
                    });
                rows.push(sum);
            }
        }
        for row in rows {
            self.program.at_most(row, &top);
        }
        busiest
    }

    /// The variable at or above log₂ of the energy of every kind of access.
    fn costliest(&mut self, inventory: &Inventory) -> Var {
        let costliest = self.program.real(-BIG, 2.0 * BIG);
        let mut top = Linear::default();
        top.plus(1.0, costliest);
        for term in &inventory.terms {
            let Some(per_element) = term.energy else { continue };
            let mut energy = self.elements(term.tensor, term.child);
            energy.add(1.0, &self.copies(term.tensor, term.from, term.child));
            energy.add(
                1.0,
                &self.trips(|slot, _| matches!(slot, Slot::Spatial(l, _) if l < term.from)),
            );
            energy.constant += per_element;
            if let (true, Some(&partial)) = (term.fetch, self.partial.get(&term.child)) {
                energy.plus(BIG, partial).constant -= BIG;
            }
            self.program.at_most(energy, &top);
        }
        costliest
    }
}
