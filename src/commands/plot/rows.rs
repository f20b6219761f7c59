//! Rows of figures from results.

use std::path::PathBuf;

use cyclonest_arch::{Accelerator, NetworkKind, Ports, Width};
use cyclonest_plots::{BarRow, CloudRow, ConvergenceRow, LineRow, RoofRow, Row, ScatterRow, StackRow, read_csv};
use cyclonest_workloads::Tensor;

use super::Args;
use crate::faults::Faults;
use crate::inputs;
use crate::results::{self, Data, Layer, LevelResult, Simulated};

/// A file with data.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) data: Data,
}

/// Rows of CSV files, one after the other.
pub(super) fn tables<T: Row>(sources: &[Source]) -> Result<Vec<T>, Faults> {
    let mut rows = Vec::new();
    let mut faults = None;
    for source in sources {
        let read = match &source.data {
            Data::Table(text) => read_table(source, text),
            _ => Err(unfit(source, "CSV")),
        };
        rows.extend(Faults::collect(&mut faults, read).into_iter().flatten());
    }
    match faults {
        Some(faults) => Err(faults),
        None => Ok(rows),
    }
}

fn read_table<T: Row>(source: &Source, text: &str) -> Result<Vec<T>, Faults> {
    read_csv(&source.path.display().to_string(), text).map_err(|faults| faults.0.into_iter().collect())
}

/// A file that does not have what the figure shows.
pub(super) fn unfit(source: &Source, expected: &str) -> Faults {
    Faults::one(format!(
        "{}: is from {}; this figure is drawn from {expected}",
        source.path.display(),
        source.data.source()
    ))
}

pub(super) fn is_table(source: &Source) -> bool {
    matches!(source.data, Data::Table(_))
}

/// The layers of a result, or the one that was asked for.
fn chosen<'a>(args: &Args, result: &'a Simulated) -> Result<Vec<&'a Layer>, Faults> {
    let Some(wanted) = &args.layer else {
        return Ok(result.layers.iter().collect());
    };
    let found: Vec<&Layer> = result.layers.iter().filter(|layer| layer.name == *wanted).collect();
    if found.is_empty() {
        let known: Vec<String> = result.layers.iter().map(|layer| layer.name.clone()).collect();
        return Err(Faults::unknown("layer", wanted, &known));
    }
    Ok(found)
}

/// What tells several results apart: their schedulers, machines or networks.
fn labels(results: &[&Simulated]) -> Vec<String> {
    let differ = |field: fn(&Simulated) -> &str| results.windows(2).any(|pair| field(pair[0]) != field(pair[1]));
    let mut fields: Vec<fn(&Simulated) -> &str> = Vec::new();
    for field in [
        (|r| r.arch.as_str()) as fn(&Simulated) -> &str,
        |r| r.network.as_str(),
        |r| r.scheduler.as_str(),
    ] {
        if differ(field) {
            fields.push(field);
        }
    }
    if fields.is_empty() {
        fields.push(|r| r.scheduler.as_str());
    }
    let names: Vec<String> = results
        .iter()
        .map(|result| fields.iter().map(|field| field(result)).collect::<Vec<_>>().join(", "))
        .collect();
    let numbered = |(i, name): (usize, &String)| match names.iter().filter(|n| *n == name).count() {
        1 => name.clone(),
        _ => format!("{name} #{}", i + 1),
    };
    names.iter().enumerate().map(numbered).collect()
}

fn simulated<'a>(sources: &'a [Source], expected: &str) -> Result<Vec<&'a Simulated>, Faults> {
    let mut faults = None;
    let results = sources.iter().filter_map(|source| {
        let result = match &source.data {
            Data::Simulated(result) => Ok(result.as_ref()),
            _ => Err(unfit(source, expected)),
        };
        Faults::collect(&mut faults, result)
    });
    let results: Vec<&Simulated> = results.collect();
    match faults {
        Some(faults) => Err(faults),
        None => Ok(results),
    }
}

/// Cycles of the baseline ÷ cycles, per layer.
pub(super) fn speedups(args: &Args, sources: &[Source]) -> Result<Vec<BarRow>, Faults> {
    if sources.iter().all(is_table) {
        return tables(sources);
    }
    let cycles: Vec<(String, String, Option<u64>)> = match sources {
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
    };
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

/// Uses per element that is fetched, by level and tensor: of operands, reads ÷ fills; of outputs, updates ÷ drains.
pub(super) fn reuse(args: &Args, sources: &[Source]) -> Result<Vec<BarRow>, Faults> {
    if sources.iter().all(is_table) {
        return tables(sources);
    }
    let results = simulated(sources, "a result of simulate, or CSV")?;
    let mut rows = Vec::new();
    for (result, label) in results.iter().zip(labels(&results)) {
        let levels: &[LevelResult] = match &args.layer {
            None => &result.totals.levels,
            Some(_) => &chosen(args, result)?[0].levels,
        };
        for level in levels {
            for tensor in Tensor::ALL {
                let a = &level.tensors[tensor];
                let (uses, fetched) = match tensor {
                    Tensor::Outputs => (a.updates, a.drains),
                    _ => (a.reads, a.fills),
                };
                if uses > 0 && fetched > 0 {
                    let series = if results.len() > 1 {
                        format!("{label} {tensor}")
                    } else {
                        tensor.to_string()
                    };
                    rows.push(BarRow {
                        group: level.name.clone(),
                        series,
                        value: uses as f64 / fetched as f64,
                    });
                }
            }
        }
    }
    Ok(rows)
}

/// The machine of a result.
pub(crate) fn machine(given: Option<&str>, result: &Simulated) -> Result<Accelerator, Faults> {
    let name = given.unwrap_or(&result.arch);
    inputs::arch(name).map_err(|mut faults| {
        if given.is_none() {
            faults.extend(Faults::one(format!(
                "the accelerator {} of the result is not a bundled one\n  help: name its file with --arch",
                result.arch
            )));
        }
        faults
    })
}

/// Energy by level and tensor, a bar per layer; layers that the network has several times count as often.
pub(super) fn energy(args: &Args, sources: &[Source]) -> Result<Vec<StackRow>, Faults> {
    if sources.iter().all(is_table) {
        return tables(sources);
    }
    let results = simulated(sources, "a result of simulate, or CSV")?;
    let mut rows = Vec::new();
    for (result, label) in results.iter().zip(labels(&results)) {
        let arch = machine(args.arch.as_deref(), result)?;
        for layer in chosen(args, result)? {
            let bar = if results.len() > 1 {
                format!("{} {label}", layer.name)
            } else {
                layer.name.clone()
            };
            rows.extend(energy_rows(&arch, layer, &bar).map_err(Faults::one)?);
        }
    }
    Ok(rows)
}

/// The parts of a layer's energy.
pub(crate) fn energy_rows(arch: &Accelerator, layer: &Layer, bar: &str) -> Result<Vec<StackRow>, String> {
    let parts = results::energy(arch, layer)?;
    Ok(parts
        .into_iter()
        .map(|part| StackRow {
            bar: bar.to_string(),
            part: part.part,
            detail: part.tensor.map(|t| t.to_string()),
            value: part.pj * layer.count as f64,
        })
        .collect())
}

/// PE-cycles by what the PEs do.
pub(super) fn cycles(args: &Args, sources: &[Source]) -> Result<Vec<StackRow>, Faults> {
    if sources.iter().all(is_table) {
        return tables(sources);
    }
    let results = simulated(sources, "a result of simulate, or CSV")?;
    let mut rows = Vec::new();
    for (result, label) in results.iter().zip(labels(&results)) {
        for layer in chosen(args, result)? {
            let bar = if results.len() > 1 {
                format!("{} {label}", layer.name)
            } else {
                layer.name.clone()
            };
            rows.extend(cycle_rows(layer, &bar));
        }
    }
    Ok(rows)
}

/// The PE-cycles of a layer.
pub(crate) fn cycle_rows(layer: &Layer, bar: &str) -> Vec<StackRow> {
    let part = |part: &str, cycles: u64| StackRow {
        bar: bar.to_string(),
        part: part.to_string(),
        detail: None,
        value: cycles as f64 * layer.count as f64,
    };
    let mut rows = vec![part("computing", layer.busy_cycles)];
    let waiting = layer.stall_cycles.iter().filter(|(_, cycles)| **cycles > 0);
    rows.extend(waiting.map(|(reason, cycles)| part(reason, *cycles)));
    rows
}

/// A point per layer.
pub(super) fn roofline(args: &Args, sources: &[Source]) -> Result<Vec<RoofRow>, Faults> {
    if sources.iter().all(is_table) {
        return tables(sources);
    }
    let results = simulated(sources, "a result of simulate, or CSV")?;
    let mut rows = Vec::new();
    for (result, label) in results.iter().zip(labels(&results)) {
        let arch = machine(args.arch.as_deref(), result)?;
        for layer in chosen(args, result)? {
            rows.push(roof_row(&arch, layer, &label).map_err(Faults::one)?);
        }
    }
    Ok(rows)
}

/// MACs per byte at the outermost level, outputs at their final precision, against MACs per cycle.
pub(crate) fn roof_row(arch: &Accelerator, layer: &Layer, series: &str) -> Result<RoofRow, String> {
    let bandwidth = outer_bandwidth(arch).ok_or_else(|| {
        format!(
            "{}: neither ports nor network of its outermost level limit anything; it has no roof",
            arch.name
        )
    })?;
    let outer = layer.levels.first().ok_or("a layer without levels")?;
    let bits: u64 = Tensor::ALL
        .into_iter()
        .map(|tensor| {
            let a = &outer.tensors[tensor];
            (a.reads + a.fills + a.updates + a.drains) * arch.bits(tensor, false)
        })
        .sum();
    Ok(RoofRow {
        name: layer.name.clone(),
        series: series.to_string(),
        intensity: layer.macs as f64 / (bits as f64 / 8.0),
        throughput: layer.macs as f64 / layer.cycles as f64,
        peak: arch.lanes() as f64 / arch.compute.interval.max(1) as f64,
        bandwidth,
    })
}

/// Bytes per cycle that the outermost level can read and write together: what its ports or the network below it
/// let through, whichever is less. `None` if neither is limited.
fn outer_bandwidth(arch: &Accelerator) -> Option<f64> {
    let widest = Tensor::ALL
        .map(|t| arch.bits(t, true).max(arch.bits(t, false)))
        .into_iter()
        .max()?;
    let bytes = |width: Width| match width {
        Width::Bits(n) => n as f64 / 8.0,
        Width::Bytes(n) => n as f64,
        Width::Words(n) => n as f64 * widest as f64 / 8.0,
        Width::Unlimited => f64::INFINITY,
    };
    let outer = arch.levels.first()?;
    let ports: f64 = outer
        .banks
        .iter()
        .map(|bank| match bank.ports {
            Ports::Ideal => f64::INFINITY,
            Ports::Shared { read, write } => bytes(read).max(bytes(write)),
            Ports::ReadWrite { read, write } => bytes(read) + bytes(write),
            Ports::PerTensor(pairs) => {
                let held = pairs.iter().filter_map(|(_, pair)| *pair);
                held.map(|pair| bytes(pair.read) + bytes(pair.write)).sum()
            }
        })
        .sum();
    let channels = |down: bool| -> f64 {
        arch.channels(0, down).map_or(f64::INFINITY, |channels| match channels {
            cyclonest_arch::Channels::OneForAll(link) => bytes(link.width),
            cyclonest_arch::Channels::PerTensor(links) => links
                .iter()
                .filter_map(|(_, link)| *link)
                .map(|link| bytes(link.width))
                .sum(),
        })
    };
    let network = outer.below.as_ref().map_or(f64::INFINITY, |network| {
        let clock = network.clock.map_or(1.0, |clock| clock.mhz() / arch.clock.mhz());
        clock
            * match network.kind {
                NetworkKind::Bus(_) => channels(true),
                _ => channels(true) + channels(false),
            }
    });
    let least = ports.min(network);
    (least.is_finite() && least > 0.0).then_some(least)
}

/// Designs, and the labels of both axes.
pub(super) fn cloud(args: &Args, sources: &[Source]) -> Result<(Vec<CloudRow>, String, String), Faults> {
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
                // Sums over the layers that all schedulers map.
                let layers: std::collections::BTreeSet<(&str, &str)> = bench
                    .rows
                    .iter()
                    .map(|r| (r.network.as_str(), r.layer.as_str()))
                    .collect();
                let whole = |key: &(&str, &str)| {
                    let of = |r: &&results::BenchRow| (r.network.as_str(), r.layer.as_str()) == *key;
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
                rows.extend(sums.into_iter().map(|(name, c, e)| point(name.clone(), name, c, e)));
            }
            _ => return Err(unfit(source, "results of simulate or bench schedulers, or CSV")),
        }
    }
    Ok((rows, labels_of.0, labels_of.1))
}

/// Points of lines, and the labels of both axes.
pub(super) fn lines(args: &Args, sources: &[Source]) -> Result<(Vec<LineRow>, String, String), Faults> {
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

/// Model and simulator, per layer.
pub(super) fn scatter(args: &Args, sources: &[Source]) -> Result<Vec<ScatterRow>, Faults> {
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
pub(super) fn convergence(args: &Args, sources: &[Source]) -> Result<Vec<ConvergenceRow>, Faults> {
    if sources.iter().all(is_table) {
        return tables(sources);
    }
    let mut rows = Vec::new();
    for source in sources {
        let Data::Scheduled(result) = &source.data else {
            return Err(unfit(source, "results of schedule, or CSV"));
        };
        let wanted = |layer: &&results::ScheduledLayer| args.layer.as_ref().is_none_or(|name| layer.layer == *name);
        let layers: Vec<&results::ScheduledLayer> = result.layers.iter().filter(wanted).collect();
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
