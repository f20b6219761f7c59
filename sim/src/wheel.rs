//! The event queue: a wheel of one-cycle buckets, and a heap for what lies beyond it.
//!
//! Pushing and popping cost O(1) within [`BUCKETS`] cycles of now and O(log n) beyond. Events of one cycle come
//! out in the order in which they were pushed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Cycle;

/// Cycles that the wheel spans.
const BUCKETS: usize = 4096;
const WORDS: usize = BUCKETS / 64;

/// A queue of events of type `E`, ordered by time, then by age.
#[derive(Debug)]
pub(crate) struct Wheel<E> {
    now: Cycle,
    buckets: Vec<Vec<E>>,
    occupied: [u64; WORDS],
    far: BinaryHeap<Reverse<(Cycle, u64, E)>>,
    pushed: u64,
}

impl<E: Ord + Copy> Wheel<E> {
    pub(crate) fn new() -> Self {
        Wheel {
            now: Cycle(0),
            buckets: (0..BUCKETS).map(|_| Vec::new()).collect(),
            occupied: [0; WORDS],
            far: BinaryHeap::new(),
            pushed: 0,
        }
    }

    /// Adds an event; `at` must be later than the last popped cycle.
    #[inline]
    pub(crate) fn push(&mut self, at: Cycle, event: E) {
        debug_assert!(
            at > self.now || self.now == Cycle(0),
            "event at {at} is not after {}",
            self.now
        );
        if at.0 - self.now.0 < BUCKETS as u64 {
            self.put(at, event);
        } else {
            self.far.push(Reverse((at, self.pushed, event)));
            self.pushed += 1;
        }
    }

    #[inline]
    fn put(&mut self, at: Cycle, event: E) {
        let bucket = at.0 as usize % BUCKETS;
        self.buckets[bucket].push(event);
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
    }

    /// Moves all events of the next cycle that has any into `batch` and returns that cycle.
    pub(crate) fn pop(&mut self, batch: &mut Vec<E>) -> Option<Cycle> {
        let next = match self.next_near() {
            Some(at) => at,
            None => self.far.peek()?.0.0,
        };
        self.now = next;
        while let Some(Reverse((at, _, event))) = self.far.peek().copied() {
            if at.0 - next.0 >= BUCKETS as u64 {
                break;
            }
            self.far.pop();
            self.put(at, event);
        }
        let bucket = next.0 as usize % BUCKETS;
        batch.clear();
        std::mem::swap(batch, &mut self.buckets[bucket]);
        self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        Some(next)
    }

    /// Every pending event, in the order in which they will come out.
    pub(crate) fn pending(&self) -> Vec<(Cycle, E)> {
        let mut events = Vec::new();
        let start = self.now.0 as usize % BUCKETS;
        for word in 0..=WORDS {
            let w = (start / 64 + word) % WORDS;
            let mut bits = self.occupied[w];
            if word == 0 {
                bits &= !0 << (start % 64);
            } else if word == WORDS {
                bits &= !(!0 << (start % 64));
            }
            while bits != 0 {
                let bucket = w * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let at = self.now + ((bucket + BUCKETS - start) % BUCKETS) as u64;
                events.extend(self.buckets[bucket].iter().map(|&e| (at, e)));
            }
        }
        let mut far: Vec<_> = self.far.iter().map(|Reverse(event)| *event).collect();
        far.sort_unstable();
        events.extend(far.into_iter().map(|(at, _, event)| (at, event)));
        events
    }

    /// Goes to `now`, with these events to come, given in the order in which they will come out.
    pub(crate) fn restore(&mut self, now: Cycle, pending: &[(Cycle, E)]) {
        for (word, bits) in self.occupied.iter_mut().enumerate() {
            while *bits != 0 {
                self.buckets[word * 64 + bits.trailing_zeros() as usize].clear();
                *bits &= *bits - 1;
            }
        }
        self.far.clear();
        self.now = now;
        for &(at, event) in pending {
            self.push(at, event);
        }
    }

    fn next_near(&self) -> Option<Cycle> {
        let start = self.now.0 as usize % BUCKETS;
        let (word, bit) = (start / 64, start % 64);
        let first = self.occupied[word] & (!0 << bit);
        let found = if first != 0 {
            Some(word * 64 + first.trailing_zeros() as usize)
        } else {
            (1..=WORDS).map(|i| (word + i) % WORDS).find_map(|w| {
                let bits = if w == word {
                    self.occupied[w] & !(!0 << bit)
                } else {
                    self.occupied[w]
                };
                (bits != 0).then(|| w * 64 + bits.trailing_zeros() as usize)
            })
        };
        found.map(|bucket| self.now + ((bucket + BUCKETS - start) % BUCKETS) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_by_time_then_by_age() {
        let mut wheel = Wheel::new();
        for (at, event) in [(9000, 1), (5, 2), (9000, 3), (4095, 4), (5, 5), (4096, 6)] {
            wheel.push(Cycle(at), event);
        }
        let mut seen = Vec::new();
        let mut batch = Vec::new();
        while let Some(at) = wheel.pop(&mut batch) {
            seen.extend(batch.iter().map(|&e| (at.0, e)));
            if at == Cycle(5) {
                wheel.push(Cycle(9000), 7);
            }
        }
        assert_eq!(
            seen,
            [(5, 2), (5, 5), (4095, 4), (4096, 6), (9000, 1), (9000, 3), (9000, 7)]
        );
    }
}
