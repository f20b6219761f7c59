//! Workloads: what is to be computed.
//!
//! A [`Problem`] is one loop nest over the eight dimensions of [`Dim`]; it is what schedulers map and what the
//! simulator executes. A [`Network`] is a graph of operators with shapes; its multiplying nodes are lowered to
//! problems ([`Network::layers`]), and equal ones are counted ([`Network::distinct`]).
//!
//! # Networks in RON
//!
//! ```ron
//! // A comment that names the source and the variant.
//! Network(
//!     name: "example",
//!     inputs: { "image": [1, 3, 32, 32] },
//!     nodes: [
//!         (name: "conv1", op: Conv(out: 16, kernel: 3, stride: 2, pad: 1)),
//!         (name: "relu1", op: Relu),
//!         (name: "conv2", op: Conv(out: 16, kernel: (3, 1), pad: (1, 0))),
//!         (name: "sum", op: Add, inputs: ["relu1", "conv2"]),
//!         (name: "pool", op: GlobalAveragePool),
//!         (name: "flatten", op: Flatten()),
//!         (name: "classes", op: Linear(out: 10)),
//!     ],
//! )
//! ```
//!
//! A node without `inputs` reads the node in front of it, the first one the network's first input. The output of a
//! node has its name. Sizes of rows and columns are a number or a pair `(rows, columns)`; a border may also be
//! `(top: …, bottom: …, left: …, right: …)`. [`op`] lists the operators.
//!
//! # From operators to loop nests
//!
//! Shapes are inferred, and every operator that multiplies is lowered to loop nests:
//!
//! | operator | loop nests |
//! |---|---|
//! | `Conv` | one: G = groups, K and C per group; a depthwise one has G = channels, K = C = 1 |
//! | `ConvTranspose` | one dense convolution with stride 1 per residue of the output row and column modulo the stride |
//! | `Linear` | one: N = rows (the batch), K = `out`, C = features |
//! | `MatMul` | one: G = leading axes that both operands have, N = rows, K = columns, C = inner |
//! | `Lstm` | per layer and direction, one for the inputs of all time steps, and one per step for the hidden state |
//!
//! Biases, and operators without multiplications, are no nests. They stay in the graph with shape and window.

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
