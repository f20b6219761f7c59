//! SAMO, Fig. 4: throughput over the batch.

use cyclonest_arch::streaming::{Coefficients, Objective};
use cyclonest_plots::{LineOptions, LineRow, Scale, Style, lines};
use cyclonest_scheduler::streaming::{Budget, Exact};

use super::super::experiment::Results;
use super::super::lab::{Lab, Stage};

pub(super) fn run(lab: &Lab) -> Result<Results, String> {
    let stage = Stage::new("cnv", "fpgaconvnet", "zc706", Coefficients::estimate())?;
    let batches = if lab.quick {
        vec![1, 16, 256, 4096]
    } else {
        (0..13).map(|n| 1 << n).collect()
    };
    let mut rows = Vec::new();
    let mut found = Vec::new();
    for batch in batches {
        let design = stage
            .solve(&Exact::default(), Objective::Throughput { batch }, Budget::default())
            .map_err(|error| error.to_string())?;
        let rate = batch as f64 / design.time_us * 1e6;
        rows.push(LineRow {
            series: "throughput [frames/s]".to_string(),
            x: batch as f64,
            y: rate,
        });
        rows.push(LineRow {
            series: "time of the batch [ms]".to_string(),
            x: batch as f64,
            y: design.time_us / 1000.0,
        });
        found.push((batch, rate, design.time_us / 1000.0, design.design.cuts.len() + 1));
    }
    let mut results = Results::default();
    let options = LineOptions {
        x_label: "batch [frames]".to_string(),
        y_label: "CNV on zc706".to_string(),
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        from_zero: false,
    };
    results.figure("", lines(&rows, &options, &Style::default()))?;
    // The data of its plotting script.
    for (batch, rate, ms) in [(1, 11.9, 84.219), (256, 571.0, 448.707), (4096, 1051.86, 3894.022)] {
        let ours = found.iter().find(|f| f.0 == batch).expect("the batch is run");
        results.found(
            format!("CNV by fpgaConvNet, batch {batch}"),
            format!("{rate} frames/s, {ms:.1} ms"),
            format!("{:.1} frames/s, {:.1} ms in {} partitions", ours.1, ours.2, ours.3),
        );
    }
    Ok(results)
}
