//! `validate published`: the simulator against chips and RTL.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use comfy_table::{CellAlignment, Table, presets};
use cyclonest_validation::compare::Agreement;
use cyclonest_validation::published::{eyeriss, gemmini};

use crate::cli::Ending;
use crate::faults::Faults;
use crate::output;
use crate::report::{render, thousands};

#[derive(Debug, Subcommand)]
pub(super) enum Published {
    /// The 18 layers that were measured on the Eyeriss chip (JSSC 2017) on the machine `eyeriss_chip`, each with its
    /// published or identified row-stationary mapping.
    Eyeriss(Form),
    /// Runs of Gemmini's RTL under FireSim on the machine `gemmini`, with the mapping of each run, beside Timeloop's
    /// cycles for it. Without a file, the 120 bundled records.
    Gemmini {
        /// One JSON record per line.
        #[arg(value_name = "FILE.jsonl")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        form: Form,
    },
}

/// How the result is written.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(super) struct Form {
    /// How the result is written.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables.
    Human,
    /// Every figure.
    Json,
}

pub(super) fn run(published: &Published) -> Result<Ending, Faults> {
    match published {
        Published::Eyeriss(form) => {
            let report = eyeriss::run().map_err(Faults::one)?;
            output::print(&match form.format {
                Format::Human => eyeriss_tables(&report),
                Format::Json => json(&report)?,
            })?;
            Ok(Ending::Complete)
        }
        Published::Gemmini { files, form } => {
            let report = gemmini::run(files, 0).map_err(Faults::one)?;
            output::print(&match form.format {
                Format::Human => gemmini_tables(&report),
                Format::Json => json(&report)?,
            })?;
            Ok(match report.failed.is_empty() {
                true => Ending::Complete,
                false => Ending::Incomplete,
            })
        }
    }
}

fn json<T: serde::Serialize>(report: &T) -> Result<String, Faults> {
    Ok(serde_json::to_string_pretty(report).map_err(|error| Faults::one(error.to_string()))? + "\n")
}

fn table(header: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    for column in table.column_iter_mut().skip(left) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// `+1.2 %`.
fn signed(error: f64) -> String {
    format!("{:+.1} %", 100.0 * error)
}

fn percent(value: f64) -> String {
    format!("{:.2} %", 100.0 * value)
}

fn eyeriss_tables(report: &eyeriss::Report) -> String {
    let mut layers = table(
        &[
            "network",
            "layer",
            "mapping",
            "chip",
            "simulated",
            "error",
            "exact",
            "maestro",
            "PEs",
            "GLB",
            "counted",
            "error",
        ],
        3,
    );
    for row in &report.rows {
        let relative = |estimate: f64| signed(estimate / row.chip as f64 - 1.0);
        layers.add_row([
            row.network.clone(),
            row.layer.clone(),
            row.mapping.clone(),
            thousands(row.chip),
            thousands(row.simulated),
            signed(row.error()),
            relative(row.exact),
            row.maestro.map_or("–".into(), relative),
            format!("{}/{}", row.active_pes.1, row.active_pes.0),
            format!("{:.1}", row.glb_published),
            format!("{:.1}", row.glb_counted),
            format!("{:+.2} %", 100.0 * (row.glb_counted / row.glb_published - 1.0)),
        ]);
    }
    let mut means = table(&["mean absolute error", "simulated", "largest", "exact", "maestro"], 1);
    for mean in &report.means {
        means.add_row([
            mean.network.clone(),
            percent(mean.simulated),
            percent(mean.largest),
            percent(mean.exact),
            mean.maestro.map_or("–".into(), percent),
        ]);
    }
    let mut out =
        "processing time of the Eyeriss chip [cycles at 200 MHz], batch 4 and 3; GLB traffic [MB, MiB]\n".to_owned();
    out += &render(&layers);
    out.push('\n');
    out += &render(&means);
    out += &format!(
        "alexnet CONV4 and CONV5, which share a mapping, together: {}\n\nwith assumed constants halved or doubled: alexnet, vgg16\n",
        signed(report.pair_error)
    );
    for line in &report.sensitivity {
        out += &format!(
            "  {}: {}, {}\n",
            line.what,
            percent(line.means.0),
            percent(line.means.1)
        );
    }
    out
}

fn gemmini_tables(report: &gemmini::Report) -> String {
    let mut runs = table(
        &[
            "layer",
            "mapping",
            "RTL",
            "simulated",
            "error",
            "Timeloop",
            "exact",
            "maestro",
        ],
        2,
    );
    for row in &report.rows {
        let relative = |estimate: f64| signed(estimate / row.rtl - 1.0);
        runs.add_row([
            row.layer.clone(),
            row.mapping.clone(),
            thousands(row.rtl as u64),
            thousands(row.simulated as u64),
            relative(row.simulated),
            relative(row.timeloop),
            relative(row.exact),
            row.maestro.map_or("–".into(), relative),
        ]);
    }
    let mut agreement = table(
        &["", "runs", "mean error", "median", "largest", "Spearman", "Kendall τ"],
        1,
    );
    let line = |(name, a): &(String, Agreement)| {
        let value = |interval: Option<cyclonest_validation::compare::Interval>| {
            interval.map_or("–".into(), |i| {
                format!("{:.3} [{:.3}, {:.3}]", i.value, i.low, i.high)
            })
        };
        [
            name.clone(),
            a.pairs.to_string(),
            a.mean_error.map_or("–".into(), |e| percent(e.value)),
            a.median_error.map_or("–".into(), percent),
            a.largest_error.map_or("–".into(), percent),
            value(a.spearman),
            value(a.kendall),
        ]
    };
    report.agreement.iter().for_each(|entry| {
        agreement.add_row(line(entry));
    });
    let mut varied = table(
        &["", "runs", "mean error", "median", "largest", "Spearman", "Kendall τ"],
        1,
    );
    report.sensitivity.iter().for_each(|entry| {
        varied.add_row(line(entry));
    });
    let mut out = "RTL of Gemmini under FireSim [cycles]\n".to_owned();
    out += &render(&runs);
    out += "\nin brackets the bootstrap 95 % interval\n";
    out += &render(&agreement);
    out += "\nthe simulation with another memory system\n";
    out += &render(&varied);
    for failed in &report.failed {
        out += &format!("failed: {failed}\n");
    }
    out
}
