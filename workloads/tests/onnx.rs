//! Import of ONNX files.

use std::path::{Path, PathBuf};

use cyclonest_workloads::import::onnx::{self, OnnxError, Options};
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

/// Further models, of the same source as those in `data`, with their numbers of convolutions, grouped ones among them,
/// and fully connected layers. They are looked for in the folder that the environment variable names, or in
/// `shared/onnx` beside the checkout.
const MODELS: &[(&str, (usize, usize, usize))] = &[
    ("light_bvlc_alexnet.onnx", (5, 3, 3)),
    ("light_vgg19.onnx", (16, 0, 3)),
    ("light_squeezenet.onnx", (26, 0, 0)),
    ("light_inception_v1.onnx", (57, 0, 1)),
    ("light_shufflenet.onnx", (49, 48, 1)),
    ("light_resnet50.onnx", (53, 0, 1)),
];

fn models() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/onnx");
    let folder = std::env::var_os("CYCLONEST_ONNX").map_or_else(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: {} is no folder; set CYCLONEST_ONNX", folder.display());
    None
}

#[test]
fn whole_models_have_their_layers() {
    let Some(folder) = models() else { return };
    for &(name, expected) in MODELS {
        let network = import(&std::fs::read(folder.join(name)).expect("readable"));
        assert_eq!(counts(&network), expected, "{name}");
        assert_eq!(network.nodes().last().expect("nodes").shape[..2], [1, 1000], "{name}");
    }
    let resnet50 = import(&std::fs::read(folder.join("light_resnet50.onnx")).expect("readable"));
    let bundled = bundled::load("resnet50").expect("bundled");
    let shapes = |network: &Network| {
        let layers = network.distinct().into_iter().map(|layer| (layer.problem, layer.count));
        layers.collect::<std::collections::BTreeMap<_, _>>()
    };
    assert_eq!(shapes(&resnet50), shapes(&bundled));
}

#[test]
fn a_model_with_open_sizes_needs_its_input_shape() {
    let Some(folder) = models() else { return };
    let bytes = std::fs::read(folder.join("ch_ppocr_mobile_v2.0_cls_infer.onnx")).expect("readable");
    let error = onnx::import(&bytes, &Options::default()).expect_err("sizes are open");
    assert_eq!(
        error.to_string(),
        "\"x\": the input is declared with ?×3×?×?; its shape has to be given"
    );
    let options = Options {
        input_shape: Some(vec![1, 3, 48, 192]),
    };
    let (network, warnings) = onnx::import(&bytes, &options).expect("imports");
    assert_eq!(warnings, []);
    assert_eq!(counts(&network), (53, 11, 1));
    assert_eq!(network.nodes().last().expect("nodes").shape, [1, 2]);
}

#[test]
fn a_truncated_file_is_reported_with_its_last_byte() {
    let bytes = data("light_squeezenet.onnx");
    for length in [1, 10, 1000, bytes.len() / 2, bytes.len() - 1] {
        let error = onnx::import(&bytes[..length], &Options::default()).expect_err("truncated");
        let OnnxError::Malformed { byte, .. } = error else {
            panic!("{length}: {error}");
        };
        assert_eq!(byte, Some(length));
    }
}

#[test]
fn a_damaged_file_is_an_error_or_a_network_and_no_panic() {
    for name in ["light_bvlc_alexnet.onnx", "light_squeezenet.onnx"] {
        let bytes = data(name);
        // A small generator of its own keeps the damage the same on every run.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut errors = 0;
        for _ in 0..1500 {
            let mut damaged = bytes.clone();
            for _ in 0..=random(3) {
                let at = random(damaged.len());
                damaged[at] = random(256) as u8;
            }
            if random(10) == 0 {
                damaged.truncate(random(bytes.len()));
            }
            errors += usize::from(onnx::import(&damaged, &Options::default()).is_err());
        }
        assert!((300..1500).contains(&errors), "{name}: {errors}");
    }
}
