//! `milp`: one mixed-integer program per layer, after CoSA (Huang et al., ISCA 2021), for any machine.
//!
//! The program ([`form`]) places the prime factors of the bounds on the temporal and spatial slots of all levels and
//! chooses what stands innermost. Everything is a sum of logarithms: mesh sizes, capacities (slots, precision, shared
//! or split banks), tile sizes ([`halo`] for inputs), visits, and with them the occupancy of every port and channel
//! ([`terms`]). The objective is the largest of these occupancies (or energies), the bottleneck, with a small weight on
//! the traffic of all levels; CoSA's own weights are `milp:cosa`. Sums of tensors on one resource enter as tangents of
//! log₂(2^a + 2^b).
//!
//! microlp (pure Rust) solves it to a proof, or to a node limit, never to a clock; which of the two is reported. Bounds
//! with a prime above 7 are padded, and trips that the padding leaves without work are cut afterwards.
//!
//! Logarithms cannot express remainders, nor what a schedule waits for at its start and its end. Two steps follow under
//! the oracle: among the neighbours of the solution that the program finds equally good, the best is taken (a
//! descent over ties); then, within the budget of evaluations, iterated descents over all neighbours, imperfect factors
//! and bypasses included, that begin there, at the solutions under two other weightings (more on compute, more on
//! traffic), and at the mapping of `greedy`. A budget of 0 leaves the solution of the program with its ties broken. What is proven is proven of the
//! program, not of what the descents make of it.
//!
//! Branch and bound begins with the solution of a local search over single factors ([`start`]).

mod form;
mod halo;
mod measure;
mod program;
mod solver;
mod start;
mod terms;
#[cfg(test)]
mod tests;
mod weights;

pub(crate) use form::{CLASSES, order as innermost};
pub use measure::Terms;
pub use weights::Weights;

use cyclonest_workloads::DimMap;

use self::form::{Form, Formulation, padded_bounds};
use self::measure::measure;
use self::program::Solved;
use self::terms::Inventory;
use crate::descent::{descend, iterate};
use crate::judge::Judge;
use crate::space::{Point, Space};
use crate::{Greedy, Proof, Request, ScheduleError, Scheduled, Scheduler};

/// Branch-and-bound nodes that a solve may take.
const NODES: u64 = 2_000;
/// Distance from the bound at which a solution counts as proven, in log₂ of cycles: 0.7 %.
const GAP: f64 = 0.01;
/// Error of the planes that stand for the height of an input tile, in log₂: 1.4 %.
const SLACK: f64 = 0.02;
/// Evaluations spent on ties.
const TIES: u64 = 200;
/// Evaluations of the descent, if the request names no budget.
const BUDGET: u64 = 6_000;

/// The scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Milp {
    name: String,
    weights: Weights,
    /// Evaluations of the descent, if the request names no budget.
    budget: u64,
    /// Branch-and-bound nodes of a solve.
    nodes: u64,
}

impl Default for Milp {
    fn default() -> Self {
        Milp {
            name: "milp".into(),
            weights: Weights::default(),
            budget: BUDGET,
            nodes: NODES,
        }
    }
}

impl Milp {
    /// `milp` with other weights in the program.
    #[must_use]
    pub fn with(weights: Weights) -> Self {
        Milp {
            weights,
            ..Milp::default()
        }
    }

    /// `milp:cosa`: CoSA's weights, and nothing but ties after the program.
    #[must_use]
    pub fn cosa() -> Self {
        Milp {
            name: "milp:cosa".into(),
            weights: Weights::cosa(),
            budget: 0,
            nodes: NODES,
        }
    }

    /// Solves the program under `weights`.
    fn solve(
        &self,
        request: &Request<'_>,
        space: &Space<'_>,
        inventory: &Inventory,
        weights: &Weights,
    ) -> Result<(Point, Solved), ScheduleError> {
        let bounds = padded_bounds(space);
        let formulation = Formulation {
            inventory,
            weights,
            objective: request.objective,
            bounds,
            slack: SLACK,
        };
        let form = Form::new(space, &formulation);
        let start = start::start(space, &form, inventory, weights, request.objective, &bounds);
        let integers = start.and_then(|point| form.integers(&point)).unwrap_or_default();
        match form.program.solve(self.nodes, GAP, &integers) {
            Ok(Some(solved)) => Ok((form.point(&solved.values), solved)),
            Ok(None) => Err(ScheduleError::Infeasible(
                "no way to place the factors satisfies the program".into(),
            )),
            Err(why) => Err(ScheduleError::NotFound(why)),
        }
    }
}

impl Scheduler for Milp {
    fn name(&self) -> &str {
        &self.name
    }

    fn schedule(&self, request: &Request<'_>) -> Result<Scheduled, ScheduleError> {
        let space = Space::new(request.problem, request.arch);
        let inventory = Inventory::new(space.arch, &space.holds);
        let mut judge = Judge::leaning(request);
        let (point, solved) = self.solve(request, &space, &inventory, &self.weights)?;
        let mut starts = vec![self.best_tie(request, &space, &inventory, &mut judge, point)];
        let budget = request.budget.unwrap_or(self.budget);
        if budget > 0 {
            for weights in [Weights::compute(), Weights::traffic()] {
                starts.push(self.solve(request, &space, &inventory, &weights)?.0);
            }
            let greedy = Greedy.schedule(&Request {
                oracle: None,
                ..*request
            });
            starts.extend(greedy.ok().map(|found| space.point(&found.mapping)));
            for start in starts.iter().filter(|start| space.fits(start)) {
                judge.pin(&space.mapping(start));
            }
            let spent = judge.evaluations;
            iterate(&space, &mut judge, &starts, spent + budget, request.seed);
        }
        let mut scheduled = judge.finish()?;
        scheduled.proof = Some(Proof {
            objective: solved.objective,
            bound: solved.bound,
            proven: solved.objective - solved.bound <= GAP,
            nodes: solved.nodes,
        });
        Ok(scheduled)
    }
}

impl Milp {
    /// The best of the points that the program finds as good as `point`, as far as a descent over them gets.
    fn best_tie(
        &self,
        request: &Request<'_>,
        space: &Space<'_>,
        inventory: &Inventory,
        judge: &mut Judge<'_>,
        mut point: Point,
    ) -> Point {
        let objective = |point: &Point| measure(space, inventory, &self.weights, request.objective, point);
        let (optimum, covered) = (objective(&point), covers(&point));
        descend(space, judge, &mut point, TIES, request.seed, |tie| {
            tie.keeps == space.holds && covers(tie) == covered && objective(tie) <= optimum + GAP / 10.0
        });
        point
    }
}

/// Product of all trips of each dimension.
fn covers(point: &Point) -> DimMap<u64> {
    DimMap::from_fn(|dim| {
        let levels = point.trips.iter().zip(&point.fan);
        levels
            .map(|(trips, fan)| trips[dim] * fan[0][dim] * fan[1][dim])
            .product()
    })
}
