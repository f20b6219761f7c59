//! The flattened loop nest and counting over the digit strings of one dimension.
//!
//! The index of a dimension is the mixed-radix number of its loops, outermost first, so a setting of the loops of
//! levels 0..c−1 is a *digit string* per dimension. It exists if and only if it is lexicographically at most the
//! digits of `bound − 1`. Every count below is a count of strings under constraints on single digits, which one
//! pass from the innermost digit outward gives.

use cyclonest_arch::{Accelerator, Axis, Mapping};
use cyclonest_workloads::{Dim, DimMap, Problem};

use crate::cost::CostError;

/// Most storage levels that the model takes.
pub(super) const MAX_LEVELS: usize = 8;
/// Most loops with more than one trip per dimension.
pub(super) const MAX_DIGITS: usize = 16;

/// A loop with more than one trip.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Digit {
    /// Position among all loops of the nest, outermost first.
    pub(super) position: i32,
    /// Trip count.
    pub(super) trips: u64,
    /// This digit of `bound − 1`.
    pub(super) bound: u64,
    /// Product of the trips of the loops of the same dimension further in.
    pub(super) weight: u64,
    /// Level that the loop belongs to.
    pub(super) level: usize,
    /// True for a spatial loop.
    pub(super) spatial: bool,
    /// Distance of two neighbouring values in the child mesh, horizontally and vertically.
    pub(super) step: (u64, u64),
}

/// What a digit may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Any value.
    Free,
    /// Only this value.
    Exactly(u64),
    /// This value or more; at least 1.
    AtLeast(u64),
}

/// The loops of one dimension.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Digits {
    digits: [Digit; MAX_DIGITS],
    len: usize,
}

/// A mapping as one list of loops.
#[derive(Debug, Clone, Default)]
pub(super) struct Nest {
    /// Bounds of the problem.
    pub(super) bounds: DimMap<u64>,
    /// Digits of every dimension.
    pub(super) dims: DimMap<Digits>,
    /// Per level: how many digits of each dimension belong to levels further out. One more entry stands for the
    /// lanes' fan-out, the spatial loops of the innermost level.
    prefix: Vec<DimMap<usize>>,
    /// Per level, and for the lanes' fan-out: extent of its tile in each dimension, before clipping.
    extent: Vec<DimMap<u64>>,
    /// Per level: position of its first loop.
    start: Vec<i32>,
}

impl Role {
    /// Only 0.
    pub(super) const ZERO: Role = Role::Exactly(0);
}

impl Nest {
    /// Takes in a mapping; the memory of the last one is reused.
    ///
    /// # Errors
    /// If the mapping does not have the machine's levels, does not cover the bounds, or is larger than the model takes.
    pub(super) fn set(&mut self, problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<(), CostError> {
        let levels = arch.levels.len();
        let invalid = |message: String| Err(CostError::Invalid(message));
        if mapping.levels.len() != levels {
            return invalid(format!(
                "{} levels in the mapping, {levels} in {}",
                mapping.levels.len(),
                arch.name
            ));
        }
        if levels == 0 || levels > MAX_LEVELS {
            return invalid(format!("{levels} levels, 1 to {MAX_LEVELS} are expected"));
        }
        self.bounds = problem.bounds;
        for digits in &mut self.dims.0 {
            digits.len = 0;
        }
        self.prefix.clear();
        self.extent.clear();
        self.start.clear();
        let mut position = 0;
        for (level, entry) in mapping.levels.iter().enumerate() {
            self.prefix.push(DimMap::from_fn(|d| self.dims[d].len));
            self.start.push(position);
            let loops = entry.temporal.iter().map(|t| (t.0, t.1, None));
            let spatial = entry.spatial.iter().map(|s| (s.0, s.1, Some(s.2)));
            for (dim, trips, axis) in loops.chain(spatial) {
                if trips == 0 {
                    return invalid(format!("{}: a loop over {dim} of 0 trips", entry.level));
                }
                if trips > 1 {
                    let digits = &mut self.dims[dim];
                    if digits.len == MAX_DIGITS {
                        return invalid(format!("more than {MAX_DIGITS} loops over {dim}"));
                    }
                    digits.digits[digits.len] = Digit {
                        position,
                        trips,
                        level,
                        spatial: axis.is_some(),
                        // The axis is marked here; distances follow below.
                        step: match axis {
                            Some(Axis::X) => (1, 0),
                            Some(Axis::Y) => (0, 1),
                            None => (0, 0),
                        },
                        ..Digit::default()
                    };
                    digits.len += 1;
                    position += 1;
                }
            }
            // The last spatial loop of an axis is the least significant.
            let (mut x, mut y) = (1, 1);
            for s in entry.spatial.iter().rev().filter(|s| s.1 > 1) {
                let mut first_of = self.dims[s.0].len;
                let digits = &mut self.dims[s.0].digits;
                // Loops of one dimension are met in reverse order; those done have a weight already.
                while digits[first_of - 1].weight != 0 {
                    first_of -= 1;
                }
                let digit = &mut digits[first_of - 1];
                digit.weight = 1;
                match s.2 {
                    Axis::X => {
                        digit.step = (x, 0);
                        x *= s.1;
                    }
                    Axis::Y => {
                        digit.step = (0, y);
                        y *= s.1;
                    }
                }
            }
        }
        let fan_out = |d: &Digits| {
            let innermost = |d: &&Digit| d.spatial && d.level == levels - 1;
            d.digits[..d.len].iter().filter(innermost).count()
        };
        self.prefix
            .push(DimMap::from_fn(|d| self.dims[d].len - fan_out(&self.dims[d])));
        self.extent.resize(levels + 1, DimMap::ones());
        for dim in Dim::ALL {
            let bound = problem.bounds[dim];
            let digits = &mut self.dims[dim];
            let mut weight = 1_u64;
            let mut rest = bound - 1;
            let mut i = digits.len;
            for level in (0..levels).rev() {
                while i > self.prefix[level][dim] {
                    i -= 1;
                    let digit = &mut digits.digits[i];
                    digit.weight = weight;
                    digit.bound = rest % digit.trips;
                    rest /= digit.trips;
                    weight = weight.saturating_mul(digit.trips);
                }
                self.extent[level][dim] = weight;
            }
            let lanes = &digits.digits[self.prefix[levels][dim]..digits.len];
            self.extent[levels][dim] = lanes.iter().map(|d| d.trips).product();
            if rest > 0 {
                return invalid(format!("{dim}: the loops cover {weight} of {bound}"));
            }
        }
        Ok(())
    }

    /// Digits of `dim` that belong to levels further out than `level`.
    pub(super) fn outside(&self, level: usize, dim: Dim) -> &[Digit] {
        &self.dims[dim].digits[..self.prefix[level][dim]]
    }

    /// Digits of `dim` that belong to `level` or to levels further in.
    pub(super) fn inside(&self, level: usize, dim: Dim) -> &[Digit] {
        let digits = &self.dims[dim];
        &digits.digits[self.prefix[level][dim]..digits.len]
    }

    /// Extent of the tile of `level` along `dim`, before clipping.
    pub(super) fn extent(&self, level: usize, dim: Dim) -> u64 {
        self.extent[level][dim]
    }

    /// Position of the first loop of `level`.
    pub(super) fn start(&self, level: usize) -> i32 {
        self.start[level]
    }

    /// Number of storage levels; as a level, it stands for the lanes' fan-out.
    pub(super) fn levels(&self) -> usize {
        self.start.len()
    }

    /// Extent of the last tile of `level` along `dim`, the one that the bound clips.
    pub(super) fn last_extent(&self, level: usize, dim: Dim) -> u64 {
        let extent = self.extent(level, dim);
        (self.bounds[dim] - 1) % extent + 1
    }
}

/// Number of existing strings whose digits obey `role`.
pub(super) fn existing(digits: &[Digit], role: impl Fn(&Digit) -> Role) -> u64 {
    suffixes(digits, role).1
}

/// Number of strings whose digits obey `role`: of all, and of those at most `bound − 1`.
pub(super) fn suffixes(digits: &[Digit], role: impl Fn(&Digit) -> Role) -> (u64, u64) {
    let (mut all, mut at_most) = (1_u64, 1_u64);
    for digit in digits.iter().rev() {
        match role(digit) {
            Role::Free => {
                at_most += digit.bound * all;
                all = all.saturating_mul(digit.trips);
            }
            Role::Exactly(value) => {
                if value < digit.bound {
                    at_most = all;
                } else if value > digit.bound {
                    at_most = 0;
                }
            }
            Role::AtLeast(value) => {
                at_most = if digit.bound < value {
                    0
                } else {
                    (digit.bound - value) * all + at_most
                };
                all = all.saturating_mul(digit.trips.saturating_sub(value));
            }
        }
    }
    (all, at_most)
}

/// Σ over the existing strings that obey `role` of their position in the child mesh of the network below `level`,
/// horizontally and vertically.
pub(super) fn positions(digits: &[Digit], level: usize, role: impl Fn(&Digit) -> Role) -> (u64, u64) {
    let (mut all, mut at_most) = (1_u64, 1_u64);
    let (mut all_at, mut at_most_at) = ((0, 0), (0, 0));
    for digit in digits.iter().rev() {
        let here = digit.spatial && digit.level == level;
        let step = if here { digit.step } else { (0, 0) };
        let bound = digit.bound;
        let (from, to) = match role(digit) {
            Role::Free => (0, digit.trips),
            Role::Exactly(value) => (value, value + 1),
            Role::AtLeast(value) => (value, digit.trips.max(value)),
        };
        // Values from..to in all, of which those below `bound` leave the rest free and `bound` leaves it bounded.
        let below = to.min(bound).max(from);
        let tight = from <= bound && bound < to;
        let sum = |from: u64, to: u64| (to * to.saturating_sub(1) - from * from.saturating_sub(1)) / 2;
        let one = |all_at: u64, at_most_at: u64, step: u64| {
            let free = (below - from) * all_at + step * sum(from, below) * all;
            free + if tight { at_most_at + step * bound * at_most } else { 0 }
        };
        at_most_at = (one(all_at.0, at_most_at.0, step.0), one(all_at.1, at_most_at.1, step.1));
        all_at = (
            (to - from) * all_at.0 + step.0 * sum(from, to) * all,
            (to - from) * all_at.1 + step.1 * sum(from, to) * all,
        );
        at_most = (below - from) * all + if tight { at_most } else { 0 };
        all = all.saturating_mul(to - from);
    }
    at_most_at
}

/// True if `bound − 1` itself obeys `role`.
pub(super) fn last_obeys(digits: &[Digit], role: impl Fn(&Digit) -> Role) -> bool {
    digits.iter().all(|digit| match role(digit) {
        Role::Free => true,
        Role::Exactly(value) => digit.bound == value,
        Role::AtLeast(value) => digit.bound >= value,
    })
}
