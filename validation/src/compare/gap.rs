//! Where the cycles of a simulation went, and which of them a model did not see.

use std::collections::BTreeMap;

use cyclonest_arch::Accelerator;
use cyclonest_scheduler::cost::Estimate;
use cyclonest_sim::{Outcome, StallReason};
use serde::{Deserialize, Serialize};

/// The cycles of a simulation, averaged over the PEs that have work; the parts sum to the cycles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Breakdown {
    /// Computing, and idle after the PE's own last burst until the last burst of all.
    pub compute: f64,
    /// Before the first burst.
    pub first_fill: f64,
    /// Waits between bursts, by what held the PE up.
    pub waits: BTreeMap<String, f64>,
    /// From the end of the last burst of all on.
    pub last_drain: f64,
    /// Share of the cycles in which the PEs with work compute.
    pub computing: f64,
}

/// The part of a latency in which simulation and model differ most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contributor {
    /// `compute`, `first fill`, `last drain`, or what is waited for: `port of DRAM (Weights)`, `network below GB
    /// (Inputs)`, `partial sums at GB`. `overrated: …` where the model waits longer than the simulation.
    pub what: String,
    /// Simulated − estimated cycles of this part.
    pub cycles: f64,
}

impl Breakdown {
    /// Of an outcome on `arch`.
    #[must_use]
    pub fn of(outcome: &Outcome, arch: &Accelerator) -> Self {
        let stalls = |reason| outcome.stall_cycles.get(&reason).copied().unwrap_or(0);
        let cycles = outcome.cycles.max(1) as f64;
        let working = (outcome.pes as f64 - stalls(StallReason::Unmapped) as f64 / cycles).max(1.0);
        let mut waits = BTreeMap::new();
        for (&reason, &stalled) in &outcome.stall_cycles {
            if matches!(reason, StallReason::Finished | StallReason::Unmapped) {
                continue;
            }
            let filling = outcome.fill_stall_cycles.get(&reason).copied().unwrap_or(0);
            if stalled > filling {
                *waits.entry(describe(reason, arch)).or_insert(0.0) += (stalled - filling) as f64 / working;
            }
        }
        let last_drain = outcome.drain_cycles as f64;
        let ended = stalls(StallReason::Finished) as f64 / working - last_drain;
        let busy = outcome.busy_cycles as f64 / working;
        Breakdown {
            compute: busy + ended,
            first_fill: outcome.fill_stall_cycles.values().sum::<u64>() as f64 / working,
            waits,
            last_drain,
            computing: busy / cycles,
        }
    }

    /// The largest difference to a model that said `estimate`. A model that does not tell its parts apart is taken to
    /// compute as the simulation does and to wait for the rest.
    #[must_use]
    pub fn largest_gap(&self, estimate: &Estimate) -> Contributor {
        let part = |name: &str| estimate.parts.iter().find(|p| p.0 == name).map(|p| p.1);
        let compute = part("compute").unwrap_or(self.compute.min(estimate.cycles));
        let (fill, drain) = (part("first fill").unwrap_or(0.0), part("last drain").unwrap_or(0.0));
        let waits = estimate.cycles - compute - fill - drain;
        let simulated: f64 = self.waits.values().sum();
        let longest = self.waits.iter().rev().max_by(|a, b| a.1.total_cmp(b.1));
        let waited_for = if simulated < waits {
            format!("overrated: {}", busiest(estimate).unwrap_or_else(|| "waits".to_owned()))
        } else {
            longest.map_or_else(|| "waits".to_owned(), |l| l.0.clone())
        };
        let parts = [
            (waited_for, simulated - waits),
            ("compute".to_owned(), self.compute - compute),
            ("first fill".to_owned(), self.first_fill - fill),
            ("last drain".to_owned(), self.last_drain - drain),
        ];
        let largest = parts
            .into_iter()
            .reduce(|a, b| if b.1.abs() > a.1.abs() { b } else { a });
        let (what, cycles) = largest.unwrap_or_default();
        Contributor { what, cycles }
    }
}

/// What a model takes for the bottleneck: the resource that it names, else the largest of its parts.
fn busiest(estimate: &Estimate) -> Option<String> {
    let named = estimate.parts.iter().find_map(|p| p.0.strip_prefix("busiest: "));
    if let Some(name) = named {
        return Some(name.to_owned());
    }
    let largest = estimate
        .parts
        .iter()
        .filter(|p| p.0 != "compute")
        .max_by(|a, b| a.1.total_cmp(&b.1));
    largest.map(|p| p.0.clone())
}

fn describe(reason: StallReason, arch: &Accelerator) -> String {
    let name = |level: usize| &arch.levels[level].name;
    match reason {
        StallReason::Slot { tensor, level } => format!("slot of {} ({tensor})", name(level)),
        StallReason::Port { tensor, level } => format!("port of {} ({tensor})", name(level)),
        StallReason::Network { tensor, level } => format!("network below {} ({tensor})", name(level)),
        StallReason::InFlight { tensor, level } => format!("in flight from {} ({tensor})", name(level)),
        StallReason::PartialSum { level } => format!("partial sums at {}", name(level)),
        StallReason::Pipeline => "MAC pipeline".to_owned(),
        StallReason::Finished | StallReason::Unmapped => reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclonest_scheduler::Request;
    use cyclonest_scheduler::cost::by_name;
    use cyclonest_workloads::{DimMap, Problem};

    #[test]
    fn parts_sum_to_the_cycles_on_every_machine() {
        let problem = Problem::new(DimMap([1, 1, 13, 6, 9, 7, 3, 3]));
        for name in ["simba", "eyeriss", "nvdla_like", "small3"] {
            let arch = cyclonest_arch::bundled::load(name).unwrap();
            for scheduler in ["greedy", "random:naive"] {
                let scheduler = cyclonest_scheduler::by_name(scheduler).unwrap();
                let mapping = scheduler.schedule(&Request::new(&problem, &arch)).unwrap().mapping;
                let outcome = cyclonest_sim::simulate(&problem, &arch, &mapping, Default::default()).unwrap();
                let b = Breakdown::of(&outcome, &arch);
                let sum = b.compute + b.first_fill + b.last_drain + b.waits.values().sum::<f64>();
                assert!(
                    (sum - outcome.cycles as f64).abs() < 1e-6 * sum,
                    "{name}: {b:?} {}",
                    outcome.cycles
                );
                assert!(b.first_fill > 0.0 && b.last_drain > 0.0 && b.computing > 0.0 && b.computing < 1.0);
                let exact = by_name("exact").unwrap().evaluate(&problem, &arch, &mapping).unwrap();
                assert!(b.largest_gap(&exact).cycles.abs() <= outcome.cycles as f64);
            }
        }
    }

    #[test]
    fn the_part_that_the_model_leaves_out_is_named() {
        let breakdown = Breakdown {
            compute: 100.0,
            first_fill: 30.0,
            waits: BTreeMap::from([
                ("port of DRAM (Weights)".to_owned(), 50.0),
                ("MAC pipeline".to_owned(), 2.0),
            ]),
            last_drain: 8.0,
            computing: 0.5,
        };
        let estimate = |cycles: f64, parts: &[(&str, f64)]| Estimate {
            cycles,
            energy_pj: 0.0,
            counts: None,
            parts: parts.iter().map(|p| (p.0.to_owned(), p.1)).collect(),
        };
        let gap = |e: &Estimate| {
            let c = breakdown.largest_gap(e);
            (c.what, c.cycles)
        };
        let compute_only = estimate(100.0, &[("compute", 100.0)]);
        assert_eq!(gap(&compute_only), ("port of DRAM (Weights)".to_owned(), 52.0));
        let waits = estimate(152.0, &[("compute", 100.0), ("DRAM", 152.0)]);
        assert_eq!(gap(&waits), ("first fill".to_owned(), 30.0));
        let too_much = estimate(
            250.0,
            &[
                ("compute", 100.0),
                ("first fill", 30.0),
                ("busiest: GB read port W", 220.0),
            ],
        );
        assert_eq!(gap(&too_much), ("overrated: GB read port W".to_owned(), -68.0));
        assert_eq!(gap(&estimate(60.0, &[])), ("port of DRAM (Weights)".to_owned(), 52.0));
    }
}
