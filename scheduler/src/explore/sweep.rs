//! The sweep of a chunk: nested loops that leave out what cannot be kept.
//!
//! At every loop the *smallest completion* is looked at: the values that are fixed so far with the least of all
//! others. Area and power do not shrink when a value grows, latency does not grow with bandwidth; so if the smallest
//! completion is over budget, or no better than what the chunk has kept already, all designs inside the loop are
//! skipped at once. A chunk compares with what it has kept itself, nothing else: what it skips, and so every count
//! of a run, does not depend on threads or interruptions.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::group::{Figures, Group, Refusal};
use super::kept::{Entry, Kept, Stored};
use super::space::{BANDWIDTH, Design, L1, L2, LATENCY, LOOPS, MAPPING, OFFCHIP, PES, Space};

/// What became of designs. Every design is in one of the fields but `designs` and `over_budget`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// All of them.
    pub designs: u64,
    /// Those of which latency, energy, area and power were determined and compared.
    pub evaluated: u64,
    /// Of these, those over the budgets.
    pub over_budget: u64,
    /// Skipped, because the smallest completion has too much area.
    pub area: u64,
    /// Skipped, because the smallest completion takes too much power.
    pub power: u64,
    /// Left out, because a given buffer is smaller than the mapping needs.
    pub capacity: u64,
    /// Skipped, because enough better ones are known.
    pub bound: u64,
    /// Left out, because the model or the scheduler refuses them.
    pub refused: u64,
}

impl Tally {
    /// Adds the counts of other designs.
    pub fn add(&mut self, other: &Tally) {
        self.designs += other.designs;
        self.evaluated += other.evaluated;
        self.over_budget += other.over_budget;
        self.area += other.area;
        self.power += other.power;
        self.capacity += other.capacity;
        self.bound += other.bound;
        self.refused += other.refused;
    }
}

/// The result of a chunk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Swept {
    /// Which chunk.
    pub chunk: u64,
    /// What became of its designs.
    pub tally: Tally,
    /// What was kept of them.
    pub kept: Stored,
    /// The first design that was refused, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<(u64, String)>,
}

/// Sweeps chunks one after the other; what two of them share is analysed once.
#[derive(Debug)]
pub struct Sweeper<'a> {
    space: &'a Space,
    prune: bool,
    /// The last group, by mapping choice and PEs.
    group: Option<((usize, u64), Result<Group<'a>, String>)>,
    row: Vec<Option<Result<Figures, Refusal>>>,
}

/// Why designs are skipped.
enum Skip {
    Area,
    Power,
    Capacity,
    Bound,
    Refused(String),
}

/// The state of one sweep.
struct Walk {
    range: Range<u64>,
    at: [usize; LOOPS],
    swept: Swept,
    kept: Kept,
}

impl<'a> Sweeper<'a> {
    /// A sweeper; with `prune` off it evaluates every design, to the same result.
    #[must_use]
    pub fn new(space: &'a Space, prune: bool) -> Self {
        Sweeper {
            space,
            prune,
            group: None,
            row: vec![None; space.bandwidths.len()],
        }
    }

    /// Sweeps a chunk.
    pub fn chunk(&mut self, chunk: u64) -> Swept {
        let range = self.space.chunk(chunk);
        let mut walk = Walk {
            kept: Kept::new(&self.space.plan),
            swept: Swept {
                chunk,
                tally: Tally {
                    designs: range.end - range.start,
                    ..Tally::default()
                },
                kept: Stored::default(),
                refusal: None,
            },
            range,
            at: [0; LOOPS],
        };
        // Rows do not outlive a chunk: they belong to the outer values of the one before.
        self.forget_row();
        self.turn(0, 0, 0.0, &mut walk);
        walk.swept.kept = walk.kept.store();
        walk.swept
    }

    fn forget_row(&mut self) {
        self.row.fill(None);
    }

    /// One loop: the designs from `base` on, with the values of the loops outside fixed. No design in it has fewer
    /// `cycles`.
    fn turn(&mut self, depth: usize, base: u64, cycles: f64, walk: &mut Walk) {
        if depth == BANDWIDTH {
            return self.innermost(base, cycles, walk);
        }
        let (stride, length) = (self.space.strides[depth], self.space.lengths[depth]);
        let first = walk.range.start.saturating_sub(base) / stride;
        let last = (walk.range.end - base).div_ceil(stride).min(length);
        for i in first..last {
            walk.at[depth] = i as usize;
            let start = base + i * stride;
            if depth <= OFFCHIP
                || self
                    .group
                    .as_ref()
                    .is_some_and(|(_, g)| g.as_ref().is_ok_and(Group::depends_on_sizes))
            {
                self.forget_row();
            }
            let mut cycles = cycles;
            match self.skip(depth, start, &mut cycles, walk) {
                None => self.turn(depth + 1, start, cycles, walk),
                Some(skip) => {
                    let designs = walk.range.start.max(start)..walk.range.end.min(start + stride);
                    walk.count(&skip, designs);
                }
            }
        }
    }

    /// Whether all designs inside a turn of loop `depth` can be left out. Raises the lower bound of their cycles.
    fn skip(&mut self, depth: usize, start: u64, cycles: &mut f64, walk: &mut Walk) -> Option<Skip> {
        let space = self.space;
        let design = space.design(start);
        if depth == MAPPING {
            return None;
        }
        let mut least = Figures {
            cycles: 0.0,
            energy: 0.0,
            l1: 0,
            l2: 0,
        };
        if depth == PES {
            // Before anything is analysed.
            if self.prune
                && let Some(skip) = self.over_budget(&design, &least)
            {
                return Some(skip);
            }
            let key = (design.mapping, design.pes());
            if self.group.as_ref().is_none_or(|(known, _)| *known != key) {
                self.group = Some((key, Group::new(space, &design)));
            }
        }
        match &mut self.group {
            Some((_, Ok(group))) => {
                least = group.least;
                if depth == LATENCY || depth == OFFCHIP {
                    let mut best = design;
                    if depth == LATENCY {
                        best.offchip_bandwidth = *space.offchip.last().unwrap_or(&1);
                    }
                    *cycles = group.least_cycles(&best);
                }
                *cycles = cycles.max(least.cycles);
                least.cycles = *cycles;
            }
            Some((_, Err(why))) => return Some(Skip::Refused(why.clone())),
            None => {}
        }
        let (l1, l2) = (
            given(depth >= L1, design.l1, space.l1[0]),
            given(depth >= L2, design.l2, space.l2[0]),
        );
        let too_small = |size: Option<u64>, fixed: bool, need: u64| fixed && size.is_some_and(|size| size < need);
        if too_small(design.l1, depth >= L1, least.l1) || too_small(design.l2, depth >= L2, least.l2) {
            return Some(Skip::Capacity);
        }
        if !self.prune {
            return None;
        }
        least.l1 = l1.unwrap_or(least.l1);
        least.l2 = l2.unwrap_or(least.l2);
        if let Some(skip) = self.over_budget(&design, &least) {
            return Some(skip);
        }
        let bound = Entry {
            design: start,
            cycles: least.cycles,
            energy: least.energy,
            area: space.technology.area(self.smallest(&design, &least)),
        };
        walk.kept.rejects(&bound).then_some(Skip::Bound)
    }

    /// The resources of `design` with the least bandwidth and these buffers.
    fn smallest(&self, design: &Design, least: &Figures) -> cyclonest_arch::Resources {
        Design {
            noc_bandwidth: self.space.bandwidths[0],
            ..*design
        }
        .resources(least.l1, least.l2)
    }

    fn over_budget(&self, design: &Design, least: &Figures) -> Option<Skip> {
        let resources = self.smallest(design, least);
        let budget = &self.space.plan.budget;
        let technology = &self.space.technology;
        if budget
            .area_mm2
            .is_some_and(|most| technology.area(resources) > most * 1e6)
        {
            return Some(Skip::Area);
        }
        if budget.power_mw.is_some_and(|most| technology.power(resources) > most) {
            return Some(Skip::Power);
        }
        None
    }

    /// The innermost loop. Area and power grow from one bandwidth to the next: the first that is over budget ends it.
    fn innermost(&mut self, base: u64, cycles: f64, walk: &mut Walk) {
        let space = self.space;
        let Some((_, Ok(group))) = &mut self.group else { return };
        let first = walk.range.start.saturating_sub(base) as usize;
        let last = (walk.range.end - base).min(self.space.lengths[BANDWIDTH]) as usize;
        let mut design = space.design(base);
        let least = (design.l1.unwrap_or(group.least.l1), design.l2.unwrap_or(group.least.l2));
        let area = space.technology.area_by_bandwidth(design.resources(least.0, least.1));
        let power = space.technology.power_by_bandwidth(design.resources(least.0, least.1));
        let most_area = space.plan.budget.area_mm2.map_or(f64::INFINITY, |mm2| mm2 * 1e6);
        let most_power = space.plan.budget.power_mw.unwrap_or(f64::INFINITY);
        for i in first..last {
            design.noc_bandwidth = space.bandwidths[i];
            design.number = base + i as u64;
            let rest = design.number..base + last as u64;
            let least_area = area.at(design.noc_bandwidth);
            if self.prune {
                let bound = Entry {
                    design: design.number,
                    cycles,
                    energy: group.least.energy,
                    area: least_area,
                };
                let skip = if least_area > most_area {
                    Some(Skip::Area)
                } else if power.at(design.noc_bandwidth) > most_power {
                    Some(Skip::Power)
                } else {
                    walk.kept.rejects(&bound).then_some(Skip::Bound)
                };
                if let Some(skip) = skip {
                    return walk.count(&skip, rest);
                }
            }
            let figures = self.row[i].get_or_insert_with(|| group.figures(&design));
            match figures {
                Err(Refusal::Capacity) => walk.swept.tally.capacity += 1,
                Err(Refusal::Model(why)) => walk.refused(1, design.number, why),
                Ok(figures) => {
                    // The buffers of a row that does not depend on sizes are those of the first sizes.
                    let l1 = design.l1.unwrap_or(figures.l1);
                    let l2 = design.l2.unwrap_or(figures.l2);
                    let (mut area, mut power) = (least_area, power.at(design.noc_bandwidth));
                    if (l1, l2) != least {
                        let resources = design.resources(l1, l2);
                        (area, power) = (space.technology.area(resources), space.technology.power(resources));
                    }
                    walk.swept.tally.evaluated += 1;
                    if area > most_area || power > most_power {
                        walk.swept.tally.over_budget += 1;
                        continue;
                    }
                    walk.kept.offer(Entry {
                        design: design.number,
                        cycles: figures.cycles,
                        energy: figures.energy,
                        area,
                    });
                }
            }
        }
    }
}

/// The size of a buffer, or the least that it can have.
fn given(fixed: bool, chosen: Option<u64>, first: Option<u64>) -> Option<u64> {
    if fixed { chosen } else { first }
}

impl Walk {
    fn count(&mut self, skip: &Skip, designs: Range<u64>) {
        let n = designs.end - designs.start;
        let tally = &mut self.swept.tally;
        match skip {
            Skip::Area => tally.area += n,
            Skip::Power => tally.power += n,
            Skip::Capacity => tally.capacity += n,
            Skip::Bound => tally.bound += n,
            Skip::Refused(why) => self.refused(n, designs.start, why),
        }
    }

    fn refused(&mut self, designs: u64, first: u64, why: &str) {
        self.swept.tally.refused += designs;
        self.swept.refusal.get_or_insert_with(|| (first, why.to_owned()));
    }
}
