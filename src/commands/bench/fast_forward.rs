//! `bench fast-forward`: every layer with fast-forward and without.

use clap::Args as ClapArgs;
use comfy_table::{CellAlignment, Table, presets};
use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_sim::{FastForward, Options, Outcome, SimError, simulate};
use cyclonest_workloads::DistinctLayer;

use crate::cli::Ending;
use crate::commands::simulate;
use crate::faults::Faults;
use crate::inputs;
use crate::output;
use crate::report::thousands;
use crate::search::{SearchArgs, cpu_seconds};

/// Simulate every distinct layer twice, with fast-forward and without, and compare the outcomes.
///
/// Two outcomes are equal if every field is, apart from what they say of skipping. CPU times are of one thread and of
/// the simulation alone; they are the only figures that differ from run to run, and coarse for small layers. The last
/// line is `N equal, N different`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Bundled accelerators (`cyclonest list archs`) or RON files, separated by commas.
    #[arg(
        long,
        value_name = "NAME|FILE",
        value_delimiter = ',',
        default_value = "simba,eyeriss,nvdla_like,simba_large"
    )]
    archs: Vec<String>,
    /// Bundled networks (`cyclonest list networks`), RON or ONNX files, separated by commas.
    #[arg(
        long,
        value_name = "NAME|FILE",
        value_delimiter = ',',
        default_value = "resnet50,mobilenet_v2,vgg16"
    )]
    networks: Vec<String>,
    /// Only the shape of this layer; may be given several times.
    #[arg(long = "layer", value_name = "NAME")]
    layers: Vec<String>,
    /// Maps the layers (`cyclonest list schedulers`).
    #[arg(long, value_name = "NAME", default_value = "greedy")]
    scheduler: String,
    #[command(flatten)]
    search: SearchArgs,
    /// Images per batch.
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: u64,
}

/// One layer on one machine, both ways.
struct Row {
    machine: String,
    network: String,
    layer: String,
    result: Result<Pair, String>,
}

struct Pair {
    full: Outcome,
    fast: Outcome,
    full_s: f64,
    fast_s: f64,
}

impl Pair {
    fn are_equal(&self) -> bool {
        let plain = Outcome {
            skipped_cycles: 0,
            skipped_events: 0,
            ..self.fast.clone()
        };
        plain == self.full
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let mut faults = None;
    let archs: Vec<Option<Accelerator>> = args
        .archs
        .iter()
        .map(|name| Faults::collect(&mut faults, inputs::arch(name)))
        .collect();
    let scheduler = Faults::collect(&mut faults, inputs::scheduler(&args.scheduler));
    let mut layers: Vec<(String, DistinctLayer)> = Vec::new();
    for name in &args.networks {
        if let Some(described) = Faults::collect(&mut faults, inputs::network(name, None)) {
            let network = described.network;
            let all = network.distinct();
            if let Some(selected) = Faults::collect(&mut faults, simulate::select(&args.layers, &network, &all)) {
                layers.extend(selected.into_iter().map(|layer| (network.name().to_string(), layer)));
            }
        }
    }
    if let Some(faults) = faults {
        return Err(faults);
    }
    let scheduler = scheduler.expect("no faults");
    let mut rows = Vec::new();
    for arch in archs.into_iter().flatten() {
        for (network, layer) in &layers {
            let mut problem = layer.problem.clone();
            problem.bounds[cyclonest_workloads::Dim::N] *= args.batch.max(1);
            let result = scheduler
                .schedule(&args.search.request(&problem, &arch))
                .map_err(|error| error.to_string())
                .and_then(|scheduled| both_ways(&problem, &arch, &scheduled.mapping));
            rows.push(Row {
                machine: arch.name.clone(),
                network: network.clone(),
                layer: layer.name.clone(),
                result,
            });
        }
    }
    let different = rows
        .iter()
        .filter(|row| !row.result.as_ref().is_ok_and(Pair::are_equal))
        .count();
    output::print(&render(&rows))?;
    Ok(if different > 0 {
        Ending::Incomplete
    } else {
        Ending::Complete
    })
}

fn both_ways(problem: &cyclonest_workloads::Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Pair, String> {
    let timed = |fast_forward| -> Result<(Outcome, f64), SimError> {
        let options = Options {
            fast_forward,
            ..Options::default()
        };
        let start = cpu_seconds();
        let outcome = simulate(problem, arch, mapping, options)?;
        Ok((outcome, cpu_seconds() - start))
    };
    let (fast, fast_s) = timed(FastForward::On).map_err(|error| error.to_string())?;
    let (full, full_s) = timed(FastForward::Off).map_err(|error| error.to_string())?;
    Ok(Pair {
        full,
        fast,
        full_s,
        fast_s,
    })
}

fn render(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "machine",
        "network",
        "layer",
        "cycles",
        "events",
        "simulated",
        "skipped",
        "full ms",
        "fast ms",
        "full/fast",
        "",
    ]);
    for column in 3..10 {
        let column = table.column_mut(column).expect("eleven columns");
        column.set_cell_alignment(CellAlignment::Right);
    }
    let (mut equal, mut different) = (0, 0);
    let mut lines = Vec::new();
    let mut sums: Vec<(&str, &str, f64, f64)> = Vec::new();
    for row in rows {
        let mut cells = vec![row.machine.clone(), row.network.clone(), row.layer.clone()];
        match &row.result {
            Ok(pair) => {
                let verdict = if pair.are_equal() { "equal" } else { "DIFFERENT" };
                *(if pair.are_equal() { &mut equal } else { &mut different }) += 1;
                let Outcome {
                    cycles,
                    events,
                    skipped_events,
                    ..
                } = pair.fast;
                cells.extend([cycles, events, events - skipped_events, skipped_events].map(thousands));
                cells.push(format!("{:.1}", pair.full_s * 1e3));
                cells.push(format!("{:.1}", pair.fast_s * 1e3));
                // Below a step of the clock there is no ratio.
                cells.push(match pair.fast_s {
                    0.0 => "–".into(),
                    fast_s => format!("{:.1}", pair.full_s / fast_s),
                });
                cells.push(verdict.into());
                match sums.last_mut().filter(|s| (s.0, s.1) == (&row.machine, &row.network)) {
                    Some(sum) => {
                        sum.2 += pair.full_s;
                        sum.3 += pair.fast_s;
                    }
                    None => sums.push((&row.machine, &row.network, pair.full_s, pair.fast_s)),
                }
            }
            Err(error) => {
                different += 1;
                lines.push(format!("{} {} {}: {error}", row.machine, row.network, row.layer));
            }
        }
        table.add_row(cells);
    }
    let mut text = format!("{}\n", table.trim_fmt());
    for line in lines {
        text += &format!("{line}\n");
    }
    text += "\n";
    for (machine, network, full, fast) in sums {
        text += &format!("{machine} {network}: {full:.2} s without, {fast:.2} s with fast-forward\n");
    }
    text + &format!("{equal} equal, {different} different\n")
}
