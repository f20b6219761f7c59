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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::infer::infer;
    use super::super::op::{Conv, ConvTranspose, Linear, Lstm, MatMul, Op};
    use super::{Part, lower};
    use crate::{Dim, Padding, Pair, Problem, Tensor};

    fn lowered(op: &Op, inputs: &[&[u64]]) -> Vec<Part> {
        let output = infer(op, inputs).expect("shapes fit");
        lower(op, inputs, &output).expect("lowers")
    }

    fn macs(parts: &[Part]) -> u64 {
        parts.iter().map(|(_, problem, repeats)| problem.macs() * repeats).sum()
    }

    fn only(parts: Vec<Part>) -> Problem {
        let [(suffix, problem, repeats)] = <[Part; 1]>::try_from(parts).expect("one nest");
        assert_eq!((suffix.as_str(), repeats), ("", 1));
        problem
    }

    /// The input rows that a convolution reads, by definition: padding is outside of `0..size`.
    fn rows_read(size: u64, before: u64, windows: u64, stride: u64, taps: u64, dilation: u64) -> BTreeSet<u64> {
        (0..windows)
            .flat_map(|w| (0..taps).filter_map(move |t| (w * stride + t * dilation).checked_sub(before)))
            .filter(|&row| row < size)
            .collect()
    }

    prop_compose! {
        fn any_conv()(
            out in 1_u64..4, kernel in (1_u64..5, 1_u64..5), stride in (1_u64..5, 1_u64..5),
            dilation in (1_u64..4, 1_u64..4), sides in (0_u64..4, 0_u64..4, 0_u64..4, 0_u64..4), groups in 1_u64..4,
        ) -> Conv {
            Conv {
                out: out * groups,
                kernel: Pair(kernel.0, kernel.1),
                stride: Pair(stride.0, stride.1),
                dilation: Pair(dilation.0, dilation.1),
                pad: Padding { top: sides.0, bottom: sides.1, left: sides.2, right: sides.3 },
                groups,
            }
        }
    }

    proptest! {
        #[test]
        fn a_convolution_touches_the_input_that_its_definition_reads(
            conv in any_conv(), batch in 1_u64..3, channels in 1_u64..3, size in (1_u64..16, 1_u64..16),
        ) {
            let input = [batch, channels * conv.groups, size.0, size.1];
            let op = Op::Conv(conv);
            let Ok(output) = infer(&op, &[&input]) else {
                let extent = (conv.kernel.0 - 1) * conv.dilation.0 + 1;
                let width = (conv.kernel.1 - 1) * conv.dilation.1 + 1;
                prop_assert!(extent > size.0 + conv.pad.top + conv.pad.bottom
                    || width > size.1 + conv.pad.left + conv.pad.right);
                return Ok(());
            };
            let problem = only(lower(&op, &[&input], &output).expect("lowers"));
            let rows = rows_read(size.0, conv.pad.top, output[2], conv.stride.0, conv.kernel.0, conv.dilation.0);
            let columns = rows_read(size.1, conv.pad.left, output[3], conv.stride.1, conv.kernel.1, conv.dilation.1);
            let read = batch * input[1] * rows.len() as u64 * columns.len() as u64;
            prop_assert_eq!(problem.touched(Tensor::Inputs), read);
            prop_assert_eq!(problem.touched(Tensor::Outputs), output.iter().product::<u64>());
            prop_assert_eq!(
                problem.macs(),
                output.iter().product::<u64>() * channels * conv.kernel.0 * conv.kernel.1
            );
            // One more window would not fit.
            let fits = |windows: u64| (windows - 1) * conv.stride.0 + (conv.kernel.0 - 1) * conv.dilation.0
                < size.0 + conv.pad.top + conv.pad.bottom;
            prop_assert!(fits(output[2]) && !fits(output[2] + 1));
        }

        #[test]
        fn a_matrix_product_touches_each_operand_once(
            m in 1_u64..5, k in 1_u64..5, c in 1_u64..5, axes in proptest::collection::vec((0_u8..3, 2_u64..4), 0..3),
            transpose_b in any::<bool>(),
        ) {
            // Per leading axis: both operands have it, or only one.
            let mut left: Vec<u64> = axes.iter().map(|&(who, n)| if who == 1 { 1 } else { n }).collect();
            let mut right: Vec<u64> = axes.iter().map(|&(who, n)| if who == 2 { 1 } else { n }).collect();
            left.extend([m, c]);
            right.extend(if transpose_b { [k, c] } else { [c, k] });
            let op = Op::MatMul(MatMul { transpose_b });
            let problem = only(lowered(&op, &[&left, &right]));
            prop_assert_eq!(problem.touched(Tensor::Inputs), left.iter().product::<u64>());
            prop_assert_eq!(problem.touched(Tensor::Weights), right.iter().product::<u64>());
            let batch: u64 = axes.iter().map(|&(_, n)| n).product();
            prop_assert_eq!(problem.touched(Tensor::Outputs), batch * m * k);
            prop_assert_eq!(problem.macs(), batch * m * k * c);
        }

        #[test]
        fn an_lstm_has_the_multiplications_of_its_equations(
            time in 1_u64..6, batch in 1_u64..4, features in 1_u64..6, hidden in 1_u64..6, layers in 1_u64..4,
            bidirectional in any::<bool>(),
        ) {
            let op = Op::Lstm(Lstm { hidden, layers, bidirectional });
            let parts = lowered(&op, &[&[time, batch, features]]);
            // Per step, layer and direction, four gates with W·x and U·h each.
            let directions = 1 + u64::from(bidirectional);
            let mut expected = 0;
            for layer in 0..layers {
                let width = if layer == 0 { features } else { directions * hidden };
                expected += time * batch * directions * 4 * hidden * (width + hidden);
            }
            prop_assert_eq!(macs(&parts), expected);
            prop_assert_eq!(parts.len() as u64, layers * directions * 2);
        }

        #[test]
        fn a_transposed_convolution_never_multiplies_an_inserted_zero(
            kernel in (1_u64..5, 1_u64..5), stride in (1_u64..5, 1_u64..5), size in (1_u64..6, 1_u64..6),
            groups in 1_u64..3,
        ) {
            // Without padding every product of an input and a tap lands in the output. The phases add only products
            // with padding, where a window reaches over the edge: the taps of its class less one, on each side.
            let op = Op::ConvTranspose(ConvTranspose {
                out: 3 * groups,
                kernel: Pair(kernel.0, kernel.1),
                stride: Pair(stride.0, stride.1),
                dilation: Pair::ONE,
                pad: Padding::default(),
                output_pad: Pair(0, 0),
                groups,
            });
            let parts = lowered(&op, &[&[1, 2 * groups, size.0, size.1]]);
            let axis = |size: u64, kernel: u64, stride: u64| -> u64 {
                (0..stride.min(kernel))
                    .map(|first| {
                        let taps = (kernel - first).div_ceil(stride);
                        (size + taps - 1) * taps
                    })
                    .sum()
            };
            let expected = 3 * groups * 2 * axis(size.0, kernel.0, stride.0) * axis(size.1, kernel.1, stride.1);
            prop_assert_eq!(macs(&parts), expected);
            prop_assert_eq!(parts.len() as u64, stride.0.min(kernel.0) * stride.1.min(kernel.1));
            prop_assert!(parts.iter().all(|(_, problem, _)| problem.stride == Pair::ONE));
        }
    }

    #[test]
    fn a_transposed_convolution_is_named_by_its_phases() {
        let op = Op::ConvTranspose(ConvTranspose {
            out: 4,
            kernel: Pair(2, 2),
            stride: Pair(2, 2),
            dilation: Pair::ONE,
            pad: Padding::default(),
            output_pad: Pair(0, 0),
            groups: 1,
        });
        let parts = lowered(&op, &[&[1, 8, 5, 5]]);
        let names: Vec<_> = parts.iter().map(|(suffix, _, _)| suffix.as_str()).collect();
        assert_eq!(names, [".phase_0_0", ".phase_0_1", ".phase_1_0", ".phase_1_1"]);
        assert_eq!(macs(&parts), 4 * 8 * 10 * 10);
    }

    #[test]
    fn a_fully_connected_layer_has_its_rows_in_the_batch() {
        let problem = only(lowered(&Op::Linear(Linear { out: 7 }), &[&[2, 5, 3]]));
        assert_eq!([Dim::N, Dim::K, Dim::C].map(|dim| problem.bounds[dim]), [10, 7, 3]);
    }

    #[test]
    fn steps_that_are_never_taken_do_not_tell_equal_nests_apart() {
        let nest = |stride, dilation, kernel| {
            let conv = Conv {
                out: 1,
                kernel: Pair(kernel, kernel),
                stride: Pair(stride, stride),
                dilation: Pair(dilation, dilation),
                pad: Padding::default(),
                groups: 1,
            };
            only(lowered(&Op::Conv(conv), &[&[1, 1, 3, 3]]))
        };
        assert_eq!(nest(3, 1, 3), nest(1, 1, 3));
        assert_eq!(nest(1, 5, 1), nest(1, 1, 1));
    }

    #[test]
    fn padding_that_no_window_reaches_is_not_counted() {
        let conv = Conv {
            out: 64,
            kernel: Pair(7, 7),
            stride: Pair(2, 2),
            dilation: Pair::ONE,
            pad: crate::network::symmetric(Pair(3, 3)),
            groups: 1,
        };
        let problem = only(lowered(&Op::Conv(conv), &[&[1, 3, 224, 224]]));
        let expected = Padding {
            top: 3,
            bottom: 2,
            left: 3,
            right: 2,
        };
        assert_eq!(problem.padding, expected);
    }
}
