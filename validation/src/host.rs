//! This computer as an accelerator: its caches, bandwidths and FMA rate, measured.

use std::collections::BTreeMap;

use cyclonest_arch::{
    Accelerator, AccessEnergy, Bank, Capacity, Channels, Clock, Compute, Level, Link, Network, NetworkKind, Ports,
    Reduction, Source, Width, Word,
};
use cyclonest_sconv::{
    Caches, Isa, micro_tile,
    probe::{load_latency, read_rate, write_rate},
};
use cyclonest_workloads::{Tensor, TensorMap, TensorSet};

use crate::native::Gate;

/// A memory as measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Memory {
    /// Bytes; `None` for main memory.
    pub size: Option<usize>,
    /// Bytes per cycle read by one core.
    pub read: f64,
    /// Bytes per cycle written by one core.
    pub write: f64,
    /// Cycles from a load to its use.
    pub latency: f64,
}

/// What was measured of this computer.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Clock and FMA rate.
    pub gate: Gate,
    /// L1, L2, L3 and main memory.
    pub memories: [Memory; 4],
}

impl Host {
    /// Measures, for a few seconds.
    #[must_use]
    pub fn measure() -> Self {
        let gate = Gate::calibrate();
        let caches = Caches::host();
        let sizes = [Some(caches.l1), Some(caches.l2), Some(caches.l3), None];
        // In L1 and L2: half of the level. In L3: a quarter, but no more than eight times L2, because other cores share
        // it. In memory: four times L3, within reason.
        let spans = [
            caches.l1 / 2,
            caches.l2 / 2,
            (caches.l3 / 4).min(8 * caches.l2),
            (caches.l3 * 4).clamp(64 << 20, 512 << 20),
        ];
        let memories = [0, 1, 2, 3].map(|level| {
            let span = spans[level];
            let passes = ((32 << 20) / span).clamp(2, 4000);
            let best = |measure: &dyn Fn() -> f64| (0..5).map(|_| measure()).fold(0.0, f64::max);
            let loads = if level == 3 { 400_000 } else { 1_000_000 };
            let latency = (0..3).map(|_| load_latency(span, loads)).fold(f64::MAX, f64::min);
            Memory {
                size: sizes[level],
                read: best(&|| read_rate(span, passes)) / gate.clock,
                write: best(&|| write_rate(span, passes)) / gate.clock,
                latency: latency * gate.clock,
            }
        });
        Host { gate, memories }
    }

    /// The machine for the simulator.
    #[must_use]
    pub fn accelerator(&self) -> Accelerator {
        let isa = self.gate.isa;
        let micro = micro_tile(isa);
        let units = (self.gate.peak / isa.lanes() as f64).round().max(1.0) as u64;
        let mut levels = Vec::new();
        let mut sources = BTreeMap::new();
        let cited = |what: &str| Source::Cited(format!("`cyclonest host`: {what}"));
        let assumed = |why: &str| Source::Assumed(why.to_string());
        sources.insert("clock".to_string(), cited("a chain of dependent multiplications"));
        sources.insert("words".to_string(), cited("fp32"));
        sources.insert("compute".to_string(), cited("an FMA loop on independent registers"));
        sources.insert("compute.depth".to_string(), assumed("the usual latency of an FMA"));
        sources.insert(
            "Reg".to_string(),
            cited("the tile of SConv's micro-kernel for these instructions"),
        );
        let names = ["L1", "L2", "L3", "Memory"];
        for index in (0..4).rev() {
            let memory = &self.memories[index];
            let name = names[index];
            let inner = if index == 0 {
                0.0
            } else {
                self.memories[index - 1].latency
            };
            for (part, source) in [
                (
                    "",
                    cited("loops that read, write and chase pointers in a part of it (memory: in four times L3)"),
                ),
                (".size", cited("as the operating system reports it")),
                (
                    ".fifo",
                    assumed("half of a cache: the next tile replaces lines that are no longer used, one by one"),
                ),
                (
                    ".below",
                    assumed("no limit of its own: the ports are the measured limit"),
                ),
                (".energy", assumed("none: only cycles are of interest")),
            ] {
                // Memory is never full and has no such constant.
                if memory.size.is_some() || part != ".fifo" {
                    sources.insert(format!("{name}{part}"), source);
                }
            }
            levels.push(cpu_level(name, memory, memory.latency - inner));
        }
        levels.push(registers(micro.windows as u64, (micro.windows * micro.filters) as u64));
        let lanes = match isa {
            // Without vectors the loop's rate is that of the compiler's own code.
            Isa::Portable => (self.gate.peak.round().max(1.0) as u64, 1),
            _ => (isa.lanes() as u64, units),
        };
        Accelerator {
            name: "host".into(),
            clock: Clock::MHz((self.gate.clock / 1e6).round()),
            words: TensorMap::from_fn(|_| Word {
                bits: 32,
                partial: None,
            }),
            levels,
            event_level: Some("L1".into()),
            compute: Compute {
                lanes,
                depth: 4,
                interval: 1,
                energy_per_mac: 0.0,
            },
            sources,
        }
    }
}

fn free() -> Channels {
    Channels::OneForAll(Link {
        width: Width::Unlimited,
        latency: 1,
    })
}

fn cpu_level(name: &str, memory: &Memory, latency: f64) -> Level {
    let bits = |bytes: f64| Width::Bits((bytes * 8.0).round().max(1.0) as u64);
    // A cache takes the next tile line by line, in place of lines that are no longer used: half of it may hold what is to
    // come. No tile is there twice; with one slot for outputs, a call of the micro-kernel begins by fetching its sums and
    // ends by storing them, which is what small tiles pay for.
    let fifo = memory.size.map_or(0, |bytes| bytes as u64 / 8);
    Level {
        name: name.into(),
        mesh: (1, 1),
        spatial: None,
        refresh: None,
        banks: vec![Bank {
            holds: TensorSet::ALL,
            size: memory
                .size
                .map_or(Capacity::Unbounded, |bytes| Capacity::Bytes(bytes as u64)),
            slots: BTreeMap::new(),
            halo: TensorSet::EMPTY,
            fifo,
            ports: Ports::ReadWrite {
                read: bits(memory.read),
                write: bits(memory.write),
            },
            latency: latency.round().max(1.0) as u64,
            energy: AccessEnergy::default(),
        }],
        below: Some(Network {
            kind: NetworkKind::Pipe {
                down: free(),
                up: free(),
            },
            clock: None,
            multicast: TensorSet::EMPTY,
            reduction: Reduction::None,
            energy_per_bit_hop: 0.0,
        }),
    }
}

/// A register file that holds a vector of inputs and the sums of a micro-kernel.
fn registers(inputs: u64, sums: u64) -> Level {
    let bank = |tensor: Tensor, words: u64| {
        let mut holds = TensorSet::EMPTY;
        holds.insert(tensor);
        Bank {
            holds,
            size: Capacity::Words(words),
            slots: BTreeMap::new(),
            halo: TensorSet::EMPTY,
            fifo: 0,
            ports: Ports::Ideal,
            latency: 1,
            energy: AccessEnergy::default(),
        }
    };
    Level {
        name: "Reg".into(),
        mesh: (1, 1),
        spatial: None,
        refresh: None,
        banks: vec![bank(Tensor::Inputs, inputs), bank(Tensor::Outputs, sums)],
        below: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Host {
        let memory = |size, read, write, latency| Memory {
            size,
            read,
            write,
            latency,
        };
        Host {
            gate: Gate {
                isa: Isa::Avx512,
                peak: 16.0,
                usual: 15.6,
                clock: 3e9,
            },
            memories: [
                memory(Some(32 << 10), 62.0, 31.0, 5.0),
                memory(Some(1 << 20), 25.4, 20.0, 15.0),
                memory(Some(32 << 20), 10.0, 8.0, 55.0),
                memory(None, 6.0, 5.0, 320.0),
            ],
        }
    }

    #[test]
    fn the_machine_reads_back_and_every_constant_has_a_source() {
        let arch = example().accelerator();
        let text = arch.to_ron();
        assert_eq!(Accelerator::from_ron(&text).expect("valid"), arch);
        assert_eq!(arch.unsourced(), Vec::<String>::new());
        assert_eq!(arch.lanes(), 16);
    }

    #[test]
    fn latencies_add_up_to_what_was_measured() {
        let arch = example().accelerator();
        let latencies: Vec<u64> = arch.levels.iter().take(4).map(|level| level.banks[0].latency).collect();
        assert_eq!(latencies, [265, 40, 10, 5]);
    }
}
