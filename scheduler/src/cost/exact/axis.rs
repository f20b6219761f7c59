//! One affine axis of the walk: the settings outside the block, and the child instances inside.

use cyclonest_workloads::Dim;

use super::nest::{Digit, MAX_LEVELS, Nest};
use super::rows::odometer;
use super::walk::Route;
use super::window::{AffineAxis, Rows};

/// A setting of everything outside the block along one axis, with the number of settings like it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    pub(super) p: u64,
    pub(super) r: u64,
    pub(super) key: [u64; 4],
    pub(super) count: u64,
}

/// A child instance below one parent instance, along one axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub(super) p: u64,
    pub(super) r: u64,
    /// Coordinates at networks without multicast, as one number.
    pub(super) fixed: u64,
    /// Coordinates at the networks from the parent's down to each level, as one number.
    pub(super) codes: [u32; MAX_LEVELS],
    /// Position in the mesh below each level, as far as this axis goes.
    pub(super) at: [(u64, u64); MAX_LEVELS],
    pub(super) rows: Rows,
    /// False past the bounds.
    pub(super) exists: bool,
}

/// One affine axis of the walk.
#[derive(Debug, Clone, Default)]
pub(super) struct Axis {
    pub(super) affine: AffineAxis,
    pub(super) contexts: Vec<Context>,
    pub(super) members: Vec<Member>,
    pub(super) bounds: (u64, u64),
    pub(super) extents: (u64, u64),
    /// What the members' tiles are those of.
    placed: Option<(u64, u64)>,
}

impl Axis {
    pub(super) fn set(&mut self, nest: &Nest, route: &Route, affine: AffineAxis, dims: (Dim, Dim), innermost: i32) {
        self.affine = affine;
        self.bounds = (nest.bounds[dims.0], nest.bounds[dims.1]);
        self.extents = (nest.extent(route.child, dims.0), nest.extent(route.child, dims.1));
        let outside = (nest.outside(route.child, dims.0), nest.outside(route.child, dims.1));
        let on_path = |d: &Digit| d.spatial && d.level >= route.parent;
        let outer = |d: &Digit| {
            if d.spatial {
                d.level < route.parent
            } else {
                d.position < innermost
            }
        };
        // How far windows and taps reach beyond the base of a context.
        let reach = |digits: &[Digit], extent: u64| {
            digits
                .iter()
                .filter(|d| !outer(d))
                .map(|d| (d.trips - 1) * d.weight)
                .sum::<u64>()
                + extent
        };
        let reach = (reach(outside.0, self.extents.0), reach(outside.1, self.extents.1));
        let rows = (reach.0 - 1) * affine.stride + (reach.1 - 1) * affine.dilation + 1;
        self.contexts.clear();
        let (bounds, contexts) = (self.bounds, &mut self.contexts);
        odometer(outside.0, outer, bounds.0, &mut |p| {
            odometer(outside.1, outer, bounds.1, &mut |r| {
                let first = p * affine.stride + r * affine.dilation;
                let key = [
                    reach.0.min(bounds.0 - p),
                    reach.1.min(bounds.1 - r),
                    affine.real_from.saturating_sub(first),
                    affine.real_to.saturating_sub(first).min(rows),
                ];
                match contexts.iter_mut().rev().find(|c| c.key == key) {
                    Some(known) => known.count += 1,
                    None => contexts.push(Context { p, r, key, count: 1 }),
                }
            });
        });
        self.placed = None;
        self.members.clear();
        self.members.push(Member {
            p: 0,
            r: 0,
            fixed: 0,
            codes: [0; MAX_LEVELS],
            at: [(0, 0); MAX_LEVELS],
            rows: Rows::default(),
            exists: true,
        });
        for level in route.parent..route.child {
            for (is_tap, digits) in [(false, outside.0), (true, outside.1)] {
                for digit in digits.iter().filter(|d| on_path(d) && d.level == level) {
                    self.unroll(digit, is_tap, route.multicast[level]);
                }
            }
            for member in &mut self.members {
                let code = member.codes[level];
                member.codes[level + 1..].fill(code);
            }
        }
    }

    fn unroll(&mut self, digit: &Digit, is_tap: bool, multicast: bool) {
        let known = self.members.len();
        for value in 0..digit.trips {
            for i in 0..known {
                let mut member = self.members[i];
                if is_tap {
                    member.r += value * digit.weight;
                } else {
                    member.p += value * digit.weight;
                }
                let at = &mut member.at[digit.level];
                *at = (at.0 + value * digit.step.0, at.1 + value * digit.step.1);
                let code = &mut member.codes[digit.level];
                *code = *code * digit.trips as u32 + value as u32;
                if !multicast {
                    member.fixed = member.fixed * digit.trips + value;
                } else {
                    member.fixed *= digit.trips;
                }
                self.members.push(member);
            }
        }
        self.members.drain(..known);
    }

    /// Sets the tiles of all members for a step.
    pub(super) fn place(&mut self, p: u64, r: u64) {
        if self.placed.replace((p, r)) == Some((p, r)) {
            return;
        }
        for member in &mut self.members {
            let (p, r) = (p + member.p, r + member.r);
            member.exists = p < self.bounds.0 && r < self.bounds.1;
            member.rows = if !member.exists {
                Rows::default()
            } else {
                let windows = self.extents.0.min(self.bounds.0 - p);
                let taps = self.extents.1.min(self.bounds.1 - r);
                self.affine.rows(p, windows, r, taps)
            };
        }
    }
}
