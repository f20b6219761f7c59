//! HLS4ML (Duarte et al., JINST 2018): one reuse factor per layer, written here as the number of multipliers.

use super::{Backend, Builder, Coefficients, Fold, Folding, Graph, Node, NodeKind, Platform, Resources, Rules};
use super::{finish, join_node, node_of, same_map};
use crate::streaming::front::{Front, FrontError, FrontOp, Map};
use crate::streaming::graph::divisors;

/// The HLS4ML flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hls4ml;

const BITS: u64 = 16;

/// Inputs and outputs of the matrix that a node multiplies with.
const fn matrix(node: &Node) -> (u64, u64) {
    match node.kind {
        NodeKind::Conv => (node.channels_in / node.groups * node.positions(), node.channels_out),
        _ => (node.channels_in, node.channels_out),
    }
}

/// Whether HLS4ML accepts the reuse factor (its `validate_reuse_factor`).
const fn is_valid(reuse: u64, n_in: u64, n_out: u64) -> bool {
    let smaller = if n_in < reuse { n_in } else { reuse };
    let multipliers = (n_in * n_out).div_ceil(smaller);
    (multipliers.is_multiple_of(n_out) || reuse >= n_in)
        && (reuse.is_multiple_of(n_in) || reuse < n_in)
        && (n_in * n_out).is_multiple_of(reuse)
}

/// Multiplier counts whose reuse factor is valid, ascending.
pub(super) fn multipliers(node: &Node) -> Vec<u64> {
    let (n_in, n_out) = matrix(node);
    divisors(n_in * n_out)
        .into_iter()
        .filter(|&k| is_valid(n_in * n_out / k, n_in, n_out))
        .collect()
}

impl Backend for Hls4ml {
    fn name(&self) -> &'static str {
        "hls4ml"
    }

    fn graph(&self, front: &Front) -> Result<Graph, FrontError> {
        let parts = Builder::new("clone").run(
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
                        if layer.input.pixels() > 1 {
                            let mut flatten =
                                node_of(layer, index, flatten_name(front, index), NodeKind::Flatten, BITS);
                            flatten.output = Map::new(layer.input.size(), 1, 1);
                            flatten.channels_out = layer.input.size();
                            flatten.size_out = layer.input.size();
                            flatten.kernel = (1, 1);
                            nodes.push(flatten);
                            node.channels_in = layer.input.size();
                            node.input = Map::new(layer.input.size(), 1, 1);
                        }
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

    fn rules(&self, _: NodeKind) -> Rules {
        Rules::default()
    }

    fn kernel_fold(&self, _: &Node) -> Fold {
        Fold::ReuseFactor
    }

    fn latency(&self, node: &Node, folding: Folding) -> u64 {
        let (n_in, n_out) = matrix(node);
        node.input.pixels() * (n_in * n_out / folding.k)
    }

    fn resources(&self, node: &Node, folding: Folding, _: &Coefficients) -> Resources {
        let dsp = if matches!(node.kind, NodeKind::Conv | NodeKind::Fc) {
            folding.k
        } else {
            0
        };
        Resources {
            dsp,
            ..Resources::default()
        }
    }
}

/// `flatten`, numbered from the second on.
fn flatten_name(front: &Front, index: usize) -> String {
    let earlier = front.layers[..index]
        .iter()
        .filter(|l| l.op == FrontOp::Fc && l.input.pixels() > 1)
        .count();
    if earlier == 0 {
        "flatten".to_owned()
    } else {
        format!("flatten_{earlier}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reuse_factors_are_those_that_the_tool_accepts() {
        // 16 × 64: every reuse factor up to 16 must divide the inputs, above it must be a multiple of them.
        assert!(is_valid(16, 16, 64) && is_valid(1024, 16, 64) && is_valid(2, 16, 64));
        assert!(!is_valid(3, 16, 64) && !is_valid(24, 16, 64));
    }
}
