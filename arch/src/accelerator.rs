//! The accelerator: storage levels outermost first, the network below each, and the compute lanes.

use std::collections::BTreeMap;

use cyclonest_workloads::{Dim, Tensor, TensorMap, TensorSet};
use serde::{Deserialize, Serialize};

use crate::units::{Capacity, Clock, Width};

/// A DNN accelerator: a tree of storage levels, uniform at every level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accelerator {
    /// Its name, as `--arch` takes it.
    pub name: String,
    /// Clock of everything that names no clock of its own.
    pub clock: Clock,
    /// Precision of each tensor.
    pub words: TensorMap<Word>,
    /// Storage levels, outermost (DRAM) first; at least one.
    pub levels: Vec<Level>,
    /// Name of the PE level E (rule 2): everything inside it is one burst. The innermost level if not given.
    #[serde(default)]
    pub event_level: Option<String>,
    /// The lanes below the innermost level.
    pub compute: Compute,
    /// Where each constant comes from, by its path (`"GB.size"`, `"DRAM.latency"`, `"compute.depth"`; see
    /// [`Accelerator::constants`]). An entry also stands for every path that goes on behind it: `"GB.below.down"` for
    /// `"GB.below.down.width"`; the longest entry counts.
    #[serde(default)]
    pub sources: BTreeMap<String, Source>,
}

/// Where a constant comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// Published: where.
    Cited(String),
    /// Assumed: why this value.
    Assumed(String),
}

/// Bits per element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Word {
    /// Bits of a final element.
    pub bits: u64,
    /// Bits of a partial sum, until the last reduction step's drain (rule 20); `bits` if not given.
    #[serde(default)]
    pub partial: Option<u64>,
}

/// A storage level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Its name, unique in the accelerator.
    pub name: String,
    /// Instances per parent instance, as x×y.
    #[serde(default = "Level::single")]
    pub mesh: (u64, u64),
    /// Which dimensions may fan out into this mesh, per axis; all if not given.
    #[serde(default)]
    pub spatial: Option<SpatialDims>,
    /// The banks of one instance; a tensor is held by at most one of them.
    pub banks: Vec<Bank>,
    /// Refresh of the memory, if it takes time from its ports.
    #[serde(default)]
    pub refresh: Option<Refresh>,
    /// The network to the next inner level. The innermost level has none: its lanes read its ports directly.
    #[serde(default)]
    pub below: Option<Network>,
}

/// Refresh of a memory (rule 28 of `docs/timing.md`): at every multiple of `every`, all ports of all instances of the
/// level are taken for `takes` cycles, as soon as they are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    /// Cycles from one refresh to the next.
    pub every: u64,
    /// Cycles that it takes; fewer than `every`.
    pub takes: u64,
}

/// The dimensions that may be unrolled over each axis of a mesh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpatialDims {
    /// Along X.
    #[serde(rename = "X", default)]
    pub x: Vec<Dim>,
    /// Along Y.
    #[serde(rename = "Y", default)]
    pub y: Vec<Dim>,
}

/// A memory of a level: one capacity, one set of ports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bank {
    /// Tensors that may be kept here.
    pub holds: TensorSet,
    /// Physical capacity, shared by the tensors that it holds; slots × tile must fit.
    pub size: Capacity,
    /// Tiles per tensor that fit side by side: 2 is double buffering, 1 (the default) none (rule 9).
    #[serde(default)]
    pub slots: BTreeMap<Tensor, u64>,
    /// Tensors whose overlap with the previous tile is kept instead of fetched again (rule 5).
    #[serde(default)]
    pub halo: TensorSet,
    /// Elements that the FIFO in front of each tensor's slots takes (rule 9); 0 is none.
    #[serde(default)]
    pub fifo: u64,
    /// Read and write ports.
    pub ports: Ports,
    /// Cycles from a port's grant to the next stage; at least 1.
    #[serde(default = "one")]
    pub latency: u64,
    /// Energy of an access.
    #[serde(default)]
    pub energy: AccessEnergy,
}

/// The ports of a bank (rule 12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ports {
    /// Counted, never the limit.
    Ideal,
    /// One port for reads and writes of all tensors.
    Shared {
        /// Width of reads.
        read: Width,
        /// Width of writes.
        write: Width,
    },
    /// One read and one write port for all tensors.
    ReadWrite {
        /// Width of the read port.
        read: Width,
        /// Width of the write port.
        write: Width,
    },
    /// One read and one write port per tensor.
    PerTensor(TensorMap<Option<PortPair>>),
}

/// Widths of a read and a write port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortPair {
    /// Width of the read port.
    pub read: Width,
    /// Width of the write port.
    pub write: Width,
}

/// Energy per element of an access \[pJ\].
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessEnergy {
    /// Per element read.
    pub read: f64,
    /// Per element written.
    pub write: f64,
}

/// The network between one instance of a level and its children (rule 11).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Its channels.
    pub kind: NetworkKind,
    /// Clock, if it is not the accelerator's.
    #[serde(default)]
    pub clock: Option<Clock>,
    /// Tensors of which one pass serves several children (rule 10).
    #[serde(default)]
    pub multicast: TensorSet,
    /// How partial sums of children that share an output meet (rule 19).
    #[serde(default)]
    pub reduction: Reduction,
    /// Energy per bit and hop \[pJ\].
    #[serde(default)]
    pub energy_per_bit_hop: f64,
}

/// How a network carries words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkKind {
    /// Separate channels down (to the children) and up.
    Pipe {
        /// Towards the children.
        down: Channels,
        /// Towards the parent.
        up: Channels,
    },
    /// One set of channels for both directions.
    Bus(Channels),
    /// Pipe preset: a bus of buses; width is the bus's, latency 2 (one cycle per stage).
    HierarchicalBus {
        /// Width of the bus.
        width: Width,
    },
    /// Pipe preset: every child has its own link; width = link × children, latency 1.
    Crossbar {
        /// Width of one child's link.
        link: Width,
    },
    /// Pipe preset: an N×N mesh; width = its bisection bandwidth N × link, latency = its mean hop count N.
    Mesh {
        /// Width of one link.
        link: Width,
    },
}

/// One shared channel, or one per tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Channels {
    /// One channel for all tensors.
    OneForAll(Link),
    /// One channel per tensor.
    PerTensor(TensorMap<Option<Link>>),
}

impl Channels {
    /// The link that carries `tensor`, if there is one.
    #[must_use]
    pub const fn link(&self, tensor: Tensor) -> Option<Link> {
        match self {
            Channels::OneForAll(link) => Some(*link),
            Channels::PerTensor(links) => links.0[tensor as usize],
        }
    }

    /// True if every tensor has a channel of its own.
    #[must_use]
    pub const fn per_tensor(&self) -> bool {
        matches!(self, Channels::PerTensor(_))
    }
}

/// Width and latency of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// What it moves per cycle of the network's clock.
    pub width: Width,
    /// Cycles of the network's clock from grant to arrival at the next stage; at least 1.
    #[serde(default = "one")]
    pub latency: u64,
}

/// How the partial sums of several children become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Reduction {
    /// Not in the network: every child's stream is a read-modify-write at the parent.
    #[default]
    None,
    /// An adder tree: adds ⌈log₂ n⌉ · `stage` cycles.
    Tree {
        /// Cycles per adder stage.
        stage: u64,
    },
    /// A chain through the neighbours: adds (n−1) · `hop` cycles.
    Chain {
        /// Cycles per hop.
        hop: u64,
    },
}

/// The MAC lanes below each instance of the innermost level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compute {
    /// Lanes as x×y: the mesh that the innermost level's spatial loops fan out into.
    #[serde(default = "Level::single")]
    pub lanes: (u64, u64),
    /// Pipeline stages: cycles from the end of a burst to "output done" (rule 14).
    #[serde(default)]
    pub depth: u64,
    /// Cycles between two MACs of a lane.
    #[serde(default = "one")]
    pub interval: u64,
    /// Energy per MAC \[pJ\].
    #[serde(default)]
    pub energy_per_mac: f64,
}

const fn one() -> u64 {
    1
}

impl Level {
    const fn single() -> (u64, u64) {
        (1, 1)
    }

    /// The bank that may keep `tensor`.
    #[must_use]
    pub fn bank(&self, tensor: Tensor) -> Option<&Bank> {
        self.banks.iter().find(|bank| bank.holds.contains(tensor))
    }

    /// Position in `banks` of the bank that may keep `tensor`.
    #[must_use]
    pub fn bank_index(&self, tensor: Tensor) -> Option<usize> {
        self.banks.iter().position(|bank| bank.holds.contains(tensor))
    }

    /// Instances per parent instance.
    #[must_use]
    pub const fn fanout(&self) -> u64 {
        self.mesh.0 * self.mesh.1
    }
}

impl Bank {
    /// Slots of `tensor`; 1 if none are given.
    #[must_use]
    pub fn slots_of(&self, tensor: Tensor) -> u64 {
        self.slots.get(&tensor).copied().unwrap_or(1)
    }

    /// Width of the port that reads `tensor`.
    #[must_use]
    pub fn read_width(&self, tensor: Tensor) -> Width {
        match self.ports {
            Ports::Ideal => Width::Unlimited,
            Ports::Shared { read, .. } | Ports::ReadWrite { read, .. } => read,
            Ports::PerTensor(pairs) => pairs[tensor].map_or(Width::Unlimited, |p| p.read),
        }
    }

    /// Width of the port that writes `tensor`.
    #[must_use]
    pub fn write_width(&self, tensor: Tensor) -> Width {
        match self.ports {
            Ports::Ideal => Width::Unlimited,
            Ports::Shared { write, .. } | Ports::ReadWrite { write, .. } => write,
            Ports::PerTensor(pairs) => pairs[tensor].map_or(Width::Unlimited, |p| p.write),
        }
    }
}

impl Accelerator {
    /// Position of the PE level E; the innermost level where none is named or the name is unknown (which
    /// `check` reports).
    #[must_use]
    pub fn event_level(&self) -> usize {
        self.event_level
            .as_deref()
            .and_then(|name| self.levels.iter().position(|level| level.name == name))
            .unwrap_or(self.levels.len() - 1)
    }

    /// Bits of an element of `tensor`, of a partial sum if `partial`.
    #[must_use]
    pub fn bits(&self, tensor: Tensor, partial: bool) -> u64 {
        let word = self.words[tensor];
        if partial {
            word.partial.unwrap_or(word.bits)
        } else {
            word.bits
        }
    }

    /// Physical instances of level `level` in the whole machine.
    #[must_use]
    pub fn instances(&self, level: usize) -> u64 {
        self.levels[..=level].iter().map(Level::fanout).product()
    }

    /// Size of the mesh that the spatial loops of `level` fan out into: the next inner level's, or the lanes.
    #[must_use]
    pub fn child_mesh(&self, level: usize) -> (u64, u64) {
        self.levels
            .get(level + 1)
            .map_or(self.compute.lanes, |child| child.mesh)
    }

    /// MAC lanes of the whole machine.
    #[must_use]
    pub fn lanes(&self) -> u64 {
        self.instances(self.levels.len() - 1) * self.compute.lanes.0 * self.compute.lanes.1
    }

    /// Channels of the network below `level` in the direction of the children (`down`) or the parent, with
    /// presets resolved. `None` for the innermost level.
    #[must_use]
    pub fn channels(&self, level: usize, down: bool) -> Option<Channels> {
        let network = self.levels[level].below.as_ref()?;
        let (x, y) = self.child_mesh(level);
        let scaled = |width: Width, by: u64| match width {
            Width::Bits(w) => Width::Bits(w * by),
            Width::Bytes(w) => Width::Bytes(w * by),
            Width::Words(w) => Width::Words(w * by),
            Width::Unlimited => Width::Unlimited,
        };
        let side = x.max(y);
        Some(match network.kind {
            NetworkKind::Pipe { down: d, up: u } => {
                if down {
                    d
                } else {
                    u
                }
            }
            NetworkKind::Bus(channels) => channels,
            NetworkKind::HierarchicalBus { width } => Channels::OneForAll(Link { width, latency: 2 }),
            NetworkKind::Crossbar { link } => Channels::OneForAll(Link {
                width: scaled(link, x * y),
                latency: 1,
            }),
            NetworkKind::Mesh { link } => Channels::OneForAll(Link {
                width: scaled(link, side),
                latency: side,
            }),
        })
    }
}
