//! What is counted, by the simulator and by the exact model alike, and the energy that follows from it.

use std::collections::BTreeMap;

use cyclonest_workloads::{Tensor, TensorMap};
use serde::{Deserialize, Serialize};

use crate::Accelerator;

/// Every count of one mapped layer, summed over the instances of each level.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Multiply-accumulates.
    pub macs: u64,
    /// One entry per storage level, outermost first.
    pub levels: Vec<LevelCounts>,
}

/// Counts of one storage level and of the network below it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LevelCounts {
    /// Name of the level.
    pub name: String,
    /// Accesses of each tensor; all 0 where the level does not keep it.
    pub tensors: TensorMap<Accesses>,
    /// Traffic of each tensor on the network below; all empty where nothing passes.
    pub network: TensorMap<Traffic>,
}

/// Accesses of one tensor at one level \[elements\].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Accesses {
    /// Elements read: to serve children, and to accumulate or read-modify-write.
    pub reads: u64,
    /// Elements that arrived from the parent (operands, and fetched partial sums).
    pub fills: u64,
    /// Elements of outputs written by children or lanes.
    pub updates: u64,
    /// Elements of outputs sent to the parent.
    pub drains: u64,
    /// Of the updates, those that had to be read first because a sibling's stream came before (rule 19).
    pub read_modify_writes: u64,
}

/// Traffic of one tensor on the networks below one level.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Traffic {
    /// Towards the children, by multicast degree: how many children one pass serves.
    pub down: BTreeMap<u64, Passes>,
    /// Towards the parent, by reduction degree: how many children's partial sums one pass carries.
    pub up: BTreeMap<u64, Passes>,
    /// Σ over passes of bits × links of the X-then-Y tree from the corner (0,0) to the children served.
    pub bit_hops: u64,
}

/// Passes through a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Passes {
    /// Elements, once per pass.
    pub elements: u64,
    /// Channel words, once per pass: Σ ⌈bits ÷ width⌉ (equal to the elements where the width is unlimited).
    pub words: u64,
}

impl Counts {
    /// Empty counts for the levels of `arch`.
    #[must_use]
    pub fn new(arch: &Accelerator) -> Self {
        let level = |l: &crate::Level| LevelCounts {
            name: l.name.clone(),
            ..LevelCounts::default()
        };
        Counts {
            macs: 0,
            levels: arch.levels.iter().map(level).collect(),
        }
    }

    /// Energy \[pJ\]: accesses × energy per access, bit hops × energy per bit hop, MACs × energy per MAC.
    #[must_use]
    pub fn energy_pj(&self, arch: &Accelerator) -> f64 {
        let mut energy = self.macs as f64 * arch.compute.energy_per_mac;
        for (counts, level) in self.levels.iter().zip(&arch.levels) {
            for tensor in Tensor::ALL {
                if let Some(bank) = level.bank(tensor) {
                    let a = &counts.tensors[tensor];
                    energy += (a.reads + a.drains) as f64 * bank.energy.read;
                    energy += (a.fills + a.updates) as f64 * bank.energy.write;
                }
                if let Some(network) = &level.below {
                    energy += counts.network[tensor].bit_hops as f64 * network.energy_per_bit_hop;
                }
            }
        }
        energy
    }
}
