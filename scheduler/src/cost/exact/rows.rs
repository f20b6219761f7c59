//! Rows that lanes touch together.

use cyclonest_workloads::Dim;

use super::nest::{Digit, Nest};
use super::window::AffineAxis;

/// Pairs of a row and the coordinates in `apart`, summed over the temporal trips of one burst of `level` that starts
/// at `base` (rule 15). Lanes whose coordinates are equal where `apart` says so share a read.
pub(super) fn burst_rows(
    nest: &Nest,
    level: usize,
    affine: &AffineAxis,
    dims: (Dim, Dim),
    base: (u64, u64),
    apart: &dyn Fn(&Digit) -> bool,
) -> u64 {
    let inner = (nest.inside(level, dims.0), nest.inside(level, dims.1));
    let bounds = (nest.bounds[dims.0], nest.bounds[dims.1]);
    let one_by_one = |d: &Digit| !d.spatial || apart(d);
    if inner.0.iter().chain(inner.1).all(one_by_one) {
        let windows = nest.extent(level, dims.0).min(bounds.0 - base.0);
        let taps = nest.extent(level, dims.1).min(bounds.1 - base.1);
        return affine.pairs(base.0, windows, base.1, taps);
    }
    let mut sum = 0;
    odometer(inner.0, one_by_one, bounds.0 - base.0, &mut |p| {
        odometer(inner.1, one_by_one, bounds.1 - base.1, &mut |r| {
            sum += shared_rows(affine, inner, (base.0 + p, base.1 + r), bounds, &one_by_one);
        });
    });
    sum
}

/// Distinct rows that the lanes touch together: all settings of the digits that are not `one_by_one`.
pub(super) fn shared_rows(
    affine: &AffineAxis,
    inner: (&[Digit], &[Digit]),
    base: (u64, u64),
    bounds: (u64, u64),
    one_by_one: &dyn Fn(&Digit) -> bool,
) -> u64 {
    let together = |d: &Digit| !one_by_one(d);
    let width = |digits: &[Digit]| digits.iter().filter(|d| together(d)).map(|d| d.trips).product::<u64>();
    let dense = |digits: &[Digit]| {
        let first = digits.iter().position(together).unwrap_or(digits.len());
        digits[first..].iter().all(together)
    };
    if dense(inner.0) && dense(inner.1) {
        let windows = width(inner.0).min(bounds.0 - base.0);
        let taps = width(inner.1).min(bounds.1 - base.1);
        return affine.rows(base.0, windows, base.1, taps).count;
    }
    // The settings need not be neighbours.
    let mut seen = std::collections::BTreeSet::new();
    odometer(inner.0, together, bounds.0 - base.0, &mut |p| {
        odometer(inner.1, together, bounds.1 - base.1, &mut |r| {
            let rows = affine.rows(base.0 + p, 1, base.1 + r, 1);
            if rows.count > 0 {
                seen.insert(rows.first);
            }
        });
    });
    seen.len() as u64
}

/// Calls `visit` with the value of every setting of the digits in `which`, all others 0, that is below `bound`.
pub(super) fn odometer(
    digits: &[Digit],
    which: impl Fn(&Digit) -> bool + Copy,
    bound: u64,
    visit: &mut dyn FnMut(u64),
) {
    fn go(digits: &[Digit], which: &dyn Fn(&Digit) -> bool, value: u64, bound: u64, visit: &mut dyn FnMut(u64)) {
        match digits.split_first() {
            None => visit(value),
            Some((digit, rest)) => {
                let trips = if which(digit) { digit.trips } else { 1 };
                for i in 0..trips {
                    let value = value + i * digit.weight;
                    if value >= bound {
                        break;
                    }
                    go(rest, which, value, bound, visit);
                }
            }
        }
    }
    if bound > 0 {
        go(digits, &which, 0, bound, visit);
    }
}
