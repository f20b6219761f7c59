//! The bundled networks against published totals and shapes.

use cyclonest_workloads::{Dim, Network, bundled};

/// Totals of the publications and of the usual counters (multiply-accumulates, padding included).
const TOTALS: &[(&str, u64)] = &[
    ("alexnet", 714_188_480),
    ("alexnet_grouped", 724_406_816),
    ("bert_base", 11_173_625_856),
    ("cnv", 59_461_376),
    ("deepbench", 433_695_744),
    ("densenet121", 2_834_161_664),
    ("googlenet", 1_582_671_872),
    ("lenet", 2_293_000),
    ("lfc", 2_910_208),
    ("mobilenet_v1", 568_740_352),
    ("mobilenet_v2", 300_774_272),
    ("mobilenetv1", 568_740_352),
    ("mpcnn", 1_480_200),
    ("resnet18", 1_814_073_344),
    ("resnet50", 4_089_184_256),
    ("resnet50_v1", 3_857_973_248),
    ("resnext50_32x4d", 4_230_479_872),
    ("sfc", 334_336),
    ("simple", 4_256),
    ("squeezenet1_0", 818_924_576),
    ("squeezenet1_1", 349_151_936),
    ("tfc", 59_008),
    ("unet", 150_428_424_448),
    ("vgg11", 7_609_090_048),
    ("vgg16", 15_470_264_320),
];

fn load(name: &str) -> Network {
    bundled::load(name).unwrap_or_else(|| panic!("{name} is not bundled"))
}

/// Multiply-accumulates of layers with a filter larger than 1×1 or an output larger than 1×1.
fn convolution_macs(network: &Network) -> u64 {
    let nodes = network.nodes().iter();
    let convolutions: Vec<_> = nodes
        .filter(|node| node.op.kind() == "Conv")
        .map(|node| &node.name)
        .collect();
    let layers = network.layers().iter();
    layers
        .filter(|layer| convolutions.contains(&&layer.name))
        .map(|layer| layer.problem.macs())
        .sum()
}

#[test]
fn every_bundled_network_has_its_published_total() {
    assert_eq!(
        TOTALS.iter().map(|&(name, _)| name).collect::<Vec<_>>(),
        bundled::names()
    );
    for &(name, macs) in TOTALS {
        assert_eq!(load(name).macs(), macs, "{name}");
    }
}

#[test]
fn distinct_layers_times_their_counts_are_the_total() {
    for name in bundled::names() {
        let network = load(name);
        let distinct = network.distinct();
        let sum: u64 = distinct.iter().map(|layer| layer.count * layer.problem.macs()).sum();
        assert_eq!(sum, network.macs(), "{name}");
        let names: usize = distinct.iter().map(|layer| layer.names.len()).sum();
        assert_eq!(names, network.layers().len(), "{name}");
    }
}

#[test]
fn convolutions_of_the_first_resnet_50_are_as_published() {
    assert_eq!(convolution_macs(&load("resnet50_v1")), 3_855_925_248);
}

#[test]
fn resnet_50_has_53_convolutions_and_one_fc() {
    for name in ["resnet50", "resnet50_v1"] {
        let network = load(name);
        let count = |kind| network.nodes().iter().filter(|node| node.op.kind() == kind).count();
        assert_eq!((count("Conv"), count("Linear")), (53, 1), "{name}");
    }
    assert_eq!(load("resnet50").distinct().len(), 24);
}

#[test]
fn resnext_has_32_real_groups() {
    let network = load("resnext50_32x4d");
    let grouped = network
        .layers()
        .iter()
        .filter(|layer| layer.problem.bounds[Dim::G] == 32);
    assert_eq!(grouped.count(), 16);
}

#[test]
fn padding_counts_only_what_the_nest_touches() {
    let network = load("resnet50");
    let first = &network.layers()[0].problem;
    assert_eq!((first.padding.top, first.padding.bottom), (3, 2));
    let input = first.real_rows();
    assert_eq!(input.end - input.start, 224);
}

#[test]
fn networks_survive_being_written_and_read() {
    for name in bundled::names() {
        let network = load(name);
        let text = network.to_ron().expect("serialises");
        assert_eq!(Network::from_ron(&text), Ok(network), "{name}:\n{text}");
    }
}
