//! One loop nest to be scheduled: what a layer is lowered to.

use serde::{Deserialize, Serialize};

use crate::{Dim, DimMap, Tensor};

/// A value for the vertical (rows, P and R) and one for the horizontal axis (columns, Q and S).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Pair(pub u64, pub u64);

impl Pair {
    /// Stride and dilation 1 in both directions.
    pub const ONE: Pair = Pair(1, 1);
}

/// Rows and columns around the input that are read as zero; never stored and never moved.
///
/// It counts only what the loop nest touches: with a 7×7 kernel, stride 2 and padding 3 on 224 rows, the last
/// window ends two rows below the input, so `bottom` is 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Padding {
    /// Rows above the input.
    pub top: u64,
    /// Rows below the input.
    pub bottom: u64,
    /// Columns left of the input.
    pub left: u64,
    /// Columns right of the input.
    pub right: u64,
}

/// A loop nest over the eight dimensions: convolutions of every kind and GEMMs (R=S=P=Q=1 with N or P as rows).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// Trip count of every dimension; all are at least 1.
    pub bounds: DimMap<u64>,
    /// Distance of two windows, in input rows and columns.
    #[serde(default = "one")]
    pub stride: Pair,
    /// Distance of two filter taps, in input rows and columns.
    #[serde(default = "one")]
    pub dilation: Pair,
    /// Border of zeros that the windows reach into.
    #[serde(default)]
    pub padding: Padding,
}

const fn one() -> Pair {
    Pair::ONE
}

impl Problem {
    /// A problem with stride and dilation 1 and no padding.
    #[must_use]
    pub const fn new(bounds: DimMap<u64>) -> Self {
        Problem {
            bounds,
            stride: Pair::ONE,
            dilation: Pair::ONE,
            padding: Padding {
                top: 0,
                bottom: 0,
                left: 0,
                right: 0,
            },
        }
    }

    /// Multiply-accumulates: the product of all bounds (padding included, as the field counts them).
    #[must_use]
    pub fn macs(&self) -> u64 {
        self.bounds.0.iter().product()
    }

    /// Contributions that each output receives: C·R·S.
    #[must_use]
    pub fn contributions(&self) -> u64 {
        self.bounds[Dim::C] * self.bounds[Dim::R] * self.bounds[Dim::S]
    }

    /// Rows and columns that the windows span, padding included: (P−1)·stride + (R−1)·dilation + 1.
    #[must_use]
    pub fn padded_extent(&self) -> Pair {
        let b = &self.bounds;
        Pair(
            (b[Dim::P] - 1) * self.stride.0 + (b[Dim::R] - 1) * self.dilation.0 + 1,
            (b[Dim::Q] - 1) * self.stride.1 + (b[Dim::S] - 1) * self.dilation.1 + 1,
        )
    }

    /// The padded rows that exist in the input: `[top, extent − bottom)`.
    #[must_use]
    pub fn real_rows(&self) -> std::ops::Range<u64> {
        self.padding.top..(self.padded_extent().0.saturating_sub(self.padding.bottom)).max(self.padding.top)
    }

    /// The padded columns that exist in the input: `[left, extent − right)`.
    #[must_use]
    pub fn real_columns(&self) -> std::ops::Range<u64> {
        self.padding.left..(self.padded_extent().1.saturating_sub(self.padding.right)).max(self.padding.left)
    }

    /// Distinct elements of `tensor` that the nest touches; padding, and input elements that no window covers
    /// (stride larger than the kernel), are not among them.
    #[must_use]
    pub fn touched(&self, tensor: Tensor) -> u64 {
        let b = &self.bounds;
        match tensor {
            Tensor::Weights => b[Dim::G] * b[Dim::K] * b[Dim::C] * b[Dim::R] * b[Dim::S],
            Tensor::Outputs => b[Dim::N] * b[Dim::G] * b[Dim::K] * b[Dim::P] * b[Dim::Q],
            Tensor::Inputs => {
                let rows = distinct(b[Dim::P], self.stride.0, b[Dim::R], self.dilation.0, &self.real_rows());
                let columns = distinct(
                    b[Dim::Q],
                    self.stride.1,
                    b[Dim::S],
                    self.dilation.1,
                    &self.real_columns(),
                );
                b[Dim::N] * b[Dim::G] * b[Dim::C] * rows * columns
            }
        }
    }
}

/// Distinct values of `w·stride + t·dilation` for `w < windows`, `t < taps` that lie in `real`.
///
/// With both steps divided by their greatest common divisor to `s` and `d`, two pairs name the same value iff
/// `(w', t') = (w + k·d, t − k·s)`. Counting the pair with the smallest `t` counts every value once: those with
/// `t < s`, and those with `w ≥ windows − d`, which cannot be shifted.
fn distinct(windows: u64, stride: u64, taps: u64, dilation: u64, real: &std::ops::Range<u64>) -> u64 {
    // The expression is symmetric: run over the shorter of the two.
    if windows < taps {
        return distinct(taps, dilation, windows, stride, real);
    }
    let common = gcd(stride, dilation);
    let (s, d) = (stride / common, dilation / common);
    (0..taps)
        .map(|t| {
            let base = t * dilation;
            // Windows in [first, last) put this tap into the real part.
            let below = |bound: u64| bound.saturating_sub(base).div_ceil(stride).min(windows);
            let shifted = if t < s { 0 } else { windows.saturating_sub(d) };
            below(real.end).saturating_sub(below(real.start).max(shifted))
        })
        .sum()
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::distinct;

    /// The definition: marks every value.
    fn marked(windows: u64, stride: u64, taps: u64, dilation: u64, real: &std::ops::Range<u64>) -> u64 {
        let all = (0..windows).flat_map(|w| (0..taps).map(move |t| w * stride + t * dilation));
        all.filter(|y| real.contains(y))
            .collect::<std::collections::BTreeSet<_>>()
            .len() as u64
    }

    proptest! {
        #[test]
        fn distinct_values_are_those_that_marking_finds(
            windows in 1_u64..12, stride in 1_u64..9, taps in 1_u64..12, dilation in 1_u64..9,
            start in 0_u64..20, length in 0_u64..120,
        ) {
            let real = start..start + length;
            prop_assert_eq!(
                distinct(windows, stride, taps, dilation, &real),
                marked(windows, stride, taps, dilation, &real)
            );
        }
    }

    #[test]
    fn a_long_axis_costs_no_memory() {
        assert_eq!(distinct(1 << 40, 1, 3, 1, &(1..1 << 40)), (1 << 40) - 1);
    }
}
