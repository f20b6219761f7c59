//! The space of mappings as dense factors: what the searching schedulers move in.

use cyclonest_arch::{Accelerator, Axis, LevelMapping, Loop, Mapping, SpatialLoop, tile_elements};
use cyclonest_workloads::{Dim, DimMap, Problem, Tensor, TensorSet};

/// Largest prime that a bound keeps; bounds with larger ones are padded where factors are drawn.
pub(crate) const LARGEST_PRIME: u64 = 7;

/// A mapping as dense factors. Trips need not divide the bounds; every dimension's product reaches its bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Point {
    /// Temporal trips per level.
    pub(crate) trips: Vec<DimMap<u64>>,
    /// Order of the temporal loops per level, outermost first.
    pub(crate) order: Vec<[Dim; 8]>,
    /// Spatial trips per level and axis (X, Y).
    pub(crate) fan: Vec<[DimMap<u64>; 2]>,
    /// Tensors kept per level.
    pub(crate) keeps: Vec<TensorSet>,
}

/// One axis of the mesh that a level fans out into.
#[derive(Debug, Clone)]
pub(crate) struct Mesh {
    /// Children along it.
    pub(crate) extent: u64,
    /// Dimensions that it may unroll.
    pub(crate) allowed: Vec<Dim>,
}

/// A problem and a machine.
#[derive(Debug, Clone)]
pub(crate) struct Space<'a> {
    pub(crate) problem: &'a Problem,
    pub(crate) arch: &'a Accelerator,
    /// The axes X and Y below each level.
    pub(crate) meshes: Vec<[Mesh; 2]>,
    /// What each level may keep: the tensors that it holds and of which one element fits.
    pub(crate) holds: Vec<TensorSet>,
    /// Position of the PE level.
    pub(crate) event: usize,
}

impl<'a> Space<'a> {
    /// The mappings of `problem` on `arch`.
    pub(crate) fn new(problem: &'a Problem, arch: &'a Accelerator) -> Self {
        let mesh = |level: usize| {
            let (x, y) = arch.child_mesh(level);
            let allowed = arch.levels.get(level + 1).and_then(|child| child.spatial.as_ref());
            let (dims_x, dims_y) = match allowed {
                Some(dims) => (dims.x.clone(), dims.y.clone()),
                None => (Dim::ALL.to_vec(), Dim::ALL.to_vec()),
            };
            [
                Mesh {
                    extent: x,
                    allowed: dims_x,
                },
                Mesh {
                    extent: y,
                    allowed: dims_y,
                },
            ]
        };
        let mut space = Space {
            problem,
            arch,
            meshes: (0..arch.levels.len()).map(mesh).collect(),
            holds: Vec::new(),
            event: arch.event_level(),
        };
        let all = |level: usize| -> TensorSet {
            let level = &arch.levels[level];
            Tensor::ALL.into_iter().filter(|&t| level.bank(t).is_some()).collect()
        };
        space.holds = (0..arch.levels.len()).map(all).collect();
        // Drop what does not fit with one element per tile, the largest demand of a bank first.
        for level in 1..arch.levels.len() {
            while let Some(tensor) = space.overfull(level, &DimMap::ones(), space.holds[level]) {
                space.holds[level].remove(tensor);
            }
        }
        space
    }

    /// Everything at the outermost level, one lane busy.
    pub(crate) fn origin(&self) -> Point {
        let levels = self.arch.levels.len();
        let mut point = Point {
            trips: vec![DimMap::ones(); levels],
            order: vec![[Dim::G, Dim::K, Dim::N, Dim::P, Dim::Q, Dim::C, Dim::R, Dim::S]; levels],
            fan: vec![[DimMap::ones(); 2]; levels],
            keeps: self.holds.clone(),
        };
        point.trips[0] = self.problem.bounds;
        point
    }

    /// Cuts trips that nothing is left for, and gives the rest to level 0.
    pub(crate) fn settle(&self, point: &mut Point, dim: Dim) {
        let bound = self.problem.bounds[dim];
        let mut inside = 1_u64;
        for level in (0..point.trips.len()).rev() {
            inside = inside.saturating_mul(point.fan[level][0][dim] * point.fan[level][1][dim]);
            let left = bound.div_ceil(inside);
            let trips = match level {
                0 => left,
                _ => point.trips[level][dim].min(left),
            };
            point.trips[level][dim] = trips;
            inside = inside.saturating_mul(trips);
        }
    }

    /// True if meshes and banks hold the point and rule 7 is kept; that every product reaches its bound is the
    /// caller's care.
    pub(crate) fn fits(&self, point: &Point) -> bool {
        self.meshes_hold(point) && self.finishes_outputs(point) && self.banks_hold(point)
    }

    /// True if every axis has the children that the spatial loops need, and allows them.
    pub(crate) fn meshes_hold(&self, point: &Point) -> bool {
        point.fan.iter().zip(&self.meshes).all(|(fan, meshes)| {
            fan.iter().zip(meshes).all(|(fan, mesh)| {
                let needed = fan.0.iter().fold(1_u64, |n, &f| n.saturating_mul(f));
                needed <= mesh.extent && fan.iter().all(|(dim, &f)| f == 1 || mesh.allowed.contains(&dim))
            })
        })
    }

    /// True if slots × tile fit every bank.
    fn banks_hold(&self, point: &Point) -> bool {
        let mut extents = DimMap::ones();
        for level in (0..point.trips.len()).rev() {
            extents = DimMap::from_fn(|dim| {
                let own = point.trips[level][dim] * point.fan[level][0][dim] * point.fan[level][1][dim];
                u64::saturating_mul(extents[dim], own)
            });
            let clipped = DimMap::from_fn(|dim| u64::min(extents[dim], self.problem.bounds[dim]));
            if self.overfull(level, &clipped, point.keeps[level]).is_some() {
                return false;
            }
        }
        true
    }

    /// The tensor with the largest demand in the first bank of `level` that does not hold tiles of these extents.
    fn overfull(&self, level: usize, extents: &DimMap<u64>, keeps: TensorSet) -> Option<Tensor> {
        for bank in &self.arch.levels[level].banks {
            let (words, bits) = (bank.size.words(), bank.size.bits());
            let Some(size) = words.or(bits) else { continue };
            let mut needed = 0_u128;
            let mut largest = None;
            for tensor in bank.holds.iter().filter(|&t| keeps.contains(t)) {
                let unit = match words {
                    Some(_) => 1,
                    None => self.arch.bits(tensor, tensor == Tensor::Outputs),
                };
                let demand = u128::from(tile_elements(self.problem, extents, tensor))
                    .saturating_mul(u128::from(bank.slots_of(tensor)))
                    .saturating_mul(u128::from(unit));
                needed = needed.saturating_add(demand);
                if largest.is_none_or(|(most, _)| demand > most) {
                    largest = Some((demand, tensor));
                }
            }
            if needed > u128::from(size) {
                return largest.map(|(_, tensor)| tensor);
            }
        }
        None
    }

    /// The level that outputs live at during a burst: the first one at or inside E that keeps them, or the lanes.
    pub(crate) fn sums_at(&self, keeps: &[TensorSet]) -> usize {
        (self.event..keeps.len())
            .find(|&level| keeps[level].contains(Tensor::Outputs))
            .unwrap_or(keeps.len())
    }

    /// True if no output is left and revisited inside a burst (rule 7).
    pub(crate) fn finishes_outputs(&self, point: &Point) -> bool {
        let mut reducing = false;
        for level in self.event..self.sums_at(&point.keeps) {
            for dim in point.order[level] {
                if point.trips[level][dim] == 1 {
                    continue;
                }
                if dim.is_reduction() {
                    reducing = true;
                } else if reducing {
                    return false;
                }
            }
        }
        true
    }

    /// The mapping; loops of one trip are left out.
    pub(crate) fn mapping(&self, point: &Point) -> Mapping {
        let levels = self.arch.levels.iter().enumerate().map(|(l, level)| {
            let axes = [Axis::X, Axis::Y].into_iter().zip(&point.fan[l]);
            LevelMapping {
                level: level.name.clone(),
                temporal: point.order[l]
                    .into_iter()
                    .map(|dim| Loop(dim, point.trips[l][dim]))
                    .filter(|l| l.1 > 1)
                    .collect(),
                spatial: axes
                    .flat_map(|(axis, fan)| fan.iter().map(move |(dim, &trips)| SpatialLoop(dim, trips, axis)))
                    .filter(|s| s.1 > 1)
                    .collect(),
                keeps: point.keeps[l],
            }
        });
        Mapping {
            bounds: self.problem.bounds,
            levels: levels.collect(),
        }
    }

    /// The point of a mapping with at most one temporal loop per dimension and level; of several, the innermost one's
    /// place counts.
    pub(crate) fn point(&self, mapping: &Mapping) -> Point {
        let mut point = self.origin();
        for (l, level) in mapping.levels.iter().enumerate() {
            point.trips[l] = DimMap::ones();
            point.keeps[l] = level.keeps;
            for &Loop(dim, trips) in &level.temporal {
                point.trips[l][dim] *= trips;
                // To the end: what the mapping does not name stays outermost, with one trip.
                let from = point.order[l].iter().position(|&d| d == dim).unwrap_or(0);
                point.order[l][from..].rotate_left(1);
            }
            for &SpatialLoop(dim, trips, axis) in &level.spatial {
                point.fan[l][axis as usize][dim] *= trips;
            }
        }
        point
    }
}

/// Prime factors of `n` in ascending order; none of 1.
pub(crate) fn primes(mut n: u64) -> Vec<u64> {
    let mut primes = Vec::new();
    let mut p = 2;
    while p * p <= n {
        while n.is_multiple_of(p) {
            primes.push(p);
            n /= p;
        }
        p += 1;
    }
    if n > 1 {
        primes.push(n);
    }
    primes
}

/// The smallest number at or above `n` without a prime factor above [`LARGEST_PRIME`].
pub(crate) fn padded(n: u64) -> u64 {
    (n..)
        .find(|&m| primes(m).last().is_none_or(|&p| p <= LARGEST_PRIME))
        .unwrap_or(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_multiply_to_the_number() {
        for n in 1..2000 {
            let primes = primes(n);
            assert_eq!(primes.iter().product::<u64>(), n);
            assert!(primes.iter().all(|&p| (2..p).all(|q| !p.is_multiple_of(q))));
        }
    }

    #[test]
    fn padding_removes_large_primes_and_nothing_else() {
        assert_eq!([13, 27, 55, 56, 113, 1000].map(padded), [14, 27, 56, 56, 120, 1000]);
    }

    #[test]
    fn a_point_survives_its_mapping() {
        let arch = cyclonest_arch::bundled::load("simba").expect("bundled");
        let problem = Problem::new(DimMap([1, 1, 64, 64, 14, 14, 3, 3]));
        let space = Space::new(&problem, &arch);
        let mapping = space.mapping(&space.origin());
        assert_eq!(mapping.check(&problem, &arch), []);
        assert_eq!(space.mapping(&space.point(&mapping)), mapping);
    }
}
