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
    /// Slots of the sample that is being drawn.
    drawn: Vec<Slot>,
    /// Children that it uses, per level and axis.
    used: Vec<[u64; 2]>,
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
        Sampler {
            space,
            factors,
            slots,
            drawn: Vec::new(),
            used: vec![[1; 2]; space.meshes.len()],
        }
    }

    /// A point with random factors and random orders; `None` if a mesh does not hold it.
    pub(super) fn draw(&mut self, rng: &mut ChaCha8Rng) -> Option<Point> {
        let mut point = self.factors(rng)?;
        point.order.iter_mut().for_each(|order| shuffle(order, rng));
        Some(point)
    }

    /// A point with random factors and the orders of the origin; `None` if a mesh does not hold it, which is known at
    /// the first axis that is too short: nearly all samples end there, before there is a point.
    pub(crate) fn factors(&mut self, rng: &mut ChaCha8Rng) -> Option<Point> {
        self.drawn.clear();
        self.used.fill([1; 2]);
        for &(dim, prime) in &self.factors {
            let slots = &self.slots[dim];
            let slot = slots[rng.random_range(0..slots.len())];
            if let Slot::Spatial(level, axis) = slot {
                let used = &mut self.used[level][axis];
                *used = used.saturating_mul(prime);
                if *used > self.space.meshes[level][axis].extent {
                    return None;
                }
            }
            self.drawn.push(slot);
        }
        let mut point = self.space.origin();
        point.trips[0] = DimMap::ones();
        for (&(dim, prime), &slot) in self.factors.iter().zip(&self.drawn) {
            match slot {
                Slot::Temporal(level) => point.trips[level][dim] *= prime,
                Slot::Spatial(level, axis) => point.fan[level][axis][dim] *= prime,
            }
        }
        Some(point)
    }
}
