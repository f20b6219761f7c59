//! `exhaustive`: every mapping of a small layer, and so the optimum under the oracle.
//!
//! The space: every placement of the prime factors of the bounds on the temporal loops of all levels and the axes of
//! all meshes; at every level outside the PE level with several loops, the six orders of the classes {N, P, Q}, {K} and
//! {C, R, S}, G outermost, and inside it the order with reductions innermost; every level keeps all that it holds, or,
//! with `exhaustive:bypass`, every part of it.
//! Placements are counted first: a layer with more than [`MOST`] is refused. With a budget, the search ends there and
//! proves nothing.

use cyclonest_workloads::{Dim, DimMap, TensorSet};

use crate::judge::Judge;
use crate::milp::{CLASSES, innermost};
use crate::space::{Point, Space, primes};
use crate::{Proof, Request, ScheduleError, Scheduled, Scheduler};

/// Placements of factors that are still enumerated.
pub const MOST: u128 = 20_000_000;

/// The scheduler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exhaustive {
    bypass: bool,
}

impl Exhaustive {
    /// `exhaustive:bypass`: tensors may bypass levels too.
    #[must_use]
    pub fn with_bypass() -> Self {
        Exhaustive { bypass: true }
    }
}

struct Search<'a, 'b> {
    space: &'b Space<'a>,
    judge: Judge<'a>,
    budget: u64,
    complete: bool,
}

impl Scheduler for Exhaustive {
    fn name(&self) -> &str {
        if self.bypass { "exhaustive:bypass" } else { "exhaustive" }
    }

    fn schedule(&self, request: &Request<'_>) -> Result<Scheduled, ScheduleError> {
        let space = Space::new(request.problem, request.arch);
        let kept = self.keeps(&space);
        let placements = placements(&space).saturating_mul(kept.len() as u128);
        if placements > MOST && request.budget.is_none() {
            return Err(ScheduleError::NotFound(format!(
                "{placements} placements of the factors are too many to enumerate; {MOST} are the most (or give a budget)"
            )));
        }
        let mut search = Search {
            space: &space,
            judge: Judge::new(request),
            budget: request.budget.unwrap_or(u64::MAX),
            complete: true,
        };
        let mut point = space.origin();
        point.trips[0] = DimMap::ones();
        for keeps in kept {
            point.keeps = keeps;
            search.dimension(0, &mut point);
        }
        let complete = search.complete;
        let mut scheduled = search.judge.finish()?;
        let score = scheduled.convergence.last().map_or(f64::INFINITY, |last| last.1);
        scheduled.proof = Some(Proof {
            objective: score,
            bound: if complete { score } else { 0.0 },
            proven: complete,
            nodes: Some(scheduled.valid),
        });
        Ok(scheduled)
    }
}

impl Exhaustive {
    /// What the levels keep, in every way to go through.
    fn keeps(&self, space: &Space<'_>) -> Vec<Vec<TensorSet>> {
        let mut all = vec![space.holds.clone()];
        if !self.bypass {
            return all;
        }
        for level in 1..space.holds.len() {
            for tensor in space.holds[level].iter() {
                let without = all.iter().map(|keeps| {
                    let mut keeps = keeps.clone();
                    keeps[level].remove(tensor);
                    keeps
                });
                all.extend(without.collect::<Vec<_>>());
            }
        }
        all
    }
}

/// Slots of a dimension: the temporal loops of every level, then the axes that allow it.
fn slots(space: &Space<'_>, dim: Dim) -> Vec<(usize, Option<usize>)> {
    let temporal = (0..space.meshes.len()).map(|level| (level, None));
    let axes = space.meshes.iter().enumerate().flat_map(|(level, axes)| {
        let open = axes.iter().enumerate();
        let open = open.filter(move |(_, mesh)| mesh.extent > 1 && mesh.allowed.contains(&dim));
        open.map(move |(axis, _)| (level, Some(axis)))
    });
    temporal.chain(axes).collect()
}

/// Ways to place all factors: multisets of slots per dimension and prime.
fn placements(space: &Space<'_>) -> u128 {
    let mut all = 1_u128;
    for (dim, &bound) in space.problem.bounds.iter() {
        let slots = slots(space, dim).len() as u128;
        let primes = primes(bound);
        let mut distinct = primes.clone();
        distinct.dedup();
        for prime in distinct {
            let count = primes.iter().filter(|&&p| p == prime).count() as u128;
            // C(count + slots − 1, count), exact at every step.
            let ways = (1..=count).fold(1_u128, |ways, i| ways * (slots - 1 + i) / i);
            all = all.saturating_mul(ways);
        }
    }
    all
}

impl Search<'_, '_> {
    /// Places the factors of the dimension at `position` and of those behind it.
    fn dimension(&mut self, position: usize, point: &mut Point) {
        let Some(&dim) = Dim::ALL.get(position) else {
            return self.orders(0, point);
        };
        let slots = slots(self.space, dim);
        self.factor(position, &slots, &primes(self.space.problem.bounds[dim]), 0, point);
    }

    /// Places the first of `factors` at or behind slot `from`: equal primes go to slots in order, so that no placement
    /// comes twice.
    fn factor(
        &mut self,
        position: usize,
        slots: &[(usize, Option<usize>)],
        factors: &[u64],
        from: usize,
        point: &mut Point,
    ) {
        if !self.complete {
            return;
        }
        let Some((&prime, rest)) = factors.split_first() else {
            return self.dimension(position + 1, point);
        };
        let dim = Dim::ALL[position];
        for (index, &(level, axis)) in slots.iter().enumerate().skip(from) {
            let trips = match axis {
                Some(axis) => &mut point.fan[level][axis][dim],
                None => &mut point.trips[level][dim],
            };
            *trips *= prime;
            // What does not fit with some factors does not fit with all of them.
            if self.space.fits(point) {
                let next = if rest.first() == Some(&prime) { index } else { 0 };
                self.factor(position, slots, rest, next, point);
            }
            match axis {
                Some(axis) => point.fan[level][axis][dim] /= prime,
                None => point.trips[level][dim] /= prime,
            }
        }
    }

    /// Every order of the levels from `level` inwards.
    fn orders(&mut self, level: usize, point: &mut Point) {
        if level == self.space.event.min(point.trips.len()) {
            if self.judge.evaluations >= self.budget {
                self.complete = false;
                return;
            }
            self.judge.tried += 1;
            self.judge.valid += 1;
            self.judge.score(&self.space.mapping(point));
            return;
        }
        let trips = point.trips[level];
        let present = |class: usize| CLASSES[class].iter().any(|&dim| trips[dim] > 1);
        let before = point.order[level];
        for [a, b, c] in [[0, 1, 2], [1, 0, 2], [0, 2, 1], [2, 0, 1], [1, 2, 0], [2, 1, 0]] {
            // Classes without loops stand in ascending order on the outside: one order for all that are the same.
            let absent: Vec<usize> = [a, b, c].into_iter().filter(|&class| !present(class)).collect();
            if [a, b, c][..absent.len()] != absent[..] || !absent.is_sorted() {
                continue;
            }
            let classes = [a, b, c].into_iter().flat_map(|class| CLASSES[class].iter().copied());
            let mut order = innermost(2);
            order[1..].iter_mut().zip(classes).for_each(|(place, dim)| *place = dim);
            point.order[level] = order;
            self.orders(level + 1, point);
        }
        point.order[level] = before;
    }
}
