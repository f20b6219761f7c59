//! The model `exact`.

mod burst;
mod classes;
mod nest;
mod tally;
mod traffic;
mod walk;
mod window;

use cyclonest_arch::{Accelerator, Counts, Mapping};
use cyclonest_workloads::Problem;

use self::nest::Nest;
use self::tally::Tally;
use self::traffic::{Hardware, Traffic};
use super::{CostError, CostModel, Estimate};

/// Evaluates mappings; keeps its memory from one to the next.
#[derive(Debug, Clone, Default)]
pub struct Evaluator {
    nest: Nest,
    hardware: Hardware,
    traffic: Traffic,
    tally: Tally,
}

impl Evaluator {
    /// An evaluator without any memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Evaluates.
    ///
    /// # Errors
    /// If invalid.
    pub fn evaluate(&mut self, problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<(), CostError> {
        self.nest.set(problem, arch, mapping)?;
        self.hardware.set(arch);
        self.tally.clear(arch.levels.len());
        self.traffic
            .count(&self.nest, problem, mapping, &self.hardware, &mut self.tally);
        burst::count(&self.nest, problem, mapping, self.hardware.event, &mut self.tally);
        Ok(())
    }

    /// The counts of the last mapping.
    #[must_use]
    pub fn counts(&self, arch: &Accelerator) -> Counts {
        self.tally.to_counts(arch)
    }
}

/// The model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exact;

impl CostModel for Exact {
    fn name(&self) -> &str {
        "exact"
    }

    fn evaluate(&self, problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Estimate, CostError> {
        let mut evaluator = Evaluator::new();
        evaluator.evaluate(problem, arch, mapping)?;
        let counts = evaluator.counts(arch);
        Ok(Estimate {
            cycles: 0.0,
            energy_pj: counts.energy_pj(arch),
            counts: Some(counts),
            parts: Vec::new(),
        })
    }
}
