//! What is reused: which class of dimensions stands innermost, and the run of trips that a tensor ignores.

use cyclonest_workloads::{Dim, Tensor};

use super::{BIG, CLASSES, EPSILON, Form, fixed, log};
use crate::milp::program::{Linear, Var};

impl Form<'_> {
    /// One class stands innermost at every level.
    pub(super) fn order(&mut self) {
        let levels = self.space.arch.levels.len();
        let sums = self.space.sums_at(&self.space.holds);
        for level in 0..levels {
            let orders = [(); 3].map(|()| self.program.integer(1));
            let mut one = Linear::default();
            orders.iter().for_each(|&var| {
                one.plus(1.0, var);
            });
            self.program.equal(one, 1.0);
            if (self.space.event..sums).contains(&level) {
                // Reductions stand innermost, if there are any (rule 7).
                let mut allowed = Linear::default();
                allowed.plus(BIG, orders[Tensor::Outputs as usize]);
                self.program.at_most(self.temporal(level, Dim::is_reduction), &allowed);
            }
            self.orders.push(orders);
        }
    }

    /// The innermost run that `tensor` ignores, for every level that keeps it.
    pub(super) fn reuse(&mut self, tensor: Tensor) {
        let levels = self.space.arch.levels.len();
        let kept: Vec<usize> = (1..levels).filter(|&l| self.space.holds[l].contains(tensor)).collect();
        let ignored = |dim: Dim| CLASSES[tensor as usize].contains(&dim);
        for &child in &kept {
            let first = if child > self.space.event { self.space.event } else { 0 };
            for level in first..child {
                let run = self.temporal(level, ignored);
                if run.terms.is_empty() {
                    continue;
                }
                let skip = self.program.real(0.0, BIG);
                let mut skipped = Linear::default();
                skipped.plus(1.0, skip);
                self.program.at_most(skipped.clone(), &run);
                let mut innermost = Linear::default();
                innermost.plus(self.most(ignored), self.orders[level][tensor as usize]);
                self.program.at_most(skipped.clone(), &innermost);
                for between in level + 1..child {
                    let changes = self.changes(tensor, between);
                    let mut none = fixed(self.most(ignored));
                    none.plus(-self.most(ignored), changes);
                    self.program.at_most(skipped.clone(), &none);
                }
                self.skips.insert((tensor, child, level), skip);
            }
            if tensor == Tensor::Outputs {
                let partial = self.program.integer(1);
                let mut some = Linear::default();
                some.plus(self.most(Dim::is_reduction), partial);
                let mut left = Linear::default();
                for level in 0..child {
                    left.add(1.0, &self.temporal(level, Dim::is_reduction));
                    if let Some(&skip) = self.skips.get(&(tensor, child, level)) {
                        left.plus(-1.0, skip);
                    }
                }
                self.program.at_most(left, &some);
                self.partial.insert(child, partial);
            }
        }
    }

    /// log₂ of all factors of the dimensions.
    pub(super) fn most(&self, wanted: impl Fn(Dim) -> bool) -> f64 {
        let factors = self.factors.iter().filter(|f| wanted(f.dim));
        factors.map(|f| f.count as f64 * log(f.prime)).sum::<f64>() + EPSILON
    }

    /// The variable that is 1 if `level` has temporal loops that `tensor` does not ignore.
    fn changes(&mut self, tensor: Tensor, level: usize) -> Var {
        if let Some(&var) = self.changes.get(&(tensor, level)) {
            return var;
        }
        let relevant = |dim: Dim| !CLASSES[tensor as usize].contains(&dim);
        let var = self.program.integer(1);
        let mut some = Linear::default();
        some.plus(self.most(relevant), var);
        self.program.at_most(self.temporal(level, relevant), &some);
        self.changes.insert((tensor, level), var);
        var
    }
}
