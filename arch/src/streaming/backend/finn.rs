//! FINN (Umuroglu et al., FPGA 2017; Blott et al., TRETS 2018): matrix-vector units behind sliding windows, quantised
//! words, a reconfiguration possible behind a fully connected or depthwise unit. Formulas of its HLS library's
//! published cost functions (BSD-3).
//!
//! Quantisation: 4-bit weights; 8-bit input; behind a ReLU 4-bit, behind any other layer 8-bit activations; the last
//! layer leaves unquantised.

use super::{Backend, Builder, Coefficients, Fold, Folding, Graph, Node, NodeKind, Platform, Resources, Rules};
use super::{finish, join_node, same_map};
use crate::streaming::front::{Front, FrontError, FrontLayer, FrontOp, Map};

/// The FINN flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct Finn;

const INPUT_BITS: u64 = 8;
const WEIGHT_BITS: u64 = 4;

/// Units counted per operator, for FINN's names.
#[derive(Default)]
struct Names {
    padding: u64,
    window: u64,
    mvau: u64,
    vvau: u64,
    max_pool: u64,
    pool: u64,
    add: u64,
    concat: u64,
}

fn numbered(counter: &mut u64, stem: &str) -> String {
    *counter += 1;
    format!("{stem}_{}", *counter - 1)
}

impl Backend for Finn {
    fn name(&self) -> &'static str {
        "finn"
    }

    fn graph(&self, front: &Front) -> Result<Graph, FrontError> {
        let mut names = Names::default();
        let bits = activation_bits(front);
        // The window buffers of networks with depthwise layers are built of look-up tables, as in FINN's own build.
        let distributed = front.layers.iter().any(FrontLayer::is_depthwise);
        let head = same_map(
            front.input,
            None,
            "Thresholding_Batch_0".to_owned(),
            NodeKind::Threshold,
            INPUT_BITS,
        );
        let parts = Builder::new("DuplicateStreams_Batch").run(
            front,
            self.name(),
            Some(head),
            |index| lower(front, index, &mut names, &bits, distributed),
            |front| {
                let last = front.layers.last()?;
                (last.op == FrontOp::Fc).then(|| {
                    let mut node = same_map(
                        last.output,
                        None,
                        "LabelSelect_Batch_0".to_owned(),
                        NodeKind::LabelSelect,
                        0,
                    );
                    node.channels_out = 1;
                    node.size_out = 1;
                    node.output = Map::new(1, 1, 1);
                    node
                })
            },
        )?;
        Ok(finish(front, self.name(), parts, |node| {
            matches!(node.kind, NodeKind::Mvau | NodeKind::Vvau)
        }))
    }

    fn clock_mhz(&self, platform: &Platform) -> f64 {
        platform.finn_clock_mhz
    }

    fn word_bits(&self) -> u64 {
        4
    }

    fn rules(&self, kind: NodeKind) -> Rules {
        let fc = kind == NodeKind::Mvau;
        let loose = fc || kind == NodeKind::Fork;
        Rules {
            channel_factor: true,
            intra: !fc,
            inter: !loose,
            divisible: loose,
        }
    }

    fn kernel_fold(&self, _: &Node) -> Fold {
        Fold::One
    }

    fn latency(&self, node: &Node, Folding { cin, cout, .. }: Folding) -> u64 {
        match node.kind {
            NodeKind::Mvau => node.output.pixels() * (matrix_width(node) / cin) * (node.channels_out / cout),
            NodeKind::Vvau | NodeKind::PoolReduce => node.size_in.div_ceil(cout),
            NodeKind::Window | NodeKind::WindowDepthwise => {
                let turns = node.channels_in / cin;
                let row_out = node.output.w * node.positions() * turns;
                let row_in = node.stride.0 * node.input.w * turns;
                node.input.w * node.kernel.0 * turns + node.output.h * row_out.max(row_in)
            }
            NodeKind::MaxPool => node.input.h * (node.input.w + node.input.w / node.kernel.1),
            // The larger side: padding writes more than it reads, label selection reads more than it writes.
            _ => node.size_in.max(node.size_out).div_ceil(cin),
        }
    }

    /// A window's engine fires when its first rows have arrived, so what the latency counts for them is the reader's.
    /// A maximum takes a pixel per cycle and writes a row of results, a pixel per cycle, when its rows are there: it
    /// is somewhat faster than its published latency. A flattened map arrives at a pixel per cycle. Elsewhere a reader
    /// takes a SIMD-th of a pixel per cycle.
    fn work(&self, node: &Node, folding: Folding) -> (u64, u64) {
        let latency = self.latency(node, folding);
        let words = node.size_in.div_ceil(folding.cin);
        match node.kind {
            NodeKind::Window | NodeKind::WindowDepthwise => {
                let turns = node.channels_in / folding.cin;
                (words, latency - node.input.w * node.kernel.0 * turns)
            }
            NodeKind::MaxPool => (node.input.pixels(), node.output.pixels()),
            NodeKind::Mvau if node.input.pixels() != node.output.pixels() => (node.input.pixels(), latency),
            NodeKind::Fork | NodeKind::Add => (0, latency),
            _ => (words.min(latency), latency),
        }
    }

    fn resources(&self, node: &Node, Folding { cin, cout, .. }: Folding, _: &Coefficients) -> Resources {
        match node.kind {
            NodeKind::Mvau => mvau(node, cin, cout),
            NodeKind::Vvau => vvau(node, cout),
            NodeKind::Window | NodeKind::WindowDepthwise => window(node, cin),
            NodeKind::Threshold => {
                let thresholds = node.channels_in / cin;
                let turns = 1 + if thresholds > 1 { thresholds.div_ceil(64) } else { 0 };
                Resources {
                    lut: cin * node.bits_out * turns,
                    ..Resources::default()
                }
            }
            _ => Resources::default(),
        }
    }
}

/// Bits of each layer's output: what does not compute passes its input's on.
fn activation_bits(front: &Front) -> Vec<u64> {
    let mut bits: Vec<u64> = Vec::new();
    for (index, layer) in front.layers.iter().enumerate() {
        let last = index + 1 == front.layers.len();
        bits.push(match layer.op {
            FrontOp::Conv | FrontOp::Fc if last => 0,
            FrontOp::Conv | FrontOp::Fc | FrontOp::Add => {
                if layer.relu {
                    4
                } else {
                    8
                }
            }
            FrontOp::Relu => 4,
            _ => layer.inputs.iter().map(|&i| bits[i]).max().unwrap_or(INPUT_BITS),
        });
    }
    bits
}

fn lower(
    front: &Front,
    index: usize,
    names: &mut Names,
    bits: &[u64],
    distributed: bool,
) -> Result<Vec<Node>, FrontError> {
    let layer = &front.layers[index];
    let bits_in = layer.inputs.iter().map(|&i| bits[i]).max().unwrap_or(INPUT_BITS);
    let mut nodes = Vec::new();
    let mut padded = layer.input;
    if layer.pads != [0; 4] && layer.op != FrontOp::Fc {
        padded = layer.padded();
        let name = numbered(&mut names.padding, "FMPadding_Batch");
        let mut node = same_map(layer.input, Some(index), name, NodeKind::Padding, bits_in);
        node.output = padded;
        node.size_out = padded.size();
        node.pads = layer.pads;
        nodes.push(node);
    }
    let stretched = Map::new(
        layer.input.c * layer.kernel.0 * layer.kernel.1,
        layer.output.h,
        layer.output.w,
    );
    let mut window = |kind: NodeKind, names: &mut Names| {
        let name = numbered(&mut names.window, "ConvolutionInputGenerator");
        let mut node = same_map(padded, Some(index), name, kind, bits_in);
        node.kernel = layer.kernel;
        node.stride = layer.stride;
        node.channels_out = stretched.c;
        node.output = Map::new(layer.input.c, layer.output.h, layer.output.w);
        node.size_out = stretched.size();
        node.distributed = distributed;
        nodes.push(node);
    };
    let mut unit = same_map(layer.output, Some(index), String::new(), NodeKind::Mvau, bits_in);
    unit.bits_weight = WEIGHT_BITS;
    unit.bits_out = bits[index];
    unit.kernel = layer.kernel;
    match layer.op {
        FrontOp::Conv => {
            let depthwise = layer.is_depthwise();
            if layer.groups > 1 && !depthwise {
                return Err(FrontError::Unsupported {
                    backend: "finn",
                    layer: layer.name.clone(),
                    message: format!("{} groups, expected 1 or one per channel", layer.groups),
                });
            }
            if layer.kernel != (1, 1) || layer.stride != (1, 1) {
                window(
                    if depthwise {
                        NodeKind::WindowDepthwise
                    } else {
                        NodeKind::Window
                    },
                    names,
                );
            }
            unit.channels_in = stretched.c;
            unit.input = stretched;
            unit.size_in = stretched.size();
            if depthwise {
                unit.kind = NodeKind::Vvau;
                unit.groups = layer.groups;
                unit.name = numbered(&mut names.vvau, "Vector_Vector_Activate_Batch");
            } else {
                unit.name = numbered(&mut names.mvau, "StreamingFCLayer_Batch");
            }
        }
        FrontOp::Fc => {
            unit.kernel = (1, 1);
            unit.input = layer.input;
            unit.channels_in = layer.input.c;
            unit.size_in = layer.input.size();
            unit.name = numbered(&mut names.mvau, "StreamingFCLayer_Batch");
        }
        FrontOp::MaxPool
            if layer.kernel == layer.stride
                && layer.pads == [0; 4]
                && layer.input.h == layer.output.h * layer.kernel.0
                && layer.input.w == layer.output.w * layer.kernel.1 =>
        {
            unit.kind = NodeKind::MaxPool;
            unit.name = numbered(&mut names.max_pool, "StreamingMaxPool_Batch");
            unit.input = layer.input;
            unit.size_in = layer.input.size();
            unit.stride = layer.stride;
        }
        FrontOp::MaxPool | FrontOp::AvgPool => {
            window(NodeKind::WindowDepthwise, names);
            unit.kind = NodeKind::PoolReduce;
            unit.name = numbered(&mut names.pool, "Pool_Batch");
            unit.channels_in = stretched.c;
            unit.input = stretched;
            unit.size_in = stretched.size();
        }
        FrontOp::Relu => {
            unit.kind = NodeKind::Threshold;
            unit.name = format!(
                "Thresholding_Batch_{}",
                front.layers[..=index].iter().filter(|l| l.op == FrontOp::Relu).count()
            );
        }
        FrontOp::Add => {
            let name = numbered(&mut names.add, "AddStreams_Batch");
            unit = join_node(front, index, name, bits[index]);
        }
        FrontOp::Concat => {
            let name = numbered(&mut names.concat, "StreamingConcat");
            unit = join_node(front, index, name, bits[index]);
        }
    }
    nodes.push(unit);
    Ok(nodes)
}

/// Columns of the weight matrix: what a flattened map puts before one output.
const fn matrix_width(node: &Node) -> u64 {
    node.size_in / node.output.pixels()
}

/// ⌈log₂ n⌉.
const fn ceil_log2(n: u64) -> u64 {
    n.next_power_of_two().ilog2() as u64
}

/// Block RAMs of a weight memory of `depth` words of `width` bits; none below 129 words, which look-up tables hold.
const fn weight_blocks(depth: u64, width: u64) -> u64 {
    if depth <= 128 {
        0
    } else if width == 1 {
        depth.div_ceil(16384)
    } else if width == 2 {
        depth.div_ceil(8192)
    } else if width <= 4 {
        depth.div_ceil(4096) * width.div_ceil(4)
    } else if width <= 9 {
        depth.div_ceil(2048) * width.div_ceil(9)
    } else if width <= 18 || depth > 512 {
        depth.div_ceil(1024) * width.div_ceil(18)
    } else {
        depth.div_ceil(512) * width.div_ceil(36)
    }
}

/// Look-up tables of `lanes` accumulators with `tree` bits of adder tree each and their thresholds. FINN multiplies
/// by 1.1 and truncates; `held` are those that hold small weight memories.
fn activation_luts(node: &Node, lanes: u64, tree: u64, accumulator: u64, held: u64) -> u64 {
    let levels = if node.bits_out == 0 {
        0
    } else {
        (1u64 << node.bits_out) - 1
    };
    let turns = (node.channels_out / lanes).div_ceil(64);
    let each = tree + accumulator + levels * accumulator * (turns + 1);
    300 + (11 * lanes * each) / 10 + held
}

fn mvau(node: &Node, simd: u64, pe: u64) -> Resources {
    let operand = node.bits_weight + node.bits_in;
    let depth = matrix_width(node) * node.channels_out / (simd * pe);
    let width = simd * pe * node.bits_weight;
    let accumulator = operand + ceil_log2(matrix_width(node));
    let held = if depth <= 128 { width * depth.div_ceil(64) } else { 0 };
    Resources {
        dsp: pe * simd * operand.div_ceil(48),
        bram: weight_blocks(depth, width),
        lut: activation_luts(node, pe, operand * (2 * simd - 1), accumulator, held),
        ff: 0,
    }
}

fn vvau(node: &Node, pe: u64) -> Resources {
    let operand = node.bits_weight + node.bits_in;
    let depth = node.channels_in / pe;
    let accumulator = operand + ceil_log2(node.positions());
    let held = if depth <= 128 {
        pe * node.bits_weight * depth.div_ceil(64)
    } else {
        0
    };
    Resources {
        dsp: pe * operand.div_ceil(48),
        bram: pe * weight_blocks(depth, node.bits_weight),
        lut: activation_luts(node, pe, 0, accumulator, held),
        ff: 0,
    }
}

fn window(node: &Node, simd: u64) -> Resources {
    let depth = (node.input.w * node.channels_in).div_ceil(simd);
    let width = simd * node.bits_in;
    let rows = node.kernel.0 + node.stride.0;
    if node.distributed {
        return Resources {
            lut: 300 + rows * width * depth.div_ceil(64),
            ..Resources::default()
        };
    }
    let block_width = match depth {
        0..=512 => 36,
        513..=1024 => 18,
        1025..=2048 => 9,
        2049..=4096 => 4,
        4097..=8192 => 2,
        _ => 1,
    };
    let bram = rows * width.div_ceil(block_width) * depth.div_ceil(16384);
    Resources {
        bram,
        lut: 300,
        ..Resources::default()
    }
}
