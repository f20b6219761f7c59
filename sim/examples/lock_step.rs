//! How many PEs go in lock step, and what it could save to simulate one of them for all.
//!
//! ```text
//! cargo run --release -p cyclonest-sim --example lock_step -- MAPPINGS.ron
//! ```
//!
//! Two PEs go in lock step if their bursts begin and end in the same cycles during the whole run. They could be merged
//! only if whatever reaches or leaves the one also reaches or leaves the other with the same transfer; a transfer of
//! its own is work of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cyclonest_arch::{Mappings, bundled as machines};
use cyclonest_sim::{Observer, Options, TransferInfo, TransferKind, simulate_observed};
use cyclonest_workloads::bundled as networks;

/// What happened to one PE so far.
#[derive(Debug, Clone, Default)]
struct Pe {
    bursts: u64,
    /// Hash of the times of its bursts.
    times: u64,
    /// Hash of the transfers that it was part of, each by its name and time.
    transfers: u64,
    /// Hash of the fills alone.
    fills: u64,
}

#[derive(Debug, Default)]
struct Watch {
    level: usize,
    pes: BTreeMap<u32, Pe>,
    number: u64,
    /// Number and members of the fills under way.
    fills: HashMap<u64, (u64, Vec<u32>)>,
}

fn mix(hash: &mut u64, word: u64) {
    *hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
}

impl Observer for Watch {
    fn requested(&mut self, at: u64, transfer: &TransferInfo<'_>) {
        if transfer.level != self.level {
            return;
        }
        self.number += 1;
        for pe in transfer.members {
            let pe = self.pes.entry(*pe).or_default();
            mix(&mut pe.transfers, self.number);
            mix(&mut pe.transfers, at);
        }
        if transfer.kind == TransferKind::Fill {
            let fill = (self.number, transfer.members.to_vec());
            self.fills.insert(transfer.transfer, fill);
        }
    }

    fn arrived(&mut self, at: u64, transfer: u64) {
        if let Some((number, members)) = self.fills.remove(&transfer) {
            for pe in members {
                let pe = self.pes.entry(pe).or_default();
                mix(&mut pe.fills, number);
                mix(&mut pe.fills, at);
            }
        }
    }

    fn burst(&mut self, pe: u32, from: u64, to: u64) {
        let pe = self.pes.entry(pe).or_default();
        pe.bursts += 1;
        mix(&mut pe.times, from);
        mix(&mut pe.times, to);
    }
}

impl Watch {
    /// Share of the bursts that one PE per class would do for the others, if PEs of the same `key` are one class.
    fn spared(&self, key: impl Fn(&Pe) -> (u64, u64)) -> u64 {
        let mut seen = BTreeSet::new();
        let others = self.pes.values().filter(|pe| !seen.insert(key(pe)));
        others.map(|pe| pe.bursts).sum()
    }
}

fn main() {
    let file = std::env::args().nth(1).expect("a file of mappings");
    let text = std::fs::read_to_string(file).expect("a file of mappings");
    let mappings: Mappings = ron::from_str(&text).expect("mappings");
    let arch = machines::load(&mappings.arch).expect("a bundled machine");
    let network = networks::load(&mappings.network).expect("a bundled network");
    println!(
        "{} on {}: bursts, and in per cent of them those of PEs",
        mappings.network, mappings.arch
    );
    println!(
        "in lock step with another one | with the same fills too | with all transfers the same; and bursts in per cent of all events"
    );
    let mut sums = [0; 5];
    for layer in network.distinct() {
        let Some(mapping) = mappings.layers.get(&layer.names[0]) else {
            continue;
        };
        let mut watch = Watch {
            level: arch.event_level(),
            ..Watch::default()
        };
        let outcome =
            simulate_observed(&layer.problem, &arch, mapping, Options::default(), &mut watch).expect("a valid mapping");
        let row = [
            watch.pes.values().map(|pe| pe.bursts).sum(),
            watch.spared(|pe| (pe.times, 0)),
            watch.spared(|pe| (pe.times, pe.fills)),
            watch.spared(|pe| (pe.times, pe.transfers)),
            outcome.events,
        ];
        print(&format!("{}, {} PEs", layer.names[0], watch.pes.len()), &row);
        sums.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
    }
    print("all", &sums);
}

fn print(name: &str, &[bursts, lock_step, fills, transfers, events]: &[u64; 5]) {
    let of = |part: u64, whole: u64| 100.0 * part as f64 / whole as f64;
    println!(
        "{name:<32} {bursts:>10} {:>6.1} {:>6.1} {:>6.1} {:>6.1}",
        of(lock_step, bursts),
        of(fills, bursts),
        of(transfers, bursts),
        of(bursts, events),
    );
}
