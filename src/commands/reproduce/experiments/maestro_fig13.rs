//! MAESTRO, Fig. 13: area, power and throughput of many designs for one layer.

use std::time::Instant;

use cyclonest_arch::directives::Style as Dataflow;
use cyclonest_plots::{Better, CloudOptions, CloudRow, Scale, Style, pareto};
use cyclonest_scheduler::cost::maestro::{Machine, evaluate};

use super::super::experiment::Results;
use super::super::lab::Lab;

/// The paper's budgets.
const AREA_MM2: f64 = 16.0;
const POWER_MW: f64 = 450.0;

pub(super) fn run(lab: &Lab) -> Result<Results, String> {
    let mut results = Results::default();
    let network = cyclonest_workloads::bundled::load("vgg16").ok_or("bundled")?;
    let distinct = network.distinct();
    let step = if lab.quick { 16 } else { 4 };
    let (mut judged, start) = (0_u64, Instant::now());
    for (figure, layer_name) in [("early", "conv2_1"), ("late", "conv5_1")] {
        let layer = distinct
            .iter()
            .find(|layer| layer.names.iter().any(|n| n == layer_name))
            .ok_or_else(|| format!("vgg16 has no layer `{layer_name}`"))?;
        let macs = layer.problem.macs() as f64;
        let mut rows = Vec::new();
        let mut best: Option<(f64, u64, u64, f64)> = None;
        for style in [Dataflow::KCP, Dataflow::YRP] {
            for pes in (64..=1024).step_by(step) {
                let Ok(described) = style.layer(layer_name, &layer.problem, pes) else {
                    continue;
                };
                for noc_bandwidth in (4..=64).step_by(step) {
                    let machine = Machine {
                        pes,
                        noc_bandwidth,
                        noc_latency: 1,
                        offchip_bandwidth: 1 << 20,
                    };
                    judged += 1;
                    let Ok(e) = evaluate(&described, &machine) else {
                        continue;
                    };
                    let (area, power) = (e.area(&machine).total() / 1e6, e.power(&machine).total());
                    if area > AREA_MM2 || power > POWER_MW {
                        continue;
                    }
                    let throughput = macs / e.runtime as f64;
                    if best.is_none_or(|b| throughput > b.0) {
                        best = Some((throughput, pes, noc_bandwidth, area));
                    }
                    rows.push(CloudRow {
                        series: style.name().to_string(),
                        x: area,
                        y: throughput,
                        name: Some(format!("{pes} PEs, {noc_bandwidth} elements/cycle")),
                    });
                }
            }
        }
        let options = CloudOptions {
            x_label: "area [mm²]".to_string(),
            y_label: format!("{figure} layer [MACs/cycle]"),
            x_scale: Scale::Linear,
            y_scale: Scale::Linear,
            x_better: Better::Lower,
            y_better: Better::Higher,
        };
        results.figure(figure, pareto(&rows, &options, &Style::default()))?;
        let (throughput, pes, bandwidth, area) = best.ok_or("no design within the budgets")?;
        let largest = rows.iter().map(|row| row.x).fold(0.0, f64::max);
        results.found(
            format!("{figure} layer: the design with the highest throughput"),
            "moderate numbers of PEs and buffers",
            format!(
                "{throughput:.0} MACs/cycle with {pes} PEs and {bandwidth} elements/cycle on {area:.1} mm²; the largest \
                 design within the budgets has {largest:.1} mm²"
            ),
        );
    }
    let rate = judged as f64 / start.elapsed().as_secs_f64();
    results.found(
        "designs per second",
        "170,000 on average, skipped ones counted",
        format!("{rate:.0} evaluated on one thread, none skipped"),
    );
    Ok(results)
}
