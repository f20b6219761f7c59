//! SConv, Table 2 and Fig. 8, and ours: direct convolution on this computer beside a BLAS library and its simulation.

use cyclonest_plots::{BarOptions, BarRow, ScatterOptions, ScatterRow, Style, bars, layers, scatter};
use cyclonest_validation::native::{Comparison, Kernel, Report, Versus, comparisons};

use super::super::experiment::Results;
use super::super::lab::Lab;

const OPENBLAS: Versus = Versus::One(Kernel::Openblas);

/// The core as it was, the libraries, and how many timings were disturbed.
fn conditions(report: &Report) -> Vec<String> {
    let gate = &report.gate;
    let (taken, rejected) = report.samples();
    let mut lines = vec![
        format!(
            "{:?} at {:.2} GHz, {:.1} of {:.0} multiply-adds per cycle reached by a loop of them alone",
            gate.isa,
            gate.clock / 1e9,
            gate.usual,
            gate.peak
        ),
        format!("{rejected} of {taken} timings disturbed and rejected"),
    ];
    lines.extend(report.libraries.iter().cloned());
    lines
}

/// SConv against im2col with OpenBLAS; if that library is absent, nothing, and its line is told.
fn against(report: &Report, results: &mut Results) -> Vec<Comparison> {
    results.skipped.extend(
        report
            .libraries
            .iter()
            .filter(|line| line.to_lowercase().contains("skipped") || line.to_lowercase().contains("not found"))
            .cloned(),
    );
    results.conditions = conditions(report);
    comparisons(report)
        .into_iter()
        .filter(|c| c.ours == Kernel::Sconv && c.versus == OPENBLAS)
        .collect()
}

pub(super) fn table2(lab: &Lab) -> Result<Results, String> {
    let report = lab.native()?;
    let mut results = Results::default();
    let models = against(&report, &mut results);
    if models.is_empty() {
        return Ok(results);
    }
    let rows: Vec<BarRow> = models
        .iter()
        .map(|c| BarRow {
            group: c.layers.clone(),
            series: "SConv".to_string(),
            value: c.total,
        })
        .collect();
    let options = BarOptions {
        y_label: "speed-up over im2col + OpenBLAS [×]".to_string(),
        geomean: false,
        ..BarOptions::speedup()
    };
    results.figure("", bars(&rows, &options, &Style::default()))?;
    for c in &models {
        results.found(
            format!("{}: all {} convolutions together", c.layers, c.count),
            "12 to 46 % faster, depending on the model",
            format!(
                "{:.0} % faster ({} distinct shapes)",
                (c.total - 1.0) * 100.0,
                c.distinct
            ),
        );
    }
    Ok(results)
}

pub(super) fn fig8(lab: &Lab) -> Result<Results, String> {
    let report = lab.native()?;
    let mut results = Results::default();
    let all = against(&report, &mut results);
    let Some(all) = all.iter().find(|c| c.layers == "all") else {
        return Ok(results);
    };
    let rows: Vec<BarRow> = report
        .layers
        .iter()
        .filter_map(|layer| {
            Some(BarRow {
                group: layer.layer.name.clone(),
                series: "SConv".to_string(),
                value: layer.cycles(Kernel::Openblas)? / layer.cycles(Kernel::Sconv)?,
            })
        })
        .collect();
    let options = BarOptions {
        y_label: "speed-up over im2col + OpenBLAS [×]".to_string(),
        geomean: false,
        ..BarOptions::speedup()
    };
    results.figure("", layers(&rows, &options, &Style::default()))?;
    results.found(
        "share of convolutions that are faster",
        "90 %",
        format!("{:.0} %", all.faster * 100.0),
    );
    results.found(
        "largest speed-up",
        "2.1×",
        format!("{:.2}× ({})", all.largest.0, all.largest.1),
    );
    Ok(results)
}

pub(super) fn host(lab: &Lab) -> Result<Results, String> {
    let report = lab.native()?;
    let mut results = Results {
        conditions: conditions(&report),
        ..Results::default()
    };
    let mut rows = Vec::new();
    for (series, of) in [("simulation", 0), ("ECM formula", 1), ("roofline", 2)] {
        let mut errors = Vec::new();
        for layer in &report.layers {
            let (Some(p), Some(measured)) = (&layer.prediction, layer.cycles(Kernel::Sconv)) else {
                continue;
            };
            let predicted = [p.simulated, p.ecm, p.roofline][of];
            errors.push((predicted / measured - 1.0).abs());
            rows.push(ScatterRow {
                name: layer.layer.name.clone(),
                series: series.to_string(),
                simulated: measured,
                modelled: predicted,
            });
        }
        if errors.is_empty() {
            return Err("nothing was predicted".to_string());
        }
        results.found(
            format!("{series}: mean error of the cycles, {} shapes", errors.len()),
            "–",
            format!("{:.1} %", errors.iter().sum::<f64>() / errors.len() as f64 * 100.0),
        );
    }
    let options = ScatterOptions {
        x_label: "measured [cycles]".to_string(),
        y_label: "predicted [cycles]".to_string(),
        ..ScatterOptions::cycles()
    };
    results.figure("", scatter(&rows, &options, &Style::default()))?;
    Ok(results)
}
