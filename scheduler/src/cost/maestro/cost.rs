//! Energy, area and power.

use serde::{Deserialize, Serialize};

use super::{Evaluation, Machine};

/// Energy of an L2 access, in MACs.
const L2: f64 = 18.61;
/// Energy of an L1 access, in MACs.
const L1: f64 = 1.68;

impl Evaluation {
    /// Energy in units of one MAC: 18.61 per L2 access, 1.68 per L1 access, 1 per MAC.
    #[must_use]
    pub fn energy_macs(&self) -> f64 {
        let [l2_write, l2_read, l1_write, l1_read] = self.energy_parts();
        l2_write + l2_read + l1_write + l1_read + self.macs as f64
    }

    /// Energy of L2 writes, L2 reads, L1 writes and L1 reads, in units of one MAC.
    #[must_use]
    pub fn energy_parts(&self) -> [f64; 4] {
        let sum = |of: &dyn Fn(&super::TensorCosts) -> i64| self.tensors.iter().map(|t| of(t) as f64).sum::<f64>();
        [
            sum(&|t| t.l2_write) * L2,
            sum(&|t| t.l2_read) * L2,
            sum(&|t| t.l1_write) * L1,
            sum(&|t| t.l1_read) * L1,
        ]
    }

    /// L1 needed in one PE, all tensors \[elements\].
    #[must_use]
    pub fn l1_required(&self) -> i64 {
        self.tensors.iter().map(|t| t.l1_required).sum()
    }

    /// L2 needed, all tensors \[elements\].
    #[must_use]
    pub fn l2_required(&self) -> i64 {
        self.tensors.iter().map(|t| t.l2_required).sum()
    }

    /// Area of a machine with buffers of just the required sizes.
    #[must_use]
    pub fn area(&self, machine: &Machine) -> Area {
        Area::new(machine, 1, self.l1_required() as f64, self.l2_required() as f64)
    }

    /// Power of a machine with buffers of just the required sizes.
    #[must_use]
    pub fn power(&self, machine: &Machine) -> Power {
        Power::new(machine, 1, self.l1_required() as f64, self.l2_required() as f64)
    }
}

/// Buses and arbiters: the terms of area and power that grow with the PEs.
fn bus(pes: f64) -> f64 {
    14.662 * pes + 28.895
}

fn arbiter(pes: f64) -> f64 {
    1.2886 * pes * pes + 5.5814 * pes - 23.711
}

/// Area \[µm²\], from MAESTRO's regression over synthesised designs (28 nm).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Area {
    /// MACs and their registers.
    pub pe: f64,
    /// L1 of all PEs.
    pub l1: f64,
    /// L2.
    pub l2: f64,
    /// Network.
    pub noc: f64,
}

impl Area {
    /// Area of a machine with `lanes` MACs per PE, `l1` elements of L1 per PE and `l2` elements of L2.
    #[must_use]
    pub fn new(machine: &Machine, lanes: u64, l1: f64, l2: f64) -> Self {
        let pes = machine.pes as f64;
        Area {
            pe: pes * 283.0 * lanes as f64,
            l1: pes * 0.104 * l1,
            l2: 0.104 * l2,
            noc: 101.7938 * bus(pes) * machine.noc_bandwidth as f64 + 395.473 * arbiter(pes).max(1.0),
        }
    }

    /// The sum.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.pe + self.l1 + self.l2 + self.noc
    }
}

/// Power \[mW\], from the same regression.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Power {
    /// MACs and their registers.
    pub pe: f64,
    /// L1 of all PEs.
    pub l1: f64,
    /// L2.
    pub l2: f64,
    /// Network.
    pub noc: f64,
}

impl Power {
    /// Power of a machine with `lanes` MACs per PE, `l1` elements of L1 per PE and `l2` elements of L2.
    #[must_use]
    pub fn new(machine: &Machine, lanes: u64, l1: f64, l2: f64) -> Self {
        let pes = machine.pes as f64;
        Power {
            pe: pes * 1.2223 * lanes as f64,
            l1: pes * 0.00345 * l1,
            l2: 0.00345 * l2,
            noc: 0.0008 * bus(pes) * machine.noc_bandwidth as f64 + (0.00034 * arbiter(pes)).max(0.34),
        }
    }

    /// The sum.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.pe + self.l1 + self.l2 + self.noc
    }
}
