//! Which constants a machine has, and where each comes from.

use crate::{Accelerator, Bank, Channels, Level, NetworkKind, Ports, Source};

/// True if the entry of `sources` stands for the constant `path`: the same path, or a whole prefix of it
/// (`"GB.ports"` stands for `"GB.ports.read"` and `"GB.ports.write"`).
pub(crate) fn covers(entry: &str, path: &str) -> bool {
    path.strip_prefix(entry)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Accelerator {
    /// Paths of every numeric constant of the machine, in the order of its fields.
    ///
    /// `clock`, `words.TENSOR.bits|partial`, `LEVEL.mesh`,
    /// `LEVEL[.BANK].size|slots.TENSOR|fifo|ports…|latency|energy.read|energy.write`, where BANK is the tensors of
    /// the bank joined by `+` (`GLB.Inputs+Outputs.size`) and is left out where a level has only one bank,
    /// `LEVEL.below.clock|down…|up…|bus…|width|link|reduction|energy_per_bit_hop`, and
    /// `compute.lanes|depth|interval|energy_per_mac`. Ports and channels go on with `[.TENSOR].read|write` and
    /// `[.TENSOR].width|latency`.
    #[must_use]
    pub fn constants(&self) -> Vec<String> {
        let mut paths = vec!["clock".to_string()];
        for (tensor, word) in self.words.iter() {
            paths.push(format!("words.{tensor}.bits"));
            if word.partial.is_some() {
                paths.push(format!("words.{tensor}.partial"));
            }
        }
        for level in &self.levels {
            paths.push(format!("{}.mesh", level.name));
            for bank in &level.banks {
                bank_constants(&mut paths, &bank_path(level, bank), bank);
            }
            network_constants(&mut paths, level);
        }
        for field in ["lanes", "depth", "interval", "energy_per_mac"] {
            paths.push(format!("compute.{field}"));
        }
        paths
    }

    /// The source of the constant `path`: its own entry, or that of its longest prefix.
    #[must_use]
    pub fn source(&self, path: &str) -> Option<&Source> {
        self.sources
            .iter()
            .filter(|(entry, _)| covers(entry, path))
            .max_by_key(|(entry, _)| entry.len())
            .map(|(_, source)| source)
    }

    /// Entries of `sources` that are assumed, with the reason for the value: no claim that rests on one of them
    /// stands without a sensitivity analysis.
    #[must_use]
    pub fn assumed(&self) -> Vec<(&str, &str)> {
        self.sources
            .iter()
            .filter_map(|(path, source)| match source {
                Source::Assumed(why) => Some((path.as_str(), why.as_str())),
                Source::Cited(_) => None,
            })
            .collect()
    }

    /// Constants without an entry in `sources`; none in a bundled machine.
    #[must_use]
    pub fn unsourced(&self) -> Vec<String> {
        let mut paths = self.constants();
        paths.retain(|path| self.source(path).is_none());
        paths
    }
}

fn bank_path(level: &Level, bank: &Bank) -> String {
    if level.banks.len() == 1 {
        return level.name.clone();
    }
    let tensors: Vec<String> = bank.holds.iter().map(|t| t.to_string()).collect();
    format!("{}.{}", level.name, tensors.join("+"))
}

fn bank_constants(paths: &mut Vec<String>, path: &str, bank: &Bank) {
    paths.push(format!("{path}.size"));
    for tensor in bank.slots.keys() {
        paths.push(format!("{path}.slots.{tensor}"));
    }
    if bank.fifo > 0 {
        paths.push(format!("{path}.fifo"));
    }
    match bank.ports {
        Ports::Ideal => paths.push(format!("{path}.ports")),
        Ports::Shared { .. } | Ports::ReadWrite { .. } => {
            paths.push(format!("{path}.ports.read"));
            paths.push(format!("{path}.ports.write"));
        }
        Ports::PerTensor(pairs) => {
            for (tensor, _) in pairs.iter().filter(|(_, pair)| pair.is_some()) {
                paths.push(format!("{path}.ports.{tensor}.read"));
                paths.push(format!("{path}.ports.{tensor}.write"));
            }
        }
    }
    for field in ["latency", "energy.read", "energy.write"] {
        paths.push(format!("{path}.{field}"));
    }
}

fn network_constants(paths: &mut Vec<String>, level: &Level) {
    let Some(network) = &level.below else { return };
    let path = format!("{}.below", level.name);
    if network.clock.is_some() {
        paths.push(format!("{path}.clock"));
    }
    match network.kind {
        NetworkKind::Pipe { down, up } => {
            channel_constants(paths, &format!("{path}.down"), &down);
            channel_constants(paths, &format!("{path}.up"), &up);
        }
        NetworkKind::Bus(channels) => channel_constants(paths, &format!("{path}.bus"), &channels),
        NetworkKind::HierarchicalBus { .. } => paths.push(format!("{path}.width")),
        NetworkKind::Crossbar { .. } | NetworkKind::Mesh { .. } => paths.push(format!("{path}.link")),
    }
    if network.reduction != crate::Reduction::None {
        paths.push(format!("{path}.reduction"));
    }
    paths.push(format!("{path}.energy_per_bit_hop"));
}

fn channel_constants(paths: &mut Vec<String>, path: &str, channels: &Channels) {
    match channels {
        Channels::OneForAll(_) => {
            paths.push(format!("{path}.width"));
            paths.push(format!("{path}.latency"));
        }
        Channels::PerTensor(links) => {
            for (tensor, _) in links.iter().filter(|(_, link)| link.is_some()) {
                paths.push(format!("{path}.{tensor}.width"));
                paths.push(format!("{path}.{tensor}.latency"));
            }
        }
    }
}
