//! Who is to blame when a PE waits (rule 23).
//!
//! Blame is settled backwards: when an operand becomes ready, the cycles since the PE began to wait for it are
//! divided among the things that held it up, from the times at which each of them let go.

use cyclonest_workloads::Tensor;

use crate::{Cycle, StallReason};

/// Counters of all reasons, indexed densely.
#[derive(Debug, Clone)]
pub(crate) struct Blame {
    levels: usize,
    pub(super) cycles: Vec<u64>,
}

const KINDS: usize = 5;

impl Blame {
    pub(crate) fn new(levels: usize) -> Self {
        Blame {
            levels,
            cycles: vec![0; KINDS * 3 * levels + 1],
        }
    }

    fn index(&self, reason: StallReason) -> usize {
        let (kind, tensor, level) = match reason {
            StallReason::Slot { tensor, level } => (0, tensor, level),
            StallReason::Port { tensor, level } => (1, tensor, level),
            StallReason::Network { tensor, level } => (2, tensor, level),
            StallReason::InFlight { tensor, level } => (3, tensor, level),
            StallReason::PartialSum { level } => (4, Tensor::Outputs, level),
            StallReason::Pipeline | StallReason::Finished | StallReason::Unmapped => {
                return self.cycles.len() - 1;
            }
        };
        (kind * 3 + tensor as usize) * self.levels + level
    }

    /// A number for a reason, the same wherever it is asked for.
    pub(crate) fn code(reason: StallReason) -> u64 {
        let (kind, tensor, level) = match reason {
            StallReason::Slot { tensor, level } => (0, tensor, level),
            StallReason::Port { tensor, level } => (1, tensor, level),
            StallReason::Network { tensor, level } => (2, tensor, level),
            StallReason::InFlight { tensor, level } => (3, tensor, level),
            StallReason::PartialSum { level } => (4, Tensor::Outputs, level),
            StallReason::Pipeline | StallReason::Finished | StallReason::Unmapped => (5, Tensor::Outputs, 0),
        };
        (level as u64) << 8 | (tensor as u64) << 4 | kind
    }

    pub(crate) fn add(&mut self, reason: StallReason, cycles: u64) {
        let index = self.index(reason);
        self.cycles[index] += cycles;
    }

    /// Every reason with its cycles; `Finished` and `Unmapped` are counted elsewhere.
    pub(crate) fn totals(&self) -> impl Iterator<Item = (StallReason, u64)> + '_ {
        let mut reasons = vec![StallReason::Pipeline];
        for level in 0..self.levels {
            reasons.push(StallReason::PartialSum { level });
            for tensor in Tensor::ALL {
                reasons.extend([
                    StallReason::Slot { tensor, level },
                    StallReason::Port { tensor, level },
                    StallReason::Network { tensor, level },
                    StallReason::InFlight { tensor, level },
                ]);
            }
        }
        reasons
            .into_iter()
            .map(|r| (r, self.cycles[self.index(r)]))
            .filter(|&(_, cycles)| cycles > 0)
    }
}

/// What held something up: each reason lasts until its time, in ascending order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timeline(pub(crate) Vec<(Cycle, StallReason)>);

impl Timeline {
    /// `reason` lasted until `end`.
    #[inline]
    pub(crate) fn until(&mut self, end: Cycle, reason: StallReason) {
        if self.0.last().is_none_or(|&(last, _)| last < end) {
            self.0.push((end, reason));
        }
    }
}
