//! Shape inference: the output shape of an operator from the shapes of its inputs. The only implementation; networks
//! in RON and imported ones both pass through it.

use super::op::{Conv, ConvTranspose, Lstm, MatMul, Op, Pool};
use crate::{Padding, Pair};

/// Sizes of the axes, outermost first.
pub type Shape = Vec<u64>;

/// Attributes that are wrong whatever the inputs are: every one, in words.
pub(crate) fn attribute_faults(op: &Op) -> Vec<String> {
    let mut faults = Vec::new();
    let mut positive = |what: &str, values: &[u64]| {
        if values.contains(&0) {
            faults.push(format!("{what} is 0; at least 1 is expected"));
        }
    };
    match op {
        Op::Conv(c) => {
            positive("out", &[c.out]);
            positive("kernel", &[c.kernel.0, c.kernel.1]);
            positive("stride", &[c.stride.0, c.stride.1]);
            positive("dilation", &[c.dilation.0, c.dilation.1]);
            positive("groups", &[c.groups]);
        }
        Op::ConvTranspose(c) => {
            positive("out", &[c.out]);
            positive("kernel", &[c.kernel.0, c.kernel.1]);
            positive("stride", &[c.stride.0, c.stride.1]);
            positive("dilation", &[c.dilation.0, c.dilation.1]);
            positive("groups", &[c.groups]);
        }
        Op::MaxPool(p) | Op::AveragePool(p) => {
            positive("kernel", &[p.kernel.0, p.kernel.1]);
            positive("stride", &[p.stride.0, p.stride.1]);
            positive("dilation", &[p.dilation.0, p.dilation.1]);
        }
        Op::Linear(linear) => positive("out", &[linear.out]),
        Op::Lstm(lstm) => {
            positive("hidden", &[lstm.hidden]);
            positive("layers", &[lstm.layers]);
        }
        Op::LocalResponseNorm(norm) => positive("size", &[norm.size]),
        Op::Slice(slice) => {
            positive("length", &[slice.length]);
            positive("step", &[slice.step]);
        }
        Op::CenterCrop(crop) => positive("size", &[crop.size.0, crop.size.1]),
        Op::Upsample(up) => positive("scale", &[up.scale.0, up.scale.1]),
        Op::ChannelShuffle(shuffle) => positive("groups", &[shuffle.groups]),
        Op::Constant(shape) => positive("a size of the shape", shape),
        Op::Opaque(opaque) => positive("a size of the shape", &opaque.shape),
        _ => {}
    }
    faults
}

/// The output shape of `op`, or why there is none. The attributes have no zeros and the number of inputs is right.
pub(crate) fn infer(op: &Op, inputs: &[&[u64]]) -> Result<Shape, String> {
    let shape = match op {
        Op::Conv(conv) => convolution(conv, inputs[0]),
        Op::ConvTranspose(conv) => transposed(conv, inputs[0]),
        Op::Linear(linear) => {
            let (_, rows) = inputs[0]
                .split_last()
                .ok_or("the input is a scalar; it has no features")?;
            Ok([rows, &[linear.out]].concat())
        }
        Op::MatMul(matmul) => product(*matmul, inputs[0], inputs[1]),
        Op::Lstm(lstm) => recurrent(*lstm, inputs[0]),
        Op::MaxPool(pool) | Op::AveragePool(pool) => pooled(pool, inputs[0]),
        Op::GlobalMaxPool | Op::GlobalAveragePool => {
            feature_map(inputs[0])?;
            let mut shape = inputs[0].to_vec();
            shape[2..].fill(1);
            Ok(shape)
        }
        Op::Relu
        | Op::Relu6
        | Op::Sigmoid
        | Op::Tanh
        | Op::Gelu
        | Op::Softmax
        | Op::BatchNorm
        | Op::LayerNorm
        | Op::LocalResponseNorm(_)
        | Op::Dropout
        | Op::Unary(_) => Ok(inputs[0].to_vec()),
        Op::Add | Op::Mul | Op::Elementwise(_) => inputs[1..]
            .iter()
            .try_fold(inputs[0].to_vec(), |shape, next| broadcast(&shape, next)),
        Op::Concat(at) => concatenated(at.axis, inputs),
        Op::Flatten(at) => {
            let shape = inputs[0];
            if at.axis > shape.len() {
                return Err(no_axis(at.axis, shape));
            }
            Ok([&shape[..at.axis], &[elements(&shape[at.axis..])?]].concat())
        }
        Op::Reshape(sizes) => reshaped(sizes, inputs[0]),
        Op::Transpose(order) => {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if !sorted.iter().copied().eq(0..inputs[0].len()) {
                return Err(format!(
                    "{order:?} is no permutation of the {} axes of {}",
                    inputs[0].len(),
                    show(inputs[0])
                ));
            }
            Ok(order.iter().map(|&axis| inputs[0][axis]).collect())
        }
        Op::Slice(slice) => {
            let size = *inputs[0]
                .get(slice.axis)
                .ok_or_else(|| no_axis(slice.axis, inputs[0]))?;
            let last = (slice.length - 1)
                .checked_mul(slice.step)
                .and_then(|span| span.checked_add(slice.start));
            if last.is_none_or(|last| last >= size) {
                return Err(format!(
                    "{} indices from {} in steps of {} reach beyond axis {} of {}",
                    slice.length,
                    slice.start,
                    slice.step,
                    slice.axis,
                    show(inputs[0])
                ));
            }
            let mut shape = inputs[0].to_vec();
            shape[slice.axis] = slice.length;
            Ok(shape)
        }
        Op::CenterCrop(crop) => {
            let map = feature_map(inputs[0])?;
            if crop.size.0 > map.rows || crop.size.1 > map.columns {
                return Err(format!(
                    "the crop of {}×{} is larger than {}",
                    crop.size.0,
                    crop.size.1,
                    show(inputs[0])
                ));
            }
            map.resized(map.channels, crop.size)
        }
        Op::Pad(pad) => {
            let map = feature_map(inputs[0])?;
            let rows = checked_sum(&[map.rows, pad.pad.top, pad.pad.bottom])?;
            let columns = checked_sum(&[map.columns, pad.pad.left, pad.pad.right])?;
            map.resized(map.channels, Pair(rows, columns))
        }
        Op::Upsample(up) => {
            let map = feature_map(inputs[0])?;
            let rows = map.rows.checked_mul(up.scale.0).ok_or_else(overflow)?;
            let columns = map.columns.checked_mul(up.scale.1).ok_or_else(overflow)?;
            map.resized(map.channels, Pair(rows, columns))
        }
        Op::ChannelShuffle(shuffle) => {
            let map = feature_map(inputs[0])?;
            divides(shuffle.groups, map.channels, "input channels")?;
            Ok(inputs[0].to_vec())
        }
        Op::Reduce(reduce) => {
            if let Some(&axis) = reduce.axes.iter().find(|&&axis| axis >= inputs[0].len()) {
                return Err(no_axis(axis, inputs[0]));
            }
            let axes = inputs[0].iter().enumerate();
            Ok(match reduce.keep {
                true => axes
                    .map(|(i, &n)| if reduce.axes.contains(&i) { 1 } else { n })
                    .collect(),
                false => axes
                    .filter(|(i, _)| !reduce.axes.contains(i))
                    .map(|(_, &n)| n)
                    .collect(),
            })
        }
        Op::Constant(shape) => Ok(shape.clone()),
        Op::Opaque(opaque) => Ok(opaque.shape.clone()),
    }?;
    elements(&shape)?;
    Ok(shape)
}

/// A feature map `[N, C, H, W]`, or `[N, C, W]` with one row.
#[derive(Debug, Clone, Copy)]
pub(super) struct FeatureMap {
    pub(super) batch: u64,
    pub(super) channels: u64,
    pub(super) rows: u64,
    pub(super) columns: u64,
    flat: bool,
}

impl FeatureMap {
    /// The shape with other channels, rows and columns and as many axes.
    fn resized(&self, channels: u64, Pair(rows, columns): Pair) -> Result<Shape, String> {
        match (self.flat, rows) {
            (false, _) => Ok(vec![self.batch, channels, rows, columns]),
            (true, 1) => Ok(vec![self.batch, channels, columns]),
            (true, _) => Err("an input with three axes has one row, and so must the output".to_owned()),
        }
    }
}

/// Reads a shape as a feature map.
pub(super) fn feature_map(shape: &[u64]) -> Result<FeatureMap, String> {
    let (batch, channels, rows, columns) = match *shape {
        [batch, channels, rows, columns] => (batch, channels, rows, columns),
        [batch, channels, columns] => (batch, channels, 1, columns),
        _ => {
            return Err(format!(
                "the input is {}; a feature map [N, C, H, W] or [N, C, W] is expected",
                show(shape)
            ));
        }
    };
    Ok(FeatureMap {
        batch,
        channels,
        rows,
        columns,
        flat: shape.len() == 3,
    })
}

fn convolution(conv: &Conv, input: &[u64]) -> Result<Shape, String> {
    let map = feature_map(input)?;
    divides(conv.groups, map.channels, "input channels")?;
    divides(conv.groups, conv.out, "output channels")?;
    let rows = Sliding {
        size: map.rows,
        before: conv.pad.top,
        after: conv.pad.bottom,
        kernel: conv.kernel.0,
        stride: conv.stride.0,
        dilation: conv.dilation.0,
    };
    let columns = Sliding {
        size: map.columns,
        before: conv.pad.left,
        after: conv.pad.right,
        kernel: conv.kernel.1,
        stride: conv.stride.1,
        dilation: conv.dilation.1,
    };
    map.resized(
        conv.out,
        Pair(rows.windows("rows", false)?, columns.windows("columns", false)?),
    )
}

fn pooled(pool: &Pool, input: &[u64]) -> Result<Shape, String> {
    let map = feature_map(input)?;
    let rows = Sliding {
        size: map.rows,
        before: pool.pad.top,
        after: pool.pad.bottom,
        kernel: pool.kernel.0,
        stride: pool.stride.0,
        dilation: pool.dilation.0,
    };
    let columns = Sliding {
        size: map.columns,
        before: pool.pad.left,
        after: pool.pad.right,
        kernel: pool.kernel.1,
        stride: pool.stride.1,
        dilation: pool.dilation.1,
    };
    map.resized(
        map.channels,
        Pair(rows.windows("rows", pool.ceil)?, columns.windows("columns", pool.ceil)?),
    )
}

/// Sliding windows along one axis.
struct Sliding {
    size: u64,
    before: u64,
    after: u64,
    kernel: u64,
    stride: u64,
    dilation: u64,
}

impl Sliding {
    /// How many windows fit: ⌊(size + padding − extent) ÷ stride⌋ + 1, or rounded up.
    fn windows(&self, what: &str, ceil: bool) -> Result<u64, String> {
        let padded = checked_sum(&[self.size, self.before, self.after])?;
        let extent = extent(self.kernel, self.dilation)?;
        if ceil && padded < extent && extent - padded < self.stride {
            // Rounded up, the one window reaches over the end.
            return Ok(1);
        }
        let room = padded
            .checked_sub(extent)
            .ok_or_else(|| format!("the window spans {extent} {what}, but the input has {padded} with its padding"))?;
        if !ceil {
            return Ok(room / self.stride + 1);
        }
        let rounded = room.div_ceil(self.stride);
        // A last window that would start in the padding behind the input is left out.
        let starts_inside = rounded
            .checked_mul(self.stride)
            .is_some_and(|start| start < self.size + self.before);
        Ok(if starts_inside { rounded + 1 } else { rounded })
    }
}

fn transposed(conv: &ConvTranspose, input: &[u64]) -> Result<Shape, String> {
    let map = feature_map(input)?;
    divides(conv.groups, map.channels, "input channels")?;
    divides(conv.groups, conv.out, "output channels")?;
    let size = |size: u64, kernel, stride: u64, dilation, before: u64, after: u64, add: u64| {
        let whole = (size - 1)
            .checked_mul(stride)
            .and_then(|span| span.checked_add(extent(kernel, dilation).ok()?))
            .and_then(|span| span.checked_add(add))
            .ok_or_else(overflow)?;
        before
            .checked_add(after)
            .and_then(|cut| whole.checked_sub(cut))
            .filter(|&size| size > 0)
            .ok_or_else(|| format!("padding {before} + {after} leaves nothing of an output of {whole}"))
    };
    let Padding {
        top,
        bottom,
        left,
        right,
    } = conv.pad;
    let rows = size(
        map.rows,
        conv.kernel.0,
        conv.stride.0,
        conv.dilation.0,
        top,
        bottom,
        conv.output_pad.0,
    )?;
    let columns = size(
        map.columns,
        conv.kernel.1,
        conv.stride.1,
        conv.dilation.1,
        left,
        right,
        conv.output_pad.1,
    )?;
    map.resized(conv.out, Pair(rows, columns))
}

fn product(matmul: MatMul, left: &[u64], right: &[u64]) -> Result<Shape, String> {
    let operands = MatMulShape::new(matmul, left, right)?;
    Ok([&operands.batch[..], &[operands.rows, operands.columns]].concat())
}

/// The sizes of a matrix product.
pub(super) struct MatMulShape {
    /// Broadcast leading axes.
    pub(super) batch: Shape,
    /// Rows of the left operand.
    pub(super) rows: u64,
    /// Columns of the left operand, summed over.
    pub(super) inner: u64,
    /// Columns of the right operand.
    pub(super) columns: u64,
}

impl MatMulShape {
    pub(super) fn new(matmul: MatMul, left: &[u64], right: &[u64]) -> Result<Self, String> {
        let ([left_batch @ .., rows, inner], [right_batch @ .., r0, r1]) = (left, right) else {
            return Err(format!(
                "the operands are {} and {}; at least two axes each are expected",
                show(left),
                show(right)
            ));
        };
        let (depth, columns) = if matmul.transpose_b { (r1, r0) } else { (r0, r1) };
        if inner != depth {
            return Err(format!(
                "{} × {}{}: {inner} columns on the left, {depth} rows on the right",
                show(left),
                show(right),
                if matmul.transpose_b { " transposed" } else { "" }
            ));
        }
        Ok(MatMulShape {
            batch: broadcast(left_batch, right_batch)?,
            rows: *rows,
            inner: *inner,
            columns: *columns,
        })
    }
}

fn recurrent(lstm: Lstm, input: &[u64]) -> Result<Shape, String> {
    let &[time, batch, _] = input else {
        return Err(format!(
            "the input is {}; [time, batch, features] is expected",
            show(input)
        ));
    };
    let directions = if lstm.bidirectional { 2 } else { 1 };
    Ok(vec![
        time,
        batch,
        lstm.hidden.checked_mul(directions).ok_or_else(overflow)?,
    ])
}

fn concatenated(axis: usize, inputs: &[&[u64]]) -> Result<Shape, String> {
    let mut shape = inputs[0].to_vec();
    if axis >= shape.len() {
        return Err(no_axis(axis, &shape));
    }
    for next in &inputs[1..] {
        let agree = next.len() == shape.len() && (0..shape.len()).all(|i| i == axis || next[i] == shape[i]);
        if !agree {
            return Err(format!(
                "{} and {} cannot be joined along axis {axis}: the other axes differ",
                show(inputs[0]),
                show(next)
            ));
        }
        shape[axis] = shape[axis].checked_add(next[axis]).ok_or_else(overflow)?;
    }
    Ok(shape)
}

/// The shape that a reshape makes: 0 keeps the size of that axis, one −1 takes what is left.
pub(crate) fn reshaped(sizes: &[i64], input: &[u64]) -> Result<Shape, String> {
    let total = elements(input)?;
    let mut shape = Vec::with_capacity(sizes.len());
    let mut rest = None;
    for (axis, &size) in sizes.iter().enumerate() {
        shape.push(match size {
            0 => *input.get(axis).ok_or_else(|| no_axis(axis, input))?,
            -1 if rest.replace(axis).is_none() => 1,
            -1 => return Err("−1 is given twice".to_owned()),
            _ => u64::try_from(size).map_err(|_| format!("size {size} is negative"))?,
        });
    }
    let known = elements(&shape)?;
    if let Some(axis) = rest.filter(|_| known > 0 && total.is_multiple_of(known)) {
        shape[axis] = total / known;
    } else if known != total {
        return Err(format!(
            "{} has {total} elements, which {sizes:?} cannot hold",
            show(input)
        ));
    }
    Ok(shape)
}

/// The shape that both broadcast to: aligned at the last axis, sizes equal or 1.
pub(crate) fn broadcast(a: &[u64], b: &[u64]) -> Result<Shape, String> {
    let rank = a.len().max(b.len());
    let size = |shape: &[u64], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis]);
    (0..rank)
        .map(|axis| match (size(a, axis), size(b, axis)) {
            (x, y) if x == y || y == 1 => Ok(x),
            (1, y) => Ok(y),
            _ => Err(format!("{} and {} do not broadcast", show(a), show(b))),
        })
        .collect()
}

/// (kernel − 1)·dilation + 1.
fn extent(kernel: u64, dilation: u64) -> Result<u64, String> {
    (kernel - 1)
        .checked_mul(dilation)
        .and_then(|span| span.checked_add(1))
        .ok_or_else(overflow)
}

fn divides(groups: u64, channels: u64, what: &str) -> Result<(), String> {
    if channels.is_multiple_of(groups) {
        Ok(())
    } else {
        Err(format!("{groups} groups do not divide {channels} {what}"))
    }
}

/// The number of elements of a shape, if 64 bits hold it.
pub(crate) fn elements(shape: &[u64]) -> Result<u64, String> {
    shape
        .iter()
        .try_fold(1_u64, |product, &size| product.checked_mul(size))
        .ok_or_else(|| format!("the number of elements of {} does not fit 64 bits", show(shape)))
}

fn checked_sum(terms: &[u64]) -> Result<u64, String> {
    terms
        .iter()
        .try_fold(0_u64, |sum, &term| sum.checked_add(term))
        .ok_or_else(overflow)
}

fn overflow() -> String {
    "a size does not fit 64 bits".to_owned()
}

fn no_axis(axis: usize, shape: &[u64]) -> String {
    format!("{} has no axis {axis}", show(shape))
}

/// A shape as people write it: `1×3×224×224`.
pub(crate) fn show(shape: &[u64]) -> String {
    if shape.is_empty() {
        return "a scalar".to_owned();
    }
    shape.iter().map(u64::to_string).collect::<Vec<_>>().join("×")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{broadcast, infer};
    use crate::network::op::{ConvTranspose, Op, Pool};
    use crate::{Padding, Pair};

    /// Windows along an axis, one by one: those that fit, or with `ceil` those up to the first that reaches the end. One
    /// that starts in the padding behind the input is left out, as the definition of ONNX has it.
    fn windows(size: u64, before: u64, after: u64, extent: u64, stride: u64, ceil: bool) -> u64 {
        let padded = size + before + after;
        let fits = |w: &u64| w * stride + extent <= padded;
        if !ceil {
            return (0..).take_while(fits).count() as u64;
        }
        if extent >= padded + stride {
            return 0;
        }
        let last = (0..).find(|w| w * stride + extent >= padded).expect("ends");
        if last * stride < size + before { last + 1 } else { last }
    }

    proptest! {
        #[test]
        fn pools_have_the_windows_that_fit(
            size in 1_u64..16, kernel in 1_u64..6, stride in 1_u64..5, dilation in 1_u64..3,
            before in 0_u64..4, after in 0_u64..4, ceil in any::<bool>(),
        ) {
            let pool = Pool {
                kernel: Pair(kernel, 1),
                stride: Pair(stride, 1),
                dilation: Pair(dilation, 1),
                pad: Padding { top: before, bottom: after, left: 0, right: 0 },
                ceil,
            };
            let expected = windows(size, before, after, (kernel - 1) * dilation + 1, stride, ceil);
            match infer(&Op::MaxPool(pool), &[&[1, 1, size, 1]]) {
                Ok(shape) => prop_assert_eq!(shape[2], expected),
                Err(message) => prop_assert_eq!(expected, 0, "{}", message),
            }
        }

        #[test]
        fn a_transposed_convolution_ends_where_its_last_product_lands(
            size in 1_u64..9, kernel in 1_u64..5, stride in 1_u64..5, dilation in 1_u64..4,
        ) {
            let conv = ConvTranspose {
                out: 1,
                kernel: Pair(kernel, 1),
                stride: Pair(stride, 1),
                dilation: Pair(dilation, 1),
                pad: Padding::default(),
                output_pad: Pair(0, 0),
                groups: 1,
            };
            let lands = (0..size).flat_map(|i| (0..kernel).map(move |k| i * stride + k * dilation));
            let shape = infer(&Op::ConvTranspose(conv), &[&[1, 1, size, 1]]).expect("fits");
            prop_assert_eq!(Some(shape[2]), lands.max().map(|last| last + 1));
        }

        #[test]
        fn broadcasting_is_symmetric_and_keeps_the_larger_size(
            a in proptest::collection::vec(1_u64..4, 0..4), b in proptest::collection::vec(1_u64..4, 0..4),
        ) {
            let both = broadcast(&a, &b);
            prop_assert_eq!(both.is_ok(), broadcast(&b, &a).is_ok());
            if let Ok(shape) = both {
                prop_assert_eq!(shape.len(), a.len().max(b.len()));
                for operand in [&a, &b] {
                    let tail = &shape[shape.len() - operand.len()..];
                    prop_assert!(operand.iter().zip(tail).all(|(&size, &full)| size == full || size == 1));
                }
            }
        }
    }
}
