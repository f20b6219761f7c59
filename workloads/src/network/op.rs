//! The operators of a network and their attributes, as they are written in RON.

use serde::{Deserialize, Serialize};

use super::compact;
use crate::{Padding, Pair};

/// What a node computes. Feature maps are `[N, C, H, W]` (or `[N, C, W]`, read as one row), sequences of an LSTM
/// `[time, batch, features]`, and operands of GEMMs `[…, rows, columns]`.
///
/// In RON a variant is written with the fields of its struct: `Conv(out: 64, kernel: 3, pad: 1)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Convolution: one input `[N, C, H, W]`.
    Conv(Conv),
    /// Transposed convolution: one input `[N, C, H, W]`.
    ConvTranspose(ConvTranspose),
    /// Fully connected layer: one input `[…, features]`, output `[…, out]`.
    Linear(Linear),
    /// Matrix product of two inputs, `[…, M, C] × […, C, K]`, leading axes broadcast.
    MatMul(MatMul),
    /// Long short-term memory: one input `[time, batch, features]`, output `[time, batch, directions·hidden]`.
    Lstm(Lstm),

    /// Largest value of a window.
    MaxPool(Pool),
    /// Mean of a window.
    AveragePool(Pool),
    /// Largest value of each channel: `[N, C, H, W]` to `[N, C, 1, 1]`.
    GlobalMaxPool,
    /// Mean of each channel: `[N, C, H, W]` to `[N, C, 1, 1]`.
    GlobalAveragePool,

    /// max(0, x).
    Relu,
    /// min(6, max(0, x)).
    Relu6,
    /// Logistic function.
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// Gaussian error linear unit.
    Gelu,
    /// Softmax.
    Softmax,
    /// Batch normalisation, as an affine map per channel.
    BatchNorm,
    /// Layer normalisation.
    LayerNorm,
    /// Local response normalisation across `size` channels.
    LocalResponseNorm(LocalResponseNorm),
    /// The identity at inference time.
    Dropout,
    /// Any other function that keeps the shape of its one input, by the name of the format it came from.
    Unary(String),

    /// Sum of two or more inputs, broadcast.
    Add,
    /// Product of two or more inputs, broadcast.
    Mul,
    /// Any other function of two or more broadcast inputs, by the name of the format it came from.
    Elementwise(String),

    /// Joins its inputs along an axis.
    Concat(Axis),
    /// Folds the axes from `axis` on into one.
    Flatten(Axis),
    /// New sizes of the axes: 0 keeps the size of that axis, one −1 takes what is left.
    Reshape(Vec<i64>),
    /// Permutes the axes: entry `i` is the input axis that becomes axis `i`.
    Transpose(Vec<usize>),
    /// A range of one axis.
    Slice(Slice),
    /// The central rows and columns of a feature map, as many as given.
    CenterCrop(CenterCrop),
    /// Adds a border to rows and columns.
    Pad(PadRows),
    /// Multiplies rows and columns by a factor (nearest or linear: the shape is the same).
    Upsample(Upsample),
    /// Interleaves the channels of the groups (ShuffleNet).
    ChannelShuffle(ChannelShuffle),
    /// Mean, sum, maximum, … over axes.
    Reduce(Reduce),
    /// A tensor that is part of the network: a parameter or a constant. It has no inputs.
    Constant(Vec<u64>),
    /// An operator of another format that is not modelled; its output shape is taken from the file.
    Opaque(Opaque),
}

/// Attributes of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conv {
    /// Output channels, all groups together.
    pub out: u64,
    /// Filter rows and columns.
    #[serde(with = "compact::pair")]
    pub kernel: Pair,
    /// Distance of two windows [rows, columns].
    #[serde(with = "compact::pair", default = "one", skip_serializing_if = "is_one")]
    pub stride: Pair,
    /// Distance of two filter taps [rows, columns].
    #[serde(with = "compact::pair", default = "one", skip_serializing_if = "is_one")]
    pub dilation: Pair,
    /// Border of zeros around the input.
    #[serde(with = "compact::padding", default, skip_serializing_if = "is_none")]
    pub pad: Padding,
    /// Groups; a depthwise convolution has as many as input channels.
    #[serde(default = "single", skip_serializing_if = "is_single")]
    pub groups: u64,
}

/// Attributes of a transposed convolution. Output rows: (H−1)·stride + (kernel−1)·dilation + 1 − top − bottom +
/// output_pad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvTranspose {
    /// Output channels, all groups together.
    pub out: u64,
    /// Filter rows and columns.
    #[serde(with = "compact::pair")]
    pub kernel: Pair,
    /// Distance, in output rows and columns, of the windows of two neighbouring inputs.
    #[serde(with = "compact::pair", default = "one", skip_serializing_if = "is_one")]
    pub stride: Pair,
    /// Distance of two filter taps, in output rows and columns.
    #[serde(with = "compact::pair", default = "one", skip_serializing_if = "is_one")]
    pub dilation: Pair,
    /// Rows and columns cut off the output.
    #[serde(with = "compact::padding", default, skip_serializing_if = "is_none")]
    pub pad: Padding,
    /// Rows and columns added at the bottom and right of the output.
    #[serde(with = "compact::pair", default = "zero", skip_serializing_if = "is_zero")]
    pub output_pad: Pair,
    /// Groups.
    #[serde(default = "single", skip_serializing_if = "is_single")]
    pub groups: u64,
}

/// Attributes of a fully connected layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Linear {
    /// Output features.
    pub out: u64,
}

/// Attributes of a matrix product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MatMul {
    /// The second operand is `[…, K, C]` instead of `[…, C, K]`.
    pub transpose_b: bool,
}

/// Attributes of an LSTM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lstm {
    /// Features of the hidden state.
    pub hidden: u64,
    /// Stacked layers; each reads the output of the one before.
    #[serde(default = "single", skip_serializing_if = "is_single")]
    pub layers: u64,
    /// A second set of weights runs over the sequence backwards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bidirectional: bool,
}

/// Attributes of a pooling window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Window rows and columns.
    #[serde(with = "compact::pair")]
    pub kernel: Pair,
    /// Distance of two windows [rows, columns].
    #[serde(with = "compact::pair", default = "one", skip_serializing_if = "is_one")]
    pub stride: Pair,
    /// Distance of two taps [rows, columns].
    #[serde(with = "compact::pair", default = "one", skip_serializing_if = "is_one")]
    pub dilation: Pair,
    /// Border around the input.
    #[serde(with = "compact::padding", default, skip_serializing_if = "is_none")]
    pub pad: Padding,
    /// Rounds the number of windows up, as long as the last one starts inside the input or the border before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ceil: bool,
}

/// Attributes of a local response normalisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalResponseNorm {
    /// Channels that are summed.
    pub size: u64,
}

/// An axis, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The axis; 1, the channels, if left out.
    #[serde(default = "channel_axis")]
    pub axis: usize,
}

/// A range of one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// The axis, from 0.
    pub axis: usize,
    /// First index.
    pub start: u64,
    /// How many indices are taken.
    pub length: u64,
    /// Distance of two indices.
    #[serde(default = "single", skip_serializing_if = "is_single")]
    pub step: u64,
}

/// The size of a central crop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CenterCrop {
    /// Rows and columns that remain.
    #[serde(with = "compact::pair")]
    pub size: Pair,
}

/// A border.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PadRows {
    /// Rows and columns that are added.
    #[serde(with = "compact::padding")]
    pub pad: Padding,
}

/// Attributes of an enlargement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upsample {
    /// Factor for rows and columns.
    #[serde(with = "compact::pair")]
    pub scale: Pair,
}

/// Attributes of a channel shuffle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelShuffle {
    /// Groups whose channels are interleaved.
    pub groups: u64,
}

/// Attributes of a reduction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduce {
    /// The axes that are reduced, from 0.
    pub axes: Vec<usize>,
    /// Reduced axes stay with size 1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
}

/// An operator that is not modelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opaque {
    /// Its name in the format it came from.
    pub kind: String,
    /// Its output shape.
    pub shape: Vec<u64>,
}

/// The window that an operator slides over rows and columns; what a line buffer has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Rows and columns.
    pub kernel: Pair,
    /// Distance of two windows.
    pub stride: Pair,
    /// Distance of two taps.
    pub dilation: Pair,
    /// Border around the input, as declared.
    pub pad: Padding,
}

/// How many inputs an operator takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arity {
    Exactly(usize),
    AtLeast(usize),
}

impl Arity {
    pub(crate) fn admits(self, count: usize) -> bool {
        match self {
            Arity::Exactly(n) => count == n,
            Arity::AtLeast(n) => count >= n,
        }
    }
}

impl std::fmt::Display for Arity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Arity::Exactly(n) => write!(f, "{n}"),
            Arity::AtLeast(n) => write!(f, "at least {n}"),
        }
    }
}

impl Op {
    /// The name of the operator, as in RON; for operators of other formats, their name there.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Op::Conv(_) => "Conv",
            Op::ConvTranspose(_) => "ConvTranspose",
            Op::Linear(_) => "Linear",
            Op::MatMul(_) => "MatMul",
            Op::Lstm(_) => "Lstm",
            Op::MaxPool(_) => "MaxPool",
            Op::AveragePool(_) => "AveragePool",
            Op::GlobalMaxPool => "GlobalMaxPool",
            Op::GlobalAveragePool => "GlobalAveragePool",
            Op::Relu => "Relu",
            Op::Relu6 => "Relu6",
            Op::Sigmoid => "Sigmoid",
            Op::Tanh => "Tanh",
            Op::Gelu => "Gelu",
            Op::Softmax => "Softmax",
            Op::BatchNorm => "BatchNorm",
            Op::LayerNorm => "LayerNorm",
            Op::LocalResponseNorm(_) => "LocalResponseNorm",
            Op::Dropout => "Dropout",
            Op::Add => "Add",
            Op::Mul => "Mul",
            Op::Concat(_) => "Concat",
            Op::Flatten(_) => "Flatten",
            Op::Reshape(_) => "Reshape",
            Op::Transpose(_) => "Transpose",
            Op::Slice(_) => "Slice",
            Op::CenterCrop(_) => "CenterCrop",
            Op::Pad(_) => "Pad",
            Op::Upsample(_) => "Upsample",
            Op::ChannelShuffle(_) => "ChannelShuffle",
            Op::Reduce(_) => "Reduce",
            Op::Constant(_) => "Constant",
            Op::Unary(kind) | Op::Elementwise(kind) => kind,
            Op::Opaque(opaque) => &opaque.kind,
        }
    }

    /// True if the operator multiplies and accumulates, so that it is lowered to loop nests.
    #[must_use]
    pub const fn multiplies(&self) -> bool {
        matches!(
            self,
            Op::Conv(_) | Op::ConvTranspose(_) | Op::Linear(_) | Op::MatMul(_) | Op::Lstm(_)
        )
    }

    /// The sliding window of a convolution or pooling; `None` for everything else (a global pooling covers its
    /// whole input).
    #[must_use]
    pub const fn window(&self) -> Option<Window> {
        match self {
            Op::Conv(conv) => Some(Window {
                kernel: conv.kernel,
                stride: conv.stride,
                dilation: conv.dilation,
                pad: conv.pad,
            }),
            Op::MaxPool(pool) | Op::AveragePool(pool) => Some(Window {
                kernel: pool.kernel,
                stride: pool.stride,
                dilation: pool.dilation,
                pad: pool.pad,
            }),
            _ => None,
        }
    }

    pub(crate) const fn arity(&self) -> Arity {
        match self {
            Op::MatMul(_) => Arity::Exactly(2),
            Op::Add | Op::Mul | Op::Elementwise(_) => Arity::AtLeast(2),
            Op::Concat(_) => Arity::AtLeast(1),
            Op::Constant(_) => Arity::Exactly(0),
            Op::Opaque(_) => Arity::AtLeast(0),
            _ => Arity::Exactly(1),
        }
    }
}

const fn one() -> Pair {
    Pair::ONE
}

fn is_one(pair: &Pair) -> bool {
    *pair == Pair::ONE
}

const fn zero() -> Pair {
    Pair(0, 0)
}

fn is_zero(pair: &Pair) -> bool {
    *pair == Pair(0, 0)
}

fn is_none(padding: &Padding) -> bool {
    *padding == Padding::default()
}

const fn single() -> u64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
const fn is_single(value: &u64) -> bool {
    *value == 1
}

const fn channel_axis() -> usize {
    1
}
