//! What the simulation reads: stages joined by streams with valid/ready handshakes.
//!
//! A stage is either a unit of FINN's RTL library, whose tokens are words, or a [`Layer`], whose tokens are pixels.
//! Both kinds meet in one simulation.

use serde::{Deserialize, Serialize};

/// A rate: `tokens` per `cycles`, evenly spread. Cycle t is one of the rate's if ⌊(t+1)·tokens/cycles⌋ > ⌊t·tokens/cycles⌋.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rate {
    /// Tokens.
    pub tokens: u64,
    /// Cycles, at least as many.
    pub cycles: u64,
}

impl Rate {
    /// One token per cycle.
    pub const FULL: Self = Self { tokens: 1, cycles: 1 };

    /// The first cycle from `from` on that belongs to the rate.
    #[must_use]
    pub const fn next(self, from: u64) -> u64 {
        let before = from * self.tokens / self.cycles;
        // The smallest t with ⌊(t+1)·tokens/cycles⌋ > before.
        ((before + 1) * self.cycles).div_ceil(self.tokens) - 1
    }
}

/// Zeros around a map (FINN's FMPadding).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Padding {
    /// Rows of the unpadded map.
    pub rows: u64,
    /// Columns of the unpadded map.
    pub columns: u64,
    /// Top, left, bottom, right.
    pub pads: [u64; 4],
    /// Words per pixel: channels ÷ SIMD.
    pub turns: u64,
}

/// A sliding window (FINN's ConvolutionInputGenerator in RTL).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Window {
    /// Rows of the map, padded.
    pub rows: u64,
    /// Columns of the map, padded.
    pub columns: u64,
    /// Window: rows, columns.
    pub kernel: (u64, u64),
    /// Step: rows, columns.
    pub stride: (u64, u64),
    /// Distance of taps: rows, columns.
    pub dilation: (u64, u64),
    /// Words per pixel: channels ÷ SIMD.
    pub turns: u64,
    /// A whole window per word, out of a shift register.
    pub parallel: bool,
    /// All positions of a channel group before the next group.
    pub depthwise: bool,
}

impl Window {
    /// Output rows and columns.
    #[must_use]
    pub const fn output(&self) -> (u64, u64) {
        (
            (self.rows - self.dilation.0 * (self.kernel.0 - 1) - 1) / self.stride.0 + 1,
            (self.columns - self.dilation.1 * (self.kernel.1 - 1) - 1) / self.stride.1 + 1,
        )
    }

    /// Words between the first and the last tap of a window, both included.
    #[must_use]
    pub const fn span(&self) -> u64 {
        ((self.kernel.0 - 1) * self.dilation.0 * self.columns + (self.kernel.1 - 1) * self.dilation.1 + 1) * self.turns
    }

    /// Words of the cyclic buffer: the span, and with a stride what can be loaded ahead while a window is written.
    #[must_use]
    pub const fn buffer(&self) -> u64 {
        let taps = self.kernel.0 * self.kernel.1;
        self.span()
            + (self.stride.1 - 1).saturating_sub(taps) * self.turns
            + ((self.stride.0 - 1) * self.columns).saturating_sub(taps) * self.turns
    }

    /// Words written per frame.
    #[must_use]
    pub const fn words_out(&self) -> u64 {
        let (rows, columns) = self.output();
        let taps = if self.parallel {
            1
        } else {
            self.kernel.0 * self.kernel.1
        };
        rows * columns * taps * self.turns
    }
}

/// A matrix-vector unit (FINN's MVU in RTL).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MatrixVector {
    /// Synapse fold: matrix width ÷ SIMD.
    pub synapse_fold: u64,
    /// Neuron fold: matrix height ÷ PE.
    pub neuron_fold: u64,
    /// Pipeline stages of the compute core.
    pub depth: u64,
}

/// A stream-width converter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Converter {
    /// Bits of a word read.
    pub bits_in: u64,
    /// Bits of a word written.
    pub bits_out: u64,
}

/// A node at pixel granularity: a reader fills a bounded line buffer, an engine fires once per output pixel.
///
/// Firing j starts when the pixels that its window needs have arrived and an output slot is free, and lasts
/// ⌊(j+1)·cycles/N⌋ − ⌊j·cycles/N⌋ cycles, N firings per frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Layer {
    /// Input map: rows, columns.
    pub input: (u64, u64),
    /// Output map: rows, columns.
    pub output: (u64, u64),
    /// Window: rows, columns; the whole map where a vector is computed from all of it.
    pub kernel: (u64, u64),
    /// Step: rows, columns.
    pub stride: (u64, u64),
    /// Zeros: top, left, bottom, right.
    pub pads: [u64; 4],
    /// Cycles per frame of the engine.
    pub cycles: u64,
    /// Cycles per frame of the reader, spread over the pixels as the engine's are over the firings.
    pub read_cycles: u64,
    /// Pixels that the line buffer holds. It lets go of whole rows, when no later window reaches them.
    pub buffer: u64,
    /// A firing needs all columns of its window's rows: the unit reads a row of windows before it writes them.
    pub whole_rows: bool,
}

/// What a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StageKind {
    /// Writes the frames at a rate.
    Source {
        /// Tokens per frame.
        tokens: u64,
        /// At which rate.
        rate: Rate,
    },
    /// Reads the results at a rate.
    Sink {
        /// Tokens per frame.
        tokens: u64,
        /// At which rate.
        rate: Rate,
    },
    /// Reads the frames from the memory that all memory stages share.
    MemorySource {
        /// Tokens per frame.
        tokens: u64,
        /// Bits per token.
        bits: u64,
    },
    /// Writes the results to the memory that all memory stages share.
    MemorySink {
        /// Tokens per frame.
        tokens: u64,
        /// Bits per token.
        bits: u64,
    },
    /// A FIFO of that many tokens.
    Fifo {
        /// Tokens.
        depth: u64,
    },
    /// Zeros around a map.
    Padding(Padding),
    /// A sliding window.
    Window(Window),
    /// A matrix-vector unit.
    MatrixVector(MatrixVector),
    /// A width converter.
    Converter(Converter),
    /// A node at pixel granularity; it may read several streams in step and write several in step.
    Layer(Layer),
}

/// A stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: StageKind,
}

/// Memory that sources and sinks share, first come first served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Memory {
    /// Bits per `cycles`.
    pub bits: u64,
    /// Cycles in which `bits` bits pass.
    pub cycles: u64,
}

/// A stream between two stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Link {
    /// Writer, by index.
    pub from: usize,
    /// Reader, by index, larger than the writer's.
    pub to: usize,
    /// Tokens of the FIFO at the output of a [`Layer`], besides the engine's output register. The units of FINN's RTL
    /// library have none: between them stands a [`StageKind::Fifo`].
    pub depth: u64,
}

/// Stages in topological order, and the streams between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipeline {
    /// Its name.
    pub name: String,
    /// Stages, writers before readers.
    pub stages: Vec<Stage>,
    /// Streams; a stage's inputs and outputs are numbered in this order.
    pub links: Vec<Link>,
    /// The memory of the memory stages.
    pub memory: Option<Memory>,
}

impl Pipeline {
    /// A chain of stages.
    #[must_use]
    pub fn chain(name: &str, stages: Vec<Stage>) -> Self {
        let links = (1..stages.len())
            .map(|to| Link {
                from: to - 1,
                to,
                depth: 0,
            })
            .collect();
        Self {
            name: name.to_owned(),
            stages,
            links,
            memory: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_spreads_its_tokens_evenly() {
        let cycles = |rate: Rate| {
            let mut at = 0;
            (0..5)
                .map(|_| {
                    let t = rate.next(at);
                    at = t + 1;
                    t
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(cycles(Rate::FULL), [0, 1, 2, 3, 4]);
        assert_eq!(cycles(Rate { tokens: 1, cycles: 4 }), [3, 7, 11, 15, 19]);
        assert_eq!(cycles(Rate { tokens: 2, cycles: 3 }), [1, 2, 4, 5, 7]);
    }

    #[test]
    fn a_window_with_stride_loads_ahead() {
        let window = Window {
            rows: 8,
            columns: 8,
            kernel: (2, 2),
            stride: (2, 2),
            dilation: (1, 1),
            turns: 4,
            parallel: false,
            depthwise: false,
        };
        assert_eq!((window.span(), window.buffer(), window.output()), (40, 56, (4, 4)));
    }
}
