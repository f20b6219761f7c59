//! FINN's padding: zeros come out of the position counters, pixels out of the input; an input side-step register and
//! an output register.

use cyclonest_arch::streaming::pipeline;

use super::{Io, Step, Waits, Wake};

/// State.
#[derive(Debug, Clone)]
pub(in crate::streaming) struct Padding {
    shape: pipeline::Padding,
    /// Position of the next output word: row, column, turn.
    at: [u64; 3],
    /// The input register holds a word.
    aside: bool,
    /// The output register holds a word.
    output: bool,
}

impl Padding {
    pub(super) fn new(shape: pipeline::Padding) -> Self {
        let mut start = Self {
            shape,
            at: [0; 3],
            aside: false,
            output: false,
        };
        // The first zero needs no input: it stands at the output when the first cycle begins.
        if start.is_zero() {
            start.advance();
            start.output = true;
        }
        start
    }

    /// Whether a word is offered in cycle 0.
    pub(super) const fn offers_at_start(&self) -> bool {
        self.output
    }

    const fn is_zero(&self) -> bool {
        let [row, column, _] = self.at;
        let [top, left, _, _] = self.shape.pads;
        row < top || row >= top + self.shape.rows || column < left || column >= left + self.shape.columns
    }

    fn advance(&mut self) {
        let [top, left, bottom, right] = self.shape.pads;
        let limits = [
            self.shape.rows + top + bottom,
            self.shape.columns + left + right,
            self.shape.turns,
        ];
        for axis in (0..3).rev() {
            self.at[axis] += 1;
            if self.at[axis] < limits[axis] {
                return;
            }
            self.at[axis] = 0;
        }
    }
}

impl Step for Padding {
    fn step(&mut self, io: &mut Io<'_>) -> Wake {
        let taken = io.is_taken(0);
        let load = !self.output || taken;
        let zero = self.is_zero();
        let arrives = !self.aside && io.is_valid(0);
        if arrives {
            io.take(0);
        }
        let word = self.aside || arrives;
        let writes = load && (zero || word);
        self.aside = word && (zero || !load);
        if writes {
            self.advance();
        }
        self.output = writes || !load;
        io.offer(0, self.output);
        Wake::if_moved(taken || arrives || writes)
    }

    fn key(&self, _: u64, key: &mut Vec<u64>) {
        key.extend(self.at);
        key.extend([u64::from(self.aside), u64::from(self.output)]);
    }

    fn shift(&mut self, _: u64, _: u64) {}

    fn waits(&self) -> Waits {
        if self.output { Waits::Output(0) } else { Waits::Input(0) }
    }
}
