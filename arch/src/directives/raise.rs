//! From a mapping to directives.
//!
//! Every spatial loop becomes a cluster level with the temporal loops outside it; what happens inside a PE is not
//! described. The notation needs one directive per dimension and level, and a filter that is whole wherever rows and
//! columns move, except on the diagonal of a row-stationary array. A spatial loop and the temporal loop of the same
//! dimension directly outside are one `SpatialMap` that is folded.

use cyclonest_workloads::{Dim, DimMap, Problem};

use super::templates::describe;
use super::{Directive, Layer, Operator, Undescribable, Var};
use crate::Mapping;

/// Why a mapping has no directives.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RaiseError {
    /// The layer is dilated.
    #[error(transparent)]
    Dilated(#[from] Undescribable),
    /// Two loops of a dimension at one cluster level, with another loop between them.
    #[error("{dim} is looped twice at cluster level {level}, with other loops between")]
    LoopedTwice {
        /// The dimension.
        dim: Dim,
        /// Cluster level, 0 outermost.
        level: usize,
    },
    /// A part of the filter at a time.
    #[error("cluster level {level}: {dim} is split over time; MAESTRO maps it whole")]
    SplitFilter {
        /// R or S.
        dim: Dim,
        /// Cluster level, 0 outermost.
        level: usize,
    },
    /// A part of the filter per instance while it computes more than one row or column.
    #[error("cluster level {level}: {dim} is spread over instances that compute several outputs along it")]
    SpreadFilter {
        /// R or S.
        dim: Dim,
        /// Cluster level, 0 outermost.
        level: usize,
    },
}

/// A layer with its dataflow and the PEs that it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raised {
    /// The layer.
    pub layer: Layer,
    /// PEs used: the product of all spatial loops.
    pub pes: u64,
}

/// One loop of the nest, outermost first.
#[derive(Debug, Clone, Copy)]
struct NestLoop {
    dim: Dim,
    trips: u64,
    spatial: bool,
    /// Extent of the dimension inside one iteration.
    inner: u64,
}

/// Describes `mapping` in directives.
///
/// # Errors
/// If the notation cannot say it; see [`RaiseError`].
pub fn raise(name: &str, problem: &Problem, mapping: &Mapping) -> Result<Raised, RaiseError> {
    let mut layer = describe(name, problem)?;
    let mut nest = loops(problem, mapping);
    let pes = nest.iter().filter(|l| l.spatial).map(|l| l.trips).product();
    match nest.iter().rposition(|l| l.spatial) {
        Some(last) => nest.truncate(last + 1),
        None => {
            // MAESTRO needs a spatial map: all of a dimension in the one PE.
            nest.clear();
            nest.push(NestLoop {
                dim: if layer.operator == Operator::DepthwiseConv {
                    Dim::G
                } else {
                    Dim::K
                },
                trips: 1,
                spatial: true,
                inner: u64::MAX,
            });
        }
    }
    let mut tile = problem.bounds;
    for (level, group) in nest.split_inclusive(|l| l.spatial).enumerate() {
        if level > 0 {
            let instances = group.last().map_or(1, |l| l.trips);
            layer.dataflow.push(Directive::Cluster(instances));
        }
        let directives = describe_level(problem, &layer, level, group, &mut tile)?;
        layer.dataflow.extend(directives);
    }
    Ok(Raised { layer, pes })
}

/// All loops that run more than once, with what is left of the dimension inside.
fn loops(problem: &Problem, mapping: &Mapping) -> Vec<NestLoop> {
    let mut nest: Vec<NestLoop> = Vec::new();
    let mut left = DimMap::ones();
    for level in mapping.levels.iter().rev() {
        let spatial = level.spatial.iter().rev().map(|s| (s.0, s.1, true));
        let temporal = level.temporal.iter().rev().map(|t| (t.0, t.1, false));
        for (dim, trips, spatial) in spatial.chain(temporal) {
            let bound = problem.bounds[dim];
            let inner: u64 = left[dim];
            let runs = bound.div_ceil(inner).min(trips);
            if runs > 1 {
                nest.push(NestLoop {
                    dim,
                    trips: runs,
                    spatial,
                    inner,
                });
            }
            left[dim] = inner.saturating_mul(trips).min(bound);
        }
    }
    nest.reverse();
    nest
}

fn describe_level(
    problem: &Problem,
    layer: &Layer,
    level: usize,
    group: &[NestLoop],
    tile: &mut DimMap<u64>,
) -> Result<Vec<Directive>, RaiseError> {
    let mut merged: Vec<NestLoop> = Vec::new();
    for l in group {
        match merged.iter().position(|m| m.dim == l.dim) {
            Some(at) if l.spatial => {
                // A fold: the spatial map stands where its temporal loop stood.
                merged[at].spatial = true;
                merged[at].inner = l.inner;
            }
            Some(at) if at + 1 == merged.len() => merged[at].inner = l.inner,
            Some(_) => return Err(RaiseError::LoopedTwice { dim: l.dim, level }),
            None => merged.push(*l),
        }
    }
    let mut directives = Vec::new();
    for l in &merged {
        let map = |size, offset, var| {
            if l.spatial {
                Directive::spatial(size, offset, var)
            } else {
                Directive::temporal(size, offset, var)
            }
        };
        let size = l.inner.min(tile[l.dim]);
        match l.dim {
            Dim::P | Dim::Q => {
                let (var, taps, stride) = if l.dim == Dim::P {
                    (Var::Y, Dim::R, problem.stride.0)
                } else {
                    (Var::X, Dim::S, problem.stride.1)
                };
                if tile[taps] != problem.bounds[taps] {
                    return Err(RaiseError::SplitFilter { dim: taps, level });
                }
                directives.push(map((size - 1) * stride + tile[taps], size * stride, var));
            }
            Dim::R | Dim::S if !l.spatial => return Err(RaiseError::SplitFilter { dim: l.dim, level }),
            Dim::R | Dim::S => {
                let (filter, input, outputs) = if l.dim == Dim::R {
                    (Var::R, Var::Y, Dim::P)
                } else {
                    (Var::S, Var::X, Dim::Q)
                };
                if tile[outputs] != 1 || size != 1 {
                    return Err(RaiseError::SpreadFilter { dim: l.dim, level });
                }
                directives.push(Directive::spatial(1, 1, input));
                directives.push(Directive::spatial(1, 1, filter));
            }
            dim => {
                let var = match (layer.operator, dim) {
                    (Operator::DepthwiseConv, Dim::G) => Var::C,
                    (_, Dim::G) => Var::G,
                    (_, Dim::K) => Var::K,
                    (_, Dim::C) => Var::C,
                    _ => Var::N,
                };
                directives.push(map(size, size, var));
            }
        }
        tile[l.dim] = size;
    }
    Ok(directives)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::{Style, lower};

    /// Lowered and raised again, a dataflow says the same.
    #[test]
    fn lowering_is_undone_by_raising() {
        let mut bounds = DimMap::ones();
        for (dim, n) in [
            (Dim::K, 8),
            (Dim::C, 6),
            (Dim::P, 5),
            (Dim::Q, 9),
            (Dim::R, 3),
            (Dim::S, 3),
        ] {
            bounds[dim] = n;
        }
        let problem = Problem::new(bounds);
        for style in Style::ALL {
            let layer = style.layer("layer", &problem, 24).unwrap();
            let lowered = lower(&layer, 24).unwrap();
            let (_, mapping) = lowered.machine(8, 1).unwrap();
            let raised = raise("layer", &problem, &mapping).unwrap();
            let again = lower(&raised.layer, raised.pes).unwrap();
            let used = |l: &crate::directives::Lowered| {
                let loops = l.levels.iter().flat_map(|c| {
                    let temporal = c.temporal.iter().map(|t| (t.0, t.1, false));
                    temporal.chain(c.spatial.map(|s| (s.0, s.1, true)))
                });
                loops.collect::<Vec<_>>()
            };
            assert_eq!(used(&again), used(&lowered), "{}\n{}", style.name(), raised.layer);
        }
    }

    #[test]
    fn what_the_notation_cannot_say_is_refused() {
        use crate::{LevelMapping, Loop};
        use cyclonest_workloads::TensorSet;
        let mut bounds = DimMap::ones();
        (bounds[Dim::K], bounds[Dim::R], bounds[Dim::P]) = (8, 3, 4);
        let level = |temporal: Vec<Loop>, spatial| LevelMapping {
            level: String::new(),
            temporal,
            spatial,
            keeps: TensorSet::ALL,
        };
        let refused = |temporal| {
            let spatial = vec![crate::SpatialLoop(Dim::K, 2, crate::Axis::X)];
            let mapping = Mapping {
                bounds,
                levels: vec![level(temporal, spatial), level(vec![], vec![])],
            };
            raise("l", &Problem::new(bounds), &mapping).unwrap_err().to_string()
        };
        assert_eq!(
            refused(vec![Loop(Dim::R, 3)]),
            "cluster level 0: R is split over time; MAESTRO maps it whole"
        );
        assert_eq!(
            refused(vec![Loop(Dim::P, 2), Loop(Dim::K, 4), Loop(Dim::P, 2)]),
            "P is looped twice at cluster level 0, with other loops between"
        );
    }
}
