//! `list`: what can be named.

use clap::{Args as ClapArgs, ValueEnum};
use comfy_table::{Table, presets};
use cyclonest_arch::Technology;
use cyclonest_scheduler::explore;

use crate::cli::Ending;
use crate::faults::Faults;
use crate::{inputs, output, report};

/// List the machines, networks, schedulers, plans or technologies that can be named.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// What to list.
    kind: Kind,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// Bundled accelerators.
    Archs,
    /// Bundled networks.
    Networks,
    /// Schedulers.
    Schedulers,
    /// Bundled plans of explorations.
    Plans,
    /// Bundled technologies.
    Technologies,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    output::print(&match args.kind {
        Kind::Archs => archs()?,
        Kind::Networks => networks()?,
        Kind::Plans => explore::names().map(|name| format!("{name}\n")).collect(),
        Kind::Technologies => Technology::names().map(|name| format!("{name}\n")).collect(),
        Kind::Schedulers => inputs::scheduler_names()
            .iter()
            .map(|name| format!("{name}\n"))
            .collect(),
    })?;
    Ok(Ending::Complete)
}

fn archs() -> Result<String, Faults> {
    let mut table = table(["name", "levels", "PEs", "lanes", "MHz"]);
    for name in inputs::arch_names() {
        let arch = inputs::arch(&name)?;
        let levels: Vec<&str> = arch.levels.iter().map(|level| level.name.as_str()).collect();
        table.add_row([
            name,
            levels.join(" "),
            report::thousands(arch.instances(arch.event_level())),
            report::thousands(arch.lanes()),
            arch.clock.mhz().to_string(),
        ]);
    }
    Ok(report::render(&table))
}

fn networks() -> Result<String, Faults> {
    let mut table = table(["name", "layers", "shapes", "MACs"]);
    for name in inputs::network_names() {
        let network = inputs::network(&name, None)?.network;
        let distinct = network.distinct();
        table.add_row([
            name,
            distinct.iter().map(|layer| layer.count).sum::<u64>().to_string(),
            distinct.len().to_string(),
            report::thousands(network.macs()),
        ]);
    }
    Ok(report::render(&table))
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table
}
