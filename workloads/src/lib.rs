//! Workloads: what is to be computed.
//!
//! A [`Problem`] is one loop nest over the eight dimensions of [`Dim`]; it is what schedulers map and what the
//! simulator executes. A [`Network`] is a graph of operators with shapes; its multiplying nodes are lowered to
//! problems ([`Network::layers`]), and equal ones are counted ([`Network::distinct`]).

pub mod bundled;
mod dims;
pub mod import;
mod network;
mod problem;
mod tensor;

pub use dims::{Dim, DimMap};
pub use network::{DistinctLayer, Input, LayerWork, Network, NetworkError, NetworkErrors, Node, Scale, Shape, op};
pub use problem::{Padding, Pair, Problem};
pub use tensor::{Tensor, TensorMap, TensorSet};
