//! What a simulation measured.

use std::collections::BTreeMap;
use std::fmt;

use cyclonest_arch::Counts;
use cyclonest_workloads::Tensor;
use serde::{Deserialize, Serialize, Serializer};

/// Result of simulating one mapped layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Cycles from the first request to the last arrival at the outermost level (rule 22).
    pub cycles: u64,
    /// Physical PEs: instances of the PE level.
    pub pes: u64,
    /// PE-cycles spent computing.
    pub busy_cycles: u64,
    /// PE-cycles not spent computing, by reason (rule 23). `busy_cycles` + all of them = `pes` × `cycles`.
    pub stall_cycles: BTreeMap<StallReason, u64>,
    /// Of the stalled PE-cycles, those before the first burst of each PE: the first fill.
    pub fill_stall_cycles: BTreeMap<StallReason, u64>,
    /// Cycles from the end of the last burst of all to the end: the last drain. Part of the finished cycles of every PE.
    pub drain_cycles: u64,
    /// Accesses and traffic.
    pub counts: Counts,
    /// Occupied cycles of every port and channel, by name, the busiest instance of each.
    pub occupancy: BTreeMap<String, u64>,
    /// Verdict of the data check.
    pub values: Values,
    /// Of the cycles, those that were skipped because the machine's state had recurred.
    pub skipped_cycles: u64,
    /// Of the events, those that were skipped.
    pub skipped_events: u64,
    /// Events processed or skipped: every call of a handler of the event loop.
    pub events: u64,
    /// Transfers: fills, fetches and drains.
    pub transfers: u64,
}

/// Verdict of the data check (rule 25).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Values {
    /// Not asked for.
    NotChecked,
    /// Every output equals the direct convolution and has all its contributions.
    Equal,
    /// The first fault found.
    Different(String),
}

/// Why a PE does not compute (rule 23).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StallReason {
    /// Waiting for a free slot of `tensor` at level `level`.
    Slot {
        /// The operand.
        tensor: Tensor,
        /// Position of the level.
        level: usize,
    },
    /// The transfer waits for a port of level `level`.
    Port {
        /// The operand.
        tensor: Tensor,
        /// Position of the level.
        level: usize,
    },
    /// The transfer waits for the network below level `level`.
    Network {
        /// The operand.
        tensor: Tensor,
        /// Position of the level above the network.
        level: usize,
    },
    /// The transfer is on its way from level `level`.
    InFlight {
        /// The operand.
        tensor: Tensor,
        /// Position of the level that it left.
        level: usize,
    },
    /// A partial sum of an earlier visit is still on its way to level `level`.
    PartialSum {
        /// Position of the level.
        level: usize,
    },
    /// The output slot waits for the MAC pipeline to empty.
    Pipeline,
    /// All work of the PE is done.
    Finished,
    /// The mapping gives the PE no work.
    Unmapped,
}

impl StallReason {
    /// The operand that is missing; `None` for a PE without work.
    #[must_use]
    pub const fn operand(self) -> Option<Tensor> {
        match self {
            StallReason::Slot { tensor, .. }
            | StallReason::Port { tensor, .. }
            | StallReason::Network { tensor, .. }
            | StallReason::InFlight { tensor, .. } => Some(tensor),
            StallReason::PartialSum { .. } | StallReason::Pipeline => Some(Tensor::Outputs),
            StallReason::Finished | StallReason::Unmapped => None,
        }
    }
}

impl fmt::Display for StallReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StallReason::Slot { tensor, level } => write!(f, "slot:{tensor}@L{level}"),
            StallReason::Port { tensor, level } => write!(f, "port:{tensor}@L{level}"),
            StallReason::Network { tensor, level } => write!(f, "network:{tensor}@L{level}"),
            StallReason::InFlight { tensor, level } => write!(f, "in_flight:{tensor}@L{level}"),
            StallReason::PartialSum { level } => write!(f, "partial_sum:Outputs@L{level}"),
            StallReason::Pipeline => write!(f, "pipeline"),
            StallReason::Finished => write!(f, "finished"),
            StallReason::Unmapped => write!(f, "unmapped"),
        }
    }
}

impl Serialize for StallReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
