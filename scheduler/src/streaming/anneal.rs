//! SAMO's simulated annealing: temperature from 1000 to 1, 2 % less per step, then at 1 for the rest of the budget;
//! a random change of a folding or of a cut, accepted if exp(min(0, Δ/K)) ≥ U and feasible; matching foldings are
//! propagated. The best design seen is returned, not the last.

use cyclonest_arch::streaming::Objective;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::space::Space;
use super::{Budget, Found, OptimiseError, Optimiser};

/// The annealing optimiser.
#[derive(Debug, Clone, Copy, Default)]
pub struct Anneal;

const HOT: f64 = 1000.0;
const COLD: f64 = 1.0;
const COOLING: f64 = 0.98;

impl Optimiser for Anneal {
    fn name(&self) -> &'static str {
        "anneal"
    }

    fn optimise(&self, space: &Space<'_>, objective: Objective, budget: Budget) -> Result<Found, OptimiseError> {
        let batch = objective.batch();
        let mut rng = ChaCha8Rng::seed_from_u64(budget.seed);
        // All ones, fully split: the smallest design there is.
        let mut picks: Vec<usize> = vec![0; space.graph.nodes.len()];
        let mut cuts = space.cuts.clone();
        let mut found = Found {
            design: space.design(&picks, cuts.clone(), objective),
            time_us: f64::INFINITY,
            evaluations: 1,
            feasible: 0,
            bound_us: 0.0,
            convergence: Vec::new(),
        };
        let mut time = space.judge(&picks, &cuts, batch).unwrap_or(f64::INFINITY);
        let mut best = (time, picks.clone(), cuts.clone());
        if time.is_finite() {
            found.feasible += 1;
            found.convergence.push((1, time));
        }
        let mut temperature = HOT;
        while found.evaluations < budget.evaluations {
            let (mut next_picks, mut next_cuts) = (picks.clone(), cuts.clone());
            change(space, &mut next_picks, &mut next_cuts, &mut rng);
            found.evaluations += 1;
            let judged = space.judge(&next_picks, &next_cuts, batch);
            if judged.is_none() && time.is_infinite() {
                // Nothing feasible yet: walk on.
                (picks, cuts) = (next_picks, next_cuts);
            } else if let Some(next) = judged {
                found.feasible += 1;
                let accepted = !time.is_finite() || ((time - next) / temperature).min(0.0).exp() >= rng.random::<f64>();
                if accepted {
                    (picks, cuts, time) = (next_picks, next_cuts, next);
                    if time < best.0 {
                        best = (time, picks.clone(), cuts.clone());
                        found.convergence.push((found.evaluations, time));
                    }
                }
            }
            temperature = (temperature * COOLING).max(COLD);
        }
        if best.0.is_infinite() {
            let shortages = space.shortages();
            return Err(if shortages.is_empty() {
                OptimiseError::NotFound(found.evaluations)
            } else {
                OptimiseError::Infeasible {
                    platform: space.platform.name.clone(),
                    shortages,
                }
            });
        }
        found.time_us = best.0;
        found.design = space.design(&best.1, best.2, objective);
        Ok(found)
    }
}

/// A random folding of a random node with its consequences, or a cut set or removed.
fn change(space: &Space<'_>, picks: &mut [usize], cuts: &mut Vec<usize>, rng: &mut ChaCha8Rng) {
    if !space.cuts.is_empty() && rng.random_range(0..4) == 0 {
        let at = space.cuts[rng.random_range(0..space.cuts.len())];
        match cuts.binary_search(&at) {
            Ok(position) => {
                cuts.remove(position);
                // The stream that was cut must match again.
                for to in space.graph.outputs(at).map(|e| e.to).collect::<Vec<_>>() {
                    restore_reader(space, picks, cuts, at, to);
                }
            }
            Err(position) => cuts.insert(position, at),
        }
        return;
    }
    let node = rng.random_range(0..picks.len());
    picks[node] = rng.random_range(0..space.choices[node].len());
    propagate_forward(space, picks, cuts, node);
    propagate_backward(space, picks, cuts, node);
}

fn is_cut(cuts: &[usize], from: usize, to: usize) -> bool {
    cuts.iter().any(|&c| from <= c && to > c)
}

fn propagate_forward(space: &Space<'_>, picks: &mut [usize], cuts: &[usize], node: usize) {
    for edge in space.graph.outputs(node) {
        if !is_cut(cuts, node, edge.to) {
            restore_reader(space, picks, cuts, node, edge.to);
        }
    }
}

/// Gives the reader the choice nearest to its own whose input matches the writer.
fn restore_reader(space: &Space<'_>, picks: &mut [usize], cuts: &[usize], from: usize, to: usize) {
    let cout = space.choices[from][picks[from]].folding.cout;
    let own = space.choices[to][picks[to]].folding;
    if space.matches(from, cout, own.cin) {
        return;
    }
    let nearest = (0..space.choices[to].len())
        .filter(|&c| space.matches(from, cout, space.choices[to][c].folding.cin))
        .min_by_key(|&c| {
            let f = space.choices[to][c].folding;
            (f.cin.abs_diff(own.cin), f.cout.abs_diff(own.cout), f.k.abs_diff(own.k))
        });
    if let Some(c) = nearest {
        let moved = space.choices[to][c].folding.cout != own.cout;
        picks[to] = c;
        if moved {
            propagate_forward(space, picks, cuts, to);
        }
    }
}

fn propagate_backward(space: &Space<'_>, picks: &mut [usize], cuts: &[usize], node: usize) {
    for &from in &space.writers[node] {
        if is_cut(cuts, from, node) {
            continue;
        }
        let cin = space.choices[node][picks[node]].folding.cin;
        let own = space.choices[from][picks[from]].folding;
        if space.matches(from, own.cout, cin) {
            continue;
        }
        let nearest = (0..space.choices[from].len())
            .filter(|&c| space.matches(from, space.choices[from][c].folding.cout, cin))
            .min_by_key(|&c| {
                let f = space.choices[from][c].folding;
                (f.cout.abs_diff(own.cout), f.cin.abs_diff(own.cin), f.k.abs_diff(own.k))
            });
        if let Some(c) = nearest {
            let moved = space.choices[from][c].folding.cin != own.cin;
            picks[from] = c;
            if moved {
                propagate_backward(space, picks, cuts, from);
            }
        }
    }
}
