//! Evaluation of constant operators, as far as they decide shapes.

use super::node::Reader;
use super::values::{Constant, KEPT, Numbers, Value};
use crate::network::{broadcast, elements};

/// The constant that a node computes, `Ok(None)` if it is none or its operator is not evaluated here.
pub(super) fn evaluate(node: &Reader<'_>) -> Result<Option<Constant>, String> {
    match node.op() {
        "Constant" => return constant(node).map(Some),
        "Shape" => {
            let Some(shape) = node.shape(0) else { return Ok(None) };
            let rank = shape.len() as i64;
            let clamp = |bound: i64| (if bound < 0 { bound + rank } else { bound }).clamp(0, rank) as usize;
            let (start, end) = (clamp(node.int("start", 0)), clamp(node.int("end", rank)));
            let sizes = shape.get(start..end.max(start)).unwrap_or_default();
            return signed(sizes).map(|sizes| Some(Constant::vector(sizes)));
        }
        "Size" => {
            let Some(shape) = node.shape(0) else { return Ok(None) };
            let count = signed(&[elements(shape)?])?;
            return Ok(Some(Constant::ints(Vec::new(), count)));
        }
        _ => {}
    }
    let Some(inputs) = node.constants() else {
        return Ok(None);
    };
    let first = inputs.first().copied();
    match (node.op(), first) {
        ("ConstantOfShape", Some(shape)) => {
            let Some(sizes) = shape.as_ints() else { return Ok(None) };
            let shape = sizes
                .iter()
                .map(|&size| u64::try_from(size).map_err(|_| format!("size {size} is negative")))
                .collect::<Result<Vec<_>, _>>()?;
            elements(&shape)?;
            let value = node.tensor("value").map(Constant::read).transpose()?;
            let zero = Numbers::Floats(vec![0.0]);
            Ok(Some(Constant::filled(
                shape,
                &value.map_or(zero, |value| value.numbers),
            )))
        }
        ("Identity", Some(value)) => Ok(Some(value.clone())),
        ("Cast", Some(value)) => Ok(Some(cast(value, node.int("to", 0)))),
        ("Unsqueeze" | "Squeeze" | "Reshape" | "Flatten", Some(value)) => {
            Ok(node.reshaped(&value.shape)?.map(|shape| Constant {
                shape,
                numbers: value.numbers.clone(),
            }))
        }
        ("Gather", Some(value)) => gather(node, value),
        ("Slice", Some(value)) => slice(node, value),
        ("Concat", Some(value)) if value.shape.len() == 1 => Ok(joined(&inputs)),
        ("Add" | "Sub" | "Mul" | "Div" | "Max" | "Min", Some(value)) if inputs.len() == 2 => {
            arithmetic(node.op(), value, inputs[1])
        }
        ("Neg" | "Abs" | "Floor" | "Ceil" | "Sqrt", Some(value)) => Ok(unary(node.op(), value)),
        ("ReduceProd", Some(value)) if node.attribute("axes").is_none() && inputs.len() == 1 => {
            let product = value
                .as_ints()
                .and_then(|ints| ints.iter().try_fold(1_i64, |product, &i| product.checked_mul(i)));
            let rank = if node.int("keepdims", 1) == 1 {
                value.shape.len()
            } else {
                0
            };
            Ok(product.map(|product| Constant::ints(vec![1; rank], vec![product])))
        }
        ("Range", Some(start)) if inputs.len() == 3 => {
            let scalar = |constant: &Constant| constant.as_ints().and_then(|ints| ints.first().copied());
            let (Some(start), Some(limit), Some(step @ (..=-1 | 1..))) =
                (scalar(start), scalar(inputs[1]), scalar(inputs[2]))
            else {
                return Ok(None);
            };
            let span = i128::from(limit) - i128::from(start);
            let step_wide = i128::from(step);
            let count = (span / step_wide + i128::from(span % step_wide != 0 && (span < 0) == (step < 0))).max(0);
            let count = u64::try_from(count).map_err(|_| "the range is too long".to_owned())?;
            let number = |i: u64| (i128::from(start) + i128::from(i) * step_wide) as i64;
            Ok(Some(match count {
                0..=KEPT => Constant::vector((0..count).map(number).collect()),
                _ => Constant::opaque(vec![count]),
            }))
        }
        _ => Ok(None),
    }
}

fn signed(sizes: &[u64]) -> Result<Vec<i64>, String> {
    sizes
        .iter()
        .map(|&size| i64::try_from(size).map_err(|_| format!("size {size} does not fit 63 bits")))
        .collect()
}

/// `Constant`: a tensor, or numbers as attributes.
fn constant(node: &Reader<'_>) -> Result<Constant, String> {
    if let Some(tensor) = node.tensor("value") {
        return Constant::read(tensor);
    }
    let float = |value: f32| Numbers::Floats(vec![f64::from(value)]);
    let attribute = |name| node.attribute(name);
    Ok(if let Some(value) = attribute("value_int") {
        Constant::ints(Vec::new(), vec![value.i])
    } else if let Some(value) = attribute("value_ints") {
        Constant::vector(value.ints.clone())
    } else if let Some(value) = attribute("value_float") {
        Constant {
            shape: Vec::new(),
            numbers: float(value.f),
        }
    } else if let Some(value) = attribute("value_floats") {
        Constant {
            shape: vec![value.floats.len() as u64],
            numbers: Numbers::Floats(value.floats.iter().map(|&f| f64::from(f)).collect()),
        }
    } else {
        return Err(
            "a Constant without numbers; \"value\", \"value_int(s)\" or \"value_float(s)\" is expected".to_owned(),
        );
    })
}

/// To an integer type the numbers are cut, to a floating one they are kept; other types keep only the shape.
fn cast(value: &Constant, to: i64) -> Constant {
    const FLOATS: [i64; 4] = [1, 10, 11, 16];
    const INTS: [i64; 8] = [2, 3, 4, 5, 6, 7, 12, 13];
    let numbers = match &value.numbers {
        Numbers::Floats(floats) if INTS.contains(&to) => Numbers::Ints(floats.iter().map(|&f| f as i64).collect()),
        Numbers::Ints(ints) if FLOATS.contains(&to) => Numbers::Floats(ints.iter().map(|&i| i as f64).collect()),
        numbers if FLOATS.contains(&to) || INTS.contains(&to) => numbers.clone(),
        _ => Numbers::Unknown,
    };
    Constant {
        shape: value.shape.clone(),
        numbers,
    }
}

/// Picks from a vector.
fn gather(node: &Reader<'_>, value: &Constant) -> Result<Option<Constant>, String> {
    let indices = node.value(1).and_then(Value::constant);
    let (Some(numbers), Some(indices), 1) = (value.as_ints(), indices, value.shape.len()) else {
        return Ok(None);
    };
    let Some(picked) = indices.as_ints() else {
        return Ok(None);
    };
    let picked = picked
        .iter()
        .map(|&i| {
            let at = if i < 0 { i + numbers.len() as i64 } else { i };
            usize::try_from(at)
                .ok()
                .and_then(|at| numbers.get(at).copied())
                .ok_or_else(|| format!("index {i} is outside of {} numbers", numbers.len()))
        })
        .collect::<Result<_, _>>()?;
    Ok(Some(Constant::ints(indices.shape.clone(), picked)))
}

/// Cuts from a vector.
fn slice(node: &Reader<'_>, value: &Constant) -> Result<Option<Constant>, String> {
    let (Some(numbers), 1) = (value.as_ints(), value.shape.len()) else {
        return Ok(None);
    };
    let Some(ranges) = node.slices(&value.shape)? else {
        return Ok(None);
    };
    let mut numbers = numbers.to_vec();
    for range in ranges {
        numbers = range.indices().filter_map(|i| numbers.get(i).copied()).collect();
    }
    Ok(Some(Constant::vector(numbers)))
}

fn joined(inputs: &[&Constant]) -> Option<Constant> {
    let ints = inputs.iter().map(|input| input.as_ints()).collect::<Option<Vec<_>>>()?;
    let count = ints.iter().map(|ints| ints.len() as u64).sum();
    Some(match count {
        0..=KEPT => Constant::vector(ints.concat()),
        _ => Constant::opaque(vec![count]),
    })
}

fn arithmetic(op: &str, a: &Constant, b: &Constant) -> Result<Option<Constant>, String> {
    let shape = broadcast(&a.shape, &b.shape)?;
    let count = elements(&shape)? as usize;
    // Equal shapes, or one number against many: enough for the arithmetic on sizes.
    let at = |length: usize, i: usize| if length == 1 { 0 } else { i };
    let spreads = |length: usize| length == 1 || length == count;
    if let (Some(x), Some(y)) = (a.as_ints(), b.as_ints()) {
        if !spreads(x.len()) || !spreads(y.len()) {
            return Ok(None);
        }
        let numbers = (0..count)
            .map(|i| {
                let (x, y) = (x[at(x.len(), i)], y[at(y.len(), i)]);
                match op {
                    "Add" => x.checked_add(y),
                    "Sub" => x.checked_sub(y),
                    "Mul" => x.checked_mul(y),
                    "Div" => x.checked_div(y),
                    "Max" => Some(x.max(y)),
                    _ => Some(x.min(y)),
                }
                .ok_or_else(|| format!("{op} of {x} and {y} has no result in 64 bits"))
            })
            .collect::<Result<_, _>>()?;
        return Ok(Some(Constant::ints(shape, numbers)));
    }
    let (Some(x), Some(y)) = (a.to_floats(), b.to_floats()) else {
        return Ok(None);
    };
    if !spreads(x.len()) || !spreads(y.len()) {
        return Ok(None);
    }
    let numbers = (0..count)
        .map(|i| {
            let (x, y) = (x[at(x.len(), i)], y[at(y.len(), i)]);
            match op {
                "Add" => x + y,
                "Sub" => x - y,
                "Mul" => x * y,
                "Div" => x / y,
                "Max" => x.max(y),
                _ => x.min(y),
            }
        })
        .collect();
    Ok(Some(Constant {
        shape,
        numbers: Numbers::Floats(numbers),
    }))
}

fn unary(op: &str, value: &Constant) -> Option<Constant> {
    let numbers = match (&value.numbers, op) {
        (Numbers::Ints(ints), "Neg") => Numbers::Ints(ints.iter().map(|i| i.wrapping_neg()).collect()),
        (Numbers::Ints(ints), "Abs") => Numbers::Ints(ints.iter().map(|i| i.wrapping_abs()).collect()),
        (Numbers::Floats(floats), _) => {
            let f = match op {
                "Neg" => |x: f64| -x,
                "Abs" => f64::abs,
                "Floor" => f64::floor,
                "Ceil" => f64::ceil,
                _ => f64::sqrt,
            };
            Numbers::Floats(floats.iter().map(|&x| f(x)).collect())
        }
        _ => return None,
    };
    Some(Constant {
        shape: value.shape.clone(),
        numbers,
    })
}
