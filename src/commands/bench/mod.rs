//! `bench`: comparisons.

mod schedulers;

use clap::{Args as ClapArgs, Subcommand};

use crate::cli::Ending;
use crate::faults::Faults;

/// Compare schedulers on a machine and a network.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Schedulers(schedulers::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    match &args.what {
        What::Schedulers(args) => schedulers::run(args),
    }
}
