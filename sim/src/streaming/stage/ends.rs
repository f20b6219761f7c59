//! Where frames enter and leave: at a rate, or through the shared memory.

use cyclonest_arch::streaming::pipeline::Rate;

use super::{Io, Step, Waits, Wake};

/// Writes frames at a rate; a token that is not taken stays offered.
#[derive(Debug, Clone)]
pub(in crate::streaming) struct Source {
    pub(in crate::streaming) tokens: u64,
    rate: Rate,
    frames: u64,
    /// Tokens offered so far.
    offered: u64,
    offering: bool,
}

impl Source {
    pub(super) const fn new(tokens: u64, rate: Rate, frames: u64) -> Self {
        let offering = rate.next(0) == 0 && frames > 0;
        Self {
            tokens,
            rate,
            frames,
            offered: offering as u64,
            offering,
        }
    }

    /// Whether the first token is offered in cycle 0.
    pub(super) const fn offers_at_start(&self) -> bool {
        self.offering
    }
}

impl Step for Source {
    fn step(&mut self, io: &mut Io<'_>) -> Wake {
        if self.offering && io.is_blocked(0) {
            io.offer(0, true);
            return Wake::Idle;
        }
        // What is offered in the next cycle is decided in this one.
        let next = self.rate.next(io.now + 1);
        self.offering = self.offered < self.tokens * self.frames && next == io.now + 1;
        io.offer(0, self.offering);
        if self.offering {
            self.offered += 1;
            Wake::Idle
        } else if self.offered < self.tokens * self.frames {
            Wake::At(next - 1)
        } else {
            Wake::Idle
        }
    }

    fn key(&self, now: u64, key: &mut Vec<u64>) {
        key.extend([
            self.frames_left().min(1),
            self.offered % self.tokens,
            u64::from(self.offering),
            now * self.rate.tokens % self.rate.cycles,
        ]);
    }

    fn shift(&mut self, frames: u64, _: u64) {
        self.offered += frames * self.tokens;
    }

    fn waits(&self) -> Waits {
        if self.offering { Waits::Output(0) } else { Waits::Done }
    }
}

impl Source {
    /// Frames that are not yet begun.
    pub(in crate::streaming) const fn frames_left(&self) -> u64 {
        self.frames - self.offered.div_ceil(self.tokens)
    }
}

/// Reads results at a rate.
#[derive(Debug, Clone)]
pub(in crate::streaming) struct Sink {
    pub(in crate::streaming) tokens: u64,
    rate: Rate,
    pub(in crate::streaming) taken: u64,
    /// The cycle of every frame's last token.
    pub(in crate::streaming) frame_ends: Vec<u64>,
}

impl Sink {
    pub(super) const fn new(tokens: u64, rate: Rate) -> Self {
        Self {
            tokens,
            rate,
            taken: 0,
            frame_ends: Vec::new(),
        }
    }
}

impl Step for Sink {
    fn step(&mut self, io: &mut Io<'_>) -> Wake {
        if !io.is_valid(0) {
            return Wake::Idle;
        }
        let next = self.rate.next(io.now);
        if next > io.now {
            return Wake::At(next);
        }
        io.take(0);
        self.taken += 1;
        if self.taken.is_multiple_of(self.tokens) {
            self.frame_ends.push(io.now);
        }
        Wake::Idle
    }

    fn key(&self, now: u64, key: &mut Vec<u64>) {
        key.extend([self.taken % self.tokens, now * self.rate.tokens % self.rate.cycles]);
    }

    fn shift(&mut self, frames: u64, _: u64) {
        self.taken += frames * self.tokens;
    }

    fn waits(&self) -> Waits {
        Waits::Input(0)
    }
}

/// Reads frames from memory: a token is offered when its bits have arrived; the next is asked for when it is taken.
#[derive(Debug, Clone)]
pub(in crate::streaming) struct MemorySource {
    pub(in crate::streaming) tokens: u64,
    bits: u64,
    frames: u64,
    asked: u64,
    /// The cycle from which on the token that was asked for is offered.
    arrives: Option<u64>,
}

impl MemorySource {
    pub(super) const fn new(tokens: u64, bits: u64, frames: u64) -> Self {
        Self {
            tokens,
            bits,
            frames,
            asked: 0,
            arrives: None,
        }
    }

    /// Frames that are not yet begun.
    pub(in crate::streaming) const fn frames_left(&self) -> u64 {
        self.frames - self.asked.div_ceil(self.tokens)
    }
}

/// Occupies the memory for `bits` and returns the cycle in which it is done.
fn transfer(io: &mut Io<'_>, bits: u64) -> u64 {
    let memory = &mut *io.memory;
    let start = memory.free.max(io.now * memory.ticks_per_cycle);
    memory.free = start + bits * memory.ticks_per_bit;
    memory.free.div_ceil(memory.ticks_per_cycle)
}

impl Step for MemorySource {
    fn step(&mut self, io: &mut Io<'_>) -> Wake {
        if io.offers(0) {
            if io.is_blocked(0) {
                io.offer(0, true);
                return Wake::Idle;
            }
            self.arrives = None;
        }
        if self.arrives.is_none() && self.asked < self.tokens * self.frames {
            self.asked += 1;
            self.arrives = Some(transfer(io, self.bits).max(io.now + 1));
        }
        match self.arrives {
            Some(at) if at <= io.now + 1 => {
                io.offer(0, true);
                Wake::Idle
            }
            Some(at) => {
                io.offer(0, false);
                Wake::At(at - 1)
            }
            None => {
                io.offer(0, false);
                Wake::Idle
            }
        }
    }

    fn key(&self, now: u64, key: &mut Vec<u64>) {
        key.extend([self.frames_left().min(1), self.asked % self.tokens]);
        key.push(self.arrives.map_or(u64::MAX, |at| at.saturating_sub(now)));
    }

    fn shift(&mut self, frames: u64, cycles: u64) {
        self.asked += frames * self.tokens;
        if let Some(at) = &mut self.arrives {
            *at += cycles;
        }
    }

    fn waits(&self) -> Waits {
        if self.arrives.is_some() {
            Waits::Output(0)
        } else {
            Waits::Done
        }
    }
}

/// Writes results to memory: takes a token when the memory has taken the one before.
#[derive(Debug, Clone)]
pub(in crate::streaming) struct MemorySink {
    pub(in crate::streaming) tokens: u64,
    bits: u64,
    free: u64,
    pub(in crate::streaming) taken: u64,
    pub(in crate::streaming) frame_ends: Vec<u64>,
}

impl MemorySink {
    pub(super) const fn new(tokens: u64, bits: u64) -> Self {
        Self {
            tokens,
            bits,
            free: 0,
            taken: 0,
            frame_ends: Vec::new(),
        }
    }
}

impl Step for MemorySink {
    fn step(&mut self, io: &mut Io<'_>) -> Wake {
        if !io.is_valid(0) {
            return Wake::Idle;
        }
        if self.free > io.now {
            return Wake::At(self.free);
        }
        io.take(0);
        self.free = transfer(io, self.bits);
        self.taken += 1;
        if self.taken.is_multiple_of(self.tokens) {
            self.frame_ends.push(io.now);
        }
        Wake::Idle
    }

    fn key(&self, now: u64, key: &mut Vec<u64>) {
        key.extend([self.taken % self.tokens, self.free.saturating_sub(now)]);
    }

    fn shift(&mut self, frames: u64, cycles: u64) {
        self.taken += frames * self.tokens;
        self.free += cycles;
    }

    fn waits(&self) -> Waits {
        Waits::Input(0)
    }
}
