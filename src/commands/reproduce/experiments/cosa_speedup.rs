//! CoSA, Figs. 6, 7 and 9: what its schedules gain over random search and over Timeloop's hybrid search.

use cyclonest_plots::{BarOptions, BarRow, Style, Width, bars};

use super::super::experiment::Results;
use super::super::lab::{COSA_NETWORKS, Judged, Lab, ratios};
use crate::search::geomean;

/// The paper's baseline: the best of five valid random mappings.
const RANDOM: &str = "random:naive";

/// Timeloop's hybrid search with the victory condition of the paper, smaller in a quick run.
fn hybrid(lab: &Lab) -> &'static str {
    if lab.quick { "hybrid:100" } else { "hybrid" }
}

fn cycles(judged: &Judged) -> f64 {
    judged.cycles as f64
}

/// A value of `random:naive` ÷ that of others, as bars per network, and the means over all layers.
fn compare(
    lab: &Lab,
    archs: &[&'static str],
    label: &str,
    value: fn(&Judged) -> f64,
    results: &mut Results,
) -> Result<Vec<(&'static str, f64, f64)>, String> {
    let mut means = Vec::new();
    let mut rows = Vec::new();
    for &arch in archs {
        let random = lab.judged(arch, RANDOM)?;
        let mut mean = [0.0; 2];
        for (index, (series, scheduler)) in [("CoSA", "milp"), ("hybrid", hybrid(lab))].into_iter().enumerate() {
            let judged = lab.judged(arch, scheduler)?;
            let all = ratios(&random, &judged, value);
            mean[index] = geomean(all.iter().map(|r| r.1)).ok_or("no layer maps")?;
            for network in COSA_NETWORKS {
                let own = geomean(all.iter().filter(|r| r.0 == network).map(|r| r.1));
                rows.extend(own.map(|value| BarRow {
                    group: match archs.len() {
                        1 => network.to_string(),
                        _ => format!("{network} {arch}"),
                    },
                    series: series.to_string(),
                    value,
                }));
            }
        }
        means.push((arch, mean[0], mean[0] / mean[1]));
    }
    let options = BarOptions {
        y_label: label.to_string(),
        ..BarOptions::speedup()
    };
    let style = Style {
        width: if archs.len() > 1 { Width::Ieee2 } else { Width::Ieee1 },
        ..Style::default()
    };
    results.figure("", bars(&rows, &options, &style))?;
    Ok(means)
}

pub(super) fn fig6(lab: &Lab) -> Result<Results, String> {
    let mut results = Results::default();
    let means = compare(lab, &["simba"], "speed-up over random [×]", cycles, &mut results)?;
    let (_, over_random, over_hybrid) = means[0];
    results.found(
        "speed-up over random, four networks",
        "5.2×",
        format!("{over_random:.2}× (simulated)"),
    );
    results.found("speed-up over hybrid", "1.5×", format!("{over_hybrid:.2}×"));
    let (milp, hybrid) = (lab.judged("simba", "milp")?, lab.judged("simba", hybrid(lab))?);
    let mean = |judged: &[Judged]| judged.iter().map(|j| j.cpu_s).sum::<f64>() / judged.len().max(1) as f64;
    results.found(
        "time to a schedule per layer",
        "4.2 s, hybrid 379.9 s",
        format!("{:.2} s, hybrid {:.2} s of one thread", mean(&milp), mean(&hybrid)),
    );
    Ok(results)
}

pub(super) fn fig7(lab: &Lab) -> Result<Results, String> {
    let mut results = Results::default();
    let archs = ["simba_4x", "simba_sram"];
    let means = compare(lab, &archs, "speed-up over random [×]", cycles, &mut results)?;
    for ((_, over_random, over_hybrid), (what, paper)) in means.into_iter().zip([
        ("four times the PEs", ("4.4×", "1.1×")),
        ("larger buffers", ("5.7×", "1.4×")),
    ]) {
        results.found(
            format!("{what}: speed-up over random"),
            paper.0,
            format!("{over_random:.2}×"),
        );
        results.found(
            format!("{what}: speed-up over hybrid"),
            paper.1,
            format!("{over_hybrid:.2}×"),
        );
    }
    Ok(results)
}

pub(super) fn fig9(lab: &Lab) -> Result<Results, String> {
    let mut results = Results::default();
    let means = compare(
        lab,
        &["simba"],
        "energy saved against random [×]",
        |j| j.energy_pj,
        &mut results,
    )?;
    let (_, over_random, over_hybrid) = means[0];
    results.found(
        "energy against hybrid",
        "22 % less",
        format!("{:.0} % less (simulated counts)", (1.0 - 1.0 / over_hybrid) * 100.0),
    );
    results.found(
        "energy against random",
        "no value at hand",
        format!("{:.0} % less", (1.0 - 1.0 / over_random) * 100.0),
    );
    Ok(results)
}
