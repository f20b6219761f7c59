//! SAMO, Fig. 3: where the time of a latency-driven and of a throughput-driven design goes.

use cyclonest_arch::streaming::{Coefficients, Objective};
use cyclonest_plots::{StackOptions, StackRow, Style, stacked};
use cyclonest_scheduler::streaming::{Budget, Exact};
use cyclonest_sim::streaming::simulate_design;

use super::super::experiment::Results;
use super::super::lab::{Lab, Stage};

const BATCH: u64 = 256;

pub(super) fn run(lab: &Lab) -> Result<Results, String> {
    let network = if lab.quick { "cnv" } else { "mobilenet_v1_samo" };
    let stage = Stage::new(network, "fpgaconvnet", "zc706", Coefficients::estimate())?;
    let mut rows = Vec::new();
    let mut rates = Vec::new();
    for (name, objective) in [
        ("latency", Objective::Latency),
        ("throughput", Objective::Throughput { batch: BATCH }),
    ] {
        let found = stage
            .solve(&Exact::default(), objective, Budget::default())
            .map_err(|error| error.to_string())?;
        for frames in [1, BATCH] {
            let outcome = simulate_design(
                &stage.graph,
                stage.flow.as_ref(),
                &found.design,
                &stage.platform,
                frames,
            )
            .map_err(|error| error.to_string())?;
            let per_frame = |us: f64| us / 1000.0 / frames as f64;
            for (part, us) in [
                ("execution", outcome.execution_us),
                ("reconfiguration", outcome.reconfiguration_us),
            ] {
                rows.push(StackRow {
                    bar: format!("{name}, {frames}"),
                    part: part.to_string(),
                    detail: None,
                    value: per_frame(us),
                });
            }
            rates.push((name, frames, outcome.frames_per_second, outcome.partitions.len()));
        }
    }
    let mut results = Results::default();
    let options = StackOptions {
        y_label: "share of the time [%]".to_string(),
        x_label: format!("{network}: design, frames"),
        shares: true,
    };
    results.figure("", stacked(&rows, &options, &Style::default()))?;
    let of = |name: &str, frames: u64| {
        rates
            .iter()
            .find(|r| r.0 == name && r.1 == frames)
            .expect("both are run")
    };
    results.found(
        format!("{network} on zc706: frames per second of the throughput-driven design over the latency-driven one, {BATCH} frames"),
        "no value at hand",
        format!(
            "{:.2} times, in {} instead of {} partitions (simulated)",
            of("throughput", BATCH).2 / of("latency", BATCH).2,
            of("throughput", BATCH).3,
            of("latency", BATCH).3
        ),
    );
    Ok(results)
}
