//! `compare`: cost models against the simulation.

mod human;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_scheduler::cost::{self, CostModel};
use cyclonest_scheduler::{Request, Scheduler};
use cyclonest_validation::compare::{self, LayerRow, RankRow, RankSummary, Summary};
use cyclonest_workloads::DistinctLayer;
use serde::Serialize;

use crate::assign::Given;
use crate::cli::Ending;
use crate::commands::simulate;
use crate::faults::Faults;
use crate::inputs;
use crate::output::Destination;
use crate::parallel;
use crate::provenance::Provenance;

/// Simulate every distinct layer and say how far analytical cost models are from the simulation.
///
/// Per model: the signed error of every layer with the part of the latency where model and simulation differ most, and
/// over all layers mean and largest absolute error, R², and correlations with bootstrap 95 % intervals; the same over
/// the layers that compute less than 80 % of the time. `maestro` judges the mappings that its directives can express;
/// the others are left out of its statistics. `cosa` minimises a sum of logarithms that is no number of cycles: only
/// its order is judged. With --mappings, many mappings of each layer are compared instead. The result is the same for
/// any number of threads.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Bundled accelerators (`cyclonest list archs`) or RON files, separated by commas; `all` bundled ones.
    #[arg(long, value_name = "NAMES|FILES", value_delimiter = ',', required = true)]
    arch: Vec<String>,
    /// Bundled networks (`cyclonest list networks`), RON or ONNX files, separated by commas; `all` bundled ones.
    #[arg(long, value_name = "NAMES|FILES", value_delimiter = ',', required = true)]
    network: Vec<String>,
    /// Only the shape of this layer; may be given several times.
    #[arg(long = "layer", value_name = "NAME")]
    layers: Vec<String>,
    /// Maps the layers (`cyclonest list schedulers`) [default: greedy]
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
    /// Mappings in RON, as `simulate` takes them, for one accelerator and one network. Layers that the file does not map
    /// need --scheduler.
    #[arg(long, value_name = "FILE")]
    mapping: Option<PathBuf>,
    /// Only layers with at most so many multiply-accumulates.
    #[arg(long, value_name = "MACS", conflicts_with = "mapping")]
    macs_up_to: Option<u64>,
    /// Only so many layers, drawn at random (--seed) from those of all machines and networks.
    #[arg(long, value_name = "N", conflicts_with = "mapping")]
    draw: Option<NonZeroUsize>,
    /// Models, separated by commas [default: all: exact, exact:quick, timeloop, maestro, cosa]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    models: Vec<String>,
    /// Compare so many random valid mappings of each layer: Kendall's τ, and the regret: simulated cycles of the model's
    /// favourite ÷ those of the best mapping.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..), conflicts_with_all = ["mapping", "scheduler"])]
    mappings: Option<u64>,
    /// Seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Leave the single layers out of the table.
    #[arg(long)]
    summary: bool,
    /// Layers that are simulated at the same time [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// How the result is written.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Write the result to a file, which appears when it is complete [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables.
    Human,
    /// Every figure (docs/output.md).
    Json,
    /// One row per layer and model.
    Csv,
}

/// Everything that `compare` has to say.
#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    command: &'static str,
    version: &'static str,
    provenance: Provenance,
    archs: Vec<String>,
    networks: Vec<String>,
    scheduler: String,
    models: Vec<String>,
    seed: u64,
    /// Bootstrap resamples behind the intervals.
    resamples: usize,
    layers: Vec<LayerRow>,
    summaries: Vec<Summary>,
    /// With --mappings.
    ranks: Vec<RankRow>,
    rank_summaries: Vec<RankSummary>,
    failed: Vec<Failed>,
}

/// A layer without a result.
#[derive(Debug, Serialize)]
struct Failed {
    arch: String,
    network: String,
    layer: String,
    error: String,
}

/// One layer on one machine.
struct Job<'a> {
    arch: &'a Accelerator,
    network: &'a str,
    layer: &'a DistinctLayer,
    /// The mapping of the file, if it has one.
    mapping: Option<Mapping>,
}

/// What a job gives.
enum Row {
    Layer(Box<LayerRow>),
    Rank(Box<RankRow>),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let mut faults = None;
    let archs: Vec<Accelerator> = expand(&args.arch, inputs::arch_names)
        .iter()
        .filter_map(|name| Faults::collect(&mut faults, inputs::arch(name)))
        .collect();
    let mut networks: Vec<(String, Vec<DistinctLayer>, Vec<DistinctLayer>)> = Vec::new();
    for name in expand(&args.network, inputs::network_names) {
        if let Some(described) = Faults::collect(&mut faults, inputs::network(&name, None)) {
            let all = described.network.distinct();
            let selected = simulate::select(&args.layers, &described.network, &all);
            if let Some(selected) = Faults::collect(&mut faults, selected) {
                networks.push((described.network.name().to_string(), all, selected));
            }
        }
    }
    let scheduler = args.scheduler.as_deref().unwrap_or("greedy");
    let scheduler = Faults::collect(&mut faults, inputs::scheduler(scheduler));
    let models = Faults::collect(&mut faults, models(&args.models));
    let file = args.mapping.as_deref().map(|path| match (&archs[..], &networks[..]) {
        ([arch], [(_, all, selected)]) => Faults::collect(&mut faults, from_file(args, path, arch, all, selected)),
        _ => Faults::collect(
            &mut faults,
            Err(Faults::one("--mapping is for one accelerator and one network")),
        ),
    });
    if let Some(faults) = faults {
        return Err(faults);
    }
    let (Some(scheduler), Some(models)) = (scheduler, models) else {
        return Err(Faults::one("nothing to compare"));
    };
    let mut given = file.flatten().unwrap_or_default().into_iter();
    let mut jobs = Vec::new();
    for arch in &archs {
        for (network, _, layers) in &networks {
            jobs.extend(layers.iter().map(|layer| Job {
                arch,
                network,
                layer,
                mapping: given.next().flatten(),
            }));
        }
    }
    jobs.retain(|job| args.macs_up_to.is_none_or(|most| job.layer.problem.macs() <= most));
    if let Some(count) = args.draw {
        let mut drawn = compare::draw(jobs.len(), count.get(), args.seed).into_iter().peekable();
        let mut number = 0..;
        jobs.retain(|_| drawn.next_if_eq(&number.next().unwrap_or(0)).is_some());
    }
    if jobs.is_empty() {
        return Err(Faults::one("no layer is left to compare"));
    }
    let destination = Destination::prepare(args.output.as_deref())?;
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
    let results = parallel::map(
        &jobs,
        threads,
        |job| job.layer.problem.macs(),
        |job| job.run(args, scheduler.as_ref(), &models),
        |_| {},
    );
    let described = expand(&args.arch, inputs::arch_names)
        .into_iter()
        .chain(expand(&args.network, inputs::network_names))
        .collect::<Vec<_>>();
    let given = described
        .iter()
        .map(AsRef::as_ref)
        .chain(args.mapping.iter().filter_map(|path| path.to_str()));
    let mut report = Report {
        schema: 1,
        command: "compare",
        version: env!("CARGO_PKG_VERSION"),
        provenance: Provenance::of_this_run(given),
        archs: archs.iter().map(|arch| arch.name.clone()).collect(),
        networks: networks.iter().map(|network| network.0.clone()).collect(),
        scheduler: match args.mappings {
            Some(_) => "random".to_owned(),
            None => scheduler.name().to_owned(),
        },
        models: models.iter().map(|model| model.name().to_owned()).collect(),
        seed: args.seed,
        resamples: compare::RESAMPLES,
        layers: Vec::new(),
        summaries: Vec::new(),
        ranks: Vec::new(),
        rank_summaries: Vec::new(),
        failed: Vec::new(),
    };
    for (job, result) in jobs.iter().zip(results) {
        match result {
            Ok(Row::Layer(row)) => report.layers.push(*row),
            Ok(Row::Rank(row)) => report.ranks.push(*row),
            Err(error) => report.failed.push(Failed {
                arch: job.arch.name.clone(),
                network: job.network.to_owned(),
                layer: job.layer.name.clone(),
                error,
            }),
        }
    }
    report.summaries = compare::summaries(&report.layers, &models, args.seed);
    report.rank_summaries = compare::rank_summaries(&report.ranks);
    let text = match args.format {
        Format::Human => report.to_human(!args.summary),
        Format::Json => serde_json::to_string_pretty(&report).map_err(|e| Faults::one(e.to_string()))? + "\n",
        Format::Csv => report.to_csv()?,
    };
    destination.write(&text)?;
    Ok(match report.failed.is_empty() {
        true => Ending::Complete,
        false => Ending::Incomplete,
    })
}

/// The names, `all` replaced by `bundled`.
fn expand(names: &[String], bundled: fn() -> Vec<String>) -> Vec<String> {
    names
        .iter()
        .flat_map(|name| match name.as_str() {
            "all" => bundled(),
            _ => vec![name.clone()],
        })
        .collect()
}

/// The models of these names, all if there are none.
fn models(names: &[String]) -> Result<Vec<&'static dyn CostModel>, Faults> {
    let known: Vec<String> = cost::names().map(String::from).collect();
    let mut faults = None;
    let wanted = if names.is_empty() { &known } else { names };
    let models = wanted
        .iter()
        .filter_map(|name| {
            let model = cost::by_name(name).ok_or_else(|| Faults::unknown("model", name, &known));
            Faults::collect(&mut faults, model)
        })
        .collect();
    faults.map_or(Ok(models), Err)
}

/// The mappings of the file, checked.
fn from_file(
    args: &Args,
    path: &std::path::Path,
    arch: &Accelerator,
    all: &[DistinctLayer],
    selected: &[DistinctLayer],
) -> Result<Vec<Option<Mapping>>, Faults> {
    let (file, text) = inputs::mappings(path)?;
    let given = Given {
        path,
        text: &text,
        file: &file,
    };
    let assigned = given.assign(arch, all, selected)?;
    simulate::require_all(path, args.scheduler.is_none(), selected, &assigned)?;
    Ok(assigned)
}

impl Job<'_> {
    fn run(&self, args: &Args, scheduler: &dyn Scheduler, models: &[&dyn CostModel]) -> Result<Row, String> {
        let (problem, of) = (&self.layer.problem, (self.arch, self.network));
        if let Some(count) = args.mappings {
            let mappings = compare::sample(problem, self.arch, count, args.seed).map_err(|e| e.to_string())?;
            let row = compare::rank(of, self.layer, &mappings, models, args.seed);
            return row.map(|row| Row::Rank(Box::new(row))).map_err(|e| e.to_string());
        }
        let (mapped_by, mapping) = match &self.mapping {
            Some(mapping) => ("file", mapping.clone()),
            None => {
                let request = Request {
                    seed: args.seed,
                    ..Request::new(problem, self.arch)
                };
                let scheduled = scheduler.schedule(&request).map_err(|e| e.to_string())?;
                (scheduler.name(), scheduled.mapping)
            }
        };
        let row = compare::layer(of, self.layer, (mapped_by, &mapping), models);
        row.map(|row| Row::Layer(Box::new(row))).map_err(|e| e.to_string())
    }
}

impl Report {
    fn to_csv(&self) -> Result<String, Faults> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut put = |record: Vec<String>| writer.write_record(record).map_err(|e| Faults::one(e.to_string()));
        let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
        let strings = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        if !self.layers.is_empty() {
            put(strings(&[
                "arch",
                "network",
                "layer",
                "count",
                "macs",
                "mapped_by",
                "cycles",
                "computing",
                "model",
                "estimate",
                "error",
                "gap",
                "gap_cycles",
                "refused",
            ]))?;
        }
        for row in &self.layers {
            for verdict in &row.verdicts {
                put(vec![
                    row.arch.clone(),
                    row.network.clone(),
                    row.layer.clone(),
                    row.count.to_string(),
                    row.macs.to_string(),
                    row.mapped_by.clone(),
                    row.cycles.to_string(),
                    row.breakdown.computing.to_string(),
                    verdict.model.clone(),
                    number(verdict.estimate),
                    number(verdict.error),
                    verdict.gap.as_ref().map_or_else(String::new, |gap| gap.what.clone()),
                    number(verdict.gap.as_ref().map(|gap| gap.cycles)),
                    verdict.refused.clone().unwrap_or_default(),
                ])?;
            }
        }
        if !self.ranks.is_empty() {
            put(strings(&[
                "arch",
                "network",
                "layer",
                "mappings",
                "best",
                "worst",
                "model",
                "refused",
                "mean_error",
                "largest_error",
                "spearman",
                "kendall",
                "kendall_low",
                "kendall_high",
                "regret",
            ]))?;
        }
        for row in &self.ranks {
            for verdict in &row.verdicts {
                let agreement = &verdict.agreement;
                put(vec![
                    row.arch.clone(),
                    row.network.clone(),
                    row.layer.clone(),
                    row.mappings.to_string(),
                    row.best.to_string(),
                    row.worst.to_string(),
                    verdict.model.clone(),
                    verdict.refused.to_string(),
                    number(agreement.mean_error.map(|e| e.value)),
                    number(agreement.largest_error),
                    number(agreement.spearman.map(|s| s.value)),
                    number(agreement.kendall.map(|k| k.value)),
                    number(agreement.kendall.map(|k| k.low)),
                    number(agreement.kendall.map(|k| k.high)),
                    number(verdict.regret),
                ])?;
            }
        }
        let bytes = writer.into_inner().map_err(|e| Faults::one(e.to_string()))?;
        String::from_utf8(bytes).map_err(|e| Faults::one(e.to_string()))
    }
}
