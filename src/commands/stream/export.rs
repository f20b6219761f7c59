//! Designs in the files that the tool flows read.

use cyclonest_arch::streaming::{Backend, Design, Graph, NodeKind};
use serde_json::{Map, Value, json};

/// The file for the design's own flow: FINN's folding configuration, fpgaConvNet's partitions, HLS4ML's reuse factors.
pub(super) fn export(design: &Design, graph: &Graph, backend: &dyn Backend) -> String {
    let value = match backend.name() {
        "finn" => finn(design, graph),
        "hls4ml" => hls4ml(design, graph, backend),
        _ => fpgaconvnet(design, graph),
    };
    let mut text = serde_json::to_string_pretty(&value).expect("plain JSON");
    text.push('\n');
    text
}

/// `folding_config.json`: SIMD and PE of each node under its name in the dataflow graph, FIFO depths where they are
/// sized. FINN's folding file has no partitions: `cuts` names the nodes after which the device is reconfigured.
fn finn(design: &Design, graph: &Graph) -> Value {
    let mut file = Map::new();
    file.insert("Defaults".to_owned(), json!({}));
    for (index, (node, (name, folding))) in graph.nodes.iter().zip(&design.foldings).enumerate() {
        let mut fields = match node.kind {
            NodeKind::Mvau => json!({"PE": folding.cout, "SIMD": folding.cin}),
            NodeKind::Window | NodeKind::WindowDepthwise | NodeKind::Padding => json!({"SIMD": folding.cin}),
            // Works on all channels at once.
            NodeKind::MaxPool => continue,
            _ => json!({"PE": folding.cout}),
        };
        let depth = |edges: Vec<usize>| -> Vec<u64> {
            edges
                .into_iter()
                .filter_map(|e| design.fifo_depths.get(e).copied())
                .collect()
        };
        let edges = |side: fn(&cyclonest_arch::streaming::Edge) -> usize| -> Vec<usize> {
            (0..graph.edges.len())
                .filter(|&e| side(&graph.edges[e]) == index)
                .collect()
        };
        if !design.fifo_depths.is_empty()
            && let Some(fields) = fields.as_object_mut()
        {
            fields.insert("inFIFODepths".to_owned(), json!(depth(edges(|e| e.to))));
            fields.insert("outFIFODepths".to_owned(), json!(depth(edges(|e| e.from))));
        }
        file.insert(name.clone(), fields);
    }
    if !design.cuts.is_empty() {
        let names: Vec<&str> = design.cuts.iter().map(|&c| graph.nodes[c].name.as_str()).collect();
        file.insert("cuts".to_owned(), json!(names));
    }
    Value::Object(file)
}

/// fpgaConvNet's partition file: layers with coarse and fine foldings, by partition.
fn fpgaconvnet(design: &Design, graph: &Graph) -> Value {
    let partitions: Vec<Value> = design
        .partitions()
        .into_iter()
        .enumerate()
        .map(|(id, (first, last))| {
            let inside = |n: usize| n >= first && n <= last;
            let names =
                |nodes: Vec<usize>| -> Vec<&str> { nodes.into_iter().map(|n| graph.nodes[n].name.as_str()).collect() };
            let layers: Vec<Value> = (first..=last)
                .map(|n| {
                    let (node, folding) = (&graph.nodes[n], design.foldings[n].1);
                    let from = graph.inputs(n).map(|e| e.from).filter(|&f| inside(f)).collect();
                    let to = graph.outputs(n).map(|e| e.to).filter(|&t| inside(t)).collect();
                    let kind = match node.kind {
                        NodeKind::Conv => "CONVOLUTION",
                        NodeKind::Fc => "INNER_PRODUCT",
                        NodeKind::Pool => "POOLING",
                        NodeKind::Relu => "RELU",
                        NodeKind::Fork => "SPLIT",
                        NodeKind::Concat => "CONCAT",
                        _ => "ELTWISE",
                    };
                    json!({
                        "name": node.name,
                        "type": kind,
                        "node_in": names(from),
                        "node_out": names(to),
                        "parameters": {
                            "batch_size": 1,
                            "channels_in": node.channels_in, "rows_in": node.input.h, "cols_in": node.input.w,
                            "channels_out": node.channels_out, "rows_out": node.output.h, "cols_out": node.output.w,
                            "coarse_in": folding.cin, "coarse_out": folding.cout, "fine": folding.k,
                            "kernel_rows": node.kernel.0, "kernel_cols": node.kernel.1,
                            "stride_rows": node.stride.0, "stride_cols": node.stride.1,
                            "pad_top": node.pads[0], "pad_left": node.pads[1],
                            "pad_bottom": node.pads[2], "pad_right": node.pads[3],
                            "groups": node.groups,
                        },
                    })
                })
                .collect();
            json!({
                "id": id,
                "batch_size": design.objective.batch(),
                "input_node": graph.nodes[first].name,
                "output_node": graph.nodes[last].name,
                "layers": layers,
            })
        })
        .collect();
    json!({ "name": design.network, "partition": partitions })
}

/// HLS4ML's `HLSConfig`: a reuse factor per layer.
fn hls4ml(design: &Design, graph: &Graph, backend: &dyn Backend) -> Value {
    let mut layers = Map::new();
    for (node, (name, folding)) in graph.nodes.iter().zip(&design.foldings) {
        // cycles = rows · columns · reuse factor.
        let reuse = backend.latency(node, *folding) / node.input.pixels().max(1);
        layers.insert(name.clone(), json!({"ReuseFactor": reuse, "Strategy": "Resource"}));
    }
    json!({
        "Model": {"Precision": "ap_fixed<16,8>", "ReuseFactor": 1, "Strategy": "Resource"},
        "LayerName": layers,
    })
}
