//! A FIFO (FINN's Q_srl): `depth` tokens, one cycle from input to output; its ready signal is a register.

use super::{Io, Step, Waits, Wake};

/// State: tokens held, the one on offer included.
#[derive(Debug, Clone)]
pub(in crate::streaming) struct Fifo {
    depth: u64,
    held: u64,
    /// Largest number held.
    pub(in crate::streaming) high: u64,
    values: std::collections::VecDeque<Option<std::sync::Arc<[i64]>>>,
}

impl Fifo {
    pub(super) fn new(depth: u64) -> Self {
        Self {
            depth,
            held: 0,
            high: 0,
            values: std::collections::VecDeque::new(),
        }
    }
}

impl Step for Fifo {
    fn step(&mut self, io: &mut Io<'_>) -> Wake {
        // Full is judged before the reader takes: ready is a register.
        let ready = self.held < self.depth;
        let taken = io.is_taken(0);
        let arrives = ready && io.is_valid(0);
        if taken {
            self.held -= 1;
            self.values.pop_front();
        }
        if arrives {
            io.take(0);
            self.held += 1;
            self.values.push_back(io.links[io.inputs[0]].value.clone());
        }
        self.high = self.high.max(self.held);
        let out = io.outputs[0];
        io.links[out].value = self.values.front().cloned().flatten();
        io.offer(0, self.held > 0);
        Wake::if_moved(taken || arrives)
    }

    fn key(&self, _: u64, key: &mut Vec<u64>) {
        key.push(self.held);
    }

    fn shift(&mut self, _: u64, _: u64) {}

    fn waits(&self) -> Waits {
        if self.held > 0 {
            Waits::Output(0)
        } else {
            Waits::Input(0)
        }
    }
}
