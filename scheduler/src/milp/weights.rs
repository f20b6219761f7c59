//! What the objective of the program is made of.

use std::collections::BTreeMap;

use cyclonest_workloads::TensorMap;
use serde::{Deserialize, Serialize};

/// Weights of the composite objective. Every part is a sum of log₂ of cycles, elements or trips.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Weights {
    /// Of the busiest resource: the largest occupancy of any lane, port or channel (cycles), or the largest energy of
    /// any access (pJ).
    pub bottleneck: f64,
    /// Of the temporal trips (CoSA's Comp).
    pub compute: f64,
    /// Of the traffic between every two levels that keep a tensor (CoSA's Traf).
    pub traffic: f64,
    /// Of the tiles kept on the chip, counted against the objective (CoSA's Util).
    pub utilization: f64,
    /// Factor of the traffic of each tensor.
    pub tensors: TensorMap<Option<f64>>,
    /// Factor of the traffic into a level, by its name.
    pub levels: BTreeMap<String, f64>,
}

impl Default for Weights {
    fn default() -> Self {
        Weights {
            bottleneck: 1.0,
            compute: 0.02,
            traffic: 0.02,
            utilization: 0.0,
            tensors: TensorMap::default(),
            levels: BTreeMap::new(),
        }
    }
}

impl Weights {
    /// The bottleneck with more weight on keeping every lane busy.
    pub(crate) fn compute() -> Self {
        Weights {
            compute: 0.5,
            ..Weights::default()
        }
    }

    /// The bottleneck with more weight on moving little.
    pub(crate) fn traffic() -> Self {
        Weights {
            traffic: 0.2,
            ..Weights::default()
        }
    }

    /// The constants in CoSA's code: 10·Comp − 0.1·Util + 1·Traf, without a bottleneck.
    #[must_use]
    pub fn cosa() -> Self {
        Weights {
            bottleneck: 0.0,
            compute: 10.0,
            traffic: 1.0,
            utilization: 0.1,
            ..Weights::default()
        }
    }
}
