//! How long the ports of the PE level and inside it need for a burst (rule 14).

use cyclonest_arch::{Accelerator, Mapping, Ports as PortKind, Width};
use cyclonest_workloads::Tensor;

use super::Tally;

/// A port: what a burst moves through it, with bits per element.
#[derive(Debug, Clone)]
struct Port {
    /// Level, counted from the PE level inwards.
    level: usize,
    width: Width,
    reads: Vec<(Tensor, u64)>,
    writes: Vec<(Tensor, u64)>,
}

/// All ports of the first instances of the PE level and the levels inside it.
#[derive(Debug, Clone)]
pub(super) struct Ports {
    ports: Vec<Port>,
}

impl Ports {
    pub(super) fn new(arch: &Accelerator, mapping: &Mapping) -> Self {
        let pe_level = arch.event_level();
        let mut ports = Vec::new();
        for (level, (machine, mapped)) in arch.levels[pe_level..]
            .iter()
            .zip(&mapping.levels[pe_level..])
            .enumerate()
        {
            for bank in &machine.banks {
                let kept: Vec<Tensor> = bank.holds.iter().filter(|&t| mapped.keeps.contains(t)).collect();
                let sharing: Vec<Vec<Tensor>> = match bank.ports {
                    PortKind::PerTensor(_) => kept.iter().map(|&t| vec![t]).collect(),
                    _ => vec![kept],
                };
                for tensors in sharing.into_iter().filter(|t| !t.is_empty()) {
                    // Outputs have the partial precision inside the PE.
                    let bits: Vec<(Tensor, u64)> = tensors
                        .iter()
                        .map(|&t| (t, arch.bits(t, t == Tensor::Outputs)))
                        .collect();
                    let (read, write) = (bank.read_width(tensors[0]), bank.write_width(tensors[0]));
                    let port = |width, reads, writes| Port {
                        level,
                        width,
                        reads,
                        writes,
                    };
                    if matches!(bank.ports, PortKind::Shared { .. }) {
                        // Reads and writes take turns, at the narrower width.
                        ports.push(port(narrower(read, write), bits.clone(), bits));
                    } else {
                        ports.push(port(read, bits.clone(), Vec::new()));
                        ports.push(port(write, Vec::new(), bits));
                    }
                }
            }
        }
        Ports { ports }
    }

    /// Cycles of the busiest port.
    pub(super) fn cycles(&self, tally: &Tally) -> u64 {
        self.ports.iter().map(|port| port.cycles(tally)).max().unwrap_or(0)
    }
}

impl Port {
    fn cycles(&self, tally: &Tally) -> u64 {
        let accesses = &tally.first[self.level];
        let (mut elements, mut total) = (0, 0);
        for &(tensor, bits) in &self.reads {
            // The PE level's own drains and fills are transfers; inside, they are part of the burst.
            let n = accesses[tensor].reads + accesses[tensor].drains;
            elements += n;
            total += n * bits;
        }
        for &(tensor, bits) in &self.writes {
            let n = accesses[tensor].updates + accesses[tensor].fills;
            elements += n;
            total += n * bits;
        }
        match self.width {
            Width::Words(words) => elements.div_ceil(words),
            width => width.cycles(1, total),
        }
    }
}

fn narrower(a: Width, b: Width) -> Width {
    if a.cycles(1 << 16, 8) >= b.cycles(1 << 16, 8) {
        a
    } else {
        b
    }
}
