//! The objective of a point, from its loops and without the program: what the program's optimum is tested against.

use cyclonest_workloads::{Dim, DimMap, Tensor};

use super::halo;
use super::terms::{Inventory, shares};
use super::weights::Weights;
use crate::Objective;
use crate::space::{Point, Space};

/// The parts of the objective, in log₂.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measure {
    /// The composite objective.
    pub(crate) objective: f64,
    /// Σ log₂ of the temporal trips.
    pub(crate) compute: f64,
    /// Σ of the traffic.
    pub(crate) traffic: f64,
    /// Σ log₂ of the tiles kept on the chip.
    pub(crate) utilization: f64,
    /// log₂ of the largest occupancy or energy.
    pub(crate) bottleneck: f64,
}

fn log(n: u64) -> f64 {
    (n as f64).log2()
}

/// Evaluates `point`.
pub(crate) fn measure(
    space: &Space<'_>,
    inventory: &Inventory,
    weights: &Weights,
    objective: Objective,
    point: &Point,
) -> Measure {
    let nest = Nest { space, point };
    let lanes = space.arch.levels.len();
    let compute = nest.temporal(0, lanes);
    let steps = nest.temporal(0, space.event);
    let mut cycles = (compute + inventory.interval).max(steps + inventory.step);
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
            cycles = cycles.max(busy);
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
        cycles = cycles.max(super::form::together(&members));
    }
    for &fill in &inventory.exposed {
        if let Some(busy) = occupancy[fill] {
            cycles = cycles.max(super::form::together(&[compute + inventory.interval, busy]));
        }
    }
    let (mut traffic, mut utilization) = (0.0, 0.0);
    let mut weighted = 0.0;
    for tensor in Tensor::ALL {
        let kept: Vec<usize> = (0..lanes).filter(|&l| point.keeps[l].contains(tensor)).collect();
        for pair in kept.windows(2) {
            let (visits, _) = nest.visits(tensor, pair[1]);
            let part = nest.tile(tensor, pair[1]) + visits + nest.copies(tensor, pair[0], pair[1]);
            let level = weights
                .levels
                .get(&space.arch.levels[pair[1]].name)
                .copied()
                .unwrap_or(1.0);
            traffic += part;
            weighted += part * level * weights.tensors[tensor].unwrap_or(1.0);
            utilization += nest.tile(tensor, pair[1]);
        }
    }
    let bottleneck = match objective {
        Objective::Cycles => cycles,
        Objective::Energy => energy,
        Objective::Edp => cycles + energy,
    };
    Measure {
        objective: weights.bottleneck * bottleneck + weights.compute * compute + weights.traffic * weighted
            - weights.utilization * utilization,
        compute,
        traffic,
        utilization,
        bottleneck,
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
