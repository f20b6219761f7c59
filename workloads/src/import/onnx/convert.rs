//! ONNX operators as operators of a network.

use super::build::{Builder, Operand};
use super::moves::{moved, pad, reduce, reshape_sizes, resize, slice, split};
use super::node::{Reader, axis};
use super::products::{convolution, gemm, lstm, matmul, pool, transposed};
use super::values::{Constant, Value};
use crate::network::op::{Axis, LocalResponseNorm, Op, Opaque};
use crate::network::show;

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
    if let Some(op) = single_input(node)? {
        let input = operand(node, 0, b)?;
        return one(b.add(name, op, &[&input])?);
    }
    let folding = match node.op() {
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
    one(b.add(name, folding, &[&input])?)
}

/// Operators on one input without weights of their own: functions of every element, normalisations and pools.
fn single_input(node: &Reader<'_>) -> Result<Option<Op>, String> {
    Ok(Some(match node.op() {
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
        _ => return Ok(None),
    }))
}

pub(super) fn operand(node: &Reader<'_>, index: usize, b: &mut Builder) -> Result<Operand, String> {
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

pub(super) fn size(size: u64) -> Result<i64, String> {
    i64::try_from(size).map_err(|_| format!("size {size} does not fit 63 bits"))
}
