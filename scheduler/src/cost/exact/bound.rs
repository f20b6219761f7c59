//! What no mapping can beat.

use cyclonest_arch::Accelerator;
use cyclonest_workloads::{Problem, Tensor};

/// A lower bound on the cycles of `problem` on `arch` under any mapping: the larger of
///
/// - the compute roofline, ⌈MACs ÷ lanes⌉ × interval, and
/// - the compulsory traffic of the outermost level: every element of W and I that the nest touches is read there at
///   least once and every output is written there at least once, through its ports and the network below.
#[must_use]
pub fn lower_bound(problem: &Problem, arch: &Accelerator) -> u64 {
    let mut bound = problem.macs().div_ceil(arch.lanes()) * arch.compute.interval;
    if arch.event_level() == 0 {
        return bound;
    }
    let outer = &arch.levels[0];
    let ratio = outer
        .below
        .as_ref()
        .and_then(|n| n.clock)
        .map_or(1.0, |c| arch.clock.mhz() / c.mhz());
    // Cycles per port or channel; those that tensors share add up.
    let mut ports = [0_u64; 6];
    let mut channels = [0_u64; 6];
    let bus = outer
        .below
        .as_ref()
        .is_some_and(|n| matches!(n.kind, cyclonest_arch::NetworkKind::Bus(_)));
    for tensor in Tensor::ALL {
        let elements = problem.touched(tensor);
        let bits = arch.bits(tensor, false);
        let output = tensor == Tensor::Outputs;
        if let Some(bank) = outer.bank(tensor) {
            let first = Tensor::ALL
                .into_iter()
                .find(|&t| bank.holds.contains(t))
                .unwrap_or(tensor);
            use cyclonest_arch::Ports;
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
        if let Some(set) = arch.channels(0, !output) {
            let Some(link) = set.link(tensor) else { continue };
            let slot = if set.per_tensor() { tensor as usize } else { 0 } + if output && !bus { 3 } else { 0 };
            channels[slot] += (link.width.cycles(elements, bits) as f64 * ratio).floor() as u64;
        }
    }
    for cycles in ports.into_iter().chain(channels) {
        bound = bound.max(cycles);
    }
    bound
}
