//! MAESTRO, Fig. 9: the Eyeriss chip, its simulation, and the models.

use cyclonest_plots::{ScatterOptions, ScatterRow, Style, scatter};
use cyclonest_validation::published::eyeriss;

use super::super::experiment::Results;
use super::super::lab::Lab;

pub(super) fn run(_: &Lab) -> Result<Results, String> {
    let report = eyeriss::run()?;
    let mut rows = Vec::new();
    for row in &report.rows {
        let name = format!("{} {}, {}", row.network, row.layer, row.mapping);
        let mut add = |series: &str, value: f64| {
            rows.push(ScatterRow {
                name: name.clone(),
                series: series.to_string(),
                simulated: row.chip as f64,
                modelled: value,
            });
        };
        add("simulation", row.simulated as f64);
        add("exact", row.exact);
        if let Some(maestro) = row.maestro {
            add("maestro", maestro);
        }
    }
    let mut results = Results::default();
    let options = ScatterOptions {
        x_label: "chip [cycles]".to_string(),
        y_label: "predicted [cycles]".to_string(),
        ..ScatterOptions::cycles()
    };
    results.figure("", scatter(&rows, &options, &Style::default()))?;
    for mean in &report.means {
        let percent = |value: f64| format!("{:.2} %", value * 100.0);
        results.found(
            format!("{}: mean error of the processing time", mean.network),
            if mean.network.starts_with("alexnet") {
                "4.26 % (MAESTRO)"
            } else {
                "not told"
            },
            format!(
                "{} by simulation, {} by `exact`, {} by `maestro`",
                percent(mean.simulated),
                percent(mean.exact),
                mean.maestro.map_or("nothing".to_string(), percent)
            ),
        );
    }
    Ok(results)
}
