//! The cost model `maestro`: MAESTRO as implemented (Kwon et al., MICRO 2019; code of August 2022).
//!
//! MAESTRO (github.com/maestro-project/maestro) is under the MIT licence. This module is written from the paper and from
//! recorded runs and has none of its code.
//!
//! A dataflow is a list of directives ([`cyclonest_arch::directives`]). Per cluster level, every directive is in its
//! first position (*init*), moves by its offset (*steady*) or is cut off by the end of the dimension (*edge*). The
//! cross product of these states over the directives gives *cases*; each has a number of occurrences, a traffic in
//! and out, and a delay: the longer of communication and computation, double-buffered. Computation is the runtime of
//! the level inside, which is analysed for the tile of that case.
//!
//! # Known faults of the original, kept on purpose
//!
//! - Multicast and reduction support in the hardware make no difference: both are always assumed, and partial sums
//!   read back from L2 are never charged.
//! - L2 reads are right in about a third to a half of random one-level dataflows; the others are 0.25 to 2.86 times
//!   the truth. An outer dimension that a tensor does not depend on counts as no traffic even when it makes an inner
//!   loop of that tensor start again; halo multicast is lost when a dimension inside the spatial one changes.
//! - When the instances of the first spatial step just cover the dimension, the last of them is lost; the last,
//!   partial instance is counted in the first step and left out later.
//! - With a network latency of 0, moving nothing takes −1 cycles.
//! - Sizes of L1 and L2 and the bandwidth limits only lead to warnings; there is no padding.
//! - Fewer PEs than one cluster needs, or a case in which nothing is computed, make it divide by zero; a stationary
//!   tensor that is made to advance ends it. Here these are errors that say so ([`MaestroError`]).

mod adapter;
mod analyze;
mod cases;
mod cost;
mod levels;
mod profile;
mod reuse;

use cyclonest_arch::directives::{Layer, Var};

pub use adapter::{MaestroModel, machine};
pub use analyze::{Delays, Evaluation, TensorCosts};
pub use cost::{Area, Power};
pub use profile::{Link, Profile};

/// The hardware, as far as MAESTRO knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Machine {
    /// Processing elements.
    pub pes: u64,
    /// Elements that the network moves per cycle.
    pub noc_bandwidth: u64,
    /// Cycles until the first of them arrives.
    pub noc_latency: u64,
    /// Elements per cycle to and from the outside.
    pub offchip_bandwidth: u64,
}

/// Why MAESTRO cannot evaluate a layer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MaestroError {
    /// Not one cluster fits the machine.
    #[error("the machine has {pes} PEs, one cluster needs {cluster}: there is no cluster to map to")]
    NotEnoughPes {
        /// PEs of the machine.
        pes: u64,
        /// PEs of one cluster.
        cluster: u64,
    },
    /// A level without parallelism.
    #[error("cluster level {level} has no SpatialMap")]
    NoSpatialMap {
        /// Level, from 0, outermost.
        level: usize,
    },
    /// More parallelism than a level can have.
    #[error("cluster level {level} has {found} SpatialMaps; at most two are possible")]
    TooManySpatialMaps {
        /// Level, from 0, outermost.
        level: usize,
        /// How many there are.
        found: usize,
    },
    /// MAESTRO's networks reach four levels.
    #[error("there are {found} cluster levels; at most {limit} are possible")]
    TooManyLevels {
        /// Levels found.
        found: usize,
        /// Levels possible.
        limit: usize,
    },
    /// A dimension that the operator needs.
    #[error("the layer has no dimension {0}")]
    MissingDimension(Var),
    /// A dimension that the operator does not have.
    #[error("cluster level {level} maps {var}, which the layer does not have")]
    UnknownDimension {
        /// Level, from 0, outermost.
        level: usize,
        /// The dimension.
        var: Var,
    },
    /// X' or Y' needs S or R at the same level, to be turned into X or Y.
    #[error("cluster level {level} maps {var} but not the filter dimension {filter} that it is converted with")]
    NoFilterMap {
        /// Level, from 0, outermost.
        level: usize,
        /// The output dimension.
        var: Var,
        /// The filter dimension.
        filter: Var,
    },
    /// A directive whose window does not move.
    #[error("cluster level {level}: the window of {var} moves by 0, after the stride was applied")]
    ZeroOffset {
        /// Level, from 0, outermost.
        level: usize,
        /// The dimension.
        var: Var,
    },
    /// A tile that is declared to cover its dimension has to advance nevertheless.
    #[error("cluster level {level}: {var} covers its dimension but advances in a tile that is larger")]
    StationaryAdvances {
        /// Level, from 0, outermost.
        level: usize,
        /// The dimension.
        var: Var,
    },
    /// Nothing is computed in a case, and MAESTRO divides by its delay.
    #[error("a case of the outermost level takes no time to compute: nothing of it is valid further in")]
    NothingComputed,
    /// The bandwidth is 0.
    #[error("the {0} bandwidth is 0")]
    NoBandwidth(&'static str),
    /// Numbers beyond 64 bits.
    #[error("the layer is too large: {0} overflows")]
    Overflow(&'static str),
}

/// Evaluates a layer with its dataflow.
///
/// # Errors
/// Where MAESTRO stops or crashes; see [`MaestroError`].
pub fn evaluate(layer: &Layer, machine: &Machine) -> Result<Evaluation, MaestroError> {
    evaluate_batched(layer, machine, layer.size(Var::N).is_some())
}

/// Evaluates a layer of a network. In MAESTRO, the batch dimension joins the tensors of all layers of a type if the
/// first layer of that type has it: `batched`.
///
/// # Errors
/// Where MAESTRO stops or crashes; see [`MaestroError`].
pub fn evaluate_batched(layer: &Layer, machine: &Machine, batched: bool) -> Result<Evaluation, MaestroError> {
    let problem = levels::Problem::new(layer, machine, batched)?;
    analyze::analyze(&problem, machine)
}
