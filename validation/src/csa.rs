//! The scheduler `csa`: SConv's macro-kernel as a mapping.
//!
//! It is for machines with the memories of a CPU: registers innermost, then at least two caches. The register file says
//! which micro-kernel runs: as many windows as its input bank has words, as many filters as its output bank has words per
//! window. CSA then tiles for the caches above it, and its five loops become the temporal loops of the levels:
//!
//! ```text
//! memory: for C tiles, for blocks of K3 stationary tiles, for blocks of K2 streamed tiles
//! L3:     for the K3 stationary tiles of a block
//! L2:     for the K2 streamed tiles of a block
//! L1:     for the channels and taps of a tile          (one burst: a call of the micro-kernel)
//! Reg:    for the filters of a tile, windows in lanes
//! ```
//!
//! The loops of a level that the machine lacks go to the next outer one.

use cyclonest_arch::{Accelerator, Axis, LevelMapping, Loop, Mapping, SpatialLoop};
use cyclonest_scheduler::{Request, ScheduleError, Scheduled, Scheduler};
use cyclonest_sconv::{Analysis, Caches, Fill, MicroTile, Stationary, Tiling, csa};
use cyclonest_workloads::{Dim, Problem, Tensor, TensorSet};

use crate::native::layers::shape_of;

/// SConv's convolution slicing analysis as a scheduler.
#[derive(Debug, Clone, Copy, Default)]
pub struct Csa;

impl Scheduler for Csa {
    fn name(&self) -> &str {
        "csa"
    }

    fn schedule(&self, request: &Request<'_>) -> Result<Scheduled, ScheduleError> {
        let core = Core::of(request.arch).map_err(ScheduleError::Infeasible)?;
        let mut tiling = core.analyse(request.problem, Fill::default()).best();
        // Slots side by side need room that CSA does not count: halve the channels until the machine takes the mapping.
        let mut tried = 0;
        loop {
            tried += 1;
            let mapping = core.mapping(request.problem, request.arch, &tiling);
            let violations = mapping.check(request.problem, request.arch);
            if violations.is_empty() {
                let estimate = request
                    .oracle
                    .and_then(|oracle| oracle.evaluate(request.problem, request.arch, &mapping).ok());
                return Ok(Scheduled {
                    mapping,
                    evaluations: u64::from(estimate.is_some()),
                    estimate,
                    tried,
                    valid: 1,
                    convergence: Vec::new(),
                    refereed: None,
                    proof: None,
                });
            }
            if tiling.nc == 1 && tiling.k2 == 1 && tiling.k3 == 1 {
                let text = violations
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("; ");
                return Err(ScheduleError::Infeasible(text));
            }
            if tiling.nc > 1 {
                tiling.nc = tiling.nc.div_ceil(2);
            } else {
                (tiling.k2, tiling.k3) = (tiling.k2.div_ceil(2), tiling.k3.div_ceil(2));
            }
        }
    }
}

/// A machine with the memories of a CPU core.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Core {
    /// The micro-kernel.
    pub(crate) micro: MicroTile,
    /// Sizes and latencies.
    pub(crate) caches: Caches,
    /// Levels.
    levels: usize,
}

impl Core {
    /// Reads it from a machine; what is missing, if it is none.
    pub(crate) fn of(arch: &Accelerator) -> Result<Self, String> {
        let wants = |what: &str| {
            format!(
                "csa needs a machine with the memories of a CPU core; {} has no {what}",
                arch.name
            )
        };
        let count = arch.levels.len();
        if count < 3 || arch.event_level() != count - 2 {
            return Err(wants("registers inside its PE level with a cache outside"));
        }
        let registers = &arch.levels[count - 1];
        let words = |tensor: Tensor| registers.bank(tensor).and_then(|bank| bank.size.words());
        let windows = words(Tensor::Inputs)
            .filter(|n| *n > 0)
            .ok_or_else(|| wants("register bank of input words"))? as usize;
        let sums = words(Tensor::Outputs)
            .filter(|n| *n > 0)
            .ok_or_else(|| wants("register bank of output words"))? as usize;
        let micro = MicroTile {
            windows,
            filters: (sums / windows).max(1),
        };
        // Innermost first: L1 is the PE level.
        let cache = |above: usize| arch.levels.get((count - 2).checked_sub(above)?)?.bank(Tensor::Inputs);
        let size = |above: usize| {
            cache(above)
                .and_then(|bank| bank.size.bits())
                .map(|bits| (bits / 8) as usize)
        };
        let defaults = Caches::default();
        let l1 = size(0).ok_or_else(|| wants("size of its innermost cache"))?;
        let l2 = size(1).unwrap_or(defaults.l2.max(l1));
        let mut latency = [0.0; 4];
        let mut sum = 0.0;
        for (above, latency) in latency.iter_mut().enumerate() {
            sum += cache(above).map_or(0.0, |bank| bank.latency as f64);
            *latency = sum;
        }
        let caches = Caches {
            l1,
            l2,
            l3: size(2).unwrap_or(defaults.l3.max(l2)),
            latency,
            ..defaults
        };
        Ok(Core {
            micro,
            caches,
            levels: count,
        })
    }

    /// CSA of a problem on this core.
    pub(crate) fn analyse(&self, problem: &Problem, fill: Fill) -> Analysis {
        csa(&shape_of(problem), self.micro, &self.caches, fill)
    }

    /// The macro-kernel with this tiling as a mapping.
    pub(crate) fn mapping(&self, problem: &Problem, arch: &Accelerator, tiling: &Tiling) -> Mapping {
        let b = |dim: Dim| problem.bounds[dim];
        let lanes = arch.compute.lanes;
        let micro = self.micro;
        // Windows of a tile as rows × columns, the split with the fewest tiles; columns are spread over the lanes.
        let (rows, columns) = window_tile(b(Dim::P), b(Dim::Q), micro.windows as u64);
        let spread = lanes.0.min(columns * rows);
        let (lane_columns, lane_rows) = if columns >= spread {
            (spread, 1)
        } else {
            (columns, (spread / columns).clamp(1, rows))
        };
        let lane_filters = lanes.1.min(b(Dim::K));
        let filters = (micro.filters as u64).div_ceil(lane_filters);
        let nc = tiling.nc as u64;

        let (tiles_p, tiles_q) = (b(Dim::P).div_ceil(rows), b(Dim::Q).div_ceil(columns));
        let filter_tiles = b(Dim::K).div_ceil(lane_filters * filters);
        let channel_tiles = b(Dim::C).div_ceil(nc);
        // Window tiles of a block, as rows × columns of tiles.
        let block = |tiles: u64| {
            let q = tiles.clamp(1, tiles_q);
            ((tiles / q).clamp(1, tiles_p), q)
        };
        let windows = |(p, q): (u64, u64)| vec![Loop(Dim::P, p), Loop(Dim::Q, q)];
        let (k2, k3) = (tiling.k2 as u64, tiling.k3 as u64);
        let (mut memory, third, second) = match tiling.stationary {
            Stationary::Weight => {
                let (p, q) = block(k2);
                let stays = k3.min(filter_tiles);
                let mut outer = vec![Loop(Dim::K, filter_tiles.div_ceil(stays))];
                outer.extend(windows((tiles_p.div_ceil(p), tiles_q.div_ceil(q))));
                (outer, vec![Loop(Dim::K, stays)], windows((p, q)))
            }
            Stationary::Input => {
                let (p, q) = block(k3);
                let streams = k2.min(filter_tiles);
                let mut outer = windows((tiles_p.div_ceil(p), tiles_q.div_ceil(q)));
                outer.push(Loop(Dim::K, filter_tiles.div_ceil(streams)));
                (outer, windows((p, q)), vec![Loop(Dim::K, streams)])
            }
        };
        memory.insert(0, Loop(Dim::C, channel_tiles));
        memory.splice(0..0, [Loop(Dim::N, b(Dim::N)), Loop(Dim::G, b(Dim::G))]);

        let burst = vec![Loop(Dim::C, nc), Loop(Dim::R, b(Dim::R)), Loop(Dim::S, b(Dim::S))];
        let kernel = vec![
            Loop(Dim::K, filters),
            Loop(Dim::P, rows.div_ceil(lane_rows)),
            Loop(Dim::Q, columns.div_ceil(lane_columns)),
        ];
        // Innermost first; what is left over goes to the outermost level.
        let inner = [kernel, burst, second, third, memory];
        let mut temporal: Vec<Vec<Loop>> = vec![Vec::new(); self.levels];
        for (index, loops) in inner.into_iter().enumerate() {
            let level = (self.levels - 1).saturating_sub(index);
            temporal[level].splice(0..0, loops.into_iter().filter(|l| l.1 > 1));
        }
        let mut spatial: Vec<SpatialLoop> = Vec::new();
        let lane_loops = [
            (Dim::P, lane_rows, Axis::X),
            (Dim::Q, lane_columns, Axis::X),
            (Dim::K, lane_filters, Axis::Y),
        ];
        spatial.extend(
            lane_loops
                .into_iter()
                .filter(|l| l.1 > 1)
                .map(|(dim, trips, axis)| SpatialLoop(dim, trips, axis)),
        );
        let levels = arch
            .levels
            .iter()
            .zip(temporal)
            .enumerate()
            .map(|(index, (level, temporal))| {
                let mut keeps = TensorSet::EMPTY;
                Tensor::ALL
                    .into_iter()
                    .filter(|t| level.bank(*t).is_some())
                    .for_each(|t| keeps.insert(t));
                let spatial = if index + 1 == self.levels {
                    std::mem::take(&mut spatial)
                } else {
                    Vec::new()
                };
                LevelMapping {
                    level: level.name.clone(),
                    temporal,
                    spatial,
                    keeps,
                }
            })
            .collect();
        Mapping {
            bounds: problem.bounds,
            levels,
        }
    }
}

/// Rows and columns of output positions, at most `most` in all, that cover p×q with the fewest tiles; wide ones first.
fn window_tile(p: u64, q: u64, most: u64) -> (u64, u64) {
    (1..=most.min(q))
        .rev()
        .map(|columns| ((most / columns).clamp(1, p), columns))
        .min_by_key(|(rows, columns)| p.div_ceil(*rows) * q.div_ceil(*columns))
        .unwrap_or((1, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclonest_sim::Options;
    use cyclonest_workloads::{DimMap, Pair};

    #[test]
    fn windows_are_cut_into_the_fewest_tiles() {
        assert_eq!(window_tile(1, 196, 16), (1, 16));
        assert_eq!(window_tile(28, 28, 16), (4, 4));
        let (rows, columns) = window_tile(14, 14, 16);
        assert_eq!(14u64.div_ceil(rows) * 14u64.div_ceil(columns), 14);
    }

    fn problem(k: u64, c: u64, p: u64, q: u64, r: u64) -> Problem {
        Problem {
            stride: Pair(1, 1),
            ..Problem::new(DimMap([1, 1, k, c, p, q, r, r]))
        }
    }

    #[test]
    fn the_mapping_is_valid_and_computes_the_layer() {
        let arch = cyclonest_arch::bundled::load("skylake_x").expect("bundled");
        for problem in [
            problem(64, 24, 9, 13, 3),
            problem(50, 300, 7, 7, 1),
            problem(3, 5, 1, 1, 5),
        ] {
            let scheduled = Csa.schedule(&Request::new(&problem, &arch)).expect("mapped");
            let options = Options {
                check_values: true,
                ..Options::default()
            };
            let outcome = cyclonest_sim::simulate(&problem, &arch, &scheduled.mapping, options).expect("simulated");
            assert_eq!(outcome.counts.macs, problem.macs());
        }
    }

    #[test]
    fn x86_keeps_weights_and_power10_keeps_inputs() {
        // The finding of the paper (TACO 2023): the kernel with more filters than windows streams the inputs, and the
        // other way round.
        for (name, expected) in [("skylake_x", Stationary::Weight), ("power10", Stationary::Input)] {
            let core = Core::of(&cyclonest_arch::bundled::load(name).expect("bundled")).expect("a core");
            let layers = crate::native::layers::published();
            let agreeing = layers.iter().filter(|layer| {
                csa(&layer.shape, core.micro, &core.caches, Fill::default())
                    .best()
                    .stationary
                    == expected
            });
            assert_eq!(agreeing.count(), layers.len(), "{name}");
        }
    }

    #[test]
    fn a_machine_that_is_no_cpu_is_refused_with_what_it_lacks() {
        let arch = cyclonest_arch::bundled::load("small3").expect("bundled");
        let error = Csa
            .schedule(&Request::new(&problem(4, 4, 4, 4, 1), &arch))
            .expect_err("no registers");
        assert!(error.to_string().contains("registers"), "{error}");
    }
}
