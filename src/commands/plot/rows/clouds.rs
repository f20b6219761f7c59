//! Points of any quantities: designs, lines, and columns that have names of their own.

use std::collections::BTreeSet;

use cyclonest_plots::{CloudRow, LineRow, Row};

use super::{Args, Source, is_table, tables, unfit};
use crate::faults::Faults;
use crate::results::{BenchRow, Benched, Data};

/// Designs, and the labels of both axes.
pub(in crate::commands::plot) fn cloud(
    args: &Args,
    sources: &[Source],
) -> Result<(Vec<CloudRow>, String, String), Faults> {
    let labels_of = ("latency [cycles]".to_string(), "energy [pJ]".to_string());
    if sources.iter().all(is_table) {
        let (x, y) = (
            column_label(args.x.as_deref(), "x"),
            column_label(args.y.as_deref(), "y"),
        );
        return Ok((picked(args, sources)?, x, y));
    }
    let mut rows = Vec::new();
    let point = |series: String, name: String, cycles: f64, energy: f64| CloudRow {
        series,
        x: cycles,
        y: energy,
        name: Some(name),
    };
    for source in sources {
        match &source.data {
            Data::Simulated(result) => rows.push(point(
                result.arch.clone(),
                result.scheduler.clone(),
                result.totals.cycles as f64,
                result.totals.energy_pj,
            )),
            Data::Benched(bench) => {
                let sums = sums(bench).into_iter();
                rows.extend(sums.map(|(name, cycles, energy)| point(name.clone(), name, cycles, energy)));
            }
            _ => return Err(unfit(source, "results of simulate or bench schedulers, or CSV")),
        }
    }
    Ok((rows, labels_of.0, labels_of.1))
}

/// Cycles and energy of every scheduler, over the layers that all schedulers map.
fn sums(bench: &Benched) -> Vec<(String, f64, f64)> {
    let layers: BTreeSet<(&str, &str)> = bench
        .rows
        .iter()
        .map(|r| (r.network.as_str(), r.layer.as_str()))
        .collect();
    let whole = |key: &(&str, &str)| {
        let of = |r: &&BenchRow| (r.network.as_str(), r.layer.as_str()) == *key;
        bench
            .rows
            .iter()
            .filter(of)
            .all(|r| r.cycles.is_some() && r.energy_pj.is_some())
    };
    let common: Vec<(&str, &str)> = layers.into_iter().filter(whole).collect();
    let mut sums: Vec<(String, f64, f64)> = Vec::new();
    for row in &bench.rows {
        let (Some(cycles), Some(energy)) = (row.cycles, row.energy_pj) else {
            continue;
        };
        if !common.contains(&(row.network.as_str(), row.layer.as_str())) {
            continue;
        }
        let (cycles, energy) = (cycles as f64 * row.count as f64, energy * row.count as f64);
        match sums.iter_mut().find(|(name, _, _)| *name == row.scheduler) {
            Some(sum) => {
                sum.1 += cycles;
                sum.2 += energy;
            }
            None => sums.push((row.scheduler.clone(), cycles, energy)),
        }
    }
    sums
}

/// Points of lines, and the labels of both axes.
pub(in crate::commands::plot) fn lines(
    args: &Args,
    sources: &[Source],
) -> Result<(Vec<LineRow>, String, String), Faults> {
    let (x, y) = (
        column_label(args.x.as_deref(), "x"),
        column_label(args.y.as_deref(), "y"),
    );
    Ok((picked(args, sources)?, x, y))
}

/// Rows of CSV files whose columns `series`, `x` and `y` may have other names.
fn picked<T: Row>(args: &Args, sources: &[Source]) -> Result<Vec<T>, Faults> {
    let names = [("x", &args.x), ("y", &args.y), ("series", &args.series)];
    let mut renamed = Vec::new();
    for source in sources {
        let Data::Table(text) = &source.data else {
            return Err(unfit(source, "CSV"));
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // Lines before the columns are comments; they stay, so that lines keep their numbers.
        let comments: usize = text
            .split_inclusive('\n')
            .take_while(|l| l.starts_with('#'))
            .map(str::len)
            .sum();
        let (comments, text) = text.split_at(comments);
        let (header, rest) = text.split_once('\n').unwrap_or((text, ""));
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_reader(header.as_bytes());
        let record = reader.records().next().and_then(Result::ok).unwrap_or_default();
        let mut columns: Vec<String> = record.iter().map(|name| name.trim().to_string()).collect();
        let known = columns.clone();
        for (standard, given) in names {
            let Some(given) = given else { continue };
            let Some(place) = known.iter().position(|name| name == given) else {
                let near = cyclonest_arch::nearest(given, known.iter().map(String::as_str));
                let near = near.map_or_else(String::new, |name| format!("\n  help: did you mean `{name}`?"));
                return Err(Faults::one(format!(
                    "{}:{}:1: no column `{given}`\n  found: {}{near}",
                    source.path.display(),
                    comments.lines().count() + 1,
                    known.join(",")
                )));
            };
            // Another column of the standard name gives way.
            for column in columns.iter_mut().filter(|name| *name == standard) {
                column.push('_');
            }
            columns[place] = standard.to_string();
        }
        let (mut header, mut rest) = (columns, rest.to_string());
        if args.series.is_none() && !header.iter().any(|name| name == "series") {
            // One series, which needs no name in the file.
            header.push("series".to_string());
            let line = |line: &str| match line.trim().is_empty() {
                true => line.to_string(),
                false => format!("{},all", line.trim_end_matches('\r')),
            };
            rest = rest.lines().map(line).collect::<Vec<_>>().join("\n");
        }
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&header).ok();
        let header = String::from_utf8_lossy(&writer.into_inner().unwrap_or_default()).into_owned();
        renamed.push(Source {
            path: source.path.clone(),
            data: Data::Table(format!("{comments}{header}{rest}")),
        });
    }
    tables(&renamed)
}

/// `area_mm2` → `area [mm²]`.
fn column_label(column: Option<&str>, standard: &str) -> String {
    const UNITS: [(&str, &str); 14] = [
        ("cycles", "cycles"),
        ("pj", "pJ"),
        ("uj", "µJ"),
        ("mj", "mJ"),
        ("mm2", "mm²"),
        ("um2", "µm²"),
        ("mw", "mW"),
        ("ms", "ms"),
        ("s", "s"),
        ("kib", "KiB"),
        ("bytes", "B"),
        ("mhz", "MHz"),
        ("percent", "%"),
        ("fraction", "1"),
    ];
    let name = column.unwrap_or(standard);
    let words = name.replace('_', " ");
    let unit = name.rsplit_once('_').and_then(|(head, unit)| {
        let found = UNITS.iter().find(|(known, _)| unit.eq_ignore_ascii_case(known))?;
        Some(format!("{} [{}]", head.replace('_', " "), found.1))
    });
    match name.to_lowercase().as_str() {
        "cycles" => "latency [cycles]".to_string(),
        _ => unit.unwrap_or(words),
    }
}
