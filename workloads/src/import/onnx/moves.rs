//! Operators that only move, cut or fold data.

use super::build::Builder;
use super::convert::operand;
use super::node::{Range, Reader, axis, border};
use super::values::{Constant, Value};
use crate::Pair;
use crate::network::op::{Op, Opaque, PadRows, Reduce, Slice, Upsample};
use crate::network::{elements, show};

/// Sizes for [`Op::Reshape`]: leading axes that stay are written as 0 and a −1 of the file is kept, so that the
/// network can be scaled.
pub(super) fn reshape_sizes(from: &[u64], to: &[u64], wanted: Option<&[i64]>) -> Vec<i64> {
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

pub(super) fn slice(node: &Reader<'_>, name: &str, b: &mut Builder) -> Result<Option<Vec<Value>>, String> {
    let mut input = operand(node, 0, b)?;
    let Some(ranges) = node.slices(&input.shape)? else {
        return Ok(None);
    };
    let whole = |range: &&Range| range.length == input.shape[range.axis];
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
pub(super) fn split(node: &Reader<'_>, name: &str, b: &mut Builder) -> Result<Option<Vec<Value>>, String> {
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
pub(super) fn pad(node: &Reader<'_>) -> Result<Option<Op>, String> {
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
pub(super) fn resize(node: &Reader<'_>) -> Result<Option<Op>, String> {
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

pub(super) fn reduce(node: &Reader<'_>) -> Result<Option<Op>, String> {
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
pub(super) fn moved(node: &Reader<'_>) -> Result<Option<Vec<u64>>, String> {
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
