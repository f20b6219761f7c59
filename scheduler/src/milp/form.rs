//! The small exact form: integer counts of equal prime factors instead of one binary per factor.
//!
//! Variables: for every dimension, prime and slot (a level's temporal loops or an axis of its mesh) how many of these
//! factors go there; for every level which class of dimensions stands innermost. Dimensions that the same tensors
//! ignore can be made adjacent without loss, so that there are three classes with a tensor that ignores them, {N, P, Q}
//! (weights), {K} (inputs) and {C, R, S} (outputs), and G, which no tensor ignores. A tensor's visits to a level are
//! all trips outside it save the innermost run that it ignores, across levels.

use std::collections::BTreeMap;

use cyclonest_workloads::{Dim, DimMap, Tensor};

use super::halo;
use super::program::{Linear, Program, Var};
use super::terms::{Inventory, shares};
use super::weights::Weights;
use crate::Objective;
use crate::space::{Point, Space, padded, primes};

/// Large enough to switch a row off: no sum of logarithms of 64-bit numbers of interest gets there.
const BIG: f64 = 64.0;
/// Room for the rounding of logarithms.
const EPSILON: f64 = 1e-7;

/// Ways to share a bank: one part of the capacity per tensor, largest demands first tried.
const HALVES: [[f64; 2]; 5] = [[0.5, 0.5], [0.25, 0.75], [0.75, 0.25], [0.125, 0.875], [0.875, 0.125]];
const THIRDS: [[f64; 3]; 4] = [
    [0.3333, 0.3333, 0.3333],
    [0.5, 0.25, 0.25],
    [0.25, 0.5, 0.25],
    [0.25, 0.25, 0.5],
];

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

/// A bank and the ways to share it.
#[derive(Debug, Clone, PartialEq)]
struct Shared {
    level: usize,
    kept: Vec<Tensor>,
    /// log₂ of the elements of each tensor's tile, per way.
    rooms: Vec<Vec<f64>>,
    /// 1 for the way that is taken.
    chosen: Vec<Var>,
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
    /// 1 if a level has loops that the tensor does not ignore.
    changes: BTreeMap<(Tensor, usize), Var>,
    /// 1 if sums leave a level unfinished.
    partial: BTreeMap<usize, Var>,
    /// How the banks are shared.
    banks: Vec<Shared>,
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

impl<'a> Form<'a> {
    /// The program of `space`, with everything kept that a level holds.
    pub(crate) fn new(space: &'a Space<'a>, formulation: &Formulation<'_>) -> Self {
        let levels = space.arch.levels.len();
        let mut form = Form {
            space,
            program: Program::default(),
            factors: Vec::new(),
            orders: Vec::new(),
            skips: BTreeMap::new(),
            changes: BTreeMap::new(),
            partial: BTreeMap::new(),
            banks: Vec::new(),
            planes: [Vec::new(), Vec::new()],
            heights: vec![None; levels],
        };
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

    fn fan_out(&mut self) {
        for (level, axes) in self.space.meshes.iter().enumerate() {
            let used = [0, 1].map(|axis| self.trips(|slot, _| slot == Slot::Spatial(level, axis)));
            for (used, mesh) in used.iter().zip(axes) {
                if !used.terms.is_empty() {
                    self.program.at_most(used.clone(), &fixed(log(mesh.extent) + EPSILON));
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

    fn order(&mut self) {
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

    fn input_heights(&mut self, formulation: &Formulation<'_>) {
        let problem = self.space.problem;
        let axes = [
            (Dim::P, Dim::R, problem.stride.0, problem.dilation.0),
            (Dim::Q, Dim::S, problem.stride.1, problem.dilation.1),
        ];
        self.planes = axes.map(|(windows, taps, stride, dilation)| {
            let (p, r) = (formulation.bounds[windows], formulation.bounds[taps]);
            halo::planes(&divisors(p), &divisors(r), stride, dilation, formulation.slack)
        });
        for level in 0..self.space.arch.levels.len() {
            if !self.space.holds[level].contains(Tensor::Inputs) {
                continue;
            }
            let heights = [0, 1].map(|axis| {
                let (windows, taps, ..) = axes[axis];
                let height = |plane: &halo::Plane| {
                    let mut height = fixed(plane.constant);
                    height.add(plane.windows, &self.inside(level, |d| d == windows));
                    height.add(plane.taps, &self.inside(level, |d| d == taps));
                    height
                };
                let heights: Vec<Linear> = self.planes[axis].iter().map(height).collect();
                if let [height] = &heights[..] {
                    return height.clone();
                }
                let mut variable = Linear::default();
                variable.plus(1.0, self.program.real(0.0, BIG));
                for above in heights {
                    self.program.at_most(above, &variable);
                }
                variable
            });
            self.heights[level] = Some(heights);
        }
    }

    /// log₂ of the elements of a tile; 0 at the lanes.
    fn tile(&self, tensor: Tensor, level: usize) -> Linear {
        if level == self.space.arch.levels.len() {
            return Linear::default();
        }
        let Tensor::Inputs = tensor else {
            return self.inside(level, |dim| tensor.is_relevant(dim));
        };
        let mut tile = self.inside(level, |dim| matches!(dim, Dim::N | Dim::G | Dim::C));
        for height in self.heights[level].iter().flatten() {
            tile.add(1.0, height);
        }
        tile
    }

    fn capacities(&mut self) {
        let arch = self.space.arch;
        for level in 1..arch.levels.len() {
            for bank in &arch.levels[level].banks {
                let words = bank.size.words();
                let Some(size) = words.or(bank.size.bits()) else {
                    continue;
                };
                let kept: Vec<Tensor> = bank
                    .holds
                    .iter()
                    .filter(|&t| self.space.holds[level].contains(t))
                    .collect();
                // log₂ of the elements of one tile if the tensor had the bank for itself.
                let alone = |tensor: Tensor| {
                    let unit = match words {
                        Some(_) => 1,
                        None => arch.bits(tensor, tensor == Tensor::Outputs),
                    };
                    log(size) - log(bank.slots_of(tensor) * unit)
                };
                let splits: Vec<Vec<f64>> = match kept.len() {
                    0 => continue,
                    1 => vec![vec![1.0]],
                    2 => HALVES.iter().map(|s| s.to_vec()).collect(),
                    _ => THIRDS.iter().map(|s| s.to_vec()).collect(),
                };
                let possible: Vec<Vec<f64>> = splits
                    .into_iter()
                    .map(|split| {
                        kept.iter()
                            .zip(split)
                            .map(|(&t, part)| alone(t) + part.log2())
                            .collect::<Vec<f64>>()
                    })
                    .filter(|rooms| rooms.iter().all(|&room| room >= 0.0))
                    .collect();
                let chosen: Vec<Var> = possible.iter().map(|_| self.program.integer(1)).collect();
                let mut one = Linear::default();
                chosen.iter().for_each(|&var| {
                    one.plus(1.0, var);
                });
                self.program.equal(one, 1.0);
                for (position, &tensor) in kept.iter().enumerate() {
                    let mut room = fixed(EPSILON);
                    for (rooms, &var) in possible.iter().zip(&chosen) {
                        room.plus(rooms[position], var);
                    }
                    self.program.at_most(self.tile(tensor, level), &room);
                }
                self.banks.push(Shared {
                    level,
                    kept,
                    rooms: possible,
                    chosen,
                });
            }
        }
    }

    /// The innermost run that `tensor` ignores, for every level that keeps it.
    fn reuse(&mut self, tensor: Tensor) {
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
    fn most(&self, wanted: impl Fn(Dim) -> bool) -> f64 {
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

    /// log₂ of the elements that a child takes in: tile and visits.
    fn elements(&self, tensor: Tensor, child: usize) -> Linear {
        let mut elements = self.tile(tensor, child);
        for level in 0..child {
            elements.add(1.0, &self.temporal(level, |_| true));
            if let Some(&skip) = self.skips.get(&(tensor, child, level)) {
                elements.plus(-1.0, skip);
            }
        }
        elements
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
    fn cost(&mut self, formulation: &Formulation<'_>) {
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
        for tensor in Tensor::ALL {
            let kept: Vec<usize> = (0..levels).filter(|&l| self.space.holds[l].contains(tensor)).collect();
            for pair in kept.windows(2) {
                let mut traffic = self.elements(tensor, pair[1]);
                traffic.add(1.0, &self.copies(tensor, pair[0], pair[1]));
                let level = &self.space.arch.levels[pair[1]].name;
                let factor = weights.levels.get(level).copied().unwrap_or(1.0) * weights.tensors[tensor].unwrap_or(1.0);
                objective.add(weights.traffic * factor, &traffic);
                objective.add(-weights.utilization, &self.tile(tensor, pair[1]));
            }
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

    /// The point that a solution stands for.
    pub(crate) fn point(&self, values: &[f64]) -> Point {
        let mut point = self.space.origin();
        point.trips[0] = DimMap::ones();
        for factor in &self.factors {
            for &(slot, var) in &factor.counts {
                let trips = factor.prime.pow(values[var].round() as u32);
                match slot {
                    Slot::Temporal(level) => point.trips[level][factor.dim] *= trips,
                    Slot::Spatial(level, axis) => point.fan[level][axis][factor.dim] *= trips,
                }
            }
        }
        for (level, orders) in self.orders.iter().enumerate() {
            let innermost = orders.iter().position(|&var| values[var] > 0.5).unwrap_or(2);
            point.order[level] = order(innermost);
        }
        Dim::ALL.iter().for_each(|&dim| self.space.settle(&mut point, dim));
        point
    }
}

/// The loops with class `innermost` innermost and G outermost.
pub(crate) fn order(innermost: usize) -> [Dim; 8] {
    let mut order = [Dim::G; 8];
    let classes = [1, 0, 2]
        .into_iter()
        .filter(|&class| class != innermost)
        .chain([innermost]);
    let dims = classes.flat_map(|class| CLASSES[class].iter().copied());
    order[1..].iter_mut().zip(dims).for_each(|(place, dim)| *place = dim);
    order
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

/// Divisors in ascending order.
fn divisors(n: u64) -> Vec<u64> {
    let mut divisors = vec![1];
    for prime in primes(n) {
        let larger: Vec<u64> = divisors.iter().map(|d| d * prime).collect();
        divisors.extend(larger);
        divisors.sort_unstable();
        divisors.dedup();
    }
    divisors
}

impl Form<'_> {
    /// True if the program admits `point`: meshes, rule 7, and some way to share every bank.
    pub(crate) fn admits(&self, point: &Point) -> bool {
        self.space.meshes_hold(point) && self.space.finishes_outputs(point) && self.shares_of(point).is_some()
    }

    /// For every shared or split bank the first way to share it that holds the tiles of `point`.
    fn shares_of(&self, point: &Point) -> Option<Vec<usize>> {
        let mut extents = vec![DimMap::ones(); point.trips.len() + 1];
        for level in (0..point.trips.len()).rev() {
            extents[level] = DimMap::from_fn(|dim| {
                let own = point.trips[level][dim] * point.fan[level][0][dim] * point.fan[level][1][dim];
                u64::saturating_mul(extents[level + 1][dim], own)
            });
        }
        let tile = |tensor: Tensor, level: usize| {
            let e = &extents[level];
            let height = |axis: usize, windows: Dim, taps: Dim| {
                let planes = self.planes[axis].iter().map(|plane| plane.at(e[windows], e[taps]));
                planes.fold(f64::NEG_INFINITY, f64::max)
            };
            match tensor {
                Tensor::Inputs => {
                    let plain = log(e[Dim::N]) + log(e[Dim::G]) + log(e[Dim::C]);
                    plain + height(0, Dim::P, Dim::R) + height(1, Dim::Q, Dim::S)
                }
                _ => e
                    .iter()
                    .filter(|&(dim, _)| tensor.is_relevant(dim))
                    .map(|(_, &e)| log(e))
                    .sum(),
            }
        };
        let holds = |bank: &Shared, rooms: &Vec<f64>| {
            let kept = bank.kept.iter().zip(rooms);
            kept.into_iter()
                .all(|(&tensor, room)| tile(tensor, bank.level) <= room + EPSILON)
        };
        self.banks
            .iter()
            .map(|bank| bank.rooms.iter().position(|rooms| holds(bank, rooms)))
            .collect()
    }

    /// Values of all integers of the program for `point`; `None` if it does not admit it.
    pub(crate) fn integers(&self, point: &Point) -> Option<Vec<(Var, f64)>> {
        let mut values = Vec::new();
        for factor in &self.factors {
            for &(slot, var) in &factor.counts {
                let mut trips = match slot {
                    Slot::Temporal(level) => point.trips[level][factor.dim],
                    Slot::Spatial(level, axis) => point.fan[level][axis][factor.dim],
                };
                let mut count = 0;
                while trips.is_multiple_of(factor.prime) {
                    trips /= factor.prime;
                    count += 1;
                }
                values.push((var, f64::from(count)));
            }
        }
        for (orders, order) in self.orders.iter().zip(&point.order) {
            let innermost = CLASSES.iter().position(|class| class.contains(&order[7])).unwrap_or(2);
            let chosen = orders.iter().enumerate();
            values.extend(chosen.map(|(class, &var)| (var, f64::from(u8::from(class == innermost)))));
        }
        for (&(tensor, level), &var) in &self.changes {
            let changes = point.trips[level]
                .iter()
                .any(|(dim, &trips)| trips > 1 && !CLASSES[tensor as usize].contains(&dim));
            values.push((var, f64::from(u8::from(changes))));
        }
        for (&child, &var) in &self.partial {
            let reducing = super::measure::leaves_sums(self.space, point, child);
            values.push((var, f64::from(u8::from(reducing))));
        }
        for (bank, chosen) in self.banks.iter().zip(self.shares_of(point)?) {
            let ways = bank.chosen.iter().enumerate();
            values.extend(ways.map(|(way, &var)| (var, f64::from(u8::from(way == chosen)))));
        }
        Some(values)
    }
}
