//! Sets of input rows (or columns): the distinct values of p·stride + r·dilation that are real.

/// One of the two affine axes of the inputs, with everything divided by the greatest common divisor of stride and
/// dilation, of which every row is a multiple.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AffineAxis {
    /// Distance of two windows.
    pub(super) stride: u64,
    /// Distance of two taps.
    pub(super) dilation: u64,
    /// First row that is not padding.
    pub(super) real_from: u64,
    /// First row of the padding below.
    pub(super) real_to: u64,
}

impl AffineAxis {
    /// An axis with the given distances and range of real rows.
    pub(super) fn new(stride: u64, dilation: u64, real: &std::ops::Range<u64>) -> Self {
        let (mut a, mut b) = (stride, dilation);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let unit = a.max(1);
        AffineAxis {
            stride: stride / unit,
            dilation: dilation / unit,
            real_from: real.start.div_ceil(unit),
            real_to: real.end.div_ceil(unit),
        }
    }

    /// Rows touched by the windows `p..p+windows` and the taps `r..r+taps`.
    #[inline]
    pub(super) fn rows(&self, p: u64, windows: u64, r: u64, taps: u64) -> Rows {
        let first = p * self.stride + r * self.dilation;
        let contiguous = (self.dilation == 1 && taps >= self.stride) || (self.stride == 1 && windows >= self.dilation);
        let (step, n) = if contiguous || (windows == 1 && taps == 1) {
            (1, (windows - 1) * self.stride + (taps - 1) * self.dilation + 1)
        } else if taps == 1 {
            (self.stride, windows)
        } else if windows == 1 {
            (self.dilation, taps)
        } else {
            return self.gapped(p, windows, r, taps);
        };
        // Clip to the real rows.
        let skip = self.real_from.saturating_sub(first).div_ceil(step);
        let keep = self.real_to.saturating_sub(first).div_ceil(step).min(n);
        let count = keep.saturating_sub(skip);
        Rows {
            first: first + skip * step,
            step: if count > 1 { step } else { 1 },
            count,
            windows: None,
        }
    }

    /// Pairs of a window of `p..p+windows` and a tap of `r..r+taps` that touch a real row.
    pub(super) fn pairs(&self, p: u64, windows: u64, r: u64, taps: u64) -> u64 {
        let mut pairs = 0;
        for tap in r..r + taps {
            let offset = tap * self.dilation;
            let from = self.real_from.saturating_sub(offset).div_ceil(self.stride).max(p);
            let to = self
                .real_to
                .saturating_sub(offset)
                .div_ceil(self.stride)
                .min(p + windows);
            pairs += to.saturating_sub(from);
        }
        pairs
    }

    fn gapped(&self, p: u64, windows: u64, r: u64, taps: u64) -> Rows {
        let from = p * self.stride + r * self.dilation;
        let windows = Windows {
            p,
            windows,
            r,
            taps,
            to: from + (windows - 1) * self.stride + (taps - 1) * self.dilation + 1,
        };
        let mut rows = Rows {
            first: 0,
            step: 1,
            count: 0,
            windows: Some(windows),
        };
        let mut first = None;
        for y in from.max(self.real_from)..windows.to.min(self.real_to) {
            if windows.contains(self, y) {
                rows.count += 1;
                first.get_or_insert(y);
            }
        }
        rows.first = first.unwrap_or(0);
        rows
    }

    /// Number of rows in both sets.
    #[inline]
    pub(super) fn common(&self, a: &Rows, b: &Rows) -> u64 {
        if a.count == 0 || b.count == 0 {
            return 0;
        }
        if a.windows.is_none() && b.windows.is_none() && a.step == b.step {
            if a.step > 1 && a.first % a.step != b.first % a.step {
                return 0;
            }
            let from = a.first.max(b.first);
            let to = (a.first + (a.count - 1) * a.step).min(b.first + (b.count - 1) * b.step);
            return if to < from { 0 } else { (to - from) / a.step + 1 };
        }
        (a.first..a.end(self))
            .filter(|&y| self.contains(a, y) && self.contains(b, y))
            .count() as u64
    }

    /// Number of rows in all three sets.
    pub(super) fn common_to_three(&self, a: &Rows, b: &Rows, c: &Rows) -> u64 {
        if a.count == 0 || b.count == 0 || c.count == 0 {
            return 0;
        }
        (a.first..a.end(self))
            .filter(|&y| self.contains(a, y) && self.contains(b, y) && self.contains(c, y))
            .count() as u64
    }

    /// True if the sets are equal.
    #[inline]
    pub(super) fn same(&self, a: &Rows, b: &Rows) -> bool {
        a == b || (a.count == b.count && self.common(a, b) == a.count)
    }

    fn contains(&self, rows: &Rows, y: u64) -> bool {
        match &rows.windows {
            Some(windows) => y >= self.real_from && y < self.real_to && windows.contains(self, y),
            None => {
                y >= rows.first
                    && (y - rows.first).is_multiple_of(rows.step)
                    && (y - rows.first) / rows.step < rows.count
            }
        }
    }
}

/// A set of real rows: an arithmetic progression, or the general pattern of windows and taps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Rows {
    /// First row.
    pub(super) first: u64,
    /// Distance of two rows; 1 if there is only one.
    pub(super) step: u64,
    /// Number of rows.
    pub(super) count: u64,
    windows: Option<Windows>,
}

impl Rows {
    fn end(&self, axis: &AffineAxis) -> u64 {
        match &self.windows {
            Some(windows) => windows.to.min(axis.real_to),
            None => self.first + (self.count - 1) * self.step + 1,
        }
    }
}

/// A pattern with gaps that is no arithmetic progression: kernel smaller than the stride.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Windows {
    p: u64,
    windows: u64,
    r: u64,
    taps: u64,
    to: u64,
}

impl Windows {
    fn contains(&self, axis: &AffineAxis, y: u64) -> bool {
        (self.r..self.r + self.taps).any(|r| {
            y.checked_sub(r * axis.dilation).is_some_and(|w| {
                w.is_multiple_of(axis.stride) && (self.p..self.p + self.windows).contains(&(w / axis.stride))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn slow(stride: u64, dilation: u64, real: &std::ops::Range<u64>, t: (u64, u64, u64, u64)) -> BTreeSet<u64> {
        let all = (t.0..t.0 + t.1).flat_map(|p| (t.2..t.2 + t.3).map(move |r| p * stride + r * dilation));
        all.filter(|y| real.contains(y)).collect()
    }

    #[test]
    fn counts_overlaps_and_equality_are_those_of_the_sets() {
        let tiles = [
            (0, 1, 0, 1),
            (0, 3, 0, 2),
            (1, 2, 0, 3),
            (2, 3, 1, 1),
            (1, 1, 0, 3),
            (4, 2, 1, 2),
            (3, 4, 0, 1),
        ];
        for (stride, dilation) in [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (3, 2), (2, 3), (4, 2), (4, 1)] {
            for real in [0..40, 2..7, 1..9, 3..3] {
                let axis = AffineAxis::new(stride, dilation, &real);
                for a in tiles {
                    let (sa, ra) = (slow(stride, dilation, &real, a), axis.rows(a.0, a.1, a.2, a.3));
                    assert_eq!(ra.count, sa.len() as u64, "{stride} {dilation} {real:?} {a:?}");
                    let one_by_one = (a.0..a.0 + a.1).flat_map(|p| (a.2..a.2 + a.3).map(move |r| (p, 1, r, 1)));
                    let pairs = one_by_one
                        .map(|t| slow(stride, dilation, &real, t).len() as u64)
                        .sum::<u64>();
                    assert_eq!(axis.pairs(a.0, a.1, a.2, a.3), pairs);
                    for b in tiles {
                        let (sb, rb) = (slow(stride, dilation, &real, b), axis.rows(b.0, b.1, b.2, b.3));
                        assert_eq!(
                            axis.common(&ra, &rb),
                            sa.intersection(&sb).count() as u64,
                            "{a:?} {b:?}"
                        );
                        assert_eq!(
                            axis.same(&ra, &rb),
                            sa == sb,
                            "{stride} {dilation} {real:?} {a:?} {b:?}"
                        );
                        let c = axis.rows(1, 3, 0, 3);
                        let sc = slow(stride, dilation, &real, (1, 3, 0, 3));
                        let three = sa.iter().filter(|y| sb.contains(y) && sc.contains(y)).count() as u64;
                        assert_eq!(axis.common_to_three(&ra, &rb, &c), three);
                    }
                }
            }
        }
    }
}
