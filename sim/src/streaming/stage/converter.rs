//! FINN's width converter: collects narrow words into wide ones or takes wide ones apart.

use cyclonest_arch::streaming::pipeline;

use super::{Io, Step, Waits, Wake};

/// State.
#[derive(Debug, Clone)]
pub(in crate::streaming) struct Converter {
    /// Narrow words per wide word, and whether narrow ones come in.
    ratio: u64,
    widens: bool,
    /// Narrow words held.
    held: u64,
    /// A side-step register holds an input word.
    aside: bool,
}

impl Converter {
    pub(super) fn new(shape: pipeline::Converter) -> Result<Self, String> {
        let (narrow, wide) = (shape.bits_in.min(shape.bits_out), shape.bits_in.max(shape.bits_out));
        if narrow == 0 || !wide.is_multiple_of(narrow) {
            return Err(format!("{wide} bits are not a multiple of {narrow}"));
        }
        Ok(Self {
            ratio: wide / narrow,
            widens: shape.bits_in < shape.bits_out,
            held: 0,
            aside: false,
        })
    }
}

impl Step for Converter {
    fn step(&mut self, io: &mut Io<'_>) -> Wake {
        let taken = io.is_taken(0);
        // Ready is a register: whatever arrives when the shift register is full is put aside.
        let arrives = !self.aside && io.is_valid(0);
        if arrives {
            io.take(0);
        }
        if taken {
            self.held = if self.widens { 0 } else { self.held - 1 };
        }
        let room = if self.widens {
            self.held < self.ratio
        } else {
            self.held == 0
        };
        let word = self.aside || arrives;
        if word && room {
            self.held += if self.widens { 1 } else { self.ratio };
            self.aside = false;
        } else {
            self.aside = word;
        }
        io.offer(
            0,
            if self.widens {
                self.held == self.ratio
            } else {
                self.held > 0
            },
        );
        Wake::if_moved(taken || arrives || (word && room))
    }

    fn key(&self, _: u64, key: &mut Vec<u64>) {
        key.extend([self.held, u64::from(self.aside)]);
    }

    fn shift(&mut self, _: u64, _: u64) {}

    fn waits(&self) -> Waits {
        let full = if self.widens {
            self.held == self.ratio
        } else {
            self.held > 0
        };
        if full { Waits::Output(0) } else { Waits::Input(0) }
    }
}
