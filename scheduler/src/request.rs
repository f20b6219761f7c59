//! The contract of a scheduler.

use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_workloads::Problem;
use serde::{Deserialize, Serialize};

use crate::cost::{CostModel, Estimate};

/// What a schedule is judged by; smaller is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Objective {
    /// Latency.
    #[default]
    Cycles,
    /// Energy.
    Energy,
    /// Energy × latency.
    Edp,
}

/// What a scheduler is asked for.
pub struct Request<'a> {
    /// The loop nest to map.
    pub problem: &'a Problem,
    /// The machine to map it onto.
    pub arch: &'a Accelerator,
    /// What to minimise.
    pub objective: Objective,
    /// The cost model that judges candidates; `None` where the scheduler needs none.
    pub oracle: Option<&'a dyn CostModel>,
    /// Evaluations that may be spent; never seconds, so that the result does not depend on the machine.
    pub budget: u64,
    /// Seed of everything random.
    pub seed: u64,
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("problem", self.problem)
            .field("arch", &self.arch.name)
            .finish_non_exhaustive()
    }
}

/// What a scheduler found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scheduled {
    /// The mapping.
    pub mapping: Mapping,
    /// What the oracle says of it, if there was one.
    pub estimate: Option<Estimate>,
    /// Mappings tried.
    pub tried: u64,
    /// Of them, valid ones.
    pub valid: u64,
}

/// Why no mapping was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// No mapping of the problem fits the machine.
    #[error("no valid mapping: {0}")]
    Infeasible(String),
}

/// Maps one problem onto one machine.
pub trait Scheduler: Sync {
    /// Its name, as `--scheduler` takes it.
    fn name(&self) -> &str;

    /// Finds a mapping. Same request, same answer, on any number of threads.
    ///
    /// # Errors
    /// If no valid mapping was found; the message says what does not fit.
    fn schedule(&self, request: &Request<'_>) -> Result<Scheduled, ScheduleError>;
}
