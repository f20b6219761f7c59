//! What the model needs to know of a machine, and of what a mapping keeps where.

use cyclonest_arch::{Accelerator, Mapping, Reduction, Width};
use cyclonest_workloads::{Dim, Tensor, TensorSet};

use super::nest::MAX_LEVELS;

/// Dimensions whose settings select equal or disjoint tiles of each tensor, by [`Tensor`].
pub(super) const PLAIN: [&[Dim]; 3] = [
    &[Dim::G, Dim::K, Dim::C, Dim::R, Dim::S],
    &[Dim::N, Dim::G, Dim::C],
    &[Dim::N, Dim::G, Dim::K, Dim::P, Dim::Q],
];

/// Dimensions that a tensor does not depend on, by [`Tensor`].
pub(super) const FREE: [&[Dim]; 3] = [&[Dim::N, Dim::P, Dim::Q], &[Dim::K], &[Dim::C, Dim::R, Dim::S]];

/// What the counting needs to know of the machine.
#[derive(Debug, Clone)]
pub(super) struct Hardware {
    /// The PE level.
    pub(super) event: usize,
    /// Per level: tensors of which one pass of the network below serves several children.
    pub(super) multicast: [TensorSet; MAX_LEVELS],
    /// Per level: whether the network below adds partial sums.
    pub(super) reduces: [bool; MAX_LEVELS],
    /// Per level: tensors whose overlaps are kept.
    pub(super) halo: [TensorSet; MAX_LEVELS],
    /// Per level and tensor: width of the network below, towards the children and towards the parent.
    pub(super) widths: [[(Option<Width>, Option<Width>); 3]; MAX_LEVELS],
    /// Bits of an element: partial and final.
    pub(super) bits: [(u64, u64); 3],
    /// Per level and tensor: widths of the read and the write port.
    ports: [[(Width, Width); 3]; MAX_LEVELS],
}

impl Default for Hardware {
    fn default() -> Self {
        Hardware {
            event: 0,
            multicast: [TensorSet::EMPTY; MAX_LEVELS],
            reduces: [false; MAX_LEVELS],
            halo: [TensorSet::EMPTY; MAX_LEVELS],
            widths: [[(None, None); 3]; MAX_LEVELS],
            bits: [(0, 0); 3],
            ports: [[(Width::Unlimited, Width::Unlimited); 3]; MAX_LEVELS],
        }
    }
}

impl Hardware {
    /// Reads the machine's switches and widths; `arch` has at most [`MAX_LEVELS`] levels.
    pub(super) fn set(&mut self, arch: &Accelerator) {
        self.event = arch.event_level();
        for (l, level) in arch.levels.iter().enumerate() {
            self.multicast[l] = level.below.as_ref().map_or(TensorSet::EMPTY, |n| n.multicast);
            self.reduces[l] = level.below.as_ref().is_some_and(|n| n.reduction != Reduction::None);
            self.halo[l] = level.banks.iter().flat_map(|b| b.halo.iter()).collect();
            let (down, up) = (arch.channels(l, true), arch.channels(l, false));
            for tensor in Tensor::ALL {
                let width = |c: Option<cyclonest_arch::Channels>| c.and_then(|c| c.link(tensor)).map(|l| l.width);
                self.widths[l][tensor as usize] = (width(down), width(up));
                self.ports[l][tensor as usize] = level.bank(tensor).map_or((Width::Unlimited, Width::Unlimited), |b| {
                    (b.read_width(tensor), b.write_width(tensor))
                });
            }
        }
        self.bits = Tensor::ALL.map(|t| (arch.bits(t, true), arch.bits(t, false)));
    }

    /// Widths of the read and the write port of `tensor` at `level`.
    pub(super) fn port(&self, level: usize, tensor: Tensor) -> (Width, Width) {
        self.ports[level][tensor as usize]
    }
}

/// Per level, by [`Tensor`]: what the mapping keeps there.
pub(super) fn keeps(mapping: &Mapping) -> [[bool; 3]; MAX_LEVELS] {
    let mut keeps = [[false; 3]; MAX_LEVELS];
    for (level, keeps) in mapping.levels.iter().zip(&mut keeps) {
        *keeps = Tensor::ALL.map(|t| level.keeps.contains(t));
    }
    keeps
}
