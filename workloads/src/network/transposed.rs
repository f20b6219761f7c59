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
