//! `bench peers`: processor time per layer against other cycle-level simulators.

use clap::Args as ClapArgs;
use comfy_table::{CellAlignment, Table, presets};
use cyclonest_arch::Accelerator;
use cyclonest_scheduler::Scheduler;
use cyclonest_sim::{FastForward, Options, simulate};
use cyclonest_workloads::{Dim, DimMap, Pair, Problem};
use serde::Deserialize;

use crate::cli::Ending;
use crate::faults::Faults;
use crate::inputs;
use crate::output;
use crate::report::thousands;
use crate::search::{SearchArgs, cpu_seconds, geomean};

/// Compare the processor time per layer with that measured of SCALE-Sim and STONNE.
///
/// The same layers and matrix products on an array with as many rows and lanes, every stall and the network simulated.
/// The array is that of `src/commands/bench/array.ron`, not the peer's: cycles are for orientation and need not agree.
/// Times are of building the machine and simulating a schedule that is given, without the search for it; the median of
/// several runs.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Maps the layers (`cyclonest list schedulers`).
    #[arg(long, value_name = "NAME", default_value = "greedy")]
    scheduler: String,
    #[command(flatten)]
    search: SearchArgs,
    /// Simulate every event, even where the machine's state recurs.
    #[arg(long)]
    no_fast_forward: bool,
}

/// A line of `peers.csv`.
#[derive(Debug, Deserialize)]
struct Peer {
    tool: String,
    mode: String,
    layer: String,
    #[serde(rename = "N")]
    n: u64,
    #[serde(rename = "K")]
    k: u64,
    #[serde(rename = "C")]
    c: u64,
    #[serde(rename = "P")]
    p: u64,
    #[serde(rename = "Q")]
    q: u64,
    #[serde(rename = "R")]
    r: u64,
    #[serde(rename = "S")]
    s: u64,
    stride: u64,
    rows: u64,
    columns: u64,
    cycles: u64,
    cpu_s: f64,
}

impl Peer {
    fn problem(&self) -> Problem {
        let mut bounds = DimMap::ones();
        let of = [
            (Dim::N, self.n),
            (Dim::K, self.k),
            (Dim::C, self.c),
            (Dim::P, self.p),
            (Dim::Q, self.q),
            (Dim::R, self.r),
            (Dim::S, self.s),
        ];
        for (dim, bound) in of {
            bounds[dim] = bound;
        }
        Problem {
            stride: Pair(self.stride, self.stride),
            ..Problem::new(bounds)
        }
    }

    /// The array with as many rows and columns; MAERI's has multipliers only, in rows of 8.
    fn array(&self) -> Accelerator {
        let mut arch = Accelerator::from_ron(include_str!("array.ron")).expect("a sound machine");
        let (rows, columns) = if self.columns > 1 {
            (self.rows, self.columns)
        } else {
            (self.rows / 8, 8)
        };
        arch.levels[2].mesh = (1, rows);
        arch.compute.lanes = (columns, 1);
        arch
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let scheduler = inputs::scheduler(&args.scheduler)?;
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(include_bytes!("peers.csv").as_slice());
    let peers: Vec<Peer> = reader
        .deserialize()
        .collect::<Result<_, _>>()
        .expect("a table of peers");
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "tool",
        "mode",
        "layer",
        "array",
        "its cycles",
        "its CPU s",
        "cycles",
        "events",
        "CPU ms",
        "ratio",
    ]);
    for column in 4..10 {
        let column = table.column_mut(column).expect("ten columns");
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut ratios: Vec<(&str, f64)> = Vec::new();
    for peer in &peers {
        let (cycles, events, seconds) = measured(peer, scheduler.as_ref(), args)?;
        let ratio = peer.cpu_s / seconds;
        ratios.push((&peer.tool, ratio));
        table.add_row([
            peer.tool.clone(),
            peer.mode.clone(),
            peer.layer.clone(),
            format!("{}×{}", peer.rows, peer.columns),
            thousands(peer.cycles),
            format!("{:.3}", peer.cpu_s),
            thousands(cycles),
            thousands(events),
            format!("{:.3}", seconds * 1e3),
            format!("{ratio:.0}"),
        ]);
    }
    let mut text = format!("{}\n\n", table.trim_fmt());
    for tool in ["SCALE-Sim", "STONNE"] {
        let mut of_tool: Vec<f64> = ratios.iter().filter(|r| r.0 == tool).map(|r| r.1).collect();
        of_tool.sort_by(f64::total_cmp);
        let [least, .., most] = of_tool[..] else { continue };
        let mean = geomean(of_tool.iter().copied()).unwrap_or_default();
        let reached = of_tool.iter().filter(|&&r| r >= 1000.0).count();
        text += &format!(
            "{tool}: {least:.0} to {most:.0} times, geometric mean {mean:.0}; 1,000 times or more in {reached} of {}\n",
            of_tool.len()
        );
    }
    output::print(&text)?;
    Ok(Ending::Complete)
}

/// Cycles and events, and the median processor time of one simulation.
fn measured(peer: &Peer, scheduler: &dyn Scheduler, args: &Args) -> Result<(u64, u64, f64), Faults> {
    let (problem, arch) = (peer.problem(), peer.array());
    let fault = |error: String| Faults::one(format!("{} {}: {error}", peer.tool, peer.layer));
    let scheduled = scheduler
        .schedule(&args.search.request(&problem, &arch))
        .map_err(|error| fault(error.to_string()))?;
    let options = Options {
        fast_forward: if args.no_fast_forward {
            FastForward::Off
        } else {
            FastForward::On
        },
        ..Options::default()
    };
    let once = || simulate(&problem, &arch, &scheduled.mapping, options).map_err(|error| fault(error.to_string()));
    let outcome = once()?;
    // Enough runs in one measurement for a clock of 4 ms.
    let runs = (300_000 / outcome.events.max(1)).clamp(1, 200);
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = cpu_seconds();
        for _ in 0..runs {
            once()?;
        }
        times.push((cpu_seconds() - start) / runs as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok((outcome.cycles, outcome.events, times[2].max(1e-9)))
}
