//! `explain`: which data a mapping reuses, thanks to what.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use cyclonest_arch::directives::{Style, raise};
use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_scheduler::reuse::{TensorReuse, analyze};
use cyclonest_scheduler::{Dataflow, Request, Scheduler};
use cyclonest_workloads::{DistinctLayer, Problem};
use serde::Serialize;

use crate::assign::Given;
use crate::cli::Ending;
use crate::commands::simulate;
use crate::faults::Faults;
use crate::inputs;
use crate::output::Destination;
use crate::provenance::Provenance;

/// Explain the data reuse of a mapping.
///
/// Per tensor and pair of levels: the spatial and the temporal reuse factor, which loops cause it, whether it is a
/// multicast or a reduction, what hardware that takes (fan-out, a stationary buffer, an adder tree or chain,
/// read-modify-write), and what the machine has. It restates tables 1 and 2 of the MAESTRO paper (MICRO 2019) for the
/// loop nest. Below stands the mapping in MAESTRO's directives, where they can say it.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A bundled accelerator (`cyclonest list archs`) or a RON file.
    #[arg(long, value_name = "NAME|FILE")]
    arch: String,
    /// A bundled network (`cyclonest list networks`), a RON file or an ONNX file.
    #[arg(long, value_name = "NAME|FILE")]
    network: String,
    /// The layer.
    #[arg(long, value_name = "NAME")]
    layer: String,
    /// The mapping in RON: `Mapping(…)`, or `Mappings(…)` by layer name.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dataflow", "scheduler"])]
    mapping: Option<PathBuf>,
    /// One of MAESTRO's dataflow styles: C-P, X-P, YX-P, YR-P, KC-P.
    #[arg(long, value_name = "STYLE", conflicts_with = "scheduler")]
    dataflow: Option<String>,
    /// Maps the layer (`cyclonest list schedulers`) [default: greedy]
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
    /// How the result is written.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Write the result to a file, which appears when it is complete [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The loop nest and a table.
    Human,
    /// Every figure (docs/output.md).
    Json,
}

/// Everything that `explain` has to say.
#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    command: &'static str,
    version: &'static str,
    provenance: Provenance,
    arch: String,
    network: String,
    layer: String,
    problem: Problem,
    mapped_by: String,
    mapping: Mapping,
    reuse: Vec<TensorReuse>,
    /// The mapping in MAESTRO's notation.
    directives: Option<String>,
    /// Why it has none.
    not_expressible: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let mut faults = None;
    let arch = Faults::collect(&mut faults, inputs::arch(&args.arch));
    let network = Faults::collect(&mut faults, inputs::network(&args.network, None));
    let scheduler = Faults::collect(&mut faults, scheduler(args));
    let layers = network.as_ref().and_then(|described| {
        let all = described.network.distinct();
        let wanted = std::slice::from_ref(&args.layer);
        let selected = simulate::select(wanted, &described.network, &all);
        Faults::collect(&mut faults, selected).map(|selected| (all, selected))
    });
    if let Some(faults) = faults {
        return Err(faults);
    }
    let (Some(arch), Some(network), Some(scheduler), Some((all, selected))) = (arch, network, scheduler, layers) else {
        return Err(Faults::one("nothing to explain"));
    };
    let destination = Destination::prepare(args.output.as_deref())?;
    let layer = &selected[0];
    let (mapped_by, mapping) = match &args.mapping {
        Some(path) => ("file".to_owned(), from_file(path, &arch, &all, &selected)?),
        None => {
            let scheduled = scheduler.schedule(&Request::new(&layer.problem, &arch));
            let scheduled = scheduled.map_err(|error| Faults::one(format!("{}: {error}", layer.name)))?;
            (scheduler.name().to_owned(), scheduled.mapping)
        }
    };
    let raised = raise(&args.layer, &layer.problem, &mapping);
    let given = [args.arch.as_str(), &args.network]
        .into_iter()
        .chain(args.mapping.iter().filter_map(|path| path.to_str()));
    let report = Report {
        schema: 1,
        command: "explain",
        version: env!("CARGO_PKG_VERSION"),
        provenance: Provenance::of_this_run(given),
        arch: arch.name.clone(),
        network: network.network.name().to_string(),
        layer: args.layer.clone(),
        problem: layer.problem.clone(),
        mapped_by,
        reuse: analyze(&layer.problem, &arch, &mapping).lines,
        mapping,
        directives: raised.as_ref().ok().map(|raised| raised.layer.to_string()),
        not_expressible: raised.err().map(|error| error.to_string()),
    };
    destination.write(&match args.format {
        Format::Human => report.to_human(),
        Format::Json => serde_json::to_string_pretty(&report).map_err(|e| Faults::one(e.to_string()))? + "\n",
    })?;
    Ok(Ending::Complete)
}

/// Who maps the layer where no file does.
fn scheduler(args: &Args) -> Result<Box<dyn Scheduler>, Faults> {
    if let Some(name) = &args.dataflow {
        let known: Vec<String> = Style::ALL.iter().map(|style| style.name().to_owned()).collect();
        let style = Style::from_name(name).ok_or_else(|| Faults::unknown("dataflow", name, &known))?;
        return Ok(Box::new(Dataflow::new(style)));
    }
    inputs::scheduler(args.scheduler.as_deref().unwrap_or("greedy"))
}

/// The mapping of the layer in the file, checked.
fn from_file(
    path: &std::path::Path,
    arch: &Accelerator,
    all: &[DistinctLayer],
    selected: &[DistinctLayer],
) -> Result<Mapping, Faults> {
    let (file, text) = inputs::mappings(path)?;
    let given = Given {
        path,
        text: &text,
        file: &file,
    };
    let assigned = given.assign(arch, all, selected)?;
    simulate::require_all(path, true, selected, &assigned)?;
    assigned
        .into_iter()
        .next()
        .flatten()
        .ok_or_else(|| Faults::one(format!("{}: no mapping", path.display())))
}

impl Report {
    fn to_human(&self) -> String {
        let mut out = format!(
            "{} of {} on {}; mapped by {}\n\n{}\n",
            self.layer,
            self.network,
            self.arch,
            self.mapped_by,
            self.mapping.nest(Some(&self.problem))
        );
        let analysis = cyclonest_scheduler::reuse::ReuseAnalysis {
            lines: self.reuse.clone(),
        };
        out += &analysis.to_string();
        match (&self.directives, &self.not_expressible) {
            (Some(directives), _) => out += &format!("\nin MAESTRO's directives:\n{directives}\n"),
            (None, Some(reason)) => out += &format!("\nnot expressible in MAESTRO's directives: {reason}\n"),
            (None, None) => {}
        }
        out
    }
}
