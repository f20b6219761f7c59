//! State relative to now, for exact fast-forward (rule 27).
//!
//! A component writes everything that its future depends on: times as distances from now, numbers of residencies as
//! distances from the oldest one, positions in the loop nest by how they differ from where PE 0 stands. What it writes
//! must not change when the whole machine is moved in time or along a loop. Counters are visited apart: a skipped
//! stretch repeats their growth.
//!
//! Implementations take their component apart without `..`, so that a new field does not compile until it has been
//! given its place here.

use crate::Cycle;
use crate::mutate::{enter, writes};
use crate::plan::cursor::Steps;

/// A component that has state.
pub(crate) trait RelativeState {
    /// What it is called, for the test that leaves it out.
    const NAME: &'static str;

    /// [Writes](Self::write) the component as part of the key.
    #[inline]
    fn add_to(&self, key: &mut Key<'_>) {
        let outside = enter(Self::NAME);
        self.write(key);
        enter(outside);
    }

    /// Writes the state relative to `key.now` and `key.here`, counters apart.
    fn write(&self, key: &mut Key<'_>);

    /// Moves every position in the loop nest along with PE 0.
    fn shift(&mut self, shift: &mut Shift<'_>);

    /// Visits every counter, always in the same order.
    fn counters(&mut self, visit: &mut dyn FnMut(&mut u64));
}

/// The relative state of a machine as a list of words.
#[derive(Debug)]
pub(crate) struct Key<'a> {
    pub(crate) now: Cycle,
    /// Before this time nothing is of interest any more: every PE has settled whom it blames up to here.
    pub(crate) settled: Cycle,
    pub(crate) words: Vec<u64>,
    /// Steps of every level.
    steps: &'a [Steps],
    /// Indices of PE 0 in the loops of the PE level.
    here: &'a [u64],
    // What ordinals of the component being written are counted from.
    pub(crate) parent_first: u64,
    pub(crate) group_first: u64,
    pub(crate) parent_ordinal: u64,
    pub(crate) needs_first: [u64; 3],
    /// The first residency of the store being written that nobody has begun to use.
    pub(crate) not_begun: u64,
    /// Level of what is being written, and how many of its loops count.
    pub(crate) level: usize,
    pub(crate) loops: usize,
    digits: Vec<u64>,
}

impl<'a> Key<'a> {
    pub(crate) fn new(now: Cycle, settled: Cycle, steps: &'a [Steps], here: &'a [u64]) -> Self {
        Key {
            now,
            settled,
            words: Vec::new(),
            steps,
            here,
            parent_first: 0,
            group_first: 0,
            parent_ordinal: 0,
            needs_first: [0; 3],
            not_begun: 0,
            level: 0,
            loops: 0,
            digits: Vec::new(),
        }
    }

    /// A number that the future depends on as it is.
    #[inline]
    pub(crate) fn word(&mut self, word: u64) {
        if writes(word) {
            self.words.push(word);
        }
    }

    #[inline]
    pub(crate) fn flag(&mut self, flag: bool) {
        self.word(u64::from(flag));
    }

    /// A time in the future: the past is all the same.
    #[inline]
    pub(crate) fn ahead(&mut self, time: Cycle) {
        self.word(time.since(self.now));
    }

    /// A time that may lie in the past and is still of interest after `settled`.
    #[inline]
    pub(crate) fn about(&mut self, time: Cycle) {
        self.word(time.since(self.settled).min(1 << 62));
    }

    /// A number of a residency, group or visit, counted from `first`.
    #[inline]
    pub(crate) fn ordinal(&mut self, ordinal: u64, first: u64) {
        self.word(ordinal.wrapping_sub(first));
    }

    /// Like [`ordinal`](Self::ordinal), where what came before `first` is gone and all the same.
    #[inline]
    pub(crate) fn ordinal_if_there(&mut self, ordinal: u64, first: u64) {
        self.word(ordinal.checked_sub(first).map_or(0, |number| number + 1));
    }

    /// A position as indices of the outermost loops: up to which loop it is PE 0's, how far it is from there in the
    /// next one, and the indices further in as they are.
    #[inline]
    pub(crate) fn indices(&mut self, at: &[u64]) {
        let Some(l) = first_difference(at, self.here) else {
            self.word(u64::MAX);
            return;
        };
        self.word(l as u64);
        self.word(at[l].wrapping_sub(self.here[l]));
        self.words.extend(at[l + 1..].iter().filter(|index| writes(**index)));
    }

    /// A position as a rank among the steps of `level`.
    pub(crate) fn rank(&mut self, rank: u64) {
        let mut digits = std::mem::take(&mut self.digits);
        self.steps[self.level].indices_of(rank, self.loops, &mut digits);
        self.indices(&digits);
        self.digits = digits;
    }
}

/// The outermost loop in which a position, given as indices of the outermost loops, is not that of `here`.
#[inline]
pub(crate) fn first_difference(at: &[u64], here: &[u64]) -> Option<usize> {
    at.iter().zip(here).position(|(a, h)| a != h)
}

/// Moves positions from where they are around one place of PE 0 to where they are around another.
///
/// What a position shares with PE 0 it goes on sharing; in the first loop where it differs, it keeps its distance; its
/// indices further in stay. So the order of positions stays, and what [`Key::indices`] writes.
#[derive(Debug)]
pub(crate) struct Shift<'a> {
    steps: &'a [Steps],
    from: &'a [u64],
    to: &'a [u64],
    /// Level of what is being moved, and how many of its loops count.
    pub(crate) level: usize,
    pub(crate) loops: usize,
    digits: Vec<u64>,
}

impl<'a> Shift<'a> {
    pub(crate) fn new(steps: &'a [Steps], from: &'a [u64], to: &'a [u64]) -> Self {
        Shift {
            steps,
            from,
            to,
            level: 0,
            loops: 0,
            digits: Vec::new(),
        }
    }

    /// Moves indices of the outermost loops.
    #[inline]
    pub(crate) fn indices(&self, at: &mut [u64]) {
        let shared = first_difference(at, self.from).unwrap_or(at.len());
        at[..shared].copy_from_slice(&self.to[..shared]);
        if let Some(index) = at.get_mut(shared) {
            *index = index.wrapping_add(self.to[shared].wrapping_sub(self.from[shared]));
        }
    }

    /// Moves a rank among the steps of `level`.
    pub(crate) fn rank(&mut self, rank: &mut u64) {
        let mut digits = std::mem::take(&mut self.digits);
        let steps = &self.steps[self.level];
        steps.indices_of(*rank, self.loops, &mut digits);
        self.indices(&mut digits);
        *rank = steps.rank_of(&digits);
        self.digits = digits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_keep_their_place_around_pe_0() {
        let shift = Shift::new(&[], &[3, 5, 0], &[4, 7, 0]);
        let moved = |at: &[u64]| {
            let mut at = at.to_vec();
            shift.indices(&mut at);
            at
        };
        assert_eq!(moved(&[3, 5, 0]), [4, 7, 0], "PE 0 itself");
        assert_eq!(moved(&[3, 5]), [4, 7], "a position with fewer loops");
        assert_eq!(moved(&[3, 6, 2]), [4, 8, 2], "one iteration ahead");
        assert_eq!(moved(&[3, 4, 9]), [4, 6, 9], "one iteration behind");
        assert_eq!(moved(&[4, 0, 1]), [5, 0, 1], "in the next turn of the outer loop");
        assert_eq!(moved(&[2, 8, 1]), [3, 8, 1], "in the last turn of the outer loop");
    }

    #[test]
    fn what_is_written_does_not_change_when_all_is_moved() {
        let shift = Shift::new(&[], &[3, 5, 0], &[4, 7, 0]);
        for at in [[3, 5, 0], [3, 6, 2], [4, 0, 1], [2, 8, 1], [3, 5, 4]] {
            let mut moved = at;
            shift.indices(&mut moved);
            let written = |at: &[u64], here: &[u64]| {
                let mut key = Key::new(Cycle(0), Cycle(0), &[], here);
                key.indices(at);
                key.words
            };
            assert_eq!(written(&at, &[3, 5, 0]), written(&moved, &[4, 7, 0]));
        }
    }
}
