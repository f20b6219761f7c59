//! Puts a lowered dataflow on a machine: on one that is given, or on one made for it.

use cyclonest_workloads::{Dim, Problem, Tensor, TensorMap, TensorSet};

use super::{LowerError, Lowered};
use crate::{
    Accelerator, AccessEnergy, Axis, Bank, Capacity, Channels, Clock, Compute, Level, LevelMapping, Link, Mapping,
    Network, NetworkKind, Ports, Reduction, SpatialLoop, Width, Word,
};

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
        let mut spread = Vec::new();
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
            spread.extend(cluster.spatial.map(|(dim, trips)| (at, dim, trips)));
        }
        // Where the first takes what the second one could only have, the second may choose first.
        let loops = spread_out(arch, spread.iter().copied())
            .or_else(|fault| {
                let turned = spread_out(arch, spread.iter().rev().copied());
                turned.map(|loops| loops.into_iter().rev().collect()).map_err(|_| fault)
            })
            .map_err(refuse)?;
        for (&(at, ..), placed) in spread.iter().zip(loops) {
            base.levels[at].spatial.extend(placed);
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
            energy: AccessEnergy {
                read: energy,
                write: energy,
            },
        };
        let level = |name: String, mesh, bank, below| Level {
            name,
            mesh,
            spatial: None,
            refresh: None,
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

/// Puts spatial loops (level above the fan-out, dimension, trips) on the meshes, one after the other.
fn spread_out(
    arch: &Accelerator,
    loops: impl Iterator<Item = (usize, Dim, u64)>,
) -> Result<Vec<Vec<SpatialLoop>>, String> {
    let mut free: Vec<(u64, u64)> = (0..arch.levels.len()).map(|l| arch.child_mesh(l)).collect();
    loops
        .map(|(at, dim, trips)| {
            let spatial = arch.levels.get(at + 1).and_then(|child| child.spatial.as_ref());
            let allowed = |axis: Axis| {
                spatial.is_none_or(|s| match axis {
                    Axis::X => s.x.contains(&dim),
                    Axis::Y => s.y.contains(&dim),
                })
            };
            place(dim, trips, &mut free[at], &allowed).ok_or_else(|| {
                let ((x, y), left) = (arch.child_mesh(at), free[at]);
                format!(
                    "{trips} instances over {dim} do not fit the {x}×{y} mesh below {}, of which {}×{} are left",
                    arch.levels[at].name, left.0, left.1
                )
            })
        })
        .collect()
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
