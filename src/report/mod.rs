//! The result of `simulate` as plain data, written and read back. `docs/output.md` describes every field.

mod csv;
mod energy;
mod human;
mod json;
#[cfg(test)]
mod tests;
mod totals;

use std::collections::BTreeMap;

use cyclonest_arch::{Accelerator, Accesses, Counts, Mapping, Mappings, Passes};
use cyclonest_sim::{Outcome, StallReason, Values};
use cyclonest_workloads::{DistinctLayer, Problem, Tensor, TensorMap};
use serde::{Deserialize, Serialize};

use crate::provenance::Provenance;

pub(crate) use energy::energy;
pub(crate) use human::{counted, render, thousands};
pub(crate) use totals::{Overflow, Totals};

/// Version of the fields; raised when one changes its meaning or disappears.
const SCHEMA: u32 = 1;

/// Everything that `simulate` has to say.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    schema: u32,
    command: String,
    pub(crate) version: String,
    /// Empty in results of versions that did not record it.
    #[serde(default)]
    pub(crate) provenance: Provenance,
    pub(crate) arch: String,
    pub(crate) network: String,
    pub(crate) about: String,
    pub(crate) scheduler: String,
    pub(crate) channels_divided_by: u64,
    pub(crate) seed: u64,
    pub(crate) clock_mhz: f64,
    pub(crate) pes: u64,
    pub(crate) lanes: u64,
    pub(crate) assumed: Vec<Assumed>,
    pub(crate) layers: Vec<LayerReport>,
    pub(crate) failed: Vec<Failed>,
    pub(crate) totals: Totals,
}

/// A constant of the machine that nobody has published.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Assumed {
    pub(crate) constant: String,
    pub(crate) why: String,
}

/// A layer without a result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) name: String,
    pub(crate) count: u64,
    pub(crate) macs: u64,
    pub(crate) error: String,
}

/// The result of one distinct layer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LayerReport {
    pub(crate) name: String,
    pub(crate) count: u64,
    pub(crate) names: Vec<String>,
    pub(crate) problem: Problem,
    pub(crate) macs: u64,
    pub(crate) cycles: u64,
    pub(crate) utilization: f64,
    pub(crate) energy_pj: f64,
    pub(crate) busy_cycles: u64,
    pub(crate) stall_cycles: BTreeMap<String, u64>,
    pub(crate) occupancy_cycles: BTreeMap<String, u64>,
    pub(crate) levels: Vec<LevelReport>,
    pub(crate) simulation: Simulation,
    pub(crate) values: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) values_fault: Option<String>,
    pub(crate) mapped_by: String,
    pub(crate) mapping: Mapping,
}

/// What it took to simulate a layer: the only part of a report that depends on `--no-fast-forward`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Simulation {
    pub(crate) events: u64,
    pub(crate) transfers: u64,
    pub(crate) skipped_events: u64,
    pub(crate) skipped_cycles: u64,
}

/// Accesses of a level and traffic of the network below it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LevelReport {
    pub(crate) name: String,
    pub(crate) instances: u64,
    pub(crate) tensors: TensorMap<Accesses>,
    pub(crate) network: Option<TensorMap<TrafficReport>>,
}

/// Traffic of one tensor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TrafficReport {
    pub(crate) words_by_multicast: BTreeMap<u64, u64>,
    pub(crate) down: BTreeMap<u64, Passes>,
    pub(crate) up: BTreeMap<u64, Passes>,
    pub(crate) bit_hops: u64,
}

/// What a report is about, besides its layers.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) arch: &'a Accelerator,
    pub(crate) network: String,
    pub(crate) about: String,
    pub(crate) scheduler: String,
    pub(crate) channels_divided_by: u64,
    pub(crate) seed: u64,
    pub(crate) provenance: Provenance,
}

impl Report {
    /// Puts the results together; fails if a total exceeds 64 bits.
    pub(crate) fn new(subject: Subject<'_>, layers: Vec<LayerReport>, failed: Vec<Failed>) -> Result<Self, Overflow> {
        let arch = subject.arch;
        Ok(Report {
            schema: SCHEMA,
            command: "simulate".to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            provenance: subject.provenance,
            arch: arch.name.clone(),
            network: subject.network,
            about: subject.about,
            scheduler: subject.scheduler,
            channels_divided_by: subject.channels_divided_by,
            seed: subject.seed,
            clock_mhz: arch.clock.mhz(),
            pes: arch.instances(arch.event_level()),
            lanes: arch.lanes(),
            assumed: assumed(arch),
            totals: Totals::of(arch, &layers)?,
            layers,
            failed,
        })
    }

    /// The mappings of the layers that have a result.
    pub(crate) fn mappings(&self) -> Mappings {
        Mappings {
            schema: 1,
            arch: self.arch.clone(),
            network: self.network.clone(),
            scheduler: self.scheduler.clone(),
            seed: self.seed,
            layers: self
                .layers
                .iter()
                .map(|layer| (layer.name.clone(), layer.mapping.clone()))
                .collect(),
        }
    }

    /// True if every layer has a result and no result contradicts the direct convolution.
    pub(crate) fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.layers.iter().all(|layer| layer.values_fault.is_none())
    }
}

impl LayerReport {
    /// The outcome of one layer, with levels named instead of numbered.
    pub(crate) fn new(
        layer: &DistinctLayer,
        arch: &Accelerator,
        (mapped_by, mapping): (String, Mapping),
        outcome: Outcome,
    ) -> Self {
        let (values, values_fault) = match outcome.values {
            Values::NotChecked => ("not checked", None),
            Values::Equal => ("equal", None),
            Values::Different(fault) => ("different", Some(fault)),
        };
        LayerReport {
            name: layer.name.clone(),
            count: layer.count,
            names: layer.names.clone(),
            macs: outcome.counts.macs,
            cycles: outcome.cycles,
            utilization: utilization(outcome.counts.macs, arch.lanes(), outcome.cycles),
            energy_pj: outcome.counts.energy_pj(arch),
            busy_cycles: outcome.busy_cycles,
            stall_cycles: outcome
                .stall_cycles
                .iter()
                .map(|(reason, cycles)| (reason_name(*reason, arch), *cycles))
                .collect(),
            occupancy_cycles: outcome.occupancy,
            levels: levels(&outcome.counts, arch),
            simulation: Simulation {
                events: outcome.events,
                transfers: outcome.transfers,
                skipped_events: outcome.skipped_events,
                skipped_cycles: outcome.skipped_cycles,
            },
            values: values.to_string(),
            values_fault,
            mapped_by,
            problem: layer.problem.clone(),
            mapping,
        }
    }
}

/// MACs ÷ (lanes × cycles).
fn utilization(macs: u64, lanes: u64, cycles: u64) -> f64 {
    if cycles == 0 {
        return 0.0;
    }
    macs as f64 / (lanes as f64 * cycles as f64)
}

fn assumed(arch: &Accelerator) -> Vec<Assumed> {
    arch.assumed()
        .into_iter()
        .map(|(constant, why)| Assumed {
            constant: constant.to_string(),
            why: why.to_string(),
        })
        .collect()
}

fn levels(counts: &Counts, arch: &Accelerator) -> Vec<LevelReport> {
    let network = |traffic: &TensorMap<cyclonest_arch::Traffic>| {
        TensorMap::from_fn(|tensor| {
            let traffic = &traffic[tensor];
            TrafficReport {
                words_by_multicast: traffic.down.iter().map(|(degree, p)| (*degree, p.words)).collect(),
                down: traffic.down.clone(),
                up: traffic.up.clone(),
                bit_hops: traffic.bit_hops,
            }
        })
    };
    counts
        .levels
        .iter()
        .enumerate()
        .map(|(position, level)| LevelReport {
            name: level.name.clone(),
            instances: arch.instances(position),
            tensors: level.tensors,
            network: arch.levels[position].below.is_some().then(|| network(&level.network)),
        })
        .collect()
}

/// The reason with its level by name: `in_flight:Inputs@GB`.
pub(crate) fn reason_name(reason: StallReason, arch: &Accelerator) -> String {
    let at = |kind: &str, tensor: Tensor, level: usize| format!("{kind}:{tensor}@{}", arch.levels[level].name);
    match reason {
        StallReason::Slot { tensor, level } => at("slot", tensor, level),
        StallReason::Port { tensor, level } => at("port", tensor, level),
        StallReason::Network { tensor, level } => at("network", tensor, level),
        StallReason::InFlight { tensor, level } => at("in_flight", tensor, level),
        StallReason::PartialSum { level } => at("partial_sum", Tensor::Outputs, level),
        StallReason::Pipeline | StallReason::Finished | StallReason::Unmapped => reason.to_string(),
    }
}
