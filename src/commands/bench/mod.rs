//! `bench`: comparisons.

mod dataflows;
mod fast_forward;
mod observe;
mod peers;
mod schedulers;

use clap::{Args as ClapArgs, Subcommand};

use crate::cli::Ending;
use crate::faults::Faults;

/// Compare schedulers, dataflows, loop orders, fast-forward with full simulation, and the simulator with others.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    FastForward(fast_forward::Args),
    Peers(peers::Args),
    Dataflows(dataflows::Args),
    Schedulers(schedulers::Args),
    Permutations(observe::PermutationArgs),
    Spatial(observe::SpatialArgs),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    match &args.what {
        What::FastForward(args) => fast_forward::run(args),
        What::Peers(args) => peers::run(args),
        What::Dataflows(args) => dataflows::run(args),
        What::Schedulers(args) => schedulers::run(args),
        What::Permutations(args) => observe::permutations(args),
        What::Spatial(args) => observe::spatial(args),
    }
}
