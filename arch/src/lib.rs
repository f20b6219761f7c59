//! Accelerators and mappings: plain data, read from and written to RON.

mod accelerator;
pub mod bundled;
mod counts;
pub mod directives;
mod files;
mod mapping;
mod mapping_check;
mod nest;
mod sources;
pub mod streaming;
mod technology;
mod text;
mod tile;
mod units;
mod validate;

pub use accelerator::{
    Accelerator, AccessEnergy, Bank, Channels, Compute, Level, Link, Network, NetworkKind, PortPair, Ports, Reduction,
    Refresh, Source, SpatialDims, Word,
};
pub use counts::{Accesses, Counts, LevelCounts, Passes, Traffic};
pub use files::{Mappings, placed};
pub use mapping::{Axis, LevelMapping, Loop, Mapping, SpatialLoop};
pub use mapping_check::{Demand, LoopPlace, MappingViolation};
pub use technology::{AccessCosts, Arbiter, Bus, Linear, Part, Resources, Sram, Technology};
pub use text::{Diagnostic, from_ron, nearest, render, ron_options, to_ron};
pub use tile::elements as tile_elements;
pub use units::{Capacity, Clock, Width};
pub use validate::Violation;
