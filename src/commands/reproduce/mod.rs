//! `reproduce`: published claims, re-run by one command.

mod claims;
mod experiment;
mod experiments;
mod lab;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args as ClapArgs;

use crate::cli::Ending;
use crate::commands::native;
use crate::faults::Faults;
use crate::output::{self, Destination};
use experiment::{Experiment, Machine, Record, Run};
use experiments::ALL;
use lab::Lab;

/// Re-run published claims: figure, numbers, and what the paper says beside what we get.
///
/// `list` tells the experiments; `all` runs them all; `claims` writes the table of what lies in the folder. Each
/// experiment leaves ID.svg, ID.csv and ID.json in the folder.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// `list`, `all`, `claims`, or experiments.
    #[arg(value_name = "list|all|claims|ID", required = true)]
    what: Vec<String>,
    /// Subsets of the layers, networks and seeds: all experiments in less than a quarter of an hour.
    #[arg(long)]
    quick: bool,
    /// Folder of the results; it is made if it is missing.
    #[arg(short, long, value_name = "DIR", default_value = "reproduction")]
    output: PathBuf,
    /// With `claims`: the document [default: standard output]
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
    /// Layers that are mapped at the same time [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    if args.document.is_some() && args.what != ["claims"] {
        return Err(Faults::one("--document goes with `claims`"));
    }
    match args.what.as_slice() {
        [only] if only == "list" => output::print(&list()).map(|()| Ending::Complete),
        [only] if only == "claims" => claims_of(args).map(|()| Ending::Complete),
        [only] if only == "all" => reproduce(args, ALL),
        names => {
            let mut faults = None;
            let chosen: Vec<Experiment> = names
                .iter()
                .filter_map(|name| Faults::collect(&mut faults, find(name)))
                .collect();
            match faults {
                Some(faults) => Err(faults),
                None => reproduce(args, &chosen),
            }
        }
    }
}

fn find(name: &str) -> Result<Experiment, Faults> {
    ALL.iter().find(|e| e.id == name).copied().ok_or_else(|| {
        let known: Vec<String> = ALL.iter().map(|e| e.id.to_string()).collect();
        Faults::unknown("experiment", name, &known)
    })
}

fn list() -> String {
    let mut out = String::new();
    for e in ALL {
        out += &format!("{}\n  {}: {}\n", e.id, e.source, e.claim);
        out += &match e.run {
            Run::Here(_) => format!("  runs: {}\n", e.part),
            Run::Needs(what) => format!("  cannot be run: {what}\n"),
        };
    }
    out
}

/// Runs experiments one after the other; what fails is told and the others go on.
fn reproduce(args: &Args, experiments: &[Experiment]) -> Result<Ending, Faults> {
    // What runs natively must not be at the mercy of variables that other libraries read.
    if experiments.iter().any(|e| e.part.starts_with("direct convolution"))
        && let Some(ending) = native::without_traps()?
    {
        return Ok(ending);
    }
    let folder = &args.output;
    let unwritable =
        |error: std::io::Error| Faults::one(format!("{}: cannot be written: {}", folder.display(), error.kind()));
    fs::create_dir_all(folder).map_err(unwritable)?;
    tempfile::tempfile_in(folder).map_err(unwritable)?;
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
    let lab = Lab::new(args.quick, threads);
    let mut ending = Ending::Complete;
    for experiment in experiments {
        let text = match experiment.run {
            Run::Needs(what) => format!("{}: cannot be run here: {what}\n", experiment.id),
            Run::Here(function) => {
                let start = Instant::now();
                let outcome = function(&lab).and_then(|results| {
                    let seconds = start.elapsed().as_secs_f64();
                    keep(args, experiment, &results, seconds)
                });
                match outcome {
                    Ok(record) => told(experiment, &record),
                    Err(error) => {
                        ending = Ending::Incomplete;
                        format!("{}: failed: {error}\n", experiment.id)
                    }
                }
            }
        };
        output::print(&text)?;
    }
    Ok(ending)
}

/// Writes figures, numbers and the record.
fn keep(args: &Args, experiment: &Experiment, results: &experiment::Results, seconds: f64) -> Result<Record, String> {
    let mut files = Vec::new();
    for (name, figure) in &results.figures {
        let file = match *name {
            "" => format!("{}.svg", experiment.id),
            name => format!("{}-{name}.svg", experiment.id),
        };
        figure
            .save(&args.output.join(&file))
            .map_err(|error| error.to_string())?;
        files.push(file);
    }
    let quick = if args.quick { " --quick" } else { "" };
    let record = Record {
        id: experiment.id.to_string(),
        command: format!("cyclonest reproduce {}{quick}", experiment.id),
        quick: args.quick,
        version: env!("CARGO_PKG_VERSION").to_string(),
        date: experiment::today(),
        machine: Machine::this(),
        seconds: (seconds * 10.0).round() / 10.0,
        figures: files,
        findings: results.findings.clone(),
        skipped: results.skipped.clone(),
        conditions: results.conditions.clone(),
    };
    let path = args.output.join(format!("{}.json", experiment.id));
    let text = serde_json::to_string_pretty(&record).map_err(|error| error.to_string())? + "\n";
    Destination::prepare(Some(&path))
        .and_then(|destination| destination.write(&text))
        .map_err(|faults| faults.to_string())?;
    Ok(record)
}

/// The lines that a user reads.
fn told(experiment: &Experiment, record: &Record) -> String {
    let mut out = format!("{} ({}): {:.1} s\n", experiment.id, experiment.source, record.seconds);
    for finding in &record.findings {
        out += &format!(
            "  {}: paper says {} / we get {}\n",
            finding.what, finding.paper, finding.ours
        );
    }
    for skipped in &record.skipped {
        out += &format!("  left out: {skipped}\n");
    }
    for condition in &record.conditions {
        out += &format!("  {condition}\n");
    }
    out
}

/// The table of what lies in the folder.
fn claims_of(args: &Args) -> Result<(), Faults> {
    let folder = &args.output;
    let mut records = Vec::new();
    for experiment in ALL {
        let path = folder.join(format!("{}.json", experiment.id));
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let record: Record = serde_json::from_str(&text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            Faults::one(format!("{}:{line}:{column}: {error}", path.display()))
        })?;
        records.push(record);
    }
    if records.is_empty() {
        let message = format!("{}: holds no record of an experiment", folder.display());
        return Err(Faults::one(message));
    }
    let document = args.document.as_deref();
    let seen = relative(document, folder);
    Destination::prepare(document)?.write(&claims::render(ALL, &records, &seen))
}

/// The folder as seen from the document: its name where it lies beside it, as given otherwise.
fn relative(document: Option<&Path>, folder: &Path) -> String {
    let beside = document
        .and_then(Path::parent)
        .is_some_and(|parent| Some(parent) == folder.parent());
    match folder.file_name() {
        Some(name) if beside => name.to_string_lossy().into_owned(),
        _ => folder.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every claim that is to be re-run.
    const WANTED: [&str; 24] = [
        "cosa-fig3",
        "cosa-fig4",
        "cosa-fig6",
        "cosa-fig7",
        "cosa-fig8",
        "cosa-fig9",
        "maestro-fig9",
        "maestro-fig10",
        "maestro-fig11",
        "maestro-fig13",
        "maestro-table5",
        "samo-table4",
        "samo-fig2",
        "samo-fig3",
        "samo-fig4",
        "samo-table5",
        "samo-table6",
        "samo-table7",
        "sconv-table2",
        "sconv-fig8",
        "ours-model",
        "ours-streaming",
        "ours-host",
        "ours-speed",
    ];

    #[test]
    fn every_claim_is_registered_once() {
        let ids: Vec<&str> = ALL.iter().map(|e| e.id).collect();
        assert_eq!(ids, WANTED);
    }

    #[test]
    fn every_experiment_says_what_is_claimed_and_why_it_differs() {
        for e in ALL {
            for text in [e.source, e.claim, e.part, e.differs] {
                assert!(text.len() > 3 && !text.ends_with('.'), "{}: {text}", e.id);
            }
        }
    }

    #[test]
    fn an_unknown_experiment_names_the_nearest() {
        let faults = find("samo-fig22").unwrap_err().to_string();
        assert!(faults.contains("did you mean `samo-fig2`?"), "{faults}");
    }
}
