//! Accelerators and mappings: plain data, read from and written to RON.

mod accelerator;
mod counts;
mod mapping;
mod units;

pub use accelerator::{
    Accelerator, AccessEnergy, Bank, Channels, Compute, Level, Link, Network, NetworkKind, PortPair, Ports, Reduction,
    Source, SpatialDims, Word,
};
pub use counts::{Accesses, Counts, LevelCounts, Passes, Traffic};
pub use mapping::{Axis, LevelMapping, Loop, Mapping, SpatialLoop};
pub use units::{Capacity, Clock, Width};
