//! The Eyeriss chip (Chen et al., JSSC 2017): 18 measured layers on the machine `eyeriss_chip`.
//!
//! The chip works in *passes*: a pass computes `e` rows of `p·t` filters over `q·r` channels of `n` images. Its
//! controller loads the filters of a pass into the PEs, then streams the inputs, one pass after the other. So the
//! processing time of a layer is the sum over its passes of
//!
//! - the cycles for which the filter network is occupied, and
//! - the simulated cycles of the pass with its filters in place.
//!
//! Passes differ at the last strip of rows and the last channels only; each kind is simulated once. The partial sums of
//! earlier channels come in over their own network, as wide as the one that they leave by, and are not simulated apart.
//! The traffic of the global buffer is counted for the mapping of the whole layer.

use cyclonest_arch::{
    Accelerator, Axis, Bank, Channels, LevelMapping, Link, Loop, Mapping, NetworkKind, Ports, SpatialLoop, Width,
    bundled, directives::Style,
};
use cyclonest_scheduler::cost::exact::Exact;
use cyclonest_scheduler::cost::{CostModel, maestro};
use cyclonest_sim::{FastForward, Options, simulate};
use cyclonest_workloads::{Dim, DimMap, Pair as Both, Problem, Tensor};
use serde::{Deserialize, Serialize};

use crate::compare::Pair;

const RECORDS: &str = include_str!("../../data/eyeriss.jsonl");
/// PEs along X.
const COLUMNS: u64 = 14;
/// Words per cycle of the three networks to the PEs together, the only bandwidth that MAESTRO knows.
const MAESTRO_BANDWIDTH: u64 = 4 + 1 + 4;

/// One measured layer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Record {
    net: String,
    layer: String,
    shape: Shape,
    mapping: PassMapping,
    cycles: u64,
    active_pes: u64,
    /// Traffic of the global buffer, in the unit of the table; see [`Row::glb_published`].
    #[serde(rename = "glb_MiB")]
    glb: f64,
}

/// A layer: N images, C channels (per group), M filters, E×E outputs, R×R filter, stride U.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[allow(non_snake_case)]
struct Shape {
    N: u64,
    C: u64,
    M: u64,
    E: u64,
    R: u64,
    U: u64,
}

/// A mapping in the paper's terms.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
struct PassMapping {
    tile: u64,
    e: u64,
    p: u64,
    q: u64,
    r: u64,
    t: u64,
    n: u64,
    m: u64,
}

/// One layer with one mapping.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Network.
    pub network: String,
    /// Layer.
    pub layer: String,
    /// `published`, `identified` (from the traffic), or whose mapping is tried instead.
    pub mapping: String,
    /// Measured processing time \[cycles\].
    pub chip: u64,
    /// Simulated.
    pub simulated: u64,
    /// The model `exact` on the same passes.
    pub exact: f64,
    /// The model `maestro` on its row-stationary dataflow YR-P with 168 PEs; `None` where it fails.
    pub maestro: Option<f64>,
    /// PEs in use, published and of the mapping.
    pub active_pes: (u64, u64),
    /// Published traffic of the global buffer: megabytes of 10⁶ bytes, without filters, for AlexNet; mebibytes, with
    /// filters, for VGG16. The paper says neither; these units fit all layers of either table but CONV3 of AlexNet.
    pub glb_published: f64,
    /// Counted, in the same unit.
    pub glb_counted: f64,
    /// Bytes of inputs and sums in the global buffer, of 102,400.
    pub glb_bytes: u64,
}

impl Row {
    /// Signed error of the simulation.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.pair(self.simulated as f64).error()
    }

    fn pair(&self, estimated: f64) -> Pair {
        Pair {
            measured: self.chip as f64,
            estimated,
        }
    }
}

/// All layers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Layers with the mappings that count, then the others.
    pub rows: Vec<Row>,
    /// Mean absolute errors.
    pub means: Vec<Mean>,
    /// CONV4 and CONV5 of AlexNet together, which share a mapping and differ by 6.7 % per pass: signed error.
    pub pair_error: f64,
    /// What the result is where an assumed constant is halved or doubled.
    pub sensitivity: Vec<Sensitivity>,
}

/// Mean absolute error of the processing time over the layers of a network.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mean {
    /// The network, and for AlexNet which mapping of CONV3 counts: the published one unless it says otherwise.
    pub network: String,
    /// Of the simulation.
    pub simulated: f64,
    /// Of `exact`.
    pub exact: f64,
    /// Of `maestro`.
    pub maestro: Option<f64>,
    /// Largest error of the simulation.
    pub largest: f64,
}

/// Mean errors with another value of an assumed constant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sensitivity {
    /// What is varied, and how.
    pub what: String,
    /// Mean absolute error on AlexNet, and on VGG16.
    pub means: (f64, f64),
}

/// Simulates the 18 layers.
///
/// # Errors
/// If a mapping does not fit the machine.
pub fn run() -> Result<Report, String> {
    let arch = bundled::load("eyeriss_chip").ok_or("the machine eyeriss_chip is missing")?;
    let records: Vec<Record> = RECORDS
        .lines()
        .map(|line| serde_json::from_str(line).map_err(|error| format!("eyeriss.jsonl: {error}")))
        .collect::<Result<_, _>>()?;
    let rows = layers(&records, &arch)?;
    let means = vec![
        mean("alexnet", &rows, "alexnet", CONV4S),
        mean("alexnet, CONV3 as CONV4", &rows, "alexnet", "published"),
        mean("vgg16", &rows, "vgg16", ""),
    ];
    let together = |of: fn(&Row) -> u64| -> f64 {
        let pair = rows
            .iter()
            .filter(|row| row.network == "alexnet" && ["CONV4", "CONV5"].contains(&row.layer.as_str()));
        pair.map(of).sum::<u64>() as f64
    };
    let pair_error = Pair {
        measured: together(|row| row.chip),
        estimated: together(|row| row.simulated),
    }
    .error();
    let mut sensitivity = Vec::new();
    for (what, vary) in VARIATIONS {
        let mut varied = arch.clone();
        vary(&mut varied);
        let rows = layers(&records, &varied)?;
        let of = |network, without| mean(network, &rows, network, without).simulated;
        sensitivity.push(Sensitivity {
            what: (*what).to_owned(),
            means: (of("alexnet", CONV4S), of("vgg16", "")),
        });
    }
    Ok(Report {
        rows,
        means,
        pair_error,
        sensitivity,
    })
}

/// Name of the mapping that is tried for CONV3 of AlexNet beside the published one, whose traffic is not the published.
const CONV4S: &str = "of CONV4";

type Variation = (&'static str, fn(&mut Accelerator));

/// The assumed constants that processing time depends on, halved and doubled.
const VARIATIONS: &[Variation] = &[
    ("FIFO of inputs 6 instead of 12", |arch| {
        bank(arch, Tensor::Inputs).fifo = 6
    }),
    ("FIFO of inputs 24 instead of 12", |arch| {
        bank(arch, Tensor::Inputs).fifo = 24
    }),
    ("FIFO of sums 8 instead of 16", |arch| {
        bank(arch, Tensor::Outputs).fifo = 8
    }),
    ("FIFO of sums 32 instead of 16", |arch| {
        bank(arch, Tensor::Outputs).fifo = 32
    }),
    ("latency of the buffer's parts 2 instead of 1", |arch| {
        for level in &mut arch.levels[..4] {
            level.banks[0].latency = 2;
        }
    }),
    ("latency of the scratchpads 2 instead of 1", |arch| {
        let spad = arch.levels.len() - 1;
        arch.levels[spad].banks.iter_mut().for_each(|bank| bank.latency = 2);
    }),
];

/// The scratchpad of a tensor.
fn bank(arch: &mut Accelerator, tensor: Tensor) -> &mut Bank {
    let spad = arch.levels.len() - 1;
    let index = arch.levels[spad].bank_index(tensor).unwrap_or(0);
    &mut arch.levels[spad].banks[index]
}

/// Mean over the layers of `network`, without the rows whose mapping of CONV3 is `without`.
fn mean(name: &str, rows: &[Row], network: &str, without: &str) -> Mean {
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|row| row.network == network && !(row.layer == "CONV3" && row.mapping == without))
        .collect();
    let of = |estimate: &dyn Fn(&Row) -> Option<f64>| {
        super::mean_error(rows.iter().filter_map(|row| Some(row.pair(estimate(row)?))))
    };
    let judged = rows.iter().any(|row| row.maestro.is_some());
    Mean {
        network: name.to_owned(),
        simulated: of(&|row| Some(row.simulated as f64)),
        exact: of(&|row| Some(row.exact)),
        maestro: judged.then(|| of(&|row| row.maestro)),
        largest: rows.iter().map(|row| row.error().abs()).fold(0.0, f64::max),
    }
}

fn layers(records: &[Record], arch: &Accelerator) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for record in records {
        let source = if record.net == "alexnet" {
            "published"
        } else {
            "identified"
        };
        rows.push(row(record, record.mapping, source, arch)?);
        if record.net == "alexnet" && record.layer == "CONV3" {
            let mapping = PassMapping {
                q: 3,
                r: 2,
                t: 2,
                ..record.mapping
            };
            rows.push(row(record, mapping, CONV4S, arch)?);
        }
    }
    Ok(rows)
}

fn row(record: &Record, mapping: PassMapping, source: &str, arch: &Accelerator) -> Result<Row, String> {
    let fault = |error: String| format!("{} {}: {error}", record.net, record.layer);
    let layer = Layer {
        shape: record.shape,
        mapping,
        groups: groups(record),
    };
    let (simulated, exact) = layer.processing(arch).map_err(fault)?;
    let whole = layer.whole();
    let nest = layer.nest(&whole, arch, true);
    let estimate = Exact
        .evaluate(&whole, arch, &nest)
        .map_err(|error| fault(error.to_string()))?;
    let counts = estimate.counts.ok_or_else(|| fault("no counts".to_owned()))?;
    let accesses = |level: usize, tensor| counts.levels[level].tensors[tensor];
    let (sums, inputs) = (accesses(1, Tensor::Outputs), accesses(2, Tensor::Inputs));
    let data = inputs.reads + sums.reads + sums.updates + sums.drains;
    let glb_counted = match record.net.as_str() {
        "alexnet" => 2.0 * data as f64 / 1e6,
        _ => 2.0 * (data + accesses(3, Tensor::Weights).reads) as f64 / 1_048_576.0,
    };
    let active: u64 = nest.levels[3].spatial.iter().map(|s| s.1).product();
    Ok(Row {
        network: record.net.clone(),
        layer: record.layer.clone(),
        mapping: source.to_owned(),
        chip: record.cycles,
        simulated,
        exact,
        maestro: layer.maestro(),
        // Folded strips leave PEs idle where the rows do not divide: those do not compute.
        active_pes: (
            record.active_pes,
            active.min(mapping.e * record.shape.R * mapping.r * mapping.t),
        ),
        glb_published: record.glb,
        glb_counted,
        glb_bytes: 2 * (nest.tile_elements(&whole, 1, Tensor::Outputs) + nest.tile_elements(&whole, 2, Tensor::Inputs)),
    })
}

/// CONV2, CONV4 and CONV5 of AlexNet have two groups; the records give channels per group and all filters.
fn groups(record: &Record) -> u64 {
    match record.layer.as_str() {
        "CONV2" | "CONV4" | "CONV5" if record.net == "alexnet" => 2,
        _ => 1,
    }
}

/// A layer with a mapping.
struct Layer {
    shape: Shape,
    mapping: PassMapping,
    groups: u64,
}

impl Layer {
    fn problem(&self, bounds: &[(Dim, u64)]) -> Problem {
        let mut map = DimMap::ones();
        for &(dim, bound) in bounds {
            map[dim] = bound;
        }
        Problem {
            stride: Both(self.shape.U, self.shape.U),
            ..Problem::new(map)
        }
    }

    /// The layer; its input with the padding that the chip stores.
    fn whole(&self) -> Problem {
        let s = &self.shape;
        self.problem(&[
            (Dim::N, s.N),
            (Dim::G, self.groups),
            (Dim::K, s.M / self.groups),
            (Dim::C, s.C),
            (Dim::P, s.E),
            (Dim::Q, s.E),
            (Dim::R, s.R),
            (Dim::S, s.R),
        ])
    }

    /// A pass over so many rows and channels.
    fn pass(&self, rows: u64, channels: u64) -> Problem {
        let (s, m) = (&self.shape, &self.mapping);
        self.problem(&[
            (Dim::N, m.n),
            (Dim::K, m.p * m.t),
            (Dim::C, channels),
            (Dim::P, rows),
            (Dim::Q, s.E.div_ceil(m.tile)),
            (Dim::R, s.R),
            (Dim::S, s.R),
        ])
    }

    /// The row-stationary mapping of the layer (`whole`), or of one pass.
    fn nest(&self, problem: &Problem, arch: &Accelerator, whole: bool) -> Mapping {
        let (s, m) = (&self.shape, &self.mapping);
        let passes = |dim, trips: u64| Loop(dim, if whole { trips } else { 1 });
        let temporal = [
            vec![
                passes(Dim::G, self.groups),
                passes(Dim::N, s.N.div_ceil(m.n)),
                passes(Dim::K, (s.M / self.groups).div_ceil(m.m)),
                passes(Dim::P, s.E.div_ceil(m.e)),
                passes(Dim::Q, m.tile),
            ],
            vec![passes(Dim::C, s.C.div_ceil(m.q * m.r))],
            vec![passes(Dim::K, m.m / (m.p * m.t))],
            vec![Loop(Dim::N, m.n), Loop(Dim::Q, s.E.div_ceil(m.tile))],
            vec![Loop(Dim::K, m.p), Loop(Dim::C, m.q), Loop(Dim::S, s.R)],
        ];
        let levels = arch
            .levels
            .iter()
            .zip(temporal)
            .enumerate()
            .map(|(index, (level, loops))| LevelMapping {
                level: level.name.clone(),
                temporal: loops.into_iter().filter(|l| l.1 > 1).collect(),
                spatial: if index == 3 { self.spatial() } else { Vec::new() },
                keeps: Tensor::ALL
                    .into_iter()
                    .filter(|&tensor| level.bank(tensor).is_some())
                    .collect(),
            });
        Mapping {
            bounds: problem.bounds,
            levels: levels.collect(),
        }
    }

    /// PE sets: `e` columns (folded where they exceed the array) of R rows, `t` of them for other filters, `r` for other
    /// channels.
    fn spatial(&self) -> Vec<SpatialLoop> {
        let m = &self.mapping;
        let folds = m.e.div_ceil(COLUMNS);
        let beside = (1..=(COLUMNS / m.e).max(1))
            .rev()
            .find(|n| m.t.is_multiple_of(*n))
            .unwrap_or(1);
        let all = [
            SpatialLoop(Dim::C, m.r, Axis::Y),
            SpatialLoop(Dim::K, m.t / beside, Axis::Y),
            SpatialLoop(Dim::P, folds, Axis::Y),
            SpatialLoop(Dim::R, self.shape.R, Axis::Y),
            SpatialLoop(Dim::K, beside, Axis::X),
            SpatialLoop(Dim::P, m.e.div_ceil(folds), Axis::X),
        ];
        all.into_iter().filter(|l| l.1 > 1).collect()
    }

    /// Cycles of all passes, simulated and estimated.
    fn processing(&self, arch: &Accelerator) -> Result<(u64, f64), String> {
        let (s, m) = (&self.shape, &self.mapping);
        let filled = filters_in_place(arch);
        let (mut simulated, mut estimated) = (0, 0.0);
        let per_kind = self.groups * (s.M / self.groups / (m.p * m.t)) * (s.N / m.n) * m.tile;
        for (rows, strips) in [(m.e, s.E / m.e), (s.E % m.e, 1)] {
            for (channels, times) in [(m.q * m.r, s.C / (m.q * m.r)), (s.C % (m.q * m.r), 1)] {
                if rows * channels * strips * times == 0 {
                    continue;
                }
                let problem = self.pass(rows, channels);
                let mapping = self.nest(&problem, arch, false);
                let options = Options {
                    fast_forward: FastForward::On,
                    ..Options::default()
                };
                let loaded = simulate(&problem, arch, &mapping, options).map_err(|error| error.to_string())?;
                let filters = loaded.occupancy.get("FilterGLB network down Weights").copied();
                let filters = filters.ok_or("the filter network is not among the occupied ones")?;
                let pass = simulate(&problem, &filled, &mapping, options).map_err(|error| error.to_string())?;
                let model = Exact
                    .evaluate(&problem, &filled, &mapping)
                    .map_err(|error| error.to_string())?;
                let passes = per_kind * strips * times;
                simulated += passes * (filters + pass.cycles);
                estimated += passes as f64 * (filters as f64 + model.cycles);
            }
        }
        Ok((simulated, estimated))
    }

    /// What MAESTRO says of its own row-stationary dataflow.
    fn maestro(&self) -> Option<f64> {
        let layer = Style::YRP.layer("layer", &self.whole(), 12 * COLUMNS).ok()?;
        let machine = maestro::Machine {
            pes: 12 * COLUMNS,
            noc_bandwidth: MAESTRO_BANDWIDTH,
            noc_latency: 1,
            offchip_bandwidth: u64::from(u32::MAX),
        };
        let evaluation = maestro::evaluate(&layer, &machine).ok()?;
        (evaluation.runtime > 0).then_some(evaluation.runtime as f64)
    }
}

/// The machine with filters that arrive in no time.
fn filters_in_place(arch: &Accelerator) -> Accelerator {
    let mut filled = arch.clone();
    if let Some(network) = &mut filled.levels[3].below
        && let NetworkKind::Pipe {
            down: Channels::PerTensor(links),
            ..
        } = &mut network.kind
    {
        links[Tensor::Weights] = Some(Link {
            width: Width::Unlimited,
            latency: 1,
        });
    }
    bank(&mut filled, Tensor::Weights).ports = Ports::Ideal;
    filled
}
