//! Tables for people.

use comfy_table::{CellAlignment, Table, presets};
use cyclonest_validation::compare::{Interval, LayerRow, RankRow, RankVerdict, Subset, Summary, Verdict};

use super::Report;
use crate::report::{render, thousands};

const NOTHING: &str = "–";

impl Report {
    /// The report as tables; with a row per layer if `layers`.
    pub(super) fn to_human(&self, layers: bool) -> String {
        let mut out = format!(
            "models against the simulation of {} on {}; mapped by {}, seed {}\n",
            self.networks.join(", "),
            self.archs.join(", "),
            self.scheduler,
            self.seed
        );
        if layers && !self.layers.is_empty() {
            out += &render(&self.layer_table());
            out.push('\n');
        }
        if layers && !self.ranks.is_empty() {
            out += &render(&self.rank_table());
            out.push('\n');
        }
        if !self.summaries.is_empty() {
            out += "every distinct layer of a network once; in brackets the bootstrap 95 % interval\n";
            out += &render(&self.summary_table());
            out += &self.notes();
        }
        if !self.rank_summaries.is_empty() {
            out += "means over the layers; regret is simulated cycles of the model's favourite ÷ best simulated\n";
            out += &render(&self.rank_summary_table());
        }
        for failed in &self.failed {
            out += &format!(
                "failed: {} {} {}: {}\n",
                failed.arch, failed.network, failed.layer, failed.error
            );
        }
        out
    }

    fn layer_table(&self) -> Table {
        let mut table = table();
        let mut header = self.place_header();
        header.extend(["count", "cycles", "computing"].map(String::from));
        header.extend(self.models.iter().cloned());
        header.push(format!("largest gap of {}", self.models[0]));
        table.set_header(header);
        for row in &self.layers {
            let mut cells = self.place(&row.arch, &row.network, &row.layer);
            cells.extend([
                row.count.to_string(),
                thousands(row.cycles),
                share(row.breakdown.computing),
            ]);
            cells.extend(row.verdicts.iter().map(error));
            cells.push(gap(row));
            table.add_row(cells);
        }
        align(&mut table, self.place_header().len(), 1);
        table
    }

    fn rank_table(&self) -> Table {
        let mut table = table();
        let mut header = self.place_header();
        header.extend(["mappings", "best", "worst"].map(String::from));
        for model in &self.models {
            header.extend([format!("{model} τ"), "error".into(), "regret".into()]);
        }
        table.set_header(header);
        for row in &self.ranks {
            table.add_row(self.rank_cells(row));
        }
        align(&mut table, self.place_header().len(), 0);
        table
    }

    fn rank_cells(&self, row: &RankRow) -> Vec<String> {
        let mut cells = self.place(&row.arch, &row.network, &row.layer);
        cells.extend([row.mappings.to_string(), thousands(row.best), thousands(row.worst)]);
        cells.extend(row.verdicts.iter().flat_map(|verdict: &RankVerdict| {
            [
                ratio(verdict.tau().map(|tau| tau.value)),
                percent(verdict.agreement.mean_error.map(|e| e.value)),
                ratio(verdict.regret),
            ]
        }));
        cells
    }

    fn summary_table(&self) -> Table {
        let mut table = table();
        table.set_header([
            "machine",
            "layers",
            "model",
            "judged",
            "mean error",
            "largest",
            "R²",
            "Pearson",
            "Spearman",
            "Kendall τ",
        ]);
        for summary in &self.summaries {
            let a = &summary.agreement;
            table.add_row([
                summary.arch.clone().unwrap_or_else(|| "all".into()),
                match summary.subset {
                    Subset::All => "all".to_owned(),
                    Subset::Waiting => "< 80 % computing".to_owned(),
                },
                summary.model.clone(),
                format!("{}/{}", a.pairs, summary.layers),
                a.mean_error.map_or(NOTHING.into(), |i| {
                    format!("{:.2} % [{:.2}, {:.2}]", 100.0 * i.value, 100.0 * i.low, 100.0 * i.high)
                }),
                percent(a.largest_error),
                interval(a.r2, 4),
                interval(a.pearson, 4),
                interval(a.spearman, 3),
                interval(a.kendall, 3),
            ]);
        }
        align(&mut table, 3, 0);
        table
    }

    /// What the table of summaries has no room for.
    fn notes(&self) -> String {
        let all =
            |summary: &&Summary| summary.subset == Subset::All && (summary.arch.is_none() || self.archs.len() == 1);
        let mut out = String::new();
        for summary in self.summaries.iter().filter(all) {
            let model = &summary.model;
            if let Some(worst) = &summary.worst {
                out += &format!(
                    "{model}: worst {:+.1} % on {} {} {}",
                    100.0 * worst.error,
                    worst.arch,
                    worst.network,
                    worst.layer
                );
                let gaps: Vec<String> = summary
                    .gaps
                    .iter()
                    .take(4)
                    .map(|g| format!("{} ({})", g.0, g.1))
                    .collect();
                out += &format!("; largest gaps: {}\n", gaps.join(", "));
            }
            for (reason, times) in summary.refusals.iter().take(5) {
                out += &format!("{model}: {times} × {reason}\n");
            }
        }
        out
    }

    fn rank_summary_table(&self) -> Table {
        let mut table = table();
        table.set_header([
            "model",
            "layers",
            "judged",
            "refused",
            "mean error",
            "largest",
            "τ",
            "lowest τ",
            "regret",
            "largest regret",
        ]);
        for s in &self.rank_summaries {
            table.add_row([
                s.model.clone(),
                s.layers.to_string(),
                s.judged.to_string(),
                s.refused.to_string(),
                percent(s.mean_error),
                percent(s.largest_error),
                ratio(s.tau),
                ratio(s.lowest_tau),
                ratio(s.regret),
                ratio(s.largest_regret),
            ]);
        }
        align(&mut table, 1, 0);
        table
    }

    fn place_header(&self) -> Vec<String> {
        let mut header = Vec::new();
        if self.archs.len() > 1 {
            header.push("machine".to_owned());
        }
        if self.networks.len() > 1 {
            header.push("network".to_owned());
        }
        header.push("layer".to_owned());
        header
    }

    fn place(&self, arch: &str, network: &str, layer: &str) -> Vec<String> {
        let mut cells = Vec::new();
        if self.archs.len() > 1 {
            cells.push(arch.to_owned());
        }
        if self.networks.len() > 1 {
            cells.push(network.to_owned());
        }
        cells.push(layer.to_owned());
        cells
    }
}

fn table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// Numbers to the right; names, in the first and last columns, to the left.
fn align(table: &mut Table, first: usize, last: usize) {
    let columns = table.column_count();
    for column in table.column_iter_mut().take(columns - last).skip(first) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn share(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn percent(value: Option<f64>) -> String {
    value.map_or(NOTHING.into(), share)
}

fn ratio(value: Option<f64>) -> String {
    value.map_or(NOTHING.into(), |v| format!("{v:.3}"))
}

fn interval(interval: Option<Interval>, digits: usize) -> String {
    interval.map_or(NOTHING.into(), |i| {
        format!("{:.digits$} [{:.digits$}, {:.digits$}]", i.value, i.low, i.high)
    })
}

fn error(verdict: &Verdict) -> String {
    match (&verdict.error, &verdict.refused) {
        (Some(error), _) => format!("{:+.1} %", 100.0 * error),
        (None, Some(reason)) => reason.split(':').next().unwrap_or_default().to_owned(),
        (None, None) => verdict.estimate.map_or(NOTHING.into(), |e| format!("rank {e:.3e}")),
    }
}

fn gap(row: &LayerRow) -> String {
    let gap = row.verdicts.first().and_then(|verdict| verdict.gap.as_ref());
    gap.map_or(String::new(), |gap| {
        format!("{} {:+.1} %", gap.what, -100.0 * gap.cycles / row.cycles.max(1) as f64)
    })
}
