//! Records of Timeloop v3 against the model `timeloop`.
//!
//! A record has `arch`, `problem` and `mapping` (levels inner to outer), `expect` (`ok` or `fail`) and `result`:
//! what the tool said in up to three variants. `default` also counts transfers between neighbours, `nolink` does
//! not, `exact` walks every iteration besides. A variant may be the words `same as` and the name of another, or
//! `not run`. Judged is `exact` where it was run, else `nolink`. On records with the tag `imperfect` and the tag
//! `fuzz` only computes and cycles are judged; the other fields are compared and shown.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use cyclonest_scheduler::cost::timeloop::{
    Block, DataSpace, Dimension, Evaluation, Hardware, Macs, Memory, Nest, NestLoop, Port, Storage, Variant, Workload,
    evaluate,
};
use serde::Deserialize;

use super::{Comparison, ReferenceError, Report, Verdict};

/// One record.
#[derive(Debug, Clone, Deserialize)]
pub struct Record {
    id: String,
    #[serde(default)]
    tags: Vec<String>,
    expect: String,
    arch: Arch,
    problem: ProblemSpec,
    mapping: MappingSpec,
    result: HashMap<String, Outcome>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct LevelSpec {
    name: String,
    entries: Option<u64>,
    instances: u64,
    #[serde(rename = "meshX")]
    mesh_x: Option<u64>,
    technology: Option<String>,
    multiple_buffering: Option<f64>,
    #[serde(rename = "read_bandwidth")]
    read_bandwidth: Option<f64>,
    #[serde(rename = "write_bandwidth")]
    write_bandwidth: Option<f64>,
    #[serde(rename = "shared_bandwidth")]
    shared_bandwidth: Option<f64>,
    bandwidth: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
struct Arch {
    mac: LevelSpec,
    levels: Vec<LevelSpec>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Term {
    Dim(String),
    Scaled(Vec<String>),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Projection {
    One(String),
    Sum(Vec<Term>),
}

#[derive(Debug, Clone, Deserialize)]
struct ProblemSpec {
    dims: BTreeMap<String, u64>,
    #[serde(default)]
    coefficients: HashMap<String, u64>,
    tensors: BTreeMap<String, Vec<Projection>>,
    read_write: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct BlockSpec {
    name: String,
    #[serde(default)]
    spatial: HashMap<String, u64>,
    #[serde(default)]
    spatial_residual: HashMap<String, u64>,
    #[serde(default)]
    spatial_x: Vec<String>,
    #[serde(default)]
    spatial_y: Vec<String>,
    #[serde(default)]
    temporal: HashMap<String, u64>,
    #[serde(default)]
    temporal_residual: HashMap<String, u64>,
    #[serde(default)]
    permutation: Vec<String>,
    keep: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct MappingSpec {
    levels: Vec<BlockSpec>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Outcome {
    Reference(String),
    Ran(Box<Ran>),
}

#[derive(Debug, Clone, Deserialize)]
struct Ran {
    ok: bool,
    #[serde(default)]
    levels: Vec<RanLevel>,
    #[serde(default)]
    networks: Vec<RanNetwork>,
    summary: Option<Summary>,
}

#[derive(Debug, Clone, Deserialize)]
struct Summary {
    cycles: Figure,
    computes: Option<Figure>,
}

/// A number, or text that holds one.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Figure {
    Number(f64),
    Text(String),
}

impl Figure {
    fn value(&self) -> Option<f64> {
        match self {
            Figure::Number(n) => Some(*n),
            Figure::Text(text) => text.trim().parse().ok(),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
struct RanLevel {
    name: String,
    cycles: Option<f64>,
    utilized_instances: Option<f64>,
    #[serde(default)]
    tensors: BTreeMap<String, RanTensor>,
}

#[derive(Debug, Clone, Deserialize)]
struct RanTensor {
    partition_size: f64,
    utilized_capacity: f64,
    utilized_instances: f64,
    reads_per_instance: f64,
    updates_per_instance: f64,
    fills_per_instance: f64,
    temporal_reductions_per_instance: f64,
}

#[derive(Debug, Clone, Deserialize)]
struct RanNetwork {
    outer: String,
    inner: String,
    tensors: BTreeMap<String, RanTraffic>,
}

#[derive(Debug, Clone, Deserialize)]
struct RanTraffic {
    ingresses: f64,
    spatial_reductions: f64,
    max_multicast_factor: Option<f64>,
}

/// Judges the records of `files`.
///
/// # Errors
/// If a file cannot be read or a line is not a record of the format.
pub fn validate(files: &[impl AsRef<Path>]) -> Result<Report, ReferenceError> {
    super::run(files, |record: Record| record.judge())
}

/// What our model says of the records that it refuses: their names and its messages.
///
/// # Errors
/// If a file cannot be read or a line is not a record of the format.
pub fn refusals(files: &[impl AsRef<Path>]) -> Result<Vec<(String, String)>, ReferenceError> {
    let refused = |record: Record| Ok((record.evaluated(Variant::Default).err(), record.id));
    let all = super::each(files, refused)?;
    Ok(all.into_iter().filter_map(|(why, id)| Some((id, why?))).collect())
}

/// The closed form against the walk of every iteration, on the records with perfect factors that are small enough
/// to be walked: how many agree, and the names of those that do not.
///
/// # Errors
/// If a file cannot be read or a line is not a record of the format.
pub fn compare_analyses(files: &[impl AsRef<Path>]) -> Result<(usize, Vec<String>), ReferenceError> {
    let agree = |record: &Record| -> Result<Option<bool>, String> {
        let (workload, hardware, nest) = (record.workload()?, record.hardware(), record.nest()?);
        if !nest.is_perfect() || record.outcome("exact").is_none() {
            return Ok(None);
        }
        let closed = evaluate(&workload, &hardware, &nest, Variant::Default);
        let walked = evaluate(&workload, &hardware, &nest, Variant::Exact);
        Ok(Some(closed == walked))
    };
    let all = super::each(files, |record: Record| Ok((agree(&record)?, record.id)))?;
    let agreeing = all.iter().filter(|a| a.0 == Some(true)).count();
    let disagreeing = all.into_iter().filter(|a| a.0 == Some(false)).map(|a| a.1).collect();
    Ok((agreeing, disagreeing))
}

impl Record {
    /// Follows `same as …`; `None` where the variant was not run.
    fn outcome(&self, variant: &str) -> Option<&Ran> {
        let mut name = variant;
        for _ in 0..self.result.len() {
            match self.result.get(name)? {
                Outcome::Ran(ran) => return Some(ran),
                Outcome::Reference(text) => name = text.strip_prefix("same as ")?,
            }
        }
        None
    }

    /// What our model says. A mapping that cannot even be read as one is refused like any other.
    fn evaluated(&self, variant: Variant) -> Result<Evaluation, String> {
        let (workload, nest) = (self.workload()?, self.nest()?);
        evaluate(&workload, &self.hardware(), &nest, variant).map_err(|e| e.to_string())
    }

    fn judge(&self) -> Result<Verdict, String> {
        let found = [
            (Variant::Exact, "exact"),
            (Variant::Extrapolated, "nolink"),
            (Variant::Extrapolated, "default"),
        ];
        let found = found.into_iter().find_map(|(v, name)| Some((v, self.outcome(name)?)));
        let Some((variant, ran)) = found else {
            return Err(format!("record {}: no variant was run", self.id));
        };
        if (self.expect == "ok") != ran.ok {
            return Err(format!(
                "record {}: expect is {:?}, ok is {}",
                self.id, self.expect, ran.ok
            ));
        }
        let mut comparison = Comparison::default();
        match (self.evaluated(variant), ran.ok) {
            (Ok(ours), true) => {
                let lenient = ["imperfect", "fuzz"]
                    .iter()
                    .all(|t| self.tags.iter().any(|tag| tag == t));
                self.compare(&ours, ran, !lenient, &mut comparison)?;
            }
            (Ok(_), false) => comparison.note("result", "an error", "an evaluation"),
            (Err(e), true) => comparison.note("result", "an evaluation", e),
            (Err(_), false) => {}
        }
        Ok(Verdict {
            id: self.id.clone(),
            differences: comparison.differences,
        })
    }

    fn workload(&self) -> Result<Workload, String> {
        let p = &self.problem;
        let dim = |name: &str| {
            let found = p.dims.keys().position(|d| d == name);
            found.ok_or_else(|| format!("record {}: no dimension {name:?}", self.id))
        };
        let coefficient = |name: &str| {
            let found = p.coefficients.get(name).copied();
            found.ok_or_else(|| format!("record {}: no coefficient {name:?}", self.id))
        };
        let term = |term: &Term| -> Result<(usize, u64), String> {
            match term {
                Term::Dim(name) => Ok((dim(name)?, 1)),
                Term::Scaled(parts) => match parts.as_slice() {
                    [name] => Ok((dim(name)?, 1)),
                    [name, scale] => Ok((dim(name)?, coefficient(scale)?)),
                    other => Err(format!(
                        "record {}: {other:?} is no product of dimension and coefficient",
                        self.id
                    )),
                },
            }
        };
        let axis = |projection: &Projection| match projection {
            Projection::One(name) => Ok(vec![(dim(name)?, 1)]),
            Projection::Sum(terms) => terms.iter().map(term).collect(),
        };
        let tensor = |(name, axes): (&String, &Vec<Projection>)| -> Result<DataSpace, String> {
            Ok(DataSpace {
                name: name.clone(),
                axes: axes.iter().map(axis).collect::<Result<_, _>>()?,
                read_write: p.read_write.contains(name),
            })
        };
        // Results last: the accounting takes computes from the last tensor, which every MAC updates.
        let mut tensors = p.tensors.iter().map(tensor).collect::<Result<Vec<_>, _>>()?;
        tensors.sort_by_key(|t| t.read_write);
        Ok(Workload {
            dims: p
                .dims
                .iter()
                .map(|(name, &bound)| Dimension {
                    name: name.clone(),
                    bound,
                })
                .collect(),
            tensors,
        })
    }

    fn hardware(&self) -> Hardware {
        let tensors = self.problem.tensors.len();
        let port = |read: bool, write: bool, width: f64| Port {
            read_units: vec![f64::from(u8::from(read)); tensors],
            write_units: vec![f64::from(u8::from(write)); tensors],
            width,
        };
        let storage = |level: &LevelSpec| {
            let half = level.bandwidth.map(|b| b / 2.0);
            let ports = [
                level.read_bandwidth.or(half).map(|w| port(true, false, w)),
                level.write_bandwidth.or(half).map(|w| port(false, true, w)),
                level.shared_bandwidth.map(|w| port(true, true, w)),
            ];
            let memory = level.entries.map(|entries| Memory {
                units: vec![1; tensors],
                capacity: (entries as f64 / level.multiple_buffering.unwrap_or(1.0)).floor() as u64,
            });
            Storage {
                name: level.name.clone(),
                instances: level.instances,
                mesh_x: level.mesh_x.unwrap_or(level.instances),
                memories: memory.into_iter().collect(),
                ports: ports.into_iter().flatten().collect(),
                reduces: level.technology.as_deref() != Some("DRAM"),
            }
        };
        let mac = &self.arch.mac;
        Hardware {
            macs: Macs {
                name: mac.name.clone(),
                instances: mac.instances,
                mesh_x: mac.mesh_x.unwrap_or(mac.instances),
            },
            levels: self.arch.levels.iter().map(storage).collect(),
        }
    }

    fn nest(&self) -> Result<Nest, String> {
        let workload = self.workload()?;
        let dim = |name: &String| {
            let found = self.problem.dims.keys().position(|d| d == name);
            found.ok_or_else(|| format!("record {}: no dimension {name:?}", self.id))
        };
        let loops = |names: &[String], bounds: &HashMap<String, u64>, lasts: &HashMap<String, u64>| {
            let one = |name: &String| {
                let bound = bounds.get(name).copied().unwrap_or(1);
                Ok::<NestLoop, String>(NestLoop {
                    dim: dim(name)?,
                    bound,
                    last: lasts.get(name).copied().unwrap_or(bound),
                })
            };
            names.iter().map(one).collect::<Result<Vec<_>, _>>()
        };
        let mut blocks = Vec::new();
        for level in &self.arch.levels {
            let Some(block) = self.mapping.levels.iter().find(|b| b.name == level.name) else {
                return Err(format!("record {}: the mapping has no level {:?}", self.id, level.name));
            };
            blocks.push(Block {
                temporal: loops(&block.permutation, &block.temporal, &block.temporal_residual)?,
                spatial_x: loops(&block.spatial_x, &block.spatial, &block.spatial_residual)?,
                spatial_y: loops(&block.spatial_y, &block.spatial, &block.spatial_residual)?,
                keeps: workload.tensors.iter().map(|t| block.keep.contains(&t.name)).collect(),
            });
        }
        Ok(Nest { blocks })
    }

    fn compare(&self, ours: &Evaluation, ran: &Ran, strict: bool, c: &mut Comparison) -> Result<(), String> {
        let workload = &self.workload()?;
        let lanes = self.nest()?.used_instances(None);
        let tensor = |name: &str| workload.tensors.iter().position(|t| t.name == name);
        if let Some(summary) = &ran.summary {
            let cycles = summary.cycles.value().unwrap_or(f64::NAN);
            c.number("cycles".into(), cycles, ours.cycles as f64, 0.0, true);
            if let Some(computes) = &summary.computes {
                let computes = computes.value().unwrap_or(f64::NAN);
                c.number("computes".into(), computes, ours.computes as f64, 0.0, true);
            }
        }
        for level in &ran.levels {
            if level.name == self.arch.mac.name {
                if let Some(n) = level.utilized_instances {
                    c.number(format!("{}.instances", level.name), n, lanes as f64, 0.0, strict);
                }
                continue;
            }
            let Some(stats) = ours.levels.iter().find(|l| l.name == level.name) else {
                c.note(level.name.as_str(), "a level", "none of that name");
                continue;
            };
            if let Some(cycles) = level.cycles {
                c.number(
                    format!("{}.cycles", level.name),
                    cycles,
                    stats.cycles as f64,
                    0.0,
                    strict,
                );
            }
            if let Some(n) = level.utilized_instances {
                c.number(
                    format!("{}.instances", level.name),
                    n,
                    stats.instances as f64,
                    0.0,
                    strict,
                );
            }
            for (name, t) in &level.tensors {
                let field = |what: &str| format!("{}.{name}.{what}", level.name);
                let Some(s) = tensor(name).and_then(|t| stats.tensors[t]) else {
                    c.note(field("kept"), "kept", "bypassed");
                    continue;
                };
                for (what, expected, got) in [
                    ("partition", t.partition_size, s.partition),
                    ("tile", t.utilized_capacity, s.tile),
                    ("instances", t.utilized_instances, stats.instances),
                    ("reads", t.reads_per_instance, s.reads),
                    ("updates", t.updates_per_instance, s.updates),
                    ("fills", t.fills_per_instance, s.fills),
                    (
                        "temporal_reductions",
                        t.temporal_reductions_per_instance,
                        s.temporal_reductions,
                    ),
                ] {
                    c.number(field(what), expected, got as f64, 0.0, strict);
                }
            }
        }
        for network in &ran.networks {
            let found = ours
                .networks
                .iter()
                .find(|n| n.outer == network.outer && n.inner == network.inner);
            let Some(stats) = found else {
                c.note(
                    format!("{}-{}", network.outer, network.inner),
                    "a network",
                    "none between these levels",
                );
                continue;
            };
            for (name, t) in &network.tensors {
                let field = |what: &str| format!("{}-{}.{name}.{what}", network.outer, network.inner);
                let Some(s) = tensor(name).map(|t| stats.tensors[t]) else {
                    c.note(field("tensor"), "a tensor", "none of that name");
                    continue;
                };
                c.rounded(field("ingresses"), t.ingresses, s.ingresses, ROUNDED, strict);
                let reductions = s.spatial_reductions
                    * f64::from(u8::from(t.spatial_reductions != 0.0 || is_result(workload, name)));
                c.rounded(
                    field("spatial_reductions"),
                    t.spatial_reductions,
                    reductions,
                    ROUNDED,
                    strict,
                );
                if let Some(m) = t.max_multicast_factor {
                    c.number(field("max_multicast"), m, s.max_multicast as f64, 0.0, strict);
                }
            }
        }
        Ok(())
    }
}

/// Averages over instances are printed with two decimals.
const ROUNDED: f64 = 0.005;

fn is_result(workload: &Workload, name: &str) -> bool {
    workload.tensors.iter().any(|t| t.name == name && t.read_write)
}
