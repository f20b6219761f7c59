//! Gemmini's RTL under FireSim, against the machine `gemmini` with the recorded mappings.
//!
//! A mapping is a string like `L3[WIO] K48 - L2[WI] N1 K16X - L1[O] C48 P16 C16X - L0[W] P8`: levels and loops outermost
//! first, X for spatial loops. L3 is the DRAM, L2 the scratchpad, L1 the accumulator, L0 the weights in the array.
//! Within a tile the array is weight stationary, so that rows and columns run innermost, whatever the order of the
//! inner loops in the string. The recorded sizes of scratchpad and accumulator are those that one tile takes; the machine
//! keeps two, because loads, execution and stores are decoupled.

use std::path::Path;

use cyclonest_arch::{Accelerator, Axis, Capacity, LevelMapping, Loop, Mapping, Ports, SpatialLoop, Width, bundled};
use cyclonest_scheduler::cost::{CostModel, by_name};
use cyclonest_sim::{FastForward, Options, simulate};
use cyclonest_workloads::{Dim, DimMap, Pair as Both, Problem, Tensor, TensorSet};
use serde::{Deserialize, Serialize};

use crate::compare::{Agreement, Pair};

/// The records that come with the crate.
pub const RECORDS: &str = include_str!("../../data/gemmini_firesim.jsonl");

/// One run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Record {
    shape: Shape,
    mapping: String,
    cycles: f64,
    timeloop_cycles: f64,
}

/// A convolution; stride in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[allow(non_snake_case)]
struct Shape {
    N: u64,
    C: u64,
    K: u64,
    P: u64,
    Q: u64,
    R: u64,
    S: u64,
    stride: u64,
}

/// One run beside its simulation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its bounds, as `C256 K256 P14`.
    pub layer: String,
    /// The mapping as recorded.
    pub mapping: String,
    /// RTL cycles.
    pub rtl: f64,
    /// Simulated.
    pub simulated: f64,
    /// Timeloop's cycles in the record.
    pub timeloop: f64,
    /// The model `exact`.
    pub exact: f64,
    /// The model `maestro`; `None` where its directives cannot express the mapping.
    pub maestro: Option<f64>,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// One per record that could be read and run, in order.
    pub rows: Vec<Row>,
    /// Agreement with the RTL: the simulation, Timeloop, `exact`, `maestro`.
    pub agreement: Vec<(String, Agreement)>,
    /// The simulation's agreement where an assumed constant is halved or doubled.
    pub sensitivity: Vec<(String, Agreement)>,
    /// Records without a result: where, and why.
    pub failed: Vec<String>,
}

/// Runs the records of the files; those of the crate if there are none.
///
/// # Errors
/// If a file cannot be read.
pub fn run<P: AsRef<Path>>(files: &[P], seed: u64) -> Result<Report, String> {
    let mut texts = Vec::new();
    for file in files {
        let name = file.as_ref().display().to_string();
        let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: cannot be read: {error}"))?;
        texts.push((name, text));
    }
    if texts.is_empty() {
        texts.push(("gemmini_firesim.jsonl".to_owned(), RECORDS.to_owned()));
    }
    let arch = machine()?;
    let (mut rows, mut failed, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for (name, text) in &texts {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let place = format!("{name}:{}", index + 1);
            match Run::read(line, &arch).and_then(|run| Ok((run.row(&arch)?, run))) {
                Ok((row, run)) => {
                    rows.push(row);
                    runs.push(run);
                }
                Err(error) => failed.push(format!("{place}: {error}")),
            }
        }
    }
    let agreement = |estimate: &dyn Fn(&Row) -> Option<f64>| {
        let pairs: Vec<Pair> = rows
            .iter()
            .filter_map(|row| {
                let estimated = estimate(row)?;
                Some(Pair {
                    measured: row.rtl,
                    estimated,
                })
            })
            .collect();
        Agreement::of(&pairs, true, seed)
    };
    let all = vec![
        ("simulation".to_owned(), agreement(&|row| Some(row.simulated))),
        ("Timeloop".to_owned(), agreement(&|row| Some(row.timeloop))),
        ("exact".to_owned(), agreement(&|row| Some(row.exact))),
        ("maestro".to_owned(), agreement(&|row| row.maestro)),
    ];
    let mut sensitivity = Vec::new();
    for (what, vary) in VARIATIONS {
        let mut varied = arch.clone();
        vary(&mut varied);
        let pairs: Vec<Pair> = runs
            .iter()
            .filter_map(|run| {
                let estimated = run.simulate(&varied).ok()?;
                Some(Pair {
                    measured: run.record.cycles,
                    estimated,
                })
            })
            .collect();
        sensitivity.push(((*what).to_owned(), Agreement::of(&pairs, true, seed)));
    }
    Ok(Report {
        rows,
        agreement: all,
        sensitivity,
        failed,
    })
}

type Variation = (&'static str, fn(&mut Accelerator));

/// The constants that are assumed, and those that the memory system behind the DMA may change.
const VARIATIONS: &[Variation] = &[
    ("memory port 4 bytes per cycle instead of 8", |arch| port(arch, 4)),
    ("memory port 16 bytes per cycle instead of 8", |arch| port(arch, 16)),
    ("memory latency 30 instead of 60", |arch| {
        arch.levels[0].banks[0].latency = 30
    }),
    ("memory latency 120 instead of 60", |arch| {
        arch.levels[0].banks[0].latency = 120
    }),
    ("one tile at a time in the scratchpad, not two", |arch| {
        for bank in &mut arch.levels[1].banks {
            bank.slots.values_mut().for_each(|slots| *slots = 1);
        }
    }),
];

fn port(arch: &mut Accelerator, bytes: u64) {
    arch.levels[0].banks[0].ports = Ports::Shared {
        read: Width::Bytes(bytes),
        write: Width::Bytes(bytes),
    };
}

/// The bundled machine with room for the tiles that were run.
fn machine() -> Result<Accelerator, String> {
    let mut arch = bundled::load("gemmini").ok_or("the machine gemmini is missing")?;
    for bank in &mut arch.levels[1].banks {
        bank.size = Capacity::Unbounded;
    }
    Ok(arch)
}

/// A record with its problem and mapping.
struct Run {
    record: Record,
    problem: Problem,
    mapping: Mapping,
}

impl Run {
    fn read(line: &str, arch: &Accelerator) -> Result<Self, String> {
        let record: Record = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if record.cycles <= 0.0 {
            return Err(format!("{} cycles", record.cycles));
        }
        let s = &record.shape;
        let mut bounds = DimMap::ones();
        for (dim, bound) in [
            (Dim::N, s.N),
            (Dim::K, s.K),
            (Dim::C, s.C),
            (Dim::P, s.P),
            (Dim::Q, s.Q),
            (Dim::R, s.R),
            (Dim::S, s.S),
        ] {
            if bound == 0 {
                return Err(format!("{dim} is 0"));
            }
            bounds[dim] = bound;
        }
        let problem = Problem {
            stride: Both(s.stride.max(1), s.stride.max(1)),
            ..Problem::new(bounds)
        };
        let mapping = parse(&record.mapping, &problem, arch)?;
        Ok(Run {
            record,
            problem,
            mapping,
        })
    }

    fn simulate(&self, arch: &Accelerator) -> Result<f64, String> {
        let options = Options {
            fast_forward: FastForward::On,
            ..Options::default()
        };
        let outcome = simulate(&self.problem, arch, &self.mapping, options).map_err(|error| error.to_string())?;
        Ok(outcome.cycles as f64)
    }

    fn row(&self, arch: &Accelerator) -> Result<Row, String> {
        let model = |name: &str| -> Option<f64> {
            let model: &dyn CostModel = by_name(name)?;
            model
                .evaluate(&self.problem, arch, &self.mapping)
                .ok()
                .map(|estimate| estimate.cycles)
        };
        let bounds = self.problem.bounds.iter().filter(|(_, bound)| **bound > 1);
        let layer: Vec<String> = bounds.map(|(dim, bound)| format!("{dim}{bound}")).collect();
        Ok(Row {
            layer: layer.join(" "),
            mapping: self.record.mapping.clone(),
            rtl: self.record.cycles,
            simulated: self.simulate(arch)?,
            timeloop: self.record.timeloop_cycles,
            exact: model("exact").ok_or("the model exact refuses the mapping")?,
            maestro: model("maestro"),
        })
    }
}

/// Reads a mapping string.
fn parse(text: &str, problem: &Problem, arch: &Accelerator) -> Result<Mapping, String> {
    let mut temporal: [Vec<Loop>; 3] = Default::default();
    let mut spatial = Vec::new();
    for part in text.split(" - ") {
        let mut words = part.split_whitespace();
        let head = words.next().unwrap_or_default();
        let level = head
            .strip_prefix('L')
            .and_then(|rest| rest.split('[').next()?.parse::<usize>().ok());
        // Scratchpad and accumulator are one level of the machine, the array inside the other.
        let level = match level {
            Some(3) => 0,
            Some(1 | 2) => 1,
            Some(0) => 2,
            _ => {
                return Err(format!(
                    "found `{head}` in the mapping; a level L0[…] to L3[…] is expected"
                ));
            }
        };
        for word in words {
            let (factor, along) = word.strip_suffix('X').map_or((word, false), |rest| (rest, true));
            let mut letters = factor.chars();
            let dim = letters
                .next()
                .and_then(|letter| Dim::ALL.into_iter().find(|dim| dim.to_string() == letter.to_string()));
            let trips = letters.as_str().parse::<u64>().ok().filter(|trips| *trips > 0);
            let (Some(dim), Some(trips)) = (dim, trips) else {
                return Err(format!(
                    "found `{word}` in the mapping; a loop like K16 or C16X is expected"
                ));
            };
            if trips == 1 {
                continue;
            }
            if along {
                let axis = if dim == Dim::C { Axis::Y } else { Axis::X };
                spatial.push(SpatialLoop(dim, trips, axis));
            } else {
                temporal[level].push(Loop(dim, trips));
            }
        }
    }
    for level in &mut temporal[1..] {
        level.sort_by_key(|l| matches!(l.0, Dim::P | Dim::Q));
    }
    let keeps = [TensorSet::ALL, TensorSet::ALL, [Tensor::Weights].into_iter().collect()];
    let levels = arch.levels.iter().zip(temporal).zip(keeps).enumerate();
    Ok(Mapping {
        bounds: problem.bounds,
        levels: levels
            .map(|(index, ((level, temporal), keeps))| LevelMapping {
                level: level.name.clone(),
                temporal,
                spatial: if index == 1 {
                    std::mem::take(&mut spatial)
                } else {
                    Vec::new()
                },
                keeps,
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(bounds: &[(Dim, u64)]) -> Problem {
        let mut map = DimMap::ones();
        for &(dim, bound) in bounds {
            map[dim] = bound;
        }
        Problem::new(map)
    }

    #[test]
    fn mapping_strings_become_loops_with_pixels_innermost() {
        let arch = machine().unwrap();
        let problem = problem(&[(Dim::K, 256), (Dim::C, 256), (Dim::P, 8), (Dim::Q, 7)]);
        let text = "L3[WIO] K4 - L2[WI] N1 K16X - L1[O] K4 Q7 C16 P2 C16X - L0[W] P4";
        let mapping = parse(text, &problem, &arch).unwrap();
        assert_eq!(mapping.check(&problem, &arch), []);
        assert_eq!(mapping.levels[0].temporal, [Loop(Dim::K, 4)]);
        let inner = [Loop(Dim::K, 4), Loop(Dim::C, 16), Loop(Dim::Q, 7), Loop(Dim::P, 2)];
        assert_eq!(mapping.levels[1].temporal, inner);
        assert_eq!(mapping.levels[2].temporal, [Loop(Dim::P, 4)]);
        let spatial = [SpatialLoop(Dim::K, 16, Axis::X), SpatialLoop(Dim::C, 16, Axis::Y)];
        assert_eq!(mapping.levels[1].spatial, spatial);
    }

    #[test]
    fn what_is_wrong_with_a_mapping_string_is_said() {
        let arch = machine().unwrap();
        let problem = problem(&[(Dim::K, 4)]);
        let error = |text: &str| parse(text, &problem, &arch).unwrap_err();
        assert!(error("L7[W] K4").contains("`L7[W]`"));
        assert!(error("L3[WIO] K4 - L0[W] Z3").contains("`Z3`"));
        assert!(error("L3[WIO] K0").contains("`K0`"));
    }

    /// 16×16 weights take 16 cycles: with fewer pixels per set of weights the array waits for the next.
    #[test]
    fn few_pixels_per_weight_wait_for_the_weights() {
        let arch = machine().unwrap();
        let cycles = |pixels: u64| {
            let problem = problem(&[(Dim::K, 16), (Dim::C, 16 * 64), (Dim::P, pixels)]);
            let mapping = parse(
                &format!("L3[WIO] N1 - L2[WI] K16X - L1[O] C64 C16X - L0[W] P{pixels}"),
                &problem,
                &arch,
            );
            simulate(&problem, &arch, &mapping.unwrap(), Options::default())
                .unwrap()
                .busy_cycles
        };
        assert_eq!((cycles(4), cycles(16), cycles(64)), (64 * 16, 64 * 16, 64 * 64));
    }
}
