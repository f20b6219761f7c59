//! The nest walked as Timeloop walks it: recursively, with tiles as boxes that move.
//!
//! It is the reference for the closed form, the only path for imperfect factors, and, with extrapolation, the
//! default of the original: of each temporal loop only the first two and the last two iterations are walked, of
//! the instances only the first. That is where imperfect factors go wrong: idle lanes are counted as busy.

use std::collections::BTreeMap;

use super::closed::hops;
use super::nest::{Nest, NestLoop, Workload};
use super::traffic::{LevelTraffic, Record};

const MAX_AXES: usize = 8;

/// A box: the half-open range of each axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Tile {
    low: [i64; MAX_AXES],
    high: [i64; MAX_AXES],
    axes: usize,
}

impl Tile {
    fn size(&self) -> u64 {
        (0..self.axes).map(|a| (self.high[a] - self.low[a]) as u64).product()
    }

    /// How far the box moved: its high corner, which is what the original compares where boxes shrink or grow in
    /// a last iteration. `None` from nothing.
    fn moved_from(&self, previous: &Tile) -> Option<[i64; MAX_AXES]> {
        (previous.size() > 0).then(|| std::array::from_fn(|a| self.high[a] - previous.high[a]))
    }

    /// What is new in comparison with `previous`: exact if the boxes differ along one axis, all of it otherwise.
    fn minus(&self, previous: &Tile) -> Tile {
        if self.size() == 0 || previous.size() == 0 {
            return *self;
        }
        if self == previous {
            return Tile {
                axes: self.axes,
                ..Tile::default()
            };
        }
        let differing: Vec<usize> = (0..self.axes)
            .filter(|&a| self.low[a] != previous.low[a] || self.high[a] != previous.high[a])
            .collect();
        let &[a] = differing.as_slice() else { return *self };
        if previous.high[a] <= self.low[a] || previous.low[a] >= self.high[a] {
            return *self;
        }
        let mut rest = *self;
        if previous.low[a] <= self.low[a] {
            if previous.high[a] < self.high[a] {
                rest.low[a] = previous.high[a];
            } else {
                rest = Tile {
                    axes: self.axes,
                    ..Tile::default()
                };
            }
        } else if previous.high[a] >= self.high[a] {
            rest.high[a] = previous.low[a];
        }
        rest
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Temporal,
    Spatial,
}

#[derive(Debug, Clone, Copy)]
struct FlatLoop {
    dim: usize,
    bound: u64,
    last: u64,
    kind: Kind,
    storage: usize,
    /// How far one iteration moves along the dimension.
    stride: u64,
}

/// What one instance remembers at one loop.
#[derive(Debug, Clone, Default)]
struct State {
    previous: Vec<Tile>,
    translation: Vec<Option<[i64; MAX_AXES]>>,
    max_size: Vec<u64>,
    records: Vec<BTreeMap<(u64, u64), (f64, f64)>>,
}

struct Walk<'a> {
    workload: &'a Workload,
    extrapolate: bool,
    run_last: bool,
    loops: Vec<FlatLoop>,
    mold: Vec<Vec<u64>>,
    mold_last: Vec<Vec<u64>>,
    /// The outermost loop of its storage level.
    boundary: Vec<bool>,
    /// The outermost spatial loop of its storage level.
    master: Vec<bool>,
    fanout: Vec<u64>,
    mesh: Vec<(u64, u64)>,
    states: Vec<BTreeMap<Vec<u64>, State>>,
    indices: Vec<u64>,
    origin: Vec<i64>,
    stamp: Vec<u64>,
    epochs: u64,
}

/// Traffic of every level, inner to outer.
pub(super) fn traffic(workload: &Workload, nest: &Nest, extrapolate: bool) -> Vec<LevelTraffic> {
    let mut walk = Walk::new(workload, nest, extrapolate);
    let outermost = walk.loops.len() - 1;
    walk.deltas(outermost);
    walk.collect(nest)
}

impl<'a> Walk<'a> {
    fn new(workload: &'a Workload, nest: &Nest, extrapolate: bool) -> Self {
        let dims = workload.dims.len();
        let mut loops: Vec<FlatLoop> = Vec::new();
        let (mut boundary, mut master) = (Vec::new(), Vec::new());
        let mut reach = vec![1u64; dims];
        let mut add = |loops: &mut Vec<FlatLoop>, l: &NestLoop, kind, storage| {
            loops.push(FlatLoop {
                dim: l.dim,
                bound: l.bound,
                last: l.last,
                kind,
                storage,
                stride: reach[l.dim],
            });
            reach[l.dim] *= l.bound;
        };
        for (storage, block) in nest.blocks.iter().enumerate() {
            let first = loops.len();
            for l in block.spatial().filter(|l| l.bound > 1) {
                add(&mut loops, l, Kind::Spatial, storage);
            }
            let spatial = loops.len();
            for l in block.temporal.iter().filter(|l| l.bound > 1) {
                add(&mut loops, l, Kind::Temporal, storage);
            }
            if loops.len() == first {
                let trivial = NestLoop {
                    dim: dims - 1,
                    bound: 1,
                    last: 1,
                };
                add(&mut loops, &trivial, Kind::Temporal, storage);
            }
            boundary.resize(loops.len(), false);
            boundary[loops.len() - 1] = true;
            master.resize(loops.len(), false);
            if spatial > first {
                master[spatial - 1] = true;
            }
        }
        let (mut full, mut last) = (vec![1u64; dims], vec![1u64; dims]);
        let (mut mold, mut mold_last) = (Vec::new(), Vec::new());
        for l in &loops {
            last[l.dim] += full[l.dim] * (l.last - 1);
            full[l.dim] *= l.bound;
            mold.push(full.clone());
            mold_last.push(last.clone());
        }
        let n = loops.len();
        Walk {
            workload,
            extrapolate,
            run_last: !nest.is_perfect(),
            fanout: loops.iter().map(|l| nest.blocks[l.storage].fanout()).collect(),
            mesh: loops
                .iter()
                .map(|l| {
                    let block = &nest.blocks[l.storage];
                    (block.fanout_x(), block.fanout() / block.fanout_x())
                })
                .collect(),
            loops,
            mold,
            mold_last,
            boundary,
            master,
            states: vec![BTreeMap::new(); n],
            indices: vec![0; n],
            origin: vec![0; dims],
            stamp: Vec::new(),
            epochs: 1,
        }
    }

    /// True if all loops of `dim` from `from` outwards are in the last iteration.
    fn is_last(&self, from: usize, dim: usize) -> bool {
        (from..self.loops.len())
            .filter(|&l| self.loops[l].dim == dim)
            .all(|l| self.indices[l] + 1 >= self.loops[l].last)
    }

    fn end(&self, at: usize) -> u64 {
        let l = &self.loops[at];
        if self.is_last(at + 1, l.dim) { l.last } else { l.bound }
    }

    fn state(&mut self, at: usize) -> &mut State {
        let tensors = self.workload.tensors.len();
        let key = &self.stamp[..self.stamp.len() - 1];
        if !self.states[at].contains_key(key) {
            let empty = |t: usize| Tile {
                axes: self.workload.tensors[t].axes.len(),
                ..Tile::default()
            };
            let fresh = State {
                previous: (0..tensors).map(empty).collect(),
                translation: vec![None; tensors],
                max_size: vec![0; tensors],
                records: vec![BTreeMap::new(); tensors],
            };
            self.states[at].insert(key.to_vec(), fresh);
        }
        self.states[at].get_mut(key).expect("inserted above")
    }

    /// The tiles of all tensors at loop `at`, at the current origin.
    fn tiles(&self, at: usize) -> Vec<Tile> {
        let extents: Vec<i64> = (0..self.origin.len())
            .map(|d| {
                let mold = if self.is_last(at + 1, d) {
                    &self.mold_last
                } else {
                    &self.mold
                };
                mold[at][d] as i64
            })
            .collect();
        let tile = |axes: &Vec<Vec<(usize, u64)>>| {
            let mut tile = Tile {
                axes: axes.len(),
                ..Tile::default()
            };
            for (a, terms) in axes.iter().enumerate() {
                tile.low[a] = terms.iter().map(|&(d, c)| c as i64 * self.origin[d]).sum();
                tile.high[a] = tile.low[a] + terms.iter().map(|&(d, c)| c as i64 * (extents[d] - 1)).sum::<i64>() + 1;
            }
            tile
        };
        self.workload.tensors.iter().map(|t| tile(&t.axes)).collect()
    }

    /// Walks loop `at` once and returns what is new at it since the last time.
    fn deltas(&mut self, at: usize) -> Vec<Tile> {
        if self.boundary[at] {
            self.stamp.push(0);
        }
        self.state(at);
        match self.loops[at].kind {
            Kind::Spatial => self.spatial(at),
            Kind::Temporal => self.temporal(at),
        }
        let mut tiles = self.tiles(at);
        let state = self.state(at);
        for (t, tile) in tiles.iter_mut().enumerate() {
            state.max_size[t] = state.max_size[t].max(tile.size());
            let previous = state.previous[t];
            state.previous[t] = *tile;
            let moved = tile.moved_from(&previous);
            match state.translation[t] {
                None => {
                    *tile = tile.minus(&previous);
                    state.translation[t] = moved;
                }
                Some(before) if moved == Some(before) => *tile = tile.minus(&previous),
                Some(_) => state.translation[t] = None,
            }
        }
        if self.boundary[at] {
            self.stamp.pop();
        }
        tiles
    }

    fn temporal(&mut self, at: usize) {
        let (end, dim, stride) = (self.end(at), self.loops[at].dim, self.loops[at].stride as i64);
        if at == 0 {
            let iterations = (end * self.epochs) as f64;
            for records in &mut self.state(at).records {
                records.entry((1, 1)).or_default().0 += iterations;
            }
            return;
        }
        let origin = self.origin[dim];
        let mut total = vec![0u64; self.workload.tensors.len()];
        let add = |total: &mut Vec<u64>, deltas: &[Tile], scale: u64| {
            for (sum, tile) in total.iter_mut().zip(deltas) {
                *sum += tile.size() * scale;
            }
        };
        if self.extrapolate {
            // The iterations that are walked, and how many the walk of each stands for.
            let tail = if self.run_last { (end - 1).min(2) } else { 0 };
            let middle = end - 1 - tail;
            let mut walked = vec![(0, 1)];
            if middle > 0 {
                walked.push((1, middle));
            }
            walked.extend((end - tail..end).map(|i| (i, 1)));
            let mut second = None;
            for (n, &(i, stands_for)) in walked.iter().enumerate() {
                self.indices[at] = i;
                self.origin[dim] = origin + stride * i as i64;
                let epochs = self.epochs;
                self.epochs *= stands_for;
                let deltas = self.deltas(at - 1);
                self.epochs = epochs;
                // The iteration after the skipped ones moved too far: it counts as the one before them.
                let counted = match &second {
                    Some(second) if n == 2 && middle > 0 => second,
                    _ => &deltas,
                };
                add(&mut total, counted, stands_for);
                if n == 1 {
                    second = Some(deltas);
                }
            }
            self.indices[at] = end;
        } else {
            for i in 0..end {
                self.indices[at] = i;
                self.origin[dim] = origin + stride * i as i64;
                let deltas = self.deltas(at - 1);
                add(&mut total, &deltas, 1);
            }
            self.indices[at] = end;
        }
        self.origin[dim] = origin;
        if self.boundary[at - 1] {
            let epochs = self.epochs;
            for (records, sum) in self.state(at).records.iter_mut().zip(&total) {
                records.entry((1, 1)).or_default().0 += (sum * epochs) as f64;
            }
        }
    }

    fn spatial(&mut self, at: usize) {
        let mut children: BTreeMap<u64, Vec<Tile>> = BTreeMap::new();
        self.fill(at, &mut children, 0, &mut None);
        let (epochs, mesh) = (self.epochs, self.mesh[at]);
        let tensors = self.workload.tensors.len();
        let state = self.state(at);
        for t in 0..tensors {
            let mut tiles: Vec<(Tile, u64)> = children.iter().map(|(&id, tiles)| (tiles[t], id)).collect();
            tiles.sort_unstable();
            let mut found: BTreeMap<u64, (u64, f64, f64)> = BTreeMap::new();
            for group in tiles.chunk_by(|a, b| a.0 == b.0).filter(|g| g[0].0.size() > 0) {
                let entry = found.entry(group.len() as u64).or_default();
                entry.0 += 1;
                entry.1 += (group[0].0.size() * epochs) as f64;
                entry.2 += hops(group.iter().map(|g| g.1), mesh);
            }
            for (multicast, (scatter, accesses, hops)) in found {
                let record = state.records[t].entry((multicast, scatter)).or_default();
                record.0 += accesses;
                record.1 = hops;
            }
        }
    }

    /// Walks the children below spatial loop `at`: all of them, or the first one, of which the others are then
    /// translated copies. `base` numbers the children; it is the original's numbering, in which a child has
    /// another number in the last iteration if a loop further in is shorter there.
    fn fill(
        &mut self,
        at: usize,
        children: &mut BTreeMap<u64, Vec<Tile>>,
        base: u64,
        first: &mut Option<(Vec<i64>, Vec<Tile>)>,
    ) {
        let (end, dim, stride) = (self.end(at), self.loops[at].dim, self.loops[at].stride as i64);
        let base = base * end;
        let origin = self.origin[dim];
        let innermost = at == 0 || self.boundary[at - 1];
        for i in 0..end {
            self.indices[at] = i;
            self.origin[dim] = origin + stride * i as i64;
            if !innermost {
                self.fill(at - 1, children, base + i, first);
            } else if at == 0 {
                let points = self.points();
                children.insert(base + i, points);
            } else if let (true, Some((from, tiles))) = (self.extrapolate, &*first) {
                let copies = self.translated(from, tiles);
                children.insert(base + i, copies);
            } else {
                *self.stamp.last_mut().expect("inside a storage level") = base + i;
                let tiles = self.deltas(at - 1);
                *first = Some((self.origin.clone(), tiles.clone()));
                children.insert(base + i, tiles);
            }
        }
        self.indices[at] = end;
        self.origin[dim] = origin;
    }

    /// `tiles`, found with the origin at `from`, moved to the present origin.
    fn translated(&self, from: &[i64], tiles: &[Tile]) -> Vec<Tile> {
        let along = |&(d, c): &(usize, u64)| c as i64 * (self.origin[d] - from[d]);
        let moved = |(tile, space): (&Tile, &super::nest::DataSpace)| {
            let mut tile = *tile;
            for (a, terms) in space.axes.iter().enumerate() {
                let by: i64 = terms.iter().map(along).sum();
                tile.low[a] += by;
                tile.high[a] += by;
            }
            tile
        };
        tiles.iter().zip(&self.workload.tensors).map(moved).collect()
    }

    /// What one MAC needs: a point of each tensor.
    fn points(&self) -> Vec<Tile> {
        let point = |axes: &Vec<Vec<(usize, u64)>>| {
            let mut tile = Tile {
                axes: axes.len(),
                ..Tile::default()
            };
            for (a, terms) in axes.iter().enumerate() {
                tile.low[a] = terms.iter().map(|&(d, c)| c as i64 * self.origin[d]).sum();
                tile.high[a] = tile.low[a] + 1;
            }
            tile
        };
        self.workload.tensors.iter().map(|t| point(&t.axes)).collect()
    }

    /// Averages over the instances that were walked.
    fn collect(self, nest: &Nest) -> Vec<LevelTraffic> {
        let tensors = self.workload.tensors.len();
        let mean_size = |at: usize| -> Vec<u64> {
            let sampled = self.states[at].len() as u64;
            let sum = |t: usize| self.states[at].values().map(|s| s.max_size[t]).sum::<u64>();
            (0..tensors).map(|t| sum(t) / sampled).collect()
        };
        (0..nest.blocks.len())
            .map(|storage| {
                let of = |l: &usize| self.loops[*l].storage == storage;
                let boundary = (0..self.loops.len()).filter(of).find(|&l| self.boundary[l]);
                let master = (0..self.loops.len()).filter(of).find(|&l| self.master[l]);
                let boundary = boundary.expect("every storage level has a loop");
                // Accesses are counted at the outermost spatial loop, or at the innermost temporal one.
                let counted = master.or_else(|| (0..self.loops.len()).find(of)).unwrap_or(boundary);
                let sampled = self.states[counted].len() as f64;
                let records = (0..tensors)
                    .map(|t| {
                        let mut sums: BTreeMap<(u64, u64), (f64, f64)> = BTreeMap::new();
                        for state in self.states[counted].values() {
                            for (key, (accesses, hops)) in &state.records[t] {
                                let sum = sums.entry(*key).or_default();
                                sum.0 += accesses;
                                sum.1 = *hops;
                            }
                        }
                        sums.into_iter()
                            .map(|((multicast, scatter), (accesses, hops))| Record {
                                multicast,
                                scatter,
                                accesses: accesses / sampled,
                                hops,
                            })
                            .collect()
                    })
                    .collect();
                LevelTraffic {
                    tile: mean_size(boundary),
                    spatial_tile: master.map(&mean_size),
                    records,
                    fanout: self.fanout[boundary],
                }
            })
            .collect()
    }
}
