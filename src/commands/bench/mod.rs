//! `bench`: comparisons.

mod dataflows;
mod schedulers;

use clap::{Args as ClapArgs, Subcommand};

use crate::cli::Ending;
use crate::faults::Faults;

/// Compare schedulers or dataflows.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Dataflows(dataflows::Args),
    Schedulers(schedulers::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    match &args.what {
        What::Dataflows(args) => dataflows::run(args),
        What::Schedulers(args) => schedulers::run(args),
    }
}
