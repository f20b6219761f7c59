//! Ours: the cost models against the simulation.

use cyclonest_plots::{ScatterOptions, ScatterRow, Style, scatter};
use cyclonest_scheduler::cost;

use super::super::experiment::Results;
use super::super::lab::{COSA_NETWORKS, Lab, accelerator, judge};
use crate::parallel;

pub(super) fn run(lab: &Lab) -> Result<Results, String> {
    let mut rows = Vec::new();
    let mut results = Results::default();
    for name in ["simba", "eyeriss", "nvdla_like"] {
        let arch = accelerator(name)?;
        let jobs = lab.layers(&COSA_NETWORKS);
        let judged = parallel::map(
            &jobs,
            lab.threads,
            |job| job.problem.macs(),
            |job| judge(job, &arch, "greedy"),
            |_| {},
        );
        for model in ["exact", "exact:quick", "timeloop"] {
            let judge = cost::by_name(model).ok_or("no such model")?;
            let mut errors = Vec::new();
            for one in judged.iter().flatten() {
                let Ok(estimate) = judge.evaluate(&one.problem, &arch, &one.mapping) else {
                    continue;
                };
                errors.push((estimate.cycles / one.cycles as f64 - 1.0).abs());
                rows.push(ScatterRow {
                    name: format!("{name} {} {}", one.network, one.layer),
                    series: model.to_string(),
                    simulated: one.cycles as f64,
                    modelled: estimate.cycles,
                });
            }
            if errors.is_empty() {
                return Err(format!("{model} judges no layer on {name}"));
            }
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            let worst = errors.iter().copied().fold(0.0, f64::max);
            results.found(
                format!(
                    "{model} on {name}: mean and largest error of the cycles, {} layers",
                    errors.len()
                ),
                "–",
                format!("{:.2} % and {:.1} %", mean * 100.0, worst * 100.0),
            );
        }
    }
    results.figure("", scatter(&rows, &ScatterOptions::cycles(), &Style::default()))?;
    Ok(results)
}
