//! The command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::commands::{
    bench, calibrate, check, compare, explain, explore, host, list, plot, report, reproduce, schedule, show, simulate,
    stream, validate,
};
use crate::faults::Faults;

/// Describe an accelerator, map a network onto it, simulate the schedule cycle by cycle with real data.
#[derive(Debug, Parser)]
#[command(name = "cyclonest", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 everything has a result; 1 a layer, file or record failed and the rest was done; \
2 the input is wrong and nothing was done.";

#[derive(Debug, Subcommand)]
enum Command {
    Simulate(simulate::Args),
    Plot(Box<plot::Args>),
    Report(report::Args),
    Schedule(schedule::Args),
    Bench(bench::Args),
    Calibrate(calibrate::Args),
    Check(check::Args),
    Compare(compare::Args),
    Host(host::Args),
    Explain(explain::Args),
    List(list::Args),
    Show(show::Args),
    Stream(stream::Args),
    Explore(explore::Args),
    Validate(validate::Args),
    Reproduce(reproduce::Args),
}

/// How a command that could do its work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything has a result.
    Complete,
    /// Something failed, the rest was done.
    Incomplete,
}

impl Cli {
    /// Runs the command and prints what is wrong with the input.
    pub(crate) fn run(&self) -> ExitCode {
        match self.command.run() {
            Ok(Ending::Complete) => ExitCode::SUCCESS,
            Ok(Ending::Incomplete) => ExitCode::from(1),
            Err(faults) => {
                eprint!("{faults}");
                ExitCode::from(2)
            }
        }
    }
}

impl Command {
    fn run(&self) -> Result<Ending, Faults> {
        match self {
            Command::Simulate(args) => simulate::run(args),
            Command::Plot(args) => plot::run(args),
            Command::Report(args) => report::run(args),
            Command::Schedule(args) => schedule::run(args),
            Command::Bench(args) => bench::run(args),
            Command::Calibrate(args) => calibrate::run(args),
            Command::Check(args) => check::run(args),
            Command::Compare(args) => compare::run(args),
            Command::Host(args) => host::run(args),
            Command::Explain(args) => explain::run(args),
            Command::List(args) => list::run(args),
            Command::Show(args) => show::run(args),
            Command::Stream(args) => stream::run(args),
            Command::Explore(args) => explore::run(args),
            Command::Validate(args) => validate::run(args),
            Command::Reproduce(args) => reproduce::run(args),
        }
    }
}
