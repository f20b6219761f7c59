//! Watching a simulation: what happens when, for traces.
//!
//! The engine is compiled once per [`Observer`]; with [`Silent`], which [`simulate`](crate::simulate) uses, nothing of
//! this is left in the code. Times are simulated cycles from the start. Within one cycle, calls come in the order in
//! which things happen; calls about intervals come when their end is known, which may lie in the future (ports and
//! networks) or in the past (stalls).

use cyclonest_workloads::Tensor;

use crate::StallReason;

/// Something that is told what happens in a simulation.
#[allow(unused_variables)]
pub trait Observer {
    /// False for an observer that wants to know nothing: the calls are left out when the engine is compiled.
    const ACTIVE: bool = true;

    /// A transfer has been requested: its members have taken their slots.
    fn requested(&mut self, at: u64, transfer: &TransferInfo<'_>) {}

    /// A transfer's head has reached a stage at `reached` and occupies it from `stage.start` to `stage.end`.
    ///
    /// The first stage of a transfer is its start.
    fn stage(&mut self, transfer: u64, stage: &StageInfo<'_>) {}

    /// A transfer's tail has arrived; its number may be used again.
    fn arrived(&mut self, at: u64, transfer: u64) {}

    /// A PE computes a step from `from` to `to`.
    fn burst(&mut self, pe: u32, from: u64, to: u64) {}

    /// A PE waited from `from` to `to`. Intervals of one PE follow each other; `Finished` and `Unmapped` are not told.
    fn stalled(&mut self, pe: u32, from: u64, to: u64, reason: StallReason) {}

    /// Slots of a buffer that are taken, from `at` on.
    fn occupancy(&mut self, at: u64, buffer: Buffer, slots: u64) {}

    /// A stretch of time is left out, because the same happened before.
    ///
    /// What is under way when time goes on is told anew: transfers are requested again, under other numbers, bursts
    /// that have begun follow from there to their end, and so does the occupancy of every buffer.
    fn skipped(&mut self, stretch: Skipped) {}

    /// Time up to which stretches may be skipped, asked at `now`: a value that is not later than `now` forbids
    /// skipping.
    fn skip_until(&self, now: u64) -> u64 {
        u64::MAX
    }
}

/// A stretch that was not simulated, because the machine went through the same before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// First cycle that was not simulated.
    pub from: u64,
    /// Where time goes on.
    pub to: u64,
    /// Start of the stretch that was simulated (or itself put together from such) and has the same events.
    pub like: u64,
    /// Length of that stretch in cycles: `to - from = period * times`.
    pub period: u64,
    /// How often it repeats in what is skipped.
    pub times: u64,
}

/// What a transfer carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransferKind {
    /// Operand to children.
    Fill,
    /// Partial sum to a child.
    Fetch,
    /// Outputs to the parent.
    Drain,
}

/// A transfer as it is requested.
#[derive(Debug, Clone, Copy)]
pub struct TransferInfo<'a> {
    /// Names the transfer until its arrival.
    pub transfer: u64,
    /// What it is.
    pub kind: TransferKind,
    /// Tensor that is moved.
    pub tensor: Tensor,
    /// Level of the parent, where fills and fetches start and drains end.
    pub parent_level: usize,
    /// Level of the children.
    pub level: usize,
    /// Instance of the parent.
    pub parent: u32,
    /// First step of what it carries (rule 1): the number of the setting of all temporal loops outside the child's
    /// level, as a mixed-radix number in nest order.
    pub step: u64,
    /// Instances of the children that it serves or joins; their number is the degree.
    pub members: &'a [u32],
    /// Elements.
    pub elements: u64,
    /// Bits per element.
    pub bits: u64,
}

/// What a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StageKind {
    /// Read ports of instances of the level.
    Read,
    /// Write ports of instances of the level.
    Write,
    /// Networks below instances of the level, towards the children.
    Down,
    /// Networks below instances of the level, towards the parent.
    Up,
}

/// A transfer at a stage of its path.
#[derive(Debug, Clone, Copy)]
pub struct StageInfo<'a> {
    /// What it is.
    pub kind: StageKind,
    /// Tensor that is moved.
    pub tensor: Tensor,
    /// Level of the ports, or level above the networks.
    pub level: usize,
    /// Instances of that level whose ports or networks are occupied.
    pub instances: &'a [u32],
    /// When the head got there.
    pub reached: u64,
    /// When it was let in.
    pub start: u64,
    /// When the next one may be let in.
    pub end: u64,
}

/// The slots of one tensor in one instance of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Buffer {
    /// Level.
    pub level: usize,
    /// Instance of the level; at the PE level, the number of the PE.
    pub instance: u32,
    /// Tensor.
    pub tensor: Tensor,
}

/// An observer that wants to know nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    const ACTIVE: bool = false;
}
