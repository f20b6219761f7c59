//! The three tool flows that turn a network into a pipeline, behind one trait.

pub(super) mod finn;
pub(super) mod fpgaconvnet;
pub(super) mod hls4ml;

use super::coefficients::Coefficients;
use super::front::{Front, FrontError, FrontLayer, FrontOp, Map};
use super::graph::{Edge, Folding, Graph, Node, NodeKind};
use super::platform::Platform;
use super::resources::Resources;

/// Which constraints a node's foldings obey.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// Channel factor: foldings divide the channels; where not, channel foldings are 1.
    pub channel_factor: bool,
    /// Intra match: input and output folding are equal.
    pub intra: bool,
    /// Inter match: whoever reads the node's output takes it with the same folding.
    pub inter: bool,
    /// Divisible inter match: of the node's output folding and its reader's, the larger is a multiple of the smaller.
    pub divisible: bool,
}

impl Rules {
    /// Whether the node's output folding and its reader's input folding fit.
    #[inline]
    #[must_use]
    pub const fn matches(self, cout: u64, cin: u64) -> bool {
        if self.inter {
            cout == cin
        } else if self.divisible {
            if cout >= cin {
                cout.is_multiple_of(cin)
            } else {
                cin.is_multiple_of(cout)
            }
        } else {
            true
        }
    }
}

/// What kernel foldings a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// Only 1.
    One,
    /// Divisors of the kernel's positions.
    KernelDivisors,
    /// HLS4ML: multipliers whose reuse factor is valid.
    ReuseFactor,
}

/// A tool flow: which layers become which nodes, what a node costs and takes, which foldings are legal.
pub trait Backend: Sync {
    /// As `--backend` takes it.
    fn name(&self) -> &'static str;

    /// The HD-graph of a network.
    ///
    /// # Errors
    /// If the network is inconsistent or has a layer that the flow has no node for.
    fn graph(&self, front: &Front) -> Result<Graph, FrontError>;

    /// Clock \[MHz\].
    fn clock_mhz(&self, platform: &Platform) -> f64;

    /// Bits of a word on the way from and to memory.
    fn word_bits(&self) -> u64;

    /// The constraints of a kind of node.
    fn rules(&self, kind: NodeKind) -> Rules;

    /// The kernel foldings of a node.
    fn kernel_fold(&self, node: &Node) -> Fold;

    /// Cycles per frame.
    fn latency(&self, node: &Node, folding: Folding) -> u64;

    /// Cycles per frame in which the node reads and in which its engine fires; the latency is the larger of the two
    /// where the node is built so that one can limit the other.
    fn work(&self, node: &Node, folding: Folding) -> (u64, u64) {
        (0, self.latency(node, folding))
    }

    /// What the node spends.
    fn resources(&self, node: &Node, folding: Folding, coefficients: &Coefficients) -> Resources;

    /// Every folding that the node may have by itself; with `intra` the intra match is applied as well.
    fn foldings(&self, node: &Node, intra: bool) -> Vec<Folding> {
        let rules = self.rules(node.kind);
        let channels = |n: u64| {
            if rules.channel_factor {
                super::graph::divisors(n)
            } else {
                vec![1]
            }
        };
        let kernels = match self.kernel_fold(node) {
            Fold::One => vec![1],
            Fold::KernelDivisors => super::graph::divisors(node.positions()),
            Fold::ReuseFactor => hls4ml::multipliers(node),
        };
        let mut all = Vec::new();
        for &cin in &channels(node.channels_in) {
            for &cout in &channels(node.channels_out) {
                if intra && rules.intra && cin != cout {
                    continue;
                }
                all.extend(kernels.iter().map(|&k| Folding { cin, cout, k }));
            }
        }
        all
    }

    /// Whether a stream from a node of kind `from` with output folding `cout` can feed an input folding of `cin`: the
    /// writer's rules decide.
    fn matches(&self, from: NodeKind, cout: u64, cin: u64) -> bool {
        self.rules(from).matches(cout, cin)
    }
}

/// All backends.
#[must_use]
pub fn backends() -> Vec<Box<dyn Backend>> {
    vec![
        Box::new(fpgaconvnet::FpgaConvNet),
        Box::new(finn::Finn),
        Box::new(hls4ml::Hls4ml),
    ]
}

/// The backend of that name.
#[must_use]
pub fn backend(name: &str) -> Option<Box<dyn Backend>> {
    backends().into_iter().find(|b| b.name() == name)
}

/// A node that shares the layer's geometry.
fn node_of(layer: &FrontLayer, index: usize, name: String, kind: NodeKind, bits: u64) -> Node {
    Node {
        name,
        kind,
        layer: Some(index),
        channels_in: layer.input.c,
        channels_out: layer.output.c,
        size_in: layer.input.size(),
        size_out: layer.output.size(),
        input: layer.input,
        output: layer.output,
        kernel: layer.kernel,
        stride: layer.stride,
        pads: layer.pads,
        groups: layer.groups,
        bits_in: bits,
        bits_out: bits,
        bits_weight: bits,
        distributed: false,
    }
}

/// A node that leaves the map as it is.
fn same_map(map: Map, layer: Option<usize>, name: String, kind: NodeKind, bits: u64) -> Node {
    Node {
        name,
        kind,
        layer,
        channels_in: map.c,
        channels_out: map.c,
        size_in: map.size(),
        size_out: map.size(),
        input: map,
        output: map,
        kernel: (1, 1),
        stride: (1, 1),
        pads: [0; 4],
        groups: 1,
        bits_in: bits,
        bits_out: bits,
        bits_weight: bits,
        distributed: false,
    }
}

/// Joins of residual branches look the same in all backends.
fn join_node(front: &Front, index: usize, name: String, bits: u64) -> Node {
    let layer = &front.layers[index];
    let kind = if layer.op == FrontOp::Concat {
        NodeKind::Concat
    } else {
        NodeKind::Add
    };
    let mut node = node_of(layer, index, name, kind, bits);
    node.size_in = layer.output.size();
    if kind == NodeKind::Concat {
        // Every branch delivers whole groups: what divides all of them divides the result.
        let common = layer.inputs.iter().fold(0, |g, &i| gcd(g, front.layers[i].output.c));
        node.channels_in = common;
        node.channels_out = common;
    }
    node
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Links what a backend makes of each layer, with a fork where a stream has several readers.
struct Builder {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    fork: NodeKind,
    forks: usize,
    fork_name: &'static str,
}

impl Builder {
    const fn new(fork_name: &'static str) -> Self {
        Self {
            nodes: Vec::new(),
            edges: Vec::new(),
            fork: NodeKind::Fork,
            forks: 0,
            fork_name,
        }
    }

    fn push(&mut self, node: Node, sources: &[usize]) -> usize {
        let to = self.nodes.len();
        for &from in sources {
            self.edges.push(Edge {
                from,
                to,
                words: self.nodes[from].size_out,
            });
        }
        self.nodes.push(node);
        to
    }

    fn fork_if_shared(&mut self, tail: usize, readers: usize) -> usize {
        if readers < 2 {
            return tail;
        }
        let source = &self.nodes[tail];
        let mut map = source.output;
        map.c = source.size_out / map.pixels().max(1);
        let mut node = same_map(
            map,
            source.layer,
            format!("{}_{}", self.fork_name, self.forks),
            self.fork,
            source.bits_out,
        );
        node.channels_in = source.channels_out;
        node.channels_out = source.channels_out;
        self.forks += 1;
        self.push(node, &[tail])
    }

    /// `lower` gives the nodes of layer i, the first of which reads the layer's inputs.
    fn run(
        mut self,
        front: &Front,
        backend: &str,
        head: Option<Node>,
        mut lower: impl FnMut(usize) -> Result<Vec<Node>, FrontError>,
        tail: impl FnOnce(&Front) -> Option<Node>,
    ) -> Result<(Vec<Node>, Vec<Edge>), FrontError> {
        let _ = backend;
        front.check()?;
        let input_readers = front.layers.iter().filter(|l| l.inputs.is_empty()).count();
        let source = match head {
            Some(node) => {
                let at = self.push(node, &[]);
                Some(self.fork_if_shared(at, input_readers))
            }
            None if input_readers > 1 => {
                let node = same_map(front.input, None, format!("{}_input", self.fork_name), self.fork, 16);
                Some(self.push(node, &[]))
            }
            None => None,
        };
        let mut tails = Vec::with_capacity(front.layers.len());
        for (index, layer) in front.layers.iter().enumerate() {
            let mut sources: Vec<usize> = layer.inputs.iter().map(|&i| tails[i]).collect();
            if sources.is_empty() {
                sources.extend(source);
            }
            let mut last = None;
            for node in lower(index)? {
                let at = self.push(node, &sources);
                sources = vec![at];
                last = Some(at);
            }
            let last = match (last, sources.first()) {
                (Some(at), _) => at,
                // A layer without a node of its own (ReLU inside a threshold) passes its input on.
                (None, Some(&at)) => at,
                (None, None) => {
                    return Err(FrontError::Layer {
                        layer: layer.name.clone(),
                        message: "has neither a node nor an input".to_owned(),
                    });
                }
            };
            tails.push(self.fork_if_shared(last, front.readers(index).len()));
        }
        if let Some(node) = tail(front) {
            let from = *tails.last().expect("checked: there are layers");
            self.push(node, &[from]);
        }
        Ok((self.nodes, self.edges))
    }
}

/// Turns nodes and edges into a graph; `after` says whether the pipeline may be cut after a node.
fn finish(
    front: &Front,
    backend: &str,
    (nodes, edges): (Vec<Node>, Vec<Edge>),
    after: impl Fn(&Node) -> bool,
) -> Graph {
    let mut graph = Graph {
        network: front.name.clone(),
        backend: backend.to_owned(),
        nodes,
        edges,
        cuts: Vec::new(),
    };
    graph.cuts = (0..graph.nodes.len().saturating_sub(1))
        .map(|i| graph.is_waist(i) && after(&graph.nodes[i]))
        .collect();
    graph
}
