//! Streams with the cycles for which they occupy ports and networks.

use cyclonest_workloads::Tensor;

use super::nest::MAX_LEVELS;

/// Occupied cycles along one direction of a stream, summed over all instances.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Occupancy {
    /// Read port of the sending level.
    pub(super) read: u64,
    /// Networks, by the level above.
    pub(super) networks: [u64; MAX_LEVELS],
    /// Write ports of the receiving level.
    pub(super) write: u64,
}

/// One stream: a tensor between two neighbouring levels that keep it (rule 8).
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow {
    /// The tensor.
    pub(super) tensor: Tensor,
    /// Level that is read.
    pub(super) parent: usize,
    /// Level that is filled.
    pub(super) child: usize,
    /// True if the child does not keep the tensor: every step is a residency of its own (rule 6).
    pub(super) streamed: bool,
    /// True for a stream inside the PE level, which belongs to the burst: accesses are counted, nothing else.
    pub(super) inside: bool,
    /// True if the parent stores the tensor; false inside a PE level that streams it in.
    pub(super) stored: bool,
    /// Position of the innermost loop that makes the child change its tile, for most residencies.
    pub(super) innermost: i32,
    /// Transfers towards the children: operands, and fetched partial sums.
    pub(super) transfers: u64,
    /// Of the visits of output tiles, those that fetch: fetched ÷ all.
    pub(super) fetched: f64,
    /// Elements of all transfers towards the children.
    pub(super) elements: u64,
    /// Largest transfer \[elements\].
    pub(super) largest: u64,
    /// Cycles towards the children.
    pub(super) down: Occupancy,
    /// Cycles towards the parent (outputs).
    pub(super) up: Occupancy,
    /// Most children whose sums one pass joins, per network.
    pub(super) joined: [u64; MAX_LEVELS],
    /// Read cycles at the parent for read-modify-writes.
    pub(super) modify: u64,
}

impl Flow {
    /// A stream inside the PE level.
    pub(super) fn inside(tensor: Tensor, parent: usize, child: usize, stored: bool) -> Self {
        Flow {
            inside: true,
            stored,
            ..Flow::new(tensor, parent, child, false)
        }
    }

    /// A stream that has not moved anything yet.
    pub(super) fn new(tensor: Tensor, parent: usize, child: usize, streamed: bool) -> Self {
        Flow {
            tensor,
            parent,
            child,
            streamed,
            inside: false,
            stored: true,
            innermost: super::classes::NOWHERE,
            transfers: 0,
            fetched: 0.0,
            elements: 0,
            largest: 0,
            down: Occupancy::default(),
            up: Occupancy::default(),
            joined: [1; MAX_LEVELS],
            modify: 0,
        }
    }
}
