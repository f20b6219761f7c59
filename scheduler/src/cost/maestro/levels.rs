//! From directives to cluster levels: missing directives, strides, sizes, and what each level maps.

use cyclonest_arch::directives::{Directive, Layer, Operator, Var};

use super::{Machine, MaestroError};

/// One value per [`Var`].
pub(super) type PerVar = [i64; Var::ALL.len()];

/// MAESTRO has networks for so many levels.
const MAX_LEVELS: usize = 4;

/// A directive of a level, in terms of input rows and columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Map {
    pub(super) var: Var,
    pub(super) spatial: bool,
    pub(super) size: i64,
    pub(super) offset: i64,
}

/// A tensor: the dimensions that it depends on.
#[derive(Debug, Clone)]
pub(super) struct Tensor {
    pub(super) vars: Vec<Var>,
}

/// A cluster level.
#[derive(Debug, Clone)]
pub(super) struct Level {
    pub(super) maps: Vec<Map>,
    /// Position in `maps` of each dimension; `usize::MAX` where it has none.
    pub(super) place: [usize; Var::ALL.len()],
    /// True if a dimension has two directives.
    pub(super) twice: bool,
    /// Instances.
    pub(super) clusters: i64,
    /// Instances that are active in the last spatial step.
    pub(super) edge_clusters: i64,
    /// Indices in one tile, of inputs and, at X' and Y', of outputs; the same in the last tile of a dimension.
    pub(super) mapped: PerVar,
    pub(super) mapped_edge: PerVar,
    /// Of them, those that are new after a move.
    pub(super) unique: PerVar,
    pub(super) unique_edge: PerVar,
}

/// A layer split into cluster levels.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) levels: Vec<Level>,
    pub(super) inputs: [Tensor; 2],
    pub(super) output: Tensor,
    /// True if X and Y slide over S and R.
    pub(super) sliding: bool,
    /// Sizes of the whole layer.
    pub(super) dims: PerVar,
}

impl Problem {
    pub(super) fn new(layer: &Layer, machine: &Machine, batched: bool) -> Result<Self, MaestroError> {
        for (name, bandwidth) in [
            ("network", machine.noc_bandwidth),
            ("off-chip", machine.offchip_bandwidth),
        ] {
            if bandwidth == 0 {
                return Err(MaestroError::NoBandwidth(name));
            }
        }
        let (inputs, output) = tensors(layer.operator, batched);
        let sliding = layer.operator != Operator::Gemm;
        let dims = sizes(layer, sliding)?;
        let mut needed: Vec<Var> = inputs.iter().flat_map(|t| t.vars.iter().copied()).collect();
        needed.sort_unstable();
        needed.dedup();
        for &var in needed.iter().chain(&output.vars) {
            if dims[var as usize] == 0 {
                return Err(MaestroError::MissingDimension(var));
            }
        }
        let (mut groups, cluster_sizes) = layer.levels();
        if groups.len() > MAX_LEVELS {
            return Err(MaestroError::TooManyLevels {
                found: groups.len(),
                limit: MAX_LEVELS,
            });
        }
        let unit = cluster_sizes
            .iter()
            .try_fold(1u64, |unit, &n| unit.checked_mul(n))
            .ok_or(MaestroError::Overflow("the product of the cluster sizes"))?;
        if machine.pes < unit {
            return Err(MaestroError::NotEnoughPes {
                pes: machine.pes,
                cluster: unit,
            });
        }
        let mut problem = Problem {
            levels: Vec::with_capacity(groups.len()),
            inputs,
            output,
            sliding,
            dims,
        };
        let mut tile = dims;
        for (l, group) in groups.drain(..).enumerate() {
            let mut maps = input_centric(l, &group)?;
            if let Some(outer) = problem.levels.last() {
                // A directive that is missing is inherited, as a loop outside all others of the level.
                for map in &outer.maps {
                    if !maps.iter().any(|m| m.var == map.var) {
                        maps.insert(0, Map { spatial: false, ..*map });
                    }
                }
            }
            for &var in &needed {
                if !maps.iter().any(|m| m.var == var) {
                    let size = tile[var as usize];
                    maps.push(Map {
                        var,
                        spatial: false,
                        size,
                        offset: size,
                    });
                }
            }
            if sliding {
                apply_strides(layer, l == 0, &dims, &mut maps);
            }
            let clusters = match l.checked_sub(1) {
                None => machine.pes / unit,
                Some(above) => cluster_sizes[above],
            };
            let level = Level::new(l, maps, clusters as i64, &tile, &problem)?;
            for &var in &needed {
                let map = &level.maps[level.place[var as usize]];
                tile[var as usize] = map.size.min(tile[var as usize]);
            }
            problem.levels.push(level);
        }
        Ok(problem)
    }
}

/// The tensors of an operator, inputs first.
fn tensors(operator: Operator, batched: bool) -> ([Tensor; 2], Tensor) {
    use Var::{C, G, K, M, N, R, S, X, Y};
    let (input, weight, output): (&[Var], &[Var], &[Var]) = match operator {
        Operator::Conv => (&[C, Y, X], &[K, C, R, S], &[K, Y, X]),
        Operator::DepthwiseConv => (&[C, Y, X], &[C, R, S], &[C, Y, X]),
        Operator::GroupedConv => (&[G, C, Y, X], &[G, K, C, R, S], &[G, K, C, Y, X]),
        Operator::Gemm => (&[M, K], &[K, N], &[M, N]),
    };
    let with_batch = |vars: &[Var]| Tensor {
        vars: if batched && operator != Operator::Gemm {
            [&[N], vars].concat()
        } else {
            vars.to_vec()
        },
    };
    let weight = Tensor { vars: weight.to_vec() };
    ([with_batch(input), weight], with_batch(output))
}

/// Sizes of the layer; inputs and outputs are derived from each other without regard to the stride. 0: absent.
fn sizes(layer: &Layer, sliding: bool) -> Result<PerVar, MaestroError> {
    let mut dims = [0; Var::ALL.len()];
    for &(var, size) in &layer.dims {
        dims[var as usize] = i64::try_from(size).map_err(|_| MaestroError::Overflow("a dimension"))?;
    }
    if sliding {
        for (input, output, filter) in [(Var::X, Var::XOut, Var::S), (Var::Y, Var::YOut, Var::R)] {
            if dims[input as usize] == 0 && dims[output as usize] > 0 {
                dims[input as usize] = dims[output as usize] + dims[filter as usize] - 1;
            }
        }
    }
    Ok(dims)
}

/// X' and Y' become X and Y: the window grows by the filter's window less one.
fn input_centric(level: usize, directives: &[Directive]) -> Result<Vec<Map>, MaestroError> {
    let mut maps: Vec<Map> = Vec::with_capacity(directives.len() + 4);
    let size_of = |wanted: Var| {
        directives.iter().find_map(|d| match *d {
            Directive::SpatialMap { size, var, .. } | Directive::TemporalMap { size, var, .. } if var == wanted => {
                Some(size)
            }
            _ => None,
        })
    };
    for directive in directives {
        let (spatial, size, offset, var) = match *directive {
            Directive::SpatialMap { size, offset, var } => (true, size, offset, var),
            Directive::TemporalMap { size, offset, var } => (false, size, offset, var),
            Directive::Cluster(_) => continue,
        };
        let (var, filter) = match var {
            Var::XOut => (Var::X, Some(Var::S)),
            Var::YOut => (Var::Y, Some(Var::R)),
            other => (other, None),
        };
        let grown = match filter {
            None => size,
            Some(filter) => {
                let window = size_of(filter).ok_or(MaestroError::NoFilterMap {
                    level,
                    var: if var == Var::X { Var::XOut } else { Var::YOut },
                    filter,
                })?;
                size + window - 1
            }
        };
        maps.push(Map {
            var,
            spatial,
            size: i64::try_from(grown).map_err(|_| MaestroError::Overflow("a window"))?,
            offset: i64::try_from(offset).map_err(|_| MaestroError::Overflow("an offset"))?,
        });
    }
    Ok(maps)
}

/// Windows of X and Y as wide as the filter or wider: o outputs, their inputs less the holes between them, and an
/// offset of o strides.
fn apply_strides(layer: &Layer, top: bool, dims: &PerVar, maps: &mut [Map]) {
    for map in maps {
        let filter = match map.var {
            Var::X => dims[Var::S as usize],
            Var::Y => dims[Var::R as usize],
            _ => continue,
        };
        let stride = layer.stride(map.var) as i64;
        if stride == 1 || map.size < filter {
            continue;
        }
        let outputs = (map.size + stride - filter) / stride;
        map.size = outputs * stride.min(filter) + (filter - stride).max(0);
        map.offset = outputs * if !top && filter < stride { filter } else { stride };
    }
}

impl Level {
    fn new(l: usize, maps: Vec<Map>, clusters: i64, tile: &PerVar, problem: &Problem) -> Result<Self, MaestroError> {
        let mut place = [usize::MAX; Var::ALL.len()];
        let mut twice = false;
        for (i, map) in maps.iter().enumerate() {
            if tile[map.var as usize] == 0 {
                return Err(MaestroError::UnknownDimension { level: l, var: map.var });
            }
            if map.offset == 0 {
                return Err(MaestroError::ZeroOffset { level: l, var: map.var });
            }
            // Of two directives for a dimension the first counts for its place, the second for its state.
            twice |= place[map.var as usize] != usize::MAX;
            place[map.var as usize] = i.min(place[map.var as usize]);
        }
        let spatial: Vec<&Map> = maps.iter().filter(|m| m.spatial).collect();
        let edge_clusters = match spatial.as_slice() {
            [] => return Err(MaestroError::NoSpatialMap { level: l }),
            [first] | [first, _] => edge_clusters(first, clusters, tile[first.var as usize]),
            more => {
                return Err(MaestroError::TooManySpatialMaps {
                    level: l,
                    found: more.len(),
                });
            }
        };
        let mut level = Level {
            maps,
            place,
            twice,
            clusters,
            edge_clusters,
            mapped: [0; Var::ALL.len()],
            mapped_edge: [0; Var::ALL.len()],
            unique: [0; Var::ALL.len()],
            unique_edge: [0; Var::ALL.len()],
        };
        for map in &level.maps {
            let (v, dim) = (map.var as usize, tile[map.var as usize]);
            let steady = ((dim - map.size) / map.offset).max(0);
            let has_edge = steady * map.offset + map.size < dim || map.size > dim;
            level.mapped[v] = map.size;
            level.unique[v] = if !map.spatial && dim <= map.size {
                0
            } else {
                map.size.min(map.offset)
            };
            let rest = dim - (steady + 1) * map.offset;
            let edge = if rest < 0 { dim } else { rest };
            level.mapped_edge[v] = if has_edge { edge } else { map.size };
            level.unique_edge[v] = (map.offset - (map.size - edge)).max(0);
        }
        if problem.sliding {
            for (input, output, filter) in [(Var::X, Var::XOut, Var::S), (Var::Y, Var::YOut, Var::R)] {
                let (i, o, f) = (input as usize, output as usize, filter as usize);
                let map = &level.maps[level.place[i]];
                level.mapped[o] = level.mapped[i] - level.mapped[f] + 1;
                level.unique[o] = map.offset.min(map.size);
                level.mapped_edge[o] = level.mapped_edge[i] - level.mapped_edge[f] + 1;
                level.unique_edge[o] = map.offset.min(level.mapped_edge[o]);
            }
        }
        Ok(level)
    }
}

/// Instances that are active in the last step of the first spatial map.
fn edge_clusters(map: &Map, clusters: i64, dim: i64) -> i64 {
    let covered = map.offset * (clusters - 1) + map.size;
    if dim <= map.size {
        return 1;
    }
    if dim > covered {
        let steady = ((dim - map.size) / map.offset + 1) / clusters - 1;
        let rest = dim - (steady + 1) * map.offset * clusters;
        return if rest < map.size {
            1
        } else {
            (rest - map.size) / map.offset + 1
        };
    }
    let full = (dim - map.size) / map.offset + 1;
    full + i64::from(map.offset * (full - 1) + map.size < dim)
}
