//! Streams and the paths of their transfers.

use cyclonest_arch::Width;
use cyclonest_workloads::{Dim, DimMap, Tensor};

use crate::cost::exact::hardware::PLAIN;
use crate::cost::exact::nest::MAX_LEVELS;
use crate::cost::exact::window::AffineAxis;

/// Read port, networks, write port.
const MAX_STAGES: usize = MAX_LEVELS + 2;

/// One stage of a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stage {
    pub(super) resource: usize,
    pub(super) level: usize,
    pub(super) width: Width,
    /// Machine cycles per cycle of the resource.
    pub(super) ratio: f64,
    /// From entering the stage to entering the next one.
    pub(super) latency: i64,
    /// From entering the stage to the end of the path.
    pub(super) onward: i64,
    /// Transfers that pass one instance of the resource for each one that a child gets.
    pub(super) passes: f64,
    /// At the end of drains of which some are read-modify-writes: read port and its width, and their share.
    pub(super) modify: Option<(usize, Width, f64)>,
    /// True for a port of the children: each member of a group has its own.
    pub(super) own: bool,
    /// True if transfers reach the resource in another order than they were requested in.
    pub(super) meets: bool,
}

/// The way of a transfer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    pub(super) stages: [Stage; MAX_STAGES],
    pub(super) len: usize,
}

const NO_STAGE: Stage = Stage {
    resource: 0,
    level: 0,
    width: Width::Unlimited,
    ratio: 1.0,
    latency: 0,
    onward: 0,
    passes: 1.0,
    modify: None,
    own: false,
    meets: false,
};

impl Path {
    pub(super) const EMPTY: Path = Path {
        stages: [NO_STAGE; MAX_STAGES],
        len: 0,
    };

    pub(super) fn push(&mut self, stage: Stage) {
        self.stages[self.len] = stage;
        self.len += 1;
    }

    /// Sums up the latencies.
    pub(super) fn finish(&mut self) {
        let mut onward = 0;
        for stage in self.stages[..self.len].iter_mut().rev() {
            onward += stage.latency;
            stage.onward = onward;
        }
    }

    pub(super) fn stages(&self) -> &[Stage] {
        &self.stages[..self.len]
    }
}

impl Stage {
    /// Cycles that one transfer occupies the stage.
    #[inline]
    pub(super) fn cycles(&self, elements: u64, bits: u64) -> i64 {
        let cycles = self.width.cycles(elements, bits);
        if self.ratio == 1.0 {
            cycles as i64
        } else {
            (cycles as f64 * self.ratio).ceil() as i64
        }
    }
}

/// One tensor between two neighbouring levels that keep it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    pub(super) tensor: Tensor,
    pub(super) parent: usize,
    pub(super) child: usize,
    /// True if the child does not keep the tensor (rules 6 and 7).
    pub(super) streamed: bool,
    /// The loops that change the child's tile are the first so many.
    pub(super) turns: usize,
    pub(super) slots: usize,
    pub(super) fifo: u64,
    pub(super) halo: bool,
    /// Fills and fetches.
    pub(super) down: Path,
    /// Drains.
    pub(super) up: Path,
    /// Transfers per parent instance for each one that a child gets or sends.
    pub(super) groups: (f64, f64),
    /// Read-modify-writes at the parent among `groups.1`.
    pub(super) modifying: f64,
    /// Bits of an element: partial and final.
    pub(super) bits: (u64, u64),
    /// Elements that are moved in a streamed step with full tiles.
    pub(super) full: f64,
    /// Extents of the child's tile.
    pub(super) extent: DimMap<u64>,
    /// Without padding along an axis that is spread over the instances: the first one is not like the others there.
    pub(super) axes: [AffineAxis; 2],
}

impl Stream {
    /// Bits of an element, of a partial sum if `partial`.
    pub(super) fn bits(&self, partial: bool) -> u64 {
        if partial { self.bits.0 } else { self.bits.1 }
    }

    /// Elements of the tile at `at`; for inputs without regard to padding if they are streamed.
    #[inline]
    pub(super) fn elements(&self, at: &DimMap<u64>, bounds: &DimMap<u64>) -> u64 {
        if self.streamed && self.tensor != Tensor::Outputs {
            let mut elements = self.full;
            for dim in Dim::ALL {
                let left = bounds[dim] - at[dim];
                if left < self.extent[dim] {
                    elements *= left as f64 / self.extent[dim] as f64;
                }
            }
            return elements.round() as u64;
        }
        let extent = |dim: Dim| self.extent[dim].min(bounds[dim] - at[dim]);
        let plain: u64 = PLAIN[self.tensor as usize].iter().map(|&dim| extent(dim)).product();
        if self.tensor != Tensor::Inputs {
            return plain;
        }
        let rows = self.axes[0].rows(at[Dim::P], extent(Dim::P), at[Dim::R], extent(Dim::R));
        let columns = self.axes[1].rows(at[Dim::Q], extent(Dim::Q), at[Dim::S], extent(Dim::S));
        plain * rows.count * columns.count
    }

    /// Elements of the tile of inputs at `to` that are not part of the one at `from`.
    pub(super) fn fresh(&self, from: &DimMap<u64>, to: &DimMap<u64>, bounds: &DimMap<u64>) -> u64 {
        let plain = PLAIN[Tensor::Inputs as usize];
        let all = self.elements(to, bounds);
        if plain.iter().any(|&dim| from[dim] != to[dim]) {
            return all;
        }
        let extent = |at: &DimMap<u64>, dim: Dim| self.extent[dim].min(bounds[dim] - at[dim]);
        let mut common: u64 = plain.iter().map(|&dim| extent(to, dim)).product();
        for (axis, (p, r)) in self.axes.iter().zip([(Dim::P, Dim::R), (Dim::Q, Dim::S)]) {
            let rows = |at: &DimMap<u64>| axis.rows(at[p], extent(at, p), at[r], extent(at, r));
            common *= axis.common(&rows(from), &rows(to));
        }
        all - common
    }
}
