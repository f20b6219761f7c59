//! The design space of a plan: every combination of its values, numbered.

use cyclonest_arch::{Resources, Technology};
use cyclonest_workloads::{DistinctLayer, Network};
use serde::{Deserialize, Serialize};

use super::plan::{MappingChoice, Pes, Plan, Size};

/// The loops of a sweep, outermost first. What costs the most to analyse anew is outermost; the bandwidth, which only
/// enters a maximum, innermost.
pub(crate) const LOOPS: usize = 9;
pub(crate) const MAPPING: usize = 0;
pub(crate) const PES: usize = 1;
pub(crate) const MULTICAST: usize = 2;
pub(crate) const REDUCTION: usize = 3;
pub(crate) const LATENCY: usize = 4;
pub(crate) const OFFCHIP: usize = 5;
pub(crate) const L1: usize = 6;
pub(crate) const L2: usize = 7;
pub(crate) const BANDWIDTH: usize = 8;

/// A design: one value of every range. Sizes are `None` where they follow from the mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Design {
    /// Its number in the space.
    pub number: u64,
    /// Which of the plan's mappings.
    pub mapping: usize,
    /// PEs as columns × rows; schedulers map to this mesh, styles to their product.
    pub mesh: (u64, u64),
    /// Whether the network multicasts.
    pub multicast: bool,
    /// Whether the network reduces.
    pub reduction: bool,
    /// Latency of the network \[cycles\].
    pub noc_latency: u64,
    /// Elements per cycle to and from the outside.
    pub offchip_bandwidth: u64,
    /// L1 of one PE \[elements\].
    pub l1: Option<u64>,
    /// L2 \[elements\].
    pub l2: Option<u64>,
    /// Elements that the network moves per cycle.
    pub noc_bandwidth: u64,
}

impl Design {
    /// PEs.
    #[must_use]
    pub const fn pes(&self) -> u64 {
        self.mesh.0 * self.mesh.1
    }

    /// What its area and power depend on, with buffers of these sizes.
    #[must_use]
    pub const fn resources(&self, l1: u64, l2: u64) -> Resources {
        Resources {
            pes: self.pes(),
            l1,
            l2,
            bandwidth: self.noc_bandwidth,
        }
    }
}

/// A plan with everything that it names.
#[derive(Debug, Clone)]
pub struct Space {
    /// The plan.
    pub plan: Plan,
    /// Its technology.
    pub technology: Technology,
    /// The layers, with how often the network runs each.
    pub layers: Vec<DistinctLayer>,
    pub(crate) meshes: Vec<(u64, u64)>,
    pub(crate) latencies: Vec<u64>,
    pub(crate) offchip: Vec<u64>,
    /// A single `None` where the size follows from the mapping.
    pub(crate) l1: Vec<Option<u64>>,
    pub(crate) l2: Vec<Option<u64>>,
    pub(crate) bandwidths: Vec<u64>,
    /// Values of each loop, and designs in one turn of it.
    pub(crate) lengths: [u64; LOOPS],
    pub(crate) strides: [u64; LOOPS],
    total: u64,
    macs: u64,
}

/// What is wrong with a plan that is well-formed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpaceError {
    /// A layer that the network does not have.
    #[error("{at}: unknown layer `{found}` of {network}{help}", help = .help.as_ref().map_or(String::new(), |h| format!("\n  help: {h}")))]
    UnknownLayer {
        /// Where in the plan.
        at: String,
        /// The name.
        found: String,
        /// The network.
        network: String,
        /// The nearest name, or all.
        help: Option<String>,
    },
    /// A scheduler that does not exist.
    #[error("{at}: unknown scheduler `{found}`{help}", help = .help.as_ref().map_or(String::new(), |h| format!("\n  help: {h}")))]
    UnknownScheduler {
        /// Where in the plan.
        at: String,
        /// The name.
        found: String,
        /// The nearest name, or all.
        help: Option<String>,
    },
    /// Nothing to map.
    #[error("network {0}: no layer has multiplications")]
    NoLayers(String),
    /// More designs than can be numbered.
    #[error("the space has more than {} designs", u64::MAX)]
    TooLarge,
}

impl SpaceError {
    /// The place in the plan, where it is about one of its values.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            SpaceError::UnknownLayer { at, .. } | SpaceError::UnknownScheduler { at, .. } => Some(at),
            SpaceError::NoLayers(_) | SpaceError::TooLarge => None,
        }
    }
}

/// The nearest of the known names, or all of them.
fn help(found: &str, known: &[String]) -> Option<String> {
    let known = || known.iter().map(String::as_str);
    Some(match cyclonest_arch::nearest(found, known()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("known: {}", known().collect::<Vec<_>>().join(", ")),
    })
}

impl Space {
    /// The space of a checked plan.
    ///
    /// # Errors
    /// Every name that is unknown; a space that is too large to be numbered.
    pub fn new(plan: Plan, technology: Technology, network: &Network) -> Result<Self, Vec<SpaceError>> {
        let all = network.distinct();
        let mut errors = Vec::new();
        let known: Vec<String> = all.iter().flat_map(|layer| layer.names.clone()).collect();
        for (i, name) in plan.layers.iter().enumerate() {
            if !known.contains(name) {
                errors.push(SpaceError::UnknownLayer {
                    at: format!("layers[{i}]"),
                    found: name.clone(),
                    network: network.name().to_owned(),
                    help: help(name, &known),
                });
            }
        }
        for (i, mapping) in plan.mappings.iter().enumerate() {
            if let MappingChoice::Scheduler(name) = mapping
                && crate::by_name(name).is_none()
            {
                errors.push(SpaceError::UnknownScheduler {
                    at: format!("mappings[{i}]"),
                    found: name.clone(),
                    help: help(name, &crate::names().collect::<Vec<_>>()),
                });
            }
        }
        let mut layers = all;
        if !plan.layers.is_empty() {
            // A layer that is named counts once, a whole network as often as it runs it.
            layers.retain_mut(|layer| {
                let named = layer.names.iter().filter(|name| plan.layers.contains(name)).count();
                layer.count = named as u64;
                named > 0
            });
        }
        if layers.is_empty() && errors.is_empty() {
            errors.push(SpaceError::NoLayers(network.name().to_owned()));
        }
        let meshes = match &plan.pes {
            Pes::Count(values) => values.values().into_iter().map(square).collect(),
            Pes::Mesh(meshes) => meshes.clone(),
        };
        let sizes = |size: &Size| match size {
            Size::AsNeeded => vec![None],
            Size::Sizes(values) => values.values().into_iter().map(Some).collect(),
        };
        let mut space = Space {
            latencies: plan.noc_latency.values(),
            offchip: plan.offchip_bandwidth.values(),
            l1: sizes(&plan.l1),
            l2: sizes(&plan.l2),
            bandwidths: plan.noc_bandwidth.values(),
            macs: layers.iter().map(|layer| layer.count * layer.problem.macs()).sum(),
            meshes,
            plan,
            technology,
            layers,
            lengths: [0; LOOPS],
            strides: [0; LOOPS],
            total: 1,
        };
        let plan = &space.plan;
        space.lengths = [
            plan.mappings.len(),
            space.meshes.len(),
            plan.multicast.len(),
            plan.reduction.len(),
            space.latencies.len(),
            space.offchip.len(),
            space.l1.len(),
            space.l2.len(),
            space.bandwidths.len(),
        ]
        .map(|n| n as u64);
        for (stride, length) in space.strides.iter_mut().zip(space.lengths).rev() {
            *stride = space.total;
            match space.total.checked_mul(length) {
                Some(total) => space.total = total,
                None => {
                    errors.push(SpaceError::TooLarge);
                    break;
                }
            }
        }
        if errors.is_empty() { Ok(space) } else { Err(errors) }
    }

    /// How many designs there are.
    #[must_use]
    pub const fn designs(&self) -> u64 {
        self.total
    }

    /// MACs of all layers.
    #[must_use]
    pub const fn macs(&self) -> u64 {
        self.macs
    }

    /// The design with this number.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn design(&self, number: u64) -> Design {
        assert!(number < self.total, "design {number} of {}", self.total);
        let at = |l: usize| (number / self.strides[l] % self.lengths[l]) as usize;
        Design {
            number,
            mapping: at(MAPPING),
            mesh: self.meshes[at(PES)],
            multicast: self.plan.multicast[at(MULTICAST)],
            reduction: self.plan.reduction[at(REDUCTION)],
            noc_latency: self.latencies[at(LATENCY)],
            offchip_bandwidth: self.offchip[at(OFFCHIP)],
            l1: self.l1[at(L1)],
            l2: self.l2[at(L2)],
            noc_bandwidth: self.bandwidths[at(BANDWIDTH)],
        }
    }

    /// Designs in one chunk, the unit of work: chosen so that a chunk takes a fraction of a second and even large
    /// spaces have a few thousand.
    #[must_use]
    pub fn chunk_size(&self) -> u64 {
        let scheduled = |m: &MappingChoice| matches!(m, MappingChoice::Scheduler(_));
        let slow = self.plan.model != super::plan::Model::Maestro || self.plan.mappings.iter().any(scheduled);
        let size = if slow {
            (self.total / 1024).clamp(16, 512)
        } else {
            (self.total / 4096).clamp(1 << 12, 1 << 20)
        };
        // A chunk is a bit and a record: there are never more than a million.
        size.max(self.total >> 20)
    }

    /// How many chunks there are.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        self.total.div_ceil(self.chunk_size())
    }

    /// The designs of a chunk.
    #[must_use]
    pub fn chunk(&self, chunk: u64) -> std::ops::Range<u64> {
        let size = self.chunk_size();
        chunk * size..((chunk + 1) * size).min(self.total)
    }
}

/// The most nearly square mesh of `pes`, not higher than wide.
fn square(pes: u64) -> (u64, u64) {
    let rows = (1..=pes.isqrt())
        .rev()
        .find(|rows| pes.is_multiple_of(*rows))
        .unwrap_or(1);
    (pes / rows, rows)
}
