//! One partition: a run of nodes on one configuration. Whether it can reach an interval is decided by dynamic
//! programming over the nodes in topological order.
//!
//! The state after a node is the output folding of every node that a later one still reads; per state, the Pareto
//! set of resource sums. A sum is dropped when the least that the remaining nodes need does not fit beside it.

use std::collections::BTreeMap;

use super::relaxation::Relaxation;
use super::space::Space;

/// States that are followed; graphs with more open streams are left to the rule.
const STATES: usize = 20_000;

/// A run of nodes.
pub(super) struct Partition<'s, 'a> {
    space: &'s Space<'a>,
    first: usize,
    last: usize,
}

/// What the search for an interval says.
pub(super) enum Reach {
    /// A choice per node that reaches it.
    Yes(Vec<usize>),
    /// Nothing reaches it.
    No,
    /// The Pareto sets outgrew the limit before anything was found.
    Unknown,
}

/// A partial design: its resource sum, whether a node is slow enough for the memory, and where it came from.
#[derive(Clone, Copy)]
struct Label {
    sum: [u64; 4],
    slow: bool,
    parent: u32,
    choice: u32,
}

/// Output foldings of the nodes that are still to be read, in node order.
type Key = Vec<u64>;

impl<'s, 'a> Partition<'s, 'a> {
    pub(super) const fn new(space: &'s Space<'a>, first: usize, last: usize) -> Self {
        Self { space, first, last }
    }

    /// Latencies that any node can have, ascending, from the first on that every node can reach and that the
    /// memory allows.
    pub(super) fn candidates(&self) -> Vec<u64> {
        let floor = self.floor();
        let mut all: Vec<u64> = (self.first..=self.last)
            .flat_map(|n| self.space.choices[n].iter().map(|c| c.latency))
            .filter(|&l| l >= floor)
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// No interval is shorter: the slowest of the nodes' fastest choices that fit by themselves, and the bandwidth.
    pub(super) fn floor(&self) -> u64 {
        self.node_floor().max(self.space.bandwidth_floor(self.first, self.last))
    }

    /// Whether the memory could ask for a longer interval than the nodes take: then a partition that contains this one,
    /// with other words at its ends, may be faster than it.
    pub(super) fn may_be_memory_bound(&self) -> bool {
        self.space.bandwidth_floor(self.first, self.last) > self.node_floor()
    }

    fn node_floor(&self) -> u64 {
        let capacity = &self.space.capacity;
        (self.first..=self.last)
            .map(|n| {
                let fitting = self.space.choices[n]
                    .iter()
                    .filter(|c| (0..4).all(|r| c.resources[r] <= capacity[r]));
                fitting.map(|c| c.latency).min().unwrap_or(u64::MAX)
            })
            .max()
            .unwrap_or(0)
    }

    /// Nodes whose output a node after `node` still reads, ascending.
    fn open_after(&self, node: usize) -> Vec<usize> {
        (self.first..=node)
            .filter(|&n| {
                let last = self.space.last_reader[n].min(self.last);
                last > node
            })
            .collect()
    }

    /// Indices of the choices of a node that reach `interval` and that no other with the same channel foldings
    /// undercuts in every resource.
    fn useful(&self, node: usize, interval: u64, slow_from: u64) -> Vec<usize> {
        let all = &self.space.choices[node];
        let capacity = &self.space.capacity;
        let mut kept: Vec<usize> = Vec::new();
        for (index, choice) in all.iter().enumerate() {
            if choice.latency > interval || (0..4).any(|r| choice.resources[r] > capacity[r]) {
                continue;
            }
            let same = |other: usize| {
                let o = &all[other];
                o.folding.cin == choice.folding.cin && o.folding.cout == choice.folding.cout
            };
            let covers = |a: usize, b: usize| {
                (0..4).all(|r| all[a].resources[r] <= all[b].resources[r])
                    && (all[a].latency >= slow_from || all[b].latency < slow_from)
            };
            if kept.iter().any(|&k| same(k) && covers(k, index)) {
                continue;
            }
            kept.retain(|&k| !(same(k) && covers(index, k)));
            kept.push(index);
        }
        kept
    }

    /// Finds a choice per node with every latency at most `interval`; keeps at most `limit` sums per node.
    /// Every partial design that is examined or compared with another one takes 1 from `work`; with none left the answer
    /// is unknown.
    pub(super) fn reach(&self, interval: u64, limit: usize, work: &mut u64) -> Reach {
        let space = self.space;
        let slow_from = space.bandwidth_floor(self.first, self.last);
        let nodes: Vec<usize> = (self.first..=self.last).collect();
        let useful: Vec<Vec<usize>> = nodes.iter().map(|&n| self.useful(n, interval, slow_from)).collect();
        if useful.iter().any(Vec::is_empty) {
            return Reach::No;
        }
        // Least of each resource from node i on, matching ignored.
        let mut rest = vec![[0u64; 4]; nodes.len() + 1];
        for i in (0..nodes.len()).rev() {
            let least = |r: usize| useful[i].iter().map(|&c| space.choices[nodes[i]][c].resources[r]).min();
            rest[i] = std::array::from_fn(|r| rest[i + 1][r] + least(r).unwrap_or(0));
        }
        let relaxation = self.relaxation(&useful, false);
        if relaxation.excludes() {
            return Reach::No;
        }
        // The same for the weighted sum of the resources.
        let mut weighted_rest = vec![0.0; nodes.len() + 1];
        for i in (0..nodes.len()).rev() {
            let costs = useful[i]
                .iter()
                .map(|&c| relaxation.cost(&space.choices[nodes[i]][c].resources));
            weighted_rest[i] = weighted_rest[i + 1] + costs.fold(f64::INFINITY, f64::min);
        }
        let mut arena: Vec<Vec<Label>> = Vec::with_capacity(nodes.len());
        let start = Label {
            sum: [0; 4],
            slow: slow_from == 0,
            parent: 0,
            choice: 0,
        };
        let mut states: BTreeMap<Key, Vec<(Label, u32)>> = BTreeMap::from([(Key::new(), vec![(start, 0)])]);
        let mut open: Vec<usize> = Vec::new();
        let mut complete = true;
        for (i, &node) in nodes.iter().enumerate() {
            let next_open = self.open_after(node);
            let mut next: BTreeMap<Key, Vec<Label>> = BTreeMap::new();
            let writers: Vec<(usize, usize)> = space.writers[node]
                .iter()
                .filter(|&&w| w >= self.first)
                .map(|&w| {
                    (
                        w,
                        open.iter()
                            .position(|&o| o == w)
                            .expect("a writer is open until it is read"),
                    )
                })
                .collect();
            for (key, labels) in &states {
                for &c in &useful[i] {
                    let choice = &space.choices[node][c];
                    if !writers
                        .iter()
                        .all(|&(w, at)| space.matches(w, key[at], choice.folding.cin))
                    {
                        continue;
                    }
                    let mut next_key = Key::with_capacity(next_open.len());
                    for &o in &next_open {
                        next_key.push(if o == node {
                            choice.folding.cout
                        } else {
                            key[open.iter().position(|&x| x == o).expect("stays open")]
                        });
                    }
                    let bucket = next.entry(next_key).or_default();
                    *work = work.saturating_sub(labels.len() as u64);
                    if *work == 0 {
                        return Reach::Unknown;
                    }
                    for (label, id) in labels {
                        let mut sum = label.sum;
                        let mut fits = true;
                        for r in 0..4 {
                            sum[r] += choice.resources[r];
                            fits &= sum[r] + rest[i + 1][r] <= space.capacity[r];
                        }
                        if fits && !Relaxation::exceeds(relaxation.cost(&sum), weighted_rest[i + 1]) {
                            let slow = label.slow || choice.latency >= slow_from;
                            #[allow(clippy::cast_possible_truncation)]
                            bucket.push(Label {
                                sum,
                                slow,
                                parent: *id,
                                choice: c as u32,
                            });
                        }
                    }
                }
            }
            next.retain(|_, labels| !labels.is_empty());
            let count = next.len();
            if count == 0 {
                return if complete { Reach::No } else { Reach::Unknown };
            }
            if count > STATES {
                return Reach::Unknown;
            }
            let share = (limit / count).max(16);
            let mut kept: Vec<Label> = Vec::new();
            states = BTreeMap::new();
            for (key, labels) in next {
                let mut front = pareto(labels, work);
                if *work == 0 {
                    return Reach::Unknown;
                }
                if front.len() > share {
                    complete = false;
                    thin(&mut front, share, &space.capacity);
                }
                let mut numbered = Vec::with_capacity(front.len());
                for label in front {
                    #[allow(clippy::cast_possible_truncation)]
                    numbered.push((label, kept.len() as u32));
                    kept.push(label);
                }
                states.insert(key, numbered);
            }
            arena.push(kept);
            open = next_open;
        }
        let done = arena.last().and_then(|labels| labels.iter().position(|l| l.slow));
        let Some(mut at) = done else {
            return if complete { Reach::No } else { Reach::Unknown };
        };
        let mut picks = vec![0; nodes.len()];
        for i in (0..nodes.len()).rev() {
            let label = arena[i][at];
            picks[i] = label.choice as usize;
            at = label.parent as usize;
        }
        Reach::Yes(picks)
    }

    /// What the nodes take together at least, if each chooses among `useful`.
    fn relaxation(&self, useful: &[Vec<usize>], tight: bool) -> Relaxation {
        let choices: Vec<Vec<[u64; 4]>> = (self.first..=self.last)
            .zip(useful)
            .map(|(n, useful)| useful.iter().map(|&c| self.space.choices[n][c].resources).collect())
            .collect();
        Relaxation::new(self.space, &choices, tight)
    }

    /// Per resource, the least that would do with the others as they are, where the nodes do not fit at any interval
    /// although every resource suffices by itself; `None` where they may fit.
    pub(super) fn needed_together(&self) -> Option<[Option<u64>; 4]> {
        let useful: Vec<Vec<usize>> = (self.first..=self.last).map(|n| self.useful(n, u64::MAX, 0)).collect();
        let relaxation = self.relaxation(&useful, true);
        relaxation
            .excludes()
            .then(|| std::array::from_fn(|r| relaxation.needed(r, &self.space.capacity)))
    }

    /// The least of one resource that the nodes need by themselves, matching left aside: no design needs less.
    pub(super) fn least(&self, resource: usize) -> u64 {
        let least = |n: usize| self.space.choices[n].iter().map(|c| c.resources[resource]).min();
        (self.first..=self.last).map(|n| least(n).unwrap_or(0)).sum()
    }

    /// The choice per node with the least sum of `cost`, every latency at most `interval`; capacities are ignored.
    /// `None` where nothing matches.
    pub(super) fn cheapest(&self, interval: u64, cost: impl Fn(usize, usize) -> f64) -> Option<Vec<usize>> {
        let space = self.space;
        let mut states: BTreeMap<Key, (f64, u32)> = BTreeMap::from([(Key::new(), (0.0, 0))]);
        let mut arena: Vec<Vec<(u32, u32)>> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for node in self.first..=self.last {
            let next_open = self.open_after(node);
            let mut next: BTreeMap<Key, (f64, u32, u32)> = BTreeMap::new();
            let writers: Vec<(usize, usize)> = space.writers[node]
                .iter()
                .filter(|&&w| w >= self.first)
                .map(|&w| {
                    (
                        w,
                        open.iter()
                            .position(|&o| o == w)
                            .expect("a writer is open until it is read"),
                    )
                })
                .collect();
            for (c, choice) in space.choices[node].iter().enumerate() {
                if choice.latency > interval {
                    continue;
                }
                let own = cost(node, c);
                for (key, &(total, id)) in &states {
                    if !writers
                        .iter()
                        .all(|&(w, at)| space.matches(w, key[at], choice.folding.cin))
                    {
                        continue;
                    }
                    let next_key: Key = next_open
                        .iter()
                        .map(|&o| {
                            if o == node {
                                choice.folding.cout
                            } else {
                                key[open.iter().position(|&x| x == o).expect("stays open")]
                            }
                        })
                        .collect();
                    let sum = total + own;
                    #[allow(clippy::cast_possible_truncation)]
                    let entry = next.entry(next_key).or_insert((f64::INFINITY, 0, 0));
                    if sum < entry.0 {
                        #[allow(clippy::cast_possible_truncation)]
                        let pick = c as u32;
                        *entry = (sum, id, pick);
                    }
                }
            }
            let mut kept = Vec::with_capacity(next.len());
            states = BTreeMap::new();
            if next.len() > STATES {
                // The cheapest ones go on: no longer the least of all, still a design.
                let mut sums: Vec<f64> = next.values().map(|v| v.0).collect();
                let (_, &mut limit, _) = sums.select_nth_unstable_by(STATES, f64::total_cmp);
                next.retain(|_, v| v.0 < limit);
            }
            for (key, (sum, parent, choice)) in next {
                #[allow(clippy::cast_possible_truncation)]
                states.insert(key, (sum, kept.len() as u32));
                kept.push((parent, choice));
            }
            if kept.is_empty() {
                return None;
            }
            arena.push(kept);
            open = next_open;
        }
        let (_, &(_, mut at)) = states.iter().min_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
        let mut picks = vec![0; arena.len()];
        for i in (0..arena.len()).rev() {
            let (parent, choice) = arena[i][at as usize];
            picks[i] = choice as usize;
            at = parent;
        }
        Some(picks)
    }
}

/// Sums that no other sum undercuts in every resource.
fn pareto(mut labels: Vec<Label>, work: &mut u64) -> Vec<Label> {
    labels.sort_unstable_by(|a, b| a.sum.cmp(&b.sum).then(b.slow.cmp(&a.slow)));
    labels.dedup_by(|b, a| a.sum == b.sum && a.slow >= b.slow);
    let mut front: Vec<Label> = Vec::new();
    for label in labels {
        // Sorted by the first resource, so only earlier ones can cover a later one.
        let covered = front
            .iter()
            .rev()
            .position(|f| (1..4).all(|r| f.sum[r] <= label.sum[r]) && f.slow >= label.slow);
        *work = work.saturating_sub(covered.unwrap_or(front.len()) as u64 + 1);
        if *work == 0 {
            // The caller gives up.
            return front;
        }
        if covered.is_none() {
            front.push(label);
        }
    }
    front
}

/// Keeps the `share` sums that use the least of what there is.
fn thin(front: &mut Vec<Label>, share: usize, capacity: &[u64; 4]) {
    #[allow(clippy::cast_precision_loss)]
    let load = |label: &Label| {
        let parts = (0..4).map(|r| label.sum[r] as f64 / capacity[r].max(1) as f64);
        parts.clone().fold(0.0, f64::max) + parts.sum::<f64>() / 4.0
    };
    front.sort_by(|a, b| load(a).total_cmp(&load(b)).then(a.sum.cmp(&b.sum)));
    front.truncate(share);
}
