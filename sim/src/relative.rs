//! State relative to now, for exact fast-forward (rule 27).
//!
//! A component writes everything that its future depends on, with times as distances from now and numbers of
//! residencies as distances from the oldest one. What it writes must not change when the whole machine is moved in
//! time or along a loop. Positions in the loop nest are visited apart, as absolute numbers: between two recurrences
//! they may only differ by the loop's shift. Counters are visited apart too: a skipped stretch repeats their growth.
//!
//! Implementations take their component apart without `..`, so that a new field does not compile until it has been
//! given its place here.

use cyclonest_workloads::Dim;

use crate::Cycle;

/// A component that has state.
pub(crate) trait RelativeState {
    /// Writes the state relative to `key.now`, positions and counters apart.
    fn write(&self, key: &mut Key);

    /// Visits every position in the loop nest, always in the same order.
    fn positions(&mut self, visit: &mut dyn FnMut(Unit, &mut u64));

    /// Visits every counter, always in the same order.
    fn counters(&mut self, visit: &mut dyn FnMut(&mut u64));
}

/// What a position in the loop nest is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Index of a temporal loop, by its number in the nest.
    Index(usize),
    /// Rank among the steps of a level.
    Rank(usize),
    /// Index of a dimension.
    Low(Dim),
}

/// The relative state of a machine as a list of words.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) now: Cycle,
    /// Before this time nothing is of interest any more: every PE has settled whom it blames up to here.
    pub(crate) settled: Cycle,
    pub(crate) words: Vec<u64>,
    // What ordinals of the component being written are counted from.
    pub(crate) parent_first: u64,
    pub(crate) group_first: u64,
    pub(crate) parent_ordinal: u64,
    pub(crate) needs_first: [u64; 3],
}

impl Key {
    pub(crate) fn new(now: Cycle, settled: Cycle) -> Self {
        Key {
            now,
            settled,
            words: Vec::new(),
            parent_first: 0,
            group_first: 0,
            parent_ordinal: 0,
            needs_first: [0; 3],
        }
    }

    /// A number that the future depends on as it is.
    #[inline]
    pub(crate) fn word(&mut self, word: u64) {
        self.words.push(word);
    }

    #[inline]
    pub(crate) fn flag(&mut self, flag: bool) {
        self.words.push(u64::from(flag));
    }

    /// A time in the future: the past is all the same.
    #[inline]
    pub(crate) fn ahead(&mut self, time: Cycle) {
        self.words.push(time.since(self.now));
    }

    /// A time that may lie in the past and is still of interest after `settled`.
    #[inline]
    pub(crate) fn about(&mut self, time: Cycle) {
        self.words.push(time.since(self.settled).min(1 << 62));
    }

    /// A number of a residency, group or visit, counted from `first`.
    #[inline]
    pub(crate) fn ordinal(&mut self, ordinal: u64, first: u64) {
        self.words.push(ordinal.wrapping_sub(first));
    }

    /// Like [`ordinal`](Self::ordinal), where what came before `first` is gone and all the same.
    #[inline]
    pub(crate) fn ordinal_if_there(&mut self, ordinal: u64, first: u64) {
        self.words
            .push(ordinal.checked_sub(first).map_or(0, |number| number + 1));
    }

    /// A hash of the words, to find candidates; equality decides.
    pub(crate) fn hash(&self) -> u64 {
        self.words.iter().fold(self.words.len() as u64, |hash, &word| {
            let mixed = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            mixed ^ (mixed >> 29)
        })
    }
}
