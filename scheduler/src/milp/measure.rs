//! The objective of a point, from its loops and without the program: what the program's optimum is tested against.

use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_workloads::{Dim, DimMap, Problem, Tensor};

use super::halo;
use super::terms::{Inventory, shares};
use super::weights::Weights;
use crate::Objective;
use crate::space::{Point, Space};

/// The parts of the program's objective for one mapping, all in log₂.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// The largest occupancy of any lane, port or channel (cycles), or the largest energy of any access (pJ).
    pub bottleneck: f64,
    /// The largest occupancy of a port or channel (cycles).
    pub transfers: f64,
    /// Temporal trips.
    pub compute: f64,
    /// Elements that go into (outputs: come out of) a level, over all its visits and copies, by level and tensor.
    pub traffic: Vec<(usize, Tensor, f64)>,
    /// Sum of the tiles kept on the chip.
    pub utilization: f64,
}

impl Terms {
    /// The terms of a valid `mapping` with at most one temporal loop per level and dimension.
    #[must_use]
    pub fn new(problem: &Problem, arch: &Accelerator, mapping: &Mapping, objective: Objective) -> Self {
        let space = Space::new(problem, arch);
        let point = space.point(mapping);
        let inventory = Inventory::new(arch, &point.keeps);
        terms(&space, &inventory, objective, &point)
    }

    /// The composite objective.
    #[must_use]
    pub fn objective(&self, arch: &Accelerator, weights: &Weights) -> f64 {
        let traffic: f64 = self
            .traffic
            .iter()
            .map(|&(level, tensor, part)| part * weights.traffic * weights.factor(&arch.levels[level].name, tensor))
            .sum();
        let compute = weights.compute * self.compute;
        weights.bottleneck * self.bottleneck + compute + traffic - weights.utilization * self.utilization
            + weights.balance * (traffic - compute - weights.offset).abs()
    }
}

fn log(n: u64) -> f64 {
    (n as f64).log2()
}

/// The composite objective of `point`.
pub(crate) fn measure(
    space: &Space<'_>,
    inventory: &Inventory,
    weights: &Weights,
    objective: Objective,
    point: &Point,
) -> f64 {
    terms(space, inventory, objective, point).objective(space.arch, weights)
}

/// The parts of the objective of `point`.
fn terms(space: &Space<'_>, inventory: &Inventory, objective: Objective, point: &Point) -> Terms {
    let nest = Nest { space, point };
    let lanes = space.arch.levels.len();
    let compute = nest.temporal(0, lanes);
    let steps = nest.temporal(0, space.event);
    let mut transfers = f64::NEG_INFINITY;
    let mut energy = f64::NEG_INFINITY;
    let mut occupancy = vec![None; inventory.terms.len()];
    for (index, term) in inventory.terms.iter().enumerate() {
        let (visits, partial) = nest.visits(term.tensor, term.child);
        if term.fetch && !partial {
            continue;
        }
        let elements = nest.tile(term.tensor, term.child) + visits + nest.copies(term.tensor, term.from, term.child);
        if let Some(fixed) = term.fixed {
            let busy = elements + fixed + if partial { term.partial } else { 0.0 };
            transfers = transfers.max(busy);
            occupancy[index] = Some(busy);
        }
        if let Some(per_element) = term.energy {
            let everywhere: f64 = (0..term.from.min(lanes)).map(|l| nest.spatial(l)).sum();
            energy = energy.max(elements + everywhere + per_element);
        }
    }
    for group in &inventory.groups {
        let members: Vec<f64> = group
            .iter()
            .filter(|&&i| !inventory.terms[i].fetch)
            .filter_map(|&i| occupancy[i])
            .collect();
        transfers = transfers.max(super::form::together(&members));
    }
    let computing = compute + inventory.interval;
    let mut cycles = computing.max(steps + inventory.step).max(transfers);
    for &fill in &inventory.exposed {
        if let Some(busy) = occupancy[fill] {
            cycles = cycles.max(super::form::together(&[computing, busy]));
        }
    }
    let (mut traffic, mut utilization) = (Vec::new(), 0.0);
    for tensor in Tensor::ALL {
        let kept: Vec<usize> = (0..lanes).filter(|&l| point.keeps[l].contains(tensor)).collect();
        for pair in kept.windows(2) {
            let (visits, _) = nest.visits(tensor, pair[1]);
            let part = nest.tile(tensor, pair[1]) + visits + nest.copies(tensor, pair[0], pair[1]);
            traffic.push((pair[1], tensor, part));
            utilization += nest.tile(tensor, pair[1]);
        }
    }
    Terms {
        bottleneck: match objective {
            Objective::Cycles => cycles,
            Objective::Energy => energy,
            Objective::Edp => cycles + energy,
        },
        transfers,
        compute,
        traffic,
        utilization,
    }
}

/// True if sums leave `child` unfinished.
pub(crate) fn leaves_sums(space: &Space<'_>, point: &Point, child: usize) -> bool {
    Nest { space, point }.visits(Tensor::Outputs, child).1
}

struct Nest<'a> {
    space: &'a Space<'a>,
    point: &'a Point,
}

impl Nest<'_> {
    fn fan(&self, level: usize, dim: Dim) -> u64 {
        self.point.fan[level][0][dim] * self.point.fan[level][1][dim]
    }

    /// log₂ of the temporal trips of the levels from `from` to before `to`.
    fn temporal(&self, from: usize, to: usize) -> f64 {
        self.point.trips[from..to]
            .iter()
            .flat_map(|trips| trips.0)
            .map(log)
            .sum()
    }

    fn spatial(&self, level: usize) -> f64 {
        Dim::ALL.into_iter().map(|dim| log(self.fan(level, dim))).sum()
    }

    /// log₂ of the elements of the tile of `level`; of one element at the lanes.
    fn tile(&self, tensor: Tensor, level: usize) -> f64 {
        let extent = DimMap::from_fn(|dim| {
            (level..self.point.trips.len())
                .map(|l| self.point.trips[l][dim] * self.fan(l, dim))
                .product::<u64>()
        });
        let Tensor::Inputs = tensor else {
            let relevant = extent.iter().filter(|&(dim, _)| tensor.is_relevant(dim));
            return relevant.map(|(_, &e)| log(e)).sum();
        };
        let (stride, dilation) = (self.space.problem.stride, self.space.problem.dilation);
        log(extent[Dim::N] * extent[Dim::G] * extent[Dim::C])
            + log(halo::rows(extent[Dim::P], extent[Dim::R], stride.0, dilation.0))
            + log(halo::rows(extent[Dim::Q], extent[Dim::S], stride.1, dilation.1))
    }

    /// log₂ of how often an instance of `child` takes the tile in, and whether sums are left unfinished between.
    fn visits(&self, tensor: Tensor, child: usize) -> (f64, bool) {
        let lanes = self.point.trips.len();
        let event = self.space.event;
        // What is kept only inside E does not outlive a step.
        let reused_from = match child {
            c if c == lanes => lanes,
            c if c > event => event,
            _ => 0,
        };
        let (mut visits, mut partial, mut skipping) = (0.0, false, true);
        for level in (0..child).rev() {
            skipping &= level >= reused_from;
            for dim in self.point.order[level].into_iter().rev() {
                let trips = self.point.trips[level][dim];
                if trips == 1 || (skipping && !tensor.is_relevant(dim)) {
                    continue;
                }
                skipping = false;
                visits += log(trips);
                partial |= dim.is_reduction();
            }
        }
        (visits, partial)
    }

    /// log₂ of the passes that leave `from` for one tile of every instance of `child` below it.
    fn copies(&self, tensor: Tensor, from: usize, child: usize) -> f64 {
        (from..child)
            .map(|level| {
                let shared = shares(self.space.arch, level, tensor);
                Dim::ALL
                    .into_iter()
                    .filter(|&dim| tensor.is_relevant(dim) || !shared)
                    .map(|dim| log(self.fan(level, dim)))
                    .sum::<f64>()
            })
            .sum()
    }
}
