//! Workloads: what is to be computed.
//!
//! A [`Problem`] is one loop nest over the eight dimensions of [`Dim`]; it is what schedulers map and what the
//! simulator executes.

mod dims;
mod problem;
mod tensor;

pub use dims::{Dim, DimMap};
pub use problem::{Padding, Pair, Problem};
pub use tensor::{Tensor, TensorMap, TensorSet};
