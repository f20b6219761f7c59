//! `explore`: sweep hardware designs, keep the best, simulate them.

use std::io::IsTerminal as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use cyclonest_scheduler::explore::Tally;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::Ending;
use crate::explore::{Progress, Results, Session, load};
use crate::faults::Faults;
use crate::output;

/// Explore hardware designs: sweep PEs, buffers, network and dataflow within area and power, and simulate the best.
///
/// The folder gets a copy of the plan, a log, and at the end results.csv and summary.json (docs/explore.md). The log
/// survives a killed process: --resume goes on where it ended. The results are the same for any number of threads and
/// interruptions.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// A bundled plan (`cyclonest list plans`) or a RON file.
    #[arg(value_name = "NAME|FILE", required_unless_present = "resume")]
    plan: Option<String>,
    /// Begin in this folder.
    #[arg(short, long, value_name = "DIR", required_unless_present = "resume")]
    output: Option<PathBuf>,
    /// Go on in this folder; if a plan is given too, it must be that of the folder.
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    resume: Option<PathBuf>,
    /// Designs that are evaluated at the same time [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Evaluate every design, also where better ones are known or the budgets are exceeded; the results are the same.
    #[arg(long)]
    no_prune: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say how far an exploration is.
    Status {
        /// Its folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    if let Some(Command::Status { folder }) = &args.command {
        let session = Session::resume(folder, None, true, false)?;
        output::print(&session.status())?;
        return Ok(Ending::Complete);
    }
    let given = args.plan.as_deref().map(load).transpose()?;
    let mut session = match (&args.resume, &args.output, given) {
        (Some(folder), _, given) => Session::resume(folder, given, !args.no_prune, true)?,
        (None, Some(folder), Some((space, text))) => Session::create(folder, space, &text, !args.no_prune)?,
        // clap has asked for both.
        _ => return Err(Faults::one("a plan and a folder are expected")),
    };
    refuse_file_size_signal()?;
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
    let bar = Bar::new(&session);
    let worked = session.work(threads, &bar);
    bar.0.finish_and_clear();
    let finished = worked
        .map_err(|stopped| stopped.0)
        .and_then(|()| Results::new(&session).map_err(|f| f.to_string()))
        .and_then(|results| match results.write(session.folder()) {
            Ok(()) => Ok(results),
            Err(faults) => Err(faults.to_string().trim_start_matches("error: ").trim_end().to_owned()),
        });
    match finished {
        Ok(results) => {
            output::print(&results.to_human())?;
            Ok(match results.is_complete() {
                true => Ending::Complete,
                false => Ending::Incomplete,
            })
        }
        Err(why) => {
            let (done, all) = session.chunks();
            eprintln!(
                "error: {why}\n  {done} of {all} chunks are kept\n  help: when there is room again: explore --resume {}",
                session.folder().display()
            );
            Ok(Ending::Incomplete)
        }
    }
}

/// Makes a file that would grow beyond the limit of the process (`ulimit -f`) an error instead of its end.
fn refuse_file_size_signal() -> Result<(), Faults> {
    #[cfg(unix)]
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default())
        .map_err(|error| Faults::one(format!("signals cannot be handled: {error}")))?;
    Ok(())
}

/// A bar on standard error, if that is a terminal.
struct Bar(ProgressBar);

impl Bar {
    fn new(session: &Session) -> Self {
        if !std::io::stderr().is_terminal() {
            return Bar(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(session.space.designs());
        let template = "{bar:32} {human_pos}/{human_len} designs  {per_sec}  {eta} left  {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_position(session.explored.tally.designs);
        // What an earlier run did counts in the position, not in the rate.
        bar.reset_eta();
        Bar(bar)
    }
}

impl Progress for Bar {
    fn swept(&self, designs: u64, tally: &Tally) {
        self.0.inc(designs);
        self.0.set_message(format!("{} evaluated", tally.evaluated));
    }

    fn simulated(&self, done: u64, of: u64) {
        self.0.set_message(format!("{done} of {of} simulated"));
    }
}
