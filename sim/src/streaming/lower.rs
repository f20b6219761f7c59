//! From a design to the pipelines that it is simulated as: one per partition, a layer per node.

use cyclonest_arch::streaming::pipeline::{Layer, Link, Memory, Pipeline, Rate, Stage, StageKind};
use cyclonest_arch::streaming::{Backend, Design, Folding, Graph, Node, NodeKind, Platform};
use serde::{Deserialize, Serialize};

use super::engine::simulate;
use super::outcome::{Options, PipelineError, PipelineOutcome};

/// Depth of a FIFO where the design gives none \[pixels\].
pub const DEFAULT_DEPTH: u64 = 2;

/// How a partition's frames enter and leave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ends<'p> {
    /// A pixel per cycle.
    Unlimited,
    /// Through the platform's memory, reads and writes sharing its bandwidth.
    Memory(&'p Platform),
}

/// What one partition did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionOutcome {
    /// First and last node.
    pub nodes: (usize, usize),
    /// Cycles per frame of the slowest node: what the model says.
    pub model: u64,
    /// What the simulation says.
    pub outcome: PipelineOutcome,
}

/// What a design did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DesignOutcome {
    /// Partitions in order.
    pub partitions: Vec<PartitionOutcome>,
    /// Time executing \[µs\].
    pub execution_us: f64,
    /// Time reconfiguring \[µs\].
    pub reconfiguration_us: f64,
    /// Both.
    pub time_us: f64,
    /// Frames per second.
    pub frames_per_second: f64,
}

/// The layer that a node is simulated as.
fn layer(backend: &dyn Backend, node: &Node, folding: Folding) -> Layer {
    let (input, output) = (node.input, node.output);
    let (read, fire) = backend.work(node, folding);
    let mut layer = Layer {
        input: (input.h, input.w),
        output: (output.h, output.w),
        kernel: (1, 1),
        stride: (1, 1),
        pads: [0; 4],
        cycles: fire,
        read_cycles: read,
        buffer: 1,
        whole_rows: false,
    };
    match node.kind {
        NodeKind::Conv | NodeKind::Pool | NodeKind::Window | NodeKind::WindowDepthwise | NodeKind::MaxPool => {
            layer.kernel = node.kernel;
            layer.stride = node.stride;
            // FINN's windows have padded maps.
            if matches!(node.kind, NodeKind::Conv | NodeKind::Pool) {
                layer.pads = node.pads;
            }
            // K rows in use, as many as the stride in arrival; the last pixel waits in the writer's output register.
            // A maximum keeps results, not rows: one row in arrival.
            layer.whole_rows = node.kind == NodeKind::MaxPool;
            let arriving = if layer.whole_rows { 1 } else { node.stride.0 };
            layer.buffer = (node.kernel.0 + arriving) * input.w - 1;
        }
        NodeKind::Padding => layer.pads = node.pads,
        NodeKind::Fc | NodeKind::Mvau | NodeKind::Flatten if input.pixels() != output.pixels() => {
            // The whole map before the first output, held until the last one is computed; one pixel of the next map
            // waits in the input register.
            layer.kernel = (input.h, input.w);
            layer.buffer = input.pixels() + 1;
        }
        _ => {}
    }
    layer
}

/// Words of a pixel on a stream into or out of a partition.
const fn pixel_words(size: u64, pixels: u64) -> u64 {
    if pixels == 0 { size } else { size.div_ceil(pixels) }
}

/// The pipeline of the nodes `first..=last` of a design.
#[must_use]
pub fn partition_pipeline(
    graph: &Graph,
    backend: &dyn Backend,
    design: &Design,
    (first, last): (usize, usize),
    ends: Ends<'_>,
) -> Pipeline {
    let (source, sink) = (&graph.nodes[first], &graph.nodes[last]);
    let (tokens_in, tokens_out) = (source.input.pixels(), sink.output.pixels());
    let bits = |size: u64, pixels: u64| pixel_words(size, pixels) * backend.word_bits();
    let (enter, leave) = match ends {
        Ends::Unlimited => (
            StageKind::Source {
                tokens: tokens_in,
                rate: Rate::FULL,
            },
            StageKind::Sink {
                tokens: tokens_out,
                rate: Rate::FULL,
            },
        ),
        Ends::Memory(_) => (
            StageKind::MemorySource {
                tokens: tokens_in,
                bits: bits(source.size_in, tokens_in),
            },
            StageKind::MemorySink {
                tokens: tokens_out,
                bits: bits(sink.size_out, tokens_out),
            },
        ),
    };
    let mut stages = vec![Stage {
        name: "input".to_owned(),
        kind: enter,
    }];
    for node in first..=last {
        let kind = StageKind::Layer(layer(backend, &graph.nodes[node], design.foldings[node].1));
        stages.push(Stage {
            name: graph.nodes[node].name.clone(),
            kind,
        });
    }
    stages.push(Stage {
        name: "output".to_owned(),
        kind: leave,
    });
    let stage = |node: usize| node - first + 1;
    let mut links = vec![Link {
        from: 0,
        to: 1,
        depth: 0,
    }];
    for (index, edge) in graph.edges.iter().enumerate() {
        if edge.from >= first && edge.to <= last {
            let depth = design.fifo_depths.get(index).copied().unwrap_or(DEFAULT_DEPTH);
            links.push(Link {
                from: stage(edge.from),
                to: stage(edge.to),
                depth,
            });
        }
    }
    links.push(Link {
        from: stage(last),
        to: stage(last) + 1,
        depth: DEFAULT_DEPTH,
    });
    let memory = match ends {
        Ends::Unlimited => None,
        Ends::Memory(platform) => Some(memory(platform, backend.clock_mhz(platform))),
    };
    let name = format!("{} {} {}–{}", graph.network, graph.backend, source.name, sink.name);
    Pipeline {
        name,
        stages,
        links,
        memory,
    }
}

/// The platform's bandwidth in bits per cycle, as a fraction of integers.
fn memory(platform: &Platform, clock_mhz: f64) -> Memory {
    #![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let bits = (platform.bandwidth_gbps * 1e6).round() as u64;
    let cycles = (clock_mhz * 1e3).round() as u64;
    let common = gcd(bits, cycles).max(1);
    Memory {
        bits: bits / common,
        cycles: cycles / common,
    }
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Simulates every partition of a design for its batch, one after the other, with reconfigurations between.
///
/// # Errors
/// If a partition deadlocks.
pub fn simulate_design(
    graph: &Graph,
    backend: &dyn Backend,
    design: &Design,
    platform: &Platform,
    frames: u64,
) -> Result<DesignOutcome, PipelineError> {
    #![allow(clippy::cast_precision_loss)]
    let clock = backend.clock_mhz(platform);
    let mut partitions = Vec::new();
    for nodes in design.partitions() {
        let pipeline = partition_pipeline(graph, backend, design, nodes, Ends::Memory(platform));
        let outcome = simulate(
            &pipeline,
            Options {
                frames,
                fast_forward: true,
            },
        )?;
        let latency = |n: usize| backend.latency(&graph.nodes[n], design.foldings[n].1);
        let model = (nodes.0..=nodes.1).map(latency).max().unwrap_or(0);
        partitions.push(PartitionOutcome { nodes, model, outcome });
    }
    let execution_us = partitions.iter().map(|p| p.outcome.cycles as f64).sum::<f64>() / clock;
    let reconfiguration_us = platform.reconfiguration_us * (partitions.len() - 1) as f64;
    let time_us = execution_us + reconfiguration_us;
    let frames_per_second = frames as f64 / time_us * 1e6;
    Ok(DesignOutcome {
        partitions,
        execution_us,
        reconfiguration_us,
        time_us,
        frames_per_second,
    })
}
