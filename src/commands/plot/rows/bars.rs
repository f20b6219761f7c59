//! Bars: speed-ups and reuse.

use cyclonest_plots::BarRow;
use cyclonest_workloads::Tensor;

use super::{Args, Source, chosen, is_table, labels, of_each, simulated, tables};
use crate::faults::Faults;
use crate::report::LevelReport;
use crate::results::Data;

/// Cycles of the baseline ÷ cycles, per layer.
pub(in crate::commands::plot) fn speedups(args: &Args, sources: &[Source]) -> Result<Vec<BarRow>, Faults> {
    if sources.iter().all(is_table) {
        return tables(sources);
    }
    let cycles = cycles_by_series(args, sources)?;
    let mut series: Vec<String> = Vec::new();
    for (_, name, _) in &cycles {
        if !series.contains(name) {
            series.push(name.clone());
        }
    }
    let baseline = match &args.baseline {
        None => series.first().cloned().unwrap_or_default(),
        Some(name) if series.contains(name) => name.clone(),
        Some(name) => return Err(Faults::unknown("series", name, &series)),
    };
    let base: std::collections::BTreeMap<&str, u64> = cycles
        .iter()
        .filter(|(_, name, _)| *name == baseline)
        .filter_map(|(group, _, cycles)| cycles.map(|cycles| (group.as_str(), cycles)))
        .collect();
    if base.is_empty() {
        return Err(Faults::one(format!(
            "{}: the baseline {baseline} has no result for any layer\n  help: choose another with --baseline",
            sources[0].path.display()
        )));
    }
    Ok(cycles
        .iter()
        .filter(|(_, name, _)| *name != baseline)
        .filter_map(|(group, series, cycles)| {
            let (base, cycles) = (base.get(group.as_str())?, (*cycles)?);
            Some(BarRow {
                group: group.clone(),
                series: series.clone(),
                value: *base as f64 / cycles as f64,
            })
        })
        .collect())
}

/// Layer, series and cycles: of one result of `bench schedulers`, or of several of `simulate`.
fn cycles_by_series(args: &Args, sources: &[Source]) -> Result<Vec<(String, String, Option<u64>)>, Faults> {
    Ok(match sources {
        [
            Source {
                data: Data::Benched(bench),
                ..
            },
        ] => {
            let several = bench.rows.iter().any(|row| row.network != bench.rows[0].network);
            let rows = bench.rows.iter().map(|row| {
                let group = if several {
                    format!("{} {}", row.network, row.layer)
                } else {
                    row.layer.clone()
                };
                (group, row.scheduler.clone(), row.cycles)
            });
            rows.collect()
        }
        _ => {
            let results = simulated(
                sources,
                "one result of bench schedulers, or several of simulate, or CSV",
            )?;
            if results.len() < 2 {
                return Err(Faults::one(format!(
                    "{}: is one result; a speed-up needs two\n  help: give the baseline first, then the others",
                    sources[0].path.display()
                )));
            }
            let mut rows = Vec::new();
            for (result, label) in results.iter().zip(labels(&results)) {
                for layer in chosen(args, result)? {
                    rows.push((layer.name.clone(), label.clone(), Some(layer.cycles)));
                }
            }
            rows
        }
    })
}

/// Uses per element that is fetched, by level and tensor: of operands, reads ÷ fills; of outputs, updates ÷ drains.
pub(in crate::commands::plot) fn reuse(args: &Args, sources: &[Source]) -> Result<Vec<BarRow>, Faults> {
    of_each(sources, |result, label| {
        let levels: &[LevelReport] = match &args.layer {
            None => &result.totals.levels,
            Some(_) => &chosen(args, result)?[0].levels,
        };
        let mut rows = Vec::new();
        for level in levels {
            for tensor in Tensor::ALL {
                let a = &level.tensors[tensor];
                let (uses, fetched) = match tensor {
                    Tensor::Outputs => (a.updates, a.drains),
                    _ => (a.reads, a.fills),
                };
                if uses > 0 && fetched > 0 {
                    rows.push(BarRow {
                        group: level.name.clone(),
                        series: label.map_or_else(|| tensor.to_string(), |label| format!("{label} {tensor}")),
                        value: uses as f64 / fetched as f64,
                    });
                }
            }
        }
        Ok(rows)
    })
}
