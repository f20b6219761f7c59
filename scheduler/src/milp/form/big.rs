//! The big form, as a test oracle: CoSA's program as published, with its faults mended.
//!
//! Every prime factor has a binary for every place: the axes of the meshes, and at every level outside the innermost
//! one a *rank* in the order of its temporal loops. A rank takes at most one factor, so every permutation of the loops
//! is there, not only the three that matter. Whether a tensor depends on a rank or on one further in is a variable of
//! the rank; its product with the factor there, the trips that count as visits, is linearised. What fits and what it
//! costs is written as in the small form.

use std::collections::BTreeMap;

use cyclonest_workloads::{Dim, DimMap, Tensor};

use super::{CLASSES, Factor, Form, Formulation, Slot, log};
use crate::milp::program::{Linear, Var};
use crate::space::{Space, primes};

/// What may stand at a rank: position of the factor, binary. Per level and rank, outermost first.
type Ranks = BTreeMap<(usize, usize), Vec<(usize, Var)>>;

impl<'a> Form<'a> {
    /// The big form of `space`.
    pub(crate) fn big(space: &'a Space<'a>, formulation: &Formulation<'_>) -> Self {
        let mut form = Form::empty(space);
        let ranks = form.place_ranked(&formulation.bounds);
        form.fan_out();
        form.input_heights(formulation);
        form.capacities();
        form.rule_7(&ranks);
        for tensor in Tensor::ALL {
            form.revisit(tensor, &ranks);
        }
        form.cost(formulation);
        form
    }

    /// Every factor goes to one place, every rank takes one factor, and ranks are filled from the outside.
    fn place_ranked(&mut self, bounds: &DimMap<u64>) -> Ranks {
        let levels = self.space.arch.levels.len();
        let sums = self.space.sums_at(&self.space.holds);
        let all: Vec<(Dim, u64)> = bounds
            .iter()
            .flat_map(|(dim, &bound)| primes(bound).into_iter().map(move |prime| (dim, prime)))
            .collect();
        let mut ranks = Ranks::new();
        for (position, &(dim, prime)) in all.iter().enumerate() {
            let mut counts = Vec::new();
            for level in (0..levels).filter(|&l| dim.is_reduction() || l <= self.space.event || l >= sums) {
                let here = if level + 1 < levels { all.len() } else { 1 };
                for rank in 0..here {
                    let var = self.program.integer(1);
                    counts.push((Slot::Temporal(level), var));
                    if level + 1 < levels {
                        ranks.entry((level, rank)).or_default().push((position, var));
                    }
                }
            }
            for (level, axes) in self.space.meshes.iter().enumerate() {
                for (axis, mesh) in axes.iter().enumerate() {
                    if mesh.extent >= prime && mesh.allowed.contains(&dim) {
                        counts.push((Slot::Spatial(level, axis), self.program.integer(1)));
                    }
                }
            }
            let mut once = Linear::default();
            for &(_, var) in &counts {
                once.plus(1.0, var);
            }
            self.program.equal(once, 1.0);
            self.factors.push(Factor {
                dim,
                prime,
                count: 1,
                counts,
            });
        }
        for (&(level, rank), here) in &ranks {
            let taken = some(here);
            self.program.at_most(taken.clone(), &super::fixed(1.0));
            if rank > 0 {
                self.program.at_most(taken, &some(&ranks[&(level, rank - 1)]));
            }
        }
        ranks
    }

    /// The binaries at a rank whose dimension is wanted.
    fn at(&self, here: &[(usize, Var)], wanted: impl Fn(Dim) -> bool) -> Linear {
        let here = here.iter().filter(|(factor, _)| wanted(self.factors[*factor].dim));
        some(&here.copied().collect::<Vec<_>>())
    }

    /// No output is left and revisited inside a burst: no loop over outputs inside one over a reduction.
    fn rule_7(&mut self, ranks: &Ranks) {
        let (event, sums) = (self.space.event, self.space.sums_at(&self.space.holds));
        for (&outer, reducing) in ranks.range((event, 0)..(sums, 0)) {
            for (_, inner) in ranks.range((outer.0, outer.1 + 1)..(sums, 0)) {
                let mut both = self.at(reducing, Dim::is_reduction);
                both.add(1.0, &self.at(inner, |dim| !dim.is_reduction()));
                self.program.at_most(both, &super::fixed(1.0));
            }
        }
    }

    /// Visits of `tensor` to every level that keeps it.
    fn revisit(&mut self, tensor: Tensor, ranks: &Ranks) {
        let levels = self.space.arch.levels.len();
        let ignored = |dim: Dim| CLASSES[tensor as usize].contains(&dim);
        let largest = self.factors.iter().map(|f| log(f.prime)).fold(0.0, f64::max);
        let kept: Vec<usize> = (1..levels).filter(|&l| self.space.holds[l].contains(tensor)).collect();
        for &child in &kept {
            // What is kept only inside E does not outlive a step.
            let first = if child > self.space.event { self.space.event } else { 0 };
            let mut visits = Linear::default();
            for level in 0..first {
                visits.add(1.0, &self.temporal(level, |_| true));
            }
            let partial = self.program.real(0.0, 1.0);
            let mut inside: Option<Var> = None;
            for (_, here) in ranks.range((first, 0)..(child, 0)).rev() {
                let counts = self.program.real(0.0, 1.0);
                let mut counted = Linear::default();
                counted.plus(1.0, counts);
                self.program.at_most(self.at(here, |dim| !ignored(dim)), &counted);
                if let Some(inside) = inside {
                    let mut inner = Linear::default();
                    inner.plus(1.0, inside);
                    self.program.at_most(inner, &counted);
                }
                inside = Some(counts);
                // Trips that count: log f where `counts` is 1.
                let trips = self.program.real(0.0, largest);
                let mut least = Linear::default();
                for &(factor, var) in here {
                    least.plus(log(self.factors[factor].prime), var);
                }
                least.plus(largest, counts).constant -= largest;
                let mut above = Linear::default();
                above.plus(1.0, trips);
                self.program.at_most(least, &above);
                visits.plus(1.0, trips);
                if tensor == Tensor::Outputs {
                    let mut reduces = self.at(here, Dim::is_reduction);
                    reduces.plus(1.0, counts).constant -= 1.0;
                    let mut left = Linear::default();
                    left.plus(1.0, partial);
                    self.program.at_most(reduces, &left);
                }
            }
            if tensor == Tensor::Outputs {
                for level in 0..first {
                    for factor in self.factors.iter().filter(|f| f.dim.is_reduction()) {
                        for &(_, var) in factor.counts.iter().filter(|(s, _)| *s == Slot::Temporal(level)) {
                            let mut reduces = Linear::default();
                            reduces.plus(1.0, var);
                            let mut left = Linear::default();
                            left.plus(1.0, partial);
                            self.program.at_most(reduces, &left);
                        }
                    }
                }
                self.partial.insert(child, partial);
            }
            self.visits.insert((tensor, child), visits);
        }
    }
}

/// The sum of the binaries.
fn some(binaries: &[(usize, Var)]) -> Linear {
    let mut sum = Linear::default();
    for &(_, var) in binaries {
        sum.plus(1.0, var);
    }
    sum
}
