//! Which places in the loop nest are alike: what a machine meets there differs by nothing that it could notice.

use std::collections::BTreeSet;

use cyclonest_workloads::{Dim, DimMap};

use crate::mutate::is_waived;
use crate::plan::Plan;
use crate::plan::cursor::TemporalLoop;
use crate::relative::{Shift, first_difference};

/// Places that are looked at in one stretch at most; a stretch that sees more is not remembered.
const MOST_PLACES: usize = 512;

/// The places of the nest that a machine goes through in a stretch of time, as indices of the outermost loops.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    /// Length of a place, then its indices, again and again.
    words: Vec<u64>,
    /// The same, to find them, while they are collected.
    seen: BTreeSet<Vec<u64>>,
    /// The outermost loop in which something behind PE 0 caught up with where PE 0 was at the start of the stretch.
    caught_up: Option<usize>,
}

impl Places {
    fn iter(&self) -> impl Iterator<Item = &[u64]> {
        let mut rest = self.words.as_slice();
        std::iter::from_fn(move || {
            let (&length, tail) = rest.split_first()?;
            let (place, tail) = tail.split_at(length as usize);
            rest = tail;
            Some(place)
        })
    }

    /// Size in memory, in words.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Adds a place; false if there are too many.
    pub(super) fn add(&mut self, place: &[u64]) -> bool {
        if !self.seen.contains(place) {
            self.seen.insert(place.to_vec());
            self.words.push(place.len() as u64);
            self.words.extend_from_slice(place);
        }
        self.seen.len() <= MOST_PLACES
    }

    /// No more places are added.
    pub(super) fn complete(&mut self) {
        self.seen = BTreeSet::new();
    }

    /// Adds what lies between two places (to the end of the nest without `to`), while PE 0 is at `here` at the start;
    /// false if that is too much.
    pub(super) fn sweep(&mut self, plan: &Plan, from: &[u64], to: Option<&[u64]>, here: &[u64]) -> bool {
        let loops = &plan.steps[plan.pe_level].loops[..from.len()];
        let behind = first_difference(from, here).filter(|&l| from[l] < here[l]);
        let mut place = from.to_vec();
        let mut low = DimMap::<u64>::default();
        for (l, index) in loops.iter().zip(from) {
            low[l.dim] += l.stride * index;
        }
        loop {
            if let Some(l) = behind
                && place[l] >= here[l]
            {
                self.caught_up = Some(self.caught_up.map_or(l, |c| c.min(l)));
            }
            if !self.add(&place) {
                return false;
            }
            if to == Some(place.as_slice()) {
                return true;
            }
            if !advance(loops, &plan.problem.bounds, &mut place, &mut low) {
                // Only who is finished gets here.
                return to.is_none();
            }
        }
    }

    /// True if a machine that is moved from where PE 0 is at `from` to `to` meets the same in these places.
    pub(super) fn alike(&self, plan: &Plan, from: &[u64], to: &[u64]) -> bool {
        self.meet_the_same(plan, from, to) || is_waived("Places")
    }

    fn meet_the_same(&self, plan: &Plan, from: &[u64], to: &[u64]) -> bool {
        let Some(first) = first_difference(from, to) else {
            return true;
        };
        if self
            .caught_up
            .is_some_and(|l| (l + 1..from.len()).any(|m| from[m] != to[m]))
            && !is_waived("Catching up")
        {
            return false;
        }
        let shift = Shift::new(&plan.steps, from, to);
        let mut moved = Vec::new();
        self.iter().all(|place| {
            moved.clear();
            moved.extend_from_slice(place);
            shift.indices(&mut moved);
            place.len() <= first || alike(plan, place, &moved)
        })
    }

    /// How often PE 0 may make the same `step` along loop `l`, coming from `here`, with everything staying alike.
    /// The stretch was seen from `seen`, and what lies between `seen` and `here` is alike.
    pub(super) fn repeats(&self, plan: &Plan, seen: &[u64], here: &[u64], l: usize, step: u64) -> u64 {
        let most = (plan.steps[plan.pe_level].loops[l].trips - here[l]) / step;
        if self.caught_up.is_some_and(|c| c < l) && !is_waived("Catching up") {
            return 1;
        }
        let shift = Shift::new(&plan.steps, seen, here);
        let mut affected: Vec<Vec<u64>> = Vec::new();
        for place in self.iter().filter(|p| p.len() > l && p[..l] == seen[..l]) {
            let mut place = place.to_vec();
            shift.indices(&mut place);
            affected.push(place);
        }
        // Places that are further along are alike up to some iteration, and not from there on.
        let holds = |times: u64| {
            affected.iter().all(|place| {
                let mut moved = place.clone();
                moved[l] += (times - 1) * step;
                alike(plan, place, &moved)
            })
        };
        let (mut sure, mut beyond) = (1, most + 1);
        while beyond - sure > 1 {
            let middle = sure + (beyond - sure) / 2;
            if holds(middle) {
                sure = middle;
            } else {
                beyond = middle;
            }
        }
        sure
    }
}

/// The next place that exists for the instance with all coordinates 0; whatever exists for another one does for it.
fn advance(loops: &[TemporalLoop], bounds: &DimMap<u64>, place: &mut [u64], low: &mut DimMap<u64>) -> bool {
    for (l, index) in loops.iter().zip(place).rev() {
        if *index + 1 < l.trips && low[l.dim] + l.stride < bounds[l.dim] {
            *index += 1;
            low[l.dim] += l.stride;
            return true;
        }
        low[l.dim] -= *index * l.stride;
        *index = 0;
    }
    false
}

/// True if two places of the nest, given as indices of the outermost loops, are alike: for every instance, as much is
/// left before the bound of every dimension as far as anyone sees from there, rows and columns lie in the same way to
/// the padding, the same loops are at their last trip, and the same ones of the reduction at their first.
fn alike(plan: &Plan, a: &[u64], b: &[u64]) -> bool {
    let loops = &plan.steps[plan.pe_level].loops;
    let bounds = &plan.problem.bounds;
    let (mut low_a, mut low_b) = (DimMap::<u64>::default(), DimMap::<u64>::default());
    for (l, (&i, &j)) in loops.iter().zip(a.iter().zip(b)) {
        if i >= l.trips || j >= l.trips || (i + 1 == l.trips) != (j + 1 == l.trips) && !is_waived("Trips") {
            return false;
        }
        // Behind the first iteration of a reduction, outputs have been drained before (rule 17).
        if l.dim.is_reduction() && (i == 0) != (j == 0) && !is_waived("First of reduction") {
            return false;
        }
        low_a[l.dim] += i * l.stride;
        low_b[l.dim] += j * l.stride;
        if low_a[l.dim] == low_b[l.dim] {
            continue;
        }
        let line = LineView::of(plan, l);
        for &base in &plan.bases[l.level][l.dim] {
            let (at_a, at_b) = (base + low_a[l.dim], base + low_b[l.dim]);
            // Whoever is here looks at his own iteration and whether there is a next one: less than two strides.
            let left = |at: u64| bounds[l.dim].saturating_sub(at).min(2 * l.stride);
            if left(at_a) != left(at_b) && !is_waived("Bounds") {
                return false;
            }
            if line.as_ref().is_some_and(|line| line.at(at_a) != line.at(at_b)) && !is_waived("Lines") {
                return false;
            }
        }
    }
    true
}

/// What an iteration of a loop over P, Q, R or S sees of the input's rows or columns.
struct LineView {
    /// Lines from one index to the next.
    step: u64,
    /// Lines that the iteration can touch, with any index of the other dimension.
    reach: u64,
    real: std::ops::Range<u64>,
}

impl LineView {
    fn of(plan: &Plan, l: &TemporalLoop) -> Option<Self> {
        let p = &plan.problem;
        let (step, other, other_step, real) = match l.dim {
            Dim::P => (p.stride.0, Dim::R, p.dilation.0, p.real_rows()),
            Dim::R => (p.dilation.0, Dim::P, p.stride.0, p.real_rows()),
            Dim::Q => (p.stride.1, Dim::S, p.dilation.1, p.real_columns()),
            Dim::S => (p.dilation.1, Dim::Q, p.stride.1, p.real_columns()),
            _ => return None,
        };
        Some(LineView {
            step,
            reach: (l.stride - 1) * step + (p.bounds[other] - 1) * other_step + 1,
            real,
        })
    }

    /// Where the first real line and the end of the real lines lie, as far as can be seen.
    fn at(&self, index: u64) -> (u64, u64) {
        let seen = |line: u64| line.saturating_sub(index * self.step).min(self.reach);
        (seen(self.real.start), seen(self.real.end))
    }
}
