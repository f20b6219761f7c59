//! `greedy`: a valid mapping with good reuse for any accelerator, in a fraction of a second and without an oracle.
//!
//! From the inside out: the meshes are filled first ([`spatial`]), then the tiles of the levels grow as long as
//! that lowers the scheduler's own estimate ([`estimate`]) and fits the buffers (slots × tile) and rule 7, with the
//! loops of each level in the order that moves least. Several starting points are tried, since a buffer that one
//! dimension has filled has no room for another: filter taps and channels first, rows and columns first, and no
//! preference. No random choice is made.
//!
//! What is lowered is always latency, whatever objective the request names; an oracle, if there is one, only judges
//! the result. Budget and seed are not used.

mod estimate;
mod spatial;
mod state;

use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_workloads::{Dim, Problem, Tensor, TensorSet};

use crate::{Request, ScheduleError, Scheduled, Scheduler};
use estimate::Goal;
use state::{ORDERS, State, Unrolled};

/// Ways to unroll that get every starting point; the others are judged by one.
const FINALISTS: usize = 4;

/// Dimensions that the first tiles grow along, per starting point.
const STARTS: [&[Dim]; 4] = [
    &[],
    &[Dim::S, Dim::R, Dim::C, Dim::Q, Dim::P],
    &[Dim::Q, Dim::P, Dim::N],
    &[Dim::S, Dim::R, Dim::Q, Dim::C, Dim::K],
];

/// The scheduler.
#[derive(Debug, Clone, Copy, Default)]
pub struct Greedy;

impl Scheduler for Greedy {
    fn name(&self) -> &str {
        "greedy"
    }

    fn schedule(&self, request: &Request<'_>) -> Result<Scheduled, ScheduleError> {
        let search = Search {
            problem: request.problem,
            arch: request.arch,
            tried: 0,
        };
        let (mapping, tried) = search.run()?;
        let estimate = match request.oracle {
            Some(oracle) => Some(
                oracle
                    .evaluate(request.problem, request.arch, &mapping)
                    .map_err(|e| ScheduleError::Infeasible(e.to_string()))?,
            ),
            None => None,
        };
        let evaluations = u64::from(estimate.is_some());
        let score = estimate.as_ref().map(|estimate| request.objective.score(estimate));
        Ok(Scheduled {
            mapping,
            estimate,
            tried,
            valid: tried,
            evaluations,
            convergence: score.map(|score| (evaluations, score)).into_iter().collect(),
            refereed: None,
            proof: None,
        })
    }
}

struct Search<'a> {
    problem: &'a Problem,
    arch: &'a Accelerator,
    /// States whose cost was asked for.
    tried: u64,
}

impl Search<'_> {
    fn run(mut self) -> Result<(Mapping, u64), ScheduleError> {
        let keeps = self.keeps()?;
        let ways = spatial::ways(self.problem, self.arch);
        let mut judged: Vec<(f64, State, Vec<Unrolled>)> = Vec::new();
        for way in ways {
            let start = State::new(self.problem, &way, &keeps);
            if let Some((cost, state)) = self.optimise(start) {
                judged.push((cost, state, way));
            }
        }
        judged.sort_by(|a, b| a.0.total_cmp(&b.0));
        judged.truncate(FINALISTS);
        let mut best: Option<(f64, State, Vec<Unrolled>)> = None;
        for (cost, state, way) in judged {
            let mut results = vec![(cost, state)];
            for first in &STARTS[1..] {
                let mut start = State::new(self.problem, &way, &keeps);
                self.fill(&mut start, first);
                results.extend(self.optimise(start));
            }
            for (cost, state) in results {
                if best.as_ref().is_none_or(|b| cost < b.0) {
                    best = Some((cost, state, way.clone()));
                }
            }
        }
        let Some((_, state, way)) = best else {
            return Err(ScheduleError::Infeasible("no tile of one element fits".into()));
        };
        let mapping = state.mapping(self.problem, self.arch, &way);
        let violations = mapping.check(self.problem, self.arch);
        if violations.is_empty() {
            return Ok((mapping, self.tried));
        }
        let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
        Err(ScheduleError::Infeasible(texts.join("; ")))
    }

    /// Tensors to keep at each level: all that a level holds, save those of which not even one element fits.
    fn keeps(&self) -> Result<Vec<TensorSet>, ScheduleError> {
        let mut keeps: Vec<TensorSet> = self
            .arch
            .levels
            .iter()
            .map(|level| Tensor::ALL.into_iter().filter(|&t| level.bank(t).is_some()).collect())
            .collect();
        loop {
            let nothing = vec![Unrolled::new(); keeps.len()];
            let state = State::new(self.problem, &nothing, &keeps);
            match state.overfull(self.problem, self.arch) {
                None => return Ok(keeps),
                Some((0, _)) => {
                    let mapping = state.mapping(self.problem, self.arch, &nothing);
                    let violations = mapping.check(self.problem, self.arch);
                    let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
                    return Err(ScheduleError::Infeasible(texts.join("; ")));
                }
                Some((level, tensor)) => keeps[level].remove(tensor),
            }
        }
    }

    fn fits(&self, state: &State) -> bool {
        state.finishes_outputs(self.arch) && state.overfull(self.problem, self.arch).is_none()
    }

    /// Grows the tiles along `dims`, innermost level first, as far as they fit.
    fn fill(&self, state: &mut State, dims: &[Dim]) {
        for level in (1..state.trips.len()).rev() {
            for &dim in dims {
                for trips in self.steps(state, level, dim).into_iter().rev() {
                    let mut grown = state.clone();
                    grown.trips[level][dim] = trips;
                    grown.settle(self.problem, dim);
                    if trips > state.trips[level][dim] && self.fits(&grown) {
                        *state = grown;
                        break;
                    }
                }
            }
        }
    }

    /// Trip counts of `dim` at `level` worth trying: those that no smaller one with as few outer trips replaces.
    fn steps(&self, state: &State, level: usize, dim: Dim) -> Vec<u64> {
        let left = self.problem.bounds[dim].div_ceil(state.inside(level, dim));
        let mut steps = Vec::new();
        let mut outer = left;
        while outer >= 1 {
            let trips = left.div_ceil(outer);
            steps.push(trips);
            if trips >= left {
                break;
            }
            // The largest number of outer trips that takes a larger factor.
            outer = (left - 1) / trips;
        }
        steps
    }

    /// Descends from `start` to a mapping that is good in the long run, and on from there to one that also starts
    /// and ends soon; `None` if the start does not fit.
    fn optimise(&mut self, start: State) -> Option<(f64, State)> {
        if !self.fits(&start) {
            return None;
        }
        let (_, steady) = self.descend(start, Goal::Steady);
        Some(self.descend(steady, Goal::Whole))
    }

    /// Steepest descent of the cost over one changed trip count or loop order.
    fn descend(&mut self, mut state: State, goal: Goal) -> (f64, State) {
        let mut cost = self.cost(&state, goal);
        loop {
            let mut best: Option<(f64, State)> = None;
            for moved in self.moves(&state) {
                if !self.fits(&moved) {
                    continue;
                }
                let moved_cost = self.cost(&moved, goal);
                let bar = best.as_ref().map_or(cost * (1.0 - 1e-9), |b| b.0);
                if moved_cost < bar {
                    best = Some((moved_cost, moved));
                }
            }
            match best {
                Some((lower, moved)) => (cost, state) = (lower, moved),
                None => return (cost, state),
            }
        }
    }

    fn cost(&mut self, state: &State, goal: Goal) -> f64 {
        self.tried += 1;
        estimate::cost(self.problem, self.arch, state, goal)
    }

    /// Neighbours of `state`: the next smaller and larger trip count, the double, all and one, of every dimension
    /// at every level; a larger one at one level for a smaller one further in; and every other loop order.
    fn moves(&self, state: &State) -> Vec<State> {
        let mut moves = Vec::new();
        for level in 0..state.trips.len() {
            for order in (0..ORDERS.len()).filter(|&o| o != state.order[level]) {
                if state.trips[level].0.iter().filter(|&&t| t > 1).count() > 1 {
                    let mut moved = state.clone();
                    moved.order[level] = order;
                    moves.push(moved);
                }
            }
        }
        for level in (1..state.trips.len()).rev() {
            for dim in Dim::ALL {
                let steps = self.steps(state, level, dim);
                if steps.len() < 2 {
                    continue;
                }
                let now = steps.partition_point(|&t| t < state.trips[level][dim]);
                let double = steps.partition_point(|&t| t < 2 * state.trips[level][dim]);
                let half = steps.partition_point(|&t| t < state.trips[level][dim].div_ceil(2));
                let last = steps.len() - 1;
                let mut targets = vec![now + 1, now.saturating_sub(1), double, half, last, 0];
                targets.retain(|&i| i <= last && i != now);
                targets.sort_unstable();
                targets.dedup();
                for target in targets {
                    let mut moved = state.clone();
                    moved.trips[level][dim] = steps[target];
                    moved.settle(self.problem, dim);
                    // Trips that this level gives up may stay on the chip, one level out.
                    if steps[target] < state.trips[level][dim] && level > 1 {
                        let mut handed = moved.clone();
                        let given = state.trips[level][dim].div_ceil(steps[target]);
                        handed.trips[level - 1][dim] = handed.trips[level - 1][dim].saturating_mul(given);
                        handed.settle(self.problem, dim);
                        moves.push(handed);
                    }
                    moves.push(moved);
                }
            }
        }
        moves
    }
}
