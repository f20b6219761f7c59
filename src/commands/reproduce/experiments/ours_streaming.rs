//! Ours: the slowest node as a model of a streaming pipeline, against its simulation.

use cyclonest_arch::streaming::{Coefficients, Objective};
use cyclonest_plots::{LineOptions, LineRow, Scale, Style, lines};
use cyclonest_scheduler::streaming::{Budget, Rule};
use cyclonest_sim::streaming::{Ends, Options, partition_pipeline, simulate};

use super::super::experiment::Results;
use super::super::lab::{Lab, Stage};

pub(super) fn run(lab: &Lab) -> Result<Results, String> {
    let networks: &[&str] = if lab.quick {
        &["tfc", "lenet", "cnv"]
    } else {
        &["tfc", "lenet", "mpcnn", "cnv", "vgg11"]
    };
    let mut rows = Vec::new();
    let mut results = Results::default();
    for &network in networks {
        for flow in ["finn", "hls4ml"] {
            let stage = Stage::new(network, flow, "u250", Coefficients::estimate())?;
            // Where nothing fits in one partition there is no pipeline to compare with.
            let Ok(mut found) = stage.solve(&Rule, Objective::Latency, Budget::default()) else {
                continue;
            };
            if !found.design.cuts.is_empty() {
                continue;
            }
            found.design.fifo_depths = vec![1 << 14; stage.graph.edges.len()];
            let nodes = (0, stage.graph.nodes.len() - 1);
            let pipeline = partition_pipeline(&stage.graph, stage.flow.as_ref(), &found.design, nodes, Ends::Unlimited);
            let outcome = simulate(
                &pipeline,
                Options {
                    frames: 8,
                    fast_forward: true,
                },
            )
            .map_err(|error| error.to_string())?;
            let slowest = (0..stage.graph.nodes.len())
                .map(|n| stage.flow.latency(&stage.graph.nodes[n], found.design.foldings[n].1))
                .max()
                .unwrap_or(0) as f64;
            let error = |batch: u64| {
                let simulated = outcome.first_frame as f64 + (batch - 1) as f64 * outcome.interval();
                (batch as f64 * slowest / simulated - 1.0).abs()
            };
            let batches = (0..=16).map(|n| 1_u64 << n);
            rows.extend(batches.clone().map(|batch| LineRow {
                series: format!("{network} {flow}"),
                x: batch as f64,
                y: (error(batch) * 100.0).max(1e-3),
            }));
            let below = batches.rev().take_while(|&batch| error(batch) < 0.01).last();
            results.found(
                format!(
                    "{network} by {flow}: error of the slowest node for one frame; batch from which it is below 1 %"
                ),
                "–",
                format!(
                    "{:.0} %; {}",
                    error(1) * 100.0,
                    below.map_or("never".to_string(), |b| b.to_string())
                ),
            );
        }
    }
    let options = LineOptions {
        x_label: "batch [frames]".to_string(),
        y_label: "error of the model [%]".to_string(),
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        from_zero: false,
    };
    results.figure("", lines(&rows, &options, &Style::default()))?;
    Ok(results)
}
