//! FINN's sliding window in its two implementations: a cyclic buffer that is read word by word, and a shift register
//! that gives a whole window per word.

use cyclonest_arch::streaming::pipeline;

use super::{Io, Step, Waits, Wake};

/// Word-by-word: one word in and one word out per cycle, an output register. The next frame's words are taken when
/// the last window has left.
#[derive(Debug, Clone)]
pub(in crate::streaming) struct Window {
    shape: pipeline::Window,
    buffer: u64,
    /// Words of the frame that have arrived.
    arrived: u64,
    /// Which output word comes next: row, column, group (depthwise), tap row, tap column, turn.
    at: [u64; 6],
    /// First word of the window after the one being read.
    next_window: u64,
    /// All words of the frame's windows are fetched.
    fetched: bool,
    /// The output register holds a word.
    output: bool,
}

impl Window {
    pub(super) const fn new(shape: pipeline::Window) -> Self {
        Self {
            buffer: shape.buffer(),
            shape,
            arrived: 0,
            at: [0; 6],
            next_window: 0,
            fetched: false,
            output: false,
        }
    }

    /// Index in the frame of the next output word.
    const fn current(&self) -> u64 {
        let s = &self.shape;
        let [row, column, group, r, c, turn] = self.at;
        let y = row * s.stride.0 + r * s.dilation.0;
        let x = column * s.stride.1 + c * s.dilation.1;
        (y * s.columns + x) * s.turns + group + turn
    }

    /// First word of the window (or channel group of it) that is being read.
    const fn first(&self) -> u64 {
        let s = &self.shape;
        (self.at[0] * s.stride.0 * s.columns + self.at[1] * s.stride.1) * s.turns + self.at[2]
    }

    /// Moves to the next output word; true if it was the frame's last.
    const fn advance(&mut self) -> bool {
        let s = &self.shape;
        let (rows, columns) = s.output();
        let (groups, turns) = if s.depthwise { (s.turns, 1) } else { (1, s.turns) };
        let limits = [rows, columns, groups, s.kernel.0, s.kernel.1, turns];
        let mut axis = 6;
        while axis > 0 {
            axis -= 1;
            self.at[axis] += 1;
            if self.at[axis] < limits[axis] {
                return false;
            }
            self.at[axis] = 0;
        }
        true
    }

    /// Whether the next output word is the first of its window.
    const fn begins(&self) -> bool {
        self.at[3] == 0 && self.at[4] == 0 && self.at[5] == 0
    }

    const fn words(&self) -> u64 {
        self.shape.rows * self.shape.columns * self.shape.turns
    }

    /// First word of the window after the one that begins now.
    fn following(&self) -> u64 {
        let mut next = self.clone();
        loop {
            if next.advance() {
                // Behind the last window only its last word is still needed.
                return self.first() + self.shape.span() - 1;
            }
            if next.begins() {
                return next.first();
            }
        }
    }
}

impl Step for Window {
    fn step(&mut self, io: &mut Io<'_>) -> Wake {
        let words = self.words();
        let written = self.output && io.is_taken(0);
        let blocked = self.output && !written;
        // Oldest word that the next arrival would overwrite, if the buffer is full.
        let current = if self.fetched { u64::MAX } else { self.current() };
        let overwrites = self.arrived.checked_sub(self.buffer);
        let reads = self.arrived < words
            && (self.fetched || overwrites.is_none_or(|oldest| oldest < self.next_window && oldest < current));
        let fetches = !self.fetched && current < self.arrived && !blocked;
        let arrives = reads && io.is_valid(0);
        if arrives {
            io.take(0);
            self.arrived += 1;
        }
        if fetches {
            if self.begins() {
                self.next_window = self.following();
            }
            self.fetched = self.advance();
        }
        self.output = fetches || blocked;
        let finished = self.fetched && !self.output && self.arrived == words;
        if finished {
            self.arrived = 0;
            self.next_window = 0;
            self.fetched = false;
        }
        io.offer(0, self.output);
        Wake::if_moved(written || arrives || fetches || finished)
    }

    fn key(&self, _: u64, key: &mut Vec<u64>) {
        key.push(self.arrived);
        key.extend(self.at);
        key.extend([self.next_window, u64::from(self.fetched), u64::from(self.output)]);
    }

    fn shift(&mut self, _: u64, _: u64) {}

    fn waits(&self) -> Waits {
        if self.output { Waits::Output(0) } else { Waits::Input(0) }
    }
}

/// A whole window per word: offered as soon as its last word has arrived.
#[derive(Debug, Clone)]
pub(in crate::streaming) struct ParallelWindow {
    shape: pipeline::Window,
    arrived: u64,
    /// Window to be written next: row, column, turn.
    at: [u64; 3],
    written: bool,
}

impl ParallelWindow {
    pub(super) const fn new(shape: pipeline::Window) -> Self {
        Self {
            shape,
            arrived: 0,
            at: [0; 3],
            written: false,
        }
    }

    /// Index of the last word of the window to be written.
    const fn last(&self) -> u64 {
        let s = &self.shape;
        let y = self.at[0] * s.stride.0 + (s.kernel.0 - 1) * s.dilation.0;
        let x = self.at[1] * s.stride.1 + (s.kernel.1 - 1) * s.dilation.1;
        (y * s.columns + x) * s.turns + self.at[2]
    }

    const fn offers(&self) -> bool {
        !self.written && self.last() < self.arrived
    }
}

impl Step for ParallelWindow {
    fn step(&mut self, io: &mut Io<'_>) -> Wake {
        let words = self.shape.rows * self.shape.columns * self.shape.turns;
        let offered = self.offers();
        let taken = offered && io.is_taken(0);
        let blocked = offered && !taken;
        // Up to the window's last word; past it only while the window leaves.
        let reads = self.arrived < words && !blocked && (self.written || self.arrived <= self.last() + 1);
        if taken {
            let (rows, columns) = self.shape.output();
            let limits = [rows, columns, self.shape.turns];
            self.written = true;
            for axis in (0..3).rev() {
                self.at[axis] += 1;
                if self.at[axis] < limits[axis] {
                    self.written = false;
                    break;
                }
                self.at[axis] = 0;
            }
        }
        let arrives = reads && io.is_valid(0);
        if arrives {
            io.take(0);
            self.arrived += 1;
        }
        let finished = self.written && self.arrived == words;
        if finished {
            self.arrived = 0;
            self.written = false;
        }
        let offers = self.offers();
        io.offer(0, offers);
        Wake::if_moved(taken || arrives || finished)
    }

    fn key(&self, _: u64, key: &mut Vec<u64>) {
        key.push(self.arrived);
        key.extend(self.at);
        key.push(u64::from(self.written));
    }

    fn shift(&mut self, _: u64, _: u64) {}

    fn waits(&self) -> Waits {
        if self.offers() {
            Waits::Output(0)
        } else {
            Waits::Input(0)
        }
    }
}
