//! MAESTRO, Fig. 10: runtime and energy of the five dataflows on five networks, and of the best one per layer.

use cyclonest_arch::directives::Style as Dataflow;
use cyclonest_plots::{BarOptions, BarRow, Scale, Style, Width, bars};
use cyclonest_scheduler::cost::maestro::{Machine, evaluate};

use super::super::experiment::Results;
use super::super::lab::Lab;

/// 256 PEs and 32 elements per cycle, as in the paper; memory never limits.
pub(super) const MACHINE: Machine = Machine {
    pes: 256,
    noc_bandwidth: 32,
    noc_latency: 2,
    offchip_bandwidth: 1 << 20,
};

const NETWORKS: [&str; 5] = ["resnet50", "vgg16", "resnext50_32x4d", "mobilenet_v2", "unet"];

pub(super) fn run(_: &Lab) -> Result<Results, String> {
    let mut results = Results::default();
    let mut rows = [Vec::new(), Vec::new()];
    // The adaptive choice relative to each network's best fixed style, and to the mean of the five.
    let (mut over_best, mut over_mean) = ([0.0; 2], [0.0; 2]);
    let (mut left_out, mut layers) = (0, 0);
    for name in NETWORKS {
        let network = cyclonest_workloads::bundled::load(name).ok_or("bundled")?;
        let mut sums = [[0.0; 2]; 5];
        let mut best = [0.0; 2];
        for layer in network.distinct() {
            layers += 1;
            let all: Option<Vec<[f64; 2]>> = Dataflow::ALL
                .into_iter()
                .map(|style| {
                    let described = style.layer(&layer.name, &layer.problem, MACHINE.pes).ok()?;
                    let e = evaluate(&described, &MACHINE).ok()?;
                    Some([e.runtime as f64, e.energy_macs()])
                })
                .collect();
            let Some(all) = all else {
                left_out += 1;
                continue;
            };
            for axis in 0..2 {
                let count = layer.count as f64;
                for (sum, one) in sums.iter_mut().zip(&all) {
                    sum[axis] += one[axis] * count;
                }
                best[axis] += all.iter().map(|one| one[axis]).fold(f64::INFINITY, f64::min) * count;
            }
        }
        for axis in 0..2 {
            let least = sums.iter().map(|sum| sum[axis]).fold(f64::INFINITY, f64::min);
            let mean = sums.iter().map(|sum| sum[axis]).sum::<f64>() / sums.len() as f64;
            over_best[axis] += best[axis] / least / NETWORKS.len() as f64;
            over_mean[axis] += best[axis] / mean / NETWORKS.len() as f64;
            for (series, value) in Dataflow::ALL
                .iter()
                .zip(&sums)
                .map(|(style, sum)| (style.name(), sum[axis]))
                .chain([("adaptive", best[axis])])
            {
                rows[axis].push(BarRow {
                    group: name.to_string(),
                    series: series.to_string(),
                    value,
                });
            }
        }
    }
    for (axis, (name, label)) in [("runtime", "runtime [cycles]"), ("energy", "energy [MACs]")]
        .into_iter()
        .enumerate()
    {
        let options = BarOptions {
            y_label: label.to_string(),
            x_label: String::new(),
            scale: Scale::Log,
            geomean: false,
            reference: None,
        };
        let style = Style {
            width: Width::Ieee2,
            ..Style::default()
        };
        results.figure(name, bars(&rows[axis], &options, &style))?;
    }
    for (axis, (what, paper)) in [("runtime", "37 %"), ("energy", "10 %")].into_iter().enumerate() {
        results.found(
            format!("{what} saved by the best dataflow per layer, mean of the networks"),
            paper,
            format!(
                "{:.0} % against the best fixed one, {:.0} % against the mean of the five (model `maestro`)",
                (1.0 - over_best[axis]) * 100.0,
                (1.0 - over_mean[axis]) * 100.0
            ),
        );
    }
    if left_out > 0 {
        results.skipped.push(format!(
            "{left_out} of {layers} layers that one of the dataflows cannot be described or evaluated for"
        ));
    }
    Ok(results)
}
