//! What MAESTRO says of a layer on a number of PEs, for any bandwidth and latency.
//!
//! Traffic, accesses and requirements do not depend on the network. Of the delays of a case only the maximum over
//! communication and computation does, so a layer is analysed once, and a sweep of the network costs a few additions
//! per case. Cases that do not differ are merged.

use cyclonest_arch::directives::{Layer, Var};

use super::analyze::analyze;
use super::cases::{Cases, State};
use super::levels::{PerVar, Problem};
use super::reuse::Case;
use super::{Evaluation, Machine, MaestroError};

/// A network: what [`Profile::runtime`] depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Elements per cycle.
    pub bandwidth: u64,
    /// Cycles until the first arrives.
    pub latency: u64,
    /// Elements per cycle to and from the outside.
    pub offchip_bandwidth: u64,
}

/// An analysed layer.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Levels with their tiles, those further in first; the last is the whole layer.
    tiles: Vec<Tile>,
    /// L2 that inputs and weights, and outputs need.
    l2_required: (i64, i64),
    evaluation: Evaluation,
}

#[derive(Debug, Clone, Default)]
struct Tile {
    cases: Vec<Row>,
}

/// Cases with the same delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    first: bool,
    ingress: i64,
    egress: i64,
    compute: Compute,
    occurrences: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Compute {
    /// The critical path of a PE.
    Cycles(i64),
    /// The longer of two tiles further in.
    Tiles(usize, usize),
}

struct Build<'a> {
    problem: &'a Problem,
    tiles: Vec<Tile>,
    /// Where each level's tiles are.
    known: Vec<Vec<(PerVar, usize)>>,
}

impl Profile {
    /// Analyses `layer` on `pes` PEs.
    ///
    /// # Errors
    /// Where MAESTRO stops or crashes, whatever the network.
    pub fn new(layer: &Layer, pes: u64) -> Result<Self, MaestroError> {
        let machine = Machine {
            pes,
            noc_bandwidth: u64::from(u32::MAX),
            noc_latency: 1,
            offchip_bandwidth: u64::from(u32::MAX),
        };
        let problem = Problem::new(layer, &machine, layer.size(Var::N).is_some())?;
        let evaluation = analyze(&problem, &machine)?;
        let mut build = Build {
            problem: &problem,
            tiles: Vec::new(),
            known: vec![Vec::new(); problem.levels.len()],
        };
        build.tile(0, &problem.dims)?;
        let [inputs, weights, outputs] = evaluation.tensors.map(|t| t.l2_required);
        Ok(Profile {
            tiles: build.tiles,
            l2_required: (inputs + weights, outputs),
            evaluation,
        })
    }

    /// The evaluation, on a network that is never the limit. Its accesses, MACs and requirements are those of any
    /// network.
    #[must_use]
    pub fn evaluation(&self) -> &Evaluation {
        &self.evaluation
    }

    /// Runtime with this network \[cycles\], as [`evaluate`](super::evaluate) gives it.
    ///
    /// `scratch` is memory that is used again; what is in it does not matter.
    ///
    /// # Errors
    /// If a bandwidth is 0, or nothing is computed in a case of the outermost level.
    pub fn runtime(&self, link: Link, scratch: &mut Vec<i64>) -> Result<i64, MaestroError> {
        for (name, bandwidth) in [("network", link.bandwidth), ("off-chip", link.offchip_bandwidth)] {
            if bandwidth == 0 {
                return Err(MaestroError::NoBandwidth(name));
            }
        }
        let (bandwidth, latency) = (link.bandwidth as i64, link.latency as i64);
        let transfer = |volume: i64| latency + volume / bandwidth + i64::from(volume % bandwidth != 0) - 1;
        scratch.clear();
        let outermost = self.tiles.len() - 1;
        let offchip = link.offchip_bandwidth as i64;
        let outside = (self.l2_required.0 / offchip / 2).max(self.l2_required.1 / offchip / 2);
        for (t, tile) in self.tiles.iter().enumerate() {
            let mut runtime = 0;
            for row in &tile.cases {
                let compute = match row.compute {
                    Compute::Cycles(cycles) => cycles,
                    // As the original starts from 0.
                    Compute::Tiles(a, b) => scratch[a].max(scratch[b]).max(0),
                };
                let (delay_in, delay_out) = (transfer(row.ingress), transfer(row.egress));
                let mut delay = if row.first {
                    compute + delay_in
                } else {
                    delay_out.max(compute).max(delay_in)
                };
                if t == outermost {
                    if compute == 0 {
                        return Err(MaestroError::NothingComputed);
                    }
                    delay = delay.max(outside);
                }
                runtime += row.occurrences * delay;
            }
            scratch.push(runtime);
        }
        Ok(scratch[outermost])
    }
}

impl Build<'_> {
    /// Adds the tile of a level after those further in; returns its place.
    fn tile(&mut self, l: usize, dims: &PerVar) -> Result<usize, MaestroError> {
        if let Some(&(_, at)) = self.known[l].iter().find(|(tile, _)| tile == dims) {
            return Ok(at);
        }
        let problem = self.problem;
        let level = &problem.levels[l];
        let cases = Cases::new(level, dims);
        let mut states: Vec<State> = Vec::with_capacity(level.maps.len());
        let driver = level.maps.iter().position(|m| m.spatial).unwrap_or(0);
        let mut rows = Vec::new();
        for i in 0..cases.count() {
            let occurrences = cases
                .fill(i, &mut states)
                .ok_or(MaestroError::Overflow("the number of iterations"))?;
            let case = Case {
                problem,
                index: l,
                level,
                states: &states,
            };
            let critical = case.critical_partial_sums();
            if critical <= 0 {
                continue;
            }
            let mut ingress = 0;
            for tensor in &problem.inputs {
                ingress += case.ingress(tensor)?;
            }
            let compute = if l + 1 < problem.levels.len() {
                let spatial = states[driver];
                let partial = spatial.edge && spatial.partial;
                let first = self.tile(l + 1, &case.tile(partial))?;
                let second = if partial && level.edge_clusters > 1 {
                    self.tile(l + 1, &case.tile(false))?
                } else {
                    first
                };
                Compute::Tiles(first, second)
            } else {
                Compute::Cycles(critical)
            };
            rows.push(Row {
                first: case.is_all_init(),
                ingress,
                egress: case.egress()?,
                compute,
                occurrences,
            });
        }
        rows.sort_unstable();
        rows.dedup_by(|next, kept| {
            let same = (kept.first, kept.ingress, kept.egress, kept.compute)
                == (next.first, next.ingress, next.egress, next.compute);
            if same {
                kept.occurrences += next.occurrences;
            }
            same
        });
        self.tiles.push(Tile { cases: rows });
        self.known[l].push((*dims, self.tiles.len() - 1));
        Ok(self.tiles.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::maestro::evaluate;
    use cyclonest_arch::directives::Style;
    use cyclonest_workloads::{Dim, DimMap, Pair};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// The original analyses everything again for every network; the profile must not tell the difference.
        #[test]
        fn a_profile_gives_the_runtime_of_every_network(
            style in 0..5_usize,
            (k, c, pixels, filter, stride) in (1..40_u64, 1..40_u64, (1..20_u64, 1..20_u64), 1..4_u64, 1..3_u64),
            (pes, bandwidth, latency, offchip) in (1..200_u64, 1..100_u64, 0..4_u64, 1..50_u64),
            depthwise in any::<bool>(),
        ) {
            let mut bounds = DimMap::ones();
            let channels = if depthwise { [(Dim::G, c), (Dim::K, 1), (Dim::C, 1)] } else { [(Dim::G, 1), (Dim::K, k), (Dim::C, c)] };
            for (dim, n) in channels.into_iter().chain([
                (Dim::P, pixels.0), (Dim::Q, pixels.1), (Dim::R, filter), (Dim::S, filter),
            ]) {
                bounds[dim] = n;
            }
            let problem = cyclonest_workloads::Problem { stride: Pair(stride, stride), ..cyclonest_workloads::Problem::new(bounds) };
            let layer = Style::ALL[style].layer("l", &problem, pes).unwrap();
            let link = Link { bandwidth, latency, offchip_bandwidth: offchip };
            let machine = Machine { pes, noc_bandwidth: bandwidth, noc_latency: latency, offchip_bandwidth: offchip };
            match (Profile::new(&layer, pes), evaluate(&layer, &machine)) {
                (Ok(profile), expected) => {
                    let runtime = profile.runtime(link, &mut Vec::new());
                    prop_assert_eq!(runtime.clone().ok(), expected.as_ref().ok().map(|e| e.runtime));
                    if let Ok(expected) = expected {
                        prop_assert_eq!(profile.evaluation().tensors, expected.tensors);
                        prop_assert_eq!(profile.evaluation().macs, expected.macs);
                    }
                }
                (Err(error), expected) => prop_assert_eq!(Some(error), expected.err()),
            }
        }
    }
}
