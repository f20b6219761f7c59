//! `report`: results as one page.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::cli::Ending;
use crate::commands::plot::rows::machine;
use crate::faults::Faults;
use crate::output::Destination;
use crate::page::{Page, Subject};
use crate::{inputs, results};

/// Write results of `simulate` as one page that needs no network: summary, figures, every layer with its loop nest.
///
/// Of several results, the first is the baseline of the speed-ups.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Results of `simulate --format json`.
    #[arg(value_name = "RESULT", required = true)]
    results: Vec<PathBuf>,
    /// The page, which appears when it is complete.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The accelerator of the results, where it is not a bundled one.
    #[arg(long, value_name = "FILE")]
    arch: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let mut faults = None;
    let mut subjects = Vec::new();
    for path in &args.results {
        let read = inputs::read_bytes(path).and_then(|bytes| Ok((results::simulated(path)?, bytes)));
        let Some((result, bytes)) = Faults::collect(&mut faults, read) else {
            continue;
        };
        if let Some(arch) = Faults::collect(&mut faults, machine(args.arch.as_deref(), &result)) {
            subjects.push(Subject {
                file: path.display().to_string(),
                bytes,
                result,
                arch,
            });
        }
    }
    if let Some(faults) = faults {
        return Err(faults);
    }
    let destination = Destination::prepare(Some(&args.output))?;
    let page = Page::new(&subjects, &args.output)?;
    destination.write(&page.html)?;
    // What a figure could not show is said on the page and here.
    page.missing
        .iter()
        .for_each(|missing| eprintln!("not drawn: {missing}"));
    Ok(Ending::Complete)
}
