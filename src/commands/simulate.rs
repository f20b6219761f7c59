//! `simulate`: map the layers of a network onto a machine and simulate each.

use std::io::IsTerminal as _;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_scheduler::{Request, Scheduler};
use cyclonest_sim::{FastForward, Options, Outcome, SimError};
use cyclonest_workloads::{DistinctLayer, Network, Scale};
use indicatif::{ProgressBar, ProgressStyle};

use crate::assign::Given;
use crate::cli::Ending;
use crate::faults::Faults;
use crate::inputs::{self, Described, InputShape};
use crate::output::{Destination, Streaming};
use crate::parallel;
use crate::provenance::Provenance;
use crate::report::{Failed, LayerReport, Report, Subject};
use crate::search::REFEREE;
use crate::trace;

/// Map every distinct layer of a network onto an accelerator and simulate it cycle by cycle.
///
/// Equal layers are simulated once and counted. The result is the same for any number of threads.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A bundled accelerator (`cyclonest list archs`) or a RON file.
    #[arg(long, value_name = "NAME|FILE")]
    arch: String,
    /// A bundled network (`cyclonest list networks`), a RON file or an ONNX file.
    #[arg(long, value_name = "NAME|FILE")]
    network: String,
    /// Shape of the input of an ONNX file that leaves sizes open.
    #[arg(long, value_name = "1x3x224x224")]
    input_shape: Option<InputShape>,
    /// Only the shape of this layer; may be given several times.
    #[arg(long = "layer", value_name = "NAME")]
    layers: Vec<String>,
    /// Mappings in RON: `Mappings(…)` by layer name, or one `Mapping(…)` for one --layer. Layers that the file does
    /// not map need --scheduler.
    #[arg(long, value_name = "FILE")]
    mapping: Option<PathBuf>,
    /// Maps the layers (`cyclonest list schedulers`) [default: greedy]
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
    /// Weights of the program of `milp` (`cyclonest calibrate`).
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Move integers through the buffers and compare the result with a direct convolution.
    #[arg(long)]
    check_values: bool,
    /// Simulate every event, even where the machine's state recurs; the results are the same.
    #[arg(long)]
    no_fast_forward: bool,
    /// Divide the channels of every layer but the network's inputs, rounding up.
    #[arg(long, value_name = "N", default_value = "1")]
    channels_divide: NonZeroU64,
    /// Seed of the scheduler and of the integers of --check-values.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Simulations that run at the same time [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// How the result is written.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Write the result to a file, which appears when it is complete [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write what happened when as a Chrome trace, for Perfetto and `cyclonest plot gantt`; for one layer.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Only these cycles of the trace; none of them are skipped.
    #[arg(long, value_name = "FROM:TO", requires = "trace")]
    trace_window: Option<trace::Window>,
    /// Write the mappings that were simulated to a RON file that --mapping reads.
    #[arg(long, value_name = "FILE")]
    save_mappings: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table.
    Human,
    /// Every count (docs/output.md).
    Json,
    /// One row per distinct layer.
    Csv,
}

/// What a mapping comes from.
const DEFAULT_SCHEDULER: &str = "greedy";

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let plan = Plan::resolve(args)?;
    let destination = Destination::prepare(args.output.as_deref())?;
    let mappings = args
        .save_mappings
        .as_deref()
        .map(|path| Destination::prepare(Some(path)))
        .transpose()?;
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));

    let traced = match &args.trace {
        Some(path) => Some((plan.only_layer()?, Destination::prepare(Some(path))?)),
        None => None,
    };
    let results = match traced {
        Some((job, trace)) => vec![plan.run_traced(job, trace, args.trace_window)?],
        None => plan.run_all(threads),
    };

    let files = [&args.mapping, &args.weights].into_iter().flatten();
    let given = [args.arch.as_str(), &args.network]
        .into_iter()
        .chain(files.filter_map(|path| path.to_str()));
    let report = plan.report(results, Provenance::of_this_run(given))?;
    let text = match args.format {
        Format::Human => Ok(report.to_human()),
        Format::Json => report.to_json().map_err(|error| error.to_string()),
        Format::Csv => report.to_csv().map_err(|error| error.to_string()),
    };
    if let Some(destination) = mappings {
        destination.write(&report.mappings().to_ron())?;
    }
    // The table says itself what failed, if the user gets to see it.
    if !(args.format == Format::Human && args.output.is_none()) {
        for failed in &report.failed {
            eprintln!("failed: {}: {}", failed.name, failed.error);
        }
    }
    destination.write(&text.map_err(Faults::one)?)?;
    Ok(match report.is_complete() {
        true => Ending::Complete,
        false => Ending::Incomplete,
    })
}

/// A bar on standard error, if that is a terminal.
fn progress(length: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{bar:32} {pos}/{len} layers  {elapsed}  {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Everything that was asked for, found and checked.
struct Plan {
    arch: Accelerator,
    network: Described,
    scheduler: Box<dyn Scheduler>,
    jobs: Vec<Job>,
    channels_divide: u64,
    options: Options,
}

/// One simulation.
#[derive(Debug)]
struct Job {
    layer: DistinctLayer,
    /// The mapping of the file, if it has one.
    mapping: Option<Mapping>,
}

/// How one simulation ended.
enum Ended {
    Done(Box<LayerReport>),
    Failed(String),
    /// The machine cannot run anything: a fault of the input.
    Deadlock(String),
}

impl Plan {
    /// Finds everything that the options name; all faults at once.
    fn resolve(args: &Args) -> Result<Self, Faults> {
        let mut faults = None;
        let name = args.scheduler.as_deref().unwrap_or(DEFAULT_SCHEDULER);
        let arch = Faults::collect(&mut faults, inputs::arch(&args.arch));
        let network = Faults::collect(&mut faults, scaled_network(args));
        let weights = arch.as_ref().zip(args.weights.as_deref());
        let weights = weights.map(|(arch, path)| Faults::collect(&mut faults, inputs::weights(path, arch, &[name])));
        let weights = weights.flatten();
        let scheduler = Faults::collect(&mut faults, inputs::scheduler_with(name, weights.as_ref()));
        let file = args
            .mapping
            .as_deref()
            .map(|path| Faults::collect(&mut faults, inputs::mappings(path)));
        let layers = match &network {
            Some(described) => {
                let all = described.network.distinct();
                Faults::collect(&mut faults, select(&args.layers, &described.network, &all))
                    .map(|selected| (all, selected))
            }
            None => None,
        };
        let mut mappings = None;
        if let (Some(arch), Some((all, layers)), Some(path), Some(Some((file, text)))) =
            (&arch, &layers, args.mapping.as_deref(), &file)
        {
            let given = Given { path, text, file };
            let assigned = given.assign(arch, all, layers).and_then(|assigned| {
                let rest = args.scheduler.is_none();
                require_all(path, rest, layers, &assigned).map(|()| assigned)
            });
            mappings = Faults::collect(&mut faults, assigned);
        }
        if let Some(faults) = faults {
            return Err(faults);
        }
        let (Some(arch), Some(network), Some(scheduler), Some((_, layers))) = (arch, network, scheduler, layers) else {
            return Err(Faults::one("nothing to simulate"));
        };
        let mappings = mappings.unwrap_or_else(|| vec![None; layers.len()]);
        Ok(Plan {
            arch,
            network,
            scheduler,
            jobs: layers
                .into_iter()
                .zip(mappings)
                .map(|(layer, mapping)| Job { layer, mapping })
                .collect(),
            channels_divide: args.channels_divide.get(),
            options: Options {
                check_values: args.check_values,
                seed: args.seed,
                fault: None,
                fast_forward: if args.no_fast_forward {
                    FastForward::Off
                } else {
                    FastForward::On
                },
            },
        })
    }

    /// Maps and simulates all layers.
    fn run_all(&self, threads: NonZeroUsize) -> Vec<Ended> {
        let progress = progress(self.jobs.len() as u64);
        let results = parallel::map(
            &self.jobs,
            threads,
            |job| job.layer.problem.macs(),
            |job| self.run(job),
            |job| {
                progress.set_message(job.layer.name.clone());
                progress.inc(1);
            },
        );
        progress.finish_and_clear();
        results
    }

    /// The layer that is traced.
    fn only_layer(&self) -> Result<&Job, Faults> {
        match self.jobs.as_slice() {
            [job] => Ok(job),
            jobs => Err(Faults::one(format!(
                "--trace draws one layer, not {}\n  help: choose it with --layer",
                jobs.len()
            ))),
        }
    }

    /// Maps and simulates one layer and writes what happens. A layer without a result has no trace.
    fn run_traced(&self, job: &Job, trace: Destination, window: Option<trace::Window>) -> Result<Ended, Faults> {
        let (mapped_by, mapping) = match self.map(job) {
            Ok(mapped) => mapped,
            Err(error) => return Ok(Ended::Failed(error)),
        };
        let about = serde_json::json!({
            "command": "simulate --trace",
            "version": env!("CARGO_PKG_VERSION"),
            "arch": self.arch.name,
            "network": self.network.network.name(),
            "layer": job.layer.name,
            "channels_divided_by": self.channels_divide,
            "mapped_by": mapped_by,
            "mapping": mapping,
            "seed": self.options.seed,
        });
        let mut failed = None;
        let written = trace.stream(|out| {
            let mut trace = trace::Trace::begin(out, &self.arch, &mapping, window);
            let problem = &job.layer.problem;
            match cyclonest_sim::simulate_observed(problem, &self.arch, &mapping, self.options, &mut trace) {
                Ok(outcome) => trace.end(about, &outcome).map(|()| outcome).map_err(Streaming::from),
                Err(error) => {
                    failed = Some(error);
                    Err(Streaming::Input(Faults::one("the layer has no result")))
                }
            }
        });
        match (written, failed) {
            (_, Some(error)) => Ok(Self::failed(&error)),
            (Err(faults), None) => Err(faults),
            (Ok(outcome), None) => Ok(self.done(job, (mapped_by, mapping), outcome)),
        }
    }

    /// A mapping for a layer and where it comes from.
    fn map(&self, job: &Job) -> Result<(String, Mapping), String> {
        match &job.mapping {
            Some(mapping) => Ok(("file".to_string(), mapping.clone())),
            None => {
                let request = Request {
                    seed: self.options.seed,
                    referee: REFEREE,
                    ..Request::new(&job.layer.problem, &self.arch)
                };
                match self.scheduler.schedule(&request) {
                    Ok(scheduled) => Ok((self.scheduler.name().to_string(), scheduled.mapping)),
                    Err(error) => Err(error.to_string()),
                }
            }
        }
    }

    /// Maps and simulates one layer.
    fn run(&self, job: &Job) -> Ended {
        let (mapped_by, mapping) = match self.map(job) {
            Ok(mapped) => mapped,
            Err(error) => return Ended::Failed(error),
        };
        match cyclonest_sim::simulate(&job.layer.problem, &self.arch, &mapping, self.options) {
            Ok(outcome) => self.done(job, (mapped_by, mapping), outcome),
            Err(error) => Self::failed(&error),
        }
    }

    fn done(&self, job: &Job, mapped: (String, Mapping), outcome: Outcome) -> Ended {
        Ended::Done(Box::new(LayerReport::new(&job.layer, &self.arch, mapped, outcome)))
    }

    fn failed(error: &SimError) -> Ended {
        match error {
            SimError::Deadlock { .. } => Ended::Deadlock(error.to_string()),
            error => Ended::Failed(error.to_string()),
        }
    }

    /// Sorts the results into layers and failures.
    fn report(&self, results: Vec<Ended>, provenance: Provenance) -> Result<Report, Faults> {
        let (mut layers, mut failed, mut deadlocks) = (Vec::new(), Vec::new(), Vec::new());
        for (job, ended) in self.jobs.iter().zip(results) {
            match ended {
                Ended::Done(layer) => layers.push(*layer),
                Ended::Failed(error) => failed.push(Failed {
                    name: job.layer.name.clone(),
                    count: job.layer.count,
                    macs: job.layer.problem.macs(),
                    error,
                }),
                Ended::Deadlock(error) => deadlocks.push(format!("{}: {error}", job.layer.name)),
            }
        }
        if !deadlocks.is_empty() {
            return Err(deadlocks.into_iter().collect());
        }
        let subject = Subject {
            arch: &self.arch,
            network: self.network.network.name().to_string(),
            about: self.network.about.clone(),
            scheduler: self.scheduler.name().to_string(),
            channels_divided_by: self.channels_divide,
            seed: self.options.seed,
            provenance,
        };
        Report::new(subject, layers, failed).map_err(|_| Faults::one("a total exceeds 64 bits; simulate fewer layers"))
    }
}

fn scaled_network(args: &Args) -> Result<Described, Faults> {
    let mut described = inputs::network(&args.network, args.input_shape.as_ref())?;
    if args.channels_divide.get() > 1 {
        let scale = Scale {
            divide_channels: args.channels_divide.get(),
            ..Scale::default()
        };
        described.network = described.network.scaled(scale).map_err(|errors| {
            errors
                .into_iter()
                .map(|error| format!("{}: {error}", args.network))
                .collect::<Faults>()
        })?;
    }
    Ok(described)
}

/// The layers that `wanted` names, in network order; all if it names none.
pub(crate) fn select(
    wanted: &[String],
    network: &Network,
    all: &[DistinctLayer],
) -> Result<Vec<DistinctLayer>, Faults> {
    let known: Vec<String> = all.iter().flat_map(|layer| layer.names.clone()).collect();
    let mut faults = None;
    for name in wanted.iter().filter(|name| !known.contains(name)) {
        Faults::collect(&mut faults, Err::<(), _>(Faults::unknown("layer", name, &known)));
    }
    if let Some(faults) = faults {
        return Err(faults);
    }
    let chosen = |layer: &&DistinctLayer| wanted.is_empty() || layer.names.iter().any(|name| wanted.contains(name));
    let selected: Vec<DistinctLayer> = all.iter().filter(chosen).cloned().collect();
    match selected.is_empty() {
        true => Err(Faults::one(format!(
            "network {}: no layer has multiplications",
            network.name()
        ))),
        false => Ok(selected),
    }
}

/// Without a scheduler, the file must map every layer.
pub(crate) fn require_all(
    path: &std::path::Path,
    required: bool,
    layers: &[DistinctLayer],
    mappings: &[Option<Mapping>],
) -> Result<(), Faults> {
    let missing = layers.iter().zip(mappings).filter(|(_, mapping)| mapping.is_none());
    let missing: Vec<&str> = missing.map(|(layer, _)| layer.name.as_str()).collect();
    if missing.is_empty() || !required {
        return Ok(());
    }
    Err(Faults::one(format!(
        "{}: no mapping for {}\n  help: choose layers with --layer, or map the rest with --scheduler",
        path.display(),
        missing.join(", ")
    )))
}
