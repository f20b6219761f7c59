//! SAMO's rule-based search, deterministic.
//!
//! It starts fully split. In each partition the slowest node is raised by the change with the least resource
//! increase, matching restored, until no further raise fits. Then neighbouring partitions are merged where one of
//! them is memory-bound, fully unrolled, or faster than a reconfiguration; a merge is kept only if the time falls.
//!
//! A raise is found for all nodes at once: the foldings that reach the next interval with the least sum of weighted
//! resources, where the weight of a resource grows while it overflows. This is what makes the rule differ from
//! SAMO's own, which raises one node and never takes an unneeded folding back.

use std::collections::BTreeMap;

use cyclonest_arch::streaming::Objective;

use super::partition::Partition;
use super::space::Space;
use super::{Budget, Found, OptimiseError, Optimiser};

/// The rule-based optimiser.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rule;

/// Rounds of re-weighting before an interval is given up.
const ROUNDS: usize = 12;

/// A partition that the rule has worked on.
#[derive(Clone)]
pub(super) struct Raised {
    pub(super) interval: u64,
    pub(super) picks: Vec<usize>,
    /// Memory-bound or fully unrolled: no faster on any device.
    saturated: bool,
}

impl Optimiser for Rule {
    fn name(&self) -> &'static str {
        "rule"
    }

    fn optimise(&self, space: &Space<'_>, objective: Objective, _: Budget) -> Result<Found, OptimiseError> {
        let batch = objective.batch();
        let reconfiguration = space.platform.reconfiguration_us;
        let mut evaluations = 0;
        let mut solved: BTreeMap<(usize, usize), Option<Raised>> = BTreeMap::new();
        let mut raise = |first: usize, last: usize, evaluations: &mut u64| {
            solved
                .entry((first, last))
                .or_insert_with(|| raise(space, first, last, evaluations))
                .clone()
        };
        let mut parts: Vec<(usize, usize, Raised)> = Vec::new();
        // A segment that cannot stand alone goes together with the next, the last one with those before.
        let mut begun = None;
        for (first, last) in space.segments() {
            let first = begun.unwrap_or(first);
            begun = match raise(first, last, &mut evaluations) {
                Some(raised) => {
                    parts.push((first, last, raised));
                    None
                }
                None => Some(first),
            };
        }
        while begun.is_some() {
            let Some(before) = parts.pop() else {
                return Err(OptimiseError::Infeasible {
                    platform: space.platform.name.clone(),
                    shortages: space.shortages(),
                });
            };
            let last = space.graph.nodes.len() - 1;
            begun = Some(before.0);
            if let Some(raised) = raise(before.0, last, &mut evaluations) {
                parts.push((before.0, last, raised));
                begun = None;
            }
        }
        let time = |interval: u64| space.execution_us(interval, batch);
        let total = |parts: &[(usize, usize, Raised)]| {
            #[allow(clippy::cast_precision_loss)]
            let cuts = (parts.len() - 1) as f64;
            parts.iter().map(|p| time(p.2.interval)).sum::<f64>() + cuts * reconfiguration
        };
        let mut convergence = vec![(evaluations, total(&parts))];
        loop {
            let mut best: Option<(f64, usize, Raised)> = None;
            for i in 0..parts.len() - 1 {
                let (left, right) = (&parts[i], &parts[i + 1]);
                let worth = [left, right]
                    .iter()
                    .any(|p| p.2.saturated || time(p.2.interval) < reconfiguration);
                if !worth {
                    continue;
                }
                let Some(merged) = raise(left.0, right.1, &mut evaluations) else {
                    continue;
                };
                let gain = time(left.2.interval) + time(right.2.interval) + reconfiguration - time(merged.interval);
                if gain > 0.0 && best.as_ref().is_none_or(|b| gain > b.0) {
                    best = Some((gain, i, merged));
                }
            }
            let Some((_, i, merged)) = best else { break };
            parts[i] = (parts[i].0, parts[i + 1].1, merged);
            parts.remove(i + 1);
            convergence.push((evaluations, total(&parts)));
        }
        let picks: Vec<usize> = parts.iter().flat_map(|p| p.2.picks.iter().copied()).collect();
        let cuts = parts[1..].iter().map(|p| p.0 - 1).collect();
        Ok(Found {
            design: space.design(&picks, cuts, objective),
            time_us: total(&parts),
            evaluations,
            feasible: evaluations,
            bound_us: 0.0,
            convergence,
        })
    }
}

/// Raises a partition as far as it goes.
pub(super) fn raise(space: &Space<'_>, first: usize, last: usize, evaluations: &mut u64) -> Option<Raised> {
    let partition = Partition::new(space, first, last);
    let candidates = partition.candidates();
    let floor = space.bandwidth_floor(first, last);
    let (mut low, mut high) = (0, candidates.len());
    let mut best: Option<(u64, Vec<usize>)> = None;
    let mut probe = |at: usize, best: &mut Option<(u64, Vec<usize>)>| {
        let found = fit(space, &partition, first, candidates[at], floor, evaluations);
        if let Some((interval, picks)) = found {
            if best.as_ref().is_none_or(|b| interval < b.0) {
                *best = Some((interval, picks));
            }
            true
        } else {
            false
        }
    };
    // Galloping instead of one raise at a time: what fits at an interval mostly fits at a longer one.
    while low < high {
        let middle = low + (high - low) / 2;
        if probe(middle, &mut best) {
            high = middle
        } else {
            low = middle + 1
        }
    }
    for at in (low.saturating_sub(6)..low).rev() {
        probe(at, &mut best);
    }
    let (interval, picks) = best?;
    let saturated = interval <= partition.floor();
    Some(Raised {
        interval,
        picks,
        saturated,
    })
}

/// Foldings of at most `interval` cycles that fit, re-weighting what overflows; with the interval that they have.
fn fit(
    space: &Space<'_>,
    partition: &Partition<'_, '_>,
    first: usize,
    interval: u64,
    floor: u64,
    evaluations: &mut u64,
) -> Option<(u64, Vec<usize>)> {
    #![allow(clippy::cast_precision_loss)]
    let capacity = space.capacity.map(|c| c.max(1) as f64);
    let mut weights = [1.0; 4];
    for _ in 0..ROUNDS {
        *evaluations += 1;
        let picks = partition.cheapest(interval, |node, c| {
            let parts = space.choices[node][c].resources;
            (0..4).map(|r| weights[r] * parts[r] as f64 / capacity[r]).sum()
        })?;
        let mut sum = [0u64; 4];
        let mut slowest = 0;
        for (node, &c) in (first..).zip(&picks) {
            let choice = &space.choices[node][c];
            slowest = slowest.max(choice.latency);
            for (total, part) in sum.iter_mut().zip(choice.resources) {
                *total += part;
            }
        }
        if (0..4).all(|r| sum[r] <= space.capacity[r]) {
            return (slowest >= floor).then_some((slowest, picks));
        }
        for (weight, (used, available)) in weights.iter_mut().zip(sum.iter().zip(capacity)) {
            let load = *used as f64 / available;
            *weight *= if load > 1.0 { load.powi(2).min(4.0) } else { 0.9 };
        }
    }
    None
}
