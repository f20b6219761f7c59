//! Lowering: a multiplying operator to the loop nests that compute it.

use super::infer::{FeatureMap, MatMulShape, feature_map};
use super::op::{Conv, ConvTranspose, Lstm, MatMul, Op};
use super::transposed;
use crate::{Dim, DimMap, Padding, Pair, Problem};

/// A part of a node: a suffix to its name (empty if the node is one nest), the nest, and how often it runs.
pub(crate) type Part = (String, Problem, u64);

/// The loop nests of `op` for inputs and output of known, valid shapes; none for operators without
/// multiplications.
pub(crate) fn lower(op: &Op, inputs: &[&[u64]], output: &[u64]) -> Result<Vec<Part>, String> {
    let whole = |problem| vec![(String::new(), problem, 1)];
    Ok(match op {
        Op::Conv(conv) => whole(convolution(conv, &feature_map(inputs[0])?, &feature_map(output)?)),
        Op::ConvTranspose(conv) => deconvolution(conv, &feature_map(inputs[0])?, &feature_map(output)?)?,
        Op::Linear(linear) => {
            let (&features, rows) = inputs[0].split_last().ok_or("the input is a scalar")?;
            whole(gemm(1, product(rows)?, linear.out, features))
        }
        Op::MatMul(matmul) => whole(batched_gemm(*matmul, inputs[0], inputs[1])?),
        Op::Lstm(lstm) => recurrent(*lstm, inputs[0])?,
        _ => Vec::new(),
    })
}

/// `groups` products of a `rows × inner` by an `inner × columns` matrix.
fn gemm(groups: u64, rows: u64, columns: u64, inner: u64) -> Problem {
    let mut bounds = DimMap::ones();
    bounds[Dim::G] = groups;
    bounds[Dim::N] = rows;
    bounds[Dim::K] = columns;
    bounds[Dim::C] = inner;
    Problem::new(bounds)
}

/// A leading axis that both operands have is a group; one that only the left has adds rows (the weights are
/// shared), one that only the right has adds columns (the inputs are shared).
fn batched_gemm(matmul: MatMul, left: &[u64], right: &[u64]) -> Result<Problem, String> {
    let shape = MatMulShape::new(matmul, left, right)?;
    let (mut groups, mut rows, mut columns) = (1, shape.rows, shape.columns);
    let rank = shape.batch.len();
    let size = |operand: &[u64], axis: usize| (axis + operand.len()).checked_sub(rank + 2).map_or(1, |i| operand[i]);
    for (axis, &count) in shape.batch.iter().enumerate() {
        let target = match (size(left, axis), size(right, axis)) {
            (_, 1) => &mut rows,
            (1, _) => &mut columns,
            _ => &mut groups,
        };
        *target = product(&[*target, count])?;
    }
    Ok(gemm(groups, rows, columns, shape.inner))
}

fn convolution(conv: &Conv, input: &FeatureMap, output: &FeatureMap) -> Problem {
    let bounds = grouped_bounds(conv.groups, input, output, conv.kernel);
    let (top, bottom) = touched_padding(
        input.rows,
        conv.pad.top,
        (output.rows - 1) * conv.stride.0 + (conv.kernel.0 - 1) * conv.dilation.0 + 1,
    );
    let (left, right) = touched_padding(
        input.columns,
        conv.pad.left,
        (output.columns - 1) * conv.stride.1 + (conv.kernel.1 - 1) * conv.dilation.1 + 1,
    );
    Problem {
        // Steps that are never taken must not tell equal nests apart.
        stride: Pair(
            if output.rows == 1 { 1 } else { conv.stride.0 },
            if output.columns == 1 { 1 } else { conv.stride.1 },
        ),
        dilation: Pair(
            if conv.kernel.0 == 1 { 1 } else { conv.dilation.0 },
            if conv.kernel.1 == 1 { 1 } else { conv.dilation.1 },
        ),
        padding: Padding {
            top,
            bottom,
            left,
            right,
        },
        bounds,
    }
}

/// Padding before and behind the input that windows spanning `extent` reach.
fn touched_padding(size: u64, before: u64, extent: u64) -> (u64, u64) {
    (before, extent.saturating_sub(before).saturating_sub(size))
}

fn grouped_bounds(groups: u64, input: &FeatureMap, output: &FeatureMap, kernel: Pair) -> DimMap<u64> {
    let mut bounds = DimMap::ones();
    bounds[Dim::N] = input.batch;
    bounds[Dim::G] = groups;
    bounds[Dim::K] = output.channels / groups;
    bounds[Dim::C] = input.channels / groups;
    bounds[Dim::P] = output.rows;
    bounds[Dim::Q] = output.columns;
    bounds[Dim::R] = kernel.0;
    bounds[Dim::S] = kernel.1;
    bounds
}

/// One dense convolution per pair of residues of the output row and column modulo the stride.
fn deconvolution(conv: &ConvTranspose, input: &FeatureMap, output: &FeatureMap) -> Result<Vec<Part>, String> {
    let row_axis = transposed::Axis {
        input: input.rows,
        output: output.rows,
        kernel: conv.kernel.0,
        stride: conv.stride.0,
        dilation: conv.dilation.0,
        before: conv.pad.top,
    };
    let column_axis = transposed::Axis {
        input: input.columns,
        output: output.columns,
        kernel: conv.kernel.1,
        stride: conv.stride.1,
        dilation: conv.dilation.1,
        before: conv.pad.left,
    };
    few_parts(&[row_axis.classes(), column_axis.classes()])?;
    let rows = transposed::phases(&row_axis);
    let columns = transposed::phases(&column_axis);
    let several = rows.len() * columns.len() > 1;
    let mut parts = Vec::with_capacity(rows.len() * columns.len());
    for row in &rows {
        for column in &columns {
            let mut bounds = grouped_bounds(conv.groups, input, output, Pair(row.taps, column.taps));
            bounds[Dim::P] = row.windows;
            bounds[Dim::Q] = column.windows;
            let problem = Problem {
                bounds,
                stride: Pair::ONE,
                dilation: Pair(row.dilation, column.dilation),
                padding: Padding {
                    top: row.before,
                    bottom: row.after,
                    left: column.before,
                    right: column.after,
                },
            };
            let suffix = if several {
                format!(".phase_{}_{}", row.residue, column.residue)
            } else {
                String::new()
            };
            parts.push((suffix, problem, 1));
        }
    }
    Ok(parts)
}

/// Four gates: one GEMM over the whole sequence for the inputs, and one per step for the hidden state, which must
/// wait for the step before.
fn recurrent(lstm: Lstm, input: &[u64]) -> Result<Vec<Part>, String> {
    let &[time, batch, features] = input else {
        return Err("the input is no sequence".to_owned());
    };
    let directions: &[&str] = match lstm.bidirectional {
        true => &[".forward", ".backward"],
        false => &[""],
    };
    few_parts(&[lstm.layers, directions.len() as u64])?;
    let gates = product(&[4, lstm.hidden])?;
    let steps = product(&[time, batch])?;
    let mut parts = Vec::new();
    let mut features = features;
    for layer in 0..lstm.layers {
        for direction in directions {
            let layer = if lstm.layers > 1 {
                format!(".layer{layer}")
            } else {
                String::new()
            };
            parts.push((format!("{layer}{direction}.input"), gemm(1, steps, gates, features), 1));
            parts.push((
                format!("{layer}{direction}.recurrent"),
                gemm(1, batch, gates, lstm.hidden),
                time,
            ));
        }
        features = product(&[directions.len() as u64, lstm.hidden])?;
    }
    Ok(parts)
}

/// A node that falls into very many nests is a slip of the pen, and would fill the memory.
fn few_parts(factors: &[u64]) -> Result<(), String> {
    const MOST: u64 = 65_536;
    match product(factors) {
        Ok(0..=MOST) => Ok(()),
        Ok(parts) => Err(format!("it falls into {parts} loop nests; at most {MOST} are expected")),
        Err(message) => Err(message),
    }
}

fn product(factors: &[u64]) -> Result<u64, String> {
    super::infer::elements(factors)
}
