//! Cost models against the simulation, layer by layer and over many mappings of one layer.

mod gap;
mod rank;
mod stats;
mod summary;

use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_scheduler::cost::{CostError, CostModel};
use cyclonest_sim::{FastForward, Options, Outcome, SimError, simulate};
use cyclonest_workloads::{DistinctLayer, Problem};
use serde::{Deserialize, Serialize};

pub use gap::{Breakdown, Contributor};
pub use rank::{RankRow, RankVerdict, draw, rank, sample};
pub use stats::{Agreement, Interval, Pair, RESAMPLES};
pub use summary::{FEW, RankSummary, Subset, Summary, rank_summaries, summaries};

/// One layer on one machine: the simulation, and every model beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayerRow {
    /// Machine.
    pub arch: String,
    /// Network.
    pub network: String,
    /// Layer; of equal ones the first.
    pub layer: String,
    /// How often the network runs it.
    pub count: u64,
    /// Multiply-accumulates.
    pub macs: u64,
    /// Name of the scheduler, or `file`.
    pub mapped_by: String,
    /// Simulated cycles.
    pub cycles: u64,
    /// Where they went.
    pub breakdown: Breakdown,
    /// One per model, in the order asked for.
    pub verdicts: Vec<Verdict>,
}

/// What one model says of one layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The model.
    pub model: String,
    /// Its estimate \[cycles; of `cosa` a rank\]; `None` if it refuses the mapping.
    pub estimate: Option<f64>,
    /// (Estimate − simulation) ÷ simulation; `None` without an estimate in cycles.
    pub error: Option<f64>,
    /// Where model and simulation differ most; `None` without an estimate in cycles.
    pub gap: Option<Contributor>,
    /// Why the model refuses the mapping.
    pub refused: Option<String>,
}

/// Simulates `mapping` and asks the models.
///
/// # Errors
/// If the mapping is invalid or the machine deadlocks.
pub fn layer(
    (arch, network): (&Accelerator, &str),
    layer: &DistinctLayer,
    (mapped_by, mapping): (&str, &Mapping),
    models: &[&dyn CostModel],
) -> Result<LayerRow, SimError> {
    let outcome = run(&layer.problem, arch, mapping)?;
    let breakdown = Breakdown::of(&outcome, arch);
    let verdicts = models.iter().map(|model| {
        let judged = model.evaluate(&layer.problem, arch, mapping);
        Verdict::new(*model, judged.as_ref(), &outcome, &breakdown)
    });
    Ok(LayerRow {
        arch: arch.name.clone(),
        network: network.to_owned(),
        layer: layer.name.clone(),
        count: layer.count,
        macs: layer.problem.macs(),
        mapped_by: mapped_by.to_owned(),
        cycles: outcome.cycles,
        verdicts: verdicts.collect(),
        breakdown,
    })
}

impl Verdict {
    fn new(
        model: &dyn CostModel,
        judged: Result<&cyclonest_scheduler::cost::Estimate, &CostError>,
        outcome: &Outcome,
        breakdown: &Breakdown,
    ) -> Self {
        let mut verdict = Verdict {
            model: model.name().to_owned(),
            estimate: None,
            error: None,
            gap: None,
            refused: None,
        };
        match judged {
            Ok(estimate) => {
                verdict.estimate = Some(estimate.cycles);
                if model.in_cycles() {
                    verdict.error = Some(pair(outcome.cycles, estimate.cycles).error());
                    verdict.gap = Some(breakdown.largest_gap(estimate));
                }
            }
            Err(error) => verdict.refused = Some(error.to_string()),
        }
        verdict
    }
}

fn pair(simulated: u64, estimated: f64) -> Pair {
    Pair {
        measured: simulated.max(1) as f64,
        estimated,
    }
}

fn run(problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Outcome, SimError> {
    let options = Options {
        fast_forward: FastForward::On,
        ..Options::default()
    };
    simulate(problem, arch, mapping, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclonest_scheduler::cost::{Estimate, by_name};
    use cyclonest_scheduler::{Greedy, Request, Scheduler};
    use cyclonest_workloads::DimMap;

    /// The simulated cycles times a factor.
    pub(super) struct Cycles(pub(super) f64);

    impl CostModel for Cycles {
        fn name(&self) -> &str {
            "cycles"
        }

        fn evaluate(&self, problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Estimate, CostError> {
            let outcome = run(problem, arch, mapping).map_err(|e| CostError::Invalid(e.to_string()))?;
            Ok(Estimate {
                cycles: outcome.cycles as f64 * self.0,
                energy_pj: 0.0,
                counts: None,
                parts: Vec::new(),
            })
        }
    }

    pub(super) fn layer() -> DistinctLayer {
        DistinctLayer {
            name: "conv".into(),
            count: 2,
            names: vec!["conv".into(), "again".into()],
            problem: Problem::new(DimMap([1, 1, 8, 6, 10, 10, 3, 3])),
        }
    }

    #[test]
    fn errors_are_signed_and_refusals_have_a_reason() {
        let layer = layer();
        let arch = cyclonest_arch::bundled::load("small3").unwrap();
        let mapping = Greedy.schedule(&Request::new(&layer.problem, &arch)).unwrap().mapping;
        struct Refuses;
        impl CostModel for Refuses {
            fn name(&self) -> &str {
                "refuses"
            }
            fn evaluate(&self, _: &Problem, _: &Accelerator, _: &Mapping) -> Result<Estimate, CostError> {
                Err(CostError::NotExpressible("no word for it".into()))
            }
        }
        let cosa = by_name("cosa").unwrap();
        let models: [&dyn CostModel; 4] = [&Cycles(1.25), &Cycles(0.5), &Refuses, cosa];
        let row = super::layer((&arch, "net"), &layer, ("greedy", &mapping), &models).unwrap();
        let [high, low, refuses, cosa] = &row.verdicts[..] else {
            panic!()
        };
        assert!((high.error.unwrap() - 0.25).abs() < 1e-12 && (low.error.unwrap() + 0.5).abs() < 1e-12);
        assert_eq!(refuses.refused.as_deref(), Some("not expressible: no word for it"));
        assert!(refuses.estimate.is_none() && refuses.error.is_none() && refuses.gap.is_none());
        assert!(cosa.estimate.is_some() && cosa.error.is_none() && cosa.gap.is_none());

        let all = summaries(&[row.clone(), row], &models, 0);
        assert_eq!(all.iter().filter(|s| s.subset == Subset::All).count(), 4);
        assert_eq!((all[2].layers, all[2].refused, all[2].agreement.pairs), (2, 2, 0));
        assert_eq!(all[2].refusals, [("not expressible: no word for it".to_owned(), 2)]);
        assert!(all[0].agreement.largest_error.is_some_and(|e| (e - 0.25).abs() < 1e-12));
    }
}
