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
//! descent over ties); then, within the budget of evaluations, a descent over all neighbours, imperfect factors and
//! bypasses included. A budget of 0 leaves the solution of the program with its ties broken.

mod form;
mod halo;
mod measure;
mod program;
mod terms;
#[cfg(test)]
mod tests;
mod weights;

pub(crate) use form::{CLASSES, order as innermost};
pub use weights::Weights;

use cyclonest_workloads::DimMap;

use self::form::{Form, Formulation, padded_bounds};
use self::measure::measure;
use self::program::Solved;
use self::terms::Inventory;
use crate::descent::descend;
use crate::judge::Judge;
use crate::space::{Point, Space};
use crate::{Proof, Request, ScheduleError, Scheduled, Scheduler};

/// Branch-and-bound nodes that a solve may take.
const NODES: u64 = 2_000;
/// Distance from the bound at which a solution counts as proven, in log₂ of cycles: 0.7 %.
const GAP: f64 = 0.01;
/// Error of the planes that stand for the height of an input tile, in log₂: 1.4 %.
const SLACK: f64 = 0.02;
/// Evaluations spent on ties.
const TIES: u64 = 200;
/// Evaluations of the descent, if the request names no budget.
const BUDGET: u64 = 3_000;

/// The scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Milp {
    name: String,
    weights: Weights,
    /// Evaluations of the descent, if the request names no budget.
    budget: u64,
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

    fn solve(&self, request: &Request<'_>, space: &Space<'_>) -> Result<(Point, Solved, Inventory), ScheduleError> {
        let inventory = Inventory::new(space.arch, &space.holds);
        let formulation = Formulation {
            inventory: &inventory,
            weights: &self.weights,
            objective: request.objective,
            bounds: padded_bounds(space),
            slack: SLACK,
        };
        let form = Form::new(space, &formulation);
        match form.program.solve(self.nodes, GAP) {
            Ok(Some(solved)) => Ok((form.point(&solved.values), solved, inventory)),
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
        let (mut point, solved, inventory) = self.solve(request, &space)?;
        let mut judge = Judge::new(request);
        let objective = |point: &Point| measure(&space, &inventory, &self.weights, request.objective, point).objective;
        let optimum = objective(&point);
        let covered = covers(&point);
        descend(&space, &mut judge, &mut point, TIES, request.seed, |tie| {
            tie.keeps == space.holds && covers(tie) == covered && objective(tie) <= optimum + GAP / 10.0
        });
        let budget = request.budget.unwrap_or(self.budget);
        if budget > 0 {
            let spent = judge.evaluations;
            descend(&space, &mut judge, &mut point, spent + budget, request.seed, |_| true);
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

/// Product of all trips of each dimension.
fn covers(point: &Point) -> DimMap<u64> {
    DimMap::from_fn(|dim| {
        let levels = point.trips.iter().zip(&point.fan);
        levels
            .map(|(trips, fan)| trips[dim] * fan[0][dim] * fan[1][dim])
            .product()
    })
}
