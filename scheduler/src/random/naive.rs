//! Uniform sampling of factors, orders and nothing else.

use cyclonest_workloads::{Dim, DimMap};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::aware::shuffle;
use crate::space::{Point, Space, primes};

/// Where a factor may go.
#[derive(Debug, Clone, Copy)]
enum Slot {
    Temporal(usize),
    Spatial(usize, usize),
}

/// Draws points of one space.
pub(crate) struct Sampler<'a> {
    space: &'a Space<'a>,
    /// Prime factors with their dimension.
    factors: Vec<(Dim, u64)>,
    /// Slots of each dimension.
    slots: DimMap<Vec<Slot>>,
}

impl<'a> Sampler<'a> {
    pub(crate) fn new(space: &'a Space<'a>) -> Self {
        let bounds = &space.problem.bounds;
        let factors = bounds
            .iter()
            .flat_map(|(dim, &bound)| primes(bound).into_iter().map(move |p| (dim, p)))
            .collect();
        let slots = DimMap::from_fn(|dim| {
            let temporal = (0..space.arch.levels.len()).map(Slot::Temporal);
            let axes = space.meshes.iter().enumerate().flat_map(|(level, axes)| {
                let open = axes
                    .iter()
                    .enumerate()
                    .filter(move |(_, mesh)| mesh.extent > 1 && mesh.allowed.contains(&dim));
                open.map(move |(axis, _)| Slot::Spatial(level, axis))
            });
            temporal.chain(axes).collect()
        });
        Sampler { space, factors, slots }
    }

    /// A point with random factors and random orders.
    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> Point {
        let mut point = self.factors(rng);
        // The orders are drawn only where the sample can still be valid.
        if self.space.meshes_hold(&point) {
            point.order.iter_mut().for_each(|order| shuffle(order, rng));
        }
        point
    }

    /// A point with random factors and the orders of the origin.
    pub(crate) fn factors(&self, rng: &mut ChaCha8Rng) -> Point {
        let mut point = self.space.origin();
        point.trips[0] = DimMap::ones();
        for &(dim, prime) in &self.factors {
            let slots = &self.slots[dim];
            match slots[rng.random_range(0..slots.len())] {
                Slot::Temporal(level) => point.trips[level][dim] *= prime,
                Slot::Spatial(level, axis) => point.fan[level][axis][dim] *= prime,
            }
        }
        point
    }
}
