//! `calibrate`: weights of the program of `milp` for a machine, from micro-benchmarks in the simulator.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::Args as ClapArgs;
use comfy_table::{CellAlignment, Table, presets};
use cyclonest_arch::Accelerator;
use cyclonest_scheduler::Weights;
use cyclonest_validation::calibrate::{self, Calibration, Kind};

use crate::cli::Ending;
use crate::faults::Faults;
use crate::output::{self, Destination};
use crate::report::render;
use crate::{inputs, parallel};

/// Find weights for the program of `milp` on a machine, from micro-benchmarks in the simulator.
///
/// Small layers of three kinds (compute, memory, communication) are mapped in many ways, good and bad, and simulated.
/// The weights are a least-squares fit of log2 cycles to half of them; the table says how well the objective ranks the
/// other half (Spearman; 1 is perfect), beside the default weights and CoSA's constants. The file is for `--weights`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A bundled accelerator (`cyclonest list archs`) or a RON file.
    #[arg(long, value_name = "NAME|FILE")]
    arch: String,
    /// Mappings of each of the six layers.
    #[arg(long, value_name = "N", default_value = "48")]
    mappings: NonZeroU64,
    /// Seed of the mappings.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Simulations that run at the same time [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Write the weights to this RON file, which appears when it is complete.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let arch = inputs::arch(&args.arch)?;
    let destination = Destination::prepare(Some(&args.output))?;
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
    let all = calibrate::micro_benchmarks(args.mappings.get());
    let samples = parallel::map(
        &all,
        threads,
        |benchmark| benchmark.problem.macs(),
        |benchmark| calibrate::run(&arch, benchmark, args.seed),
        |_| {},
    );
    let calibration = calibrate::fit(&arch, samples.into_iter().flatten().collect()).map_err(Faults::one)?;
    destination.write(&format!(
        "// Weights of the program of `milp` on {}: {} micro-benchmarks, seed {}.\n{}",
        arch.name,
        calibration.samples.len(),
        args.seed,
        calibration.weights.to_ron()
    ))?;
    output::print(&human(&arch, &calibration))?;
    Ok(Ending::Complete)
}

fn human(arch: &Accelerator, calibration: &Calibration) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "held-out mappings",
        "number",
        "calibrated",
        "default",
        "CoSA's constants",
    ]);
    let (default, cosa) = (Weights::default(), Weights::cosa());
    for kind in Kind::ALL.into_iter().map(Some).chain([None]) {
        let held = calibration.samples.iter().filter(|s| s.held_out);
        let number = held.filter(|s| kind.is_none_or(|kind| s.kind == kind)).count();
        let rank = |weights: &Weights| format!("{:.3}", calibration.rank(arch, weights, kind));
        table.add_row([
            kind.map_or("all", Kind::name).to_string(),
            number.to_string(),
            rank(&calibration.weights),
            rank(&default),
            rank(&cosa),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{}: rank correlation of the objective with simulated cycles\n{}",
        arch.name,
        render(&table)
    )
}
