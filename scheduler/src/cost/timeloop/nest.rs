//! The plain structures that the model works on: a workload, a machine and a mapping in Timeloop's terms.
//!
//! Everything runs **inner to outer**, as in Timeloop's own files: level 0 is next to the MACs.

use serde::{Deserialize, Serialize};

/// A dimension of the iteration space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dimension {
    /// Its name.
    pub name: String,
    /// Its bound.
    pub bound: u64,
}

/// A data space: the affine projection of the iteration space onto a tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSpace {
    /// Its name.
    pub name: String,
    /// Per axis, the sum of (position of the dimension, coefficient).
    pub axes: Vec<Vec<(usize, u64)>>,
    /// True for the result: it is updated, and read again unless it is elided.
    pub read_write: bool,
}

impl DataSpace {
    /// Size of the bounding box of a tile with these extents per dimension: ∏ over axes (Σ coef·(extent−1) + 1).
    /// Holes, as with a stride larger than the kernel, are counted.
    #[must_use]
    pub fn box_size(&self, extents: &[u64]) -> u64 {
        self.axis_extents(extents).product()
    }

    /// Extent of each axis of that box.
    pub(super) fn axis_extents<'a>(&'a self, extents: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
        self.axes
            .iter()
            .map(move |terms| terms.iter().map(|&(d, c)| c * (extents[d] - 1)).sum::<u64>() + 1)
    }
}

/// What is computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Its dimensions.
    pub dims: Vec<Dimension>,
    /// Its tensors.
    pub tensors: Vec<DataSpace>,
}

/// A port of a memory: per cycle it moves `width` units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Units of one element read, per tensor; 0 where this port does not serve the tensor's reads.
    pub read_units: Vec<f64>,
    /// Units of one element written (filled or updated), per tensor.
    pub write_units: Vec<f64>,
    /// Units per cycle and instance.
    pub width: f64,
}

/// A capacity shared by some of the tensors of a level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Units of one element, per tensor; 0 where the tensor is kept elsewhere.
    pub units: Vec<u64>,
    /// Units that fit: Timeloop's floor(entries ÷ multiple buffering).
    pub capacity: u64,
}

/// A storage level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Storage {
    /// Its name.
    pub name: String,
    /// Instances in the machine.
    pub instances: u64,
    /// Instances along X; the rest is along Y.
    pub mesh_x: u64,
    /// Capacities; none for a level that is never full.
    pub memories: Vec<Memory>,
    /// Ports that limit the level.
    pub ports: Vec<Port>,
    /// True if the level adds partial sums itself; Timeloop assumes it of everything but DRAM.
    pub reduces: bool,
}

/// The multipliers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Macs {
    /// Their name.
    pub name: String,
    /// How many there are.
    pub instances: u64,
    /// Of them, along X.
    pub mesh_x: u64,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hardware {
    /// The multipliers.
    pub macs: Macs,
    /// Storage levels, inner to outer.
    pub levels: Vec<Storage>,
}

/// A loop: `last` is the bound of the very last iteration of all (Timeloop's residual), `bound` everywhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestLoop {
    /// Position of the dimension.
    pub dim: usize,
    /// Trip count.
    pub bound: u64,
    /// Trip count of the last iteration of all loops of the dimension further out.
    pub last: u64,
}

/// What the mapping says of one storage level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Temporal loops, inner to outer.
    pub temporal: Vec<NestLoop>,
    /// Spatial loops along X, inner to outer.
    pub spatial_x: Vec<NestLoop>,
    /// Spatial loops along Y, inner to outer; they sit outside those along X.
    pub spatial_y: Vec<NestLoop>,
    /// Per tensor, whether it is kept here.
    pub keeps: Vec<bool>,
}

impl Block {
    /// All spatial loops, inner to outer.
    pub(super) fn spatial(&self) -> impl DoubleEndedIterator<Item = &NestLoop> {
        self.spatial_x.iter().chain(&self.spatial_y)
    }

    /// Children that one instance feeds.
    pub(super) fn fanout(&self) -> u64 {
        self.spatial().map(|l| l.bound).product()
    }

    /// Children along X.
    pub(super) fn fanout_x(&self) -> u64 {
        self.spatial_x.iter().map(|l| l.bound).product()
    }
}

/// A mapping: one block per storage level, inner to outer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nest {
    /// The blocks.
    pub blocks: Vec<Block>,
}

impl Nest {
    /// True if every loop runs to its bound in the last iteration too.
    #[must_use]
    pub fn is_perfect(&self) -> bool {
        self.blocks
            .iter()
            .flat_map(|b| b.temporal.iter().chain(b.spatial()))
            .all(|l| l.bound == l.last)
    }

    /// Instances of level `level` that are used; of the MACs for −1 (`None`).
    #[must_use]
    pub fn used_instances(&self, level: Option<usize>) -> u64 {
        let from = level.map_or(0, |l| l + 1);
        self.blocks[from..].iter().map(Block::fanout).product()
    }

    /// Product of all temporal bounds: the cycles of an unlimited machine.
    #[must_use]
    pub fn temporal_steps(&self) -> u64 {
        self.blocks.iter().flat_map(|b| &b.temporal).map(|l| l.bound).product()
    }
}
