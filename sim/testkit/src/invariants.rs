//! What holds for every outcome, whoever computed it.

use std::collections::BTreeMap;

use cyclonest_arch::{Counts, NetworkKind, Ports, Width};
use cyclonest_workloads::Tensor;

use crate::generate::Case;

/// The figures of an outcome that the invariants speak of.
#[derive(Debug, Clone, Copy)]
pub struct Figures<'a> {
    /// Total cycles.
    pub cycles: u64,
    /// Physical PEs.
    pub pes: u64,
    /// PE-cycles spent computing.
    pub busy: u64,
    /// PE-cycles not spent computing, over all reasons.
    pub stalled: u64,
    /// Every counter.
    pub counts: &'a Counts,
    /// Occupied cycles of ports and channels, by any name.
    pub occupancy: &'a BTreeMap<String, u64>,
}

/// Every invariant that does not hold, in words; none for a sound outcome.
#[must_use]
pub fn violations(case: &Case, figures: Figures<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let Figures {
        cycles,
        pes,
        busy,
        stalled,
        counts,
        occupancy,
    } = figures;
    if busy + stalled != pes * cycles {
        found.push(format!(
            "busy {busy} + stalled {stalled} is not {pes} PEs × {cycles} cycles"
        ));
    }
    let macs = case.problem.macs();
    if counts.macs != macs {
        found.push(format!("{} MACs counted, the layer has {macs}", counts.macs));
    }
    let lanes: u64 = case
        .mapping
        .levels
        .iter()
        .flat_map(|l| &l.spatial)
        .map(|s| s.1)
        .product();
    if cycles * lanes < macs * case.arch.compute.interval {
        found.push(format!("{cycles} cycles are too few for {macs} MACs on {lanes} lanes"));
    }
    for (name, &occupied) in occupancy {
        if occupied > cycles {
            found.push(format!("{name} is occupied for {occupied} of {cycles} cycles"));
        }
    }
    for (name, least) in compulsory(case) {
        if cycles < least {
            found.push(format!(
                "{name} needs {least} cycles for compulsory traffic, {cycles} were taken"
            ));
        }
    }
    let (by_hand, by_counts) = (energy(case, counts), counts.energy_pj(&case.arch));
    if (by_hand - by_counts).abs() > 1e-9 * by_hand.max(1.0) {
        found.push(format!("energy {by_counts} pJ, recomputed {by_hand} pJ"));
    }
    found
}

/// Cycles that elements which must move at least once occupy each port and channel, spread over its instances.
fn compulsory(case: &Case) -> Vec<(String, u64)> {
    let (arch, mapping) = (&case.arch, &case.mapping);
    let mut all = Vec::new();
    let mut used = 1;
    for level in 0..=arch.event_level() {
        let name = &arch.levels[level].name;
        for (b, bank) in arch.levels[level].banks.iter().enumerate() {
            let kept = |t: Tensor| bank.holds.contains(t) && mapping.levels[level].keeps.contains(t);
            // At the outermost level operands are read and outputs written; further in operands are written. (The
            // PE level's outputs and its operands' reads belong to bursts.)
            let moved = |write: bool| -> Vec<Tensor> {
                let operands = [Tensor::Weights, Tensor::Inputs]
                    .into_iter()
                    .filter(|_| write == (level > 0));
                operands
                    .chain((level == 0 && write).then_some(Tensor::Outputs))
                    .filter(|&t| kept(t))
                    .collect()
            };
            let time = |write: bool, tensors: &[Tensor]| -> f64 {
                tensors
                    .iter()
                    .map(|&t| cycles(case, t, if write { bank.write_width(t) } else { bank.read_width(t) }))
                    .sum()
            };
            let (reads, writes) = (moved(false), moved(true));
            match bank.ports {
                Ports::Ideal => {}
                Ports::Shared { .. } => {
                    all.push((format!("{name} port {b}"), time(false, &reads) + time(true, &writes)))
                }
                Ports::ReadWrite { .. } => {
                    all.push((format!("{name} read port {b}"), time(false, &reads)));
                    all.push((format!("{name} write port {b}"), time(true, &writes)));
                }
                Ports::PerTensor(_) => {
                    all.extend(
                        reads
                            .iter()
                            .map(|t| (format!("{name} read port of {t}"), time(false, &[*t]))),
                    );
                    all.extend(
                        writes
                            .iter()
                            .map(|t| (format!("{name} write port of {t}"), time(true, &[*t]))),
                    );
                }
            }
            for entry in all
                .iter_mut()
                .rev()
                .take_while(|e| e.0.starts_with(&format!("{name} ")))
            {
                entry.1 /= f64::from(u32::try_from(used).unwrap_or(u32::MAX));
            }
        }
        if level < arch.event_level() {
            all.extend(
                channels(case, level)
                    .into_iter()
                    .map(|(name, time)| (name, time / used as f64)),
            );
            used *= mapping.levels[level].spatial.iter().map(|s| s.1).product::<u64>();
        }
    }
    all.into_iter()
        .map(|(name, time)| (name, (time - 1e-6).ceil().max(0.0) as u64))
        .collect()
}

/// Compulsory time of the channels below `level`.
fn channels(case: &Case, level: usize) -> Vec<(String, f64)> {
    let arch = &case.arch;
    let Some(network) = &arch.levels[level].below else {
        return Vec::new();
    };
    let ratio = network.clock.map_or(1.0, |c| arch.clock.mhz() / c.mhz());
    let bus = matches!(network.kind, NetworkKind::Bus(_));
    let mut times: BTreeMap<String, f64> = BTreeMap::new();
    for tensor in Tensor::ALL {
        let down = tensor != Tensor::Outputs;
        let Some(channels) = arch.channels(level, down) else {
            continue;
        };
        let Some(link) = channels.link(tensor) else { continue };
        let direction = if bus {
            "bus"
        } else if down {
            "down"
        } else {
            "up"
        };
        let own = if channels.per_tensor() {
            format!(" of {tensor}")
        } else {
            String::new()
        };
        let name = format!("network {direction} below {}{own}", arch.levels[level].name);
        *times.entry(name).or_default() += cycles(case, tensor, link.width) * ratio;
    }
    times.into_iter().collect()
}

/// Time of the distinct elements of a tensor through a width; outputs at their final precision.
fn cycles(case: &Case, tensor: Tensor, width: Width) -> f64 {
    let elements = case.problem.touched(tensor) as f64;
    let bits = elements * case.arch.bits(tensor, false) as f64;
    match width {
        Width::Bits(w) => bits / w as f64,
        Width::Bytes(w) => bits / (8 * w) as f64,
        Width::Words(w) => elements / w as f64,
        Width::Unlimited => 0.0,
    }
}

/// Energy from the counts and the machine's table, term by term.
fn energy(case: &Case, counts: &Counts) -> f64 {
    let mut terms = vec![counts.macs as f64 * case.arch.compute.energy_per_mac];
    for (level, counted) in case.arch.levels.iter().zip(&counts.levels) {
        for (tensor, a) in counted.tensors.iter() {
            if let Some(bank) = level.bank(tensor) {
                terms.push(a.reads as f64 * bank.energy.read);
                terms.push(a.drains as f64 * bank.energy.read);
                terms.push(a.fills as f64 * bank.energy.write);
                terms.push(a.updates as f64 * bank.energy.write);
            }
        }
        let hops: u64 = counted.network.iter().map(|(_, traffic)| traffic.bit_hops).sum();
        terms.push(hops as f64 * level.below.as_ref().map_or(0.0, |n| n.energy_per_bit_hop));
    }
    terms.iter().sum()
}
