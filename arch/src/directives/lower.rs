//! From directives to loops.
//!
//! Every cluster level becomes temporal loops and one spatial loop; windows of inputs become tiles of outputs: a
//! window of m rows holds (m + stride − R) ÷ stride of them. `SpatialMap(1,1) Y; SpatialMap(1,1) R` at one level is
//! the diagonal of a row-stationary array: filter rows over the instances, each with its input row, for one output
//! row. A directive of a dimension that covers it is no loop.
//!
//! What the loop nest cannot say is refused: windows that overlap in a dimension that does not slide, windows
//! narrower than the filter, and several independent spatial maps at one level.

use cyclonest_workloads::{Dim, DimMap, Pair, Problem};

use super::{Directive, Layer, Operator, Var};
use crate::Loop;

/// Why a dataflow is not lowered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// Windows overlap in a dimension that does not slide, or leave something out.
    #[error("cluster level {level}: windows of {size} {var}, each {offset} further, are no partition of {var}")]
    NoPartition {
        /// Cluster level, 0 outermost.
        level: usize,
        /// The dimension.
        var: Var,
        /// Window.
        size: u64,
        /// Offset.
        offset: u64,
    },
    /// A window of inputs that does not hold one output.
    #[error("cluster level {level}: a window of {size} {var} is narrower than the filter, which has {filter}")]
    NarrowWindow {
        /// Cluster level, 0 outermost.
        level: usize,
        /// The dimension.
        var: Var,
        /// Window.
        size: u64,
        /// Extent of the filter.
        filter: u64,
    },
    /// More than one spatial map that is not the diagonal of rows and filter rows.
    #[error(
        "cluster level {level}: {first} and {second} move together over the instances; only Y with R (X with S) can"
    )]
    Together {
        /// Cluster level, 0 outermost.
        level: usize,
        /// A dimension.
        first: Var,
        /// Another.
        second: Var,
    },
    /// A level without parallelism.
    #[error("cluster level {level} has no SpatialMap")]
    NoSpatialMap {
        /// Cluster level, 0 outermost.
        level: usize,
    },
    /// A dimension that the layer needs.
    #[error("the layer has no dimension {0}")]
    Missing(Var),
    /// The filter is larger than the input.
    #[error("the filter of {filter} {var} is larger than the input of {input}")]
    LargeFilter {
        /// Input dimension.
        var: Var,
        /// Extent of the filter.
        filter: u64,
        /// Extent of the input.
        input: u64,
    },
    /// Fewer PEs than one cluster needs.
    #[error("the machine has {pes} PEs, one cluster needs {cluster}")]
    NotEnoughPes {
        /// PEs of the machine.
        pes: u64,
        /// PEs of one cluster.
        cluster: u64,
    },
    /// The problem is another one.
    #[error("the dataflow is for another layer: {dim} is {found} there and {expected} here")]
    OtherProblem {
        /// A dimension that differs.
        dim: Dim,
        /// Bound of the dataflow.
        found: u64,
        /// Bound of the problem.
        expected: u64,
    },
    /// The machine cannot take it.
    #[error("{arch}: {reason}")]
    Machine {
        /// Name of the machine.
        arch: String,
        /// Why.
        reason: String,
    },
}

/// Loops of one cluster level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterLoops {
    /// Temporal loops, outermost first.
    pub temporal: Vec<Loop>,
    /// The spatial loop, if more than one instance is used.
    pub spatial: Option<(Dim, u64)>,
    /// Instances that the level has.
    pub instances: u64,
}

/// A dataflow as loops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lowered {
    /// The loop nest.
    pub problem: Problem,
    /// Cluster levels, outermost first.
    pub levels: Vec<ClusterLoops>,
    /// Loops over what one PE is given at a time.
    pub inside: Vec<Loop>,
}

/// Turns a layer's dataflow on `pes` PEs into loops.
///
/// # Errors
/// If the loop nest cannot say what the directives say.
pub fn lower(layer: &Layer, pes: u64) -> Result<Lowered, LowerError> {
    let problem = problem(layer)?;
    let (groups, sizes) = layer.levels();
    let unit: u64 = sizes.iter().product();
    if unit == 0 || pes < unit {
        return Err(LowerError::NotEnoughPes { pes, cluster: unit });
    }
    let mut tile = problem.bounds;
    let mut levels = Vec::with_capacity(groups.len());
    for (l, group) in groups.iter().enumerate() {
        let instances = if l == 0 { pes / unit } else { sizes[l - 1] };
        let lowering = Lowering {
            layer,
            level: l,
            problem: &problem,
            group,
        };
        levels.push(lowering.level(&mut tile, instances)?);
    }
    // Outputs outside reductions: a PE finishes one after the other.
    let order = [Dim::N, Dim::G, Dim::K, Dim::P, Dim::Q, Dim::C, Dim::R, Dim::S];
    let inside = order
        .into_iter()
        .filter(|&d| tile[d] > 1)
        .map(|d| Loop(d, tile[d]))
        .collect();
    Ok(Lowered {
        problem,
        levels,
        inside,
    })
}

/// The loop nest of a layer; the input is taken as padded.
fn problem(layer: &Layer) -> Result<Problem, LowerError> {
    let need = |var| layer.size(var).ok_or(LowerError::Missing(var));
    let mut bounds = DimMap::ones();
    if layer.operator == Operator::Gemm {
        bounds[Dim::N] = need(Var::M)?;
        bounds[Dim::K] = need(Var::N)?;
        bounds[Dim::C] = need(Var::K)?;
        return Ok(Problem::new(bounds));
    }
    bounds[Dim::N] = layer.size(Var::N).unwrap_or(1);
    match layer.operator {
        Operator::DepthwiseConv => bounds[Dim::G] = need(Var::C)?,
        operator => {
            bounds[Dim::K] = need(Var::K)?;
            bounds[Dim::C] = need(Var::C)?;
            if operator == Operator::GroupedConv {
                bounds[Dim::G] = need(Var::G)?;
            }
        }
    }
    let stride = Pair(layer.stride(Var::Y), layer.stride(Var::X));
    for (dim, tap, input, output, filter, stride) in [
        (Dim::P, Dim::R, Var::Y, Var::YOut, Var::R, stride.0),
        (Dim::Q, Dim::S, Var::X, Var::XOut, Var::S, stride.1),
    ] {
        let taps = need(filter)?;
        bounds[tap] = taps;
        bounds[dim] = match (layer.size(input), layer.size(output)) {
            (Some(input), _) if input >= taps => (input - taps) / stride + 1,
            (Some(extent), _) => {
                return Err(LowerError::LargeFilter {
                    var: input,
                    filter: taps,
                    input: extent,
                });
            }
            (None, Some(output)) => output,
            (None, None) => return Err(LowerError::Missing(input)),
        };
    }
    Ok(Problem {
        stride,
        ..Problem::new(bounds)
    })
}

struct Lowering<'a> {
    layer: &'a Layer,
    level: usize,
    problem: &'a Problem,
    group: &'a [Directive],
}

/// A directive taken apart.
#[derive(Debug, Clone, Copy)]
struct Map {
    var: Var,
    size: u64,
    offset: u64,
    spatial: bool,
}

impl Lowering<'_> {
    fn maps(&self) -> Vec<Map> {
        let map = |d: &Directive| match *d {
            Directive::SpatialMap { size, offset, var } => Some((size, offset, var, true)),
            Directive::TemporalMap { size, offset, var } => Some((size, offset, var, false)),
            Directive::Cluster(_) => None,
        };
        let taken = self.group.iter().filter_map(map);
        taken
            .map(|(size, offset, var, spatial)| Map {
                var,
                size,
                offset,
                spatial,
            })
            .collect()
    }

    fn level(&self, tile: &mut DimMap<u64>, instances: u64) -> Result<ClusterLoops, LowerError> {
        let maps = self.maps();
        let spatial: Vec<&Map> = maps.iter().filter(|m| m.spatial).collect();
        let diagonal = match spatial.as_slice() {
            [] => return Err(LowerError::NoSpatialMap { level: self.level }),
            [_] => None,
            [a, b] => Some(self.diagonal(a, b, tile)?),
            [a, b, ..] => return Err(self.together(a, b)),
        };
        let mut loops = ClusterLoops {
            temporal: Vec::new(),
            spatial: None,
            instances,
        };
        let outer = *tile;
        for map in &maps {
            if diagonal == Some(map.var) {
                continue;
            }
            let Some((dim, inner)) = self.tile_of(map, &outer)? else {
                continue;
            };
            let windows = outer[dim].div_ceil(inner);
            tile[dim] = inner.min(outer[dim]);
            let parallel = if map.spatial { windows.min(instances) } else { 1 };
            if parallel > 1 {
                loops.spatial = Some((dim, parallel));
            }
            let steps = windows.div_ceil(parallel);
            if steps > 1 {
                loops.temporal.push(Loop(dim, steps));
            }
        }
        Ok(loops)
    }

    fn together(&self, a: &Map, b: &Map) -> LowerError {
        LowerError::Together {
            level: self.level,
            first: a.var,
            second: b.var,
        }
    }

    /// Two spatial maps that are input rows with filter rows (or columns): the input side, which follows from the
    /// other.
    fn diagonal(&self, a: &Map, b: &Map, tile: &DimMap<u64>) -> Result<Var, LowerError> {
        let pair = |input: Var, filter: Var| {
            let found = |v: Var| {
                [a, b]
                    .into_iter()
                    .find(|m| m.var == v)
                    .filter(|m| m.size == 1 && m.offset == 1)
            };
            found(input).is_some() && found(filter).is_some()
        };
        for (input, filter, dim) in [(Var::Y, Var::R, Dim::P), (Var::X, Var::S, Dim::Q)] {
            if pair(input, filter) && tile[dim] == 1 {
                return Ok(input);
            }
        }
        Err(self.together(a, b))
    }

    /// Dimension of the loop nest and its extent in one window; `None` if the window covers the dimension.
    fn tile_of(&self, map: &Map, tile: &DimMap<u64>) -> Result<Option<(Dim, u64)>, LowerError> {
        let sliding = match (map.var, self.layer.operator) {
            (_, Operator::Gemm) => None,
            (Var::Y | Var::YOut, _) => Some((Dim::P, Dim::R, self.problem.stride.0)),
            (Var::X | Var::XOut, _) => Some((Dim::Q, Dim::S, self.problem.stride.1)),
            _ => None,
        };
        let outputs = matches!(map.var, Var::YOut | Var::XOut);
        let Some((dim, tap, stride)) = sliding else {
            let dim = self.dim_of(map.var);
            if map.size >= tile[dim] {
                return Ok(None);
            }
            if map.size != map.offset {
                return Err(self.no_partition(map));
            }
            return Ok(Some((dim, map.size)));
        };
        if outputs {
            if map.size >= tile[dim] {
                return Ok(None);
            }
            if map.size != map.offset {
                return Err(self.no_partition(map));
            }
            return Ok(Some((dim, map.size)));
        }
        let (taps, window) = (tile[tap], map.size);
        if window >= (tile[dim] - 1) * stride + taps {
            return Ok(None);
        }
        if window < taps {
            return Err(LowerError::NarrowWindow {
                level: self.level,
                var: map.var,
                size: map.size,
                filter: taps,
            });
        }
        let inner = (window + stride - taps) / stride;
        // With a stride MAESTRO itself moves the window to the next outputs.
        if stride == 1 && map.offset != inner {
            return Err(self.no_partition(map));
        }
        Ok(Some((dim, inner)))
    }

    fn no_partition(&self, map: &Map) -> LowerError {
        LowerError::NoPartition {
            level: self.level,
            var: map.var,
            size: map.size,
            offset: map.offset,
        }
    }

    fn dim_of(&self, var: Var) -> Dim {
        match (self.layer.operator, var) {
            (Operator::Gemm, Var::M) => Dim::N,
            (Operator::Gemm, Var::N) => Dim::K,
            (Operator::Gemm, Var::K) => Dim::C,
            (Operator::DepthwiseConv, Var::C) | (_, Var::G) => Dim::G,
            (_, Var::K) => Dim::K,
            (_, Var::C) => Dim::C,
            (_, Var::R) => Dim::R,
            (_, Var::S) => Dim::S,
            _ => Dim::N,
        }
    }
}
