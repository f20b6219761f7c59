//! Enumeration of the whole space, and its size before and after each constraint.

use std::collections::BTreeMap;
use std::time::Instant;

use cyclonest_arch::streaming::{Backend, Objective};
use serde::{Deserialize, Serialize};

use super::space::Space;
use super::{Budget, Found, OptimiseError, Optimiser};

/// Enumerates every design whose foldings match, cuts included, and judges each.
#[derive(Debug, Clone, Copy, Default)]
pub struct Brute;

/// Number of designs, cuts included; as a float, since it exceeds every integer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SpaceSize {
    /// Foldings that divide their channels and kernel, in any combination.
    pub full: f64,
    /// After the intra match.
    pub intra: f64,
    /// After the inter match as well, which a cut lifts.
    pub inter: f64,
}

/// What an enumeration saw.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// Size of the space.
    pub space: SpaceSize,
    /// Designs judged.
    pub judged: u64,
    /// Of them, within resources and bandwidth.
    pub feasible: u64,
    /// Whether that was all.
    pub complete: bool,
    /// Designs judged per second.
    pub per_second: f64,
    /// Time for the whole space at that rate \[s\].
    pub whole_space_s: f64,
}

impl SpaceSize {
    /// Counts by dynamic programming over the nodes.
    #[must_use]
    pub fn of(space: &Space<'_>, backend: &dyn Backend) -> Self {
        #![allow(clippy::cast_precision_loss)]
        let cuts = 2f64.powi(i32::try_from(space.cuts.len()).unwrap_or(i32::MAX));
        let full = space
            .graph
            .nodes
            .iter()
            .map(|n| backend.foldings(n, false).len() as f64)
            .product::<f64>()
            * cuts;
        let intra = space.choices.iter().map(|c| c.len() as f64).product::<f64>() * cuts;
        // State: output foldings still to be read; a cut forgets them.
        let mut states: BTreeMap<Vec<u64>, f64> = BTreeMap::from([(Vec::new(), 1.0)]);
        let mut open: Vec<usize> = Vec::new();
        for node in 0..space.graph.nodes.len() {
            let next_open: Vec<usize> = (0..=node).filter(|&n| space.last_reader[n] > node).collect();
            let mut next: BTreeMap<Vec<u64>, f64> = BTreeMap::new();
            for (key, &ways) in &states {
                // After a cut the key is empty and the node's inputs come from memory.
                let from_memory = key.is_empty();
                for choice in &space.choices[node] {
                    let matching = from_memory
                        || space.writers[node].iter().all(|w| {
                            let at = open.iter().position(|o| o == w);
                            at.is_none_or(|at| space.matches(*w, key[at], choice.folding.cin))
                        });
                    if !matching {
                        continue;
                    }
                    let next_key: Vec<u64> = next_open
                        .iter()
                        .map(|&o| {
                            if o == node {
                                choice.folding.cout
                            } else {
                                open.iter()
                                    .position(|&x| x == o)
                                    .and_then(|at| key.get(at).copied())
                                    .unwrap_or(0)
                            }
                        })
                        .collect();
                    *next.entry(next_key).or_default() += ways;
                }
            }
            if space.cuts.binary_search(&node).is_ok() {
                let all: f64 = next.values().sum();
                next.insert(Vec::new(), all);
            }
            states = next;
            open = next_open;
        }
        Self {
            full,
            intra,
            inter: states.values().sum(),
        }
    }
}

impl Brute {
    /// Enumerates at most `budget` designs, timed.
    #[must_use]
    pub fn count(space: &Space<'_>, backend: &dyn Backend, objective: Objective, budget: u64) -> Count {
        #![allow(clippy::cast_precision_loss)]
        let size = SpaceSize::of(space, backend);
        let start = Instant::now();
        let mut walk = Walk::new(space, objective.batch(), budget);
        walk.node(0);
        let seconds = start.elapsed().as_secs_f64().max(1e-9);
        let per_second = walk.judged as f64 / seconds;
        Count {
            space: size,
            judged: walk.judged,
            feasible: walk.feasible,
            complete: walk.judged < budget,
            per_second,
            whole_space_s: size.inter / per_second,
        }
    }
}

impl Optimiser for Brute {
    fn name(&self) -> &'static str {
        "brute"
    }

    fn optimise(&self, space: &Space<'_>, objective: Objective, budget: Budget) -> Result<Found, OptimiseError> {
        let mut walk = Walk::new(space, objective.batch(), budget.evaluations);
        walk.node(0);
        let complete = walk.judged < budget.evaluations;
        match walk.best {
            Some((time_us, picks, cuts)) => Ok(Found {
                design: space.design(&picks, cuts, objective),
                time_us,
                evaluations: walk.judged,
                feasible: walk.feasible,
                bound_us: if complete { time_us } else { 0.0 },
                convergence: walk.convergence,
            }),
            None if complete => Err(OptimiseError::Infeasible {
                platform: space.platform.name.clone(),
                shortages: space.shortages(),
            }),
            None => Err(OptimiseError::NotFound(walk.judged)),
        }
    }
}

/// Depth-first walk; sums are carried along, so a leaf costs no more than its last node.
struct Walk<'s, 'a> {
    space: &'s Space<'a>,
    batch: u64,
    budget: u64,
    judged: u64,
    feasible: u64,
    picks: Vec<usize>,
    cuts: Vec<usize>,
    can_cut: Vec<bool>,
    first: usize,
    sum: [u64; 4],
    interval: u64,
    /// Time of the closed partitions, and whether all of them are feasible.
    closed: (f64, bool),
    best: Option<(f64, Vec<usize>, Vec<usize>)>,
    convergence: Vec<(u64, f64)>,
}

impl<'s, 'a> Walk<'s, 'a> {
    fn new(space: &'s Space<'a>, batch: u64, budget: u64) -> Self {
        let n = space.graph.nodes.len();
        Self {
            space,
            batch,
            budget,
            judged: 0,
            feasible: 0,
            picks: vec![0; n],
            cuts: Vec::new(),
            can_cut: (0..n).map(|i| space.cuts.binary_search(&i).is_ok()).collect(),
            first: 0,
            sum: [0; 4],
            interval: 0,
            closed: (0.0, true),
            best: None,
            convergence: Vec::new(),
        }
    }

    fn node(&mut self, node: usize) {
        let space = self.space;
        for (c, choice) in space.choices[node].iter().enumerate() {
            if self.judged >= self.budget {
                return;
            }
            let matching = space.writers[node].iter().all(|&w| {
                w < self.first || space.matches(w, space.choices[w][self.picks[w]].folding.cout, choice.folding.cin)
            });
            if !matching {
                continue;
            }
            self.picks[node] = c;
            let before = (self.sum, self.interval);
            for r in 0..4 {
                self.sum[r] += choice.resources[r];
            }
            self.interval = self.interval.max(choice.latency);
            if node + 1 == space.graph.nodes.len() {
                self.leaf();
            } else {
                self.node(node + 1);
                if self.can_cut[node] && self.judged < self.budget {
                    let outer = (self.first, self.sum, self.interval, self.closed);
                    let (time, fits) = self.close(node);
                    self.closed = (time + space.platform.reconfiguration_us, fits);
                    (self.first, self.sum, self.interval) = (node + 1, [0; 4], 0);
                    self.cuts.push(node);
                    self.node(node + 1);
                    self.cuts.pop();
                    (self.first, self.sum, self.interval, self.closed) = outer;
                }
            }
            (self.sum, self.interval) = before;
        }
    }

    /// Time and feasibility with the open partition ending at `last`.
    fn close(&self, last: usize) -> (f64, bool) {
        let space = self.space;
        let fits = self.closed.1
            && (0..4).all(|r| self.sum[r] <= space.capacity[r])
            && self.interval >= space.bandwidth_floor(self.first, last);
        (self.closed.0 + space.execution_us(self.interval, self.batch), fits)
    }

    fn leaf(&mut self) {
        self.judged += 1;
        let (time, fits) = self.close(self.picks.len() - 1);
        if fits {
            self.feasible += 1;
            if self.best.as_ref().is_none_or(|b| time < b.0) {
                self.best = Some((time, self.picks.clone(), self.cuts.clone()));
                self.convergence.push((self.judged, time));
            }
        }
    }
}
