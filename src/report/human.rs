//! A table for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use comfy_table::{CellAlignment, LineStyle, Table, presets};

use super::{LevelReport, Report};

impl Report {
    /// The report as a table, with what it rests on below.
    pub(crate) fn to_human(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{} on {}: {} PEs, {} lanes, {} MHz; mapped by {}",
            self.title(),
            self.arch,
            thousands(self.pes),
            thousands(self.lanes),
            self.clock_mhz,
            self.scheduler
        );
        for line in self.about.lines() {
            let _ = writeln!(out, "  {line}");
        }
        if !self.layers.is_empty() {
            // The separator below the header stands above the totals too.
            let table = render(&self.table());
            let mut lines: Vec<&str> = table.lines().collect();
            lines.insert(lines.len() - 1, lines[1]);
            lines.iter().for_each(|line| {
                let _ = writeln!(out, "{line}");
            });
        }
        self.write_notes(&mut out);
        out
    }

    fn title(&self) -> String {
        let mut title = self.network.clone();
        if self.channels_divided_by > 1 {
            let _ = write!(title, ", channels ÷ {}", self.channels_divided_by);
        }
        title
    }

    fn table(&self) -> Table {
        let outermost = self
            .totals
            .levels
            .first()
            .map_or("outermost", |level| level.name.as_str());
        let checked = self.layers.iter().any(|layer| layer.values != "not checked");
        let mut header = vec![
            "layer".to_string(),
            "count".into(),
            "MACs".into(),
            "cycles".into(),
            "util".into(),
            "busy".into(),
            "largest stall".into(),
            "energy [µJ]".into(),
            format!("{outermost} accesses"),
        ];
        if checked {
            header.push("values".into());
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─')));
        table.set_header(header);
        for layer in &self.layers {
            let mut row = self.row(
                &layer.name,
                [layer.count, layer.macs, layer.cycles, layer.busy_cycles],
                layer.utilization,
                &layer.stall_cycles,
                layer.energy_pj,
                &layer.levels,
            );
            if checked {
                row.push(layer.values.to_string());
            }
            table.add_row(row);
        }
        let totals = &self.totals;
        table.add_row(self.row(
            "total",
            [totals.layers, totals.macs, totals.cycles, totals.busy_cycles],
            totals.utilization,
            &totals.stall_cycles,
            totals.energy_pj,
            &totals.levels,
        ));
        for (position, column) in table.column_iter_mut().enumerate() {
            if !matches!(position, 0 | 6 | 9) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    /// One line of the table.
    fn row(
        &self,
        name: &str,
        [count, macs, cycles, busy]: [u64; 4],
        utilization: f64,
        stalls: &BTreeMap<String, u64>,
        energy_pj: f64,
        levels: &[LevelReport],
    ) -> Vec<String> {
        vec![
            name.to_string(),
            thousands(count),
            thousands(macs),
            thousands(cycles),
            percent(utilization),
            percent(self.share(busy, cycles)),
            self.largest_stall(stalls, cycles),
            significant(energy_pj / 1e6),
            thousands(accesses(levels.first())),
        ]
    }

    fn write_notes(&self, out: &mut String) {
        if !self.layers.is_empty() {
            let _ = writeln!(
                out,
                "total: {} of {}, {} MACs, {} ms",
                counted(self.totals.layers, "layer"),
                counted(self.totals.distinct_layers, "shape"),
                si(self.totals.macs),
                significant(self.totals.milliseconds),
            );
        }
        for layer in &self.layers {
            if let Some(fault) = &layer.values_fault {
                let _ = writeln!(out, "different values: {}: {fault}", layer.name);
            }
        }
        for failed in &self.failed {
            let _ = writeln!(
                out,
                "failed: {} (count {}): {}",
                failed.name,
                failed.count,
                failed.error.replace('\n', "\n  ")
            );
        }
        if !self.assumed.is_empty() {
            let constants: Vec<&str> = self.assumed.iter().map(|a| a.constant.as_str()).collect();
            let _ = writeln!(
                out,
                "assumed constants that this rests on (`cyclonest show` says why): {}",
                constants.join(", ")
            );
        }
    }

    /// Share of the PE-cycles of a run.
    fn share(&self, pe_cycles: u64, cycles: u64) -> f64 {
        if cycles == 0 {
            return 0.0;
        }
        pe_cycles as f64 / (self.pes as f64 * cycles as f64)
    }

    fn largest_stall(&self, stalls: &BTreeMap<String, u64>, cycles: u64) -> String {
        // The first by name among equals, so that the choice is the same everywhere.
        match stalls.iter().rev().max_by_key(|(_, stalled)| **stalled) {
            Some((reason, &stalled)) if stalled > 0 => format!("{reason} {}", percent(self.share(stalled, cycles))),
            _ => String::new(),
        }
    }
}

/// A table as lines without blanks at their ends.
pub(crate) fn render(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// `1 layer`, `2 layers`.
pub(crate) fn counted(n: u64, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {what}{plural}", thousands(n))
}

/// Elements read and written at a level, all tensors.
fn accesses(level: Option<&LevelReport>) -> u64 {
    level.map_or(0, |level| {
        level
            .tensors
            .iter()
            .map(|(_, a)| a.reads + a.fills + a.updates + a.drains)
            .sum()
    })
}

/// `1,234,567`.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `4.089 G`.
pub(crate) fn si(n: u64) -> String {
    let n = n as f64;
    for (scale, prefix) in [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if n >= scale {
            return format!("{:.4} {prefix}", n / scale);
        }
    }
    n.to_string()
}

fn percent(fraction: f64) -> String {
    format!("{:.1} %", 100.0 * fraction)
}

/// Four significant digits, no exponent.
fn significant(value: f64) -> String {
    if value <= 0.0 {
        return "0".to_string();
    }
    let digits = (3 - value.log10().floor() as i64).clamp(0, 12);
    format!("{value:.*}", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_000), "1,000");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(si(4_089_184_256), "4.0892 G");
        assert_eq!(si(999), "999");
        assert_eq!(significant(0.012_345), "0.01235");
        assert_eq!(significant(12_345.6), "12346");
        assert_eq!(significant(0.0), "0");
    }
}
