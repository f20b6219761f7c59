//! How long a burst takes (rule 14).

use cyclonest_arch::{Accelerator, Mapping, Ports, Width};
use cyclonest_workloads::{Tensor, TensorMap};

/// Time of a burst: lanes, and every port of the PE level (rule 14).
#[derive(Debug, Clone)]
pub(crate) struct BurstTime {
    ports: Vec<BurstPort>,
    interval: u64,
}

/// A port of the PE level: what a burst moves through it, with bits per element.
#[derive(Debug, Clone)]
struct BurstPort {
    width: Width,
    reads: Vec<(Tensor, u64)>,
    /// Bits of an update, where outputs are written through this port.
    update: Option<u64>,
}

impl BurstPort {
    #[inline]
    fn cycles(&self, reads: &TensorMap<u64>, updates: u64) -> u64 {
        if let ([(tensor, bits)], None) = (self.reads.as_slice(), self.update) {
            return self.width.cycles(reads[*tensor], *bits);
        }
        let (mut elements, mut total) = (0, 0);
        for &(tensor, bits) in &self.reads {
            elements += reads[tensor];
            total += reads[tensor] * bits;
        }
        if let Some(bits) = self.update {
            elements += updates;
            total += updates * bits;
        }
        if let Width::Words(words) = self.width {
            elements.div_ceil(words)
        } else {
            self.width.cycles(1, total)
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

impl BurstTime {
    pub(super) fn new(arch: &Accelerator, mapping: &Mapping) -> Self {
        let pe = arch.event_level();
        let keeps = mapping.levels[pe].keeps;
        let mut ports = Vec::new();
        for bank in &arch.levels[pe].banks {
            let kept: Vec<Tensor> = bank.holds.iter().filter(|&t| keeps.contains(t)).collect();
            let sharing: Vec<Vec<Tensor>> = match bank.ports {
                Ports::PerTensor(_) => kept.iter().map(|&t| vec![t]).collect(),
                _ => vec![kept],
            };
            for tensors in sharing.into_iter().filter(|t| !t.is_empty()) {
                // Outputs are read to accumulate; everything inside the PE has the partial precision.
                let reads = tensors
                    .iter()
                    .map(|&t| (t, arch.bits(t, t == Tensor::Outputs)))
                    .collect();
                let update = tensors
                    .contains(&Tensor::Outputs)
                    .then(|| arch.bits(Tensor::Outputs, true));
                let (read, write) = (bank.read_width(tensors[0]), bank.write_width(tensors[0]));
                if matches!(bank.ports, Ports::Shared { .. }) {
                    // One port: the burst's updates take turns with its reads, at the narrower width.
                    ports.push(BurstPort {
                        width: narrower(read, write),
                        reads,
                        update,
                    });
                } else {
                    ports.push(BurstPort {
                        width: read,
                        reads,
                        update: None,
                    });
                    if update.is_some() {
                        ports.push(BurstPort {
                            width: write,
                            reads: Vec::new(),
                            update,
                        });
                    }
                }
            }
        }
        BurstTime {
            ports,
            interval: arch.compute.interval,
        }
    }

    /// Cycles of a burst with `reads` (outputs: to accumulate) and `updates` of outputs.
    #[inline]
    pub(crate) fn cycles(&self, trips: u64, reads: &TensorMap<u64>, updates: u64) -> u64 {
        self.ports.iter().fold(trips * self.interval, |cycles, port| {
            cycles.max(port.cycles(reads, updates))
        })
    }
}
