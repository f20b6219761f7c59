//! Rows of figures from traces.

use std::collections::{BTreeMap, BTreeSet};

use cyclonest_plots::{GanttRow, HeatRow, LinkRow, OccupancyRow, SKIPPED};

use super::Args;
use super::rows::{Source, is_table, tables, unfit};
use crate::faults::Faults;
use crate::results::{Data, Traced};

/// Tracks that are drawn without being asked for.
const TRACKS: usize = 24;

/// Instances of a track's kind that are drawn where there are more tracks.
const INSTANCES: usize = 2;

fn trace(sources: &[Source]) -> Result<&Traced, Faults> {
    match sources {
        [
            Source {
                data: Data::Traced(trace),
                ..
            },
        ] => Ok(trace),
        [source] => Err(unfit(source, "a trace of simulate --trace, or CSV")),
        _ => Err(Faults::one(format!("expected one trace, not {} files", sources.len()))),
    }
}

/// The names that were asked for; without a wish, all of few, and the first instances of each kind of many.
fn select(args: &Args, names: &[String], most: usize, instances: usize) -> Result<Vec<String>, Faults> {
    if !args.only.is_empty() {
        let wanted: Vec<String> = names
            .iter()
            .filter(|name| args.only.iter().any(|part| name.contains(part.as_str())))
            .cloned()
            .collect();
        return match wanted.is_empty() {
            true => Err(Faults::unknown("track", &args.only.join(", "), names)),
            false => Ok(wanted),
        };
    }
    if names.len() <= most {
        return Ok(names.to_vec());
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let first = |name: &&String| {
        // A kind is the name without its numbers.
        let kind: String = name.chars().filter(|c| !c.is_ascii_digit()).collect();
        let count = seen.entry(kind).or_default();
        *count += 1;
        *count <= instances
    };
    let kept: Vec<String> = names.iter().filter(first).cloned().collect();
    eprintln!("drawn: {} of {} tracks; choose with --only", kept.len(), names.len());
    Ok(kept)
}

/// The part of an interval in the window.
fn clipped(args: &Args, from: u64, to: u64) -> Option<(f64, f64)> {
    match args.window {
        None => Some((from as f64, to as f64)),
        Some(window) => {
            let (from, to) = (from.max(window.from), to.min(window.to));
            (from < to).then_some((from as f64, to as f64))
        }
    }
}

/// Intervals of the tracks, and the kinds that are stalls.
pub(super) fn gantt(args: &Args, sources: &[Source]) -> Result<(Vec<GanttRow>, Vec<String>), Faults> {
    if sources.iter().all(is_table) {
        return Ok((tables(sources)?, Vec::new()));
    }
    let trace = trace(sources)?;
    let named: BTreeMap<(u64, u64), String> = trace
        .events
        .iter()
        .filter(|e| e.ph == "M" && e.name == "thread_name")
        .filter_map(|e| Some(((e.pid, e.tid), e.args.name.clone()?)))
        .collect();
    let names: Vec<String> = named.values().cloned().collect();
    let kept: BTreeSet<String> = select(args, &names, TRACKS, INSTANCES)?.into_iter().collect();
    let mut rows: Vec<((u64, u64), GanttRow)> = Vec::new();
    let mut pale = BTreeSet::new();
    for event in trace.events.iter().filter(|e| e.ph == "X") {
        let Some((start, end)) = clipped(args, event.ts, event.ts + event.dur) else {
            continue;
        };
        if event.cat == "skipped" {
            let row = GanttRow {
                resource: SKIPPED.to_string(),
                start,
                end,
                kind: SKIPPED.to_string(),
                label: Some(event.name.clone()),
            };
            rows.push(((u64::MAX, 0), row));
            continue;
        }
        let Some(resource) = named.get(&(event.pid, event.tid)).filter(|name| kept.contains(*name)) else {
            continue;
        };
        let kind = match event.cat.as_str() {
            "stall" => {
                let reason = event.name.split(':').next().unwrap_or_default().replace('_', " ");
                let kind = format!("waits: {reason}");
                pale.insert(kind.clone());
                kind
            }
            "compute" => "computes".to_string(),
            tensor => tensor.to_string(),
        };
        let row = GanttRow {
            resource: resource.clone(),
            start,
            end,
            kind,
            label: event.args.tile.clone().filter(|tile| !tile.is_empty()),
        };
        rows.push(((event.pid, event.tid), row));
    }
    // Tracks from the outermost level to the PEs; the order within a track is kept.
    rows.sort_by_key(|(track, _)| *track);
    Ok((
        rows.into_iter().map(|(_, row)| row).collect(),
        pale.into_iter().collect(),
    ))
}

/// Changes of what buffers hold.
pub(super) fn occupancy(args: &Args, sources: &[Source]) -> Result<Vec<OccupancyRow>, Faults> {
    if sources.iter().all(is_table) {
        return tables(sources);
    }
    let trace = trace(sources)?;
    let counters = || trace.events.iter().filter(|e| e.ph == "C");
    let mut names: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    for event in counters() {
        let name = event.name.split(" slots of ").next().unwrap_or_default();
        if seen.insert(name) {
            names.push(name.to_string());
        }
    }
    names.sort();
    let kept: BTreeSet<String> = select(args, &names, 6, 1)?.into_iter().collect();
    Ok(counters()
        .filter_map(|event| {
            let (name, capacity) = event.name.split_once(" slots of ")?;
            let (cycle, _) = clipped(args, event.ts, event.ts + 1)?;
            kept.contains(name).then(|| OccupancyRow {
                buffer: name.to_string(),
                cycle,
                held: event.args.taken.unwrap_or(0) as f64,
                capacity: capacity.parse().ok(),
            })
        })
        .collect())
}

/// Sums over the run need a trace of all of it.
fn whole(sources: &[Source]) -> Result<&Traced, Faults> {
    let trace = trace(sources)?;
    match trace.other.skipped_cycles {
        0 => Ok(trace),
        skipped => Err(Faults::one(format!(
            "{}: {skipped} of {} cycles were skipped; sums over the run need all of them\n  help: write the trace with \
             --no-fast-forward",
            sources[0].path.display(),
            trace.other.cycles
        ))),
    }
}

/// Share of the cycles in which each PE computes, in percent.
pub(super) fn pes(sources: &[Source]) -> Result<Vec<HeatRow>, Faults> {
    if sources.iter().all(is_table) {
        return tables(sources);
    }
    let other = &whole(sources)?.other;
    let share = |cycles: u64| 100.0 * cycles as f64 / other.cycles.max(1) as f64;
    Ok(other
        .pes
        .iter()
        .map(|pe| HeatRow {
            x: pe.x,
            y: pe.y,
            value: share(pe.computing_cycles),
        })
        .collect())
}

/// Bits over each link of one network, all tensors.
pub(super) fn links(args: &Args, sources: &[Source]) -> Result<Vec<LinkRow>, Faults> {
    if sources.iter().all(is_table) {
        return tables(sources);
    }
    let other = &whole(sources)?.other;
    let mut networks: Vec<String> = Vec::new();
    for link in &other.links {
        if !networks.contains(&link.network_below) {
            networks.push(link.network_below.clone());
        }
    }
    let network = match args.only.as_slice() {
        [] => networks.first().cloned(),
        [name, ..] => match networks.iter().find(|network| *network == name) {
            Some(network) => Some(network.clone()),
            None => return Err(Faults::unknown("network below level", name, &networks)),
        },
    };
    let Some(network) = network else {
        return Err(Faults::one(format!(
            "{}: no transfer passes a link; every network has one child",
            sources[0].path.display()
        )));
    };
    if networks.len() > 1 && args.only.is_empty() {
        eprintln!(
            "drawn: the network below {network} of {}; choose with --only",
            networks.join(", ")
        );
    }
    let mut sums: BTreeMap<(u64, u64, u64, u64), u64> = BTreeMap::new();
    for link in other.links.iter().filter(|link| link.network_below == network) {
        *sums
            .entry((link.from_x, link.from_y, link.to_x, link.to_y))
            .or_default() += link.bits;
    }
    Ok(sums
        .into_iter()
        .map(|((from_x, from_y, to_x, to_y), bits)| LinkRow {
            from_x,
            from_y,
            to_x,
            to_y,
            value: bits as f64,
        })
        .collect())
}
