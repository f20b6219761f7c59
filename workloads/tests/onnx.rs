//! Import of ONNX files.

use std::path::Path;

use cyclonest_workloads::import::onnx::{self, Options};
use cyclonest_workloads::op::Op;
use cyclonest_workloads::{Dim, Network, bundled};

fn data(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn import(bytes: &[u8]) -> Network {
    let (network, warnings) = onnx::import(bytes, &Options::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(warnings, []);
    network
}

/// Convolutions, grouped ones among them, and fully connected layers.
fn counts(network: &Network) -> (usize, usize, usize) {
    let count = |test: &dyn Fn(&Op) -> bool| network.nodes().iter().filter(|node| test(&node.op)).count();
    (
        count(&|op| matches!(op, Op::Conv(_))),
        count(&|op| matches!(op, Op::Conv(conv) if conv.groups > 1)),
        count(&|op| matches!(op, Op::Linear(_))),
    )
}

#[test]
fn alexnet_has_its_grouped_convolutions() {
    let network = import(&data("light_bvlc_alexnet.onnx"));
    assert_eq!(counts(&network), (5, 3, 3));
}

#[test]
fn squeezenet_equals_the_bundled_one() {
    let network = import(&data("light_squeezenet.onnx"));
    assert_eq!(counts(&network), (26, 0, 0));
    let bundled = bundled::load("squeezenet1_1").expect("bundled");
    assert_eq!(network.macs(), bundled.macs());
    let problems = |network: &Network| {
        network
            .layers()
            .iter()
            .map(|layer| layer.problem.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(problems(&network), problems(&bundled));
}

/// The file rounds its pools down, where the paper rounds up: same filters, smaller feature maps.
#[test]
fn inception_has_the_filters_of_the_bundled_googlenet() {
    let network = import(&data("light_inception_v1.onnx"));
    assert_eq!(counts(&network), (57, 0, 1));
    let filters = |network: &Network| {
        let sizes = network
            .layers()
            .iter()
            .map(|layer| [Dim::K, Dim::C, Dim::R, Dim::S].map(|dim| layer.problem.bounds[dim]));
        let mut sizes: Vec<_> = sizes.collect();
        sizes.sort_unstable();
        sizes
    };
    assert_eq!(
        filters(&network),
        filters(&bundled::load("googlenet").expect("bundled"))
    );
    assert_eq!(network.macs(), 1_431_556_352);
}
