//! From directives to loops.
//!
//! Every cluster level becomes temporal loops and one spatial loop; windows of inputs become tiles of outputs: a
//! window of m rows holds (m + stride − R) ÷ stride of them. `SpatialMap(1,1) Y; SpatialMap(1,1) R` at one level is
//! the diagonal of a row-stationary array: filter rows over the instances, each with its input row, for one output
//! row. A directive of a dimension that covers it is no loop.
//!
//! What the loop nest cannot say is refused: windows that overlap in a dimension that does not slide, windows
//! narrower than the filter, and several independent spatial maps at one level.

use cyclonest_workloads::{Dim, DimMap, Pair, Problem, Tensor, TensorMap, TensorSet};

use super::{Directive, Layer, Operator, Var};
use crate::{
    Accelerator, Axis, Bank, Capacity, Channels, Clock, Compute, Level, LevelMapping, Link, Loop, Mapping, Network,
    NetworkKind, Ports, Reduction, SpatialLoop, Width, Word,
};

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

impl Lowered {
    /// The mapping on `arch`. Cluster levels take the machine's fan-outs from the outside in; cluster levels that
    /// are left over share the last one. Outer temporal loops move to the outermost level until the tiles fit, and
    /// what a PE does stays as far inside as its tiles fit. Every level keeps every tensor that it can.
    ///
    /// # Errors
    /// If the machine has too few fan-outs or instances, or the tiles do not fit however they are placed.
    pub fn onto(&self, problem: &Problem, arch: &Accelerator) -> Result<Mapping, LowerError> {
        if let Some(dim) = Dim::ALL
            .into_iter()
            .find(|&d| problem.bounds[d] != self.problem.bounds[d])
        {
            return Err(LowerError::OtherProblem {
                dim,
                found: self.problem.bounds[dim],
                expected: problem.bounds[dim],
            });
        }
        let refuse = |reason: String| LowerError::Machine {
            arch: arch.name.clone(),
            reason,
        };
        let fans: Vec<usize> = (0..arch.levels.len())
            .filter(|&l| arch.child_mesh(l).0 * arch.child_mesh(l).1 > 1)
            .collect();
        let innermost = arch.levels.len() - 1;
        let mut base = self.empty(problem, arch);
        let mut last_used = 0;
        let mut free: Vec<(u64, u64)> = (0..arch.levels.len()).map(|l| arch.child_mesh(l)).collect();
        for (c, cluster) in self.levels.iter().enumerate() {
            let at = match fans.get(c.min(fans.len().saturating_sub(1))) {
                Some(&at) => at,
                None if cluster.spatial.is_none() => innermost,
                None => return Err(refuse("the machine has no fan-out".to_owned())),
            };
            if c >= fans.len() && !cluster.temporal.is_empty() && c > 0 {
                return Err(refuse(format!(
                    "cluster level {c} has loops between two fan-outs, the machine has {}",
                    fans.len()
                )));
            }
            last_used = at;
            base.levels[at].temporal.extend(&cluster.temporal);
            if let Some((dim, trips)) = cluster.spatial {
                let spatial = arch.levels.get(at + 1).and_then(|child| child.spatial.as_ref());
                let allowed = |axis: Axis| {
                    spatial.is_none_or(|s| {
                        if axis == Axis::X {
                            s.x.contains(&dim)
                        } else {
                            s.y.contains(&dim)
                        }
                    })
                };
                let placed = place(dim, trips, &mut free[at], &allowed).ok_or_else(|| {
                    let (x, y) = arch.child_mesh(at);
                    refuse(format!(
                        "{trips} instances over {dim} do not fit the {x}×{y} mesh below {}",
                        base.levels[at].level
                    ))
                })?;
                base.levels[at].spatial.extend(placed);
            }
        }
        let first = fans.first().copied().unwrap_or(0);
        let outer = base.levels[first].temporal.clone();
        let mut reasons = Vec::new();
        for inside_at in (last_used..=innermost).rev() {
            // Moving the inside loops over a spatial loop of the same dimension would give other elements to a PE.
            let crossed = base.levels[inside_at..].iter().flat_map(|l| &l.spatial);
            if crossed.clone().any(|s| self.inside.iter().any(|l| l.0 == s.0)) && inside_at < innermost {
                continue;
            }
            for kept in (0..=outer.len()).rev() {
                let mut mapping = base.clone();
                if first > 0 {
                    let (to_home, stay) = outer.split_at(outer.len() - kept);
                    mapping.levels[0].temporal = to_home.to_vec();
                    mapping.levels[first].temporal = stay.to_vec();
                } else if kept < outer.len() {
                    continue;
                }
                mapping.levels[inside_at].temporal.extend(&self.inside);
                let violations = mapping.check(problem, arch);
                if violations.is_empty() {
                    return Ok(mapping);
                }
                reasons = violations.iter().map(ToString::to_string).collect();
            }
        }
        Err(refuse(reasons.join("; ")))
    }

    fn empty(&self, problem: &Problem, arch: &Accelerator) -> Mapping {
        let level = |level: &Level| LevelMapping {
            level: level.name.clone(),
            temporal: Vec::new(),
            spatial: Vec::new(),
            keeps: Tensor::ALL.into_iter().filter(|&t| level.bank(t).is_some()).collect(),
        };
        Mapping {
            bounds: problem.bounds,
            levels: arch.levels.iter().map(level).collect(),
        }
    }

    /// A machine as MAESTRO imagines it, with the mapping on it: L2 holds the layer, every cluster level is a
    /// fan-out with multicast and free reduction, and an L1 per PE, double-buffered, is as large as it has to be.
    /// `bandwidth` is in elements per cycle, every network's latency in cycles.
    ///
    /// # Errors
    /// If the mapping does not fit its own machine; see [`Lowered::onto`].
    pub fn machine(&self, bandwidth: u64, latency: u64) -> Result<(Accelerator, Mapping), LowerError> {
        let link = Link {
            width: Width::Words(bandwidth.max(1)),
            latency: latency.max(1),
        };
        let network = Network {
            kind: NetworkKind::Pipe {
                down: Channels::OneForAll(link),
                up: Channels::OneForAll(link),
            },
            clock: None,
            multicast: TensorSet::ALL,
            reduction: Reduction::Tree { stage: 0 },
            energy_per_bit_hop: 0.0,
        };
        let bank = |holds: TensorSet, size, slots: u64, energy: f64| Bank {
            holds,
            size,
            slots: holds.iter().map(|t| (t, slots)).collect(),
            halo: holds.iter().filter(|&t| t == Tensor::Inputs).collect(),
            fifo: 0,
            ports: Ports::Ideal,
            latency: 1,
            energy: crate::AccessEnergy {
                read: energy,
                write: energy,
            },
        };
        let level = |name: String, mesh, bank, below| Level {
            name,
            mesh,
            spatial: None,
            banks: vec![bank],
            below,
        };
        let mut levels = vec![level(
            "L2".to_owned(),
            (1, 1),
            bank(TensorSet::ALL, Capacity::Unbounded, 1, 18.61),
            Some(network.clone()),
        )];
        for (c, cluster) in self.levels.iter().enumerate().take(self.levels.len() - 1) {
            // A point where networks meet; it stores nothing.
            let register = bank([Tensor::Weights].into_iter().collect(), Capacity::Words(1), 1, 0.0);
            let name = format!("Cluster{}", c + 1);
            levels.push(level(name, (cluster.instances, 1), register, Some(network.clone())));
        }
        let instances = self.levels.last().map_or(1, |c| c.instances);
        let l1 = bank(TensorSet::ALL, Capacity::Unbounded, 2, 1.68);
        levels.push(level("L1".to_owned(), (instances, 1), l1, None));
        let mut arch = Accelerator {
            name: "maestro".to_owned(),
            clock: Clock::MHz(1000.0),
            words: TensorMap::from_fn(|_| Word { bits: 8, partial: None }),
            levels,
            event_level: Some("L1".to_owned()),
            compute: Compute {
                lanes: (1, 1),
                depth: 0,
                interval: 1,
                energy_per_mac: 1.0,
            },
            sources: std::collections::BTreeMap::new(),
        };
        let mut mapping = self.empty(&self.problem, &arch);
        let last = arch.levels.len() - 1;
        for (c, cluster) in self.levels.iter().enumerate() {
            let at = &mut mapping.levels[c];
            at.temporal.extend(&cluster.temporal);
            at.spatial
                .extend(cluster.spatial.map(|(dim, trips)| SpatialLoop(dim, trips, Axis::X)));
            if c > 0 {
                at.keeps = TensorSet::EMPTY;
            }
        }
        mapping.levels[last].temporal.extend(&self.inside);
        let need: u64 = Tensor::ALL
            .map(|t| 2 * mapping.tile_elements(&self.problem, last, t))
            .iter()
            .sum();
        arch.levels[last].banks[0].size = Capacity::Words(need);
        let violations = mapping.check(&self.problem, &arch);
        if violations.is_empty() {
            return Ok((arch, mapping));
        }
        let reasons: Vec<String> = violations.iter().map(ToString::to_string).collect();
        Err(LowerError::Machine {
            arch: arch.name,
            reason: reasons.join("; "),
        })
    }
}

/// Puts a spatial loop on an axis, or splits it over both: Y then counts in units of X.
fn place(dim: Dim, trips: u64, free: &mut (u64, u64), allowed: &dyn Fn(Axis) -> bool) -> Option<Vec<SpatialLoop>> {
    let (x, y) = (
        if allowed(Axis::X) { free.0 } else { 1 },
        if allowed(Axis::Y) { free.1 } else { 1 },
    );
    if trips <= x {
        free.0 /= trips;
        return Some(vec![SpatialLoop(dim, trips, Axis::X)]);
    }
    if trips <= y {
        free.1 /= trips;
        return Some(vec![SpatialLoop(dim, trips, Axis::Y)]);
    }
    let even = (1..=x).rev().find(|a| trips.is_multiple_of(*a) && trips / a <= y);
    let along_x = even.unwrap_or(x);
    let along_y = trips.div_ceil(along_x);
    if along_y > y {
        return None;
    }
    free.0 /= along_x;
    free.1 /= along_y;
    Some(vec![
        SpatialLoop(dim, along_y, Axis::Y),
        SpatialLoop(dim, along_x, Axis::X),
    ])
}
