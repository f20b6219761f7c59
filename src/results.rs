//! What our commands write, read back: all of `simulate`, and of the others the part that figures need.

use std::path::Path;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::faults::Faults;
use crate::inputs;
use crate::report::Report;

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
    Simulated(Box<Report>),
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
pub(crate) fn simulated(path: &Path) -> Result<Report, Faults> {
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
