//! What to simulate, and what comes of it.

use serde::{Deserialize, Serialize};

/// What to simulate.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Frames.
    pub frames: u64,
    /// Skip frames exactly where the state recurs.
    pub fast_forward: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            frames: 8,
            fast_forward: true,
        }
    }
}

/// Why there is no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PipelineError {
    /// A stage cannot exist or a stream does not fit it.
    #[error("stage `{stage}`: {message}")]
    Stage {
        /// Its name.
        stage: String,
        /// What is wrong.
        message: String,
    },
    /// Work is left and nothing can move.
    #[error("deadlock at cycle {cycle}: {}", .chain.join(" → "))]
    Deadlock {
        /// When the last stage moved.
        cycle: u64,
        /// Who waits for whom, and for what; the last waits for the first if it is a cycle.
        chain: Vec<String>,
        /// The links, by index, whose FIFO is full in the chain.
        full: Vec<usize>,
    },
}

/// When frames pass a point.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FrameTimes {
    /// The cycle of each simulated frame's last token; skipped frames are left out.
    pub ends: Vec<u64>,
}

/// What a link did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Writer.
    pub from: String,
    /// Reader.
    pub to: String,
    /// Tokens passed.
    pub transfers: u64,
    /// Cycle of the first and of the last token.
    pub span: (u64, u64),
    /// Cycles in which a token was offered and not taken: the reader was not ready.
    pub blocked: u64,
    /// Cycles after the first token in which none was offered: the reader could starve.
    pub empty: u64,
    /// Largest number of tokens in the writer's output FIFO, its output register included; 0 where it has none.
    pub high_water: u64,
}

/// What a stage did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageReport {
    /// Its name.
    pub name: String,
    /// Cycles in which its engine fired (layers).
    pub busy: u64,
    /// Cycle of its first firing: how long the pipeline took to fill up to it (layers).
    pub fill: u64,
    /// Cycles between its first firing and the end in which it did not fire for want of input, as seen at its inputs.
    pub starved: u64,
    /// Cycles in which a result of its was not taken.
    pub blocked: u64,
}

/// What a pipeline did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineOutcome {
    /// Cycles until the last token has left.
    pub cycles: u64,
    /// Frames that have left.
    pub frames: u64,
    /// Frames leaving, at the sink that is last.
    pub out: FrameTimes,
    /// Frames entering, at the first source.
    pub input: FrameTimes,
    /// Cycles until the first frame's last token has left, counted from cycle 0.
    pub first_frame: u64,
    /// Cycles per frame between the first and the last frame, as a fraction: cycles, frames.
    pub interval: (u64, u64),
    /// Stages, in the pipeline's order.
    pub stages: Vec<StageReport>,
    /// Links, in the pipeline's order.
    pub links: Vec<LinkReport>,
    /// Frames and cycles of the recurrence that was skipped, and how often; `None` if none was.
    pub skipped: Option<(u64, u64, u64)>,
    /// Stages stepped.
    pub steps: u64,
    /// Output frames, pixel by pixel, where values were simulated.
    pub values: Vec<Vec<Vec<i64>>>,
}

impl PipelineOutcome {
    /// Cycles per frame between the first and the last frame; the first frame's time if there was only one.
    #[must_use]
    pub fn interval(&self) -> f64 {
        #![allow(clippy::cast_precision_loss)]
        if self.interval.1 == 0 {
            self.first_frame as f64
        } else {
            self.interval.0 as f64 / self.interval.1 as f64
        }
    }
}
