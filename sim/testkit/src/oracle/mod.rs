//! The oracle: all rules of `docs/timing.md`, stepped cycle by cycle, slow and plain.
//!
//! It shares only `Problem`, `Mapping`, `Accelerator` and the counters with the simulator. Everything else is done
//! again in the most obvious way: tiles are sets of elements, residencies are found by walking every step of every
//! instance, bursts by walking every multiply-accumulate, and time by looking at everything in every cycle.
//!
//! How it reads the rules where they leave room:
//!
//! - Rule 13: heads that reach a stage come first in a cycle, in the order in which the stages before were granted.
//!   The sweep opens at zero once, then works in passes: in each pass every stream may request once; drains first,
//!   then by child level, then inputs, outputs (fetches), weights, then first step, then instance; until a pass
//!   requests nothing. Slots that a sweep frees (a port of width 0 cycles, an output FIFO) count from the next cycle.
//! - Rules 6 and 7: what E bypasses has two slots; an output's is freed when its drain has left the first network.
//! - Rule 9: the FIFO takes residencies in step order while the sum of their new elements fits; a residency counts as
//!   arrived once it has moved into a slot.
//! - Rule 14: on one port for both directions reads and updates add up, at the narrower width.
//! - Rule 18: a visit's drain may be requested in the sweep that requests its fetch.
//! - Rule 19: on one port for both directions a read-modify-write takes the read's and the write's cycles.
//! - Rule 20: a drain is final if no residency of its tile, at any instance of the level, starts later.

#[doc = include_str!("inner.md")]
mod burst;
mod machine;
mod nest;
mod plan;
mod run;
mod tally;
mod values;

use std::collections::BTreeMap;
use std::fmt;

use cyclonest_arch::{Accelerator, Counts, Mapping, Reduction};
use cyclonest_workloads::{Problem, Tensor};

/// What to simulate.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Seed of the integers in the tensors.
    pub seed: u64,
    /// The transfer (in order of requests) that is to lose its data.
    pub drop_transfer: Option<usize>,
}

/// Why there is no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OracleError {
    /// The mapping breaks a rule.
    #[error("invalid mapping: {0}")]
    Invalid(String),
    /// Work is left and nothing moves (rule 26).
    #[error("deadlock at cycle {cycle}: {chain}")]
    Deadlock {
        /// The cycle.
        cycle: u64,
        /// What every PE waits for.
        chain: String,
    },
}

/// What the oracle saw.
#[derive(Debug, Clone, PartialEq)]
pub struct OracleOutcome {
    /// Last arrival at the outermost level (rule 22).
    pub cycles: u64,
    /// Physical PEs.
    pub pes: u64,
    /// PE-cycles spent in bursts.
    pub busy_cycles: u64,
    /// PE-cycles by the reason of rule 23.
    pub stall_cycles: BTreeMap<Stall, u64>,
    /// Every counter.
    pub counts: Counts,
    /// Occupied cycles of the busiest instance of every port and channel.
    pub occupancy: BTreeMap<String, u64>,
    /// First fault in the data (rule 25); `None` if all outputs equal the direct convolution.
    pub fault: Option<String>,
    /// Fills, fetches and drains.
    pub transfers: u64,
    /// Number of residencies of every stream: one tensor at one instance of one level.
    pub residencies: Vec<usize>,
    /// PE-cycles stalled after the first and before the last burst of a PE.
    pub stalled_between_bursts: u64,
    /// Sum of all occupancies, latencies, bursts and pipelines: what the cycles cannot exceed.
    pub sum_of_parts: u64,
    /// What happened, in order.
    pub log: Vec<String>,
}

/// Why a PE does not compute, written as the engine writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stall {
    /// No slot free for the tensor at a level.
    Slot {
        /// The operand.
        tensor: Tensor,
        /// The level.
        level: usize,
    },
    /// Waiting for the grant of a port of a level.
    Port {
        /// The operand.
        tensor: Tensor,
        /// The level.
        level: usize,
    },
    /// Waiting for the grant of the network below a level.
    Network {
        /// The operand.
        tensor: Tensor,
        /// The level.
        level: usize,
    },
    /// On its way from a level.
    InFlight {
        /// The operand.
        tensor: Tensor,
        /// The level.
        level: usize,
    },
    /// A partial sum of the visit before is on its way to a level.
    PartialSum {
        /// The level.
        level: usize,
    },
    /// The output slot waits for the MAC pipeline.
    Pipeline,
    /// No work left.
    Finished,
    /// No work at all.
    Unmapped,
}

impl Stall {
    /// The missing operand.
    #[must_use]
    pub const fn operand(self) -> Option<Tensor> {
        match self {
            Stall::Slot { tensor, .. }
            | Stall::Port { tensor, .. }
            | Stall::Network { tensor, .. }
            | Stall::InFlight { tensor, .. } => Some(tensor),
            Stall::PartialSum { .. } | Stall::Pipeline => Some(Tensor::Outputs),
            Stall::Finished | Stall::Unmapped => None,
        }
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stall::Slot { tensor, level } => write!(f, "slot:{tensor}@L{level}"),
            Stall::Port { tensor, level } => write!(f, "port:{tensor}@L{level}"),
            Stall::Network { tensor, level } => write!(f, "network:{tensor}@L{level}"),
            Stall::InFlight { tensor, level } => write!(f, "in_flight:{tensor}@L{level}"),
            Stall::PartialSum { level } => write!(f, "partial_sum:Outputs@L{level}"),
            Stall::Pipeline => write!(f, "pipeline"),
            Stall::Finished => write!(f, "finished"),
            Stall::Unmapped => write!(f, "unmapped"),
        }
    }
}

/// Runs the oracle.
///
/// # Errors
/// If the mapping revisits an output inside a burst, or nothing moves any more.
pub fn simulate(
    problem: &Problem,
    arch: &Accelerator,
    mapping: &Mapping,
    options: Options,
) -> Result<OracleOutcome, OracleError> {
    if arch.event_level() == 0 {
        return Err(OracleError::Invalid(
            "the outermost level cannot be the PE level".into(),
        ));
    }
    let nest = nest::Nest::new(problem, arch, mapping);
    let plan = plan::Plan::new(&nest).map_err(OracleError::Invalid)?;
    run::run(&nest, &plan, options)
}

/// True if the network below `level` joins partial sums.
fn reduces(nest: &nest::Nest<'_>, level: usize) -> bool {
    nest.arch.levels[level]
        .below
        .as_ref()
        .is_some_and(|n| n.reduction != Reduction::None)
}

#[cfg(test)]
mod tests;
