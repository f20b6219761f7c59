//! The command line of Cyclonest.

mod assign;
mod cli;
mod commands;
mod diagram;
mod explore;
mod faults;
mod inputs;
mod output;
mod page;
mod parallel;
mod provenance;
mod report;
mod results;
mod search;
mod trace;

use clap::Parser as _;

fn main() -> std::process::ExitCode {
    cli::Cli::parse().run()
}
