//! The contract of a scheduler.

use std::num::NonZeroUsize;

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

/// Power of the figure that is not the objective, in [`Objective::lean`].
const LEAN: f64 = 0.01;

impl Objective {
    /// The figure of `estimate` that is lowered: cycles, pJ, or their product.
    #[must_use]
    pub fn score(self, estimate: &Estimate) -> f64 {
        match self {
            Objective::Cycles => estimate.cycles,
            Objective::Energy => estimate.energy_pj,
            Objective::Edp => estimate.cycles * estimate.energy_pj,
        }
    }

    /// The score with a slight preference for less of the other figure: twice the energy counts as 0.7 % of the cycles,
    /// and the other way round. Searches that meet many equally good mappings go by it.
    pub(crate) fn lean(self, estimate: &Estimate) -> f64 {
        let other = match self {
            Objective::Cycles => estimate.energy_pj,
            Objective::Energy => estimate.cycles,
            Objective::Edp => 1.0,
        };
        self.score(estimate) * other.max(1.0).powf(LEAN)
    }
}

/// Hears of progress while a scheduler runs.
pub trait Observer: Sync {
    /// A better mapping was found after `evaluations` evaluations of the oracle; its score is `score`. Restarts that
    /// run at the same time report each for itself.
    fn improved(&self, evaluations: u64, score: f64);
}

/// What a scheduler is asked for.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The loop nest to map.
    pub problem: &'a Problem,
    /// The machine to map it onto.
    pub arch: &'a Accelerator,
    /// What to minimise.
    pub objective: Objective,
    /// The cost model that judges candidates; `None` for the scheduler's own choice: [`Quick`](crate::cost::exact::Quick)
    /// where it judges candidates at all.
    pub oracle: Option<&'a dyn CostModel>,
    /// Evaluations of the oracle that may be spent, never seconds, so that the result does not depend on the computer;
    /// `None` for the scheduler's own default.
    pub budget: Option<u64>,
    /// Seed of everything random.
    pub seed: u64,
    /// Threads that the scheduler may use; the result does not depend on them.
    pub threads: NonZeroUsize,
    /// Hears of every improvement.
    pub observer: Option<&'a dyn Observer>,
    /// Decides at the end between the best few candidates of different parts of the search, where the oracle may err:
    /// the simulator, as a rule. `None` leaves the decision to the oracle.
    pub referee: Option<&'a dyn CostModel>,
}

impl<'a> Request<'a> {
    /// A request with the scheduler's own oracle and budget, seed 0, one thread, for cycles.
    #[must_use]
    pub fn new(problem: &'a Problem, arch: &'a Accelerator) -> Self {
        Request {
            problem,
            arch,
            objective: Objective::Cycles,
            oracle: None,
            budget: None,
            seed: 0,
            threads: NonZeroUsize::MIN,
            observer: None,
            referee: None,
        }
    }
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("problem", self.problem)
            .field("arch", &self.arch.name)
            .field("objective", &self.objective)
            .field("oracle", &self.oracle.map(CostModel::name))
            .field("budget", &self.budget)
            .field("seed", &self.seed)
            .field("referee", &self.referee.map(CostModel::name))
            .finish_non_exhaustive()
    }
}

/// What a scheduler found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scheduled {
    /// The mapping.
    pub mapping: Mapping,
    /// What the oracle says of it, if one was asked.
    pub estimate: Option<Estimate>,
    /// Candidates drawn, valid or not.
    pub tried: u64,
    /// Of them, valid ones.
    pub valid: u64,
    /// Evaluations of the oracle.
    pub evaluations: u64,
    /// The convergence trace: evaluations so far and the oracle's score, at every improvement.
    pub convergence: Vec<(u64, f64)>,
    /// What the referee says of it, if there was one to decide.
    #[serde(default)]
    pub refereed: Option<Estimate>,
    /// What is proven of the result, where the scheduler proves something.
    pub proof: Option<Proof>,
}

/// An optimum of a scheduler's own objective, and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Value of the best solution.
    pub objective: f64,
    /// No solution has a smaller value.
    pub bound: f64,
    /// True if the search ended with a proof: the gap is at most the absolute gap that was asked for.
    pub proven: bool,
    /// Branch-and-bound nodes, or points enumerated; none where the solver does not tell (HiGHS).
    pub nodes: Option<u64>,
}

impl Proof {
    /// Distance of the objective from its bound.
    #[must_use]
    pub fn gap(&self) -> f64 {
        (self.objective - self.bound).max(0.0)
    }
}

/// Why no mapping was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// No mapping of the problem fits the machine.
    #[error("no valid mapping: {0}")]
    Infeasible(String),
    /// The search ended before it met a valid mapping; there may be one.
    #[error("no valid mapping was found: {0}")]
    NotFound(String),
    /// A program outside failed.
    #[error("external scheduler: {0}")]
    External(String),
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
