//! Networks: a directed acyclic graph of named operators with shapes.

mod compact;
mod error;
mod infer;
mod locate;
mod lower;
pub mod op;
mod scale;
mod text;
mod transposed;
mod validate;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[cfg(test)]
use compact::symmetric;
pub use error::{NetworkError, NetworkErrors};
pub use infer::Shape;
pub(crate) use infer::{attribute_faults, broadcast, elements, infer, reshaped, show};
pub use scale::Scale;
pub(crate) use validate::{Draft, DraftNode, assemble};

use crate::Problem;
use op::Op;

/// An input of the whole network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Input {
    /// Its name, unique among inputs and nodes.
    pub name: String,
    /// Sizes of its axes, all at least 1.
    pub shape: Shape,
}

/// An operator of the network; its one output has the name of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name, unique among inputs and nodes.
    pub name: String,
    /// What it computes.
    pub op: Op,
    /// The nodes or network inputs that it reads.
    pub inputs: Vec<String>,
    /// Sizes of the axes of its output, inferred.
    pub shape: Shape,
}

/// A loop nest that the network executes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerWork {
    /// The node's name, with a suffix if the node is lowered to several nests (`up1.phase_0_1`, `lstm.recurrent`).
    pub name: String,
    /// The loop nest.
    pub problem: Problem,
    /// How often the node runs it, one after the other: 1 but for the recurrent product of an LSTM, which runs once
    /// per time step.
    pub repeats: u64,
}

/// Equal loop nests of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DistinctLayer {
    /// The name of the first one.
    pub name: String,
    /// How often the network runs the nest.
    pub count: u64,
    /// The names of all, in network order.
    pub names: Vec<String>,
    /// The loop nest.
    pub problem: Problem,
}

/// A valid network: names are unique, nodes stand after what they read, every shape is known, and every count of
/// multiply-accumulates, their total included, fits 64 bits. It can only be built through a check of all of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    name: String,
    inputs: Vec<Input>,
    nodes: Vec<Node>,
    layers: Vec<LayerWork>,
    macs: u64,
}

impl Network {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it reads.
    #[must_use]
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// Every operator, after the ones that it reads.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The shape of the output of a node, or of a network input.
    #[must_use]
    pub fn shape(&self, name: &str) -> Option<&[u64]> {
        let node = || {
            self.nodes
                .iter()
                .find(|node| node.name == name)
                .map(|node| &node.shape[..])
        };
        let input = self.inputs.iter().find(|input| input.name == name);
        input.map(|input| &input.shape[..]).or_else(node)
    }

    /// The loop nests of every multiplying node, in network order.
    #[must_use]
    pub fn layers(&self) -> &[LayerWork] {
        &self.layers
    }

    /// The different loop nests of the network in the order of their first occurrence.
    ///
    /// ```
    /// use cyclonest_workloads::bundled;
    ///
    /// let vgg16 = bundled::load("vgg16").expect("bundled");
    /// let distinct = vgg16.distinct();
    /// assert_eq!((vgg16.layers().len(), distinct.len()), (16, 12));
    /// assert_eq!(distinct[5].names, ["conv3_2", "conv3_3"]);
    /// assert_eq!(vgg16.macs(), distinct.iter().map(|layer| layer.count * layer.problem.macs()).sum());
    /// ```
    #[must_use]
    pub fn distinct(&self) -> Vec<DistinctLayer> {
        let mut distinct: Vec<DistinctLayer> = Vec::new();
        let mut known = BTreeMap::new();
        for layer in &self.layers {
            let next = distinct.len();
            let at = *known.entry(&layer.problem).or_insert(next);
            if at == next {
                distinct.push(DistinctLayer {
                    name: layer.name.clone(),
                    count: 0,
                    names: Vec::new(),
                    problem: layer.problem.clone(),
                });
            }
            distinct[at].count += layer.repeats;
            distinct[at].names.push(layer.name.clone());
        }
        distinct
    }

    /// Multiply-accumulates of all layers, padding included.
    #[must_use]
    pub const fn macs(&self) -> u64 {
        self.macs
    }
}
