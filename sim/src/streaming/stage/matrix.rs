//! FINN's matrix-vector unit: a replay buffer (if the neuron fold is above 1), a compute core of `depth` stages under
//! one global enable, and an output register with a side-step register, so that the enable is a register too.

use cyclonest_arch::streaming::pipeline;

use super::{Io, Step, Waits, Wake};

/// State.
#[derive(Debug, Clone)]
pub(in crate::streaming) struct MatrixVector {
    fold: (u64, u64),
    replay: Option<Replay>,
    /// Position of the next word in the synapse fold, at the core's input.
    position: u64,
    /// Core stages, the last one first; a set bit is a result.
    core: u64,
    depth: u64,
    /// The side-step register holds a result: the core stands still.
    aside: bool,
    /// The output register holds a result.
    output: bool,
}

/// Words of a vector, read once per neuron fold.
#[derive(Debug, Clone)]
struct Replay {
    capacity: u64,
    /// Words written, freed, and read in this repetition, counted from the vector's first word.
    held: u64,
    read: u64,
    repetition: u64,
    /// The output register holds a word.
    output: bool,
}

impl MatrixVector {
    pub(super) fn new(unit: pipeline::MatrixVector) -> Self {
        let replay = (unit.neuron_fold > 1).then(|| Replay {
            // 2^⌈log₂ SF⌉ words, at least 2.
            capacity: unit.synapse_fold.max(2).next_power_of_two(),
            held: 0,
            read: 0,
            repetition: 0,
            output: false,
        });
        Self {
            fold: (unit.synapse_fold, unit.neuron_fold),
            replay,
            position: 0,
            core: 0,
            depth: unit.depth,
            aside: false,
            output: false,
        }
    }
}

impl Step for MatrixVector {
    fn step(&mut self, io: &mut Io<'_>) -> Wake {
        let (synapse_fold, neuron_fold) = self.fold;
        let enabled = !self.aside;
        let load = !self.output || io.is_taken(0);
        let result = self.core & 1 == 1;
        let before = (self.core, self.output, self.aside);
        let mut moved = io.is_taken(0);
        // Does a word enter the core?
        let word = match &mut self.replay {
            None => {
                let word = enabled && io.is_valid(0);
                if word {
                    io.take(0);
                    moved = true;
                }
                word
            }
            Some(replay) => {
                let word = enabled && replay.output;
                let writes = replay.held < replay.capacity && io.is_valid(0);
                // `held` counts from the vector's first word; freed words leave it at the last repetition.
                let last_repetition = replay.repetition + 1 == neuron_fold;
                let read_from = if last_repetition { 0 } else { replay.read };
                let reads = (!replay.output || word) && replay.held > read_from;
                if writes {
                    io.take(0);
                    replay.held += 1;
                }
                if reads {
                    if last_repetition {
                        replay.held -= 1;
                    }
                    replay.read += 1;
                    if replay.read == synapse_fold {
                        replay.read = 0;
                        replay.repetition = (replay.repetition + 1) % neuron_fold;
                    }
                }
                moved |= writes || reads || word;
                replay.output = reads || (replay.output && !word);
                word
            }
        };
        if enabled {
            let mut complete = false;
            if word {
                self.position += 1;
                if self.position == synapse_fold {
                    self.position = 0;
                    complete = true;
                }
            }
            self.core = (self.core >> 1) | (u64::from(complete) << (self.depth - 1));
        }
        // Output registers.
        if load {
            self.output = result || self.aside;
            self.aside = false;
        } else {
            self.aside = self.aside || result;
        }
        io.offer(0, self.output);
        Wake::if_moved(moved || self.core != before.0 || self.output != before.1 || self.aside != before.2)
    }

    fn key(&self, _: u64, key: &mut Vec<u64>) {
        key.extend([self.position, self.core, u64::from(self.aside), u64::from(self.output)]);
        if let Some(r) = &self.replay {
            key.extend([r.held, r.read, r.repetition, u64::from(r.output)]);
        }
    }

    fn shift(&mut self, _: u64, _: u64) {}

    fn waits(&self) -> Waits {
        if self.output { Waits::Output(0) } else { Waits::Input(0) }
    }
}
