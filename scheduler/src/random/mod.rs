//! `random:naive` and `random`: the best of a number of random mappings.
//!
//! **`random:naive`** is the baseline of the papers. Every prime factor of every bound goes to a temporal or spatial
//! slot chosen uniformly (spatial ones only where the machine allows the dimension), every level's loops get a random
//! order, and every level keeps all that it holds. Meshes, capacities and rule 7 are tested afterwards; where they
//! fail, the sample is thrown away. By default the best of five valid ones is returned.
//!
//! **`random`** draws under the constraints: meshes are filled first, then prime factors move in random order from
//! the outermost level to a random one of those that can take them. Bounds with a prime above 7 are padded half of the
//! time. Nearly every sample is valid, at the price of a distribution that is not uniform. Default: the best of 2,000.

mod aware;
mod naive;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

pub(crate) use aware::{draw, shuffle};
pub(crate) use naive::Sampler;

use crate::judge::Judge;
use crate::space::{Point, Space};
use crate::{Request, ScheduleError, Scheduled, Scheduler};

/// Valid samples that the naive baseline takes the best of.
const NAIVE_BUDGET: u64 = 5;
/// Samples that the naive baseline throws away at most for each valid one.
const NAIVE_PATIENCE: u64 = 1_000_000;
/// Valid samples that constraint-aware sampling takes the best of.
const BUDGET: u64 = 2_000;
/// The same for constraint-aware sampling.
const PATIENCE: u64 = 100;

/// Uniform sampling, as the papers' baseline.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomNaive;

/// Constraint-aware sampling.
#[derive(Debug, Clone, Copy, Default)]
pub struct Random;

impl Scheduler for RandomNaive {
    fn name(&self) -> &str {
        "random:naive"
    }

    fn schedule(&self, request: &Request<'_>) -> Result<Scheduled, ScheduleError> {
        let space = Space::new(request.problem, request.arch);
        let mut sampler = Sampler::new(&space);
        let mut rng = ChaCha8Rng::seed_from_u64(request.seed);
        let budget = request.budget.unwrap_or(NAIVE_BUDGET);
        best_of(request, &space, budget, NAIVE_PATIENCE, || sampler.draw(&mut rng))
    }
}

impl Scheduler for Random {
    fn name(&self) -> &str {
        "random"
    }

    fn schedule(&self, request: &Request<'_>) -> Result<Scheduled, ScheduleError> {
        let space = Space::new(request.problem, request.arch);
        let mut rng = ChaCha8Rng::seed_from_u64(request.seed);
        let budget = request.budget.unwrap_or(BUDGET);
        best_of(request, &space, budget, PATIENCE, || Some(draw(&space, &mut rng)))
    }
}

fn best_of(
    request: &Request<'_>,
    space: &Space<'_>,
    budget: u64,
    patience: u64,
    mut draw: impl FnMut() -> Option<Point>,
) -> Result<Scheduled, ScheduleError> {
    let mut judge = Judge::new(request);
    while judge.valid < budget && judge.tried / patience <= judge.valid {
        judge.tried += 1;
        if let Some(point) = draw().filter(|point| space.fits(point)) {
            judge.valid += 1;
            judge.new_niche();
            judge.score(&space.mapping(&point));
        }
    }
    judge.finish()
}
