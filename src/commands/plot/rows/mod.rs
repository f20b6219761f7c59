//! Rows of figures from results: what every kind needs, and a module per family of kinds.

mod bars;
mod clouds;
mod models;
mod roof;
mod stacks;

use std::path::PathBuf;

use cyclonest_arch::Accelerator;
use cyclonest_plots::{Row, read_csv};

use super::Args;
use crate::faults::Faults;
use crate::inputs;
use crate::report::{LayerReport, Report};
use crate::results::Data;

pub(super) use bars::{reuse, speedups};
pub(super) use clouds::{cloud, lines};
pub(super) use models::{convergence, scatter};
pub(crate) use roof::roof_row;
pub(super) use roof::roofline;
pub(crate) use stacks::{cycle_rows, energy_rows};
pub(super) use stacks::{cycles, energy};

/// A file with data.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) data: Data,
}

/// Rows of CSV files, one after the other.
pub(in crate::commands::plot) fn tables<T: Row>(sources: &[Source]) -> Result<Vec<T>, Faults> {
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
pub(in crate::commands::plot) fn unfit(source: &Source, expected: &str) -> Faults {
    Faults::one(format!(
        "{}: is from {}; this figure is drawn from {expected}",
        source.path.display(),
        source.data.source()
    ))
}

pub(in crate::commands::plot) fn is_table(source: &Source) -> bool {
    matches!(source.data, Data::Table(_))
}

/// The layers of a result, or the one that was asked for.
fn chosen<'a>(args: &Args, result: &'a Report) -> Result<Vec<&'a LayerReport>, Faults> {
    let Some(wanted) = &args.layer else {
        return Ok(result.layers.iter().collect());
    };
    let found: Vec<&LayerReport> = result.layers.iter().filter(|layer| layer.name == *wanted).collect();
    if found.is_empty() {
        let known: Vec<String> = result.layers.iter().map(|layer| layer.name.clone()).collect();
        return Err(Faults::unknown("layer", wanted, &known));
    }
    Ok(found)
}

/// What tells several results apart: their schedulers, machines or networks.
fn labels(results: &[&Report]) -> Vec<String> {
    let differ = |field: fn(&Report) -> &str| results.windows(2).any(|pair| field(pair[0]) != field(pair[1]));
    let mut fields: Vec<fn(&Report) -> &str> = Vec::new();
    for field in [
        (|r| r.arch.as_str()) as fn(&Report) -> &str,
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

/// Results of `simulate`; anything else is told from what `expected` says.
fn simulated<'a>(sources: &'a [Source], expected: &str) -> Result<Vec<&'a Report>, Faults> {
    let mut faults = None;
    let results = sources.iter().filter_map(|source| {
        let result = match &source.data {
            Data::Simulated(result) => Ok(result.as_ref()),
            _ => Err(unfit(source, expected)),
        };
        Faults::collect(&mut faults, result)
    });
    let results: Vec<&Report> = results.collect();
    match faults {
        Some(faults) => Err(faults),
        None => Ok(results),
    }
}

/// Rows of every result of `simulate`, with the name that tells it from the others if there are several; or those of
/// CSV files.
fn of_each<T: Row>(
    sources: &[Source],
    rows: impl Fn(&Report, Option<&str>) -> Result<Vec<T>, Faults>,
) -> Result<Vec<T>, Faults> {
    if sources.iter().all(is_table) {
        return tables(sources);
    }
    let results = simulated(sources, "a result of simulate, or CSV")?;
    let mut all = Vec::new();
    for (result, label) in results.iter().zip(labels(&results)) {
        all.extend(rows(result, (results.len() > 1).then_some(label.as_str()))?);
    }
    Ok(all)
}

/// The machine of a result.
pub(crate) fn machine(given: Option<&str>, result: &Report) -> Result<Accelerator, Faults> {
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
