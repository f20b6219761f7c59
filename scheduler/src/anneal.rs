//! `anneal`: simulated annealing over mappings.
//!
//! A step draws a kind of move (tiling, permutation, spatial, bypass; tiling as often as the others together), then a
//! move of that kind, and goes there if the score falls, or with probability exp(−Δ ln score ÷ T). The temperature T
//! falls from 0.5 to 0.002, geometrically (`anneal`) or linearly, as in SAMO's paper (`anneal:linear`). Moves that do
//! not fit cost nothing but patience. The best mapping seen is kept.
//!
//! The budget is split evenly over restarts, which run in parallel and do not know of each other: the first starts from
//! `greedy`, the others from the best of 50 constraint-aware samples. `anneal:milp` starts all from what `milp` finds,
//! its referee included.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::judge::Judge;
use crate::moves::{apply, moves};
use crate::space::{Point, Space};
use crate::{Greedy, Milp, Request, ScheduleError, Scheduled, Scheduler, Weights, random};

/// Evaluations, if the request names no budget.
const BUDGET: u64 = 10_000;
const RESTARTS: u64 = 4;
/// Samples that a restart starts from the best of.
const SAMPLES: u64 = 50;
const HOT: f64 = 0.5;
const COLD: f64 = 0.002;
/// Moves drawn per evaluation at most, in the mean over a restart.
const PATIENCE: u64 = 200;

/// How the temperature falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cooling {
    Geometric,
    Linear,
}

/// The scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Anneal {
    name: &'static str,
    cooling: Cooling,
    /// Starts from what this finds.
    milp: Option<Milp>,
}

impl Default for Anneal {
    fn default() -> Self {
        Anneal {
            name: "anneal",
            cooling: Cooling::Geometric,
            milp: None,
        }
    }
}

impl Anneal {
    /// `anneal:linear`: the temperature falls linearly.
    #[must_use]
    pub fn linear() -> Self {
        Anneal {
            name: "anneal:linear",
            cooling: Cooling::Linear,
            milp: None,
        }
    }

    /// `anneal:milp`: starts from what `milp` finds.
    #[must_use]
    pub fn from_milp() -> Self {
        Anneal {
            name: "anneal:milp",
            milp: Some(Milp::default()),
            ..Self::default()
        }
    }

    /// `anneal:milp` with other weights in the program.
    #[must_use]
    pub fn from_milp_with(weights: Weights) -> Self {
        Anneal {
            milp: Some(Milp::with(weights)),
            ..Self::from_milp()
        }
    }

    /// Where all restarts start, or the first one does; and what it cost.
    fn start(
        &self,
        request: &Request<'_>,
        space: &Space<'_>,
    ) -> Result<(Option<Point>, Option<Scheduled>), ScheduleError> {
        if let Some(milp) = &self.milp {
            let found = milp.schedule(&Request {
                budget: None,
                ..*request
            })?;
            return Ok((Some(space.point(&found.mapping)), Some(found)));
        }
        // What greedy cannot map, sampling may.
        let found = Greedy.schedule(&Request {
            oracle: None,
            ..*request
        });
        Ok((found.ok().map(|found| space.point(&found.mapping)), None))
    }

    fn restart<'a>(
        &self,
        request: &Request<'a>,
        space: &Space<'a>,
        start: Option<&Point>,
        index: u64,
        budget: u64,
    ) -> Judge<'a> {
        let mut rng = ChaCha8Rng::seed_from_u64(request.seed);
        rng.set_stream(index);
        let mut judge = Judge::leaning(request);
        let Some((mut score, mut point)) = self.first(space, &mut judge, start, &mut rng, budget) else {
            return judge;
        };
        while judge.evaluations < budget && judge.tried < budget * PATIENCE {
            let kinds = moves(space, &point);
            let kind = rng.random_range(0..6_usize).saturating_sub(2);
            let Some(steps) = kinds.get(kind).filter(|steps| !steps.is_empty()) else {
                judge.tried += 1;
                continue;
            };
            let moved = apply(space, &point, steps[rng.random_range(0..steps.len())]);
            judge.tried += 1;
            if moved == point || !space.fits(&moved) {
                continue;
            }
            judge.valid += 1;
            let temperature = self.temperature(judge.evaluations as f64 / budget as f64);
            if let Some(found) = judge.score(&space.mapping(&moved)) {
                let rise = (found / score).ln();
                if rise <= 0.0 || rng.random::<f64>() < (-rise / temperature).exp() {
                    (score, point) = (found, moved);
                }
            }
        }
        judge
    }

    /// The start of a restart with its score.
    fn first(
        &self,
        space: &Space<'_>,
        judge: &mut Judge<'_>,
        start: Option<&Point>,
        rng: &mut ChaCha8Rng,
        budget: u64,
    ) -> Option<(f64, Point)> {
        let mut best: Option<(f64, Point)> = None;
        let samples = if start.is_some() { 1 } else { SAMPLES.min(budget) };
        while judge.evaluations < samples && judge.tried < samples * PATIENCE {
            let point = start.cloned().unwrap_or_else(|| random::draw(space, rng));
            judge.tried += 1;
            if !space.fits(&point) {
                continue;
            }
            judge.valid += 1;
            if let Some(score) = judge.score(&space.mapping(&point))
                && best.as_ref().is_none_or(|best| score < best.0)
            {
                best = Some((score, point));
            }
        }
        best
    }

    fn temperature(&self, progress: f64) -> f64 {
        match self.cooling {
            Cooling::Geometric => HOT * (COLD / HOT).powf(progress),
            Cooling::Linear => HOT + (COLD - HOT) * progress,
        }
    }
}

impl Scheduler for Anneal {
    fn name(&self) -> &str {
        self.name
    }

    fn schedule(&self, request: &Request<'_>) -> Result<Scheduled, ScheduleError> {
        let space = Space::new(request.problem, request.arch);
        let (start, found) = self.start(request, &space)?;
        let budget = request.budget.unwrap_or(BUDGET).saturating_sub(1);
        let restarts = RESTARTS.min(budget.max(1));
        let indices: Vec<u64> = (0..restarts).collect();
        let judges = crate::parallel::map(&indices, request.threads, |&index| {
            let own = budget / restarts + u64::from(index < budget % restarts);
            let start = start.as_ref().filter(|_| self.milp.is_some() || index == 0);
            self.restart(request, &space, start, index, own)
        });
        let mut all = Judge::leaning(request);
        if let Some(found) = &found {
            all.pin(&found.mapping);
        } else if let Some(start) = start.as_ref().filter(|start| space.fits(start)) {
            all.pin(&space.mapping(start));
        }
        judges.into_iter().for_each(|judge| all.append(judge));
        let mut scheduled = all.finish()?;
        if let Some(found) = found {
            scheduled.tried += found.tried;
            scheduled.valid += found.valid;
            scheduled.evaluations += found.evaluations;
            scheduled.proof = found.proof;
        }
        Ok(scheduled)
    }
}
