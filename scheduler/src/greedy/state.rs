//! A mapping under construction, as dense factors.

use cyclonest_arch::{Accelerator, Axis, LevelMapping, Loop, Mapping, SpatialLoop, tile_elements};
use cyclonest_workloads::{Dim, DimMap, Problem, Tensor, TensorSet};

/// Loops from the outside in, as three groups in one of their six orders (groups of dimensions that the same
/// tensors ignore never profit from being mixed); G, which every tensor sees, stays outermost.
const GROUPS: [&[Dim]; 3] = [&[Dim::N, Dim::P, Dim::Q], &[Dim::K], &[Dim::C, Dim::R, Dim::S]];

/// The orders of [`GROUPS`]; the first keeps reductions innermost, which rule 7 never forbids.
pub(super) const ORDERS: [[usize; 3]; 6] = [[1, 0, 2], [0, 1, 2], [0, 2, 1], [2, 0, 1], [1, 2, 0], [2, 1, 0]];

/// The dimensions in order `order`, outermost first.
pub(super) fn dims_in(order: usize) -> impl DoubleEndedIterator<Item = Dim> {
    std::iter::once(Dim::G).chain(
        ORDERS[order]
            .into_iter()
            .flat_map(|group| GROUPS[group].iter().copied()),
    )
}

/// Spatial loops of one level.
pub(super) type Unrolled = Vec<SpatialLoop>;

/// Factors of every level. Level 0 takes whatever trips remain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    /// Temporal trips per level.
    pub(super) trips: Vec<DimMap<u64>>,
    /// Position in [`ORDERS`] per level.
    pub(super) order: Vec<usize>,
    /// Product of the spatial loops per level.
    pub(super) fan: Vec<DimMap<u64>>,
    /// Tensors kept per level.
    pub(super) keeps: Vec<TensorSet>,
}

impl State {
    /// One trip everywhere except at level 0.
    pub(super) fn new(problem: &Problem, spatial: &[Unrolled], keeps: &[TensorSet]) -> Self {
        let fan = spatial
            .iter()
            .map(|loops| {
                let mut fan = DimMap::ones();
                loops.iter().for_each(|s| fan[s.0] *= s.1);
                fan
            })
            .collect();
        let mut state = State {
            trips: vec![DimMap::ones(); spatial.len()],
            order: vec![0; spatial.len()],
            fan,
            keeps: keeps.to_vec(),
        };
        Dim::ALL.iter().for_each(|&dim| state.settle(problem, dim));
        state
    }

    /// Extent of `dim` in the children of `level`: all factors further in and the level's own spatial ones.
    pub(super) fn inside(&self, level: usize, dim: Dim) -> u64 {
        (level + 1..self.trips.len()).fold(self.fan[level][dim], |inside, l| {
            inside
                .saturating_mul(self.trips[l][dim])
                .saturating_mul(self.fan[l][dim])
        })
    }

    /// Cuts trips that nothing is left for, and gives the rest to level 0.
    pub(super) fn settle(&mut self, problem: &Problem, dim: Dim) {
        let bound = problem.bounds[dim];
        let mut inside = 1_u64;
        for level in (0..self.trips.len()).rev() {
            inside = inside.saturating_mul(self.fan[level][dim]);
            let left = bound.div_ceil(inside);
            let trips = if level == 0 {
                left
            } else {
                self.trips[level][dim].min(left)
            };
            self.trips[level][dim] = trips;
            inside = inside.saturating_mul(trips);
        }
    }

    /// Extents of the tile of `level`, clipped at the bounds.
    pub(super) fn extents(&self, problem: &Problem, level: usize) -> DimMap<u64> {
        DimMap::from_fn(|dim| {
            let extent = self.trips[level][dim].saturating_mul(self.inside(level, dim));
            extent.min(problem.bounds[dim])
        })
    }

    /// The first tensor that does not fit, with its level; `None` if every bank holds its tiles.
    pub(super) fn overfull(&self, problem: &Problem, arch: &Accelerator) -> Option<(usize, Tensor)> {
        for level in (0..self.trips.len()).rev() {
            let extents = self.extents(problem, level);
            for bank in &arch.levels[level].banks {
                let (words, bits) = (bank.size.words(), bank.size.bits());
                if words.is_none() && bits.is_none() {
                    continue;
                }
                let mut left = u128::from(words.or(bits).unwrap_or(u64::MAX));
                for tensor in bank.holds.iter().filter(|&t| self.keeps[level].contains(t)) {
                    let unit = if words.is_some() {
                        1
                    } else {
                        arch.bits(tensor, tensor == Tensor::Outputs)
                    };
                    let tile = u128::from(tile_elements(problem, &extents, tensor));
                    let need = tile * u128::from(bank.slots_of(tensor)) * u128::from(unit);
                    match left.checked_sub(need) {
                        Some(rest) => left = rest,
                        None => return Some((level, tensor)),
                    }
                }
            }
        }
        None
    }

    /// True if no output is left and revisited inside a burst (rule 7).
    pub(super) fn finishes_outputs(&self, arch: &Accelerator) -> bool {
        let event = arch.event_level();
        let mut reducing = false;
        for level in event..self.trips.len() {
            if self.keeps[level].contains(Tensor::Outputs) {
                return true;
            }
            for dim in dims_in(self.order[level]).filter(|&d| self.trips[level][d] > 1) {
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
    pub(super) fn mapping(&self, problem: &Problem, arch: &Accelerator, spatial: &[Unrolled]) -> Mapping {
        let levels = arch.levels.iter().enumerate().map(|(l, level)| LevelMapping {
            level: level.name.clone(),
            temporal: dims_in(self.order[l])
                .map(|dim| Loop(dim, self.trips[l][dim]))
                .filter(|l| l.1 > 1)
                .collect(),
            spatial: spatial[l].iter().copied().filter(|s| s.1 > 1).collect(),
            keeps: self.keeps[l],
        });
        Mapping {
            bounds: problem.bounds,
            levels: levels.collect(),
        }
    }
}

/// Mesh that the spatial loops of each level fan out into, per axis, with the dimensions that it allows.
pub(super) fn meshes(arch: &Accelerator) -> Vec<[(Axis, u64, Vec<Dim>); 2]> {
    (0..arch.levels.len())
        .map(|level| {
            let (x, y) = arch.child_mesh(level);
            let allowed = arch.levels.get(level + 1).and_then(|child| child.spatial.as_ref());
            let dims = |pick: fn(&cyclonest_arch::SpatialDims) -> &Vec<Dim>| {
                allowed.map_or_else(|| Dim::ALL.to_vec(), |a| pick(a).clone())
            };
            [(Axis::X, x, dims(|a| &a.x)), (Axis::Y, y, dims(|a| &a.y))]
        })
        .collect()
}
