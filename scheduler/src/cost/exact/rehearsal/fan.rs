//! How many transfers and reads there are per instance, from the spatial loops.

use cyclonest_workloads::{Dim, Tensor};

use crate::cost::exact::hardware::{FREE, Hardware, PLAIN};
use crate::cost::exact::nest::{Digit, Nest, Role, existing as strings, last_obeys};
use crate::cost::exact::window::AffineAxis;

/// Iterations of a spatial loop that have work.
pub(super) fn existing(nest: &Nest, dim: Dim, digit: &Digit) -> u64 {
    digit.trips.min(nest.bounds[dim].div_ceil(digit.weight))
}

/// Settings of the spatial loops of `level` over `dim` that have work, on the mean over the temporal settings of the
/// loops outside `child`, or inside the PE level over the first ones. With `sized`, a clipped tile counts as the part
/// that is left of it.
pub(super) fn members(nest: &Nest, child: usize, level: usize, dim: Dim, sized: bool) -> f64 {
    let loops = || spatial(nest, level, dim);
    if level >= child {
        return loops().map(|d| existing(nest, dim, d)).product::<u64>() as f64;
    }
    let trips: u64 = loops().map(|d| d.trips).product();
    if trips == 1 {
        return 1.0;
    }
    let digits = nest.outside(child, dim);
    let extent = nest.extent(child, dim);
    let clipped = if sized {
        extent - nest.last_extent(child, dim)
    } else {
        0
    };
    let sum = |role: &dyn Fn(&Digit) -> Role| {
        let last = if last_obeys(digits, role) { clipped } else { 0 };
        (strings(digits, role) * extent - last) as f64
    };
    let all = sum(&|d| {
        if d.spatial && d.level != level {
            Role::ZERO
        } else {
            Role::Free
        }
    });
    all / sum(&|d| if d.spatial { Role::ZERO } else { Role::Free })
}

/// Product of [`members`] over all dimensions, those over which `tensor` is shared left out.
pub(super) fn fan(
    nest: &Nest,
    child: usize,
    level: usize,
    axes: &[AffineAxis; 2],
    tensor: Tensor,
    shares: bool,
    all: bool,
) -> f64 {
    let loops = |dim| spatial(nest, level, dim);
    let free = FREE[tensor as usize];
    let along = |dim: Dim| members(nest, child, level, dim, all || !free.contains(&dim));
    let mut product = 1.0;
    let inputs = tensor == Tensor::Inputs;
    for dim in Dim::ALL {
        let axis = matches!(dim, Dim::P | Dim::Q | Dim::R | Dim::S);
        if !(shares && (free.contains(&dim) || inputs && axis)) {
            product *= along(dim);
        }
    }
    if shares && inputs {
        for (axis, (p, r)) in axes.iter().zip([(Dim::P, Dim::R), (Dim::Q, Dim::S)]) {
            let full = |dim| loops(dim).map(|d| existing(nest, dim, d)).product::<u64>();
            let (windows, taps) = (full(p), full(r));
            let distinct = sharing(windows, taps, step(loops(p)), step(loops(r)), axis);
            product *= along(p) * along(r) * distinct as f64 / (windows * taps) as f64;
        }
    }
    product
}

pub(super) fn spatial(nest: &Nest, level: usize, dim: Dim) -> impl Iterator<Item = &Digit> {
    let inside = nest.inside(level, dim).iter();
    inside.take_while(move |d| d.level == level).filter(|d| d.spatial)
}

fn step<'a>(loops: impl Iterator<Item = &'a Digit>) -> u64 {
    loops.map(|d| d.weight).min().unwrap_or(1)
}

/// Distinct values of stride·w·i + dilation·v·j for i < `windows` and j < `taps`: what is left of their product when
/// points that differ by the smallest translation between equal values are counted once.
fn sharing(windows: u64, taps: u64, window: u64, tap: u64, axis: &AffineAxis) -> u64 {
    if windows == 1 || taps == 1 {
        return windows * taps;
    }
    let (mut a, mut b) = (window * axis.stride, tap * axis.dilation);
    let (x, y) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    let (x, y) = (x / a, y / a);
    windows * taps - windows.saturating_sub(y) * taps.saturating_sub(x)
}

/// Reads of `tensor` by the lanes or by the level `next` per temporal trip inside a PE: one for each that differs.
pub(super) fn distinct(
    nest: &Nest,
    hardware: &Hardware,
    axes: &[AffineAxis; 2],
    tensor: Tensor,
    levels: std::ops::Range<usize>,
) -> f64 {
    let innermost = nest.levels() - 1;
    levels
        .map(|level| {
            if tensor == Tensor::Outputs {
                let joins = level == innermost || hardware.reduces[level];
                let along = |dim| members(nest, hardware.event, level, dim, false);
                let kept = |dim: &Dim| !(joins && dim.is_reduction());
                return Dim::ALL.into_iter().filter(kept).map(along).product();
            }
            let shares = level == innermost || hardware.multicast[level].contains(tensor);
            fan(nest, hardware.event, level, axes, tensor, shares, false)
        })
        .product()
}

/// Inputs that stream into a PE that bypasses them, in a step with full tiles (rule 6).
pub(super) fn streamed_inputs(
    nest: &Nest,
    keeps: &[[bool; 3]],
    hardware: &Hardware,
    event: usize,
    axes: &[AffineAxis; 2],
) -> f64 {
    let levels = nest.levels();
    let tensor = Tensor::Inputs;
    let t = tensor as usize;
    let next = (event + 1..levels).find(|&level| keeps[level][t]).unwrap_or(levels);
    let mut elements = distinct(nest, hardware, axes, tensor, event..next);
    // Loops inside the innermost one that changes the tile of `next` do not fill it again.
    let mut innermost = -1;
    let temporal = |dim: Dim| {
        let outside = nest.outside(next, dim).len();
        let from = nest.outside(event, dim).len();
        nest.inside(0, dim)[from..outside].iter().filter(|d| !d.spatial)
    };
    for dim in Dim::ALL {
        if !FREE[t].contains(&dim) {
            innermost = temporal(dim).map(|d| d.position).fold(innermost, i32::max);
        }
    }
    for dim in Dim::ALL {
        let free = FREE[t].contains(&dim);
        for digit in temporal(dim) {
            if !free || next == levels || digit.position < innermost {
                elements *= existing(nest, dim, digit) as f64;
            }
        }
    }
    // The tile of `next`, or what one lane takes.
    let extent = |dim: Dim| if next < levels { nest.extent(next, dim) } else { 1 };
    for &dim in PLAIN[t] {
        elements *= extent(dim) as f64;
    }
    for (axis, (p, r)) in axes.iter().zip([(Dim::P, Dim::R), (Dim::Q, Dim::S)]) {
        let unpadded = AffineAxis {
            real_from: 0,
            real_to: u64::MAX,
            ..*axis
        };
        elements *= unpadded.rows(0, extent(p), 0, extent(r)).count as f64;
        elements *= real_share(axis, (nest.bounds[p], nest.bounds[r]));
    }
    elements
}

/// The share of all pairs of a window and a tap that touch a real row.
pub(super) fn real_share(axis: &AffineAxis, bounds: (u64, u64)) -> f64 {
    let real = axis.pairs(0, bounds.0, 0, bounds.1);
    real as f64 / (bounds.0 * bounds.1) as f64
}
