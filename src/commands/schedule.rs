//! `schedule`: map the layers of a network and write the mappings.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use comfy_table::{CellAlignment, Table, presets};
use cyclonest_arch::{Accelerator, Mapping, Mappings};
use cyclonest_scheduler::cost::cosa::CosaModel;
use cyclonest_scheduler::cost::exact::lower_bound;
use cyclonest_scheduler::{Proof, Scheduled};
use cyclonest_workloads::DistinctLayer;
use serde::Serialize;

use crate::cli::Ending;
use crate::commands::simulate;
use crate::faults::Faults;
use crate::inputs::{self, InputShape};
use crate::output::{self, Destination};
use crate::parallel;
use crate::provenance::Provenance;
use crate::report::{render, thousands};
use crate::search::SearchArgs;

/// Map every distinct layer of a network and write the mappings for `simulate --mapping`.
///
/// The terms are log2, as in CoSA's figures: utilisation of the buffers (more is better), compute and traffic (less is
/// better), under whatever scheduler.
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
    /// A scheduler (`cyclonest list schedulers`), `hybrid:N`, or `external:CMD`.
    #[arg(long, value_name = "NAME")]
    scheduler: String,
    /// Weights of the program of `milp` (`cyclonest calibrate`).
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    #[command(flatten)]
    search: SearchArgs,
    /// Layers that are mapped at the same time [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// How the report on standard output is written.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Write the mappings to this RON file, which appears when it is complete.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table.
    Human,
    /// Every figure, the convergence trace and the mapping.
    Json,
    /// One row per distinct layer.
    Csv,
}

/// One layer.
#[derive(Debug, Serialize)]
struct Row {
    layer: String,
    count: u64,
    /// No mapping takes fewer cycles.
    lower_bound: u64,
    /// By the simulator, if it decided.
    cycles: Option<f64>,
    energy_pj: Option<f64>,
    /// By the oracle.
    estimated_cycles: Option<f64>,
    estimated_energy_pj: Option<f64>,
    utilisation_log2: Option<f64>,
    compute_log2: Option<f64>,
    traffic_log2: Option<f64>,
    tried: u64,
    valid: u64,
    evaluations: u64,
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<Proof>,
    convergence: Vec<(u64, f64)>,
    mapping: Option<Mapping>,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    command: &'static str,
    version: &'static str,
    provenance: Provenance,
    arch: String,
    network: String,
    scheduler: String,
    objective: cyclonest_scheduler::Objective,
    oracle: &'static str,
    /// Who decided between the best candidates.
    judge: &'static str,
    seed: u64,
    layers: Vec<Row>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let mut faults = None;
    let arch = Faults::collect(&mut faults, inputs::arch(&args.arch));
    let network = Faults::collect(&mut faults, inputs::network(&args.network, args.input_shape.as_ref()));
    let weights = arch.as_ref().zip(args.weights.as_deref());
    let weights = weights
        .map(|(arch, path)| Faults::collect(&mut faults, inputs::weights(path, arch, &[args.scheduler.as_str()])));
    let weights = weights.flatten();
    let scheduler = Faults::collect(&mut faults, inputs::scheduler_with(&args.scheduler, weights.as_ref()));
    let layers = network.as_ref().and_then(|described| {
        let all = described.network.distinct();
        Faults::collect(&mut faults, simulate::select(&args.layers, &described.network, &all))
    });
    if let Some(faults) = faults {
        return Err(faults);
    }
    let (Some(arch), Some(network), Some(scheduler), Some(layers)) = (arch, network, scheduler, layers) else {
        return Err(Faults::one("nothing to map"));
    };
    let destination = args
        .output
        .as_deref()
        .map(|path| Destination::prepare(Some(path)))
        .transpose()?;
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
    // One layer may use all threads, several share them.
    let each = if layers.len() == 1 { threads } else { NonZeroUsize::MIN };
    let results = parallel::map(
        &layers,
        threads,
        |layer| layer.problem.macs(),
        |layer| {
            let mut request = args.search.request(&layer.problem, &arch);
            request.threads = each;
            scheduler.schedule(&request)
        },
        |_| {},
    );
    let given = [args.arch.as_str(), &args.network]
        .into_iter()
        .chain(args.weights.iter().filter_map(|path| path.to_str()));
    let report = Report {
        schema: 1,
        command: "schedule",
        version: env!("CARGO_PKG_VERSION"),
        provenance: Provenance::of_this_run(given),
        arch: arch.name.clone(),
        network: network.network.name().to_string(),
        scheduler: scheduler.name().to_string(),
        objective: args.search.objective(),
        oracle: args.search.oracle(),
        judge: args.search.judge(),
        seed: args.search.seed,
        layers: layers
            .iter()
            .zip(results)
            .map(|(layer, result)| row(layer, &arch, &args.search, result.map_err(|error| error.to_string())))
            .collect(),
    };
    let text = match args.format {
        Format::Human => report.to_human(),
        Format::Json => serde_json::to_string_pretty(&report).map_err(|e| Faults::one(e.to_string()))? + "\n",
        Format::Csv => report.to_csv()?,
    };
    if let Some(destination) = destination {
        destination.write(&report.mappings().to_ron())?;
    }
    output::print(&text)?;
    let complete = report.layers.iter().all(|row| row.error.is_none());
    Ok(if complete { Ending::Complete } else { Ending::Incomplete })
}

fn row(layer: &DistinctLayer, arch: &Accelerator, search: &SearchArgs, result: Result<Scheduled, String>) -> Row {
    let mut row = Row {
        layer: layer.name.clone(),
        count: layer.count,
        lower_bound: lower_bound(&layer.problem, arch),
        cycles: None,
        energy_pj: None,
        estimated_cycles: None,
        estimated_energy_pj: None,
        utilisation_log2: None,
        compute_log2: None,
        traffic_log2: None,
        tried: 0,
        valid: 0,
        evaluations: 0,
        error: None,
        proof: None,
        convergence: Vec::new(),
        mapping: None,
    };
    match result {
        Ok(scheduled) => {
            let terms = CosaModel::default().objective(&layer.problem, arch, &scheduled.mapping);
            row.utilisation_log2 = Some(terms.utilisation);
            row.compute_log2 = Some(terms.compute);
            row.traffic_log2 = Some(terms.traffic);
            let judged = scheduled.refereed.clone().or_else(|| {
                let referee = search.request(&layer.problem, arch).referee?;
                referee.evaluate(&layer.problem, arch, &scheduled.mapping).ok()
            });
            row.cycles = judged.as_ref().map(|e| e.cycles);
            row.energy_pj = judged.as_ref().map(|e| e.energy_pj);
            row.estimated_cycles = scheduled.estimate.as_ref().map(|e| e.cycles);
            row.estimated_energy_pj = scheduled.estimate.as_ref().map(|e| e.energy_pj);
            (row.tried, row.valid, row.evaluations) = (scheduled.tried, scheduled.valid, scheduled.evaluations);
            row.proof = scheduled.proof;
            row.convergence = scheduled.convergence;
            row.mapping = Some(scheduled.mapping);
        }
        Err(error) => row.error = Some(error),
    }
    row
}

impl Report {
    fn mappings(&self) -> Mappings {
        let mapped = self.layers.iter();
        Mappings {
            schema: 1,
            arch: self.arch.clone(),
            network: self.network.clone(),
            scheduler: self.scheduler.clone(),
            seed: self.seed,
            layers: mapped
                .filter_map(|row| Some((row.layer.clone(), row.mapping.clone()?)))
                .collect(),
        }
    }

    fn to_human(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header([
            "layer",
            "count",
            "lower bound",
            "cycles",
            "÷ bound",
            "energy [µJ]",
            "utilisation",
            "compute",
            "traffic",
            "tried",
            "valid",
            "evaluations",
            "own objective",
        ]);
        let dash = || "–".to_string();
        let decimal = |value: Option<f64>| value.map_or_else(dash, |v| format!("{v:.1}"));
        for row in &self.layers {
            let cycles = row.cycles.or(row.estimated_cycles);
            table.add_row([
                row.layer.clone(),
                row.count.to_string(),
                thousands(row.lower_bound),
                cycles.map_or_else(dash, |c| thousands(c.round() as u64)),
                cycles.map_or_else(dash, |c| format!("{:.2}", c / row.lower_bound as f64)),
                decimal(row.energy_pj.or(row.estimated_energy_pj).map(|e| e * 1e-6)),
                decimal(row.utilisation_log2),
                decimal(row.compute_log2),
                decimal(row.traffic_log2),
                thousands(row.tried),
                thousands(row.valid),
                thousands(row.evaluations),
                row.proof.map_or_else(dash, |proof| match proof.proven {
                    true => "proven".to_string(),
                    false => format!("gap {:.2}", proof.gap()),
                }),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let mut out = format!(
            "{} on {}, mapped by {}; cycles and energy by {}\n{}",
            self.network,
            self.arch,
            self.scheduler,
            self.judge,
            render(&table)
        );
        for row in &self.layers {
            if let Some(error) = &row.error {
                out += &format!("failed: {}: {error}\n", row.layer);
            }
        }
        out
    }

    fn to_csv(&self) -> Result<String, Faults> {
        let fault = |error: csv::Error| Faults::one(error.to_string());
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer
            .write_record([
                "layer",
                "count",
                "lower_bound",
                "cycles",
                "energy_pJ",
                "estimated_cycles",
                "estimated_energy_pJ",
                "utilisation_log2",
                "compute_log2",
                "traffic_log2",
                "tried",
                "valid",
                "evaluations",
                "proven",
                "error",
            ])
            .map_err(fault)?;
        let text = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
        for row in &self.layers {
            writer
                .write_record([
                    row.layer.clone(),
                    row.count.to_string(),
                    row.lower_bound.to_string(),
                    text(row.cycles),
                    text(row.energy_pj),
                    text(row.estimated_cycles),
                    text(row.estimated_energy_pj),
                    text(row.utilisation_log2),
                    text(row.compute_log2),
                    text(row.traffic_log2),
                    row.tried.to_string(),
                    row.valid.to_string(),
                    row.evaluations.to_string(),
                    row.proof.map_or_else(String::new, |proof| proof.proven.to_string()),
                    row.error.clone().unwrap_or_default(),
                ])
                .map_err(fault)?;
        }
        let bytes = writer.into_inner().map_err(|e| Faults::one(e.to_string()))?;
        String::from_utf8(bytes).map_err(|e| Faults::one(e.to_string()))
    }
}
