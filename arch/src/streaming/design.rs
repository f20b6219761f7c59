//! A design: a folding per node and the cuts; what it costs, how long it takes, which constraints it breaks.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::backend::Backend;
use super::coefficients::Coefficients;
use super::graph::{Folding, Graph};
use super::platform::Platform;
use super::resources::Resources;

/// What a design is judged by; smaller is better in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Objective {
    /// Time of one frame.
    Latency,
    /// Time of a batch of that many frames, reconfigurations included.
    Throughput {
        /// Frames between two passes over the partitions.
        batch: u64,
    },
}

impl Objective {
    /// Frames per pass.
    #[must_use]
    pub const fn batch(self) -> u64 {
        match self {
            Self::Latency => 1,
            Self::Throughput { batch } => batch,
        }
    }
}

/// A folding per node, and the nodes after which the pipeline is cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Design {
    /// The network's name.
    pub network: String,
    /// The backend's name.
    pub backend: String,
    /// The platform's name.
    pub platform: String,
    /// What it was made for.
    pub objective: Objective,
    /// Name and folding of every node, in the graph's order.
    pub foldings: Vec<(String, Folding)>,
    /// Indices of the nodes after which the device is reconfigured, ascending.
    pub cuts: Vec<usize>,
    /// Depth of each stream in words, in the graph's order of edges; empty where not sized.
    #[serde(default)]
    pub fifo_depths: Vec<u64>,
}

/// A constraint that a design breaks.
#[derive(Debug, Clone, PartialEq)]
pub enum Violation {
    /// The design's nodes are not the graph's.
    Nodes {
        /// What the graph has.
        expected: String,
        /// What the design has.
        found: String,
    },
    /// A folding that the node cannot have.
    Folding {
        /// The node.
        node: String,
        /// The folding.
        folding: Folding,
    },
    /// Two ends of a stream do not match.
    Match {
        /// Writer and its output folding.
        from: (String, u64),
        /// Reader and its input folding.
        to: (String, u64),
    },
    /// A cut where none is possible.
    Cut(String),
    /// A partition needs more than there is.
    Resource {
        /// Which partition, from 0.
        partition: usize,
        /// Which resource.
        resource: &'static str,
        /// Needed.
        needed: u64,
        /// Available.
        available: u64,
    },
    /// A partition reads and writes faster than memory allows.
    Bandwidth {
        /// Which partition, from 0.
        partition: usize,
        /// Needed \[Mbit/s\].
        needed: f64,
        /// Available \[Mbit/s\].
        available: f64,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes { expected, found } => {
                write!(f, "the design is of other nodes: expected {expected}, found {found}")
            }
            Self::Folding { node, folding } => write!(f, "node `{node}` cannot have the folding {folding}"),
            Self::Match { from, to } => write!(
                f,
                "output folding {} of `{}` does not match input folding {} of `{}`",
                from.1, from.0, to.1, to.0
            ),
            Self::Cut(node) => write!(f, "the pipeline cannot be cut after `{node}`"),
            Self::Resource {
                partition,
                resource,
                needed,
                available,
            } => {
                write!(
                    f,
                    "partition {partition} needs {needed} {resource}, the platform has {available}"
                )
            }
            Self::Bandwidth {
                partition,
                needed,
                available,
            } => write!(
                f,
                "partition {partition} moves {needed:.1} Mbit/s, the platform {available:.1} Mbit/s"
            ),
        }
    }
}

/// What one partition takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionEvaluation {
    /// First and last node.
    pub nodes: (usize, usize),
    /// Cycles per frame of the slowest node.
    pub interval: u64,
    /// The slowest node.
    pub slowest: String,
    /// Sum over its nodes.
    pub resources: Resources,
    /// Traffic \[Mbit/s\].
    pub bandwidth_mbps: f64,
}

/// What a design takes by the slowest-node model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Partitions in order.
    pub partitions: Vec<PartitionEvaluation>,
    /// Time of the batch, reconfigurations included \[µs\].
    pub time_us: f64,
    /// Of it, executing \[µs\].
    pub execution_us: f64,
    /// Frames per second.
    pub frames_per_second: f64,
}

impl Design {
    /// First and last node of every partition.
    #[must_use]
    pub fn partitions(&self) -> Vec<(usize, usize)> {
        let mut first = 0;
        let mut list = Vec::new();
        for &cut in &self.cuts {
            list.push((first, cut));
            first = cut + 1;
        }
        list.push((first, self.foldings.len().saturating_sub(1)));
        list
    }

    /// Every constraint that the design breaks.
    #[must_use]
    pub fn check(
        &self,
        graph: &Graph,
        backend: &dyn Backend,
        platform: &Platform,
        coefficients: &Coefficients,
    ) -> Vec<Violation> {
        let mut list = Vec::new();
        let expected: Vec<&str> = graph.nodes.iter().map(|n| n.name.as_str()).collect();
        let found: Vec<&str> = self.foldings.iter().map(|f| f.0.as_str()).collect();
        if expected != found {
            let differing = (0..expected.len().max(found.len()))
                .find(|&i| expected.get(i) != found.get(i))
                .unwrap_or(0);
            let show = |names: &[&str]| names.get(differing).map_or("nothing".to_owned(), |n| format!("`{n}`"));
            list.push(Violation::Nodes {
                expected: show(&expected),
                found: show(&found),
            });
            return list;
        }
        for (node, (name, folding)) in graph.nodes.iter().zip(&self.foldings) {
            if !backend.foldings(node, true).contains(folding) {
                list.push(Violation::Folding {
                    node: name.clone(),
                    folding: *folding,
                });
            }
        }
        for &cut in &self.cuts {
            if !graph.cuts.get(cut).copied().unwrap_or(false) {
                let name = graph
                    .nodes
                    .get(cut)
                    .map_or_else(|| format!("node {cut}"), |n| n.name.clone());
                list.push(Violation::Cut(name));
            }
        }
        if !list.is_empty() {
            return list;
        }
        for edge in &graph.edges {
            let cut = self.cuts.iter().any(|&c| edge.from <= c && edge.to > c);
            let (from, to) = (&graph.nodes[edge.from], &graph.nodes[edge.to]);
            let (cout, cin) = (self.foldings[edge.from].1.cout, self.foldings[edge.to].1.cin);
            if !cut && !backend.matches(from.kind, cout, cin) {
                list.push(Violation::Match {
                    from: (from.name.clone(), cout),
                    to: (to.name.clone(), cin),
                });
            }
        }
        let evaluation = evaluate(self, graph, backend, platform, coefficients);
        let available_mbps = platform.bandwidth_gbps * 1000.0;
        for (index, partition) in evaluation.partitions.iter().enumerate() {
            let pairs = partition
                .resources
                .as_array()
                .into_iter()
                .zip(platform.resources.as_array());
            for ((needed, available), resource) in pairs.zip(Resources::NAMES) {
                if needed > available {
                    list.push(Violation::Resource {
                        partition: index,
                        resource,
                        needed,
                        available,
                    });
                }
            }
            if partition.bandwidth_mbps > available_mbps {
                list.push(Violation::Bandwidth {
                    partition: index,
                    needed: partition.bandwidth_mbps,
                    available: available_mbps,
                });
            }
        }
        list
    }
}

/// The slowest-node model: latency Σ_p max_n L_n ÷ f + t_conf·(|P|−1), every L times the batch (SAMO, section III).
///
/// The design must have the graph's nodes; [`Design::check`] says whether it does.
#[must_use]
pub fn evaluate(
    design: &Design,
    graph: &Graph,
    backend: &dyn Backend,
    platform: &Platform,
    coefficients: &Coefficients,
) -> Evaluation {
    #![allow(clippy::cast_precision_loss)]
    let clock = backend.clock_mhz(platform);
    let mut partitions = Vec::new();
    for (first, last) in design.partitions() {
        let mut resources = Resources::default();
        let (mut interval, mut slowest) = (0, first);
        for index in first..=last {
            let folding = design.foldings[index].1;
            resources += backend.resources(&graph.nodes[index], folding, coefficients);
            let latency = backend.latency(&graph.nodes[index], folding);
            if latency > interval {
                (interval, slowest) = (latency, index);
            }
        }
        let words = graph.nodes[first].size_in + graph.nodes[last].size_out;
        let bandwidth_mbps = words as f64 / interval as f64 * clock * backend.word_bits() as f64;
        partitions.push(PartitionEvaluation {
            nodes: (first, last),
            interval,
            slowest: graph.nodes[slowest].name.clone(),
            resources,
            bandwidth_mbps,
        });
    }
    let batch = design.objective.batch() as f64;
    let execution_us = partitions.iter().map(|p| p.interval as f64).sum::<f64>() * batch / clock;
    let time_us = execution_us + platform.reconfiguration_us * (partitions.len() - 1) as f64;
    Evaluation {
        partitions,
        time_us,
        execution_us,
        frames_per_second: batch / time_us * 1e6,
    }
}
