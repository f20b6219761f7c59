//! `validate`: the simulator against what others measured.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use cyclonest_sim::Options;
use cyclonest_validation::reference::timing::{self, Measured};

use crate::cli::Ending;
use crate::faults::Faults;
use crate::output;

/// Compare with reference data.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    against: Against,
}

#[derive(Debug, Subcommand)]
enum Against {
    /// Records of other simulators and models.
    #[command(subcommand)]
    Reference(Reference),
}

#[derive(Debug, Subcommand)]
enum Reference {
    /// Cycles, counts and stalls of (machine, layer, mapping) triples from a plain simulator of the same timing
    /// rules. Prints what differs, record by record, and ends with `N passed, N failed`.
    Timing {
        /// One JSON record per line.
        #[arg(value_name = "FILE.jsonl", required = true)]
        files: Vec<PathBuf>,
    },
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let Against::Reference(Reference::Timing { files }) = &args.against;
    let mut text = Vec::new();
    let report = timing::run(
        files,
        &|problem, arch, mapping| {
            cyclonest_sim::simulate(problem, arch, mapping, Options::default())
                .map(|outcome| Measured::from(&outcome))
                .map_err(|error| error.to_string())
        },
        &mut text,
    )
    .map_err(|error| Faults::one(error.to_string()))?;
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(match report.failed {
        0 => Ending::Complete,
        _ => Ending::Incomplete,
    })
}
