//! From a [`Network`] of operators to the layers that the streaming backends know.

use std::collections::BTreeMap;

use cyclonest_workloads::op::Op;
use cyclonest_workloads::{Network, Padding, Pair};

use super::front::{Front, FrontError, FrontLayer, FrontOp, Map};

/// What a tensor of the network comes from.
#[derive(Clone, Copy)]
enum Source {
    /// The network's input.
    Input,
    /// The output of a layer.
    Layer(usize),
}

impl Front {
    /// The layers of a network with batch 1. Batch normalisation and dropout are folded away, a final softmax stays
    /// on the host, flattening and reshaping move no data; a rectifier joins the layer that it alone reads.
    ///
    /// # Errors
    /// If an operator has no streaming node; the message names it.
    pub fn from_network(network: &Network) -> Result<Self, FrontError> {
        let unsupported = |node: &str, message: String| FrontError::Unsupported {
            backend: "streaming",
            layer: node.to_owned(),
            message,
        };
        let [input] = network.inputs() else {
            return Err(unsupported(
                network.name(),
                format!("{} network inputs, expected 1", network.inputs().len()),
            ));
        };
        let image = map_of(&input.shape).ok_or_else(|| unsupported(&input.name, format!("shape {:?}", input.shape)))?;
        let mut readers: BTreeMap<&str, usize> = BTreeMap::new();
        for name in network.nodes().iter().flat_map(|n| &n.inputs) {
            *readers.entry(name).or_default() += 1;
        }
        let mut sources: BTreeMap<&str, Source> = BTreeMap::from([(input.name.as_str(), Source::Input)]);
        let mut front = Self {
            name: network.name().to_owned(),
            input: image,
            layers: Vec::new(),
        };
        for node in network.nodes() {
            let read: Vec<Source> = node
                .inputs
                .iter()
                .filter_map(|name| sources.get(name.as_str()).copied())
                .collect();
            let shape = |name: &str| {
                network.shape(name).and_then(map_of).ok_or_else(|| {
                    unsupported(
                        &node.name,
                        "reads a tensor that is no feature map of batch 1".to_owned(),
                    )
                })
            };
            let output = map_of(&node.shape);
            let map = |front: &Self, name: &str| -> Result<Map, FrontError> {
                Ok(match sources.get(name) {
                    // A flattened map keeps its pixels: the layer that reads it knows what to do.
                    Some(Source::Layer(at)) => front.layers[*at].output,
                    Some(Source::Input) => front.input,
                    None => shape(name)?,
                })
            };
            let window = |op: FrontOp, kernel: Pair, stride: Pair, pad: Padding, groups: u64, front: &Self| {
                let input = map(front, &node.inputs[0])?;
                let output = output.ok_or_else(|| unsupported(&node.name, format!("output shape {:?}", node.shape)))?;
                Ok::<_, FrontError>(FrontLayer {
                    name: node.name.clone(),
                    op,
                    inputs: read
                        .iter()
                        .filter_map(|s| if let Source::Layer(at) = s { Some(*at) } else { None })
                        .collect(),
                    input,
                    output,
                    kernel: (kernel.0, kernel.1),
                    stride: (stride.0, stride.1),
                    pads: [pad.top, pad.left, pad.bottom, pad.right],
                    groups,
                    relu: false,
                })
            };
            let none = Padding {
                top: 0,
                bottom: 0,
                left: 0,
                right: 0,
            };
            let layer = match &node.op {
                Op::Conv(conv) if conv.dilation == Pair::ONE => {
                    window(FrontOp::Conv, conv.kernel, conv.stride, conv.pad, conv.groups, &front)?
                }
                Op::Linear(_) => window(FrontOp::Fc, Pair::ONE, Pair::ONE, none, 1, &front)?,
                Op::MaxPool(pool) if pool.dilation == Pair::ONE => {
                    window(FrontOp::MaxPool, pool.kernel, pool.stride, pool.pad, 1, &front)?
                }
                Op::AveragePool(pool) if pool.dilation == Pair::ONE => {
                    window(FrontOp::AvgPool, pool.kernel, pool.stride, pool.pad, 1, &front)?
                }
                Op::GlobalAveragePool | Op::GlobalMaxPool => {
                    let input = map(&front, &node.inputs[0])?;
                    let whole = Pair(input.h, input.w);
                    let op = if matches!(node.op, Op::GlobalMaxPool) {
                        FrontOp::MaxPool
                    } else {
                        FrontOp::AvgPool
                    };
                    window(op, whole, whole, none, 1, &front)?
                }
                Op::Add => {
                    if node.inputs.iter().any(|name| shape(name).ok() != output) {
                        return Err(unsupported(&node.name, "a sum of different shapes".to_owned()));
                    }
                    window(FrontOp::Add, Pair::ONE, Pair::ONE, none, 1, &front)?
                }
                Op::Concat(axis) if axis.axis == 1 => {
                    let mut layer = window(FrontOp::Concat, Pair::ONE, Pair::ONE, none, 1, &front)?;
                    layer.input = layer.output;
                    layer
                }
                Op::Relu | Op::Relu6 => {
                    if let ([Source::Layer(at)], Some(1)) = (read.as_slice(), readers.get(node.inputs[0].as_str())) {
                        let layer = &mut front.layers[*at];
                        if !layer.relu {
                            layer.relu = true;
                            sources.insert(&node.name, Source::Layer(*at));
                            continue;
                        }
                    }
                    window(FrontOp::Relu, Pair::ONE, Pair::ONE, none, 1, &front)?
                }
                Op::BatchNorm | Op::Dropout | Op::Softmax | Op::Flatten(_) | Op::Reshape(_) => {
                    let passes = !matches!(node.op, Op::Softmax) || !readers.contains_key(node.name.as_str());
                    match read.as_slice() {
                        [source] if passes => {
                            sources.insert(&node.name, *source);
                            continue;
                        }
                        _ => return Err(unsupported(&node.name, format!("{:?} in the middle", node.op))),
                    }
                }
                other => return Err(unsupported(&node.name, format!("operator {other:?}"))),
            };
            if read.len() != node.inputs.len() {
                return Err(unsupported(&node.name, "reads a constant".to_owned()));
            }
            sources.insert(&node.name, Source::Layer(front.layers.len()));
            front.layers.push(layer);
        }
        front.check()?;
        Ok(front)
    }
}

/// `[1, C, H, W]`, `[1, C]` or `[C]` as a feature map.
fn map_of(shape: &[u64]) -> Option<Map> {
    match *shape {
        [1, c, h, w] => Some(Map::new(c, h, w)),
        [1, c] => Some(Map::new(c, 1, 1)),
        _ => None,
    }
}
