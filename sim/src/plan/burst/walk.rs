//! Residencies of the levels inside the PE, within one burst: counted by walking the temporal loops outside each
//! level, up to the last one that matters to the tensor.

use std::collections::{BTreeMap, HashMap};

use cyclonest_arch::Accesses;
use cyclonest_workloads::{Dim, DimMap, Tensor, TensorMap};

use super::{Bursts, InnerLoop, LineClasses, Tally};

/// Accesses at the two ends of a link, over all instances and for the first one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Walked {
    pub(super) all: Accesses,
    pub(super) first: Accesses,
}

/// An instance of a level in the PE.
#[derive(Debug, Clone)]
struct Spot {
    offset: DimMap<u64>,
    /// Which instance of the level before in the chain it belongs to.
    parent: usize,
    /// Coordinates at the networks in between that do not serve it together with others.
    class: u64,
    first_of_reduction: bool,
}

/// A tile: start of its box, and its lines where it is of inputs.
type Tile = (u64, u32, u32);

struct Odometer<'a> {
    loops: Vec<&'a InnerLoop>,
    indices: Vec<u64>,
    low: DimMap<u64>,
}

impl<'a> Odometer<'a> {
    fn new(loops: Vec<&'a InnerLoop>) -> Self {
        Odometer {
            indices: vec![0; loops.len()],
            loops,
            low: DimMap::default(),
        }
    }

    /// Moves on; an index past the extent ends its loop.
    fn advance(&mut self, extent: &DimMap<u64>) -> bool {
        for (l, index) in self.loops.iter().zip(&mut self.indices).rev() {
            if *index + 1 < l.trips && self.low[l.dim] + l.stride < extent[l.dim] {
                *index += 1;
                self.low[l.dim] += l.stride;
                return true;
            }
            self.low[l.dim] -= *index * l.stride;
            *index = 0;
        }
        false
    }
}

impl Bursts {
    /// Temporal loops between the PE level and `to`, up to the last that is relevant to `tensor`.
    fn outside(&self, to: usize, tensor: Tensor) -> Vec<&InnerLoop> {
        let loops: Vec<&InnerLoop> = self
            .loops
            .iter()
            .filter(|l| !l.spatial && l.level < to && l.trips > 1)
            .collect();
        let kept = loops
            .iter()
            .rposition(|l| tensor.is_relevant(l.dim))
            .map_or(0, |last| last + 1);
        loops[..kept].to_vec()
    }

    /// Instances of `to` in the PE, grouped under those of `from`.
    fn spots(&self, tensor: Tensor, from: usize, to: usize) -> Vec<Spot> {
        let mut spots = vec![Spot {
            offset: DimMap::default(),
            parent: 0,
            class: 0,
            first_of_reduction: true,
        }];
        for l in self.loops.iter().filter(|l| l.spatial && l.level < to) {
            let apart = !self.together[tensor][l.level - self.pe_level];
            spots = spots
                .iter()
                .flat_map(|spot| {
                    (0..l.trips).map(move |i| {
                        let mut next = spot.clone();
                        next.offset[l.dim] += i * l.stride;
                        if l.level < from {
                            next.parent = next.parent * l.trips as usize + i as usize;
                        } else {
                            next.first_of_reduction &= i == 0 || !l.dim.is_reduction();
                            if apart {
                                next.class = next.class * l.trips + i;
                            }
                        }
                        next
                    })
                })
                .collect();
        }
        spots
    }

    fn inner_tile(&self, level: usize) -> DimMap<u64> {
        DimMap::from_fn(|d| {
            self.loops
                .iter()
                .filter(|l| l.dim == d && l.level >= level)
                .map(|l| l.trips)
                .product()
        })
    }

    /// Fills of `to` and reads of `from` for an operand.
    pub(super) fn walk_operand(
        &self,
        tensor: Tensor,
        from: usize,
        to: usize,
        low: &DimMap<u64>,
        extent: &DimMap<u64>,
    ) -> Walked {
        let spots = self.spots(tensor, from, to);
        let size = self.inner_tile(to);
        let mut rows = SetNames::default();
        let mut columns = SetNames::default();
        let mut held: Vec<Option<Tile>> = vec![None; spots.len()];
        let mut walked = Walked::default();
        let mut odometer = Odometer::new(self.outside(to, tensor));
        loop {
            let mut served: Vec<(usize, u64, Tile)> = Vec::new();
            for (i, spot) in spots.iter().enumerate() {
                let at = DimMap::from_fn(|d| odometer.low[d] + spot.offset[d]);
                if Dim::ALL.iter().any(|&d| at[d] >= extent[d]) {
                    continue;
                }
                let mut corner = 0;
                let mut elements = 1;
                for d in Dim::ALL {
                    let is_line = tensor == Tensor::Inputs && matches!(d, Dim::P | Dim::Q | Dim::R | Dim::S);
                    if tensor.is_relevant(d) && !is_line {
                        corner = corner * extent[d] + at[d];
                        elements *= size[d].min(extent[d] - at[d]);
                    }
                }
                let mut tile = (corner, 0, 0);
                if tensor == Tensor::Inputs {
                    let (r, r_len) = rows.at(&self.rows, Dim::P, Dim::R, &at, &size, low, extent);
                    let (c, c_len) = columns.at(&self.columns, Dim::Q, Dim::S, &at, &size, low, extent);
                    tile = (corner, r, c);
                    elements *= r_len * c_len;
                }
                if elements == 0 {
                    held[i] = None;
                    continue;
                }
                if held[i] == Some(tile) {
                    continue;
                }
                held[i] = Some(tile);
                walked.all.fills += elements;
                if i == 0 {
                    walked.first.fills += elements;
                }
                let key = (spot.parent, spot.class, tile);
                if !served.contains(&key) {
                    served.push(key);
                    walked.all.reads += elements;
                    if spot.parent == 0 {
                        walked.first.reads += elements;
                    }
                }
            }
            if !odometer.advance(extent) {
                return walked;
            }
        }
    }

    /// Drains, fetches and read-modify-writes between the levels in the PE that keep outputs; the elements of the
    /// innermost one that start at zero, in all instances and in the first.
    pub(super) fn walk_outputs(&self, extent: &DimMap<u64>, continuing: bool, tally: &mut Tally) -> (u64, u64) {
        let tensor = Tensor::Outputs;
        let at_pe = self.keepers[tensor].first() == Some(&self.pe_level);
        let mut links: Vec<usize> = vec![self.pe_level];
        links.extend(self.keepers[tensor].iter().copied().filter(|&k| k > self.pe_level));
        let mut at_zero = (0, 0);
        for upto in 1..links.len() {
            let innermost = upto + 1 == links.len();
            let storage_above = upto > 1 || at_pe;
            let zero = self.walk_link(&links[..=upto], extent, continuing, storage_above, tally);
            if innermost {
                at_zero = zero;
            }
        }
        at_zero
    }

    fn walk_link(
        &self,
        links: &[usize],
        extent: &DimMap<u64>,
        continuing: bool,
        storage_above: bool,
        tally: &mut Tally,
    ) -> (u64, u64) {
        let tensor = Tensor::Outputs;
        let (from, to) = (links[links.len() - 2], links[links.len() - 1]);
        let spots: Vec<Vec<Spot>> = links.windows(2).map(|w| self.spots(tensor, w[0], w[1])).collect();
        let sizes: Vec<DimMap<u64>> = links[1..].iter().map(|&l| self.inner_tile(l)).collect();
        let whole = Held {
            tile: 0,
            number: 0,
            fetched: continuing,
            reduction: [0; 3],
        };
        let mut held: Vec<Vec<Option<Held>>> = vec![vec![Some(whole)]];
        held.extend(spots.iter().map(|s| vec![None; s.len()]));
        let mut parents: Vec<Vec<u64>> = spots.iter().map(|s| vec![u64::MAX; s.len()]).collect();
        let mut number = 0;
        let mut zero = (0, 0);
        let mut odometer = Odometer::new(self.outside(to, tensor));
        loop {
            for (link, level_spots) in spots.iter().enumerate() {
                let is_last = link + 1 == spots.len();
                let level = links[link + 1];
                // The level sees only the loops outside it.
                let mut outer = DimMap::default();
                for (l, index) in odometer.loops.iter().zip(&odometer.indices) {
                    if l.level < level {
                        outer[l.dim] += index * l.stride;
                    }
                }
                let mut visits: BTreeMap<(usize, u64), Vec<u64>> = BTreeMap::new();
                for (i, spot) in level_spots.iter().enumerate() {
                    let at: DimMap<u64> = DimMap::from_fn(|d| outer[d] + spot.offset[d]);
                    if Dim::ALL.iter().any(|&d| at[d] >= extent[d]) {
                        continue;
                    }
                    let mut corner = 0;
                    let mut elements = 1;
                    for d in Dim::ALL.into_iter().filter(|&d| tensor.is_relevant(d)) {
                        corner = corner * extent[d] + at[d];
                        elements *= sizes[link][d].min(extent[d] - at[d]);
                    }
                    let parent = held[link][spot.parent].expect("a parent exists wherever its child does");
                    let same = held[link + 1][i].is_some_and(|h| h.tile == corner) && parents[link][i] == parent.number;
                    if same {
                        continue;
                    }
                    number += 1;
                    let reduction = [outer[Dim::C], outer[Dim::R], outer[Dim::S]];
                    let fetched = spot.first_of_reduction && (parent.fetched || reduction != parent.reduction);
                    held[link + 1][i] = Some(Held {
                        tile: corner,
                        number,
                        fetched,
                        reduction,
                    });
                    parents[link][i] = parent.number;
                    if !is_last {
                        continue;
                    }
                    let streams = visits.entry((spot.parent, corner)).or_default();
                    let further = !streams.contains(&spot.class) && !streams.is_empty();
                    let new_stream = !streams.contains(&spot.class);
                    if new_stream {
                        streams.push(spot.class);
                    }
                    let note = |side: &mut Vec<TensorMap<Accesses>>, here: bool, above: bool| {
                        let t = &mut side[to - self.pe_level][tensor];
                        if here {
                            t.drains += elements;
                            t.fills += if fetched { elements } else { 0 };
                        }
                        if above && storage_above {
                            let f = &mut side[from - self.pe_level][tensor];
                            f.reads += if fetched { elements } else { 0 };
                            f.updates += if new_stream { elements } else { 0 };
                            if further {
                                f.reads += elements;
                                f.read_modify_writes += elements;
                            }
                        }
                    };
                    note(&mut tally.all, true, true);
                    note(&mut tally.first, i == 0, spot.parent == 0);
                    if !fetched {
                        zero.0 += elements;
                        zero.1 += if i == 0 { elements } else { 0 };
                    }
                }
            }
            if !odometer.advance(extent) {
                return zero;
            }
        }
    }
}

/// An output residency inside the PE.
#[derive(Debug, Clone, Copy)]
struct Held {
    tile: u64,
    number: u64,
    fetched: bool,
    /// C, R and S where it began.
    reduction: [u64; 3],
}

/// Names of the line sets met during a walk.
#[derive(Debug, Default)]
struct SetNames {
    at: HashMap<(u64, u64), (u32, u64)>,
    names: HashMap<Vec<u32>, u32>,
}

impl SetNames {
    #[allow(clippy::too_many_arguments)]
    fn at(
        &mut self,
        classes: &LineClasses,
        window: Dim,
        tap: Dim,
        at: &DimMap<u64>,
        size: &DimMap<u64>,
        low: &DimMap<u64>,
        extent: &DimMap<u64>,
    ) -> (u32, u64) {
        let names = &mut self.names;
        *self.at.entry((at[window], at[tap])).or_insert_with(|| {
            let range = |d: Dim| low[d] + at[d]..low[d] + (at[d] + size[d]).min(extent[d]);
            let set = classes.axis.lines(range(window), range(tap));
            let len = set.len() as u64;
            let next = names.len() as u32;
            (*names.entry(set).or_insert(next), len)
        })
    }
}
