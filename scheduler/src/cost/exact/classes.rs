//! Residencies of tensors whose tiles are either equal or disjoint.
//!
//! Along a dimension that a tensor depends on without overlap, two settings of its loops select the same tile or
//! disjoint ones. So the tile changes whenever a loop further out moves while some *effective* loop of such a
//! dimension lies inside it, that is one with more than one existing trip, edge tiles and the instance's
//! coordinates considered. Everything inside the innermost effective loop is one residency (rule 3). This module sorts
//! the digit strings of a dimension by the position of that loop.

use super::nest::{Digit, MAX_LEVELS, Role, existing, last_obeys, positions, suffixes};

/// Position of "no loop": before all others.
pub(super) const NOWHERE: i32 = -1;

/// Strings of one dimension that agree in everything that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class {
    /// How many strings.
    pub(super) count: u64,
    /// Extent of the tile.
    pub(super) extent: u64,
    /// True for the string of the last, clipped tile.
    pub(super) last: bool,
    /// Position of the innermost effective loop, as each level of the chain sees it.
    pub(super) innermost: [i32; MAX_LEVELS],
    /// Σ over the strings of their positions in the mesh below each level.
    pub(super) at: [(u64, u64); MAX_LEVELS],
    /// False if there are no spatial loops, and `at` is 0.
    pub(super) placed: bool,
}

/// The levels from which a residency is seen: for operands only the child, for outputs every level from the
/// outermost to the child that keeps them, because an output residency ends with its parent's (rule 4).
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain<'a> {
    /// Digits of the dimension outside each level of the chain; the last entry is the child's.
    pub(super) outside: &'a [usize],
    /// Per level of the chain: loops before this position end every residency anyway (0 at and outside the PE level;
    /// inside it, where nothing outlives a burst, the first loop of the PE level).
    pub(super) floor: &'a [i32],
}

/// Sorts the strings of `digits`, all coordinates and all temporal settings, into classes. `full` and `last` are the
/// extents of a full tile and of the last one.
pub(super) fn relevant(digits: &[Digit], chain: Chain<'_>, full: u64, last: u64, out: &mut Vec<Class>) {
    out.clear();
    let len = digits.len();
    debug_assert_eq!(chain.outside.last(), Some(&len));
    for k in 0..=len {
        let free: u64 = digits[(k + 1).min(len)..].iter().map(|d| d.trips).product();
        let below = if k < len { digits[k].bound } else { 1 };
        if below == 0 {
            continue;
        }
        let mut class = Class {
            count: below * free,
            extent: if k < len { full } else { last },
            last: k == len,
            innermost: [NOWHERE; MAX_LEVELS],
            at: [(0, 0); MAX_LEVELS],
            placed: false,
        };
        place(digits, k, k, &mut class);
        let splits = k < len && !digits[k].spatial && digits[k].bound == 1;
        if !splits {
            mark(digits, chain, k, usize::MAX, &mut class);
            push(out, class);
            continue;
        }
        // The loop moves once, from 0 to 1, but 1 exists only for coordinates that fit under the bound: sort by
        // the first spatial digit that exceeds it.
        let mut rest = class.count;
        let mut inside = free;
        for u in k + 1..len {
            if !digits[u].spatial {
                break;
            }
            inside /= digits[u].trips;
            let exceeding = (digits[u].trips - 1 - digits[u].bound) * inside;
            if exceeding > 0 {
                let mut split = Class {
                    count: exceeding,
                    ..class
                };
                rest -= exceeding;
                place(digits, k, u, &mut split);
                for (at, part) in class.at.iter_mut().zip(&split.at) {
                    *at = (at.0 - part.0, at.1 - part.1);
                }
                mark(digits, chain, k, u, &mut split);
                push(out, split);
            }
        }
        if rest > 0 {
            class.count = rest;
            mark(digits, chain, k, usize::MAX, &mut class);
            push(out, class);
        }
    }
}

/// Sums the positions of strings that fall below the bound at digit `k`, and with `u` > `k` follow it from there to
/// digit `u`, where they exceed it.
fn place(digits: &[Digit], k: usize, u: usize, class: &mut Class) {
    if class.placed {
        class.at = [(0, 0); MAX_LEVELS];
    }
    for (i, digit) in digits.iter().enumerate().filter(|(_, d)| d.spatial) {
        // Twice the mean value: the values of a digit are evenly spread where they are not fixed.
        let twice = if i < k {
            2 * digit.bound
        } else if i == k {
            digit.bound - 1
        } else if i < u {
            2 * digit.bound
        } else if i == u && u > k {
            digit.bound + digit.trips
        } else {
            digit.trips - 1
        };
        class.placed = true;
        let at = &mut class.at[digit.level];
        at.0 += digit.step.0 * twice * class.count / 2;
        at.1 += digit.step.1 * twice * class.count / 2;
    }
}

/// Fills in the innermost effective loop of strings that fall below the bound at digit `k` and whose spatial digits
/// after it exceed the bound first at digit `exceeds`.
fn mark(digits: &[Digit], chain: Chain<'_>, k: usize, exceeds: usize, class: &mut Class) {
    let mut outer = NOWHERE;
    for ((slot, &outside), &floor) in class.innermost.iter_mut().zip(chain.outside).zip(chain.floor) {
        let seen = &digits[..outside];
        let counts = |d: &Digit| !d.spatial && d.position >= floor;
        let inner = seen.iter().skip(k + 1).rev().find(|d| counts(d));
        let here = match inner {
            Some(digit) => digit.position,
            None if k < outside && counts(&digits[k]) && (digits[k].bound > 1 || exceeds >= outside) => {
                digits[k].position
            }
            None => seen[..k.min(outside)]
                .iter()
                .rev()
                .find(|d| counts(d) && d.bound > 0)
                .map_or(NOWHERE, |d| d.position),
        };
        outer = outer.max(here);
        if floor > 0 {
            outer = outer.max(floor);
        }
        *slot = outer;
    }
}

fn push(out: &mut Vec<Class>, class: Class) {
    let same = |c: &&mut Class| c.extent == class.extent && c.last == class.last && c.innermost == class.innermost;
    match out.iter_mut().find(same) {
        Some(known) => {
            known.count += class.count;
            if class.placed {
                for (at, part) in known.at.iter_mut().zip(&class.at) {
                    *at = (at.0 + part.0, at.1 + part.1);
                }
            }
        }
        None => out.push(class),
    }
}

/// How many strings have how many members, and where their members stand in the mesh of one network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Degree {
    /// Members of one group along the dimension.
    pub(super) members: u64,
    /// Sums over the groups.
    pub(super) span: Span,
}

impl Degree {
    /// One group of one member in the corner.
    pub(super) const ONE: Degree = Degree {
        members: 1,
        span: Span::singles(1, (0, 0)),
    };
}

/// Sums over groups of members in a mesh. The members of a group are a product over the dimensions, and a position is
/// a sum over them; so sums of products follow from products of sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Span {
    /// How many groups.
    pub(super) count: u64,
    /// Σ of the largest horizontal position.
    pub(super) across: u64,
    /// Σ of the columns in use.
    pub(super) columns: u64,
    /// Σ over the columns in use of the largest vertical position there.
    pub(super) along: u64,
}

impl Span {
    /// `count` groups with one member each, whose positions sum to `at`.
    pub(super) const fn singles(count: u64, at: (u64, u64)) -> Self {
        Span {
            count,
            across: at.0,
            columns: count,
            along: at.1,
        }
    }

    /// The groups of two sets of dimensions.
    pub(super) const fn times(self, other: Span) -> Span {
        Span {
            count: self.count * other.count,
            across: self.across * other.count + other.across * self.count,
            columns: self.columns * other.columns,
            along: self.along * other.columns + other.along * self.columns,
        }
    }

    /// Both.
    pub(super) const fn plus(self, other: Span) -> Span {
        Span {
            count: self.count + other.count,
            across: self.across + other.across,
            columns: self.columns + other.columns,
            along: self.along + other.along,
        }
    }

    /// All but those of `other`.
    pub(super) const fn minus(self, other: Span) -> Span {
        Span {
            count: self.count - other.count,
            across: self.across - other.across,
            columns: self.columns - other.columns,
            along: self.along - other.along,
        }
    }

    /// Σ of the links of the X-then-Y trees from the corner to the members.
    pub(super) const fn links(self) -> u64 {
        self.across + self.along
    }
}

/// `count` groups whose members are the first `members` settings of the spatial digits in `block`.
pub(super) fn fan(block: &[Digit], members: u64, count: u64) -> Span {
    if members == 0 {
        return Span::default();
    }
    let (across, columns, along) = match block {
        [] => (0, 1, 0),
        [digit] if digit.step.0 > 0 => ((members - 1) * digit.step.0, members, 0),
        [digit] => (0, 1, (members - 1) * digit.step.1),
        _ => {
            let mut heights = std::collections::BTreeMap::new();
            for value in 0..members {
                let (x, y) = stands(block, value);
                let height = heights.entry(x).or_insert(0);
                *height = y.max(*height);
            }
            let across = heights.keys().next_back().copied().unwrap_or(0);
            (across, heights.len() as u64, heights.values().sum::<u64>())
        }
    };
    Span {
        count,
        across: across * count,
        columns: columns * count,
        along: along * count,
    }
}

/// Position of setting `value` of the digits in `block`.
pub(super) fn stands(block: &[Digit], value: u64) -> (u64, u64) {
    let (mut rest, mut at) = (value, (0, 0));
    for digit in block.iter().rev() {
        let own = rest % digit.trips;
        rest /= digit.trips;
        at = (at.0 + own * digit.step.0, at.1 + own * digit.step.1);
    }
    at
}

/// Groups along a dimension: `members_at` is the contiguous range of spatial digits that count as members, every
/// other digit obeys `role`. At most three different sizes occur. `level` names the network whose mesh matters.
pub(super) fn degrees(
    digits: &[Digit],
    members_at: std::ops::Range<usize>,
    level: Option<usize>,
    role: impl Fn(&Digit) -> Role + Copy,
    out: &mut [Degree; 3],
) -> usize {
    if members_at.is_empty() {
        let count = existing(digits, role);
        let at = match level {
            Some(level) if digits.iter().any(|d| d.spatial && d.level == level) => positions(digits, level, role),
            _ => (0, 0),
        };
        out[0] = Degree {
            members: 1,
            span: Span::singles(count, at),
        };
        return usize::from(count > 0);
    }
    let (prefix, block, suffix) = (
        &digits[..members_at.start],
        &digits[members_at.clone()],
        &digits[members_at.end..],
    );
    let at_bound = u64::from(last_obeys(prefix, role));
    let before = existing(prefix, role) - at_bound;
    let (mut radix, mut bound) = (1, 0);
    for digit in block {
        radix *= digit.trips;
        bound = bound * digit.trips + digit.bound;
    }
    let (all, at_most) = suffixes(suffix, role);
    let mut len = 0;
    for (members, count) in [
        (radix, before * all),
        (bound + 1, at_bound * at_most),
        (bound, at_bound * (all - at_most)),
    ] {
        if members == 0 || count == 0 {
            continue;
        }
        let span = fan(block, members, count);
        match out[..len].iter_mut().find(|d| d.members == members) {
            Some(known) => known.span = known.span.plus(span),
            None => {
                out[len] = Degree { members, span };
                len += 1;
            }
        }
    }
    len
}
