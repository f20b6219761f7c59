//! Transposed convolutions as dense ones.
//!
//! A transposed convolution with stride `s` adds `I[i]·W[k]` to the output at `o = i·s + k·dilation − before`.
//! Seen from the output, `o + before ≡ k·dilation (mod s)`: outputs of one residue class use one subset of the
//! taps, and neighbours in the class read neighbouring inputs. Each class is therefore an ordinary convolution with
//! stride 1 on the original input, and no inserted zero is ever multiplied. The taps of a class are those of the
//! filter in steps of `s ÷ gcd(s, dilation)`, in reverse order.

/// One axis of a transposed convolution.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    /// Size of the input.
    pub(crate) input: u64,
    /// Size of the output.
    pub(crate) output: u64,
    /// Filter taps.
    pub(crate) kernel: u64,
    /// Distance, in outputs, of the windows of two neighbouring inputs.
    pub(crate) stride: u64,
    /// Distance of two taps, in outputs.
    pub(crate) dilation: u64,
    /// Outputs that are cut off at the start.
    pub(crate) before: u64,
}

/// The outputs `first, first + stride, …` as a convolution with stride 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Phase {
    /// `(o + before) mod stride` of its outputs.
    pub(crate) residue: u64,
    /// How many outputs there are.
    pub(crate) windows: u64,
    /// How many filter taps they use.
    pub(crate) taps: u64,
    /// Distance of two taps in the input.
    pub(crate) dilation: u64,
    /// Padding in front of the input that the windows reach.
    pub(crate) before: u64,
    /// Padding behind the input that the windows reach.
    pub(crate) after: u64,
    /// Input index of the first tap of the first window, if it is not in the padding: what is before it is not read.
    #[cfg(test)]
    pub(crate) first_input: i128,
    /// The first output.
    #[cfg(test)]
    pub(crate) first_output: u64,
    /// The filter tap that the first tap of the phase is, and the distance (backwards) to the next.
    #[cfg(test)]
    pub(crate) first_tap: (u64, u64),
}

impl Axis {
    /// Residue classes that taps fall on.
    pub(crate) fn classes(&self) -> u64 {
        self.kernel.min(self.tap_step())
    }

    /// Distance of two taps of one class.
    fn tap_step(&self) -> u64 {
        self.stride / gcd(self.stride, self.dilation)
    }
}

/// The phases of an axis, in the order of the residues that occur. Residues that no tap falls on, and
/// outputs whose window lies in the padding, are left out: they are zero and cost nothing.
pub(crate) fn phases(axis: &Axis) -> Vec<Phase> {
    let dilation = axis.dilation / gcd(axis.stride, axis.dilation);
    (0..axis.classes())
        .filter_map(|first| phase(axis, first, axis.tap_step(), dilation))
        .collect::<std::collections::BTreeMap<_, _>>()
        .into_values()
        .collect()
}

fn phase(axis: &Axis, first: u64, tap_step: u64, dilation: u64) -> Option<(u64, Phase)> {
    let wide = i128::from;
    let (stride, before) = (wide(axis.stride), wide(axis.before));
    let offset = wide(first) * wide(axis.dilation);
    let residue = offset.rem_euclid(stride);
    let taps = (axis.kernel - first).div_ceil(tap_step);
    // Tap j of the class reads input t − shift − j·dilation for the output residue + t·stride − before.
    let shift = (offset - residue) / stride;
    let span = (wide(taps) - 1) * wide(dilation);
    // Outputs o with 0 ≤ o < output whose window reaches the input; the others are zero.
    let t_first = (before - residue).div_euclid(stride) + i128::from((before - residue).rem_euclid(stride) != 0);
    let t_last = (wide(axis.output) - 1 + before - residue).div_euclid(stride);
    let (t_first, t_last) = (t_first.max(shift), t_last.min(shift + span + wide(axis.input) - 1));
    if t_last < t_first {
        return None;
    }
    let low = t_first - shift - span;
    let high = t_last - shift;
    let unsigned = |value: i128| u64::try_from(value.max(0)).unwrap_or(u64::MAX);
    let phase = Phase {
        residue: unsigned(residue),
        windows: unsigned(t_last - t_first + 1),
        taps,
        dilation: if taps == 1 { 1 } else { dilation },
        before: unsigned(-low),
        after: unsigned(high - (wide(axis.input) - 1)),
        #[cfg(test)]
        first_input: low,
        #[cfg(test)]
        first_output: unsigned(residue + t_first * stride - before),
        #[cfg(test)]
        first_tap: (first + (taps - 1) * tap_step, tap_step),
    };
    Some((phase.residue, phase))
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Axis, phases};

    /// The definition: every input is scattered over the outputs that its window covers. The second list counts the
    /// products of real inputs that each output receives.
    fn scatter(axis: &Axis, input: &[i64], filter: &[i64]) -> (Vec<i64>, Vec<u64>) {
        let mut output = vec![0; axis.output as usize];
        let mut products = vec![0; axis.output as usize];
        for (i, x) in input.iter().enumerate() {
            for (k, w) in filter.iter().enumerate() {
                let o = (i as u64 * axis.stride + k as u64 * axis.dilation).checked_sub(axis.before);
                if let Some(o) = o.filter(|&o| o < axis.output) {
                    output[o as usize] += x * w;
                    products[o as usize] += 1;
                }
            }
        }
        (output, products)
    }

    /// Runs every phase as an ordinary convolution with stride 1 over the padded input.
    fn gather(axis: &Axis, input: &[i64], filter: &[i64]) -> Vec<i64> {
        let mut output = vec![0; axis.output as usize];
        for phase in phases(axis) {
            let skipped = phase.first_input.max(0) as usize;
            let padded: Vec<i64> = std::iter::repeat_n(0, phase.before as usize)
                .chain(input[skipped..].iter().copied())
                .chain(std::iter::repeat_n(0, phase.after as usize))
                .collect();
            for window in 0..phase.windows {
                let sum: i64 = (0..phase.taps)
                    .map(|tap| {
                        let weight = phase.first_tap.0 - tap * phase.first_tap.1;
                        padded[(window + tap * phase.dilation) as usize] * filter[weight as usize]
                    })
                    .sum();
                output[(phase.first_output + window * axis.stride) as usize] = sum;
            }
        }
        output
    }

    prop_compose! {
        fn any_axis()(
            input in 1_u64..9, kernel in 1_u64..6, stride in 1_u64..6, dilation in 1_u64..5,
            before in 0_u64..6, after in 0_u64..6, add in 0_u64..4,
        ) -> Axis {
            let whole = (input - 1) * stride + (kernel - 1) * dilation + 1 + add;
            Axis { input, output: whole.saturating_sub(before + after).max(1), kernel, stride, dilation, before }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_phases_compute_the_transposed_convolution(axis in any_axis(), seed in 1_i64..1000) {
            let input: Vec<i64> = (0..axis.input as i64).map(|i| (i + 3) * seed % 17 - 8).collect();
            let filter: Vec<i64> = (0..axis.kernel as i64).map(|k| (k + 2) * seed % 13 - 6).collect();
            prop_assert_eq!(gather(&axis, &input, &filter), scatter(&axis, &input, &filter).0);
        }

        #[test]
        fn every_output_with_a_product_is_in_one_phase_and_no_phase_starts_or_ends_in_the_padding(axis in any_axis()) {
            let ones = |count| vec![1; count as usize];
            let (_, products) = scatter(&axis, &ones(axis.input), &ones(axis.kernel));
            let mut covered = vec![0; axis.output as usize];
            for phase in phases(&axis) {
                for window in 0..phase.windows {
                    covered[(phase.first_output + window * axis.stride) as usize] += 1;
                }
                let span = (phase.taps - 1) * phase.dilation;
                prop_assert!(phase.before <= span, "{:?}", phase);
                prop_assert!(phase.after <= span, "{:?}", phase);
            }
            for (output, &count) in products.iter().enumerate() {
                prop_assert!(covered[output] <= 1);
                prop_assert!(count == 0 || covered[output] == 1, "output {} is missing", output);
            }
        }
    }

    #[test]
    fn without_borders_the_phases_multiply_every_input_with_every_tap_once() {
        // Kernel 4, stride 2, padding 1: as in DCGAN. Every output has two products; those at the borders one in the
        // padding.
        let axis = Axis {
            input: 8,
            output: 16,
            kernel: 4,
            stride: 2,
            dilation: 1,
            before: 1,
        };
        let products: u64 = phases(&axis).iter().map(|phase| phase.windows * phase.taps).sum();
        assert_eq!(products, 8 * 4);
    }

    #[test]
    fn a_filter_smaller_than_the_stride_leaves_outputs_that_cost_nothing() {
        let axis = Axis {
            input: 4,
            output: 12,
            kernel: 2,
            stride: 3,
            dilation: 1,
            before: 0,
        };
        let phases = phases(&axis);
        assert_eq!(phases.len(), 2);
        assert!(phases.iter().all(|phase| (phase.windows, phase.taps) == (4, 1)));
    }
}
