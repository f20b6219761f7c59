//! A lower bound on what the nodes of a partition take together: whatever weights w ≥ 0 with Σ w = 1 the resources get,
//! a design that fits has Σ_r w_r·used_r ÷ capacity_r ≤ 1. The least of that sum over all choices, matching left aside,
//! is the sum of the nodes' least ones; if it exceeds 1, nothing fits (a surrogate relaxation).

use super::space::Space;

/// Steps that look for good weights.
const STEPS: u32 = 40;

/// The same for long partitions, where a search by sums costs most.
const LONG_STEPS: u32 = 400;

/// What rounding may cost.
const MARGIN: f64 = 1e-6;

/// Weights of the resources, and what follows from them.
pub(super) struct Relaxation {
    /// Weight ÷ capacity per resource.
    per_unit: [f64; 4],
    /// No choice of foldings has a smaller weighted sum.
    least: f64,
}

impl Relaxation {
    /// Looks for the weights with the largest least sum, where node `i` may choose among `choices[i]` (use per
    /// resource): exponentiated steps towards what the cheapest choices overuse. It stops at the first proof unless the
    /// bound is to be `tight`.
    pub(super) fn new(space: &Space<'_>, choices: &[Vec<[u64; 4]>], tight: bool) -> Self {
        #![allow(clippy::cast_precision_loss)]
        let capacity = space.capacity.map(|c| c.max(1) as f64);
        let steps = if tight || choices.len() >= super::exact::LONG {
            LONG_STEPS
        } else {
            STEPS
        };
        let mut weights = [0.25; 4];
        let mut best = Self {
            per_unit: std::array::from_fn(|r| weights[r] / capacity[r]),
            least: 0.0,
        };
        for step in 0..steps {
            let per_unit: [f64; 4] = std::array::from_fn(|r| weights[r] / capacity[r]);
            let mut least = 0.0;
            let mut used = [0.0; 4];
            for node in choices {
                let cheapest = node.iter().map(|c| (cost(&per_unit, c), c));
                let Some((sum, choice)) = cheapest.min_by(|a, b| a.0.total_cmp(&b.0)) else {
                    continue;
                };
                least += sum;
                for r in 0..4 {
                    used[r] += choice[r] as f64 / capacity[r];
                }
            }
            if least > best.least {
                best = Self { per_unit, least };
            }
            // Proven, or the cheapest choices fit: no weights exclude them.
            if best.excludes() && !tight || used.iter().all(|&u| u <= 1.0) {
                break;
            }
            let rate = 2.0 / f64::from(step + 4).sqrt();
            for r in 0..4 {
                weights[r] *= (rate * (used[r] - 1.0).clamp(-1.0, 1.0)).exp();
            }
            let total: f64 = weights.iter().sum();
            weights = weights.map(|w| w / total);
        }
        best
    }

    /// Whether nothing fits.
    pub(super) fn excludes(&self) -> bool {
        self.least > 1.0 + MARGIN
    }

    /// The weighted sum of a use of resources.
    pub(super) fn cost(&self, used: &[u64; 4]) -> f64 {
        cost(&self.per_unit, used)
    }

    /// Whether a partial design of that weighted sum cannot be completed, where the rest takes at least `rest`.
    pub(super) fn exceeds(sum: f64, rest: f64) -> bool {
        sum + rest > 1.0 + MARGIN
    }

    /// The least of one resource with which the nodes could fit, the others as they are; `None` where that resource has
    /// no weight.
    pub(super) fn needed(&self, resource: usize, capacity: &[u64; 4]) -> Option<u64> {
        #![allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let own = self.per_unit[resource];
        let others: f64 = (0..4)
            .filter(|&r| r != resource)
            .map(|r| self.per_unit[r] * capacity[r].max(1) as f64)
            .sum();
        let needed = (self.least - MARGIN - others) / own;
        (own > 0.0 && needed.is_finite() && needed < 1e15).then(|| needed.max(0.0).ceil() as u64)
    }
}

fn cost(per_unit: &[f64; 4], used: &[u64; 4]) -> f64 {
    #![allow(clippy::cast_precision_loss)]
    (0..4).map(|r| per_unit[r] * used[r] as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclonest_arch::streaming::{Coefficients, Front, Platform, backend};

    #[test]
    fn two_resources_that_each_suffice_may_not_suffice_together() {
        let network = cyclonest_workloads::bundled::load("simple").unwrap();
        let flow = backend("finn").unwrap();
        let graph = flow.graph(&Front::from_network(&network).unwrap()).unwrap();
        let board = Platform::named("zedboard").unwrap();
        let mut space = Space::new(&graph, flow.as_ref(), &board, &Coefficients::estimate());
        space.capacity = [10, 10, 1, 1];
        // Every node takes 4 of one or of the other: three nodes fit neither at once, two do.
        let node = vec![[8, 0, 0, 0], [0, 8, 0, 0]];
        assert!(!Relaxation::new(&space, &vec![node.clone(); 2], false).excludes());
        let three = Relaxation::new(&space, &vec![node; 3], true);
        assert!(three.excludes());
        // 24 in all, 10 of them elsewhere.
        assert_eq!(three.needed(0, &space.capacity), Some(14));
    }
}
