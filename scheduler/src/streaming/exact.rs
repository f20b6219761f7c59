//! Provably optimal designs by decomposition: binary search on each partition's interval, Pareto dynamic programming
//! along its nodes, and the shortest path over the places of the cuts.
//!
//! A partition's best interval is found only when a shortest path asks for it: until then a lower bound stands for
//! it (the slowest of its nodes' fastest choices, and the intervals of the partitions inside it), so the path that
//! is found when all its parts are known is the shortest of all.

use std::collections::BTreeMap;

use cyclonest_arch::streaming::Objective;

use super::partition::{Partition, Reach};
use super::space::Space;
use super::{Budget, Found, OptimiseError, Optimiser, Rule};

/// The exact optimiser.
#[derive(Debug, Clone, Copy)]
pub struct Exact {
    /// Resource sums kept per node of a partition; where they do not suffice, the answer carries a bound.
    pub limit: usize,
    /// Partial designs that may be examined in all; once they are spent, the best design known or the rule's is the
    /// answer, with the bound reached so far.
    pub work: u64,
}

impl Default for Exact {
    fn default() -> Self {
        Self {
            limit: 400_000,
            work: 20_000_000_000,
        }
    }
}

/// Nodes from which on a partition counts as long.
pub(super) const LONG: usize = 64;

/// What is known of a partition.
#[derive(Clone)]
struct Known {
    /// No interval is shorter.
    bound: u64,
    /// The best interval found and its choices.
    best: Option<(u64, Vec<usize>)>,
}

impl Exact {
    /// Binary search over the candidate intervals. `floor` is a known lower bound.
    fn solve(
        &self,
        space: &Space<'_>,
        (first, last): (usize, usize),
        floor: u64,
        evaluations: &mut u64,
        work: &mut u64,
    ) -> Known {
        let partition = Partition::new(space, first, last);
        let candidates: Vec<u64> = partition.candidates().into_iter().filter(|&c| c >= floor).collect();
        // Long pipelines keep fewer sums per node, so that the work stays a matter of seconds.
        let limit = if last - first >= LONG {
            self.limit / 64
        } else {
            self.limit
        };
        let (mut low, mut high) = (0, candidates.len());
        let mut known = Known {
            bound: u64::MAX,
            best: None,
        };
        // Everything below `low` is proven out of reach; everything from `high` on is reachable or unknown.
        let mut unknown_from: Option<usize> = None;
        while low < high {
            let middle = low + (high - low) / 2;
            *evaluations += 1;
            match partition.reach(candidates[middle], limit, work) {
                Reach::Yes(picks) => {
                    known.best = Some((candidates[middle], picks));
                    high = middle;
                }
                Reach::No => low = middle + 1,
                Reach::Unknown => {
                    // Treated as out of reach for the search, remembered for the bound.
                    unknown_from = Some(unknown_from.map_or(middle, |u| u.min(middle)));
                    low = middle + 1;
                }
            }
        }
        if unknown_from.is_some()
            && let Some(raised) = super::rule::raise(space, first, last, evaluations)
            && known.best.as_ref().is_none_or(|b| raised.interval < b.0)
        {
            known.best = Some((raised.interval, raised.picks));
        }
        if let Some(first_unknown) = unknown_from {
            // What is below the first unknown candidate may be proven out of reach by itself.
            let (mut low, mut high) = (0, first_unknown);
            while low < high {
                let middle = low + (high - low) / 2;
                *evaluations += 1;
                if matches!(partition.reach(candidates[middle], limit, work), Reach::No) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            known.bound = candidates[low.min(candidates.len() - 1)];
        } else if let Some((interval, _)) = known.best {
            known.bound = interval;
        }
        known
    }
}

impl Optimiser for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn optimise(&self, space: &Space<'_>, objective: Objective, budget: Budget) -> Result<Found, OptimiseError> {
        let segments = space.segments();
        let count = segments.len();
        let batch = objective.batch();
        let (mut evaluations, mut work) = (0, self.work);
        let mut known: BTreeMap<(usize, usize), Known> = BTreeMap::new();
        let mut bounds: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for a in 0..count {
            for b in a..count {
                bounds.insert((a, b), Partition::new(space, segments[a].0, segments[b].1).floor());
            }
        }
        let cost = |a: usize, interval: u64| {
            let reconfiguration = if a > 0 { space.platform.reconfiguration_us } else { 0.0 };
            space.execution_us(interval, batch) + reconfiguration
        };
        loop {
            let best_of = |edge| known.get(&edge).and_then(|k| k.best.as_ref()).map(|k| k.0);
            let path = shortest(count, |a, b| {
                let bound = bounds[&(a, b)];
                (bound != u64::MAX).then(|| cost(a, best_of((a, b)).unwrap_or(bound)))
            });
            let Some(path) = path else {
                if known.values().any(|k| k.best.is_none() && k.bound != u64::MAX) {
                    return Err(OptimiseError::NotFound(evaluations));
                }
                return Err(OptimiseError::Infeasible {
                    platform: space.platform.name.clone(),
                    shortages: space.shortages(),
                });
            };
            let unsolved: Vec<_> = path.iter().copied().filter(|edge| !known.contains_key(edge)).collect();
            if unsolved.is_empty() {
                return Ok(finish(space, objective, &segments, &path, &known, &bounds, evaluations));
            }
            if work == 0 {
                // The best of what is known, or the rule's design; the bound is the same for both.
                let solved = shortest(count, |a, b| best_of((a, b)).map(|interval| cost(a, interval)))
                    .map(|path| finish(space, objective, &segments, &path, &known, &bounds, evaluations));
                let Ok(mut ruled) = Rule.optimise(space, objective, budget) else {
                    return solved.ok_or(OptimiseError::NotFound(evaluations));
                };
                ruled.bound_us = bound_us(space, batch, count, &known, &bounds).min(ruled.time_us);
                return Ok(match solved {
                    Some(solved) if solved.time_us <= ruled.time_us => solved,
                    _ => ruled,
                });
            }
            for (a, b) in unsolved {
                if work == 0 {
                    break;
                }
                let solved = self.solve(
                    space,
                    (segments[a].0, segments[b].1),
                    bounds[&(a, b)],
                    &mut evaluations,
                    &mut work,
                );
                // Whatever contains the partition is no faster, unless it was the memory that made it slow.
                let memory = Partition::new(space, segments[a].0, segments[b].1).may_be_memory_bound();
                for (&(x, y), bound) in &mut bounds {
                    if (x, y) == (a, b) || x <= a && y >= b && !memory {
                        *bound = (*bound).max(solved.bound);
                    }
                }
                if solved.best.is_none() {
                    // Infeasible, or unknown whether feasible: it takes no part in the path.
                    bounds.insert((a, b), u64::MAX);
                }
                known.insert((a, b), solved);
            }
        }
    }
}

/// The shortest path over the boundaries of `count` segments, where an edge (a, b) is a partition of the segments a..=b
/// and `cost` its time, `None` where it cannot be; its edges in order.
fn shortest(count: usize, cost: impl Fn(usize, usize) -> Option<f64>) -> Option<Vec<(usize, usize)>> {
    let mut best: Vec<(f64, usize)> = vec![(f64::INFINITY, 0); count + 1];
    best[0].0 = 0.0;
    for b in 0..count {
        for a in 0..=b {
            if best[a].0.is_finite()
                && let Some(part) = cost(a, b)
                && best[a].0 + part < best[b + 1].0
            {
                best[b + 1] = (best[a].0 + part, a);
            }
        }
    }
    if best[count].0.is_infinite() {
        return None;
    }
    let mut path = Vec::new();
    let mut b = count;
    while b > 0 {
        let a = best[b].1;
        path.push((a, b - 1));
        b = a;
    }
    path.reverse();
    Some(path)
}

/// No design is faster \[µs\]: the shortest path with every partition at its lower bound.
fn bound_us(
    space: &Space<'_>,
    batch: u64,
    count: usize,
    known: &BTreeMap<(usize, usize), Known>,
    bounds: &BTreeMap<(usize, usize), u64>,
) -> f64 {
    let mut best = vec![f64::INFINITY; count + 1];
    best[0] = 0.0;
    for b in 0..count {
        for a in 0..=b {
            let bound = known.get(&(a, b)).map_or(bounds[&(a, b)], |k| k.bound);
            if bound != u64::MAX {
                let reconfiguration = if a > 0 { space.platform.reconfiguration_us } else { 0.0 };
                best[b + 1] = best[b + 1].min(best[a] + space.execution_us(bound, batch) + reconfiguration);
            }
        }
    }
    best[count]
}

fn finish(
    space: &Space<'_>,
    objective: Objective,
    segments: &[(usize, usize)],
    path: &[(usize, usize)],
    known: &BTreeMap<(usize, usize), Known>,
    bounds: &BTreeMap<(usize, usize), u64>,
    evaluations: u64,
) -> Found {
    let batch = objective.batch();
    let mut picks = Vec::new();
    let mut cuts = Vec::new();
    let mut time_us = 0.0;
    for (index, &(a, b)) in path.iter().enumerate() {
        let (interval, choices) = known[&(a, b)].best.as_ref().expect("a path of solved partitions");
        picks.extend_from_slice(choices);
        time_us += space.execution_us(*interval, batch);
        if index > 0 {
            time_us += space.platform.reconfiguration_us;
            cuts.push(segments[a].0 - 1);
        }
    }
    Found {
        design: space.design(&picks, cuts, objective),
        time_us,
        evaluations,
        feasible: evaluations,
        bound_us: bound_us(space, batch, segments.len(), known, bounds).min(time_us),
        convergence: vec![(evaluations, time_us)],
    }
}
