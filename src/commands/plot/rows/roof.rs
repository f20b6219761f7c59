//! Rooflines.

use cyclonest_arch::{Accelerator, NetworkKind, Ports, Width};
use cyclonest_plots::RoofRow;
use cyclonest_workloads::Tensor;

use super::{Args, Source, chosen, machine, of_each};
use crate::faults::Faults;
use crate::report::LayerReport;

/// A point per layer; a series per result.
pub(in crate::commands::plot) fn roofline(args: &Args, sources: &[Source]) -> Result<Vec<RoofRow>, Faults> {
    of_each(sources, |result, label| {
        let arch = machine(args.arch.as_deref(), result)?;
        let series = label.unwrap_or(&result.scheduler);
        let layers = chosen(args, result)?.into_iter();
        layers
            .map(|layer| roof_row(&arch, layer, series).map_err(Faults::one))
            .collect()
    })
}

/// MACs per byte at the outermost level, outputs at their final precision, against MACs per cycle.
pub(crate) fn roof_row(arch: &Accelerator, layer: &LayerReport, series: &str) -> Result<RoofRow, String> {
    let bandwidth = outer_bandwidth(arch).ok_or_else(|| {
        format!(
            "{}: neither ports nor network of its outermost level limit anything; it has no roof",
            arch.name
        )
    })?;
    let outer = layer.levels.first().ok_or("a layer without levels")?;
    let bits: u64 = Tensor::ALL
        .into_iter()
        .map(|tensor| {
            let a = &outer.tensors[tensor];
            (a.reads + a.fills + a.updates + a.drains) * arch.bits(tensor, false)
        })
        .sum();
    Ok(RoofRow {
        name: layer.name.clone(),
        series: series.to_string(),
        intensity: layer.macs as f64 / (bits as f64 / 8.0),
        throughput: layer.macs as f64 / layer.cycles as f64,
        peak: arch.lanes() as f64 / arch.compute.interval.max(1) as f64,
        bandwidth,
    })
}

/// Bytes per cycle that the outermost level can read and write together: what its ports or the network below it
/// let through, whichever is less. `None` if neither is limited.
fn outer_bandwidth(arch: &Accelerator) -> Option<f64> {
    let widest = Tensor::ALL
        .map(|t| arch.bits(t, true).max(arch.bits(t, false)))
        .into_iter()
        .max()?;
    let bytes = |width: Width| match width {
        Width::Bits(n) => n as f64 / 8.0,
        Width::Bytes(n) => n as f64,
        Width::Words(n) => n as f64 * widest as f64 / 8.0,
        Width::Unlimited => f64::INFINITY,
    };
    let outer = arch.levels.first()?;
    let ports: f64 = outer
        .banks
        .iter()
        .map(|bank| match bank.ports {
            Ports::Ideal => f64::INFINITY,
            Ports::Shared { read, write } => bytes(read).max(bytes(write)),
            Ports::ReadWrite { read, write } => bytes(read) + bytes(write),
            Ports::PerTensor(pairs) => {
                let held = pairs.iter().filter_map(|(_, pair)| *pair);
                held.map(|pair| bytes(pair.read) + bytes(pair.write)).sum()
            }
        })
        .sum();
    let channels = |down: bool| -> f64 {
        arch.channels(0, down).map_or(f64::INFINITY, |channels| match channels {
            cyclonest_arch::Channels::OneForAll(link) => bytes(link.width),
            cyclonest_arch::Channels::PerTensor(links) => links
                .iter()
                .filter_map(|(_, link)| *link)
                .map(|link| bytes(link.width))
                .sum(),
        })
    };
    let network = outer.below.as_ref().map_or(f64::INFINITY, |network| {
        let clock = network.clock.map_or(1.0, |clock| clock.mhz() / arch.clock.mhz());
        clock
            * match network.kind {
                NetworkKind::Bus(_) => channels(true),
                _ => channels(true) + channels(false),
            }
    });
    let least = ports.min(network);
    (least.is_finite() && least > 0.0).then_some(least)
}
