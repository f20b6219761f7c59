//! Sizes of tiles in elements: what a residency takes in a buffer.

use std::ops::Range;

use cyclonest_workloads::{Dim, DimMap, Problem, Tensor};

use crate::Mapping;

impl Mapping {
    /// Extents of the tile of `level` before clipping, `None` where a product overflows: per dimension the
    /// product of all trip counts at `level` and further in.
    fn checked_extents(&self, level: usize) -> DimMap<Option<u64>> {
        let mut extents = DimMap([Some(1_u64); 8]);
        for entry in self.levels.iter().skip(level) {
            let temporal = entry.temporal.iter().map(|l| (l.0, l.1));
            let spatial = entry.spatial.iter().map(|s| (s.0, s.1));
            for (dim, trips) in temporal.chain(spatial) {
                extents[dim] = extents[dim].and_then(|n| n.checked_mul(trips));
            }
        }
        extents
    }

    /// Extents of the largest tile of `level`, clipped at the bounds of `problem`.
    #[must_use]
    pub fn tile_extents(&self, problem: &Problem, level: usize) -> DimMap<u64> {
        let extents = self.checked_extents(level);
        DimMap::from_fn(|dim| extents[dim].unwrap_or(u64::MAX).min(problem.bounds[dim]))
    }

    /// Elements of `tensor` in the largest tile that `level` keeps, over all positions of the tile.
    ///
    /// For inputs these are distinct rows × distinct columns: holes between strided windows and padding are not
    /// stored and not counted.
    #[must_use]
    pub fn tile_elements(&self, problem: &Problem, level: usize, tensor: Tensor) -> u64 {
        elements(problem, &self.tile_extents(problem, level), tensor)
    }
}

/// Elements of `tensor` in the largest tile with these extents (already clipped at the bounds).
#[must_use]
pub fn elements(problem: &Problem, extents: &DimMap<u64>, tensor: Tensor) -> u64 {
    let e = extents;
    let product = |dims: &[Dim]| dims.iter().map(|&d| e[d]).fold(1, u64::saturating_mul);
    match tensor {
        Tensor::Weights => product(&[Dim::G, Dim::K, Dim::C, Dim::R, Dim::S]),
        Tensor::Outputs => product(&[Dim::N, Dim::G, Dim::K, Dim::P, Dim::Q]),
        Tensor::Inputs => {
            let axis = |windows, taps, stride, dilation, real| Axis {
                windows: problem.bounds[windows],
                taps: problem.bounds[taps],
                stride,
                dilation,
                real,
            };
            let rows = axis(
                Dim::P,
                Dim::R,
                problem.stride.0,
                problem.dilation.0,
                problem.real_rows(),
            );
            let columns = axis(
                Dim::Q,
                Dim::S,
                problem.stride.1,
                problem.dilation.1,
                problem.real_columns(),
            );
            product(&[Dim::N, Dim::G, Dim::C])
                .saturating_mul(rows.largest(e[Dim::P], e[Dim::R]))
                .saturating_mul(columns.largest(e[Dim::Q], e[Dim::S]))
        }
    }
}

/// One direction of the input: which rows (columns) the windows and taps touch.
struct Axis {
    windows: u64,
    taps: u64,
    stride: u64,
    dilation: u64,
    real: Range<u64>,
}

impl Axis {
    /// Most distinct real rows that a tile of `windows` × `taps` touches, over its positions.
    fn largest(&self, windows: u64, taps: u64) -> u64 {
        let anywhere = distinct(windows, self.stride, taps, self.dilation);
        let mut most = 0;
        for window in (0..self.windows).step_by(windows as usize) {
            for tap in (0..self.taps).step_by(taps as usize) {
                let windows = windows.min(self.windows - window);
                let taps = taps.min(self.taps - tap);
                let first = window * self.stride + tap * self.dilation;
                let last = first + (windows - 1) * self.stride + (taps - 1) * self.dilation;
                let here = if self.real.contains(&first) && self.real.contains(&last) {
                    distinct(windows, self.stride, taps, self.dilation)
                } else {
                    self.real_rows(first, windows, taps)
                };
                most = most.max(here);
                if most == anywhere {
                    return most;
                }
            }
        }
        most
    }

    /// Distinct rows of the tile that begins at row `first`, padding left out.
    fn real_rows(&self, first: u64, windows: u64, taps: u64) -> u64 {
        // Row w·s + t·d is also reached by (w − d/g, t + s/g), g = gcd(s, d): count it at the last such pair.
        let (dw, dt) = self.steps();
        let rows_of = |tap: u64| {
            let windows = if tap + dt < taps { windows.min(dw) } else { windows };
            let start = first + tap * self.dilation;
            let before = |row: u64| row.saturating_sub(start).div_ceil(self.stride).min(windows);
            before(self.real.end) - before(self.real.start)
        };
        (0..taps).map(rows_of).sum()
    }

    const fn steps(&self) -> (u64, u64) {
        let g = gcd(self.stride, self.dilation);
        (self.dilation / g, self.stride / g)
    }
}

/// Distinct values of w·stride + t·dilation for w < `windows` and t < `taps`.
const fn distinct(windows: u64, stride: u64, taps: u64, dilation: u64) -> u64 {
    let g = gcd(stride, dilation);
    let again = windows
        .saturating_sub(dilation / g)
        .saturating_mul(taps.saturating_sub(stride / g));
    windows.saturating_mul(taps).saturating_sub(again)
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use cyclonest_workloads::{Padding, Pair};

    use super::*;

    /// Every tile position and every row spelled out.
    fn largest_by_enumeration(axis: &Axis, windows: u64, taps: u64) -> u64 {
        let mut most = 0;
        for w0 in (0..axis.windows).step_by(windows as usize) {
            for t0 in (0..axis.taps).step_by(taps as usize) {
                let mut rows = std::collections::BTreeSet::new();
                for w in w0..(w0 + windows).min(axis.windows) {
                    for t in t0..(t0 + taps).min(axis.taps) {
                        rows.insert(w * axis.stride + t * axis.dilation);
                    }
                }
                most = most.max(rows.iter().filter(|r| axis.real.contains(r)).count() as u64);
            }
        }
        most
    }

    #[test]
    fn rows_of_a_tile_equal_their_enumeration() {
        for windows in 1..7 {
            for taps in 1..5 {
                for stride in 1..5 {
                    for dilation in 1..4 {
                        for (top, bottom) in [(0, 0), (1, 0), (2, 3)] {
                            let extent = (windows - 1) * stride + (taps - 1) * dilation + 1;
                            let axis = Axis {
                                windows,
                                taps,
                                stride,
                                dilation,
                                real: top..extent.saturating_sub(bottom).max(top),
                            };
                            for w in 1..=windows {
                                for t in 1..=taps {
                                    assert_eq!(
                                        axis.largest(w, t),
                                        largest_by_enumeration(&axis, w, t),
                                        "{w} of {windows} windows, {t} of {taps} taps, stride {stride}, \
                                         dilation {dilation}, padding {top} {bottom}"
                                    );
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_whole_input_is_what_the_problem_touches() {
        let mut problem = Problem::new(DimMap([2, 1, 8, 3, 7, 9, 3, 1]));
        problem.stride = Pair(2, 3);
        problem.padding = Padding {
            top: 1,
            ..Padding::default()
        };
        assert_eq!(
            elements(&problem, &problem.bounds.clone(), Tensor::Inputs),
            problem.touched(Tensor::Inputs)
        );
    }
}
