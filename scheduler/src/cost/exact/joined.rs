//! Classes of all dimensions together, and the levels through which a tensor comes down.

use super::classes::{Class, NOWHERE, Span};
use super::nest::MAX_LEVELS;
use super::walk::What;

/// Position after all others: every loop is outside.
pub(super) const EVERYWHERE: i32 = i32::MAX;

/// Calls `visit` for every combination of classes of the dimensions. A dimension without classes ends the list.
pub(super) fn combine(classes: &[Vec<Class>; 5], mut visit: impl FnMut(&Joined)) {
    fn go(classes: &[Vec<Class>], at: usize, so_far: &Joined, visit: &mut dyn FnMut(&Joined)) {
        // Dimensions with one class only are merged already.
        match classes.iter().skip(at).position(|c| c.len() > 1) {
            Some(skipped) => {
                let at = at + skipped;
                for class in &classes[at] {
                    let mut joined = *so_far;
                    joined.merge(class, at);
                    go(classes, at + 1, &joined, visit);
                }
            }
            None => visit(so_far),
        }
    }
    let mut joined = Joined {
        count: 1,
        size: 1,
        innermost: [NOWHERE; MAX_LEVELS],
        last: 0,
        at: [(0, 0); MAX_LEVELS],
        placed: false,
    };
    let len = classes.iter().position(Vec::is_empty).unwrap_or(classes.len());
    for (at, classes) in classes[..len].iter().enumerate() {
        if let [only] = &classes[..] {
            joined.merge(only, at);
        }
    }
    go(&classes[..len], 0, &joined, &mut visit);
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
    /// Adds a class of dimension `at`.
    fn merge(&mut self, class: &Class, at: usize) {
        for (j, c) in self.innermost.iter_mut().zip(&class.innermost) {
            *j = (*j).max(*c);
        }
        if self.placed || class.placed {
            self.placed = true;
            for (j, c) in self.at.iter_mut().zip(&class.at) {
                *j = (
                    j.0 * class.count + c.0 * self.count,
                    j.1 * class.count + c.1 * self.count,
                );
            }
        }
        self.count *= class.count;
        self.size *= class.extent;
        self.last |= u8::from(class.last) << at;
    }

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
