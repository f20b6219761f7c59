//! Classes of all dimensions together, and the levels through which a tensor comes down.

use super::classes::{Class, NOWHERE, Span};
use super::nest::MAX_LEVELS;
use super::walk::What;

/// Position after all others: every loop is outside.
pub(super) const EVERYWHERE: i32 = i32::MAX;

/// Calls `visit` for every combination of classes of the dimensions.
pub(super) fn combine(classes: &[Vec<Class>; 5], mut visit: impl FnMut(&Joined)) {
    fn go(classes: &[Vec<Class>], at: u8, so_far: &Joined, visit: &mut dyn FnMut(&Joined)) {
        match classes.split_first() {
            Some((first, rest)) if !first.is_empty() => {
                for class in first {
                    let mut joined = *so_far;
                    for (j, c) in joined.innermost.iter_mut().zip(&class.innermost) {
                        *j = (*j).max(*c);
                    }
                    if joined.placed || class.placed {
                        joined.placed = true;
                        for (j, c) in joined.at.iter_mut().zip(&class.at) {
                            *j = (
                                j.0 * class.count + c.0 * so_far.count,
                                j.1 * class.count + c.1 * so_far.count,
                            );
                        }
                    }
                    joined.count *= class.count;
                    joined.size *= class.extent;
                    joined.last |= u8::from(class.last) << at;
                    go(rest, at + 1, &joined, visit);
                }
            }
            _ => visit(so_far),
        }
    }
    let none = Joined {
        count: 1,
        size: 1,
        innermost: [NOWHERE; MAX_LEVELS],
        last: 0,
        at: [(0, 0); MAX_LEVELS],
        placed: false,
    };
    go(classes, 0, &none, &mut visit);
}

/// One class of each dimension.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joined {
    /// How many settings.
    pub(super) count: u64,
    /// Tile size.
    pub(super) size: u64,
    /// Position of the innermost effective loop, per level of the chain.
    pub(super) innermost: [i32; MAX_LEVELS],
    /// Dimensions that have the last tile, as bits.
    pub(super) last: u8,
    /// Σ of the positions in the mesh below each level; all 0 unless `placed`.
    pub(super) at: [(u64, u64); MAX_LEVELS],
    placed: bool,
}

impl Joined {
    /// The groups of what is counted.
    pub(super) fn span(&self, what: What) -> Span {
        match what {
            What::Pass(level) => Span::singles(self.count, self.at[level]),
            _ => Span::singles(self.count, (0, 0)),
        }
    }
}

/// The levels through which a tensor comes down, outermost first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Links {
    levels: [usize; MAX_LEVELS],
    /// See [`Chain`].
    pub(super) floors: [i32; MAX_LEVELS],
    pub(super) len: usize,
}

impl Links {
    pub(super) fn push(&mut self, level: usize, floor: i32) {
        self.levels[self.len] = level;
        self.floors[self.len] = floor;
        self.len += 1;
    }

    pub(super) fn last(&self) -> usize {
        self.levels[self.len - 1]
    }

    pub(super) fn levels(&self) -> &[usize] {
        &self.levels[..self.len]
    }

    pub(super) fn only_last(&self) -> Links {
        let mut only = Links::default();
        only.push(self.last(), self.floors[self.len - 1]);
        only
    }
}
