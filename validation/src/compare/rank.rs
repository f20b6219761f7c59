//! Whether a model puts the mappings of a layer into the right order.

use std::sync::Mutex;

use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_scheduler::cost::{CostError, CostModel, Estimate};
use cyclonest_scheduler::{Random, Request, ScheduleError, Scheduler};
use cyclonest_sim::SimError;
use cyclonest_workloads::{DistinctLayer, Problem};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Agreement, Interval, pair, run};

/// Many mappings of one layer on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankRow {
    /// Machine.
    pub arch: String,
    /// Network.
    pub network: String,
    /// Layer.
    pub layer: String,
    /// Mappings simulated.
    pub mappings: usize,
    /// Fewest simulated cycles among them.
    pub best: u64,
    /// Most.
    pub worst: u64,
    /// One per model, in the order asked for.
    pub verdicts: Vec<RankVerdict>,
}

/// One model on these mappings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankVerdict {
    /// The model.
    pub model: String,
    /// Mappings that it refuses; the others are judged.
    pub refused: usize,
    /// Over the mappings that it judges.
    pub agreement: Agreement,
    /// Simulated cycles of its favourite (the first, if there are several) ÷ `best`; at least 1. `None` if it refuses
    /// all.
    pub regret: Option<f64>,
}

impl RankVerdict {
    /// Kendall's τ-b of estimates and simulated cycles.
    #[must_use]
    pub fn tau(&self) -> Option<Interval> {
        self.agreement.kendall
    }
}

/// Hears of every candidate of a search.
struct Listener {
    heard: Mutex<Vec<Mapping>>,
}

impl CostModel for Listener {
    fn name(&self) -> &str {
        "listener"
    }

    fn evaluate(&self, _: &Problem, _: &Accelerator, mapping: &Mapping) -> Result<Estimate, CostError> {
        self.heard
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(mapping.clone());
        // No candidate is better than another: the search itself has no say in what is drawn.
        Ok(Estimate {
            cycles: 0.0,
            energy_pj: 0.0,
            counts: None,
            parts: Vec::new(),
        })
    }
}

/// `count` random valid mappings: the candidates that the scheduler `random` draws, good and bad ones.
///
/// # Errors
/// If there are none.
pub fn sample(problem: &Problem, arch: &Accelerator, count: u64, seed: u64) -> Result<Vec<Mapping>, ScheduleError> {
    let listener = Listener {
        heard: Mutex::new(Vec::new()),
    };
    Random.schedule(&Request {
        oracle: Some(&listener),
        budget: Some(count),
        seed,
        ..Request::new(problem, arch)
    })?;
    Ok(listener
        .heard
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// `count` of the numbers below `of`, drawn without regard to what they stand for, in ascending order; all if there are
/// no more.
#[must_use]
pub fn draw(of: usize, count: usize, seed: u64) -> Vec<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut drawn: Vec<usize> = (0..of).collect();
    drawn.shuffle(&mut rng);
    drawn.truncate(count);
    drawn.sort_unstable();
    drawn
}

/// Simulates `mappings` of `layer` and lets the models order them.
///
/// # Errors
/// If a mapping is invalid or the machine deadlocks.
pub fn rank(
    (arch, network): (&Accelerator, &str),
    layer: &DistinctLayer,
    mappings: &[Mapping],
    models: &[&dyn CostModel],
    seed: u64,
) -> Result<RankRow, SimError> {
    let problem = &layer.problem;
    let simulated: Vec<u64> = mappings
        .iter()
        .map(|mapping| run(problem, arch, mapping).map(|outcome| outcome.cycles))
        .collect::<Result<_, _>>()?;
    let best = simulated.iter().copied().min().unwrap_or(0);
    let verdicts = models.iter().map(|model| {
        let judged = mappings.iter().zip(&simulated).filter_map(|(mapping, &cycles)| {
            let estimate = model.evaluate(problem, arch, mapping).ok()?;
            Some(pair(cycles, estimate.cycles))
        });
        let pairs: Vec<_> = judged.collect();
        let favourite = pairs.iter().min_by(|a, b| a.estimated.total_cmp(&b.estimated));
        RankVerdict {
            model: model.name().to_owned(),
            refused: mappings.len() - pairs.len(),
            agreement: Agreement::of(&pairs, model.in_cycles(), seed),
            regret: favourite.map(|pair| pair.measured / best.max(1) as f64),
        }
    });
    Ok(RankRow {
        arch: arch.name.clone(),
        network: network.to_owned(),
        layer: layer.name.clone(),
        mappings: mappings.len(),
        best,
        worst: simulated.iter().copied().max().unwrap_or(0),
        verdicts: verdicts.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::{Cycles, layer};

    #[test]
    fn a_perfect_model_has_no_regret_and_its_opposite_the_most() {
        let arch = cyclonest_arch::bundled::load("small3").unwrap();
        let layer = layer();
        let mappings = sample(&layer.problem, &arch, 40, 1).unwrap();
        assert_eq!(mappings.len(), 40);
        assert_eq!(mappings, sample(&layer.problem, &arch, 40, 1).unwrap());
        let models: [&dyn CostModel; 2] = [&Cycles(1.0), &Cycles(-1.0)];
        let row = rank((&arch, "net"), &layer, &mappings, &models, 0).unwrap();
        let [right, wrong] = &row.verdicts[..] else { panic!() };
        assert_eq!((right.regret, right.tau().unwrap().value), (Some(1.0), 1.0));
        assert_eq!(wrong.regret, Some(row.worst as f64 / row.best as f64));
        assert_eq!(wrong.tau().unwrap().value, -1.0);
        assert!(row.worst > row.best);
    }

    #[test]
    fn a_draw_repeats_for_a_seed_only_and_has_no_number_twice() {
        let drawn = draw(1_000, 20, 0);
        assert_eq!(drawn, draw(1_000, 20, 0));
        assert_ne!(drawn, draw(1_000, 20, 1));
        assert!(drawn.len() == 20 && drawn.is_sorted_by(|a, b| a < b) && drawn[19] < 1_000);
        assert_eq!(draw(3, 20, 0), [0, 1, 2]);
    }

    #[test]
    fn mappings_that_a_model_refuses_are_left_out() {
        let arch = cyclonest_arch::bundled::load("small3").unwrap();
        let layer = layer();
        let mappings = sample(&layer.problem, &arch, 30, 2).unwrap();
        let maestro = cyclonest_scheduler::cost::by_name("maestro").unwrap();
        let row = rank((&arch, "net"), &layer, &mappings, &[maestro], 0).unwrap();
        let verdict = &row.verdicts[0];
        assert_eq!(verdict.refused + verdict.agreement.pairs, 30);
        assert!(verdict.refused > 0);
    }
}
