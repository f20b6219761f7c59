//! Ours: simulated cycles per second of processor time, beside what others reach.

use cyclonest_plots::{BarOptions, BarRow, Scale, Style, bars};
use cyclonest_scheduler::Request;
use cyclonest_sim::{FastForward, Options};

use super::super::experiment::Results;
use super::super::lab::{Lab, accelerator};
use crate::search::{cpu_seconds, geomean};

/// The system counts processor time in steps of some milliseconds: a layer is simulated again until they do not matter.
const LEAST_SECONDS: f64 = 0.1;

pub(super) fn run(lab: &Lab) -> Result<Results, String> {
    let arch = accelerator("simba")?;
    let scheduler = cyclonest_scheduler::by_name("greedy").ok_or("no scheduler `greedy`")?;
    let mut rows = Vec::new();
    let mut rates = [Vec::new(), Vec::new()];
    for job in lab.layers(&["resnet50"]) {
        let scheduled = scheduler
            .schedule(&Request::new(&job.problem, &arch))
            .map_err(|error| format!("{}: {error}", job.layer))?;
        for (index, (series, fast_forward)) in [("every event", FastForward::Off), ("periods skipped", FastForward::On)]
            .into_iter()
            .enumerate()
        {
            let options = Options {
                fast_forward,
                ..Options::default()
            };
            let (start, mut cycles) = (cpu_seconds(), 0);
            let seconds = loop {
                let outcome = cyclonest_sim::simulate(&job.problem, &arch, &scheduled.mapping, options)
                    .map_err(|error| format!("{}: {error}", job.layer))?;
                cycles += outcome.cycles;
                let seconds = cpu_seconds() - start;
                if seconds >= LEAST_SECONDS {
                    break seconds;
                }
            };
            let rate = cycles as f64 / seconds;
            rates[index].push(rate);
            rows.push(BarRow {
                group: job.layer.clone(),
                series: series.to_string(),
                value: rate,
            });
        }
    }
    let mut results = Results::default();
    let options = BarOptions {
        y_label: "simulated cycles per CPU second".to_string(),
        x_label: String::new(),
        scale: Scale::Log,
        geomean: true,
        reference: None,
    };
    results.figure("", bars(&rows, &options, &Style::default()))?;
    for (index, what) in ["every event", "periods skipped"].into_iter().enumerate() {
        results.found(
            format!("ResNet-50 on simba, {what}: simulated cycles per CPU second, geometric mean"),
            "SCALE-Sim 4,000 to 7,000; STONNE 2,000 to 35,000",
            format!("{:.0}", geomean(rates[index].iter().copied()).unwrap_or(0.0)),
        );
    }
    Ok(results)
}
