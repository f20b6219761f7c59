//! Smaller and larger versions of a network with the same graph.

use super::error::NetworkErrors;
use super::infer;
use super::op::{Conv, ConvTranspose, Op};
use super::{Draft, DraftNode, Input, Network, Node, assemble};

/// How a network is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// What the output channels, output features and hidden features of every multiplying node are divided by,
    /// rounded up, and those of the network's inputs if they are more than four: an image keeps its colours.
    pub divide_channels: u64,
    /// Batch of every network input (axis 0, for the sequence of an LSTM axis 1); `None` leaves it as it is.
    pub batch: Option<u64>,
}

impl Default for Scale {
    fn default() -> Self {
        Scale {
            divide_channels: 1,
            batch: None,
        }
    }
}

impl Network {
    /// The network with other channels and another batch; shapes follow. Groups that no longer divide the channels
    /// become the largest number that divides the old groups and the new channels, so that a depthwise convolution
    /// stays one.
    ///
    /// ```
    /// use cyclonest_workloads::{Scale, bundled};
    ///
    /// let alexnet = bundled::load("alexnet").expect("bundled");
    /// let quarter = alexnet.scaled(Scale { divide_channels: 4, batch: None })?;
    /// assert_eq!(quarter.shape("conv2"), Some(&[1, 48, 27, 27][..]));
    /// # Ok::<(), cyclonest_workloads::NetworkErrors>(())
    /// ```
    ///
    /// # Errors
    /// If the network does not fit together any more: a reshape, slice or constant with fixed sizes, or a count
    /// beyond 64 bits; and a divisor or batch of 0.
    pub fn scaled(&self, scale: Scale) -> Result<Network, NetworkErrors> {
        if scale.divide_channels == 0 || scale.batch == Some(0) {
            return Err(NetworkErrors::new(vec![super::NetworkError {
                position: None,
                node: None,
                message: "a scale of 0 leaves nothing of the network; at least 1 is expected".to_owned(),
            }]));
        }
        let mut inputs = self.inputs.clone();
        for input in &mut inputs {
            let batch_axis = usize::from(self.readers(input).any(|node| matches!(node.op, Op::Lstm(_))));
            if let (Some(batch), Some(size)) = (scale.batch, input.shape.get_mut(batch_axis)) {
                *size = batch;
            }
            if let Some(features) = self.feature_axis(input).and_then(|axis| input.shape.get_mut(axis))
                && *features > COLOURS
            {
                *features = features.div_ceil(scale.divide_channels);
            }
        }
        // Groups depend on the input channels, and these on the nodes before: scale in network order, and infer the
        // shapes of what is already scaled on the way.
        let mut draft = Draft {
            name: self.name.clone(),
            inputs,
            nodes: Vec::with_capacity(self.nodes.len()),
        };
        let mut shapes: std::collections::BTreeMap<String, Vec<u64>> = draft
            .inputs
            .iter()
            .map(|input| (input.name.clone(), input.shape.clone()))
            .collect();
        for node in &self.nodes {
            let operands: Option<Vec<&[u64]>> = node
                .inputs
                .iter()
                .map(|name| shapes.get(name).map(Vec::as_slice))
                .collect();
            let channels = operands.as_ref().and_then(|shapes| shapes.first()?.get(1).copied());
            let op = scaled(&node.op, scale.divide_channels, channels);
            if let Some(shape) = operands.and_then(|operands| infer(&op, &operands).ok()) {
                shapes.insert(node.name.clone(), shape);
            }
            draft.nodes.push(DraftNode {
                name: node.name.clone(),
                op,
                inputs: node.inputs.clone(),
            });
        }
        assemble(draft, &|_| None)
    }
}

impl Network {
    fn readers(&self, input: &Input) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.inputs.contains(&input.name))
    }

    /// The axis of a network input that its readers sum over: the channels of a convolution, the last axis of a GEMM.
    fn feature_axis(&self, input: &Input) -> Option<usize> {
        self.readers(input).find_map(|node| match node.op {
            Op::Conv(_) | Op::ConvTranspose(_) => Some(1),
            Op::Linear(_) | Op::MatMul(_) | Op::Lstm(_) => input.shape.len().checked_sub(1),
            _ => None,
        })
    }
}

/// Most channels of an image: red, green, blue and one more.
const COLOURS: u64 = 4;

fn scaled(op: &Op, divisor: u64, channels: Option<u64>) -> Op {
    let shrink = |size: u64| size.div_ceil(divisor);
    let groups = |old: u64, out: u64| gcd(old, gcd(out, channels.unwrap_or(old)));
    match op {
        Op::Conv(conv) => Op::Conv(Conv {
            out: shrink(conv.out),
            groups: groups(conv.groups, shrink(conv.out)),
            ..*conv
        }),
        Op::ConvTranspose(conv) => Op::ConvTranspose(ConvTranspose {
            out: shrink(conv.out),
            groups: groups(conv.groups, shrink(conv.out)),
            ..*conv
        }),
        Op::Linear(linear) => {
            let mut linear = *linear;
            linear.out = shrink(linear.out);
            Op::Linear(linear)
        }
        Op::Lstm(lstm) => {
            let mut lstm = *lstm;
            lstm.hidden = shrink(lstm.hidden);
            Op::Lstm(lstm)
        }
        Op::ChannelShuffle(shuffle) => {
            let mut shuffle = *shuffle;
            shuffle.groups = gcd(shuffle.groups, channels.unwrap_or(shuffle.groups));
            Op::ChannelShuffle(shuffle)
        }
        other => other.clone(),
    }
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
