//! Analytical cost models: what a mapping costs, without simulating it.

pub mod cosa;
pub mod exact;
pub mod maestro;
pub mod timeloop;

use cyclonest_arch::{Accelerator, Counts, Mapping};
use cyclonest_workloads::Problem;
use serde::{Deserialize, Serialize};

/// What a model says of one mapping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Latency \[cycles\].
    pub cycles: f64,
    /// Energy \[pJ\].
    pub energy_pj: f64,
    /// Access and traffic counts, where the model gives them in our terms.
    pub counts: Option<Counts>,
    /// Named parts of the latency: occupancies, fill, drain (cycles); or of an objective.
    pub parts: Vec<(String, f64)>,
}

/// Why a model cannot judge a mapping.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CostError {
    /// The mapping violates a constraint of the model.
    #[error("invalid mapping: {0}")]
    Invalid(String),
    /// The model cannot express the mapping.
    #[error("not expressible: {0}")]
    NotExpressible(String),
}

/// An analytical cost model.
pub trait CostModel: Sync {
    /// Its name, as `--models` takes it.
    fn name(&self) -> &str;

    /// False if [`Estimate::cycles`] orders mappings but is no number of cycles.
    fn in_cycles(&self) -> bool {
        true
    }

    /// Judges `mapping` of `problem` on `arch`.
    ///
    /// # Errors
    /// If the mapping is invalid or outside what the model can express.
    fn evaluate(&self, problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Estimate, CostError>;
}

/// The models by name, as `--models` takes them, the project's own first.
const MODELS: &[&dyn CostModel] = &[
    &exact::Exact,
    &exact::Quick,
    &timeloop::TimeloopModel {
        variant: timeloop::Variant::Default,
    },
    &maestro::MaestroModel,
    &cosa::CosaModel {
        weights: cosa::Weights::ORIGINAL,
        tiles: cosa::Tiles::Elements,
    },
];

/// The model called `name`.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn CostModel> {
    MODELS.iter().copied().find(|m| m.name() == name)
}

/// Names of all models.
pub fn names() -> impl Iterator<Item = &'static str> {
    MODELS.iter().map(|m| m.name())
}
