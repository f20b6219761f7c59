//! The HD-graph: hardware nodes and the streams between them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::front::Map;

/// How far a node is unrolled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Folding {
    /// Input channels taken at once.
    pub cin: u64,
    /// Output channels produced at once.
    pub cout: u64,
    /// Kernel positions computed at once (HLS4ML: multipliers).
    pub k: u64,
}

impl Folding {
    /// Nothing unrolled.
    pub const ONE: Self = Self { cin: 1, cout: 1, k: 1 };
}

impl fmt::Display for Folding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}×{}×{}", self.cin, self.cout, self.k)
    }
}

/// What a node is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NodeKind {
    /// Convolution with its window buffer (fpgaConvNet, HLS4ML).
    Conv,
    /// Fully connected (fpgaConvNet, HLS4ML).
    Fc,
    /// Rectifier.
    Relu,
    /// Pooling with its window buffer.
    Pool,
    /// Reordering of a map into a vector (HLS4ML).
    Flatten,
    /// Quantiser by thresholds (FINN).
    Threshold,
    /// Zeros around the map (FINN).
    Padding,
    /// Sliding window (FINN's ConvolutionInputGenerator).
    Window,
    /// Sliding window that orders depthwise, all positions of a channel group first (FINN).
    WindowDepthwise,
    /// Matrix-vector-activation unit (FINN).
    Mvau,
    /// Vector-vector-activation unit (FINN, depthwise).
    Vvau,
    /// Streaming maximum (FINN).
    MaxPool,
    /// Reduction of a window (FINN's Pool behind a sliding window).
    PoolReduce,
    /// Index of the largest output (FINN).
    LabelSelect,
    /// Copies a stream (a residual fork).
    Fork,
    /// Sum of streams (a residual join).
    Add,
    /// Concatenation of streams.
    Concat,
}

/// A hardware node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Unique name, in the backend's convention.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// The layer of the network that it belongs to, by index; `None` for what belongs to no layer.
    pub layer: Option<usize>,
    /// What its input-channel folding divides.
    pub channels_in: u64,
    /// What its output-channel folding divides.
    pub channels_out: u64,
    /// Words read per frame.
    pub size_in: u64,
    /// Words written per frame.
    pub size_out: u64,
    /// The input map, unpadded where the node pads, padded where another node has done so.
    pub input: Map,
    /// The output map.
    pub output: Map,
    /// Window: rows, columns.
    pub kernel: (u64, u64),
    /// Step of the window: rows, columns.
    pub stride: (u64, u64),
    /// Zeros that the node adds: top, left, bottom, right.
    pub pads: [u64; 4],
    /// Channel groups.
    pub groups: u64,
    /// Bits of an input word.
    pub bits_in: u64,
    /// Bits of an output word; 0 where accumulators leave unquantised.
    pub bits_out: u64,
    /// Bits of a weight.
    pub bits_weight: u64,
    /// Whether its buffers are built of look-up tables.
    pub distributed: bool,
}

impl Node {
    /// Kernel positions.
    #[must_use]
    pub const fn positions(&self) -> u64 {
        self.kernel.0 * self.kernel.1
    }
}

/// A stream from one node to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Edge {
    /// Writer, by index.
    pub from: usize,
    /// Reader, by index, larger than the writer's.
    pub to: usize,
    /// Words per frame.
    pub words: u64,
}

/// The nodes in topological order and the streams between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// The network.
    pub network: String,
    /// The backend.
    pub backend: String,
    /// Nodes in topological order.
    pub nodes: Vec<Node>,
    /// Streams, by reader.
    pub edges: Vec<Edge>,
    /// `cuts[i]`: the pipeline may be cut between node i and node i+1.
    pub cuts: Vec<bool>,
}

impl Graph {
    /// The node of that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|n| n.name == name)
    }

    /// Streams that node `to` reads.
    pub fn inputs(&self, to: usize) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |e| e.to == to)
    }

    /// Streams that node `from` writes.
    pub fn outputs(&self, from: usize) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |e| e.from == from)
    }

    /// Whether exactly one stream crosses the boundary after node `i`: only there can a partition end.
    #[must_use]
    pub fn is_waist(&self, i: usize) -> bool {
        self.edges.iter().filter(|e| e.from <= i && e.to > i).count() == 1
    }
}

/// Divisors of `n`, ascending.
pub(super) fn divisors(n: u64) -> Vec<u64> {
    let mut small = Vec::new();
    let mut large = Vec::new();
    let mut d = 1;
    while d * d <= n {
        if n.is_multiple_of(d) {
            small.push(d);
            if d * d != n {
                large.push(n / d);
            }
        }
        d += 1;
    }
    small.extend(large.into_iter().rev());
    small
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_are_complete_and_ascending() {
        assert_eq!(divisors(12), [1, 2, 3, 4, 6, 12]);
        assert_eq!(divisors(25), [1, 5, 25]);
        assert_eq!(divisors(1), [1]);
    }
}
