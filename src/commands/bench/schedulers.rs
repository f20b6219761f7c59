//! `bench schedulers`: several schedulers on the same layers, judged by the simulator.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use comfy_table::{CellAlignment, Table, presets};
use cyclonest_arch::Accelerator;
use cyclonest_scheduler::Scheduler;
use cyclonest_scheduler::cost::CostModel as _;
use cyclonest_scheduler::cost::exact::lower_bound;
use cyclonest_validation::oracle::Simulated;
use cyclonest_workloads::DistinctLayer;
use serde::Serialize;

use crate::cli::Ending;
use crate::commands::simulate;
use crate::faults::Faults;
use crate::inputs;
use crate::output::Destination;
use crate::parallel;
use crate::provenance::Provenance;
use crate::report::{render, thousands};
use crate::search::{SearchArgs, cpu_seconds, geomean};

/// Map the distinct layers of networks with several schedulers, simulate every result, and compare.
///
/// Ratios are to the first scheduler: 1.20 is 1.2 times as many cycles. Geometric means are over the layers that all
/// schedulers map, each distinct layer once. CPU time is of one thread and the search alone; it is the only figure that
/// differs from run to run.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Bundled accelerators (`cyclonest list archs`) or RON files, separated by commas.
    #[arg(long, value_name = "NAME|FILE", value_delimiter = ',', required = true)]
    arch: Vec<String>,
    /// Bundled networks (`cyclonest list networks`), RON or ONNX files, separated by commas.
    #[arg(long, value_name = "NAME|FILE", value_delimiter = ',', required = true)]
    network: Vec<String>,
    /// Only the shape of this layer; may be given several times.
    #[arg(long = "layer", value_name = "NAME")]
    layers: Vec<String>,
    /// Schedulers (`cyclonest list schedulers`), separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', required = true)]
    schedulers: Vec<String>,
    /// Weights of the programs of `milp` and `anneal:milp` (`cyclonest calibrate`), one file per accelerator.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    weights: Vec<PathBuf>,
    /// Only the means of the table.
    #[arg(long)]
    summary: bool,
    #[command(flatten)]
    search: SearchArgs,
    /// Layers that are mapped at the same time [default: all cores]
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
    /// Cycles per layer and scheduler, and the means.
    Human,
    /// Every figure.
    Json,
    /// One row per layer and scheduler.
    Csv,
}

/// One scheduler on one layer.
#[derive(Debug, Clone, Serialize)]
struct Row {
    arch: String,
    network: String,
    layer: String,
    count: u64,
    macs: u64,
    /// No mapping takes fewer cycles.
    lower_bound: u64,
    scheduler: String,
    /// Simulated; `None` if there is no mapping.
    cycles: Option<u64>,
    energy_pj: Option<f64>,
    /// What the oracle said.
    estimated_cycles: Option<f64>,
    evaluations: u64,
    tried: u64,
    valid: u64,
    cpu_s: f64,
    /// Whether the scheduler's own objective is proven; `None` for schedulers that prove nothing.
    proven: Option<bool>,
    error: Option<String>,
}

/// Means of one scheduler over the layers that all map.
#[derive(Debug, Clone, Serialize)]
struct Summary {
    arch: String,
    scheduler: String,
    mapped: usize,
    layers: usize,
    /// Cycles relative to the first scheduler, geometric mean.
    cycles_ratio: Option<f64>,
    energy_ratio: Option<f64>,
    /// Cycles relative to the lower bound of the layer, geometric mean.
    gap: Option<f64>,
    evaluations: u64,
    /// Layers whose own objective is proven; `None` for schedulers that prove nothing.
    proven: Option<usize>,
    cpu_s: f64,
    cpu_s_median: f64,
    cpu_s_most: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    command: &'static str,
    version: &'static str,
    provenance: Provenance,
    archs: Vec<String>,
    networks: Vec<String>,
    objective: cyclonest_scheduler::Objective,
    oracle: &'static str,
    /// Who decided between the best candidates of each search.
    judge: &'static str,
    seed: u64,
    rows: Vec<Row>,
    summary: Vec<Summary>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let mut faults = None;
    let mut layers: Vec<(String, DistinctLayer)> = Vec::new();
    for name in &args.network {
        if let Some(described) = Faults::collect(&mut faults, inputs::network(name, None)) {
            let network = described.network;
            let all = network.distinct();
            if let Some(selected) = Faults::collect(&mut faults, simulate::select(&args.layers, &network, &all)) {
                layers.extend(selected.into_iter().map(|layer| (network.name().to_string(), layer)));
            }
        }
    }
    let machines: Vec<Option<Machine>> = args
        .arch
        .iter()
        .enumerate()
        .map(|(index, name)| Faults::collect(&mut faults, machine(args, index, name)))
        .collect();
    if !args.weights.is_empty() && args.weights.len() != args.arch.len() {
        let counts = (args.arch.len(), args.weights.len());
        let fault = format!(
            "{} accelerators, but {} files of weights; one each is expected",
            counts.0, counts.1
        );
        Faults::collect::<()>(&mut faults, Err(Faults::one(fault)));
    }
    if let Some(faults) = faults {
        return Err(faults);
    }
    let machines: Vec<Machine> = machines.into_iter().flatten().collect();
    let destination = Destination::prepare(args.output.as_deref())?;
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
    let mut jobs: Vec<Job<'_>> = Vec::new();
    for machine in &machines {
        for (network, layer) in &layers {
            jobs.extend(machine.schedulers.iter().map(|scheduler| Job {
                arch: &machine.arch,
                network,
                layer,
                scheduler: scheduler.as_ref(),
            }));
        }
    }
    let rows = parallel::map(
        &jobs,
        threads,
        |job| job.layer.problem.macs(),
        |job| job.run(&args.search),
        |_| {},
    );
    let each = layers.len() * args.schedulers.len();
    let names = args.arch.iter().chain(&args.network).map(String::as_str);
    let given = names.chain(args.weights.iter().filter_map(|path| path.to_str()));
    let report = Report {
        schema: 1,
        command: "bench schedulers",
        version: env!("CARGO_PKG_VERSION"),
        provenance: Provenance::of_this_run(given),
        archs: machines.iter().map(|machine| machine.arch.name.clone()).collect(),
        networks: args.network.clone(),
        objective: args.search.objective(),
        oracle: args.search.oracle(),
        judge: args.search.judge(),
        seed: args.search.seed,
        summary: rows
            .chunks(each.max(1))
            .flat_map(|rows| summaries(args.schedulers.len(), rows))
            .collect(),
        rows,
    };
    let text = match args.format {
        Format::Human => report.to_human(args.schedulers.len(), args.summary),
        Format::Json => serde_json::to_string_pretty(&report).map_err(|e| Faults::one(e.to_string()))? + "\n",
        Format::Csv => report.to_csv()?,
    };
    destination.write(&text)?;
    Ok(match report.rows.iter().all(|row| row.cycles.is_some()) {
        true => Ending::Complete,
        false => Ending::Incomplete,
    })
}

/// A machine and the schedulers for it.
struct Machine {
    arch: Accelerator,
    schedulers: Vec<Box<dyn Scheduler>>,
}

fn machine(args: &Args, index: usize, name: &str) -> Result<Machine, Faults> {
    let mut faults = None;
    let arch = Faults::collect(&mut faults, inputs::arch(name));
    let names: Vec<&str> = args.schedulers.iter().map(String::as_str).collect();
    let weights = arch
        .as_ref()
        .zip(args.weights.get(index))
        .map(|(arch, path)| Faults::collect(&mut faults, inputs::weights(path, arch, &names)))
        .and_then(|weights| weights);
    let schedulers: Vec<Box<dyn Scheduler>> = names
        .iter()
        .filter_map(|name| Faults::collect(&mut faults, inputs::scheduler_with(name, weights.as_ref())))
        .collect();
    match (arch, faults) {
        (Some(arch), None) => Ok(Machine { arch, schedulers }),
        (_, faults) => Err(faults.unwrap_or_else(|| Faults::one("no machine"))),
    }
}

struct Job<'a> {
    arch: &'a Accelerator,
    network: &'a str,
    layer: &'a DistinctLayer,
    scheduler: &'a dyn Scheduler,
}

impl Job<'_> {
    fn run(&self, search: &SearchArgs) -> Row {
        let (problem, arch) = (&self.layer.problem, self.arch);
        let mut row = Row {
            arch: arch.name.clone(),
            network: self.network.to_string(),
            layer: self.layer.name.clone(),
            count: self.layer.count,
            macs: problem.macs(),
            lower_bound: lower_bound(problem, arch),
            scheduler: self.scheduler.name().to_string(),
            cycles: None,
            energy_pj: None,
            estimated_cycles: None,
            evaluations: 0,
            tried: 0,
            valid: 0,
            cpu_s: 0.0,
            proven: None,
            error: None,
        };
        let start = cpu_seconds();
        let found = self.scheduler.schedule(&search.request(problem, arch));
        row.cpu_s = cpu_seconds() - start;
        let scheduled = match found {
            Ok(scheduled) => scheduled,
            Err(error) => {
                row.error = Some(error.to_string());
                return row;
            }
        };
        (row.evaluations, row.tried, row.valid) = (scheduled.evaluations, scheduled.tried, scheduled.valid);
        row.proven = scheduled.proof.map(|proof| proof.proven);
        row.estimated_cycles = scheduled.estimate.map(|estimate| estimate.cycles);
        match Simulated.evaluate(problem, arch, &scheduled.mapping) {
            Ok(outcome) => {
                row.cycles = Some(outcome.cycles as u64);
                row.energy_pj = Some(outcome.energy_pj);
            }
            Err(error) => row.error = Some(error.to_string()),
        }
        row
    }
}

/// The means; the rows of a layer follow each other in the order of the schedulers.
fn summaries(schedulers: usize, rows: &[Row]) -> Vec<Summary> {
    let layers: Vec<&[Row]> = rows.chunks(schedulers).collect();
    let common: Vec<&[Row]> = layers
        .iter()
        .copied()
        .filter(|rows| rows.iter().all(|row| row.cycles.is_some()))
        .collect();
    let mean = |of: &dyn Fn(&[Row]) -> Option<f64>| geomean(common.iter().filter_map(|rows| of(rows)));
    (0..schedulers)
        .map(|index| {
            let own: Vec<&Row> = layers.iter().map(|rows| &rows[index]).collect();
            let mut seconds: Vec<f64> = own.iter().map(|row| row.cpu_s).collect();
            seconds.sort_by(f64::total_cmp);
            Summary {
                arch: rows[index].arch.clone(),
                scheduler: rows[index].scheduler.clone(),
                mapped: own.iter().filter(|row| row.cycles.is_some()).count(),
                layers: own.len(),
                cycles_ratio: mean(&|rows| Some(rows[index].cycles? as f64 / rows[0].cycles? as f64)),
                energy_ratio: mean(&|rows| Some(rows[index].energy_pj? / rows[0].energy_pj?)),
                gap: mean(&|rows| Some(rows[index].cycles? as f64 / rows[index].lower_bound as f64)),
                evaluations: own.iter().map(|row| row.evaluations).sum(),
                proven: own
                    .iter()
                    .any(|row| row.proven.is_some())
                    .then(|| own.iter().filter(|row| row.proven == Some(true)).count()),
                cpu_s: seconds.iter().sum(),
                cpu_s_median: seconds.get(seconds.len() / 2).copied().unwrap_or(0.0),
                cpu_s_most: seconds.last().copied().unwrap_or(0.0),
            }
        })
        .collect()
}

impl Report {
    fn to_human(&self, schedulers: usize, summary: bool) -> String {
        let mut out = format!(
            "simulated cycles of {}; oracle {}, last word {}, objective {:?}, seed {}\n",
            self.networks.join(", "),
            self.oracle,
            self.judge,
            self.objective,
            self.seed
        );
        for arch in &self.archs {
            if summary {
                continue;
            }
            let rows: Vec<&Row> = self.rows.iter().filter(|row| row.arch == *arch).collect();
            let mut layers = table();
            let mut header = vec![format!("layers on {arch}"), "count".into(), "lower bound".into()];
            header.extend(rows[..schedulers].iter().map(|row| row.scheduler.clone()));
            layers.set_header(header);
            for rows in rows.chunks(schedulers) {
                let first = &rows[0];
                let mut cells = vec![
                    match self.networks.len() {
                        1 => first.layer.clone(),
                        _ => format!("{} {}", first.network, first.layer),
                    },
                    first.count.to_string(),
                    thousands(first.lower_bound),
                ];
                cells.extend(rows.iter().map(|row| row.cycles.map_or("–".into(), thousands)));
                layers.add_row(cells);
            }
            align(&mut layers);
            out += &render(&layers);
            out += "\n";
        }
        let mut means = table();
        means.set_header([
            "machine",
            "scheduler",
            "mapped",
            "cycles ×",
            "energy ×",
            "÷ lower bound",
            "evaluations",
            "proven",
            "CPU s",
            "median",
            "most",
        ]);
        let ratio = |ratio: Option<f64>| ratio.map_or("–".into(), |r| format!("{r:.3}"));
        for s in &self.summary {
            means.add_row([
                s.arch.clone(),
                s.scheduler.clone(),
                format!("{}/{}", s.mapped, s.layers),
                ratio(s.cycles_ratio),
                ratio(s.energy_ratio),
                ratio(s.gap),
                thousands(s.evaluations),
                s.proven.map_or("–".into(), |proven| proven.to_string()),
                format!("{:.2}", s.cpu_s),
                format!("{:.3}", s.cpu_s_median),
                format!("{:.3}", s.cpu_s_most),
            ]);
        }
        align(&mut means);
        means
            .column_iter_mut()
            .nth(1)
            .into_iter()
            .for_each(|column| column.set_cell_alignment(CellAlignment::Left));
        out += "geometric means over the layers that all map, relative to the first scheduler\n";
        out += &render(&means);
        for row in self.rows.iter().filter(|row| row.error.is_some()) {
            let error = row.error.as_deref().unwrap_or_default();
            out += &format!(
                "failed: {} {} {} {}: {error}\n",
                row.arch, row.network, row.layer, row.scheduler
            );
        }
        out
    }

    fn to_csv(&self) -> Result<String, Faults> {
        let fault = |error: String| Faults::one(error);
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in &self.rows {
            writer.serialize(row).map_err(|e| fault(e.to_string()))?;
        }
        let bytes = writer.into_inner().map_err(|e| fault(e.to_string()))?;
        String::from_utf8(bytes).map_err(|e| fault(e.to_string()))
    }
}

fn table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// Numbers to the right; names, in the first column, to the left.
fn align(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}
