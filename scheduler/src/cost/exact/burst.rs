//! What happens inside the PE level in a burst (rules 6, 14 and 15).

use cyclonest_workloads::{Dim, Problem, Tensor};

use super::classes::{Chain, Class, relevant};
use super::hardware::{FREE, Hardware, PLAIN};
use super::joined::{EVERYWHERE, combine};
use super::nest::{Digit, MAX_DIGITS, Nest, Role, existing};
use super::rows::{odometer, shared_rows};
use super::tally::Tally;
use super::window::AffineAxis;

/// Dimensions along which a tile is the last, clipped one, as bits in the order of [`Dim`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clipped(u8);

impl Clipped {
    /// From bits in the order of `dims`.
    pub(super) fn of(dims: &[Dim], bits: u8) -> Self {
        Clipped(0).with(dims, bits)
    }

    /// Adds dimensions.
    pub(super) fn with(self, dims: &[Dim], bits: u8) -> Self {
        let set = dims.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1);
        Clipped(set.fold(self.0, |all, (_, &dim)| all | 1 << dim as u8))
    }

    fn has(self, dim: Dim) -> bool {
        self.0 >> dim as u8 & 1 == 1
    }
}

/// The inside of a PE, as one operand sees it that the PE level bypasses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Burst<'a> {
    nest: &'a Nest,
    hardware: &'a Hardware,
    tensor: Tensor,
    /// The first level inside that keeps the tensor, or the lanes.
    next: usize,
}

impl<'a> Burst<'a> {
    /// The inside of the PEs of a mapping.
    pub(super) fn new(nest: &'a Nest, keeps: &[[bool; 3]], hardware: &'a Hardware, tensor: Tensor) -> Self {
        let kept = |&level: &usize| keeps[level][tensor as usize];
        Burst {
            nest,
            hardware,
            tensor,
            next: (hardware.event + 1..nest.levels()).find(kept).unwrap_or(nest.levels()),
        }
    }

    /// True for spatial loops whose instances do not share a read; the lanes' own fan-out always does.
    pub(super) fn apart(&self, digit: &Digit) -> bool {
        digit.spatial
            && digit.level + 1 < self.nest.levels()
            && !self.hardware.multicast[digit.level].contains(self.tensor)
    }

    /// Loops of a dimension between the PE level and `next`, with the bounds of a full or of the last tile.
    fn loops(&self, dim: Dim, last: bool) -> ([Digit; MAX_DIGITS], usize) {
        let mut digits = [Digit::default(); MAX_DIGITS];
        let outside = self.nest.outside(self.hardware.event, dim).len();
        let inside = &self.nest.outside(self.next, dim)[outside..];
        digits[..inside.len()].copy_from_slice(inside);
        if !last {
            for digit in &mut digits {
                digit.bound = digit.trips.saturating_sub(1);
            }
        }
        (digits, inside.len())
    }

    /// Settings of the loops over `dim` that read on their own, in a burst on a full or on the last tile.
    pub(super) fn settings(&self, dim: Dim, last: bool) -> u64 {
        self.settings_outside(dim, last, EVERYWHERE)
    }

    fn settings_outside(&self, dim: Dim, last: bool, innermost: i32) -> u64 {
        let (digits, len) = self.loops(dim, last);
        existing(&digits[..len], |d| {
            let own = if d.spatial {
                self.apart(d)
            } else {
                d.position < innermost
            };
            if own { Role::Free } else { Role::ZERO }
        })
    }

    /// Weights that stream into the PE in one step: what the first level inside that keeps them, or the lanes, read.
    pub(super) fn weights(&self, clipped: Clipped, classes: &mut [Vec<Class>; 5]) -> u64 {
        let lanes = self.next == self.nest.levels();
        for (&dim, classes) in PLAIN[Tensor::Weights as usize].iter().zip(classes.iter_mut()) {
            let (digits, len) = self.loops(dim, clipped.has(dim));
            let extent = self.nest.extent(self.next, dim);
            let last = if clipped.has(dim) {
                self.nest.last_extent(self.next, dim)
            } else {
                extent
            };
            let chain = Chain {
                outside: &[len],
                floor: &[0],
            };
            relevant(&digits[..len], chain, extent, last, classes);
        }
        let mut sum = 0;
        combine(classes, |joined| {
            let innermost = if lanes { EVERYWHERE } else { joined.innermost[0] };
            let settings: u64 = FREE[Tensor::Weights as usize]
                .iter()
                .map(|&dim| self.settings_outside(dim, clipped.has(dim), innermost))
                .product();
            sum += joined.count * joined.size * settings;
        });
        sum
    }
}

/// Counts what the lanes read and write at the innermost level of each tensor's chain.
pub(super) fn count(nest: &Nest, problem: &Problem, hardware: &Hardware, tally: &mut Tally) {
    tally.macs = problem.macs();
    for tensor in Tensor::ALL {
        let Some(last) = tally.last(tensor) else { continue };
        let outputs = tensor == Tensor::Outputs;
        // The lanes' own fan-out always broadcasts and always reduces.
        let one_by_one = |d: &Digit| {
            let joined = match outputs {
                true => hardware.reduces[d.level],
                false => hardware.multicast[d.level].contains(tensor),
            };
            !d.spatial || d.level < last || (d.level + 1 < nest.levels() && !joined)
        };
        let settings: u64 = FREE[tensor as usize]
            .iter()
            .map(|&dim| {
                existing(
                    nest.inside(0, dim),
                    |d| {
                        if one_by_one(d) { Role::Free } else { Role::ZERO }
                    },
                )
            })
            .product();
        let size: u64 = PLAIN[tensor as usize].iter().map(|&dim| nest.bounds[dim]).product();
        let lines = |stride, dilation, real: &std::ops::Range<u64>, dims| {
            lane_rows(nest, last, &AffineAxis::new(stride, dilation, real), dims, &one_by_one)
        };
        let elements = size
            * settings
            * match tensor {
                Tensor::Inputs => {
                    lines(
                        problem.stride.0,
                        problem.dilation.0,
                        &problem.real_rows(),
                        (Dim::P, Dim::R),
                    ) * lines(
                        problem.stride.1,
                        problem.dilation.1,
                        &problem.real_columns(),
                        (Dim::Q, Dim::S),
                    )
                }
                _ => 1,
            };
        let access = tally.at(last, tensor);
        if outputs {
            access.updates += elements;
            access.reads += elements - access.opened;
        } else {
            access.reads += elements;
        }
    }
}

/// Pairs of a row and coordinates that read on their own, summed over all trips.
fn lane_rows(
    nest: &Nest,
    last: usize,
    axis: &AffineAxis,
    dims: (Dim, Dim),
    one_by_one: &dyn Fn(&Digit) -> bool,
) -> u64 {
    let (p, r) = (nest.inside(0, dims.0), nest.inside(0, dims.1));
    let inner = (nest.inside(last, dims.0), nest.inside(last, dims.1));
    let bounds = (nest.bounds[dims.0], nest.bounds[dims.1]);
    if p.iter().chain(r).all(one_by_one) {
        return axis.pairs(0, bounds.0, 0, bounds.1);
    }
    let mut sum = 0;
    odometer(p, one_by_one, bounds.0, &mut |p| {
        odometer(r, one_by_one, bounds.1, &mut |r| {
            sum += shared_rows(axis, inner, (p, r), bounds, one_by_one);
        });
    });
    sum
}
