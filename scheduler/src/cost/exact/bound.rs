//! What no mapping can beat.

use cyclonest_arch::{Accelerator, NetworkKind, Ports};
use cyclonest_workloads::{Problem, Tensor};

/// A lower bound on the cycles of `problem` on `arch` under any mapping: the larger of
///
/// - the compute roofline, ⌈MACs ÷ lanes⌉ × interval, and
/// - the compulsory traffic: every element of W and I that the nest touches is read at the outermost level at least
///   once and every output is written there at least once; and every one of them passes one instance of the network
///   below every level outside the PE level, on its way to or from the lanes, whatever the levels keep.
#[must_use]
pub fn lower_bound(problem: &Problem, arch: &Accelerator) -> u64 {
    let mut bound = problem.macs().div_ceil(arch.lanes()) * arch.compute.interval;
    if arch.event_level() == 0 {
        return bound;
    }
    let outer = &arch.levels[0];
    // Cycles per port; those that tensors share add up.
    let mut ports = [0_u64; 6];
    for tensor in Tensor::ALL {
        let elements = problem.touched(tensor);
        let bits = arch.bits(tensor, false);
        let output = tensor == Tensor::Outputs;
        let Some(bank) = outer.bank(tensor) else { continue };
        let first = Tensor::ALL
            .into_iter()
            .find(|&t| bank.holds.contains(t))
            .unwrap_or(tensor);
        let (shared, one_way) = match bank.ports {
            Ports::Shared { .. } => (first, false),
            Ports::ReadWrite { .. } => (first, true),
            Ports::Ideal | Ports::PerTensor(_) => (tensor, true),
        };
        let width = if output {
            bank.write_width(tensor)
        } else {
            bank.read_width(tensor)
        };
        let slot = shared as usize + if output && one_way { 3 } else { 0 };
        ports[slot] += width.cycles(elements, bits);
    }
    bound = bound.max(ports.into_iter().max().unwrap_or(0));
    for level in 0..arch.event_level() {
        bound = bound.max(channels(problem, arch, level));
    }
    bound
}

/// Cycles of the busiest channel below `level` at least, if all instances share the work evenly.
fn channels(problem: &Problem, arch: &Accelerator, level: usize) -> u64 {
    let network = arch.levels[level].below.as_ref();
    let ratio = network
        .and_then(|n| n.clock)
        .map_or(1.0, |c| arch.clock.mhz() / c.mhz());
    let bus = network.is_some_and(|n| matches!(n.kind, NetworkKind::Bus(_)));
    let mut channels = [0_u64; 6];
    for tensor in Tensor::ALL {
        let output = tensor == Tensor::Outputs;
        let Some(set) = arch.channels(level, !output) else {
            continue;
        };
        let Some(link) = set.link(tensor) else { continue };
        let slot = if set.per_tensor() { tensor as usize } else { 0 } + if output && !bus { 3 } else { 0 };
        let cycles = link.width.cycles(problem.touched(tensor), arch.bits(tensor, false));
        channels[slot] += (cycles as f64 * ratio / arch.instances(level) as f64).floor() as u64;
    }
    channels.into_iter().max().unwrap_or(0)
}
