//! Inputs that the PE level bypasses and a level inside it keeps, counted step by step.
//!
//! What a step moves is what the level inside is filled with (rule 6): the sum over its residencies in the burst, which
//! depends on everything at once (order of the inner loops, overlaps, padding, clipped tiles). So all steps of all PEs
//! are gone through, and in each all iterations of the burst. No bundled machine has such levels; where a mapping has
//! more than [`MOST`] iterations in all, it is refused.

use std::collections::BTreeMap;

use cyclonest_workloads::{Dim, DimMap, Tensor};

use super::classes::Span;
use super::hardware::{Hardware, PLAIN};
use super::nest::{Digit, Nest};
use super::walk::What;
use super::window::{AffineAxis, Rows};
use crate::cost::CostError;

/// Iterations that are gone through at most: steps × PEs × iterations of a burst.
const MOST: u64 = 10_000_000;

/// The stream from `parent` to the PEs of a mapping, whose first level inside that keeps the inputs is `next`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stepped<'a> {
    pub(super) nest: &'a Nest,
    pub(super) hardware: &'a Hardware,
    pub(super) axes: &'a [AffineAxis; 2],
    pub(super) parent: usize,
    pub(super) next: usize,
}

/// Loops of all dimensions with the dimension of each, in nest order.
type Loops = Vec<(Dim, Digit)>;

/// Children of a network instance by their coordinates, with where they stand.
type Children = BTreeMap<Vec<u64>, (u64, u64)>;

/// A tile of inputs: lowest N, G and C with the rows and columns.
#[derive(Debug, Clone, Copy)]
struct Tile {
    plain: [u64; 3],
    rows: Rows,
    columns: Rows,
}

/// A PE with work in a step.
struct Busy {
    setting: Vec<u64>,
    tile: Tile,
    elements: u64,
}

impl Stepped<'_> {
    /// Calls `send` for every group of transfers: what it counts, elements, members, and how many with their places.
    ///
    /// # Errors
    /// If there are too many iterations.
    pub(super) fn transfers(&self, send: &mut dyn FnMut(What, u64, u64, Span)) -> Result<(), CostError> {
        let event = self.hardware.event;
        let (temporal, spatial) = self.split(0, event);
        let inner = self.split(event, self.next);
        let iterations = [&temporal, &spatial, &inner.0, &inner.1]
            .into_iter()
            .flatten()
            .fold(1_u64, |product, (_, digit)| product.saturating_mul(digit.trips));
        if iterations > MOST {
            return Err(CostError::NotExpressible(format!(
                "Inputs bypass the PE level and are kept inside it: {iterations} iterations to count, at most {MOST} \
                 are expected"
            )));
        }
        let mut known = BTreeMap::new();
        for_each(&temporal, &mut |_, step| {
            let mut busy = Vec::new();
            for_each(&spatial, &mut |setting, place| {
                let at = sum(step, place);
                let Some(tile) = self.tile(event, &at) else { return };
                let elements = *known.entry(at.0).or_insert_with(|| self.filled(&inner, &at));
                busy.push(Busy {
                    setting: setting.to_vec(),
                    tile,
                    elements,
                });
            });
            self.group(&spatial, busy, send);
        });
        Ok(())
    }

    /// Temporal and spatial loops of the levels `from..to`.
    fn split(&self, from: usize, to: usize) -> (Loops, Loops) {
        let mut loops: Loops = Vec::new();
        for dim in Dim::ALL {
            let outside = self.nest.outside(from, dim).len();
            loops.extend(self.nest.outside(to, dim)[outside..].iter().map(|&digit| (dim, digit)));
        }
        loops.sort_unstable_by_key(|(_, digit)| digit.position);
        loops.into_iter().partition(|(_, digit)| !digit.spatial)
    }

    /// The tile of `level` at `at`; `None` if it does not exist or is padding only.
    fn tile(&self, level: usize, at: &DimMap<u64>) -> Option<Tile> {
        let bounds = &self.nest.bounds;
        if Dim::ALL.iter().any(|&dim| at[dim] >= bounds[dim]) {
            return None;
        }
        let extent = |dim: Dim| self.nest.extent(level, dim).min(bounds[dim] - at[dim]);
        let rows = |axis: &AffineAxis, p: Dim, r: Dim| axis.rows(at[p], extent(p), at[r], extent(r));
        let tile = Tile {
            plain: [Dim::N, Dim::G, Dim::C].map(|dim| at[dim]),
            rows: rows(&self.axes[0], Dim::P, Dim::R),
            columns: rows(&self.axes[1], Dim::Q, Dim::S),
        };
        (tile.rows.count > 0 && tile.columns.count > 0).then_some(tile)
    }

    fn same(&self, a: &Tile, b: &Tile) -> bool {
        a.plain == b.plain && self.axes[0].same(&a.rows, &b.rows) && self.axes[1].same(&a.columns, &b.columns)
    }

    /// Elements that the PE at `at` takes in for one burst.
    fn filled(&self, (temporal, spatial): &(Loops, Loops), at: &DimMap<u64>) -> u64 {
        let multicast = |digit: &Digit| self.hardware.multicast[digit.level].contains(Tensor::Inputs);
        let instances: u64 = spatial.iter().map(|(_, digit)| digit.trips).product();
        let mut loaded: Vec<Option<Tile>> = vec![None; instances as usize];
        let mut total = 0;
        for_each(temporal, &mut |_, iteration| {
            let mut started: Vec<(Vec<u64>, Tile)> = Vec::new();
            let mut instance = 0;
            for_each(spatial, &mut |setting, place| {
                let own = &mut loaded[instance];
                instance += 1;
                let at = sum(&sum(at, iteration), place);
                if Dim::ALL.iter().any(|&dim| at[dim] >= self.nest.bounds[dim]) {
                    return;
                }
                let tile = self.tile(self.next, &at);
                let kept = matches!((&*own, &tile), (Some(old), Some(new)) if self.same(old, new));
                *own = tile;
                let Some(tile) = tile.filter(|_| !kept) else { return };
                // One read serves all that differ only at networks with multicast.
                let apart: Vec<u64> = (setting.iter().zip(spatial))
                    .map(|(&value, (_, digit))| if multicast(digit) { 0 } else { value })
                    .collect();
                if started
                    .iter()
                    .any(|(known, other)| *known == apart && self.same(other, &tile))
                {
                    return;
                }
                let plain = PLAIN[Tensor::Inputs as usize].iter();
                let size: u64 = plain
                    .map(|&dim| self.nest.extent(self.next, dim).min(self.nest.bounds[dim] - at[dim]))
                    .product();
                total += size * tile.rows.count * tile.columns.count;
                started.push((apart, tile));
            });
        });
        total
    }

    /// Splits the transfers of one step into multicast groups (rule 10).
    fn group(&self, spatial: &Loops, mut busy: Vec<Busy>, send: &mut dyn FnMut(What, u64, u64, Span)) {
        let parent = self.parent;
        let fixed =
            |digit: &Digit| digit.level < parent || !self.hardware.multicast[digit.level].contains(Tensor::Inputs);
        while let Some(first) = busy.pop() {
            let (mut members, others): (Vec<Busy>, Vec<Busy>) = busy.into_iter().partition(|other| {
                let apart = |((a, b), (_, digit)): ((&u64, &u64), &(Dim, Digit))| a != b && fixed(digit);
                let mut pairs = first.setting.iter().zip(&other.setting).zip(spatial);
                other.elements == first.elements && self.same(&other.tile, &first.tile) && !pairs.any(apart)
            });
            busy = others;
            let elements = first.elements;
            members.push(first);
            send(What::Read, elements, 1, Span::singles(1, (0, 0)));
            for level in parent..self.hardware.event {
                // Children of each network instance that the transfer passes, by where they stand.
                let mut passes: BTreeMap<Vec<u64>, Children> = BTreeMap::new();
                for member in &members {
                    let part = |deepest: usize| -> Vec<u64> {
                        let with = member
                            .setting
                            .iter()
                            .zip(spatial)
                            .filter(|(_, (_, d))| d.level < deepest);
                        with.map(|(&value, _)| value).collect()
                    };
                    let here = member
                        .setting
                        .iter()
                        .zip(spatial)
                        .filter(|(_, (_, d))| d.level == level);
                    let stands = here.fold((0, 0), |at, (&value, (_, d))| {
                        (at.0 + value * d.step.0, at.1 + value * d.step.1)
                    });
                    passes.entry(part(level)).or_default().insert(part(level + 1), stands);
                }
                for children in passes.values() {
                    let mut heights: BTreeMap<u64, u64> = BTreeMap::new();
                    for &(x, y) in children.values() {
                        let height = heights.entry(x).or_insert(0);
                        *height = y.max(*height);
                    }
                    let span = Span {
                        count: 1,
                        across: heights.keys().next_back().copied().unwrap_or(0),
                        columns: heights.len() as u64,
                        along: heights.values().sum(),
                    };
                    send(What::Pass(level), elements, children.len() as u64, span);
                }
            }
        }
    }
}

fn sum(a: &DimMap<u64>, b: &DimMap<u64>) -> DimMap<u64> {
    DimMap::from_fn(|dim| a[dim] + b[dim])
}

/// Calls `visit` with every setting of `loops` in nest order, and with the indices that it adds.
fn for_each(loops: &[(Dim, Digit)], visit: &mut dyn FnMut(&[u64], &DimMap<u64>)) {
    let mut setting = vec![0; loops.len()];
    loop {
        let mut at = DimMap([0; 8]);
        for (&value, (dim, digit)) in setting.iter().zip(loops) {
            at[*dim] += value * digit.weight;
        }
        visit(&setting, &at);
        let Some(turn) = (0..loops.len()).rev().find(|&k| setting[k] + 1 < loops[k].1.trips) else {
            return;
        };
        setting[turn] += 1;
        setting[turn + 1..].fill(0);
    }
}
