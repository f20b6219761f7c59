//! What a sweep keeps: the best by each objective, and the Pareto front.
//!
//! All orders are total (equal figures are told apart by the design's number), so that the same designs are kept in
//! whatever order they are offered or merged.

use serde::{Deserialize, Serialize};

use super::plan::{Axis, Objective, Plan};

/// A design with the figures that it is judged by. In a log it is a list of four integers: its number and the bits of
/// its figures, which reading does not round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "[u64; 4]", from = "[u64; 4]")]
pub struct Entry {
    /// Number of the design.
    pub design: u64,
    /// Latency of all layers \[cycles\].
    pub cycles: f64,
    /// Energy of all layers, in the technology's unit.
    pub energy: f64,
    /// Area \[µm²\].
    pub area: f64,
}

impl From<Entry> for [u64; 4] {
    fn from(e: Entry) -> Self {
        [e.design, e.cycles.to_bits(), e.energy.to_bits(), e.area.to_bits()]
    }
}

impl From<[u64; 4]> for Entry {
    fn from([design, cycles, energy, area]: [u64; 4]) -> Self {
        Entry {
            design,
            cycles: f64::from_bits(cycles),
            energy: f64::from_bits(energy),
            area: f64::from_bits(area),
        }
    }
}

impl Entry {
    /// The figure that the objective lowers, then the others; all grow with each of the fields.
    fn key(&self, objective: Objective) -> [f64; 4] {
        let edp = self.cycles * self.energy;
        match objective {
            Objective::Throughput => [self.cycles, self.energy, self.area, 0.0],
            Objective::Energy => [self.energy, self.cycles, self.area, 0.0],
            Objective::Edp | Objective::Pareto => [edp, self.cycles, self.energy, self.area],
        }
    }

    fn before(&self, other: &Entry, objective: Objective) -> bool {
        let (a, b) = (self.key(objective), other.key(objective));
        for (a, b) in a.iter().zip(b) {
            match a.total_cmp(&b) {
                std::cmp::Ordering::Less => return true,
                std::cmp::Ordering::Greater => return false,
                std::cmp::Ordering::Equal => {}
            }
        }
        self.design < other.design
    }

    fn figure(&self, axis: Axis) -> f64 {
        match axis {
            Axis::Cycles => self.cycles,
            Axis::Energy => self.energy,
            Axis::Area => self.area,
        }
    }
}

/// The best by one objective, best first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Best {
    objective: Objective,
    entries: Vec<Entry>,
}

/// The designs that are kept of those offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    keep: usize,
    axes: Vec<Axis>,
    best: Vec<Best>,
    /// Members of the front; `None` if none is kept.
    front: Option<Vec<Entry>>,
}

/// What a log says of kept designs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Stored {
    /// The best by each objective, in the order of [`Kept::objectives`].
    pub best: Vec<Vec<Entry>>,
    /// The front.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub front: Vec<Entry>,
}

impl Kept {
    /// Nothing kept so far, for the objectives of `plan`.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let pareto = plan.objective == Objective::Pareto;
        let objectives = if pareto {
            vec![Objective::Throughput, Objective::Energy, Objective::Edp]
        } else {
            vec![plan.objective]
        };
        Kept {
            keep: plan.keep,
            axes: plan.front.clone(),
            best: objectives
                .into_iter()
                .map(|objective| Best {
                    objective,
                    entries: Vec::new(),
                })
                .collect(),
            front: pareto.then(Vec::new),
        }
    }

    /// The objectives by which designs are kept.
    pub fn objectives(&self) -> impl Iterator<Item = Objective> + '_ {
        self.best.iter().map(|best| best.objective)
    }

    /// The best by `objective`, best first; empty if it is not one of [`Kept::objectives`].
    #[must_use]
    pub fn best(&self, objective: Objective) -> &[Entry] {
        let best = self.best.iter().find(|best| best.objective == objective);
        best.map_or(&[], |best| &best.entries)
    }

    /// The front by ascending latency, then area, then number; empty if none is kept.
    #[must_use]
    pub fn front(&self) -> Vec<Entry> {
        let mut front = self.front.clone().unwrap_or_default();
        front.sort_by(|a, b| {
            (a.cycles.total_cmp(&b.cycles))
                .then(a.energy.total_cmp(&b.energy))
                .then(a.area.total_cmp(&b.area))
                .then(a.design.cmp(&b.design))
        });
        front
    }

    /// Offers a design.
    pub fn offer(&mut self, entry: Entry) {
        for best in &mut self.best {
            let full = best.entries.len() == self.keep;
            if full
                && best
                    .entries
                    .last()
                    .is_some_and(|last| !entry.before(last, best.objective))
            {
                continue;
            }
            let at = best.entries.partition_point(|e| e.before(&entry, best.objective));
            if full {
                best.entries.pop();
            }
            best.entries.insert(at, entry);
        }
        if let Some(front) = &mut self.front
            && !is_covered(front, &self.axes, &entry)
        {
            let axes = &self.axes;
            front.retain(|e| !axes.iter().all(|&a| entry.figure(a) <= e.figure(a)));
            front.push(entry);
        }
    }

    /// True if no design can be kept whose figures are all at least those of `bound` and whose number is at least
    /// that of `bound`.
    pub fn rejects(&mut self, bound: &Entry) -> bool {
        let keep = self.keep;
        let best = |best: &Best| {
            best.entries.len() == keep
                && best
                    .entries
                    .last()
                    .is_some_and(|last| !bound.before(last, best.objective))
        };
        self.best.iter().all(best)
            && match &mut self.front {
                Some(front) => is_covered(front, &self.axes, bound),
                None => true,
            }
    }

    /// Adds what another sweep kept.
    pub fn merge(&mut self, other: &Stored) {
        // Offering an entry to all lists changes nothing: what is good enough for a list is in it.
        for entry in other.best.iter().flatten().chain(&other.front) {
            if !self.holds(entry) {
                self.offer(*entry);
            }
        }
    }

    /// True if a list has the entry already; it has then been offered to all.
    fn holds(&self, entry: &Entry) -> bool {
        let mut lists = self.best.iter();
        lists.any(|b| {
            let at = b.entries.partition_point(|e| e.before(entry, b.objective));
            b.entries.get(at).is_some_and(|e| e.design == entry.design)
        })
    }

    /// For a log.
    #[must_use]
    pub fn store(&self) -> Stored {
        Stored {
            best: self.best.iter().map(|best| best.entries.clone()).collect(),
            front: self.front(),
        }
    }
}

/// True if a member is at least as good as `entry` by every axis; of equals the lowest number counts as better. The
/// member is moved to the front of the list: neighbours in a sweep are covered by the same.
fn is_covered(front: &mut [Entry], axes: &[Axis], entry: &Entry) -> bool {
    let covers = |e: &Entry| {
        axes.iter().all(|&a| e.figure(a) <= entry.figure(a))
            && (e.design <= entry.design || axes.iter().any(|&a| e.figure(a) < entry.figure(a)))
    };
    match front.iter().position(covers) {
        Some(at) => {
            front.swap(0, at);
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore::Plan;
    use proptest::prelude::*;

    fn plan(objective: Objective, keep: usize, front: Vec<Axis>) -> Plan {
        let text = crate::explore::text("kc_p_vgg16_late").unwrap();
        let plan = Plan::from_ron(text).unwrap();
        Plan {
            objective,
            keep,
            front,
            ..plan
        }
    }

    fn entries() -> impl Strategy<Value = Vec<Entry>> {
        let figures = prop::collection::vec((0..6_u8, 0..6_u8, 0..6_u8), 1..60);
        figures.prop_map(|all| {
            all.into_iter()
                .enumerate()
                .map(|(i, (c, e, a))| Entry {
                    design: i as u64,
                    cycles: c.into(),
                    energy: e.into(),
                    area: a.into(),
                })
                .collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Sorting everything is the obvious way to the best; comparing each with each the one to the front.
        #[test]
        fn what_is_kept_is_what_sorting_everything_gives(all in entries(), keep in 1..10_usize, split in 0..60_usize) {
            let axes = vec![Axis::Cycles, Axis::Energy, Axis::Area];
            let plan = plan(Objective::Pareto, keep, axes.clone());
            let mut kept = Kept::new(&plan);
            for &entry in all.iter().rev() {
                kept.offer(entry);
            }
            for objective in [Objective::Throughput, Objective::Energy, Objective::Edp] {
                let mut sorted = all.clone();
                sorted.sort_by(|a, b| if a.before(b, objective) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater });
                sorted.truncate(keep);
                prop_assert_eq!(kept.best(objective), &sorted[..]);
            }
            let dominated = |e: &Entry| all.iter().any(|o| {
                let no_worse = axes.iter().all(|&a| o.figure(a) <= e.figure(a));
                no_worse && (axes.iter().any(|&a| o.figure(a) < e.figure(a)) || o.design < e.design)
            });
            let mut numbers: Vec<u64> = kept.front().iter().map(|e| e.design).collect();
            numbers.sort_unstable();
            let expected: Vec<u64> = all.iter().filter(|e| !dominated(e)).map(|e| e.design).collect();
            prop_assert_eq!(numbers, expected);

            let (a, b) = all.split_at(split.min(all.len()));
            let half = |part: &[Entry]| {
                let mut kept = Kept::new(&plan);
                part.iter().for_each(|&e| kept.offer(e));
                kept.store()
            };
            let mut merged = Kept::new(&plan);
            merged.merge(&half(b));
            merged.merge(&half(a));
            prop_assert_eq!(merged.store(), kept.store());
        }

        #[test]
        fn what_is_rejected_would_not_be_kept(all in entries(), keep in 1..6_usize, pareto in any::<bool>(), extra in (0..3_u8, 0..3_u8, 0..3_u8)) {
            let objective = if pareto { Objective::Pareto } else { Objective::Energy };
            let mut kept = Kept::new(&plan(objective, keep, vec![Axis::Cycles, Axis::Energy]));
            for bound in all {
                let entry = Entry {
                    cycles: bound.cycles + f64::from(extra.0),
                    energy: bound.energy + f64::from(extra.1),
                    area: bound.area + f64::from(extra.2),
                    ..bound
                };
                let rejected = kept.rejects(&bound);
                let before = kept.store();
                kept.offer(entry);
                if rejected {
                    prop_assert_eq!(kept.store(), before);
                }
            }
        }
    }
}
