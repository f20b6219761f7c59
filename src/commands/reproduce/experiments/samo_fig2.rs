//! SAMO, Fig. 2: annealing against the rule, at equal evaluations.

use cyclonest_arch::streaming::{Coefficients, Objective};
use cyclonest_plots::{ConvergenceOptions, ConvergenceRow, Scale, Style, convergence};
use cyclonest_scheduler::streaming::{Anneal, Budget, Exact, Rule};

use super::super::experiment::Results;
use super::super::lab::{Lab, Stage};

pub(super) fn run(lab: &Lab) -> Result<Results, String> {
    let (networks, seeds): (&[&'static str], u64) = if lab.quick {
        (&["cnv"], 15)
    } else {
        (&["cnv", "mobilenet_v1_samo"], 50)
    };
    let mut results = Results::default();
    for &network in networks {
        let stage = Stage::new(network, "finn", "u250_1slr", Coefficients::estimate())?;
        let solve = |optimiser: &dyn cyclonest_scheduler::streaming::Optimiser, budget| {
            stage
                .solve(optimiser, Objective::Latency, budget)
                .map_err(|error| error.to_string())
        };
        let exact = solve(&Exact::default(), Budget::default())?;
        let rule = solve(&Rule, Budget::default())?;
        let mut rows = Vec::new();
        let mut times = Vec::new();
        for seed in 0..seeds {
            let budget = Budget {
                evaluations: rule.evaluations,
                seed,
            };
            // A seed that finds nothing counts as endlessly slow.
            let Ok(found) = stage.solve(&Anneal, Objective::Latency, budget) else {
                times.push(f64::INFINITY);
                continue;
            };
            times.push(found.time_us);
            rows.extend(found.convergence.iter().map(|&(evaluations, best)| ConvergenceRow {
                series: "annealing".to_string(),
                seed,
                evaluations: evaluations.max(1) as f64,
                best,
            }));
        }
        for evaluations in [1, rule.evaluations] {
            for (series, best) in [("rule", rule.time_us), ("proven optimum", exact.time_us)] {
                rows.push(ConvergenceRow {
                    series: series.to_string(),
                    seed: 0,
                    evaluations: evaluations as f64,
                    best,
                });
            }
        }
        times.sort_by(f64::total_cmp);
        let options = ConvergenceOptions {
            y_label: format!("{network}: latency [µs]"),
            x_scale: Scale::Log,
            y_scale: Scale::Log,
        };
        results.figure(network, convergence(&rows, &options, &Style::default()))?;
        let as_good = times.iter().filter(|&&t| t <= rule.time_us * (1.0 + 1e-9)).count();
        results.found(
            format!(
                "{network}, FINN: seeds of annealing as good as the rule at {} evaluations",
                rule.evaluations
            ),
            "no value at hand",
            format!(
                "{as_good} of {seeds}; median {:.2} times the rule's latency, which is {:.3} times the proven optimum",
                times[times.len() / 2] / rule.time_us,
                rule.time_us / exact.time_us
            ),
        );
    }
    Ok(results)
}
