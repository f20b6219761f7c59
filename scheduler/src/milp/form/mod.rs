//! The small exact form: integer counts of equal prime factors instead of one binary per factor.
//!
//! Variables: for every dimension, prime and slot (a level's temporal loops or an axis of its mesh) how many of these
//! factors go there; for every level which class of dimensions stands innermost. Dimensions that the same tensors
//! ignore can be made adjacent without loss, so that there are three classes with a tensor that ignores them, {N, P, Q}
//! (weights), {K} (inputs) and {C, R, S} (outputs), and G, which no tensor ignores. A tensor's visits to a level are
//! all trips outside it save the innermost run that it ignores, across levels.

//!
//! [`capacity`] says what fits, [`reuse`] how often a tensor is visited, [`cost`] what that costs; [`point`] translates
//! between solutions and points of the space. The big form, one binary per factor, is there for tests.

#[cfg(test)]
mod big;
mod capacity;
mod cost;
mod point;
mod reuse;

use std::collections::{BTreeMap, BTreeSet};

use cyclonest_workloads::{Dim, DimMap, Tensor};

pub(crate) use self::cost::together;
pub(crate) use self::point::order;
use super::halo;
use super::program::{Linear, Program, Var};
use super::terms::Inventory;
use super::weights::Weights;
use crate::Objective;
use crate::space::{Space, padded, primes};

/// Large enough to switch a row off: no sum of logarithms of 64-bit numbers of interest gets there.
const BIG: f64 = 64.0;
/// Room for the rounding of logarithms.
const EPSILON: f64 = 1e-7;

/// The classes of dimensions, by the tensor that ignores them.
pub(crate) const CLASSES: [&[Dim]; 3] = [&[Dim::N, Dim::P, Dim::Q], &[Dim::K], &[Dim::C, Dim::R, Dim::S]];

/// Where a factor goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Slot {
    /// The temporal loops of a level.
    Temporal(usize),
    /// An axis of the mesh below a level.
    Spatial(usize, usize),
}

/// Equal prime factors of a dimension.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Factor {
    pub(crate) dim: Dim,
    pub(crate) prime: u64,
    /// How many there are.
    pub(crate) count: u64,
    /// How many go to each slot.
    pub(crate) counts: Vec<(Slot, Var)>,
}

/// The program of a space and what its variables mean.
#[derive(Debug, Clone)]
pub(crate) struct Form<'a> {
    space: &'a Space<'a>,
    /// The program.
    pub(crate) program: Program,
    /// The factors.
    pub(crate) factors: Vec<Factor>,
    /// Which class stands innermost, per level and class.
    orders: Vec<[Var; 3]>,
    /// Trips that a tensor ignores, per (tensor, child, level).
    skips: BTreeMap<(Tensor, usize, usize), Var>,
    /// log₂ of the visits of a tensor to a child, where the skips do not say it.
    #[cfg(test)]
    visits: BTreeMap<(Tensor, usize), Linear>,
    /// 1 if a level has loops that the tensor does not ignore.
    changes: BTreeMap<(Tensor, usize), Var>,
    /// 1 if sums leave a level unfinished.
    partial: BTreeMap<usize, Var>,
    /// How the banks are shared.
    banks: Vec<capacity::Shared>,
    /// The planes of input tile heights: rows, columns.
    planes: [Vec<halo::Plane>; 2],
    /// log₂ of rows and columns of the input tile, per level.
    heights: Vec<Option<[Linear; 2]>>,
}

/// What is to be built.
#[derive(Debug, Clone)]
pub(crate) struct Formulation<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) weights: &'a Weights,
    pub(crate) objective: Objective,
    /// Bound of every dimension, padded as wished.
    pub(crate) bounds: DimMap<u64>,
    /// Error of the planes that stand for input tile heights, in log₂.
    pub(crate) slack: f64,
}

/// Bounds padded so that no prime is large.
pub(crate) fn padded_bounds(space: &Space<'_>) -> DimMap<u64> {
    DimMap::from_fn(|dim| padded(space.problem.bounds[dim]))
}

impl<'a> Form<'a> {
    /// The program of `space`, with everything kept that a level holds.
    pub(crate) fn new(space: &'a Space<'a>, formulation: &Formulation<'_>) -> Self {
        let mut form = Form::empty(space);
        form.place(&formulation.bounds);
        form.fan_out();
        form.order();
        form.input_heights(formulation);
        form.capacities();
        for tensor in Tensor::ALL {
            form.reuse(tensor);
        }
        form.cost(formulation);
        form
    }

    fn empty(space: &'a Space<'a>) -> Self {
        Form {
            space,
            program: Program::default(),
            factors: Vec::new(),
            orders: Vec::new(),
            skips: BTreeMap::new(),
            #[cfg(test)]
            visits: BTreeMap::new(),
            changes: BTreeMap::new(),
            partial: BTreeMap::new(),
            banks: Vec::new(),
            planes: [Vec::new(), Vec::new()],
            heights: vec![None; space.arch.levels.len()],
        }
    }

    /// Every factor goes somewhere.
    fn place(&mut self, bounds: &DimMap<u64>) {
        let levels = self.space.arch.levels.len();
        let sums = self.space.sums_at(&self.space.holds);
        for (dim, &bound) in bounds.iter() {
            let primes = primes(bound);
            let mut distinct = primes.clone();
            distinct.dedup();
            for prime in distinct {
                let count = primes.iter().filter(|&&p| p == prime).count() as u64;
                let mut slots: Vec<Slot> = (0..levels)
                    // Between E and the level of the sums, outputs must be finished one after the other (rule 7).
                    .filter(|&l| dim.is_reduction() || l <= self.space.event || l >= sums)
                    .map(Slot::Temporal)
                    .collect();
                for (level, axes) in self.space.meshes.iter().enumerate() {
                    let open = axes.iter().enumerate();
                    let open = open.filter(|(_, mesh)| mesh.extent >= prime && mesh.allowed.contains(&dim));
                    slots.extend(open.map(|(axis, _)| Slot::Spatial(level, axis)));
                }
                let counts: Vec<(Slot, Var)> = slots.into_iter().map(|s| (s, self.program.integer(count))).collect();
                let mut all = Linear::default();
                counts.iter().for_each(|&(_, var)| {
                    all.plus(1.0, var);
                });
                self.program.equal(all, count as f64);
                self.factors.push(Factor {
                    dim,
                    prime,
                    count,
                    counts,
                });
            }
        }
    }

    /// log₂ of the trips in the slots and dimensions that `wanted` picks.
    fn trips(&self, wanted: impl Fn(Slot, Dim) -> bool) -> Linear {
        let mut sum = Linear::default();
        for factor in &self.factors {
            let weight = (factor.prime as f64).log2();
            for &(slot, var) in &factor.counts {
                if wanted(slot, factor.dim) {
                    sum.plus(weight, var);
                }
            }
        }
        sum
    }

    fn temporal(&self, level: usize, wanted: impl Fn(Dim) -> bool) -> Linear {
        self.trips(|slot, dim| slot == Slot::Temporal(level) && wanted(dim))
    }

    /// log₂ of the extent of `dim` in the tile of `level`.
    fn inside(&self, level: usize, wanted: impl Fn(Dim) -> bool) -> Linear {
        self.trips(|slot, dim| {
            let (Slot::Temporal(l) | Slot::Spatial(l, _)) = slot;
            l >= level && wanted(dim)
        })
    }

    /// No axis gets more than its children. The extent is rounded down to what the factors reach, which the relaxation
    /// does not see: 7 of 8 lanes where there are factors of 7 and 3 only.
    fn fan_out(&mut self) {
        for (level, axes) in self.space.meshes.iter().enumerate() {
            let used = [0, 1].map(|axis| self.trips(|slot, _| slot == Slot::Spatial(level, axis)));
            for (axis, (used, mesh)) in used.iter().zip(axes).enumerate() {
                if !used.terms.is_empty() {
                    let open = |f: &&Factor| f.counts.iter().any(|&(slot, _)| slot == Slot::Spatial(level, axis));
                    let most = reach(mesh.extent, self.factors.iter().filter(open));
                    self.program.at_most(used.clone(), &fixed(log(most) + EPSILON));
                }
            }
            // The axes of a square can be exchanged: X is the one with more on it.
            let [x, y] = axes;
            if x.extent == y.extent && x.extent > 1 && x.allowed == y.allowed {
                let [x, y] = used;
                self.program.at_most(y, &x);
            }
        }
    }
}

/// A constant as an expression.
fn fixed(constant: f64) -> Linear {
    Linear {
        terms: Vec::new(),
        constant,
    }
}

fn log(n: u64) -> f64 {
    (n as f64).log2()
}

/// The largest product at or below `most` that some of the factors have.
fn reach<'f>(most: u64, factors: impl Iterator<Item = &'f Factor>) -> u64 {
    let mut products = BTreeSet::from([1_u64]);
    for factor in factors {
        for _ in 0..factor.count {
            let more: Vec<u64> = products
                .iter()
                .filter_map(|&p| p.checked_mul(factor.prime).filter(|&p| p <= most))
                .collect();
            let before = products.len();
            products.extend(more);
            if products.len() == before {
                break;
            }
        }
    }
    products.last().copied().unwrap_or(1)
}
