//! Residencies of the inputs inside one block: a run of steps that leave N, G and C alone.
//!
//! Tiles of the inputs overlap (halos, and P×R combinations that select the same rows), so their residencies
//! cannot be read off the loops: a tile may be contained in an earlier one that is still there. Between two changes
//! of N, G or C, though, only the loops over P, R, Q, S and K inside the innermost effective N, G or C loop move.
//! The walk goes through these steps once per *context*, an equivalence class of everything further out: all
//! contexts that neither padding nor a bound cuts look alike.

use cyclonest_workloads::Dim;

use super::axis::Axis;
use super::classes::Span;
use super::nest::{Digit, MAX_LEVELS, Nest, Role};
use super::rows::burst_rows;
use super::window::{AffineAxis, Rows};
use crate::cost::CostError;

/// What the walk needs to know of the stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Route {
    /// Level that is read.
    pub(super) parent: usize,
    /// Level that is filled.
    pub(super) child: usize,
    /// Networks that serve several children with one pass, by the level above them.
    pub(super) multicast: [bool; MAX_LEVELS],
    /// True if the child keeps overlaps.
    pub(super) halo: bool,
    /// True if the child does not keep the tensor: every step is a residency of its own (rule 6).
    pub(super) streamed: bool,
    /// True inside the PE level: a residency ends when the tile changes at all, and nothing is kept.
    pub(super) inside: bool,
}

/// Groups of transfers, for one context; all fields describe one group or pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    /// What the entry counts.
    pub(super) what: What,
    /// New rows × columns.
    pub(super) elements: u64,
    /// Children that the pass serves.
    pub(super) degree: u64,
    /// How many such groups or passes, and where the children stand in the mesh.
    pub(super) span: Span,
    /// Setting of the loops over K that are part of the walk.
    pub(super) pattern: Pattern,
}

/// What a [`Group`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A transfer to a single member: one read, one fill, one pass of degree 1 on each network.
    Single,
    /// Reads at the parent.
    Read,
    /// Fills at the child.
    Fill,
    /// Passes through the network below this level.
    Pass(usize),
}

/// Loops over K that lie outside a loop of the walk, as constraints on their digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pattern {
    roles: [(i32, u32, bool); Pattern::MAX],
    len: usize,
}

impl Pattern {
    const MAX: usize = 8;

    /// Constraint on the digit at `position`: 0 unless the walk includes the loop.
    pub(super) fn role(&self, position: i32) -> Role {
        match self.roles[..self.len].iter().find(|r| r.0 == position) {
            Some(&(_, value, true)) => Role::AtLeast(u64::from(value)),
            Some(&(_, value, false)) => Role::Exactly(u64::from(value)),
            None => Role::ZERO,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Inner {
    dim: Dim,
    trips: u64,
    weight: u64,
    position: i32,
}

#[derive(Debug, Clone, Copy)]
struct Start {
    row: usize,
    column: usize,
    kept: Option<(Rows, Rows)>,
    elements: u64,
}

/// Digits whose settings read one by one; lanes that differ elsewhere share a read.
pub(super) type Apart<'a> = &'a dyn Fn(&Digit) -> bool;

/// Memory of the walk, reused from one to the next.
#[derive(Debug, Clone, Default)]
pub(super) struct Walk {
    rows: Axis,
    columns: Axis,
    inner: Vec<Inner>,
    loaded: Vec<Option<(Rows, Rows)>>,
    saved: Vec<Option<(Rows, Rows)>>,
    starts: Vec<Start>,
    codes: Vec<(u64, u64, (u64, u64))>,
    heights: Vec<(u64, u64)>,
    raw: Vec<Group>,
    /// The groups in `raw` from here on have the pattern of the current step.
    fresh: usize,
    groups: Vec<Group>,
    /// More loops over K stand outside others than a pattern holds.
    overflow: bool,
}

impl Walk {
    /// Groups of the inputs' transfers from `route.parent` to `route.child` over all contexts, when the innermost
    /// effective loop of N, G and C stands at position `innermost`.
    ///
    /// # Errors
    /// If more loops over K stand outside others than the model takes.
    pub(super) fn groups(
        &mut self,
        nest: &Nest,
        route: &Route,
        axes: &[AffineAxis; 2],
        innermost: i32,
        apart: Apart<'_>,
    ) -> Result<&[Group], CostError> {
        self.overflow = false;
        self.inner.clear();
        let inside = |d: &&Digit| !d.spatial && d.position >= innermost;
        for dim in [Dim::P, Dim::R, Dim::Q, Dim::S, Dim::K] {
            self.inner
                .extend(nest.outside(route.child, dim).iter().filter(inside).map(|d| Inner {
                    dim,
                    trips: d.trips,
                    weight: d.weight,
                    position: d.position,
                }));
        }
        self.inner.sort_unstable_by_key(|l| l.position);
        // Loops over K inside all others stay at 0 when a residency starts.
        while self.inner.last().is_some_and(|l| l.dim == Dim::K) {
            self.inner.pop();
        }
        // Those outside all others change no tile, either, but the state that they meet is not the initial one.
        self.rows.set(nest, route, axes[0], (Dim::P, Dim::R), innermost);
        self.columns.set(nest, route, axes[1], (Dim::Q, Dim::S), innermost);
        self.groups.clear();
        for row in 0..self.rows.contexts.len() {
            for column in 0..self.columns.contexts.len() {
                let (row, column) = (self.rows.contexts[row], self.columns.contexts[column]);
                self.raw.clear();
                self.fresh = 0;
                self.loaded.clear();
                self.loaded
                    .resize(self.rows.members.len() * self.columns.members.len(), None);
                self.descend(
                    nest,
                    route,
                    apart,
                    0,
                    [row.p, row.r, column.p, column.r],
                    &Pattern::default(),
                );
                for group in &mut self.raw {
                    let contexts = Span::singles(row.count * column.count, (0, 0));
                    group.span = group.span.times(contexts);
                }
                merge(&mut self.groups, &self.raw);
            }
        }
        if self.overflow {
            return Err(CostError::NotExpressible(format!(
                "more than {} loops over K outside loops that change the tile of inputs",
                Pattern::MAX
            )));
        }
        Ok(&self.groups)
    }

    fn descend(
        &mut self,
        nest: &Nest,
        route: &Route,
        apart: Apart<'_>,
        depth: usize,
        base: [u64; 4],
        pattern: &Pattern,
    ) {
        let Some(&looped) = self.inner.get(depth) else {
            return self.step(nest, route, apart, base, pattern);
        };
        let (at, bound) = match looped.dim {
            Dim::P => (0, self.rows.bounds.0),
            Dim::R => (1, self.rows.bounds.1),
            Dim::Q => (2, self.columns.bounds.0),
            Dim::S => (3, self.columns.bounds.1),
            _ => return self.repeat(nest, route, apart, depth, base, pattern),
        };
        let mut base = base;
        for _ in 0..looped.trips {
            if base[at] >= bound {
                break;
            }
            self.descend(nest, route, apart, depth + 1, base, pattern);
            base[at] += looped.weight;
        }
    }

    /// A loop over K: the same tiles again, until an iteration leaves the state as it found it.
    fn repeat(
        &mut self,
        nest: &Nest,
        route: &Route,
        apart: Apart<'_>,
        depth: usize,
        base: [u64; 4],
        pattern: &Pattern,
    ) {
        let looped = self.inner[depth];
        if pattern.len == Pattern::MAX {
            self.overflow = true;
            return;
        }
        for value in 0..looped.trips {
            let mut inner = *pattern;
            inner.roles[inner.len] = (looped.position, value as u32, false);
            inner.len += 1;
            let from = self.raw.len();
            self.fresh = from;
            let mut saved = std::mem::take(&mut self.saved);
            saved.clone_from(&self.loaded);
            self.descend(nest, route, apart, depth + 1, base, &inner);
            let unchanged = saved == self.loaded;
            self.saved = saved;
            if unchanged {
                // What this iteration did, all later ones do.
                for group in &mut self.raw[from..] {
                    group.pattern.roles[pattern.len].2 = true;
                }
                break;
            }
        }
        self.fresh = self.raw.len();
    }

    fn step(&mut self, nest: &Nest, route: &Route, apart: Apart<'_>, base: [u64; 4], pattern: &Pattern) {
        self.rows.place(base[0], base[1]);
        self.columns.place(base[2], base[3]);
        self.starts.clear();
        let columns = self.columns.members.len();
        for (i, row) in self.rows.members.iter().enumerate() {
            for (j, column) in self.columns.members.iter().enumerate() {
                if row.rows.count == 0 || column.rows.count == 0 {
                    let exists = row.exists && column.exists;
                    if route.inside && exists {
                        // Padding only: needs no operand, but the tile has changed.
                        self.loaded[i * columns + j] = None;
                    }
                    continue;
                }
                if route.streamed {
                    let elements = burst_rows(
                        nest,
                        route.child,
                        &self.rows.affine,
                        (Dim::P, Dim::R),
                        (base[0] + row.p, base[1] + row.r),
                        apart,
                    ) * burst_rows(
                        nest,
                        route.child,
                        &self.columns.affine,
                        (Dim::Q, Dim::S),
                        (base[2] + column.p, base[3] + column.r),
                        apart,
                    );
                    self.starts.push(Start {
                        row: i,
                        column: j,
                        kept: None,
                        elements,
                    });
                    continue;
                }
                let loaded = &mut self.loaded[i * columns + j];
                let (r, c) = (&row.rows, &column.rows);
                let mut kept = None;
                let mut elements = r.count * c.count;
                if let Some((lr, lc)) = loaded
                    && route.inside
                {
                    if self.rows.affine.same(r, lr) && self.columns.affine.same(c, lc) {
                        continue;
                    }
                } else if let Some((lr, lc)) = loaded {
                    let common = (self.rows.affine.common(r, lr), self.columns.affine.common(c, lc));
                    if common == (r.count, c.count) {
                        continue;
                    }
                    if route.halo && common.0 * common.1 > 0 {
                        kept = Some((*lr, *lc));
                        elements -= common.0 * common.1;
                    }
                }
                *loaded = Some((*r, *c));
                self.starts.push(Start {
                    row: i,
                    column: j,
                    kept,
                    elements,
                });
            }
        }
        if self.rows.members.len() * columns == 1 {
            if let Some(start) = self.starts.first() {
                // Most steps are like the one before.
                if let Some(last) = self.raw[self.fresh..].last_mut()
                    && last.elements == start.elements
                {
                    last.span = last.span.plus(Span::singles(1, (0, 0)));
                    return;
                }
                self.raw.push(Group {
                    what: What::Single,
                    elements: start.elements,
                    degree: 1,
                    span: Span::singles(1, (0, 0)),
                    pattern: *pattern,
                });
            }
            return;
        }
        self.group(route, pattern);
    }

    /// Splits the residencies that start at one step into multicast groups (rule 10).
    fn group(&mut self, route: &Route, pattern: &Pattern) {
        while let Some(first) = self.starts.pop() {
            let (fr, fc) = (&self.rows.members[first.row], &self.columns.members[first.column]);
            self.codes.clear();
            let mut group = vec![first];
            let mut i = 0;
            while i < self.starts.len() {
                let other = self.starts[i];
                let (or, oc) = (&self.rows.members[other.row], &self.columns.members[other.column]);
                let same = or.fixed == fr.fixed
                    && oc.fixed == fc.fixed
                    && other.elements == first.elements
                    && self.rows.affine.same(&or.rows, &fr.rows)
                    && self.columns.affine.same(&oc.rows, &fc.rows)
                    && match (&first.kept, &other.kept) {
                        (None, None) => true,
                        (Some(a), Some(b)) => {
                            same_part(&self.rows.affine, &fr.rows, &a.0, &b.0)
                                && same_part(&self.columns.affine, &fc.rows, &a.1, &b.1)
                        }
                        _ => false,
                    };
                if same {
                    group.push(other);
                    self.starts.swap_remove(i);
                } else {
                    i += 1;
                }
            }
            let mut push = |what, degree, span| {
                self.raw.push(Group {
                    what,
                    elements: first.elements,
                    degree,
                    span,
                    pattern: *pattern,
                });
            };
            push(What::Read, 1, Span::singles(1, (0, 0)));
            push(What::Fill, 1, Span::singles(group.len() as u64, (0, 0)));
            for level in route.parent..route.child {
                let code = |start: &Start, to: usize| {
                    let (r, c) = (&self.rows.members[start.row], &self.columns.members[start.column]);
                    u64::from(r.codes[to]) << 32 | u64::from(c.codes[to])
                };
                self.codes.clear();
                self.codes.extend(group.iter().map(|s| {
                    let pass = if level == route.parent { 0 } else { code(s, level - 1) };
                    let (r, c) = (&self.rows.members[s.row], &self.columns.members[s.column]);
                    let at = (r.at[level].0 + c.at[level].0, r.at[level].1 + c.at[level].1);
                    (pass, code(s, level), at)
                }));
                self.codes.sort_unstable();
                self.codes.dedup();
                let mut from = 0;
                while from < self.codes.len() {
                    let pass = self.codes[from].0;
                    let children = self.codes[from..].iter().take_while(|c| c.0 == pass).count();
                    self.heights.clear();
                    self.heights
                        .extend(self.codes[from..from + children].iter().map(|&(_, _, at)| at));
                    self.heights.sort_unstable();
                    let mut span = Span {
                        count: 1,
                        across: self.heights.last().map_or(0, |at| at.0),
                        ..Span::default()
                    };
                    for (i, at) in self.heights.iter().enumerate() {
                        if self.heights.get(i + 1).is_none_or(|next| next.0 != at.0) {
                            span.columns += 1;
                            span.along += at.1;
                        }
                    }
                    push(What::Pass(level), children as u64, span);
                    from += children;
                }
            }
        }
    }
}

/// True if `tile ∩ a` and `tile ∩ b` are equal.
fn same_part(axis: &AffineAxis, tile: &Rows, a: &Rows, b: &Rows) -> bool {
    if a == b {
        return true;
    }
    let count = axis.common(tile, a);
    count == axis.common(tile, b) && count == axis.common_to_three(tile, a, b)
}

fn merge(into: &mut Vec<Group>, raw: &[Group]) {
    for group in raw {
        let same = |g: &&mut Group| {
            g.elements == group.elements
                && g.what == group.what
                && g.degree == group.degree
                && g.pattern == group.pattern
        };
        match into.iter_mut().find(same) {
            Some(known) => known.span = known.span.plus(group.span),
            None => into.push(*group),
        }
    }
}
