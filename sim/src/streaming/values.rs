//! What the layers of a pipeline compute, for runs that carry values.

use std::collections::BTreeMap;

use cyclonest_arch::streaming::{Front, FrontOp, Graph, NodeKind};

/// The function of one layer at one output pixel, in integers. Weights are indexed output channel, input channel of
/// the group, row, column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kernel {
    /// Passes pixels on.
    Identity,
    /// max(0, x).
    Relu,
    /// Convolution.
    Conv {
        /// Weights.
        weights: Vec<i64>,
        /// Output channels.
        channels_out: usize,
        /// Channel groups.
        groups: usize,
    },
    /// Fully connected over the whole map, channels outermost.
    Fc {
        /// Weights: output, then channel, row, column.
        weights: Vec<i64>,
        /// Output channels.
        channels_out: usize,
    },
    /// Maximum of the window; what lies outside the map is left out.
    MaxPool,
    /// Sum of the window.
    SumPool,
    /// Sum of all inputs.
    Add,
    /// All inputs one after the other.
    Concat,
    /// The pixel, or zeros outside the map, for that many channels.
    Pad(usize),
    /// The window's pixels one after the other.
    Window,
    /// The whole map, channels outermost, as one pixel.
    Flatten,
    /// Every channel of a window by itself: weights indexed channel, position; the pixel holds the positions one after
    /// the other.
    Depthwise {
        /// Weights.
        weights: Vec<i64>,
        /// Channels.
        channels: usize,
    },
    /// Maximum or sum over the positions that the pixel holds one after the other.
    Reduce {
        /// Channels.
        channels: usize,
        /// Sum instead of maximum.
        sum: bool,
    },
    /// Index of the largest value, the first of equal ones.
    ArgMax,
    /// max(0, x) of another function.
    Rectified(Box<Kernel>),
}

impl Kernel {
    /// The output pixel whose window begins at `origin` (row, column; may lie outside the map). `pixel(i, row, column)`
    /// is input i's pixel, `None` outside the map.
    pub(super) fn fire<'p>(
        &self,
        origin: (i64, i64),
        window: (u64, u64),
        map: (u64, u64),
        inputs: usize,
        pixel: &dyn Fn(usize, i64, i64) -> Option<&'p [i64]>,
    ) -> Vec<i64> {
        let taps = (0..window.0 as i64).flat_map(|r| (0..window.1 as i64).map(move |c| (r, c)));
        match self {
            Self::Rectified(kernel) => {
                let mut values = kernel.fire(origin, window, map, inputs, pixel);
                for value in &mut values {
                    *value = (*value).max(0);
                }
                values
            }
            Self::Pad(channels) => pixel(0, origin.0, origin.1).map_or_else(|| vec![0; *channels], <[_]>::to_vec),
            Self::Window => taps
                .flat_map(|(r, c)| inside(pixel(0, origin.0 + r, origin.1 + c)).to_vec())
                .collect(),
            Self::Flatten => {
                let pixels: Vec<&[i64]> = (0..map.0 as i64)
                    .flat_map(|r| (0..map.1 as i64).map(move |c| (r, c)))
                    .map(|(r, c)| inside(pixel(0, r, c)))
                    .collect();
                (0..pixels[0].len())
                    .flat_map(|channel| pixels.iter().map(move |p| p[channel]))
                    .collect()
            }
            Self::Depthwise { weights, channels } => {
                let positions = weights.len() / channels;
                let values = inside(pixel(0, origin.0, origin.1));
                (0..*channels)
                    .map(|k| {
                        (0..positions)
                            .map(|t| weights[k * positions + t] * values[t * channels + k])
                            .sum()
                    })
                    .collect()
            }
            Self::Reduce { channels, sum } => {
                let values = inside(pixel(0, origin.0, origin.1));
                let of = |k: usize| values.iter().copied().skip(k).step_by(*channels);
                (0..*channels)
                    .map(|k| if *sum { of(k).sum() } else { of(k).max().unwrap_or(0) })
                    .collect()
            }
            Self::ArgMax => {
                let values = inside(pixel(0, origin.0, origin.1));
                let largest = values.iter().copied().max().unwrap_or(0);
                vec![values.iter().position(|&v| v == largest).unwrap_or(0) as i64]
            }
            Self::Identity => inside(pixel(0, origin.0, origin.1)).to_vec(),
            Self::Relu => inside(pixel(0, origin.0, origin.1))
                .iter()
                .map(|v| (*v).max(0))
                .collect(),
            Self::Add => (0..inputs)
                .map(|i| inside(pixel(i, origin.0, origin.1)).to_vec())
                .reduce(|a, b| a.iter().zip(&b).map(|(x, y)| x + y).collect())
                .unwrap_or_default(),
            Self::Concat => (0..inputs)
                .flat_map(|i| inside(pixel(i, origin.0, origin.1)).to_vec())
                .collect(),
            Self::MaxPool => taps
                .filter_map(|(r, c)| pixel(0, origin.0 + r, origin.1 + c))
                .map(<[i64]>::to_vec)
                .reduce(|a, b| a.iter().zip(&b).map(|(x, y)| *x.max(y)).collect())
                .unwrap_or_default(),
            Self::SumPool => taps
                .filter_map(|(r, c)| pixel(0, origin.0 + r, origin.1 + c))
                .map(<[i64]>::to_vec)
                .reduce(|a, b| a.iter().zip(&b).map(|(x, y)| x + y).collect())
                .unwrap_or_default(),
            Self::Conv {
                weights,
                channels_out,
                groups,
            } => {
                let mut out = vec![0; *channels_out];
                let per_group = channels_out / groups;
                let taps_per_channel = (window.0 * window.1) as usize;
                let channels_in = weights.len() / (channels_out * taps_per_channel);
                for (r, c) in taps {
                    let Some(values) = pixel(0, origin.0 + r, origin.1 + c) else {
                        continue;
                    };
                    let tap = (r as u64 * window.1 + c as u64) as usize;
                    for (k, sum) in out.iter_mut().enumerate() {
                        let first = k / per_group * channels_in;
                        for channel in 0..channels_in {
                            let weight = weights[(k * channels_in + channel) * taps_per_channel + tap];
                            *sum += weight * values[first + channel];
                        }
                    }
                }
                out
            }
            Self::Fc { weights, channels_out } => {
                let mut out = vec![0; *channels_out];
                let pixels = (map.0 * map.1) as usize;
                if pixels > 1 && window == (1, 1) {
                    // A matrix applied to every pixel by itself.
                    return dot(weights, inside(pixel(0, origin.0, origin.1)), *channels_out);
                }
                let inputs_per_output = weights.len() / channels_out;
                for row in 0..map.0 as i64 {
                    for column in 0..map.1 as i64 {
                        let values = inside(pixel(0, row, column));
                        let at = (row as u64 * map.1 + column as u64) as usize;
                        for (k, sum) in out.iter_mut().enumerate() {
                            for (channel, value) in values.iter().enumerate() {
                                *sum += weights[k * inputs_per_output + channel * pixels + at] * value;
                            }
                        }
                    }
                }
                out
            }
        }
    }
}

fn dot(weights: &[i64], values: &[i64], channels_out: usize) -> Vec<i64> {
    let inputs = weights.len() / channels_out;
    (0..channels_out)
        .map(|k| {
            weights[k * inputs..(k + 1) * inputs]
                .iter()
                .zip(values)
                .map(|(w, v)| w * v)
                .sum()
        })
        .collect()
}

fn inside(pixel: Option<&[i64]>) -> &[i64] {
    pixel.expect("the pixel lies inside the map")
}

/// The function of every node of a graph, by index. `weights` are those of the layers: output, input channel of the
/// group, row, column; for a fully connected layer output, channel, row, column. Average pools give sums.
///
/// # Panics
/// If a layer that multiplies has no weights.
#[must_use]
pub fn kernels(graph: &Graph, front: &Front, weights: &BTreeMap<usize, Vec<i64>>) -> BTreeMap<usize, Kernel> {
    let mut all = BTreeMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let layer = node.layer.map(|l| &front.layers[l]);
        let own = || weights[&node.layer.expect("it belongs to a layer")].clone();
        let channels = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let out = channels(node.channels_out);
        let kernel = match node.kind {
            NodeKind::Conv => Kernel::Conv {
                weights: own(),
                channels_out: out,
                groups: channels(node.groups),
            },
            NodeKind::Fc => Kernel::Fc {
                weights: own(),
                channels_out: out,
            },
            NodeKind::Relu => Kernel::Relu,
            NodeKind::Pool if layer.is_some_and(|l| l.op == FrontOp::AvgPool) => Kernel::SumPool,
            NodeKind::Pool | NodeKind::MaxPool => Kernel::MaxPool,
            NodeKind::Flatten => Kernel::Flatten,
            // The first quantiser takes the input as it is; the others stand for rectifiers.
            NodeKind::Threshold if node.layer.is_none() => Kernel::Identity,
            NodeKind::Threshold => Kernel::Relu,
            NodeKind::Padding => Kernel::Pad(channels(node.channels_in)),
            NodeKind::Window | NodeKind::WindowDepthwise => Kernel::Window,
            NodeKind::Mvau if layer.is_some_and(|l| l.op == FrontOp::Fc) => Kernel::Fc {
                weights: own(),
                channels_out: out,
            },
            NodeKind::Mvau => {
                // The window's pixels come position by position.
                let (positions, weights) = (channels(node.positions()), own());
                let inputs = weights.len() / out / positions;
                let reordered = (0..out)
                    .flat_map(|k| (0..positions).flat_map(move |t| (0..inputs).map(move |c| (k, t, c))))
                    .map(|(k, t, c)| weights[(k * inputs + c) * positions + t])
                    .collect();
                Kernel::Fc {
                    weights: reordered,
                    channels_out: out,
                }
            }
            NodeKind::Vvau => Kernel::Depthwise {
                weights: own(),
                channels: out,
            },
            NodeKind::PoolReduce => Kernel::Reduce {
                channels: out,
                sum: layer.is_some_and(|l| l.op == FrontOp::AvgPool),
            },
            NodeKind::LabelSelect => Kernel::ArgMax,
            NodeKind::Fork => Kernel::Identity,
            NodeKind::Add => Kernel::Add,
            NodeKind::Concat => Kernel::Concat,
        };
        // FINN's units rectify themselves; the others have nodes for it.
        let rectifies = matches!(
            node.kind,
            NodeKind::Mvau | NodeKind::Vvau | NodeKind::MaxPool | NodeKind::PoolReduce
        ) || graph.backend == "finn" && matches!(node.kind, NodeKind::Add | NodeKind::Concat);
        let kernel = if rectifies && layer.is_some_and(|l| l.relu) {
            Kernel::Rectified(Box::new(kernel))
        } else {
            kernel
        };
        all.insert(index, kernel);
    }
    all
}
