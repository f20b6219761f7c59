//! Discrete-event, cycle-level simulation of a mapped layer.

#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench;
mod cycle;
mod engine;
#[cfg(feature = "mutate")]
#[doc(hidden)]
pub mod mutate;
#[cfg(not(feature = "mutate"))]
mod mutate;
mod observe;
mod outcome;
mod plan;
mod relative;
pub mod streaming;
mod wheel;

pub use cycle::Cycle;
pub use observe::{Buffer, Observer, Silent, Skipped, StageInfo, StageKind, TransferInfo, TransferKind};
pub use outcome::{Outcome, StallReason, Values};

use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_workloads::Problem;

/// What to simulate besides time and counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Move integers through the buffers and compare the result with a direct convolution (rule 25).
    pub check_values: bool,
    /// Whether to skip stretches in which the machine's state recurs.
    pub fast_forward: FastForward,
    /// Seed of the integers.
    pub seed: u64,
    /// A fault to inject, for tests of the checks themselves.
    pub fault: Option<Fault>,
}

/// Exact fast-forward (rule 27): the outcome is the same with and without, apart from what it says of skipping.
///
/// Data checks and faults always simulate everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FastForward {
    /// Simulate every event.
    #[default]
    Off,
    /// Look for recurrences where it pays.
    On,
    /// Look at every crossing of every loop, however much that costs; for tests.
    Eager,
}

/// A fault of the simulated machine. Transfers are numbered in the order of their requests, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// This transfer arrives without its data: the data check must notice.
    DropData(u64),
    /// This transfer never arrives: the machine must come to a deadlock that is reported.
    LoseTransfer(u64),
}

/// Why a simulation has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The mapping does not fit the problem or the machine; every violation.
    #[error("invalid mapping:\n{}", .0.join("\n"))]
    Invalid(Vec<String>),
    /// Work is left and nothing can move (rule 26); the chain of blame.
    #[error("deadlock at cycle {cycle}: {chain}")]
    Deadlock {
        /// When the last event happened.
        cycle: u64,
        /// Who waits for whom.
        chain: String,
    },
}

/// Simulates `mapping` of `problem` on `arch`.
///
/// # Errors
/// If the mapping is invalid or the machine deadlocks.
pub fn simulate(
    problem: &Problem,
    arch: &Accelerator,
    mapping: &Mapping,
    options: Options,
) -> Result<Outcome, SimError> {
    simulate_observed(problem, arch, mapping, options, &mut Silent)
}

/// Simulates `mapping` of `problem` on `arch` and tells `observer` what happens.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_observed(
    problem: &Problem,
    arch: &Accelerator,
    mapping: &Mapping,
    options: Options,
    observer: &mut impl Observer,
) -> Result<Outcome, SimError> {
    build(problem, arch, mapping, options)?.run(arch, observer)
}

/// Checks the mapping and loads it into the machine.
fn build(
    problem: &Problem,
    arch: &Accelerator,
    mapping: &Mapping,
    options: Options,
) -> Result<engine::Built, SimError> {
    if arch.event_level() == 0 {
        return Err(SimError::Invalid(vec![
            "the PE level must not be the outermost level".into(),
        ]));
    }
    let violations = mapping.check(problem, arch);
    if !violations.is_empty() {
        return Err(SimError::Invalid(violations.iter().map(ToString::to_string).collect()));
    }
    engine::Built::new(problem, arch, mapping, options)
}
