//! fpgaConvNet (Venieris and Bouganis, FCCM 2016; Montgomerie-Corcoran et al., FPL 2022): folding of both channel
//! dimensions and of the kernel, 16-bit words at 100 MHz, a reconfiguration possible on every stream.

use super::{Backend, Builder, Coefficients, Fold, Folding, Graph, Node, NodeKind, Platform, Resources, Rules};
use super::{finish, join_node, node_of, same_map};
use crate::streaming::front::{Front, FrontError, FrontOp};

/// The fpgaConvNet flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct FpgaConvNet;

const BITS: u64 = 16;

/// Block RAMs of a memory of 16-bit words: 1,000 words each, as the tool counts an 18-bit-wide block.
const fn blocks(depth: u64) -> u64 {
    depth.div_ceil(1000)
}

impl Backend for FpgaConvNet {
    fn name(&self) -> &'static str {
        "fpgaconvnet"
    }

    fn graph(&self, front: &Front) -> Result<Graph, FrontError> {
        let parts = Builder::new("split").run(
            front,
            self.name(),
            None,
            |index| {
                let layer = &front.layers[index];
                let mut nodes = Vec::new();
                match layer.op {
                    FrontOp::Conv => nodes.push(node_of(layer, index, layer.name.clone(), NodeKind::Conv, BITS)),
                    FrontOp::Fc => {
                        let mut node = node_of(layer, index, layer.name.clone(), NodeKind::Fc, BITS);
                        node.kernel = (1, 1);
                        nodes.push(node);
                    }
                    FrontOp::MaxPool | FrontOp::AvgPool => {
                        nodes.push(node_of(layer, index, layer.name.clone(), NodeKind::Pool, BITS));
                    }
                    FrontOp::Relu => nodes.push(same_map(
                        layer.output,
                        Some(index),
                        layer.name.clone(),
                        NodeKind::Relu,
                        BITS,
                    )),
                    FrontOp::Add | FrontOp::Concat => nodes.push(join_node(front, index, layer.name.clone(), BITS)),
                }
                if layer.relu {
                    let name = format!("{}_relu", layer.name);
                    nodes.push(same_map(layer.output, Some(index), name, NodeKind::Relu, BITS));
                }
                Ok(nodes)
            },
            |_| None,
        )?;
        Ok(finish(front, self.name(), parts, |_| true))
    }

    fn clock_mhz(&self, _: &Platform) -> f64 {
        100.0
    }

    fn word_bits(&self) -> u64 {
        BITS
    }

    fn rules(&self, kind: NodeKind) -> Rules {
        let matrix = matches!(kind, NodeKind::Conv | NodeKind::Fc);
        Rules {
            channel_factor: true,
            intra: !matrix,
            inter: true,
            divisible: false,
        }
    }

    fn kernel_fold(&self, node: &Node) -> Fold {
        if node.kind == NodeKind::Conv {
            Fold::KernelDivisors
        } else {
            Fold::One
        }
    }

    fn latency(&self, node: &Node, folding: Folding) -> u64 {
        let (read, fire) = self.work(node, folding);
        read.max(fire)
    }

    fn work(&self, node: &Node, Folding { cin, cout, k }: Folding) -> (u64, u64) {
        match node.kind {
            NodeKind::Conv => {
                let rows = node.input.h + node.pads[0] + node.pads[2];
                let columns = node.input.w + node.pads[1] + node.pads[3];
                let macs = node.output.size() * (node.channels_in / node.groups) * node.positions();
                let fire = macs.div_ceil(cin * cout * k).max(node.size_out.div_ceil(cout));
                ((rows * columns * node.channels_in).div_ceil(cin), fire)
            }
            NodeKind::Fc => (
                node.size_in.div_ceil(cin),
                (node.size_in * node.channels_out).div_ceil(cin * cout),
            ),
            _ => (node.size_in.div_ceil(cin), node.size_out.div_ceil(cin)),
        }
    }

    fn resources(&self, node: &Node, folding: Folding, coefficients: &Coefficients) -> Resources {
        let Folding { cin, cout, k } = folding;
        let (lut, ff) = coefficients.count(node, folding);
        let (dsp, bram) = match node.kind {
            NodeKind::Conv => {
                let weights = node.channels_in / node.groups * node.channels_out * node.positions();
                let mut bram =
                    cin * cout * k * blocks(weights.div_ceil(cin * cout * k)) + cout * blocks(node.channels_out / cout);
                if node.channels_in > cin {
                    bram += cout * blocks((node.channels_out / node.groups).div_ceil(cout));
                }
                if node.positions() > 1 {
                    bram += cin * window_blocks(node, cin);
                }
                (cin * cout * k * (2 * BITS).div_ceil(48) + cout, bram)
            }
            NodeKind::Fc => {
                let weights = node.size_in * node.channels_out;
                let mut bram =
                    cin * cout * blocks(weights.div_ceil(cin * cout)) + cout * blocks(node.channels_out / cout);
                if node.size_in > cin {
                    bram += cout * blocks((node.channels_out * node.input.pixels()).div_ceil(cout));
                }
                (cin * cout * (2 * BITS).div_ceil(48), bram)
            }
            NodeKind::Pool => (0, cin * window_blocks(node, cin)),
            _ => (0, 0),
        };
        Resources { dsp, bram, lut, ff }
    }
}

/// Block RAMs of one stream's sliding window: K−1 line FIFOs of (W + padding)·C/cin + 1 words and K(K−1) tap FIFOs
/// of C/cin + 1.
fn window_blocks(node: &Node, cin: u64) -> u64 {
    let width = node.input.w + node.pads[1] + node.pads[3];
    let turns = node.channels_in / cin;
    (node.kernel.0 - 1) * blocks(width * turns + 1) + node.kernel.0 * (node.kernel.1 - 1) * blocks(turns + 1)
}
