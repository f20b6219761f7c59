//! Sums over the layers, each as often as the network has it.

use std::collections::BTreeMap;

use cyclonest_arch::{Accelerator, Accesses, Passes};
use cyclonest_workloads::{Tensor, TensorMap};
use serde::{Deserialize, Serialize};

use super::{LayerReport, LevelReport, TrafficReport, utilization};

/// Σ over the simulated layers of count × result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Totals {
    pub(crate) layers: u64,
    pub(crate) distinct_layers: u64,
    pub(crate) macs: u64,
    pub(crate) cycles: u64,
    pub(crate) milliseconds: f64,
    pub(crate) utilization: f64,
    pub(crate) energy_pj: f64,
    pub(crate) busy_cycles: u64,
    pub(crate) stall_cycles: BTreeMap<String, u64>,
    pub(crate) levels: Vec<LevelReport>,
}

/// A sum that exceeds 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overflow;

impl Totals {
    /// Adds up `layers` of `arch`.
    pub(crate) fn of(arch: &Accelerator, layers: &[LayerReport]) -> Result<Self, Overflow> {
        let sum = |value: fn(&LayerReport) -> u64| {
            let mut total = 0;
            for layer in layers {
                add(&mut total, value(layer), layer.count)?;
            }
            Ok(total)
        };
        let (macs, cycles) = (sum(|l| l.macs)?, sum(|l| l.cycles)?);
        let mut stall_cycles = BTreeMap::new();
        let mut levels: Vec<LevelReport> = Vec::new();
        for layer in layers {
            for (reason, &stalled) in &layer.stall_cycles {
                add(stall_cycles.entry(reason.clone()).or_default(), stalled, layer.count)?;
            }
            if levels.is_empty() {
                levels = layer.levels.iter().map(emptied).collect();
            }
            for (total, level) in levels.iter_mut().zip(&layer.levels) {
                add_level(total, level, layer.count)?;
            }
        }
        Ok(Totals {
            layers: sum(|_| 1)?,
            distinct_layers: layers.len() as u64,
            macs,
            cycles,
            milliseconds: cycles as f64 / (arch.clock.mhz() * 1e3),
            utilization: utilization(macs, arch.lanes(), cycles),
            energy_pj: layers.iter().map(|l| l.energy_pj * l.count as f64).sum(),
            busy_cycles: sum(|l| l.busy_cycles)?,
            stall_cycles,
            levels,
        })
    }
}

fn add(total: &mut u64, value: u64, count: u64) -> Result<(), Overflow> {
    *total = value
        .checked_mul(count)
        .and_then(|v| total.checked_add(v))
        .ok_or(Overflow)?;
    Ok(())
}

fn emptied(level: &LevelReport) -> LevelReport {
    LevelReport {
        name: level.name.clone(),
        instances: level.instances,
        tensors: TensorMap::default(),
        network: level
            .network
            .as_ref()
            .map(|_| TensorMap::from_fn(|_| TrafficReport::default())),
    }
}

fn add_level(total: &mut LevelReport, level: &LevelReport, count: u64) -> Result<(), Overflow> {
    for tensor in Tensor::ALL {
        // Named one by one, so that a new counter cannot be forgotten here.
        let Accesses {
            reads,
            fills,
            updates,
            drains,
            read_modify_writes,
        } = level.tensors[tensor];
        let sum = &mut total.tensors[tensor];
        add(&mut sum.reads, reads, count)?;
        add(&mut sum.fills, fills, count)?;
        add(&mut sum.updates, updates, count)?;
        add(&mut sum.drains, drains, count)?;
        add(&mut sum.read_modify_writes, read_modify_writes, count)?;
        if let (Some(sum), Some(network)) = (&mut total.network, &level.network) {
            let (sum, traffic) = (&mut sum[tensor], &network[tensor]);
            for (&degree, &words) in &traffic.words_by_multicast {
                add(sum.words_by_multicast.entry(degree).or_default(), words, count)?;
            }
            add_passes(&mut sum.down, &traffic.down, count)?;
            add_passes(&mut sum.up, &traffic.up, count)?;
            add(&mut sum.bit_hops, traffic.bit_hops, count)?;
        }
    }
    Ok(())
}

fn add_passes(total: &mut BTreeMap<u64, Passes>, passes: &BTreeMap<u64, Passes>, count: u64) -> Result<(), Overflow> {
    for (&degree, passes) in passes {
        let sum = total.entry(degree).or_default();
        add(&mut sum.elements, passes.elements, count)?;
        add(&mut sum.words, passes.words, count)?;
    }
    Ok(())
}
