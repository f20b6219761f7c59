//! `bench`: comparisons.

mod observe;
mod schedulers;

use clap::{Args as ClapArgs, Subcommand};

use crate::cli::Ending;
use crate::faults::Faults;

/// Compare schedulers, and what orders and spatial loops change.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Schedulers(schedulers::Args),
    Permutations(observe::PermutationArgs),
    Spatial(observe::SpatialArgs),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    match &args.what {
        What::Schedulers(args) => schedulers::run(args),
        What::Permutations(args) => observe::permutations(args),
        What::Spatial(args) => observe::spatial(args),
    }
}
