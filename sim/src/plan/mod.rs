//! The static side of a simulation: where every instance of every level stands in the loop nest.

pub(crate) mod burst;
pub(crate) mod cursor;
pub(crate) mod lines;

use cyclonest_arch::{Accelerator, Axis, Mapping};
use cyclonest_workloads::{Dim, DimMap, Problem, Tensor, TensorMap};

use burst::{Bursts, InnerLoop};
use cursor::{Steps, TemporalLoop};
use lines::{AxisSpec, LineSet, Lines};

/// One mapped copy of a level.
#[derive(Debug, Clone)]
pub(crate) struct Instance {
    /// Offset of its tile that its spatial coordinates give.
    pub(crate) base: DimMap<u64>,
    /// Which child it is of its parent instance, at every level from 1 to its own (entry 0 is unused).
    pub(crate) path: Vec<u32>,
}

/// One child position under a parent instance.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pub(crate) offset: DimMap<u64>,
    pub(crate) x: u64,
    pub(crate) y: u64,
    /// Its coordinates in all spatial loops over C, R and S are 0.
    pub(crate) first_of_reduction: bool,
}

/// What a level's tile of one tensor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tile {
    /// Start in the dimensions that are boxes, as one number.
    pub(crate) corner: u64,
    /// Input rows and columns; 0 for the other tensors.
    pub(crate) rows: LineSet,
    pub(crate) columns: LineSet,
    /// Elements per row and column (all elements for weights and outputs).
    pub(crate) depth: u64,
    /// All elements.
    pub(crate) elements: u64,
}

/// Geometry of a mapping on a machine.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) problem: Problem,
    pub(crate) pe_level: usize,
    /// Steps of every level up to the PE level.
    pub(crate) steps: Vec<Steps>,
    /// Tile extents of every level, before clipping.
    pub(crate) tile: Vec<DimMap<u64>>,
    /// Instances of every level up to the PE level, children of one parent next to each other.
    pub(crate) instances: Vec<Vec<Instance>>,
    /// Starts of the instances of every level in every dimension, each once.
    pub(crate) bases: Vec<DimMap<Vec<u64>>>,
    /// Child positions below every level outside the PE level.
    pub(crate) children: Vec<Vec<Child>>,
    /// Levels that keep each tensor, outermost first, up to the PE level.
    pub(crate) keepers: TensorMap<Vec<usize>>,
    pub(crate) rows: Vec<Lines>,
    pub(crate) columns: Vec<Lines>,
    pub(crate) bursts: Bursts,
}

impl Plan {
    pub(crate) fn new(problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Self {
        let pe_level = arch.event_level();
        let bounds = &problem.bounds;

        // All loops in nest order, with the stride of each in its dimension.
        let mut inner = DimMap::<u64>::ones();
        let mut temporal = Vec::new();
        let mut spatial: Vec<Vec<(Dim, u64, Axis, u64)>> = vec![Vec::new(); mapping.levels.len()];
        let mut burst_loops: Vec<InnerLoop> = Vec::new();
        let mut tile = vec![DimMap::ones(); mapping.levels.len()];
        for (k, level) in mapping.levels.iter().enumerate().rev() {
            for s in level.spatial.iter().rev() {
                spatial[k].insert(0, (s.0, s.1, s.2, inner[s.0]));
                if k >= pe_level {
                    let stride = inner[s.0];
                    burst_loops.insert(
                        0,
                        InnerLoop {
                            level: k,
                            dim: s.0,
                            trips: s.1,
                            stride,
                            spatial: true,
                        },
                    );
                }
                inner[s.0] *= s.1;
            }
            for t in level.temporal.iter().rev() {
                let (dim, trips, stride) = (t.0, t.1, inner[t.0]);
                if k >= pe_level {
                    burst_loops.insert(
                        0,
                        InnerLoop {
                            level: k,
                            dim,
                            trips,
                            stride,
                            spatial: false,
                        },
                    );
                } else if trips > 1 {
                    temporal.insert(
                        0,
                        TemporalLoop {
                            level: k,
                            dim,
                            trips,
                            stride,
                            weight: 0,
                        },
                    );
                }
                inner[dim] *= trips;
            }
            tile[k] = inner;
        }

        let steps = (0..=pe_level)
            .map(|c| {
                let mut loops: Vec<TemporalLoop> = temporal.iter().copied().filter(|l| l.level < c).collect();
                let mut weight = 1;
                for l in loops.iter_mut().rev() {
                    l.weight = weight;
                    weight *= l.trips;
                }
                Steps { loops }
            })
            .collect();

        let children: Vec<Vec<Child>> = (0..pe_level).map(|k| child_positions(&spatial[k])).collect();
        let mut instances = vec![vec![Instance {
            base: DimMap::default(),
            path: vec![0],
        }]];
        for positions in &children {
            let parents = instances.last().expect("starts with the outermost level");
            let next = parents.iter().flat_map(|parent| {
                positions.iter().enumerate().map(|(i, child)| {
                    let mut path = parent.path.clone();
                    path.push(i as u32);
                    Instance {
                        base: DimMap::from_fn(|d| parent.base[d] + child.offset[d]),
                        path,
                    }
                })
            });
            let next = next.collect();
            instances.push(next);
        }

        let bases = instances
            .iter()
            .map(|level| {
                DimMap::from_fn(|d| {
                    let mut starts: Vec<u64> = level.iter().map(|i| i.base[d]).collect();
                    starts.sort_unstable();
                    starts.dedup();
                    starts
                })
            })
            .collect();
        let keepers = TensorMap::from_fn(|tensor| {
            (0..=pe_level)
                .filter(|&k| mapping.levels[k].keeps.contains(tensor))
                .collect()
        });
        let axis = |window: Dim, tap: Dim, stride, dilation, real| AxisSpec {
            windows: bounds[window],
            taps: bounds[tap],
            stride,
            dilation,
            real,
        };
        let rows = axis(
            Dim::P,
            Dim::R,
            problem.stride.0,
            problem.dilation.0,
            problem.real_rows(),
        );
        let columns = axis(
            Dim::Q,
            Dim::S,
            problem.stride.1,
            problem.dilation.1,
            problem.real_columns(),
        );
        Plan {
            problem: problem.clone(),
            pe_level,
            steps,
            bases,
            instances,
            children,
            keepers,
            rows: (0..=pe_level)
                .map(|c| Lines::new(&rows, tile[c][Dim::P], tile[c][Dim::R]))
                .collect(),
            columns: (0..=pe_level)
                .map(|c| Lines::new(&columns, tile[c][Dim::Q], tile[c][Dim::S]))
                .collect(),
            bursts: Bursts::new(bounds, burst_loops, (&rows, &columns), arch, mapping),
            tile,
        }
    }

    /// Extent of `dim` in the tile of level `level` that starts at `low`.
    #[inline]
    pub(crate) fn extent(&self, level: usize, dim: Dim, low: &DimMap<u64>) -> u64 {
        self.tile[level][dim].min(self.problem.bounds[dim] - low[dim])
    }

    /// The tile of `tensor` at `level` that starts at `low`.
    #[inline]
    pub(crate) fn tile_at(&self, tensor: Tensor, level: usize, low: &DimMap<u64>) -> Tile {
        let bounds = &self.problem.bounds;
        let boxed: &[Dim] = match tensor {
            Tensor::Weights => &[Dim::G, Dim::K, Dim::C, Dim::R, Dim::S],
            Tensor::Inputs => &[Dim::N, Dim::G, Dim::C],
            Tensor::Outputs => &[Dim::N, Dim::G, Dim::K, Dim::P, Dim::Q],
        };
        let mut corner = 0;
        let mut depth = 1;
        for &d in boxed {
            corner = corner * bounds[d] + low[d];
            depth *= self.extent(level, d, low);
        }
        if tensor == Tensor::Inputs {
            let rows = self.rows[level].at(low[Dim::P], low[Dim::R]);
            let columns = self.columns[level].at(low[Dim::Q], low[Dim::S]);
            let elements = depth * self.rows[level].len(rows) * self.columns[level].len(columns);
            Tile {
                corner,
                rows,
                columns,
                depth,
                elements,
            }
        } else {
            Tile {
                corner,
                rows: 0,
                columns: 0,
                depth,
                elements: depth,
            }
        }
    }

    /// True if the instance of `level` that starts at `base` has an input that is not padding at any of its steps.
    pub(crate) fn has_inputs(&self, level: usize, steps: &Steps, base: &DimMap<u64>) -> bool {
        let starts = |d: Dim| {
            let mut starts = vec![base[d]];
            starts.retain(|&s| s < self.problem.bounds[d]);
            for l in steps.loops.iter().filter(|l| l.dim == d) {
                let on = starts.iter().flat_map(|s| (0..l.trips).map(move |i| s + i * l.stride));
                starts = on.filter(|&s| s < self.problem.bounds[d]).collect();
            }
            starts
        };
        let touches = |lines: &Lines, window: Dim, tap: Dim| {
            let taps = starts(tap);
            starts(window)
                .iter()
                .any(|&w| taps.iter().any(|&t| lines.len(lines.at(w, t)) > 0))
        };
        touches(&self.rows[level], Dim::P, Dim::R) && touches(&self.columns[level], Dim::Q, Dim::S)
    }

    /// Elements of `tile` that `previous` holds too, and the lines in which they lie.
    pub(crate) fn overlap(&mut self, tensor: Tensor, level: usize, tile: &Tile, previous: &Tile) -> Tile {
        if tile.corner != previous.corner {
            return Tile::default();
        }
        if tensor != Tensor::Inputs {
            return *tile;
        }
        let rows = self.rows[level].meet(tile.rows, previous.rows);
        let columns = self.columns[level].meet(tile.columns, previous.columns);
        let elements = tile.depth * self.rows[level].len(rows) * self.columns[level].len(columns);
        if elements == 0 {
            Tile::default()
        } else {
            Tile {
                corner: tile.corner,
                rows,
                columns,
                depth: tile.depth,
                elements,
            }
        }
    }
}

fn child_positions(loops: &[(Dim, u64, Axis, u64)]) -> Vec<Child> {
    let mut children = vec![Child {
        offset: DimMap::default(),
        x: 0,
        y: 0,
        first_of_reduction: true,
    }];
    for &(dim, trips, axis, stride) in loops {
        children = children
            .iter()
            .flat_map(|child| {
                (0..trips).map(move |i| {
                    let mut next = child.clone();
                    next.offset[dim] += i * stride;
                    match axis {
                        Axis::X => next.x = next.x * trips + i,
                        Axis::Y => next.y = next.y * trips + i,
                    }
                    next.first_of_reduction &= i == 0 || !dim.is_reduction();
                    next
                })
            })
            .collect();
    }
    children
}
