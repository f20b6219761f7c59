//! `host`: this computer as an accelerator.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use cyclonest_validation::host::{Host, Memory};

use crate::cli::Ending;
use crate::faults::Faults;
use crate::output::Destination;

/// Measure this computer and write it as an accelerator.
///
/// One core: capacity, bandwidth and latency of its caches and of memory, and its FMA rate. With it,
/// `simulate --arch host.ron --scheduler csa` predicts the cycles of SConv's macro-kernel. Takes some seconds.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Write the machine to this RON file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let destination = Destination::prepare(args.output.as_deref())?;
    let host = Host::measure();
    let gate = &host.gate;
    eprintln!(
        "{} at {:.2} GHz, {} multiply-adds per cycle",
        gate.isa,
        gate.clock / 1e9,
        gate.peak
    );
    for (
        name,
        Memory {
            size,
            read,
            write,
            latency,
        },
    ) in ["L1", "L2", "L3", "memory"].iter().zip(&host.memories)
    {
        let size = size.map_or(String::new(), |bytes| format!("{} KiB, ", bytes >> 10));
        eprintln!("{name}: {size}{read:.1} B/cycle read, {write:.1} written, {latency:.1} cycles");
    }
    destination.write(&host.accelerator().to_ron())?;
    Ok(Ending::Complete)
}
