//! Operators that multiply and accumulate, and the sliding windows that pooling shares with them.

use super::build::{Builder, Operand};
use super::convert::{operand, size};
use super::node::{Reader, border};
use super::values::Value;
use crate::network::op::{Conv, ConvTranspose, Linear, Lstm, MatMul, Op, Pool, Slice};
use crate::network::show;
use crate::{Padding, Pair};

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

pub(super) fn pool(node: &Reader<'_>) -> Result<Pool, String> {
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

pub(super) fn convolution(node: &Reader<'_>, name: &str, weights: usize, b: &mut Builder) -> Result<Operand, String> {
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

pub(super) fn transposed(node: &Reader<'_>, name: &str, b: &mut Builder) -> Result<Operand, String> {
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

pub(super) fn gemm(node: &Reader<'_>, name: &str, b: &mut Builder) -> Result<Operand, String> {
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
pub(super) fn matmul(node: &Reader<'_>, name: &str, second: usize, b: &mut Builder) -> Result<Operand, String> {
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

pub(super) fn lstm(node: &Reader<'_>, name: &str, b: &mut Builder) -> Result<Vec<Value>, String> {
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
