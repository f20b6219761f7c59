//! The mapping: the schedule of one problem on one accelerator.
//!
//! One entry per storage level, outermost first. A level's spatial loops sit inside its temporal loops and fan
//! out to the instances of the next inner level (to the lanes at the innermost one). The index of a dimension is
//! the mixed-radix number of all its loops, outermost first; iterations past the bound do not exist.

use cyclonest_workloads::{Dim, DimMap, TensorSet};
use serde::{Deserialize, Serialize};

/// Axis of a mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Axis {
    /// Horizontal.
    X,
    /// Vertical.
    Y,
}

/// A temporal loop: `(P, 28)` in RON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Loop(pub Dim, pub u64);

/// A spatial loop over an axis of the child mesh: `(K, 4, X)` in RON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SpatialLoop(pub Dim, pub u64, pub Axis);

/// What happens at one storage level.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelMapping {
    /// Name of the level.
    pub level: String,
    /// Temporal loops, outermost first.
    #[serde(default)]
    pub temporal: Vec<Loop>,
    /// Spatial loops; the first is the most significant of its axis.
    #[serde(default)]
    pub spatial: Vec<SpatialLoop>,
    /// Tensors kept here; the others bypass the level.
    pub keeps: TensorSet,
}

/// The schedule of one problem on one accelerator.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// Bounds of the problem that it was made for.
    pub bounds: DimMap<u64>,
    /// One entry per storage level, outermost first.
    pub levels: Vec<LevelMapping>,
}

impl Mapping {
    /// Trip count of `dim` over all loops at `level` and further in, the level's own spatial loops included:
    /// the extent, before clipping, of the tile that the level keeps.
    #[must_use]
    pub fn trips_within(&self, level: usize, dim: Dim) -> u64 {
        self.levels[level..]
            .iter()
            .flat_map(|l| {
                l.temporal
                    .iter()
                    .map(|t| (t.0, t.1))
                    .chain(l.spatial.iter().map(|s| (s.0, s.1)))
            })
            .filter(|&(d, _)| d == dim)
            .map(|(_, trips)| trips)
            .product()
    }
}
