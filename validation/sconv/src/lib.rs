//! Direct fp32 convolution for inference on CPUs.
//!
//! A [`ConvPlan`] decides everything before data arrives: the instruction set ([`Isa`]), the kernel [`Family`] (by the
//! rule of [`choose`]), tile sizes ([`csa`]), buffers. Filters are packed once ([`ConvPlan::filters`]); [`ConvPlan::run`]
//! then allocates nothing.
//!
//! - [`mod@csa`] and the macro-kernel behind [`Family::Sconv`] follow the paper: Ferrari et al., "Advancing Direct
//!   Convolution Using Convolution Slicing Optimization and ISA Extensions".
//! - [`Family::Direct`] and [`Family::Pointwise`] pack no inputs and need AVX-512.
//! - [`reference()`] is the definition in f64, for tests.
//! - [`probe`] measures the host: clock, FMA rate, bandwidth, latency.
//! - `baselines` (feature of that name) runs other libraries for comparison.

#[cfg(feature = "baselines")]
pub mod baselines;
mod cache;
pub mod csa;
mod cso;
#[cfg(target_arch = "x86_64")]
mod direct;
mod error;
mod isa;
mod layout;
mod plan;
#[cfg(target_arch = "x86_64")]
mod pointwise;
pub mod probe;
mod reference;
mod scratch;
mod shape;

pub use cache::Caches;
pub use csa::{Analysis, Fill, MicroTile, Stationary, Tiling, csa};
pub use cso::micro_tile;
pub use error::Error;
pub use isa::Isa;
pub use layout::{BLOCK, Layout, from_blocked, to_blocked};
pub use plan::{ConvPlan, Family, Filters, Options, Profile, choose};
pub use reference::{error_bound, reference};
pub use shape::{ConvShape, Padding};
