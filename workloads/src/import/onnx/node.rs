//! A node of the graph together with what its inputs stand for.

use std::collections::BTreeMap;

use super::proto;
use super::values::{Constant, Value};
use crate::Padding;
use crate::network::{Shape, elements, show};

/// Reads attributes and inputs of a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    node: &'a proto::Node,
    scope: &'a BTreeMap<String, Value>,
}

/// Indices `start, start + step, …` of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) axis: usize,
    pub(super) start: i64,
    pub(super) step: i64,
    pub(super) length: u64,
}

impl Range {
    pub(super) fn indices(self) -> impl Iterator<Item = usize> {
        (0..self.length as i64).filter_map(move |i| usize::try_from(self.start + i * self.step).ok())
    }

    /// The smallest index and the distance of two, whatever the direction.
    pub(super) fn ascending(self) -> (u64, u64) {
        let last = self.start + (self.length as i64 - 1) * self.step;
        (self.start.min(last).unsigned_abs(), self.step.unsigned_abs())
    }
}

impl<'a> Reader<'a> {
    pub(super) const fn new(node: &'a proto::Node, scope: &'a BTreeMap<String, Value>) -> Self {
        Reader { node, scope }
    }

    pub(super) fn op(&self) -> &'a str {
        &self.node.op_type
    }

    pub(super) fn outputs(&self) -> &'a [String] {
        &self.node.output
    }

    pub(super) fn input_count(&self) -> usize {
        self.node.input.len()
    }

    /// The name of an input; `None` if it is optional and left out.
    pub(super) fn input_name(&self, index: usize) -> Option<&'a str> {
        self.node
            .input
            .get(index)
            .map(String::as_str)
            .filter(|name| !name.is_empty())
    }

    /// What an input stands for.
    pub(super) fn value(&self, index: usize) -> Option<&'a Value> {
        self.scope.get(self.input_name(index)?)
    }

    /// All inputs that are given.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let given = |index| Some((self.input_name(index)?, self.value(index)?));
        (0..self.node.input.len()).filter_map(given)
    }

    pub(super) fn shape(&self, index: usize) -> Option<&'a [u64]> {
        self.value(index)?.shape()
    }

    /// The shape of an input without which the operator makes no sense.
    pub(super) fn required_shape(&self, index: usize) -> Result<&'a [u64], String> {
        self.shape(index).ok_or_else(|| format!("input {index} is missing"))
    }

    /// The inputs, if there are some and all are constants.
    pub(super) fn constants(&self) -> Option<Vec<&'a Constant>> {
        let constants: Option<Vec<_>> = self.values().map(|(_, value)| value.constant()).collect();
        constants.filter(|constants| !constants.is_empty())
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&'a proto::Attribute> {
        self.node.attribute.iter().find(|attribute| attribute.name == name)
    }

    pub(super) fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).map_or(default, |attribute| attribute.i)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.int(name, 0) != 0
    }

    pub(super) fn float(&self, name: &str) -> Option<f64> {
        self.attribute(name).map(|attribute| f64::from(attribute.f))
    }

    pub(super) fn ints(&self, name: &str) -> Option<&'a [i64]> {
        self.attribute(name).map(|attribute| attribute.ints.as_slice())
    }

    pub(super) fn string(&self, name: &str) -> Option<&'a str> {
        self.attribute(name)
            .and_then(|attribute| std::str::from_utf8(&attribute.s).ok())
    }

    pub(super) fn tensor(&self, name: &str) -> Option<&'a proto::Tensor> {
        self.attribute(name)?.t.as_ref()
    }

    /// A size that may not be negative.
    pub(super) fn size(&self, name: &str, default: u64) -> Result<u64, String> {
        self.attribute(name)
            .map_or(Ok(default), |attribute| positive(name, attribute.i))
    }

    /// Sizes that may not be negative.
    pub(super) fn sizes(&self, name: &str) -> Result<Option<Vec<u64>>, String> {
        self.ints(name)
            .map(|ints| ints.iter().map(|&value| positive(name, value)).collect())
            .transpose()
    }

    /// An axis of a shape with `rank` axes; negative ones count from the end.
    pub(super) fn axis(&self, name: &str, default: i64, rank: usize) -> Result<usize, String> {
        axis(self.int(name, default), rank)
    }

    /// Integers that moved from an attribute to an input in a later version of the operator: `Ok(None)` if neither is
    /// there, an error in words if the input is no known constant.
    pub(super) fn ints_or_input(&self, name: &str, index: usize) -> Option<Result<&'a [i64], Undetermined>> {
        if let Some(ints) = self.ints(name) {
            return Some(Ok(ints));
        }
        let value = self.value(index)?;
        Some(value.constant().and_then(Constant::as_ints).ok_or(Undetermined))
    }

    /// The ranges that a `Slice` takes of its input; `None` if they are not known.
    pub(super) fn slices(&self, shape: &[u64]) -> Result<Option<Vec<Range>>, String> {
        let (Some(Ok(starts)), Some(Ok(ends))) = (self.ints_or_input("starts", 1), self.ints_or_input("ends", 2))
        else {
            return Ok(None);
        };
        let all: Vec<i64> = (0..starts.len() as i64).collect();
        let ones = vec![1; starts.len()];
        let (axes, steps) = match (self.ints_or_input("axes", 3), self.ints_or_input("steps", 4)) {
            (Some(Err(_)), _) | (_, Some(Err(_))) => return Ok(None),
            (axes, steps) => (
                axes.and_then(Result::ok).unwrap_or(&all),
                steps.and_then(Result::ok).unwrap_or(&ones),
            ),
        };
        if ends.len() != starts.len() || axes.len() != starts.len() || steps.len() != starts.len() {
            return Err("starts, ends, axes and steps differ in length".to_owned());
        }
        (0..starts.len())
            .map(|i| range(axis(axes[i], shape.len())?, shape, starts[i], ends[i], steps[i]))
            .collect::<Result<Vec<_>, _>>()
            .map(Some)
    }

    /// The shape after an operator that only folds axes differently; `None` if it is not known.
    pub(super) fn reshaped(&self, shape: &[u64]) -> Result<Option<Shape>, String> {
        match self.op() {
            "Flatten" => {
                let at = match self.int("axis", 1) {
                    at if at == shape.len() as i64 => shape.len(),
                    at => axis(at, shape.len())?,
                };
                let sizes = vec![elements(&shape[..at])?, elements(&shape[at..])?];
                Ok(Some(sizes))
            }
            "Squeeze" => {
                let axes: Vec<usize> = match self.ints_or_input("axes", 1) {
                    None => (0..shape.len()).filter(|&i| shape[i] == 1).collect(),
                    Some(Err(Undetermined)) => return Ok(None),
                    Some(Ok(axes)) => axes.iter().map(|&i| axis(i, shape.len())).collect::<Result<_, _>>()?,
                };
                if let Some(&wide) = axes.iter().find(|&&i| shape[i] != 1) {
                    return Err(format!("axis {wide} of {} is not 1", show(shape)));
                }
                let kept = (0..shape.len()).filter(|i| !axes.contains(i));
                Ok(Some(kept.map(|i| shape[i]).collect()))
            }
            "Unsqueeze" => {
                let Some(Ok(axes)) = self.ints_or_input("axes", 1) else {
                    return Ok(None);
                };
                let rank = shape.len() + axes.len();
                let axes: Vec<usize> = axes.iter().map(|&i| axis(i, rank)).collect::<Result<_, _>>()?;
                let mut rest = shape.iter();
                let sizes = (0..rank).map(|i| match axes.contains(&i) {
                    true => Some(1),
                    false => rest.next().copied(),
                });
                sizes
                    .collect::<Option<Shape>>()
                    .ok_or_else(|| "an axis is given twice".to_owned())
                    .map(Some)
            }
            _ => {
                let Some(Ok(sizes)) = self.ints_or_input("shape", 1) else {
                    return Ok(None);
                };
                crate::network::reshaped(sizes, shape).map(Some)
            }
        }
    }

    /// A border for rows and columns, from `pads` or `auto_pad`. `extents` gives, per axis: input size, window extent
    /// and stride.
    pub(super) fn padding(&self, extents: &[(u64, u64, u64)]) -> Result<Padding, String> {
        let sides = match self.string("auto_pad").unwrap_or("NOTSET") {
            "SAME_UPPER" | "SAME_LOWER" => extents
                .iter()
                .map(|&(size, extent, stride)| {
                    let windows = size.div_ceil(stride.max(1));
                    let total = (windows - 1)
                        .saturating_mul(stride)
                        .saturating_add(extent)
                        .saturating_sub(size);
                    let (small, large) = (total / 2, total.div_ceil(2));
                    match self.string("auto_pad") {
                        Some("SAME_LOWER") => (large, small),
                        _ => (small, large),
                    }
                })
                .collect(),
            "NOTSET" => {
                let pads = self.sizes("pads")?.unwrap_or_else(|| vec![0; 2 * extents.len()]);
                if pads.len() != 2 * extents.len() {
                    return Err(format!(
                        "pads has {} entries; {} are expected",
                        pads.len(),
                        2 * extents.len()
                    ));
                }
                (0..extents.len()).map(|i| (pads[i], pads[i + extents.len()])).collect()
            }
            _ => vec![(0, 0); extents.len()],
        };
        Ok(border(&sides))
    }
}

/// An input that decides the shape is computed from data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Undetermined;

/// One or two (before, after) pairs as a border of columns, or of rows and columns.
pub(super) fn border(sides: &[(u64, u64)]) -> Padding {
    let (rows, columns) = match *sides {
        [columns] => ((0, 0), columns),
        [rows, columns, ..] => (rows, columns),
        [] => ((0, 0), (0, 0)),
    };
    Padding {
        top: rows.0,
        bottom: rows.1,
        left: columns.0,
        right: columns.1,
    }
}

fn positive(name: &str, value: i64) -> Result<u64, String> {
    u64::try_from(value).map_err(|_| format!("{name} has {value}; no negative number is expected"))
}

/// An axis; negative ones count from the end.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize, String> {
    let from_start = if axis < 0 {
        axis.saturating_add(rank as i64)
    } else {
        axis
    };
    usize::try_from(from_start)
        .ok()
        .filter(|&at| at < rank)
        .ok_or_else(|| format!("there is no axis {axis} among {rank}"))
}

fn range(axis: usize, shape: &[u64], start: i64, end: i64, step: i64) -> Result<Range, String> {
    let size = i64::try_from(shape[axis]).map_err(|_| format!("axis {axis} is too long"))?;
    let from_start = |index: i64| if index < 0 { index.saturating_add(size) } else { index };
    let (start, end) = (from_start(start), from_start(end));
    let (start, end) = match step {
        1.. => (start.clamp(0, size), end.clamp(0, size)),
        0 => return Err("a step of 0".to_owned()),
        _ => (start.clamp(0, (size - 1).max(0)), end.clamp(-1, size - 1)),
    };
    let span = (end - start) * step.signum();
    let length = span.max(0).unsigned_abs().div_ceil(step.unsigned_abs());
    if length == 0 {
        return Err(format!("nothing is left of axis {axis} of {}", show(shape)));
    }
    Ok(Range {
        axis,
        start,
        step,
        length,
    })
}
