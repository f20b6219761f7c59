//! What the simulation reads: stages with their timing and channels with their depth.
/// Placeholder.
#[derive(Debug)]
pub struct Pipeline;
