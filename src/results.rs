//! What our other commands write, read back: the part that figures and reports need.

use std::collections::BTreeMap;
use std::path::Path;

use cyclonest_arch::{Accelerator, Accesses, Mapping};
use cyclonest_workloads::{Tensor, TensorMap};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::faults::Faults;
use crate::inputs;

/// The result of `simulate`. `docs/output.md` describes the fields.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Simulated {
    pub(crate) version: String,
    pub(crate) arch: String,
    pub(crate) network: String,
    #[serde(default)]
    pub(crate) about: String,
    pub(crate) scheduler: String,
    pub(crate) channels_divided_by: u64,
    pub(crate) seed: u64,
    pub(crate) clock_mhz: f64,
    pub(crate) pes: u64,
    pub(crate) lanes: u64,
    #[serde(default)]
    pub(crate) assumed: Vec<Assumed>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) failed: Vec<FailedLayer>,
    pub(crate) totals: Totals,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Assumed {
    pub(crate) constant: String,
    pub(crate) why: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct FailedLayer {
    pub(crate) name: String,
    pub(crate) count: u64,
    pub(crate) error: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Totals {
    pub(crate) layers: u64,
    pub(crate) macs: u64,
    pub(crate) cycles: u64,
    pub(crate) energy_pj: f64,
    pub(crate) busy_cycles: u64,
    pub(crate) utilization: f64,
    pub(crate) milliseconds: f64,
    pub(crate) levels: Vec<LevelResult>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Layer {
    pub(crate) name: String,
    pub(crate) count: u64,
    pub(crate) macs: u64,
    pub(crate) cycles: u64,
    pub(crate) utilization: f64,
    pub(crate) energy_pj: f64,
    pub(crate) busy_cycles: u64,
    pub(crate) stall_cycles: BTreeMap<String, u64>,
    pub(crate) levels: Vec<LevelResult>,
    pub(crate) values: String,
    pub(crate) mapped_by: String,
    pub(crate) mapping: Mapping,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LevelResult {
    pub(crate) name: String,
    pub(crate) tensors: TensorMap<Accesses>,
    pub(crate) network: Option<TensorMap<NetworkResult>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct NetworkResult {
    pub(crate) bit_hops: u64,
}

/// The result of `bench schedulers`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Benched {
    pub(crate) rows: Vec<BenchRow>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct BenchRow {
    pub(crate) network: String,
    pub(crate) layer: String,
    pub(crate) count: u64,
    pub(crate) scheduler: String,
    pub(crate) cycles: Option<u64>,
    pub(crate) energy_pj: Option<f64>,
    pub(crate) estimated_cycles: Option<f64>,
}

/// The result of `schedule`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Scheduled {
    pub(crate) scheduler: String,
    pub(crate) seed: u64,
    pub(crate) layers: Vec<ScheduledLayer>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ScheduledLayer {
    pub(crate) layer: String,
    pub(crate) convergence: Vec<(u64, f64)>,
}

/// The result of `compare`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Compared {
    pub(crate) layers: Vec<ComparedLayer>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ComparedLayer {
    pub(crate) arch: String,
    pub(crate) network: String,
    pub(crate) layer: String,
    pub(crate) cycles: u64,
    pub(crate) verdicts: Vec<Verdict>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Verdict {
    pub(crate) model: String,
    pub(crate) estimate: Option<f64>,
    /// `None` where the estimate is no number of cycles.
    pub(crate) error: Option<f64>,
}

/// A trace of `simulate --trace`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Traced {
    #[serde(rename = "traceEvents")]
    pub(crate) events: Vec<TraceEvent>,
    #[serde(rename = "otherData")]
    pub(crate) other: TraceData,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct TraceEvent {
    pub(crate) ph: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) cat: String,
    #[serde(default)]
    pub(crate) pid: u64,
    #[serde(default)]
    pub(crate) tid: u64,
    #[serde(default)]
    pub(crate) ts: u64,
    #[serde(default)]
    pub(crate) dur: u64,
    #[serde(default)]
    pub(crate) args: TraceArgs,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct TraceArgs {
    pub(crate) name: Option<String>,
    pub(crate) tile: Option<String>,
    pub(crate) taken: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct TraceData {
    pub(crate) cycles: u64,
    pub(crate) skipped_cycles: u64,
    pub(crate) pes: Vec<TracePe>,
    pub(crate) links: Vec<TraceLink>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct TracePe {
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) computing_cycles: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct TraceLink {
    pub(crate) network_below: String,
    pub(crate) from_x: u64,
    pub(crate) from_y: u64,
    pub(crate) to_x: u64,
    pub(crate) to_y: u64,
    pub(crate) bits: u64,
}

/// A file of any of our commands, or a table.
#[derive(Debug)]
pub(crate) enum Data {
    Simulated(Box<Simulated>),
    Benched(Benched),
    Scheduled(Scheduled),
    Compared(Compared),
    Traced(Box<Traced>),
    /// CSV, of whoever.
    Table(String),
}

impl Data {
    /// What wrote it.
    pub(crate) fn source(&self) -> &'static str {
        match self {
            Data::Simulated(_) => "simulate",
            Data::Benched(_) => "bench schedulers",
            Data::Scheduled(_) => "schedule",
            Data::Compared(_) => "compare",
            Data::Traced(_) => "simulate --trace",
            Data::Table(_) => "CSV",
        }
    }
}

#[derive(Deserialize)]
struct Head {
    command: Option<String>,
    #[serde(rename = "traceEvents")]
    events: Option<IgnoredAny>,
}

/// Reads a file; JSON if it begins like it.
pub(crate) fn read(path: &Path) -> Result<Data, Faults> {
    let text = inputs::read(path)?;
    if !text.trim_start().starts_with(['{', '[']) {
        return Ok(Data::Table(text));
    }
    let head: Head = parse(path, &text)?;
    Ok(match (head.command.as_deref(), head.events) {
        (_, Some(_)) => Data::Traced(parse(path, &text)?),
        (Some("simulate"), None) => Data::Simulated(parse(path, &text)?),
        (Some("bench schedulers" | "bench"), None) => Data::Benched(parse(path, &text)?),
        (Some("schedule"), None) => Data::Scheduled(parse(path, &text)?),
        (Some("compare"), None) => Data::Compared(parse(path, &text)?),
        (Some(other), None) => {
            return Err(Faults::one(format!(
                "{}: no figure reads what `{other}` writes as JSON\n  help: write CSV, or draw what simulate, bench \
                 schedulers, schedule or compare write",
                path.display()
            )));
        }
        (None, None) => {
            return Err(Faults::one(format!(
                "{}:1:1: no field `command`; expected the JSON of one of our commands, or CSV",
                path.display()
            )));
        }
    })
}

/// The result of `simulate`, and nothing else.
pub(crate) fn simulated(path: &Path) -> Result<Simulated, Faults> {
    match read(path)? {
        Data::Simulated(result) => Ok(*result),
        other => Err(Faults::one(format!(
            "{}: is from {}; expected the JSON of `simulate`",
            path.display(),
            other.source()
        ))),
    }
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, Faults> {
    serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = message.strip_suffix(&place).unwrap_or(&message);
        Faults::one(format!(
            "{}:{}:{}: {message}",
            path.display(),
            error.line(),
            error.column()
        ))
    })
}

/// A part of the energy of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EnergyPart {
    /// A level, the network below one, or the MACs.
    pub(crate) part: String,
    pub(crate) tensor: Option<Tensor>,
    pub(crate) pj: f64,
}

/// The energy of a layer by level and tensor, from its counts and the energies of the machine.
///
/// The parts add up to the energy that `simulate` wrote, or the machine is another one.
pub(crate) fn energy(arch: &Accelerator, layer: &Layer) -> Result<Vec<EnergyPart>, String> {
    let mut parts = Vec::new();
    for result in &layer.levels {
        let Some(level) = arch.levels.iter().find(|level| level.name == result.name) else {
            return Err(format!("accelerator {} has no level {}", arch.name, result.name));
        };
        for tensor in Tensor::ALL {
            if let Some(bank) = level.bank(tensor) {
                let a = &result.tensors[tensor];
                let pj =
                    (a.reads + a.drains) as f64 * bank.energy.read + (a.fills + a.updates) as f64 * bank.energy.write;
                parts.push((level.name.clone(), Some(tensor), pj));
            }
        }
        if let (Some(network), Some(traffic)) = (&level.below, &result.network) {
            for tensor in Tensor::ALL {
                let pj = traffic[tensor].bit_hops as f64 * network.energy_per_bit_hop;
                parts.push((format!("network below {}", level.name), Some(tensor), pj));
            }
        }
    }
    let macs = layer.macs as f64 * arch.compute.energy_per_mac;
    parts.push(("MACs".to_string(), None, macs));
    let sum: f64 = parts.iter().map(|(_, _, pj)| pj).sum();
    if (sum - layer.energy_pj).abs() > 1e-6 * layer.energy_pj.abs().max(1.0) {
        return Err(format!(
            "layer {}: the energies of {} give {sum:.0} pJ, the result says {:.0}; is it another version of the machine?",
            layer.name, arch.name, layer.energy_pj
        ));
    }
    Ok(parts
        .into_iter()
        .filter(|(_, _, pj)| *pj > 0.0)
        .map(|(part, tensor, pj)| EnergyPart { part, tensor, pj })
        .collect())
}
