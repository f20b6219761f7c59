//! An accelerator drawn in text: storage levels outermost first, the networks between them, the lanes below.

use std::fmt::Write as _;

use cyclonest_arch::{
    Accelerator, Bank, Capacity, Channels, Level, Link, Network, NetworkKind, Ports, Reduction, Source, Width,
};
use cyclonest_workloads::{Tensor, TensorSet};

use crate::report::thousands;

/// Draws `arch`.
pub(crate) fn draw(arch: &Accelerator) -> String {
    let mut out = String::new();
    let event_level = arch.event_level();
    let _ = writeln!(
        out,
        "{}: {} MHz, {} PEs ({}), {} lanes",
        arch.name,
        arch.clock.mhz(),
        thousands(arch.instances(event_level)),
        arch.levels[event_level].name,
        thousands(arch.lanes()),
    );
    let words: Vec<String> = Tensor::ALL.map(|tensor| word(arch, tensor)).to_vec();
    let _ = writeln!(out, "{}\n", words.join(", "));
    for (position, level) in arch.levels.iter().enumerate() {
        draw_level(&mut out, arch, position, level);
        if let Some(network) = &level.below {
            let _ = writeln!(out, "╎\n╎  {}", describe_network(arch, position, network));
        }
        out.push_str("╎\n");
    }
    let compute = &arch.compute;
    let _ = writeln!(
        out,
        "○ {}×{} lanes below each {}",
        compute.lanes.0,
        compute.lanes.1,
        arch.levels.last().map_or("", |level| level.name.as_str()),
    );
    let _ = writeln!(
        out,
        "   1 MAC per {}; pipeline of {}; {} pJ per MAC",
        cycles(compute.interval),
        cycles(compute.depth),
        compute.energy_per_mac
    );
    draw_sources(&mut out, arch);
    out
}

fn word(arch: &Accelerator, tensor: Tensor) -> String {
    let (bits, partial) = (arch.bits(tensor, false), arch.bits(tensor, true));
    match bits == partial {
        true => format!("{tensor} {bits} bit"),
        false => format!("{tensor} {bits} bit (partial sums {partial} bit)"),
    }
}

/// A level in words, and the network below it.
#[derive(Debug)]
pub(crate) struct LevelLine {
    pub(crate) name: String,
    pub(crate) banks: Vec<String>,
    pub(crate) network: Option<String>,
}

/// The levels of `arch` from the outermost to the lanes, for drawings other than [`draw`].
pub(crate) fn levels(arch: &Accelerator) -> Vec<LevelLine> {
    let mut lines: Vec<LevelLine> = arch
        .levels
        .iter()
        .enumerate()
        .map(|(position, level)| LevelLine {
            name: format!("{} ×{}", level.name, thousands(arch.instances(position))),
            banks: level.banks.iter().map(describe_bank).collect(),
            network: level
                .below
                .as_ref()
                .map(|network| describe_network(arch, position, network)),
        })
        .collect();
    let compute = &arch.compute;
    lines.push(LevelLine {
        name: format!("{} lanes", thousands(arch.lanes())),
        banks: vec![format!(
            "{}×{} below each {}; 1 MAC per {}; pipeline of {}; {} pJ per MAC",
            compute.lanes.0,
            compute.lanes.1,
            arch.levels.last().map_or("", |level| level.name.as_str()),
            cycles(compute.interval),
            cycles(compute.depth),
            compute.energy_per_mac
        )],
        network: None,
    });
    lines
}

fn draw_level(out: &mut String, arch: &Accelerator, position: usize, level: &Level) {
    let _ = write!(out, "■ {} ×{}", level.name, thousands(arch.instances(position)));
    if let Some(parent) = position.checked_sub(1).filter(|_| level.fanout() > 1) {
        let parent = &arch.levels[parent].name;
        let _ = write!(out, ", {}×{} below each {parent}", level.mesh.0, level.mesh.1);
    }
    if let Some(spatial) = &level.spatial {
        for (axis, dims) in [("X", &spatial.x), ("Y", &spatial.y)] {
            let dims: Vec<String> = dims.iter().map(|dim| dim.to_string()).collect();
            if !dims.is_empty() {
                let _ = write!(out, ", {} over {axis}", dims.join(" "));
            }
        }
    }
    out.push('\n');
    for bank in &level.banks {
        let _ = writeln!(out, "│  {}", describe_bank(bank));
    }
}

fn describe_bank(bank: &Bank) -> String {
    let tensors: Vec<String> = bank
        .holds
        .iter()
        .map(|tensor| {
            let mut features = Vec::new();
            if bank.slots_of(tensor) > 1 {
                features.push(format!("{} slots", bank.slots_of(tensor)));
            }
            if bank.halo.contains(tensor) {
                features.push("halo".to_string());
            }
            match features.is_empty() {
                true => tensor.to_string(),
                false => format!("{tensor} ({})", features.join(", ")),
            }
        })
        .collect();
    let mut parts = vec![
        format!("{}: {}", tensors.join(", "), size(bank.size)),
        describe_ports(bank),
    ];
    if bank.fifo > 0 {
        parts.push(format!("FIFO of {} elements", bank.fifo));
    }
    parts.push(format!("latency {}", bank.latency));
    parts.push(format!("{} pJ read, {} pJ write", bank.energy.read, bank.energy.write));
    parts.join("; ")
}

fn describe_ports(bank: &Bank) -> String {
    let pair = |read: Width, write: Width| format!("read {}, write {}", width(read), width(write));
    match &bank.ports {
        Ports::Ideal => "ports never the limit".to_string(),
        Ports::Shared { read, write } => format!("one port: {}", pair(*read, *write)),
        Ports::ReadWrite { read, write } => pair(*read, *write),
        Ports::PerTensor(pairs) => pairs
            .iter()
            .filter_map(|(tensor, p)| p.map(|p| format!("{tensor} {}", pair(p.read, p.write))))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn describe_network(arch: &Accelerator, position: usize, network: &Network) -> String {
    let kind = match network.kind {
        NetworkKind::Pipe { .. } => "pipe",
        NetworkKind::Bus(_) => "bus",
        NetworkKind::HierarchicalBus { .. } => "hierarchical bus",
        NetworkKind::Crossbar { .. } => "crossbar",
        NetworkKind::Mesh { .. } => "mesh",
    };
    let channels = |down: bool| {
        arch.channels(position, down)
            .map_or_else(String::new, describe_channels)
    };
    let mut parts = vec![match network.kind {
        NetworkKind::Bus(_) => format!("{kind}: both ways {}", channels(true)),
        _ => format!("{kind}: down {}; up {}", channels(true), channels(false)),
    }];
    if let Some(clock) = network.clock {
        parts.push(format!("{} MHz", clock.mhz()));
    }
    if !network.multicast.is_empty() {
        parts.push(format!("multicast {}", list(network.multicast)));
    }
    match network.reduction {
        Reduction::None => {}
        Reduction::Tree { stage } => parts.push(format!("adder tree, {} per stage", cycles(stage))),
        Reduction::Chain { hop } => parts.push(format!("adder chain, {} per hop", cycles(hop))),
    }
    parts.push(format!("{} pJ per bit and hop", network.energy_per_bit_hop));
    parts.join("; ")
}

fn describe_channels(channels: Channels) -> String {
    let link = |link: Link| format!("{} latency {}", width(link.width), link.latency);
    match channels {
        Channels::OneForAll(shared) => link(shared),
        Channels::PerTensor(links) => links
            .iter()
            .filter_map(|(tensor, own)| own.map(|own| format!("{tensor} {}", link(own))))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn draw_sources(out: &mut String, arch: &Accelerator) {
    for (heading, wanted) in [("published", false), ("assumed", true)] {
        let lines: Vec<String> = arch
            .sources
            .iter()
            .filter_map(|(constant, source)| match source {
                Source::Cited(from) if !wanted => Some(format!("  {constant}: {from}\n")),
                Source::Assumed(why) if wanted => Some(format!("  {constant}: {why}\n")),
                _ => None,
            })
            .collect();
        if !lines.is_empty() {
            let _ = write!(out, "\n{heading} constants\n{}", lines.concat());
        }
    }
}

fn list(tensors: TensorSet) -> String {
    tensors.iter().map(|t| t.to_string()).collect::<Vec<_>>().join(", ")
}

fn cycles(n: u64) -> String {
    match n {
        1 => "1 cycle".to_string(),
        n => format!("{n} cycles"),
    }
}

fn size(capacity: Capacity) -> String {
    match capacity {
        Capacity::Unbounded => "unbounded".to_string(),
        Capacity::Words(1) => "1 word".to_string(),
        Capacity::Words(n) => format!("{n} words"),
        Capacity::Bytes(n) => format!("{n} B"),
        Capacity::KiB(n) => format!("{n} KiB"),
        Capacity::MiB(n) => format!("{n} MiB"),
    }
}

fn width(width: Width) -> String {
    match width {
        Width::Bits(n) => format!("{n} bit"),
        Width::Bytes(n) => format!("{n} B"),
        Width::Words(1) => "1 word".to_string(),
        Width::Words(n) => format!("{n} words"),
        Width::Unlimited => "unlimited".to_string(),
    }
}
