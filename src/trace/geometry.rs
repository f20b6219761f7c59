//! Where the instances of a mapped machine are, and what the steps of a level mean.

use std::collections::BTreeMap;

use cyclonest_arch::{Accelerator, Axis, Mapping};
use cyclonest_workloads::{Dim, Tensor};

/// A temporal loop outside a level.
#[derive(Debug, Clone, Copy)]
struct Turn {
    level: usize,
    dim: Dim,
    trips: u64,
    /// Distance of two iterations in the dimension.
    stride: u64,
}

/// The places of a mapping's instances. Instance `i` of a level is child `i % fanout` of instance `i / fanout` of the
/// level outside; children are numbered in the order of the spatial loops.
#[derive(Debug)]
pub(crate) struct Geometry {
    /// Per level, the places of the children of one instance in their mesh.
    children: Vec<Vec<(u64, u64)>>,
    /// Per level, the mesh of its children as it is built.
    meshes: Vec<(u64, u64)>,
    turns: Vec<Turn>,
    keeps: Vec<cyclonest_workloads::TensorSet>,
}

/// A link of a mesh: the place where it begins and the place where it ends, seen from the parent.
pub(crate) type Link = ((u64, u64), (u64, u64));

impl Geometry {
    pub(crate) fn new(arch: &Accelerator, mapping: &Mapping) -> Self {
        let place = |level: &cyclonest_arch::LevelMapping| {
            let mut places = vec![(0, 0)];
            for spatial in &level.spatial {
                let next = places.iter().flat_map(|&(x, y)| {
                    (0..spatial.1).map(move |i| match spatial.2 {
                        Axis::X => (x * spatial.1 + i, y),
                        Axis::Y => (x, y * spatial.1 + i),
                    })
                });
                places = next.collect();
            }
            places
        };
        let mut inner: BTreeMap<Dim, u64> = BTreeMap::new();
        let mut turns = Vec::new();
        for (level, loops) in mapping.levels.iter().enumerate().rev() {
            for spatial in &loops.spatial {
                *inner.entry(spatial.0).or_insert(1) *= spatial.1;
            }
            for temporal in loops.temporal.iter().rev() {
                let stride = inner.entry(temporal.0).or_insert(1);
                if temporal.1 > 1 {
                    turns.push(Turn {
                        level,
                        dim: temporal.0,
                        trips: temporal.1,
                        stride: *stride,
                    });
                }
                *stride *= temporal.1;
            }
        }
        turns.reverse();
        Geometry {
            children: mapping.levels.iter().map(place).collect(),
            meshes: (0..mapping.levels.len()).map(|level| arch.child_mesh(level)).collect(),
            turns,
            keeps: mapping.levels.iter().map(|level| level.keeps).collect(),
        }
    }

    /// Children of an instance of `level`.
    fn fanout(&self, level: usize) -> u32 {
        self.children[level].len() as u32
    }

    /// True if the mapping keeps `tensor` at `level`.
    pub(crate) fn keeps(&self, level: usize, tensor: Tensor) -> bool {
        self.keeps[level].contains(tensor)
    }

    /// Mapped instances of a level.
    pub(crate) fn instances(&self, level: usize) -> u32 {
        (0..level).map(|k| self.fanout(k)).product()
    }

    /// Place of an instance in the whole machine: its place in its mesh, after the meshes of its ancestors' places.
    pub(crate) fn place(&self, level: usize, instance: u32) -> (u64, u64) {
        let Some(above) = level.checked_sub(1) else {
            return (0, 0);
        };
        let fanout = self.fanout(above);
        let parent = self.place(above, instance / fanout);
        let own = self.children[above][(instance % fanout) as usize];
        let mesh = self.meshes[above];
        (parent.0 * mesh.0 + own.0, parent.1 * mesh.1 + own.1)
    }

    /// Columns and rows that the instances of a level have in the whole machine, used or not.
    pub(crate) fn extent(&self, level: usize) -> (u64, u64) {
        let meshes = self.meshes[..level].iter();
        meshes.fold((1, 1), |(columns, rows), mesh| (columns * mesh.0, rows * mesh.1))
    }

    /// The lowest index of the tile of `tensor` at a step of `level`, without what the place of the instance adds:
    /// `K16 C0`. Empty if no loop outside the level moves it.
    pub(crate) fn tile(&self, tensor: Tensor, level: usize, step: u64) -> String {
        let mut rest = step;
        let mut low: Vec<(Dim, u64)> = Vec::new();
        let outside: Vec<&Turn> = self.turns.iter().filter(|turn| turn.level < level).collect();
        for turn in outside.iter().rev() {
            let index = rest % turn.trips;
            rest /= turn.trips;
            match low.iter_mut().find(|(dim, _)| *dim == turn.dim) {
                Some((_, sum)) => *sum += index * turn.stride,
                None => low.push((turn.dim, index * turn.stride)),
            }
        }
        low.retain(|(dim, _)| tensor.is_relevant(*dim));
        low.sort_by_key(|(dim, _)| *dim);
        let words: Vec<String> = low.iter().map(|(dim, index)| format!("{dim}{index}")).collect();
        words.join(" ")
    }

    /// The links of the network below `network` that a transfer between one of its instances and `members` of `level`
    /// takes: of each instance, the tree that goes along X and then along Y from the corner.
    pub(crate) fn links(&self, network: usize, level: usize, members: &[u32]) -> BTreeMap<u32, Vec<Link>> {
        let below: u32 = (network + 1..level).map(|k| self.fanout(k)).product();
        let fanout = self.fanout(network);
        let mut served: BTreeMap<u32, BTreeMap<u64, u64>> = BTreeMap::new();
        for member in members {
            let child = member / below;
            let (x, y) = self.children[network][(child % fanout) as usize];
            let column = served.entry(child / fanout).or_default().entry(x).or_insert(0);
            *column = y.max(*column);
        }
        served
            .into_iter()
            .map(|(instance, columns)| {
                let last = columns.keys().next_back().copied().unwrap_or(0);
                let along = (0..last).map(|x| ((x, 0), (x + 1, 0)));
                let up = columns
                    .iter()
                    .flat_map(|(&x, &height)| (0..height).map(move |y| ((x, y), (x, y + 1))));
                (instance, along.chain(up).collect())
            })
            .collect()
    }
}
