//! `hybrid`: the mapper of that name in Timeloop (Parashar et al., ISPASS 2019).
//!
//! A factorisation is drawn uniformly, as in `random:naive`; then the permutations of its loops are gone through one
//! after the other, pruned to those that differ in what is reused: for every level outside the PE level with several
//! loops, which class of dimensions stands innermost ({N, P, Q}, {K} or {C, R, S}). A search ends after a number of
//! valid mappings in a row that are not better than its best (the *victory condition*). Independent searches run in
//! parallel. The settings are those of CoSA's comparison (Huang et al., ISCA 2021): 32 searches that end after 500;
//! `hybrid:N` ends after N. The budget, if there is one, is split evenly over the searches.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::judge::Judge;
use crate::milp::{CLASSES, innermost};
use crate::random::Sampler;
use crate::space::{Point, Space};
use crate::{Request, ScheduleError, Scheduled, Scheduler};

const SEARCHES: u64 = 32;
const VICTORY: u64 = 500;
/// Factorisations that a search draws at most, for each valid mapping of its victory condition.
const PATIENCE: u64 = 10_000;

/// The scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hybrid {
    name: String,
    victory: u64,
}

impl Default for Hybrid {
    fn default() -> Self {
        Hybrid {
            name: "hybrid".into(),
            victory: VICTORY,
        }
    }
}

impl Hybrid {
    /// `hybrid:N`: a search ends after `victory` valid mappings in a row that are not better than its best.
    #[must_use]
    pub fn new(victory: u64) -> Self {
        Hybrid {
            name: format!("hybrid:{victory}"),
            victory,
        }
    }

    fn search<'a>(&self, request: &Request<'a>, space: &Space<'a>, index: u64) -> Judge<'a> {
        let mut rng = ChaCha8Rng::seed_from_u64(request.seed);
        rng.set_stream(index);
        let mut sampler = Sampler::new(space);
        let mut judge = Judge::new(request);
        let budget = request
            .budget
            .map_or(u64::MAX, |all| all / SEARCHES + u64::from(index < all % SEARCHES));
        let (mut in_a_row, mut drawn) = (0, 0);
        while drawn < self.victory.saturating_mul(PATIENCE) {
            drawn += 1;
            let Some(point) = sampler.factors(&mut rng) else {
                judge.tried += 1;
                continue;
            };
            judge.new_niche();
            for permuted in permutations(space, &point) {
                judge.tried += 1;
                if !space.fits(&permuted) {
                    continue;
                }
                if judge.evaluations >= budget {
                    return judge;
                }
                judge.valid += 1;
                let before = judge.best_score();
                let score = judge.score(&space.mapping(&permuted));
                let better = score.is_some_and(|score| before.is_none_or(|before| score < before));
                in_a_row = if better { 0 } else { in_a_row + 1 };
                if in_a_row >= self.victory {
                    return judge;
                }
            }
        }
        judge
    }
}

impl Scheduler for Hybrid {
    fn name(&self) -> &str {
        &self.name
    }

    fn schedule(&self, request: &Request<'_>) -> Result<Scheduled, ScheduleError> {
        let space = Space::new(request.problem, request.arch);
        let indices: Vec<u64> = (0..SEARCHES).collect();
        let judges = crate::parallel::map(&indices, request.threads, |&index| self.search(request, &space, index));
        let mut all = Judge::new(request);
        judges.into_iter().for_each(|judge| all.append(judge));
        all.finish()
    }
}

/// `point` with every choice of what stands innermost at the levels outside E; choices that put nothing there are left
/// out.
fn permutations(space: &Space<'_>, point: &Point) -> Vec<Point> {
    let mut all = vec![point.clone()];
    for level in 0..point.trips.len() {
        let present: Vec<usize> = (0..CLASSES.len())
            .filter(|&class| CLASSES[class].iter().any(|&dim| point.trips[level][dim] > 1))
            .collect();
        let choices = match level < space.event && present.len() > 1 {
            true => present,
            false => vec![2],
        };
        all = all
            .into_iter()
            .flat_map(|point| {
                choices.iter().map(move |&class| {
                    let mut permuted = point.clone();
                    permuted.order[level] = innermost(class);
                    permuted
                })
            })
            .collect();
    }
    all
}
