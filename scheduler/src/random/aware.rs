//! Sampling under the constraints.

use cyclonest_workloads::{Dim, DimMap};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::space::{LARGEST_PRIME, Point, Space, padded, primes};

/// One in so many kept tensors bypasses a level between the outermost and the lanes.
const BYPASS: u32 = 8;

/// A random point. It fits unless not even its spatial loops do.
pub(crate) fn draw(space: &Space<'_>, rng: &mut ChaCha8Rng) -> Point {
    let mut point = space.origin();
    for level in 1..point.keeps.len() {
        for tensor in space.holds[level].iter() {
            if rng.random_range(0..BYPASS) == 0 {
                point.keeps[level].remove(tensor);
            }
        }
    }
    fill_meshes(space, &mut point, rng);
    let left = spread(space, &mut point, rng);
    point.order.iter_mut().for_each(|order| shuffle(order, rng));
    // Inside a burst, reductions stand innermost until the level that keeps the sums (rule 7).
    for level in space.event..space.sums_at(&point.keeps) {
        point.order[level].sort_by_key(|dim| dim.is_reduction());
    }
    let mut factors: Vec<(Dim, u64)> = Dim::ALL
        .into_iter()
        .flat_map(|dim| primes(left[dim]).into_iter().map(move |p| (dim, p)))
        .collect();
    shuffle(&mut factors, rng);
    let levels = point.trips.len();
    for (dim, prime) in factors {
        let mut candidates: Vec<usize> = (0..levels).collect();
        shuffle(&mut candidates, rng);
        for level in candidates {
            if level == 0 {
                break;
            }
            point.trips[0][dim] /= prime;
            point.trips[level][dim] *= prime;
            if space.fits(&point) {
                break;
            }
            point.trips[level][dim] /= prime;
            point.trips[0][dim] *= prime;
        }
    }
    Dim::ALL.iter().for_each(|&dim| space.settle(&mut point, dim));
    point
}

/// Spatial loops on every axis, from the inside out: half of the time as much of a dimension as there is room for.
fn fill_meshes(space: &Space<'_>, point: &mut Point, rng: &mut ChaCha8Rng) {
    let mut left = space.problem.bounds;
    for level in (0..point.fan.len()).rev() {
        for (axis, mesh) in space.meshes[level].iter().enumerate() {
            let mut room = mesh.extent;
            let mut dims: Vec<Dim> = mesh.allowed.clone();
            shuffle(&mut dims, rng);
            for dim in dims {
                let most = room.min(left[dim]);
                if most < 2 {
                    continue;
                }
                let factor = if rng.random_range(0..2) == 0 {
                    most
                } else {
                    rng.random_range(1..=most)
                };
                point.fan[level][axis][dim] *= factor;
                if !space.fits(point) {
                    point.fan[level][axis][dim] /= factor;
                    continue;
                }
                room /= factor;
                left[dim] = left[dim].div_ceil(factor);
            }
        }
    }
}

/// Gives what the meshes leave to the outermost level, padded half of the time where its primes are large, and
/// returns it.
fn spread(space: &Space<'_>, point: &mut Point, rng: &mut ChaCha8Rng) -> DimMap<u64> {
    DimMap::from_fn(|dim| {
        space.settle(point, dim);
        let left = point.trips[0][dim];
        let large = primes(left).last().is_some_and(|&p| p > LARGEST_PRIME);
        if large && rng.random_range(0..2) == 0 {
            point.trips[0][dim] = padded(left);
        }
        point.trips[0][dim]
    })
}

/// A random order, uniformly (Fisher and Yates).
pub(crate) fn shuffle<T>(items: &mut [T], rng: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.random_range(0..=last));
    }
}
