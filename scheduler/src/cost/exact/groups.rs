//! Groups of child instances along dimensions that a tensor does not depend on.

use cyclonest_workloads::Dim;

use super::classes::{Degree, Span, degrees, fan};
use super::nest::{Digit, MAX_DIGITS, MAX_LEVELS, Nest, Role, existing};
use super::rows::odometer;

/// Receives the roles of temporal and of spatial digits.
pub(super) type Roles<'a> = &'a mut dyn FnMut(&dyn Fn(&Digit) -> Role, &dyn Fn(&Digit) -> Role);

/// The levels from `first` on that are `chosen`, as bits.
pub(super) fn levels_from(first: usize, chosen: impl Fn(usize) -> bool) -> u32 {
    let levels = (first..MAX_LEVELS).filter(|&level| chosen(level));
    levels.fold(0, |bits, level| bits | 1 << level)
}

/// Groups of child instances along dimensions that a tensor does not depend on.
#[derive(Clone, Copy)]
pub(super) struct Groups<'a> {
    pub(super) nest: &'a Nest,
    pub(super) dims: &'static [Dim],
    pub(super) child: usize,
    /// Dimensions along which the last, clipped tile is sent something else, so that its members are a group of
    /// their own.
    pub(super) split: [bool; 3],
    /// Networks that bring the members along the dimensions together, as bits by the level above.
    pub(super) grouped: u32,
    pub(super) temporal: &'a dyn Fn(&Digit) -> Role,
    /// Only the last visit of each output tile, below parents at this level.
    pub(super) last_visits_from: Option<usize>,
}

impl Groups<'_> {
    /// Calls `send` with the members, the dimensions along which they have the last tile and the number of passes through the network below `level`, or of
    /// groups (with one member each) if there is none.
    pub(super) fn passes(&self, level: Option<usize>, send: &mut dyn FnMut(u64, u8, Span)) {
        // Along a dimension without spatial loops at this network there is one member, and only settings to count.
        let mut settings = 1;
        let mut complex = [0; 3];
        let mut len = 0;
        for (i, &dim) in self.dims.iter().enumerate() {
            let here = |d: &Digit| d.spatial && Some(d.level) == level;
            if !self.split[i] && !self.nest.outside(self.child, dim).iter().any(here) {
                settings *= self.count(i, level);
            } else {
                complex[len] = i;
                len += 1;
            }
        }
        let settings = Span::singles(settings, (0, 0));
        match complex[..len] {
            [] => send(1, 0, settings),
            [i] => {
                let mut list = Along::default();
                self.along(i, level, &mut list);
                for a in list.entries() {
                    send(a.0.members, u8::from(a.1) << i, a.0.span.times(settings));
                }
            }
            _ => {
                let mut lists = [Along::default(); 3];
                for (i, list) in lists.iter_mut().enumerate() {
                    if complex[..len].contains(&i) {
                        self.along(i, level, list);
                    } else {
                        list.add(Degree::ONE, false);
                    }
                    if list.len == 0 {
                        return;
                    }
                }
                for a in lists[0].entries() {
                    for b in lists[1].entries() {
                        for c in lists[2].entries() {
                            send(
                                a.0.members * b.0.members * c.0.members,
                                u8::from(a.1) | u8::from(b.1) << 1 | u8::from(c.1) << 2,
                                a.0.span.times(b.0.span).times(c.0.span).times(settings),
                            );
                        }
                    }
                }
            }
        }
    }

    /// Number of groups.
    pub(super) fn total(&self) -> u64 {
        (0..self.dims.len()).map(|i| self.count(i, None)).product()
    }

    fn groups(&self, level: usize) -> bool {
        self.grouped >> level & 1 == 1
    }

    /// Role of a spatial digit at the network below `level`: what the networks further in join counts once.
    fn joined(&self, digit: &Digit, level: Option<usize>) -> bool {
        level.is_none_or(|level| digit.level > level) && self.groups(digit.level)
    }

    /// Number of groups along dimension `i`, at the network below `level` or of all.
    fn count(&self, i: usize, level: Option<usize>) -> u64 {
        let digits = self.nest.outside(self.child, self.dims[i]);
        let Some(parent) = self.last_visits_from else {
            return existing(digits, |d| match d.spatial {
                false => (self.temporal)(d),
                true if self.joined(d, level) => Role::ZERO,
                true => Role::Free,
            });
        };
        let mut sum = 0;
        self.last_visits(i, parent, &mut |temporal, spatial| {
            sum += existing(digits, |d| match d.spatial {
                false => temporal(d),
                true if self.joined(d, level) => Role::ZERO,
                true => spatial(d),
            });
        });
        sum
    }

    fn along(&self, i: usize, level: Option<usize>, list: &mut Along) {
        match self.last_visits_from {
            None => self.add_along(i, level, &|d| (self.temporal)(d), &|_| Role::Free, list),
            Some(parent) => self.last_visits(i, parent, &mut |temporal, spatial| {
                self.add_along(i, level, temporal, spatial, list);
            }),
        }
    }

    /// A visit is a tile's last if it takes in the last temporal setting of the reduction, as the corner of the whole
    /// machine sees it; iterations that do not exist belong to the residency before them.
    ///
    /// Calls `visit` with the roles of temporal and of spatial digits, once for every setting above the parent.
    fn last_visits(&self, i: usize, parent: usize, visit: Roles<'_>) {
        let dim = self.dims[i];
        let digits = self.nest.outside(self.child, dim);
        let bound = self.nest.bounds[dim];
        let mut last = [0; MAX_DIGITS];
        let mut reached = 0;
        for (digit, last) in digits.iter().zip(&mut last).filter(|(d, _)| !d.spatial) {
            *last = ((bound - 1 - reached) / digit.weight).min(digit.trips - 1);
            reached += *last * digit.weight;
        }
        let value = |digit: &Digit, of: &[u64]| {
            let at = digits.iter().position(|d| d.position == digit.position);
            at.map_or(0, |at| of[at])
        };
        let above = |d: &Digit| d.spatial && d.level < parent;
        odometer(digits, above, bound, &mut |base| {
            let temporal = |d: &Digit| match (self.temporal)(d) {
                Role::Free => Role::Exactly(value(d, &last)),
                fixed => fixed,
            };
            // The settings of the digits above that add up to `base`.
            let fixed = |d: &Digit| {
                if d.level < parent {
                    Role::Exactly(base / d.weight % d.trips)
                } else {
                    Role::Free
                }
            };
            visit(&temporal, &fixed);
        });
    }

    fn add_along(
        &self,
        i: usize,
        level: Option<usize>,
        temporal: &dyn Fn(&Digit) -> Role,
        spatial: &dyn Fn(&Digit) -> Role,
        list: &mut Along,
    ) {
        let digits = self.nest.outside(self.child, self.dims[i]);
        if digits.is_empty() && !self.split[i] {
            list.add(
                Degree {
                    members: 1,
                    span: Span::singles(1, (0, 0)),
                },
                false,
            );
            return;
        }
        let role = |d: &Digit| {
            if !d.spatial {
                temporal(d)
            } else if self.joined(d, level) {
                Role::ZERO
            } else {
                spatial(d)
            }
        };
        let mut block = 0..0;
        if let Some(level) = level.filter(|&l| self.groups(l)) {
            let here = |d: &Digit| d.spatial && d.level == level;
            if let Some(from) = digits.iter().position(here) {
                block = from..from + digits.iter().filter(|d| here(d)).count();
            }
        }
        let mut degree = [Degree::default(); 3];
        let len = degrees(digits, block.clone(), level, role, &mut degree);
        for degree in &degree[..len] {
            list.add(*degree, false);
        }
        if self.split[i] && len > 0 {
            // The string of the last tile leaves the group that it would be in.
            let block = &digits[block];
            let bound = block.iter().fold(0, |b, d| b * d.trips + d.bound);
            let others_follow = digits.iter().any(|d| d.spatial && d.bound > 0 && self.joined(d, level));
            let own = |d: &Digit| d.spatial && Some(d.level) == level;
            let at = digits
                .iter()
                .filter(|d| own(d))
                .fold((0, 0), |at, d| (at.0 + d.step.0 * d.bound, at.1 + d.step.1 * d.bound));
            if !others_follow {
                if block.is_empty() {
                    list.take(1, Span::singles(1, at));
                } else {
                    list.take(bound + 1, fan(block, bound + 1, 1));
                    let rest = Degree {
                        members: bound,
                        span: fan(block, bound, 1),
                    };
                    if bound > 0 {
                        list.add(rest, false);
                    }
                }
            }
            let alone = Degree {
                members: 1,
                span: Span::singles(1, at),
            };
            list.add(alone, true);
        }
    }
}

/// Group sizes along one dimension, and whether they are those of the last tile.
#[derive(Debug, Clone, Copy, Default)]
struct Along {
    entries: [(Degree, bool); 5],
    len: usize,
}

impl Along {
    fn entries(&self) -> &[(Degree, bool)] {
        &self.entries[..self.len]
    }

    fn add(&mut self, degree: Degree, last: bool) {
        let same = |e: &&mut (Degree, bool)| e.0.members == degree.members && e.1 == last;
        match self.entries[..self.len].iter_mut().find(same) {
            Some(known) => known.0.span = known.0.span.plus(degree.span),
            None => {
                self.entries[self.len] = (degree, last);
                self.len += 1;
            }
        }
    }

    fn take(&mut self, members: u64, span: Span) {
        let same = |e: &&mut (Degree, bool)| e.0.members == members && !e.1;
        if let Some(known) = self.entries[..self.len].iter_mut().find(same) {
            known.0.span = known.0.span.minus(span);
        }
    }
}
