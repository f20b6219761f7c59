//! The simulator as a cost model: slow, and right.

use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_scheduler::cost::{CostError, CostModel, Estimate};
use cyclonest_sim::{FastForward, Options};
use cyclonest_workloads::Problem;

/// The simulator as a cost model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulated;

impl CostModel for Simulated {
    fn name(&self) -> &str {
        "sim"
    }

    fn evaluate(&self, problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Estimate, CostError> {
        let options = Options {
            fast_forward: FastForward::On,
            ..Options::default()
        };
        let outcome = cyclonest_sim::simulate(problem, arch, mapping, options)
            .map_err(|error| CostError::Invalid(error.to_string()))?;
        Ok(Estimate {
            cycles: outcome.cycles as f64,
            energy_pj: outcome.counts.energy_pj(arch),
            counts: Some(outcome.counts),
            parts: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclonest_scheduler::Request;

    #[test]
    fn the_simulator_is_a_cost_model() {
        let arch = cyclonest_arch::bundled::load("small3").expect("bundled");
        let problem = Problem::new(cyclonest_workloads::DimMap([1, 1, 4, 4, 4, 4, 1, 1]));
        let greedy = cyclonest_scheduler::by_name("greedy").expect("greedy");
        let mapping = greedy.schedule(&Request::new(&problem, &arch)).expect("mapped").mapping;
        let estimate = Simulated.evaluate(&problem, &arch, &mapping).expect("simulated");
        let outcome = cyclonest_sim::simulate(&problem, &arch, &mapping, Options::default()).expect("simulated");
        assert_eq!(estimate.cycles, outcome.cycles as f64);
        assert_eq!(estimate.energy_pj, outcome.counts.energy_pj(&arch));
    }
}
