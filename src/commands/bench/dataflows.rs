//! `bench dataflows`: the five dataflow styles on the machine that MAESTRO imagines.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use comfy_table::{CellAlignment, Table, presets};
use cyclonest_arch::directives::Style;
use cyclonest_validation::dataflows::{self, Adaptive, Bare, Machine, Row, Switches, Winners};
use cyclonest_workloads::{DistinctLayer, Scale};
use serde::Serialize;

use crate::cli::Ending;
use crate::commands::simulate;
use crate::faults::Faults;
use crate::inputs;
use crate::output::Destination;
use crate::parallel;
use crate::provenance::Provenance;
use crate::report::{render, thousands};

/// Run the five dataflow styles of MAESTRO (C-P, X-P, YX-P, YR-P, KC-P) on every layer, simulated.
///
/// The machine is the one that MAESTRO imagines: an L2 that holds the layer, PEs with an L1 as large as it has to be, a
/// network with multicast and reduction. Printed are the cycles of every layer and style; which style wins on which kind
/// of layer; what a choice per layer saves against the best fixed style; and, with --switches, what a network without
/// multicast or reduction costs in energy. Each by the simulation and by the models `exact` and `maestro`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Bundled networks (`cyclonest list networks`), RON or ONNX files, separated by commas.
    #[arg(long, value_name = "NAME|FILE", value_delimiter = ',', required = true)]
    network: Vec<String>,
    /// Only the shape of this layer; may be given several times.
    #[arg(long = "layer", value_name = "NAME")]
    layers: Vec<String>,
    /// Processing elements.
    #[arg(long, value_name = "N", default_value = "256")]
    pes: NonZeroU64,
    /// Elements per cycle of the network between L2 and the PEs.
    #[arg(long, value_name = "N", default_value = "32")]
    bandwidth: NonZeroU64,
    /// Cycles of that network until the first element arrives.
    #[arg(long, value_name = "N", default_value = "1")]
    latency: NonZeroU64,
    /// Divide the channels of every layer but the network's inputs, rounding up.
    #[arg(long, value_name = "N", default_value = "1")]
    channels_divide: NonZeroU64,
    /// Ask what the energy is without multicast, without reduction and without both, too.
    #[arg(long)]
    switches: bool,
    /// With --switches, steps of all PEs together up to which a layer is simulated without hardware; what it costs on the
    /// others, `exact` alone says.
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    switched_steps: u64,
    /// Simulations that run at the same time [default: all cores]
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
    /// Every figure.
    Json,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    command: &'static str,
    version: &'static str,
    provenance: Provenance,
    machine: Machine,
    rows: Vec<Row>,
    winners: Vec<Winners>,
    adaptive: Vec<Adaptive>,
    bare: Vec<Bare>,
    failed: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let mut faults = None;
    let mut layers: Vec<(String, DistinctLayer)> = Vec::new();
    for name in &args.network {
        let Some(described) = Faults::collect(&mut faults, inputs::network(name, None)) else {
            continue;
        };
        let scale = Scale {
            divide_channels: args.channels_divide.get(),
            ..Scale::default()
        };
        let scaled = described.network.scaled(scale).map_err(|errors| {
            let texts = errors.into_iter().map(|error| format!("{name}: {error}"));
            texts.collect::<Faults>()
        });
        let Some(network) = Faults::collect(&mut faults, scaled) else {
            continue;
        };
        let all = network.distinct();
        if let Some(selected) = Faults::collect(&mut faults, simulate::select(&args.layers, &network, &all)) {
            layers.extend(selected.into_iter().map(|layer| (network.name().to_string(), layer)));
        }
    }
    if let Some(faults) = faults {
        return Err(faults);
    }
    let destination = Destination::prepare(args.output.as_deref())?;
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
    let machine = Machine {
        pes: args.pes.get(),
        bandwidth: args.bandwidth.get(),
        latency: args.latency.get(),
    };
    let switches = args.switches.then_some(Switches {
        most_steps: args.switched_steps,
    });
    let jobs: Vec<(&str, &DistinctLayer, Style)> = layers
        .iter()
        .flat_map(|(network, layer)| Style::ALL.map(|style| (network.as_str(), layer, style)))
        .collect();
    let results = parallel::map(
        &jobs,
        threads,
        |job| job.1.problem.macs(),
        |(network, layer, style)| {
            let of = (*network, layer.name.as_str(), layer.count);
            dataflows::run(of, &layer.problem, *style, machine, switches)
        },
        |_| {},
    );
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(row) => rows.push(row),
            Err(error) => failed.push(error),
        }
    }
    let report = Report {
        schema: 1,
        command: "bench dataflows",
        version: env!("CARGO_PKG_VERSION"),
        provenance: Provenance::of_this_run(args.network.iter().map(String::as_str)),
        machine,
        winners: dataflows::winners(&rows),
        adaptive: dataflows::adaptive(&rows),
        bare: dataflows::bare(&rows),
        rows,
        failed,
    };
    destination.write(&match args.format {
        Format::Human => report.to_human(),
        Format::Json => serde_json::to_string_pretty(&report).map_err(|e| Faults::one(e.to_string()))? + "\n",
    })?;
    Ok(match report.failed.is_empty() {
        true => Ending::Complete,
        false => Ending::Incomplete,
    })
}

impl Report {
    fn to_human(&self) -> String {
        let styles: Vec<&str> = Style::ALL.iter().map(|style| style.name()).collect();
        let mut out = format!(
            "dataflow styles on {} PEs, {} elements per cycle, latency {}\n\nsimulated cycles\n",
            self.machine.pes, self.machine.bandwidth, self.machine.latency
        );
        let mut header = vec!["network", "layer", "kind"];
        header.extend(&styles);
        let mut cycles = table(&header, 3);
        let mut places: Vec<(&str, &str)> = Vec::new();
        for row in &self.rows {
            let place = (row.network.as_str(), row.layer.as_str());
            if !places.contains(&place) {
                places.push(place);
            }
        }
        for (network, layer) in places {
            let own: Vec<&Row> = self
                .rows
                .iter()
                .filter(|r| r.network == network && r.layer == layer)
                .collect();
            let mut cells = vec![network.to_owned(), layer.to_owned(), own[0].kind.name().to_owned()];
            cells.extend(Style::ALL.map(|style| {
                let row = own.iter().find(|row| row.style == style);
                row.map_or("–".into(), |row| thousands(row.simulated.cycles as u64))
            }));
            cycles.add_row(cells);
        }
        out += &render(&cycles);
        out += "\nwins in cycles / in energy\n";
        let mut header = vec!["layers", "of", "by"];
        header.extend(&styles);
        let mut wins = table(&header, 3);
        for w in &self.winners {
            let mut cells = vec![
                w.kind.name().to_owned(),
                w.layers.to_string(),
                w.judge.name().to_owned(),
            ];
            cells.extend(w.wins.iter().map(|(_, cycles, energy)| format!("{cycles} / {energy}")));
            wins.add_row(cells);
        }
        out += &render(&wins);
        out += "\na style per layer against the best fixed style\n";
        let mut adaptive = table(
            &["network", "by", "fastest", "cycles saved", "thriftiest", "energy saved"],
            2,
        );
        for a in &self.adaptive {
            adaptive.add_row([
                a.network.clone(),
                a.judge.name().to_owned(),
                a.cycles.0.name().to_owned(),
                percent(a.cycles.1),
                a.energy.0.name().to_owned(),
                percent(a.energy.1),
            ]);
        }
        out += &render(&adaptive);
        if !self.bare.is_empty() {
            out += "\nmore energy without hardware in the network\n";
            let mut bare = table(
                &[
                    "style",
                    "without",
                    "layers",
                    "exact",
                    "simulated layers",
                    "exact",
                    "simulation",
                ],
                2,
            );
            for b in &self.bare {
                let measured = |of: fn((f64, f64)) -> f64| b.measured.map_or("–".into(), |m| percent(of(m)));
                bare.add_row([
                    b.style.name().to_owned(),
                    b.without.name().to_owned(),
                    b.layers.0.to_string(),
                    percent(b.exact),
                    b.layers.1.to_string(),
                    measured(|m| m.0),
                    measured(|m| m.1),
                ]);
            }
            out += &render(&bare);
        }
        for failed in &self.failed {
            out += &format!("failed: {failed}\n");
        }
        out
    }
}

fn table(header: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    for column in table.column_iter_mut().skip(left) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn percent(value: f64) -> String {
    format!("{:.1} %", 100.0 * value)
}
