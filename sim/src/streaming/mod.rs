//! Simulation of streaming pipelines: stages with valid/ready handshakes, cycle by cycle.
//!
//! The hot loop is one specs system over columns of stages and links. In each cycle only the stages step that a
//! neighbour or their own timer has woken, readers before writers; when nobody is awake, time jumps to the next
//! timer. Where the whole state recurs at the end of a frame, the frames between are skipped exactly.

mod engine;
mod lower;
mod outcome;
mod sizing;
mod stage;
mod values;

pub use engine::{simulate, simulate_values};
pub use lower::{DEFAULT_DEPTH, DesignOutcome, Ends, PartitionOutcome, partition_pipeline, simulate_design};
pub use outcome::{FrameTimes, LinkReport, Options, PipelineError, PipelineOutcome, StageReport};
pub use sizing::{Sizing, resolve_deadlock, size_fifos};
pub use values::{Kernel, kernels};
