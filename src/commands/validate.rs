//! `validate`: the simulator against what others measured.

mod published;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use cyclonest_sim::Options;
use cyclonest_validation::reference::timing::{self, Measured};
use cyclonest_validation::reference::{finn, maestro, samo, timeloop};

use crate::cli::Ending;
use crate::commands::native;
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
    Native(native::Args),
    /// Published measurements of chips and RTL.
    #[command(subcommand)]
    Published(published::Published),
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
    /// What Timeloop says of (machine, layer, mapping) triples, against the cost model `timeloop`. Prints what
    /// differs, field by field, and ends with `N passed, N failed`.
    Timeloop {
        /// One JSON record per line.
        #[arg(value_name = "FILE.jsonl", required = true)]
        files: Vec<PathBuf>,
    },
    /// What MAESTRO says of (machine, layer, dataflow) triples, against the cost model `maestro`. Prints what differs,
    /// field by field, and ends with `N passed, N failed`.
    Maestro {
        /// One JSON record per line.
        #[arg(value_name = "FILE.jsonl", required = true)]
        files: Vec<PathBuf>,
    },
    /// Node tables, optimiser runs and proven optima of SAMO, against the streaming backends and the exact optimiser.
    /// Prints what differs and ends with `N passed, N failed`.
    Samo {
        /// One JSON record per line.
        #[arg(value_name = "FILE.jsonl", required = true)]
        files: Vec<PathBuf>,
        /// Coefficients of fpgaConvNet's look-up tables and flip-flops (RON); without them they are fitted to the node
        /// records of the files.
        #[arg(long, value_name = "FILE")]
        coefficients: Option<PathBuf>,
    },
    /// Pipelines of FINN's RTL library, against the pipeline simulation: the cycle of every frame's last input and
    /// output. Prints what differs and ends with `N passed, N failed`.
    Finn {
        /// One JSON record per line.
        #[arg(value_name = "FILE.jsonl", required = true)]
        files: Vec<PathBuf>,
    },
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let reference = match &args.against {
        Against::Reference(reference) => reference,
        Against::Native(args) => return native::run(args),
        Against::Published(published) => return published::run(published),
    };
    let (text, failed) = match reference {
        Reference::Timing { files } => timing(files)?,
        Reference::Timeloop { files } => {
            let report = timeloop::validate(files).map_err(|error| Faults::one(error.to_string()))?;
            (report.render(), report.failed())
        }
        Reference::Maestro { files } => {
            let report = maestro::validate(files).map_err(|error| Faults::one(error.to_string()))?;
            (report.render(), report.failed())
        }
        Reference::Samo { files, coefficients } => {
            let coefficients = coefficients
                .as_deref()
                .map(super::stream::read_coefficients)
                .transpose()?;
            let mut text = Vec::new();
            let report = samo::run(files, coefficients, &mut text).map_err(|error| Faults::one(error.to_string()))?;
            (String::from_utf8_lossy(&text).into_owned(), report.failed)
        }
        Reference::Finn { files } => {
            let mut text = Vec::new();
            let report = finn::run(files, &mut text).map_err(|error| Faults::one(error.to_string()))?;
            (String::from_utf8_lossy(&text).into_owned(), report.failed)
        }
    };
    output::print(&text)?;
    Ok(match failed {
        0 => Ending::Complete,
        _ => Ending::Incomplete,
    })
}

/// Simulates every record; the text of the differences, and how many records differ.
fn timing(files: &[PathBuf]) -> Result<(String, usize), Faults> {
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
    Ok((String::from_utf8_lossy(&text).into_owned(), report.failed))
}
