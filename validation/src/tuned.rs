//! The hand-tuned foldings that come with FINN's examples, as designs.

use cyclonest_arch::streaming::{Design, Folding, Front, Graph, Objective, backend};

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// The bundled network.
    pub network: String,
    /// Its graph by FINN.
    pub graph: Graph,
    /// The design, on the four regions that it takes.
    pub design: Design,
    /// Cycles per frame of its slowest node, as the examples have it.
    pub cycles: f64,
}

/// The designs of CNV and of MobileNetV1.
///
/// # Panics
/// If the bundled data does not describe the bundled networks, which the tests exclude.
#[must_use]
pub fn designs() -> Vec<Tuned> {
    let text = include_str!("../data/finn_handtuned.json");
    let file: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let flow = backend("finn").expect("known");
    // Our names, and the examples' own.
    [("cnv", "cnv"), ("mobilenet_v1_samo", "mobilenetv1")]
        .into_iter()
        .map(|(network, name)| {
            let bundled = cyclonest_workloads::bundled::load(network).expect("bundled");
            let front = Front::from_network(&bundled).expect("a pipeline");
            let graph = flow.graph(&front).expect("builds");
            let entry = &file[name];
            let nodes = entry["nodes"].as_array().expect("nodes");
            let foldings = graph
                .nodes
                .iter()
                .map(|node| {
                    let tuned = nodes
                        .iter()
                        .find(|n| n["name"] == node.name.as_str())
                        .expect("every node is given");
                    let field = |key: &str| tuned[key].as_u64().expect("a number");
                    let folding = Folding {
                        cin: field("simd"),
                        cout: field("pe"),
                        k: 1,
                    };
                    (node.name.clone(), folding)
                })
                .collect();
            let design = Design {
                network: graph.network.clone(),
                backend: graph.backend.clone(),
                platform: "u250_4slr".to_owned(),
                objective: Objective::Latency,
                foldings,
                cuts: Vec::new(),
                fifo_depths: Vec::new(),
            };
            Tuned {
                network: network.to_owned(),
                graph,
                design,
                cycles: entry["latency_cycles"].as_f64().expect("a number"),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_node_takes_as_long_as_the_examples_say() {
        let flow = backend("finn").unwrap();
        for tuned in designs() {
            let cycles = tuned.graph.nodes.iter().zip(&tuned.design.foldings);
            let slowest = cycles.map(|(node, folding)| flow.latency(node, folding.1)).max();
            assert_eq!(slowest.map(|c| c as f64), Some(tuned.cycles), "{}", tuned.network);
        }
    }
}
