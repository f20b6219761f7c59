//! The stages of a pipeline: each a file with its state, its step and its relative state.
//!
//! A stage steps at most once per cycle, readers before writers. When it steps it knows whether its outputs have been
//! taken in this cycle, sees which inputs are valid, decides which it takes, and leaves the outputs' validity for the
//! next cycle. So a ready signal may depend on the reader's ready signal of the same cycle, a valid signal only on
//! registers: what the RTL of the units does.

mod converter;
mod ends;
mod fifo;
pub(super) mod layer;
mod matrix;
mod padding;
mod window;

use cyclonest_arch::streaming::pipeline::StageKind;

/// A stream between two stages.
#[derive(Debug, Clone, Default)]
pub(super) struct Link {
    /// The writer offers a token in this cycle.
    pub valid: bool,
    /// The reader has taken it in this cycle.
    pub taken: bool,
    /// Tokens that have passed.
    pub transfers: u64,
    /// Cycle of the first token.
    pub first: Option<u64>,
    /// Cycle of the last token.
    pub last: u64,
    /// Cycle in which the current valid span began.
    pub valid_since: u64,
    /// Cycles of earlier valid spans.
    pub valid_cycles: u64,
    /// Pixel that is offered, where values are simulated.
    pub value: Option<std::sync::Arc<[i64]>>,
}

/// The memory that sources and sinks share; time is counted in ticks, `ticks_per_cycle` of them per cycle.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MemoryState {
    pub ticks_per_cycle: u64,
    pub ticks_per_bit: u64,
    /// Tick at which it has done what was asked of it.
    pub free: u64,
}

/// When a stage wants to step again, neighbours apart: a token offered or taken always steps it. A stage of registers
/// steps on as long as one of them changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// In the next cycle.
    Next,
    /// In that cycle.
    At(u64),
    /// Only when a neighbour moves.
    Idle,
}

impl Wake {
    /// In the next cycle if anything changed in this one.
    const fn if_moved(moved: bool) -> Self {
        if moved { Self::Next } else { Self::Idle }
    }
}

/// What a stage sees of its surroundings in one cycle.
pub(super) struct Io<'e> {
    pub now: u64,
    pub links: &'e mut [Link],
    pub inputs: &'e [usize],
    pub outputs: &'e [usize],
    pub memory: &'e mut MemoryState,
    /// Readers to be woken in the next cycle, as link indices.
    pub offered: &'e mut Vec<usize>,
    /// Writers to be woken in this cycle, as link indices.
    pub accepted: &'e mut Vec<usize>,
}

impl Io<'_> {
    /// Whether input `i` offers a token.
    pub(super) fn is_valid(&self, i: usize) -> bool {
        self.links[self.inputs[i]].valid
    }

    /// Takes the token of input `i`.
    pub(super) fn take(&mut self, i: usize) {
        let index = self.inputs[i];
        let link = &mut self.links[index];
        debug_assert!(link.valid && !link.taken, "a token is offered and not yet taken");
        link.taken = true;
        link.transfers += 1;
        link.first.get_or_insert(self.now);
        link.last = self.now;
        self.accepted.push(index);
    }

    /// Whether output `o` offers a token in this cycle.
    pub(super) fn offers(&self, o: usize) -> bool {
        self.links[self.outputs[o]].valid
    }

    /// Whether output `o` offers a token that is not taken in this cycle.
    pub(super) fn is_blocked(&self, o: usize) -> bool {
        let link = &self.links[self.outputs[o]];
        link.valid && !link.taken
    }

    /// Whether the token of output `o` was taken in this cycle.
    pub(super) fn is_taken(&self, o: usize) -> bool {
        self.links[self.outputs[o]].taken
    }

    /// Sets whether output `o` offers a token in the next cycle. Must be called once per step and output.
    pub(super) fn offer(&mut self, o: usize, valid: bool) {
        let index = self.outputs[o];
        let now = self.now;
        let link = &mut self.links[index];
        // A reader that has not taken a token knows of it already.
        let fresh = valid && (link.taken || !link.valid);
        link.taken = false;
        if valid && !link.valid {
            link.valid_since = now + 1;
        } else if !valid && link.valid {
            link.valid_cycles += now + 1 - link.valid_since;
        }
        if fresh {
            self.offered.push(index);
        }
        link.valid = valid;
    }
}

/// Why a stage does not move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// It has nothing to do.
    Done,
    /// For a token of input `i`.
    Input(usize),
    /// For output `o` to be taken.
    Output(usize),
}

/// What all stages share.
pub(super) trait Step {
    /// One cycle.
    fn step(&mut self, io: &mut Io<'_>) -> Wake;

    /// Everything that decides the future, relative to `now` and to the frame.
    fn key(&self, now: u64, key: &mut Vec<u64>);

    /// Moves the state by whole frames and cycles: nothing in the key changes.
    fn shift(&mut self, frames: u64, cycles: u64);

    /// What it would need to move, given that nothing moves.
    fn waits(&self) -> Waits;
}

/// The state of a stage.
#[derive(Debug, Clone)]
pub(super) enum State {
    Source(ends::Source),
    Sink(ends::Sink),
    MemorySource(ends::MemorySource),
    MemorySink(ends::MemorySink),
    Fifo(fifo::Fifo),
    Padding(padding::Padding),
    Window(window::Window),
    ParallelWindow(window::ParallelWindow),
    MatrixVector(matrix::MatrixVector),
    Converter(converter::Converter),
    Layer(Box<layer::Layer>),
}

impl Default for State {
    fn default() -> Self {
        Self::Fifo(fifo::Fifo::new(1))
    }
}

macro_rules! each {
    ($state:expr, $stage:ident => $body:expr) => {
        match $state {
            State::Source($stage) => $body,
            State::Sink($stage) => $body,
            State::MemorySource($stage) => $body,
            State::MemorySink($stage) => $body,
            State::Fifo($stage) => $body,
            State::Padding($stage) => $body,
            State::Window($stage) => $body,
            State::ParallelWindow($stage) => $body,
            State::MatrixVector($stage) => $body,
            State::Converter($stage) => $body,
            State::Layer($stage) => $body,
        }
    };
}

impl State {
    /// The initial state of a stage for a run of `frames` frames with that many inputs and outputs.
    pub(super) fn new(kind: &StageKind, frames: u64, inputs: usize, depths: &[u64]) -> Result<Self, String> {
        Ok(match *kind {
            StageKind::Source { tokens, rate } => Self::Source(ends::Source::new(tokens, rate, frames)),
            StageKind::Sink { tokens, rate } => Self::Sink(ends::Sink::new(tokens, rate)),
            StageKind::MemorySource { tokens, bits } => {
                Self::MemorySource(ends::MemorySource::new(tokens, bits, frames))
            }
            StageKind::MemorySink { tokens, bits } => Self::MemorySink(ends::MemorySink::new(tokens, bits)),
            StageKind::Fifo { depth } => Self::Fifo(fifo::Fifo::new(depth)),
            StageKind::Padding(p) => Self::Padding(padding::Padding::new(p)),
            StageKind::Window(w) if w.parallel => Self::ParallelWindow(window::ParallelWindow::new(w)),
            StageKind::Window(w) => Self::Window(window::Window::new(w)),
            StageKind::MatrixVector(m) => Self::MatrixVector(matrix::MatrixVector::new(m)),
            StageKind::Converter(c) => Self::Converter(converter::Converter::new(c)?),
            StageKind::Layer(l) => Self::Layer(Box::new(layer::Layer::new(l, inputs, depths)?)),
        })
    }

    pub(super) fn step(&mut self, io: &mut Io<'_>) -> Wake {
        each!(self, stage => stage.step(io))
    }

    pub(super) fn key(&self, now: u64, key: &mut Vec<u64>) {
        each!(self, stage => stage.key(now, key));
    }

    pub(super) fn shift(&mut self, frames: u64, cycles: u64) {
        each!(self, stage => stage.shift(frames, cycles));
    }

    /// Cycles in which a layer's engine fired.
    pub(super) fn busy(&self) -> u64 {
        if let Self::Layer(layer) = self { layer.busy } else { 0 }
    }

    /// Counts cycles that were skipped.
    pub(super) fn add_busy(&mut self, cycles: u64) {
        if let Self::Layer(layer) = self {
            layer.busy += cycles;
        }
    }

    /// Cycle of a layer's first firing.
    pub(super) fn first_firing(&self) -> Option<u64> {
        if let Self::Layer(layer) = self {
            layer.first_firing
        } else {
            None
        }
    }

    /// Whether the first output offers a token in cycle 0.
    pub(super) const fn offers_at_start(&self) -> bool {
        match self {
            Self::Source(source) => source.offers_at_start(),
            Self::Padding(padding) => padding.offers_at_start(),
            _ => false,
        }
    }

    /// Frames that a source has not yet begun; `None` for other stages.
    pub(super) const fn frames_left(&self) -> Option<u64> {
        match self {
            Self::Source(source) => Some(source.frames_left()),
            Self::MemorySource(source) => Some(source.frames_left()),
            _ => None,
        }
    }

    /// Tokens per frame of a source or sink.
    pub(super) const fn frame_tokens(&self) -> Option<u64> {
        match self {
            Self::Source(source) => Some(source.tokens),
            Self::MemorySource(source) => Some(source.tokens),
            Self::Sink(sink) => Some(sink.tokens),
            Self::MemorySink(sink) => Some(sink.tokens),
            _ => None,
        }
    }

    /// Tokens that a sink has taken and the ends of the frames that it saw end; `None` for other stages.
    pub(super) fn received(&self) -> Option<(u64, &[u64])> {
        match self {
            Self::Sink(sink) => Some((sink.taken, &sink.frame_ends)),
            Self::MemorySink(sink) => Some((sink.taken, &sink.frame_ends)),
            _ => None,
        }
    }

    pub(super) fn waits(&self) -> Waits {
        each!(self, stage => stage.waits())
    }
}
