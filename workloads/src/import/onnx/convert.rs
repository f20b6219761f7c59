//! ONNX operators as operators of a network.

use super::build::{Builder, Operand};
use super::node::{Reader, axis, border};
use super::values::{Constant, Value};
use crate::network::op::{
    Axis, Conv, ConvTranspose, Linear, LocalResponseNorm, Lstm, MatMul, Op, Opaque, PadRows, Pool, Reduce, Slice,
    Upsample,
};
use crate::network::{elements, show};
use crate::{Padding, Pair};

/// Functions of one input that keep its shape, and have no variant of their own.
const UNARY: &[&str] = &[
    "Abs",
    "Ceil",
    "Celu",
    "Cos",
    "CumSum",
    "DequantizeLinear",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "HardSigmoid",
    "HardSwish",
    "Hardmax",
    "InstanceNormalization",
    "LeakyRelu",
    "Log",
    "LogSoftmax",
    "LpNormalization",
    "MeanVarianceNormalization",
    "Mish",
    "Neg",
    "Not",
    "PRelu",
    "QuantizeLinear",
    "Reciprocal",
    "Round",
    "Selu",
    "Shrink",
    "Sign",
    "Sin",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Swish",
    "ThresholdedRelu",
    "Trilu",
    "Cast",
    "CastLike",
];

/// Functions of several broadcast inputs without a variant of their own.
const ELEMENTWISE: &[&str] = &[
    "And",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Mean",
    "Min",
    "Mod",
    "Or",
    "Pow",
    "Sub",
    "Where",
    "Xor",
];

/// The ONNX operators whose multiplications a network counts.
pub(super) const MULTIPLYING: &[&str] = &[
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "Gemm",
    "LSTM",
    "MatMul",
    "MatMulInteger",
    "QLinearConv",
    "QLinearMatMul",
];

/// Adds what `node` computes to the network, under `name`, and returns what its outputs stand for. `None` if the
/// operator is not supported, or if its output shape depends on data.
pub(super) fn convert(node: &Reader<'_>, name: &str, b: &mut Builder) -> Result<Option<Vec<Value>>, String> {
    if let Some(empty) = node.shape(0).filter(|shape| shape.contains(&0)) {
        return Err(format!("reads an empty tensor, {}", show(empty)));
    }
    let one = |operand: Operand| Ok(Some(vec![Value::from(operand)]));
    let simple = match node.op() {
        "Relu" => Op::Relu,
        "Sigmoid" => Op::Sigmoid,
        "Tanh" => Op::Tanh,
        "Gelu" => Op::Gelu,
        "Softmax" => Op::Softmax,
        "Dropout" => Op::Dropout,
        "BatchNormalization" => Op::BatchNorm,
        "LayerNormalization" => Op::LayerNorm,
        "LRN" => Op::LocalResponseNorm(LocalResponseNorm {
            size: node.size("size", 1)?,
        }),
        "Clip" => clip(node),
        "GlobalMaxPool" => Op::GlobalMaxPool,
        "GlobalAveragePool" => Op::GlobalAveragePool,
        "MaxPool" => Op::MaxPool(pool(node)?),
        "AveragePool" => Op::AveragePool(pool(node)?),
        kind if UNARY.contains(&kind) => Op::Unary(kind.to_owned()),

        "Identity" => return Ok(node.value(0).map(|value| vec![value.clone()])),
        "Conv" | "ConvInteger" => return one(convolution(node, name, 1, b)?),
        "QLinearConv" => return one(convolution(node, name, 3, b)?),
        "ConvTranspose" => return one(transposed(node, name, b)?),
        "Gemm" => return one(gemm(node, name, b)?),
        "MatMul" | "MatMulInteger" => return one(matmul(node, name, 1, b)?),
        "QLinearMatMul" => return one(matmul(node, name, 3, b)?),
        "LSTM" => return lstm(node, name, b).map(Some),
        "DynamicQuantizeLinear" => {
            let input = operand(node, 0, b)?;
            let y = b.add(name, Op::Unary(node.op().to_owned()), &[&input])?;
            let scalar = || Value::Constant(Constant::opaque(Vec::new()));
            return Ok(Some(vec![y.into(), scalar(), scalar()]));
        }
        "Add" | "Sum" => return one(elementwise(node, name, Op::Add, b)?),
        "Mul" => return one(elementwise(node, name, Op::Mul, b)?),
        kind if ELEMENTWISE.contains(&kind) => {
            return one(elementwise(node, name, Op::Elementwise(kind.to_owned()), b)?);
        }
        "Concat" => {
            let operands = operands(node, b)?;
            let rank = operands.first().ok_or("has no inputs")?.shape.len();
            let at = node.axis("axis", 1, rank)?;
            let operands: Vec<&Operand> = operands.iter().collect();
            return one(b.add(name, Op::Concat(Axis { axis: at }), &operands)?);
        }
        "Flatten" if node.int("axis", 1) == 1 => Op::Flatten(Axis { axis: 1 }),
        "Flatten" | "Squeeze" | "Unsqueeze" | "Reshape" => {
            let Some(shape) = node.reshaped(node.required_shape(0)?)? else {
                return Ok(None);
            };
            let wanted = match node.op() {
                "Reshape" => node.ints_or_input("shape", 1).and_then(Result::ok),
                _ => None,
            };
            Op::Reshape(reshape_sizes(node.required_shape(0)?, &shape, wanted))
        }
        "Transpose" => {
            let rank = node.required_shape(0)?.len();
            let order = match node.ints("perm") {
                Some(perm) => perm.iter().map(|&i| axis(i, rank)).collect::<Result<_, _>>()?,
                None => (0..rank).rev().collect(),
            };
            Op::Transpose(order)
        }
        "Slice" => return slice(node, name, b),
        "Split" => return split(node, name, b),
        "Pad" => match pad(node)? {
            Some(op) => op,
            None => return Ok(None),
        },
        "Upsample" | "Resize" => match resize(node)? {
            Some(op) => op,
            None => return Ok(None),
        },
        kind if kind.starts_with("Reduce") || kind == "ArgMax" || kind == "ArgMin" => match reduce(node)? {
            Some(op) => op,
            None => return Ok(None),
        },
        "Gather" | "Expand" | "Tile" | "DepthToSpace" | "SpaceToDepth" => {
            let Some(shape) = moved(node)? else { return Ok(None) };
            let operands = operands(node, b)?;
            let operands: Vec<&Operand> = operands.iter().collect();
            let kind = node.op().to_owned();
            return one(b.add(name, Op::Opaque(Opaque { kind, shape }), &operands)?);
        }
        _ => return Ok(None),
    };
    let input = operand(node, 0, b)?;
    one(b.add(name, simple, &[&input])?)
}

fn operand(node: &Reader<'_>, index: usize, b: &mut Builder) -> Result<Operand, String> {
    let missing = || format!("input {index} is missing");
    let name = node.input_name(index).ok_or_else(missing)?;
    b.operand(name, node.value(index).ok_or_else(missing)?)
}

/// The inputs that are given. A constant that decides a shape (a repetition, an index) is not among them.
fn operands(node: &Reader<'_>, b: &mut Builder) -> Result<Vec<Operand>, String> {
    let decides = matches!(
        node.op(),
        "Gather" | "Expand" | "Tile" | "DepthToSpace" | "SpaceToDepth"
    );
    node.values()
        .enumerate()
        .filter(|(i, (_, value))| *i == 0 || !decides || value.constant().is_none())
        .map(|(_, (name, value))| b.operand(name, value))
        .collect()
}

fn elementwise(node: &Reader<'_>, name: &str, op: Op, b: &mut Builder) -> Result<Operand, String> {
    let operands = operands(node, b)?;
    match &operands[..] {
        [] => Err("has no inputs".to_owned()),
        [only] => b.add(name, Op::Unary(op.kind().to_owned()), &[only]),
        _ => b.add(name, op, &operands.iter().collect::<Vec<_>>()),
    }
}

fn clip(node: &Reader<'_>) -> Op {
    let bound = |attribute: &str, index| {
        let input = || node.value(index)?.constant()?.to_floats()?.first().copied();
        node.float(attribute).or_else(input)
    };
    match (bound("min", 1), bound("max", 2)) {
        (Some(0.0), Some(6.0)) => Op::Relu6,
        _ => Op::Unary("Clip".to_owned()),
    }
}

/// One or two numbers as columns, or rows and columns.
fn pair(name: &str, values: Option<&[u64]>, axes: usize, default: u64) -> Result<Pair, String> {
    match (values, axes) {
        (None, _) => Ok(Pair(default, default)),
        (Some(&[columns]), 1) => Ok(Pair(default, columns)),
        (Some(&[rows, columns]), 2) => Ok(Pair(rows, columns)),
        (Some(values), _) => Err(format!("{name} is {values:?}; {axes} numbers are expected")),
    }
}

/// Sizes of rows and columns of a feature map; as many as it has.
fn spatial(shape: &[u64]) -> Result<&[u64], String> {
    match shape.len() {
        3 | 4 => Ok(&shape[2..]),
        rank => Err(format!(
            "its input is {}, with {rank} axes; [N, C, H, W] or [N, C, W] is expected",
            show(shape)
        )),
    }
}

struct Windows {
    kernel: Pair,
    stride: Pair,
    dilation: Pair,
    pad: Padding,
}

/// Kernel, stride, dilation and padding of a sliding window.
fn windows(node: &Reader<'_>, input: &[u64], kernel: &[u64]) -> Result<Windows, String> {
    let sizes = spatial(input)?;
    let axes = sizes.len();
    let kernel = pair("kernel_shape", Some(kernel), axes, 1)?;
    let stride = pair("strides", node.sizes("strides")?.as_deref(), axes, 1)?;
    let dilation = pair("dilations", node.sizes("dilations")?.as_deref(), axes, 1)?;
    let extent = |taps: u64, dilation: u64| taps.saturating_sub(1).saturating_mul(dilation).saturating_add(1);
    let (rows, columns) = (extent(kernel.0, dilation.0), extent(kernel.1, dilation.1));
    let extents: Vec<_> = match *sizes {
        [w] => vec![(w, columns, stride.1)],
        [h, w] => vec![(h, rows, stride.0), (w, columns, stride.1)],
        _ => Vec::new(),
    };
    let pad = node.padding(&extents)?;
    Ok(Windows {
        kernel,
        stride: if axes == 1 { Pair(1, stride.1) } else { stride },
        dilation: if axes == 1 { Pair(1, dilation.1) } else { dilation },
        pad,
    })
}

fn pool(node: &Reader<'_>) -> Result<Pool, String> {
    let kernel = node.sizes("kernel_shape")?.ok_or("kernel_shape is missing")?;
    let Windows {
        kernel,
        stride,
        dilation,
        pad,
    } = windows(node, node.required_shape(0)?, &kernel)?;
    Ok(Pool {
        kernel,
        stride,
        dilation,
        pad,
        ceil: node.flag("ceil_mode"),
    })
}

/// The shape of a filter, checked against the number of input channels.
fn filter<'a>(node: &Reader<'a>, index: usize, input: &[u64], channel_axis: usize) -> Result<&'a [u64], String> {
    let weights = node.required_shape(index)?;
    spatial(input)?;
    if weights.len() != input.len() || weights.contains(&0) {
        return Err(format!(
            "the filter is {} for an input of {}; as many axes are expected, none of them 0",
            show(weights),
            show(input)
        ));
    }
    let groups = if channel_axis == 0 { 1 } else { node.size("group", 1)? };
    if weights[channel_axis].checked_mul(groups) != Some(input[1]) {
        return Err(format!(
            "the filter {} with {} group(s) does not fit an input of {}",
            show(weights),
            node.size("group", 1)?,
            show(input)
        ));
    }
    if let Some(kernel) = node.sizes("kernel_shape")?
        && kernel != weights[2..]
    {
        return Err(format!(
            "kernel_shape is {kernel:?}, but the filter is {}",
            show(weights)
        ));
    }
    Ok(weights)
}

fn convolution(node: &Reader<'_>, name: &str, weights: usize, b: &mut Builder) -> Result<Operand, String> {
    let input = operand(node, 0, b)?;
    let filter = filter(node, weights, &input.shape, 1)?;
    let windows = windows(node, &input.shape, &filter[2..])?;
    let conv = Conv {
        out: filter[0],
        kernel: windows.kernel,
        stride: windows.stride,
        dilation: windows.dilation,
        pad: windows.pad,
        groups: node.size("group", 1)?,
    };
    b.add(name, Op::Conv(conv), &[&input])
}

fn transposed(node: &Reader<'_>, name: &str, b: &mut Builder) -> Result<Operand, String> {
    let input = operand(node, 0, b)?;
    let filter = filter(node, 1, &input.shape, 0)?;
    let windows = windows(node, &input.shape, &filter[2..])?;
    let axes = input.shape.len() - 2;
    let groups = node.size("group", 1)?;
    let add = pair("output_padding", node.sizes("output_padding")?.as_deref(), axes, 0)?;
    let add = if axes == 1 { Pair(0, add.1) } else { add };
    let mut conv = ConvTranspose {
        out: filter[1]
            .checked_mul(groups)
            .ok_or("the output channels do not fit 64 bits")?,
        kernel: windows.kernel,
        stride: windows.stride,
        dilation: windows.dilation,
        pad: windows.pad,
        output_pad: add,
        groups,
    };
    let automatic = node.string("auto_pad").filter(|mode| mode.starts_with("SAME"));
    let wanted = match (node.sizes("output_shape")?, automatic) {
        (Some(shape), _) => Some(shape[shape.len().saturating_sub(axes)..].to_vec()),
        (None, Some(_)) => {
            let strides = [conv.stride.0, conv.stride.1];
            let strides = &strides[2 - axes..];
            let sizes = input.shape[2..].iter().zip(strides);
            Some(sizes.map(|(size, stride)| size.saturating_mul(*stride)).collect())
        }
        (None, None) => None,
    };
    if let Some(wanted) = wanted {
        // The padding follows from the output: what is too much is cut off, the larger half at the end unless
        // SAME_UPPER says otherwise.
        conv.pad = Padding::default();
        let whole = crate::network::infer(&Op::ConvTranspose(conv), &[&input.shape])?;
        let sides = whole[2..]
            .iter()
            .zip(&wanted)
            .map(|(&whole, &wanted)| {
                let cut = whole
                    .checked_sub(wanted)
                    .ok_or_else(|| format!("an output of {wanted} is asked for, but there are only {whole}"))?;
                Ok(match automatic {
                    Some("SAME_UPPER") => (cut / 2, cut - cut / 2),
                    _ => (cut - cut / 2, cut / 2),
                })
            })
            .collect::<Result<Vec<_>, String>>()?;
        conv.pad = border(&sides);
    }
    b.add(name, Op::ConvTranspose(conv), &[&input])
}

fn gemm(node: &Reader<'_>, name: &str, b: &mut Builder) -> Result<Operand, String> {
    let mut left = operand(node, 0, b)?;
    if node.flag("transA") {
        left = b.add(&format!("{name}.transposed"), Op::Transpose(vec![1, 0]), &[&left])?;
    }
    let transposed = node.flag("transB");
    let (&[rows, inner], &[r0, r1]) = (&left.shape[..], node.required_shape(1)?) else {
        return Err(format!(
            "the operands are {} and {}; two axes each are expected",
            show(&left.shape),
            show(node.required_shape(1)?)
        ));
    };
    let (depth, out) = if transposed { (r1, r0) } else { (r0, r1) };
    if depth != inner {
        return Err(format!("{rows}×{inner} times {depth}×{out} does not fit"));
    }
    let is_constant = node.value(1).and_then(Value::constant).is_some();
    let dynamic_bias = node.value(2).is_some_and(|value| value.constant().is_none());
    let inner_name = if dynamic_bias {
        format!("{name}.product")
    } else {
        name.to_owned()
    };
    let product = if is_constant {
        b.add(&inner_name, Op::Linear(Linear { out }), &[&left])?
    } else {
        let right = operand(node, 1, b)?;
        let op = Op::MatMul(MatMul {
            transpose_b: transposed,
        });
        b.add(&inner_name, op, &[&left, &right])?
    };
    if dynamic_bias {
        let bias = operand(node, 2, b)?;
        return b.add(name, Op::Add, &[&product, &bias]);
    }
    Ok(product)
}

/// A product with a constant matrix is a fully connected layer; vectors become matrices with one row or column.
fn matmul(node: &Reader<'_>, name: &str, second: usize, b: &mut Builder) -> Result<Operand, String> {
    let mut left = operand(node, 0, b)?;
    let right_shape = node.required_shape(second)?;
    let (row, column) = (left.shape.len() == 1, right_shape.len() == 1);
    let last = if row || column {
        format!("{name}.product")
    } else {
        name.to_owned()
    };
    if row {
        let features = size(left.shape[0])?;
        left = b.add(&format!("{name}.row"), Op::Reshape(vec![1, features]), &[&left])?;
    }
    let constant = node.value(second).and_then(Value::constant);
    let product = match (constant, right_shape) {
        (Some(_), &[inner, out]) if left.shape.last() == Some(&inner) => {
            b.add(&last, Op::Linear(Linear { out }), &[&left])?
        }
        (Some(_), &[inner]) if left.shape.last() == Some(&inner) => {
            b.add(&last, Op::Linear(Linear { out: 1 }), &[&left])?
        }
        _ => {
            let mut right = operand(node, second, b)?;
            if column {
                let features = size(right.shape[0])?;
                right = b.add(&format!("{name}.column"), Op::Reshape(vec![features, 1]), &[&right])?;
            }
            b.add(&last, Op::MatMul(MatMul::default()), &[&left, &right])?
        }
    };
    if !(row || column) {
        return Ok(product);
    }
    // The axes that were added go away again.
    let rank = product.shape.len();
    let kept = (0..rank).filter(|&i| !(row && i + 2 == rank || column && i + 1 == rank));
    let sizes = kept.map(|i| size(product.shape[i])).collect::<Result<_, _>>()?;
    b.add(name, Op::Reshape(sizes), &[&product])
}

fn lstm(node: &Reader<'_>, name: &str, b: &mut Builder) -> Result<Vec<Value>, String> {
    let mut input = operand(node, 0, b)?;
    let batch_first = node.flag("layout");
    if batch_first {
        input = b.add(&format!("{name}.time_first"), Op::Transpose(vec![1, 0, 2]), &[&input])?;
    }
    let weights = node.required_shape(1)?;
    let (&[time, batch, features], &[directions @ 1..=2, gates, depth]) = (&input.shape[..], weights) else {
        return Err(format!(
            "the input is {} and the weights {}; [time, batch, features] and [1 or 2, 4·hidden, features] are expected",
            show(&input.shape),
            show(weights)
        ));
    };
    if depth != features || gates % 4 != 0 {
        return Err(format!(
            "the weights {} do not fit an input of {}",
            show(weights),
            show(&input.shape)
        ));
    }
    let hidden = gates / 4;
    let op = Op::Lstm(Lstm {
        hidden,
        layers: 1,
        bidirectional: directions == 2,
    });
    let states = b.add(name, op, &[&input])?;
    // Y is [time, directions, batch, hidden], or [batch, time, directions, hidden].
    let split = b.add(
        &format!("{name}.directions"),
        Op::Reshape(vec![size(time)?, size(batch)?, size(directions)?, size(hidden)?]),
        &[&states],
    )?;
    let order = if batch_first {
        vec![1, 0, 2, 3]
    } else {
        vec![0, 2, 1, 3]
    };
    let y = b.add(&format!("{name}.Y"), Op::Transpose(order), &[&split])?;
    let wants = |index: usize| node.outputs().get(index).is_some_and(|output| !output.is_empty());
    let mut outputs = vec![Value::from(y)];
    for (index, suffix) in [(1, "Y_h"), (2, "Y_c")] {
        if !wants(index) {
            break;
        }
        // The state after the last step. (Backwards it is the one of the first step; the shape is the same.)
        let last = Op::Slice(Slice {
            axis: 0,
            start: time - 1,
            length: 1,
            step: 1,
        });
        let last = b.add(&format!("{name}.{suffix}.last"), last, &[&states])?;
        let apart = Op::Reshape(vec![size(batch)?, size(directions)?, size(hidden)?]);
        let mut state = b.add(&format!("{name}.{suffix}"), apart, &[&last])?;
        if !batch_first {
            let order = Op::Transpose(vec![1, 0, 2]);
            state = b.add(&format!("{name}.{suffix}.transposed"), order, &[&state])?;
        }
        outputs.push(state.into());
    }
    Ok(outputs)
}

/// Sizes for [`Op::Reshape`]: leading axes that stay are written as 0 and a −1 of the file is kept, so that the
/// network can be scaled.
fn reshape_sizes(from: &[u64], to: &[u64], wanted: Option<&[i64]>) -> Vec<i64> {
    let prefix = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    to.iter()
        .enumerate()
        .map(|(i, &size)| match wanted.and_then(|wanted| wanted.get(i)) {
            _ if i < prefix => 0,
            Some(-1) => -1,
            _ => size as i64,
        })
        .collect()
}

fn slice(node: &Reader<'_>, name: &str, b: &mut Builder) -> Result<Option<Vec<Value>>, String> {
    let mut input = operand(node, 0, b)?;
    let Some(ranges) = node.slices(&input.shape)? else {
        return Ok(None);
    };
    let whole = |range: &&super::node::Range| range.length == input.shape[range.axis];
    let ranges: Vec<_> = ranges.iter().filter(|range| !whole(range)).copied().collect();
    for (i, range) in ranges.iter().enumerate() {
        let (start, step) = range.ascending();
        let op = Op::Slice(Slice {
            axis: range.axis,
            start,
            length: range.length,
            step,
        });
        let last = i + 1 == ranges.len();
        let name = if last {
            name.to_owned()
        } else {
            format!("{name}.axis{}", range.axis)
        };
        input = b.add(&name, op, &[&input])?;
    }
    Ok(Some(vec![input.into()]))
}

/// One slice per output.
fn split(node: &Reader<'_>, name: &str, b: &mut Builder) -> Result<Option<Vec<Value>>, String> {
    let input = operand(node, 0, b)?;
    let axis = node.axis("axis", 0, input.shape.len())?;
    let size = input.shape[axis];
    let count = node.outputs().len() as u64;
    let lengths: Vec<u64> = match node.ints_or_input("split", 1) {
        Some(Err(_)) => return Ok(None),
        Some(Ok(lengths)) => lengths
            .iter()
            .map(|&length| u64::try_from(length).map_err(|_| format!("a part of {length} is negative")))
            .collect::<Result<_, _>>()?,
        None => {
            let part = size.div_ceil(count.max(1));
            (0..count).map(|i| part.min(size.saturating_sub(i * part))).collect()
        }
    };
    if lengths.len() as u64 != count || lengths.iter().try_fold(0_u64, |sum, &n| sum.checked_add(n)) != Some(size) {
        return Err(format!(
            "the parts {lengths:?} for {count} outputs are not axis {axis} of {}",
            show(&input.shape)
        ));
    }
    let mut start = 0;
    let mut outputs = Vec::new();
    for (i, length) in lengths.into_iter().enumerate() {
        let op = Op::Slice(Slice {
            axis,
            start,
            length,
            step: 1,
        });
        outputs.push(b.add(&format!("{name}.part{i}"), op, &[&input])?.into());
        start += length;
    }
    Ok(Some(outputs))
}

/// Padding of rows and columns; of other axes it has no window and becomes opaque.
fn pad(node: &Reader<'_>) -> Result<Option<Op>, String> {
    let shape = node.required_shape(0)?;
    let Some(Ok(pads)) = node.ints_or_input("pads", 1) else {
        return Ok(None);
    };
    let axes: Vec<usize> = match node.value(3) {
        None => (0..shape.len()).collect(),
        Some(value) => match value.constant().and_then(Constant::as_ints) {
            None => return Ok(None),
            Some(axes) => axes.iter().map(|&i| axis(i, shape.len())).collect::<Result<_, _>>()?,
        },
    };
    if pads.len() != 2 * axes.len() {
        return Err(format!(
            "pads has {} entries; {} are expected",
            pads.len(),
            2 * axes.len()
        ));
    }
    let mut sides = vec![(0, 0); shape.len()];
    for (i, &axis) in axes.iter().enumerate() {
        sides[axis] = (pads[i], pads[i + axes.len()]);
    }
    let outside = sides.iter().take(2).any(|&side| side != (0, 0));
    let negative = sides.iter().any(|&(before, after)| before < 0 || after < 0);
    if shape.len() == 4 && !outside && !negative {
        let sides: Vec<_> = sides[2..]
            .iter()
            .map(|&(before, after)| (before.unsigned_abs(), after.unsigned_abs()))
            .collect();
        return Ok(Some(Op::Pad(PadRows { pad: border(&sides) })));
    }
    let padded = shape.iter().zip(&sides).map(|(&size, &(before, after))| {
        let size = i128::from(size) + i128::from(before) + i128::from(after);
        u64::try_from(size).map_err(|_| format!("padding makes a size of {size}"))
    });
    Ok(Some(Op::Opaque(Opaque {
        kind: "Pad".to_owned(),
        shape: padded.collect::<Result<_, _>>()?,
    })))
}

/// Enlargement by whole factors of rows and columns; anything else becomes opaque.
fn resize(node: &Reader<'_>) -> Result<Option<Op>, String> {
    let shape = node.required_shape(0)?;
    // Upsample has its scales in input 1, as had the first Resize; later ones have a region of interest there.
    let scales_at = if node.input_count() > 2 { 2 } else { 1 };
    let scales = match node.attribute("scales") {
        Some(attribute) => Some(attribute.floats.iter().map(|&f| f64::from(f)).collect()),
        None => node
            .value(scales_at)
            .and_then(Value::constant)
            .and_then(Constant::to_floats),
    };
    let sizes = node.value(3).and_then(Value::constant).and_then(Constant::as_ints);
    let target: Vec<u64> = match (sizes, scales) {
        (Some(sizes), _) if sizes.len() == shape.len() => sizes
            .iter()
            .map(|&size| u64::try_from(size).map_err(|_| format!("size {size} is negative")))
            .collect::<Result<_, _>>()?,
        (_, Some(scales)) if scales.len() == shape.len() => shape
            .iter()
            .zip(scales)
            .map(|(&size, scale)| (size as f64 * scale).floor() as u64)
            .collect(),
        _ => return Ok(None),
    };
    let whole = |i: usize| target[i] > 0 && target[i].is_multiple_of(shape[i]);
    if shape.len() == 4 && target[..2] == shape[..2] && whole(2) && whole(3) {
        let scale = Pair(target[2] / shape[2], target[3] / shape[3]);
        return Ok(Some(Op::Upsample(Upsample { scale })));
    }
    Ok(Some(Op::Opaque(Opaque {
        kind: node.op().to_owned(),
        shape: target,
    })))
}

fn reduce(node: &Reader<'_>) -> Result<Option<Op>, String> {
    let rank = node.required_shape(0)?.len();
    let keep = node.int("keepdims", 1) != 0;
    let single = [node.int("axis", 0)];
    let axes = match node.op() {
        "ArgMax" | "ArgMin" => Some(&single[..]),
        _ => match node.ints_or_input("axes", 1) {
            Some(Err(_)) => return Ok(None),
            other => other.and_then(Result::ok),
        },
    };
    let axes = match axes.filter(|axes| !axes.is_empty()) {
        None if node.flag("noop_with_empty_axes") => Vec::new(),
        None => (0..rank).collect(),
        Some(axes) => axes.iter().map(|&i| axis(i, rank)).collect::<Result<_, _>>()?,
    };
    Ok(Some(Op::Reduce(Reduce { axes, keep })))
}

/// The output shape of operators that only move data; `None` if it depends on data.
fn moved(node: &Reader<'_>) -> Result<Option<Vec<u64>>, String> {
    let shape = node.required_shape(0)?;
    let numbers = || node.value(1).and_then(Value::constant).and_then(Constant::as_ints);
    let overflow = || "a size does not fit 64 bits".to_owned();
    match node.op() {
        "Gather" => {
            let at = node.axis("axis", 0, shape.len())?;
            let indices = node.required_shape(1)?;
            Ok(Some([&shape[..at], indices, &shape[at + 1..]].concat()))
        }
        "Expand" => {
            let Some(target) = numbers() else { return Ok(None) };
            let target: Vec<u64> = target.iter().map(|&size| size.unsigned_abs()).collect();
            crate::network::broadcast(shape, &target).map(Some)
        }
        "Tile" => {
            let Some(repeats) = numbers().filter(|repeats| repeats.len() == shape.len()) else {
                return Ok(None);
            };
            let sizes = shape.iter().zip(repeats);
            let sizes = sizes.map(|(&size, &times)| size.checked_mul(times.unsigned_abs()).ok_or_else(overflow));
            sizes.collect::<Result<_, _>>().map(Some)
        }
        _ => {
            let block = node.size("blocksize", 1)?;
            let &[n, c, h, w] = shape else {
                return Err(format!("the input is {}; [N, C, H, W] is expected", show(shape)));
            };
            let square = block
                .checked_mul(block)
                .filter(|&square| square > 0)
                .ok_or_else(overflow)?;
            let sizes = match node.op() {
                "DepthToSpace" if c % square == 0 => [Some(c / square), h.checked_mul(block), w.checked_mul(block)],
                "SpaceToDepth" if h % block == 0 && w % block == 0 => {
                    [c.checked_mul(square), Some(h / block), Some(w / block)]
                }
                _ => return Err(format!("blocks of {block} do not fit {}", show(shape))),
            };
            let [Some(c), Some(h), Some(w)] = sizes else {
                return Err(overflow());
            };
            elements(&[n, c, h, w])?;
            Ok(Some(vec![n, c, h, w]))
        }
    }
}

fn size(size: u64) -> Result<i64, String> {
    i64::try_from(size).map_err(|_| format!("size {size} does not fit 63 bits"))
}
