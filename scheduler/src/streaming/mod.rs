//! Optimisers of streaming designs: foldings and cuts of an HD-graph, behind one trait.
//!
//! - [`Brute`] enumerates everything and counts the space;
//! - [`Anneal`] is SAMO's simulated annealing;
//! - [`Rule`] is SAMO's rule-based search, deterministic;
//! - [`Exact`] decomposes the problem and proves its optimum.

mod anneal;
mod brute;
mod exact;
mod partition;
mod relaxation;
mod rule;
mod space;

pub use anneal::Anneal;
pub use brute::{Brute, Count, SpaceSize};
pub use exact::Exact;
pub use rule::Rule;
pub use space::{Choice, Shortage, Space};

use cyclonest_arch::streaming::{Design, Objective};
use serde::{Deserialize, Serialize};

/// What an optimiser may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Design points that may be judged; optimisers that need fewer stop by themselves.
    pub evaluations: u64,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            evaluations: 100_000,
            seed: 0,
        }
    }
}

/// What an optimiser found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The design.
    pub design: Design,
    /// Time of the batch, reconfigurations included \[µs\].
    pub time_us: f64,
    /// Design points judged.
    pub evaluations: u64,
    /// Of them, feasible ones.
    pub feasible: u64,
    /// No design is faster than this \[µs\]; equal to the time where it is proven optimal, 0 where nothing is known.
    pub bound_us: f64,
    /// When a better design was found: judged points and its time \[µs\].
    pub convergence: Vec<(u64, f64)>,
}

impl Found {
    /// Whether no design is faster.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.bound_us >= self.time_us * (1.0 - 1e-12)
    }
}

/// Why there is no design.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OptimiseError {
    /// No folding and no cut fits the platform.
    #[error("no design fits {platform}: {}", reasons(.shortages))]
    Infeasible {
        /// The platform.
        platform: String,
        /// What is missing, with the least that would do.
        shortages: Vec<Shortage>,
    },
    /// The budget was spent before a feasible design was seen.
    #[error("no feasible design among {0} judged")]
    NotFound(u64),
}

fn reasons(shortages: &[Shortage]) -> String {
    if shortages.is_empty() {
        return "each resource suffices where the others do not bind, but not all together and within the memory's bandwidth".to_owned();
    }
    shortages.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Finds foldings and cuts.
pub trait Optimiser: Sync {
    /// As `--optimiser` takes it.
    fn name(&self) -> &'static str;

    /// The best design that it finds. Same space, objective and budget, same answer.
    ///
    /// # Errors
    /// If there is no feasible design, or none was found.
    fn optimise(&self, space: &Space<'_>, objective: Objective, budget: Budget) -> Result<Found, OptimiseError>;
}

/// All optimisers.
#[must_use]
pub fn optimisers() -> Vec<Box<dyn Optimiser>> {
    vec![
        Box::new(Exact::default()),
        Box::new(Rule),
        Box::new(Anneal),
        Box::new(Brute),
    ]
}

/// The optimiser of that name.
#[must_use]
pub fn optimiser(name: &str) -> Option<Box<dyn Optimiser>> {
    optimisers().into_iter().find(|o| o.name() == name)
}
