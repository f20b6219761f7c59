//! The loop nest as plain lists of settings, and tiles as explicit sets of elements.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use cyclonest_arch::{Accelerator, Axis, Mapping};
use cyclonest_workloads::{Dim, Problem, Tensor};

/// One loop, temporal or spatial.
#[derive(Debug, Clone, Copy)]
pub(super) struct NestLoop {
    pub dim: Dim,
    pub trips: u64,
    /// What one iteration adds to the index of `dim`: the product of the trip counts further in.
    pub weight: u64,
    pub level: usize,
    /// Axis of a spatial loop.
    pub axis: Option<Axis>,
}

/// A set of elements of one tensor; equal sets have equal ids.
#[derive(Debug, Clone)]
pub(super) struct Tile {
    id: usize,
    pub elements: Rc<Vec<u64>>,
}

impl PartialEq for Tile {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}
impl Eq for Tile {}

impl Tile {
    pub(super) fn id(&self) -> usize {
        self.id
    }
    pub(super) fn len(&self) -> u64 {
        self.elements.len() as u64
    }
    pub(super) fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }
    pub(super) fn contains(&self, element: u64) -> bool {
        self.elements.binary_search(&element).is_ok()
    }
    pub(super) fn is_subset(&self, other: &Tile) -> bool {
        self.id == other.id || self.elements.iter().all(|&e| other.contains(e))
    }
}

/// Settings of a list of loops.
pub(super) type Setting = Vec<u64>;

/// Index of every dimension.
pub(super) type Index = [u64; 8];

#[derive(Debug)]
pub(super) struct Nest<'a> {
    pub problem: &'a Problem,
    pub arch: &'a Accelerator,
    pub mapping: &'a Mapping,
    /// Position of E.
    pub event: usize,
    /// Number of storage levels.
    pub levels: usize,
    pub temporal: Vec<NestLoop>,
    pub spatial: Vec<NestLoop>,
    tiles: RefCell<HashMap<(Tensor, Index, Index), Tile>>,
    sets: RefCell<HashMap<(Tensor, Vec<u64>), usize>>,
}

impl<'a> Nest<'a> {
    pub(super) fn new(problem: &'a Problem, arch: &'a Accelerator, mapping: &'a Mapping) -> Self {
        let mut temporal = Vec::new();
        let mut spatial = Vec::new();
        let mut inside: Index = [1; 8];
        for (level, l) in mapping.levels.iter().enumerate().rev() {
            for s in l.spatial.iter().rev() {
                let weight = inside[s.0 as usize];
                spatial.push(NestLoop {
                    dim: s.0,
                    trips: s.1,
                    weight,
                    level,
                    axis: Some(s.2),
                });
                inside[s.0 as usize] *= s.1;
            }
            for t in l.temporal.iter().rev() {
                let weight = inside[t.0 as usize];
                temporal.push(NestLoop {
                    dim: t.0,
                    trips: t.1,
                    weight,
                    level,
                    axis: None,
                });
                inside[t.0 as usize] *= t.1;
            }
        }
        temporal.reverse();
        spatial.reverse();
        Nest {
            problem,
            arch,
            mapping,
            event: arch.event_level(),
            levels: arch.levels.len(),
            temporal,
            spatial,
            tiles: RefCell::default(),
            sets: RefCell::default(),
        }
    }

    /// Number of temporal loops of the levels before `level`.
    pub(super) fn temporal_before(&self, level: usize) -> usize {
        self.temporal.iter().filter(|l| l.level < level).count()
    }

    /// Number of spatial loops of the levels before `level`.
    pub(super) fn spatial_before(&self, level: usize) -> usize {
        self.spatial.iter().filter(|l| l.level < level).count()
    }

    /// Positions in a coordinate vector of the spatial loops of `level`.
    pub(super) fn coordinates_at(&self, level: usize) -> std::ops::Range<usize> {
        self.spatial_before(level)..self.spatial_before(level + 1)
    }

    /// Lowest index of every dimension; loops that `steps` and `coordinates` do not reach are at 0.
    pub(super) fn lowest(&self, steps: &[u64], coordinates: &[u64]) -> Index {
        let mut index = [0; 8];
        for (l, i) in self
            .temporal
            .iter()
            .zip(steps)
            .chain(self.spatial.iter().zip(coordinates))
        {
            index[l.dim as usize] += i * l.weight;
        }
        index
    }

    /// Rule 1: every lowest index is below its bound.
    pub(super) fn exists(&self, steps: &[u64], coordinates: &[u64]) -> bool {
        let lowest = self.lowest(steps, coordinates);
        Dim::ALL.iter().all(|&d| lowest[d as usize] < self.problem.bounds[d])
    }

    /// Every setting of the spatial loops before `level`: the instances that the mapping uses.
    pub(super) fn instances(&self, level: usize) -> Vec<Setting> {
        settings(&self.spatial[..self.spatial_before(level)])
    }

    /// The existing steps of an instance, in order.
    pub(super) fn steps(&self, level: usize, instance: &[u64]) -> Vec<Setting> {
        let mut all = settings(&self.temporal[..self.temporal_before(level)]);
        all.retain(|s| self.exists(s, instance));
        all
    }

    /// What everything from `level` inwards touches of `tensor`; `level` = number of levels is one lane.
    pub(super) fn tile(&self, tensor: Tensor, level: usize, steps: &[u64], instance: &[u64]) -> Tile {
        let low = self.lowest(steps, instance);
        let mut high = [0; 8];
        for d in Dim::ALL {
            let i = d as usize;
            high[i] = (low[i] + self.mapping.trips_within(level, d))
                .min(self.problem.bounds[d])
                .max(low[i]);
        }
        if let Some(tile) = self.tiles.borrow().get(&(tensor, low, high)) {
            return tile.clone();
        }
        let tile = self.set(tensor, self.touch(tensor, low, high));
        self.tiles.borrow_mut().insert((tensor, low, high), tile.clone());
        tile
    }

    /// A set of elements as a tile.
    pub(super) fn set(&self, tensor: Tensor, elements: BTreeSet<u64>) -> Tile {
        let elements: Vec<u64> = elements.into_iter().collect();
        let mut sets = self.sets.borrow_mut();
        let next = sets.len();
        let id = *sets.entry((tensor, elements.clone())).or_insert(next);
        Tile {
            id,
            elements: Rc::new(elements),
        }
    }

    /// Elements touched by a box of iterations.
    fn touch(&self, tensor: Tensor, low: Index, high: Index) -> BTreeSet<u64> {
        let mut elements = BTreeSet::new();
        let range = |d: Dim| {
            // Dimensions that the tensor does not depend on: one iteration shows all.
            let (l, h) = (low[d as usize], high[d as usize]);
            if tensor.is_relevant(d) { l..h } else { l..h.min(l + 1) }
        };
        for n in range(Dim::N) {
            for g in range(Dim::G) {
                for k in range(Dim::K) {
                    for c in range(Dim::C) {
                        for p in range(Dim::P) {
                            for q in range(Dim::Q) {
                                for r in range(Dim::R) {
                                    for s in range(Dim::S) {
                                        elements.extend(self.element(tensor, &[n, g, k, c, p, q, r, s]));
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        elements
    }

    /// The element of `tensor` that one MAC touches; `None` for an input in the padding.
    pub(super) fn element(&self, tensor: Tensor, index: &Index) -> Option<u64> {
        let [n, g, k, c, p, q, r, s] = *index;
        let b = &self.problem.bounds;
        let (kk, cc, pp, qq) = (b[Dim::K], b[Dim::C], b[Dim::P], b[Dim::Q]);
        match tensor {
            Tensor::Weights => Some((((g * kk + k) * cc + c) * b[Dim::R] + r) * b[Dim::S] + s),
            Tensor::Outputs => Some((((n * b[Dim::G] + g) * kk + k) * pp + p) * qq + q),
            Tensor::Inputs => {
                let y = p * self.problem.stride.0 + r * self.problem.dilation.0;
                let x = q * self.problem.stride.1 + s * self.problem.dilation.1;
                let extent = self.problem.padded_extent();
                let pad = &self.problem.padding;
                let real = y >= pad.top && y + pad.bottom < extent.0 && x >= pad.left && x + pad.right < extent.1;
                real.then_some((((n * b[Dim::G] + g) * cc + c) * extent.0 + y) * extent.1 + x)
            }
        }
    }

    /// True if the mapping keeps `tensor` at `level`; the outermost level keeps everything.
    pub(super) fn keeps(&self, tensor: Tensor, level: usize) -> bool {
        level == 0 || self.mapping.levels[level].keeps.contains(tensor)
    }

    /// Position in the mesh of the child of network `network` that `coordinates` (of a deeper instance) lie in.
    pub(super) fn mesh_position(&self, network: usize, coordinates: &[u64]) -> (u64, u64) {
        let (mut x, mut y) = (0, 0);
        for i in self.coordinates_at(network) {
            let l = &self.spatial[i];
            match l.axis {
                Some(Axis::Y) => y = y * l.trips + coordinates[i],
                _ => x = x * l.trips + coordinates[i],
            }
        }
        (x, y)
    }

    /// True if every C, R and S coordinate at the spatial loops of levels `from..to` is 0.
    pub(super) fn reduction_coordinates_are_zero(&self, from: usize, to: usize, coordinates: &[u64]) -> bool {
        (self.spatial_before(from)..self.spatial_before(to))
            .all(|i| !self.spatial[i].dim.is_reduction() || coordinates[i] == 0)
    }

    /// The coordinates at those networks of `from..to` that `differ` selects.
    pub(super) fn coordinates_where(
        &self,
        from: usize,
        to: usize,
        coordinates: &[u64],
        differ: impl Fn(usize) -> bool,
    ) -> Setting {
        (from..to)
            .filter(|&network| differ(network))
            .flat_map(|network| coordinates[self.coordinates_at(network)].to_vec())
            .collect()
    }
}

/// Every setting of a list of loops, the last loop fastest.
pub(super) fn settings(loops: &[NestLoop]) -> Vec<Setting> {
    let mut all = vec![Vec::new()];
    for l in loops {
        all = all
            .into_iter()
            .flat_map(|s| {
                (0..l.trips).map(move |i| {
                    let mut s = s.clone();
                    s.push(i);
                    s
                })
            })
            .collect();
    }
    all
}
