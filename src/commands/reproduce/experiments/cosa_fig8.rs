//! CoSA, Fig. 8: the objective's parts for one layer under three schedulers.

use cyclonest_plots::{BarOptions, BarRow, Scale, Style, bars};
use cyclonest_scheduler::cost::cosa::CosaModel;
use cyclonest_workloads::{Dim, DimMap, Padding, Problem};

use super::super::experiment::Results;
use super::super::lab::{Job, Lab, accelerator, judge};

/// Layer 3_7_512_512_1 of ResNet-50: a 3×3 kernel, 7×7 outputs, 512 channels on both sides, stride 1.
fn layer() -> Problem {
    let bounds = DimMap::from_fn(|dim| match dim {
        Dim::R | Dim::S => 3,
        Dim::P | Dim::Q => 7,
        Dim::C | Dim::K => 512,
        _ => 1,
    });
    Problem {
        padding: Padding {
            top: 1,
            bottom: 1,
            left: 1,
            right: 1,
        },
        ..Problem::new(bounds)
    }
}

pub(super) fn run(_: &Lab) -> Result<Results, String> {
    let arch = accelerator("simba")?;
    let job = Job {
        network: "resnet50".to_string(),
        layer: "3_7_512_512_1".to_string(),
        problem: layer(),
    };
    let mut rows = Vec::new();
    let mut judged = Vec::new();
    for (series, scheduler) in [("CoSA", "milp:cosa"), ("hybrid", "hybrid"), ("random", "random:naive")] {
        let one = judge(&job, &arch, scheduler).ok_or_else(|| format!("{scheduler} finds no mapping"))?;
        let parts = CosaModel::default().objective(&job.problem, &arch, &one.mapping);
        for (group, value) in [
            ("compute", parts.compute),
            ("traffic", parts.traffic),
            ("utilisation", parts.utilisation),
        ] {
            rows.push(BarRow {
                group: group.to_string(),
                series: series.to_string(),
                value,
            });
        }
        judged.push((series, parts, one.cycles));
    }
    let mut results = Results::default();
    let options = BarOptions {
        y_label: "part of the objective [log₂]".to_string(),
        x_label: String::new(),
        scale: Scale::Linear,
        geomean: false,
        reference: None,
    };
    results.figure("", bars(&rows, &options, &Style::default()))?;
    let (cosa, random) = (&judged[0], &judged[2]);
    results.found(
        "objective of CoSA, hybrid, random",
        "CoSA's is the lowest",
        judged
            .iter()
            .map(|(name, parts, _)| format!("{name} {:.1}", parts.objective))
            .collect::<Vec<_>>()
            .join(", "),
    );
    results.found(
        "speed-up over random on this layer",
        "7×",
        format!("{:.1}× (simulated)", random.2 as f64 / cosa.2 as f64),
    );
    Ok(results)
}
