//! Models and searches: estimates against simulation, the best found over the evaluations.

use cyclonest_plots::{ConvergenceRow, ScatterRow};

use super::{Args, Source, is_table, tables, unfit};
use crate::faults::Faults;
use crate::results::{Data, ScheduledLayer};

/// Model and simulator, per layer.
pub(in crate::commands::plot) fn scatter(args: &Args, sources: &[Source]) -> Result<Vec<ScatterRow>, Faults> {
    if sources.iter().all(is_table) {
        return tables(sources);
    }
    let mut rows = Vec::new();
    for source in sources {
        match &source.data {
            Data::Benched(bench) => rows.extend(bench.rows.iter().filter_map(|row| {
                Some(ScatterRow {
                    name: format!("{} {}", row.network, row.layer),
                    series: row.scheduler.clone(),
                    simulated: row.cycles? as f64,
                    modelled: row.estimated_cycles?,
                })
            })),
            Data::Compared(compared) => {
                for layer in &compared.layers {
                    for verdict in &layer.verdicts {
                        // Without an error the estimate is a rank, not cycles.
                        if let (Some(estimate), Some(_)) = (verdict.estimate, verdict.error) {
                            rows.push(ScatterRow {
                                name: format!("{} {} {}", layer.arch, layer.network, layer.layer),
                                series: verdict.model.clone(),
                                simulated: layer.cycles as f64,
                                modelled: estimate,
                            });
                        }
                    }
                }
            }
            _ => return Err(unfit(source, "results of compare or bench schedulers, or CSV")),
        }
    }
    let wanted = |row: &ScatterRow| {
        args.layer
            .as_ref()
            .is_none_or(|layer| row.name.ends_with(layer.as_str()))
    };
    rows.retain(wanted);
    Ok(rows)
}

/// Improvements of searches; results of one scheduler with several seeds are one series.
pub(in crate::commands::plot) fn convergence(args: &Args, sources: &[Source]) -> Result<Vec<ConvergenceRow>, Faults> {
    if sources.iter().all(is_table) {
        return tables(sources);
    }
    let mut rows = Vec::new();
    for source in sources {
        let Data::Scheduled(result) = &source.data else {
            return Err(unfit(source, "results of schedule, or CSV"));
        };
        let wanted = |layer: &&ScheduledLayer| args.layer.as_ref().is_none_or(|name| layer.layer == *name);
        let layers: Vec<&ScheduledLayer> = result.layers.iter().filter(wanted).collect();
        if layers.is_empty() {
            let known: Vec<String> = result.layers.iter().map(|layer| layer.layer.clone()).collect();
            return Err(Faults::unknown(
                "layer",
                args.layer.as_deref().unwrap_or_default(),
                &known,
            ));
        }
        for layer in &layers {
            let series = match layers.len() {
                1 => result.scheduler.clone(),
                _ => format!("{} {}", result.scheduler, layer.layer),
            };
            rows.extend(layer.convergence.iter().map(|&(evaluations, best)| ConvergenceRow {
                series: series.clone(),
                seed: result.seed,
                evaluations: evaluations as f64,
                best,
            }));
        }
    }
    Ok(rows)
}
