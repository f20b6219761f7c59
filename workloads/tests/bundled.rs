//! The bundled networks against published totals and shapes.

use cyclonest_workloads::{Dim, Network, Scale, bundled};

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
    ("mobilenet_v1_samo", 568_740_352),
    ("mobilenet_v2", 300_774_272),
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

/// One row of `tests/data/cosa_layers.csv`.
struct Row {
    network: String,
    /// N, K over all groups, C per group, P, Q, R, S, stride.
    sizes: [u64; 8],
    count: u64,
}

fn cosa() -> Vec<Row> {
    let text = include_str!("data/cosa_layers.csv");
    let rows = text.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |i: usize| fields[i].parse::<u64>().expect("a number");
        Row {
            network: fields[0].to_owned(),
            sizes: std::array::from_fn(|i| number(i + 2)),
            count: number(10),
        }
    });
    rows.collect()
}

#[test]
fn layers_and_their_counts_are_those_that_cosa_was_evaluated_on() {
    for name in ["alexnet", "resnet50", "resnext50_32x4d", "deepbench"] {
        let mut ours: Vec<_> = load(name)
            .distinct()
            .iter()
            .map(|layer| {
                let b = |dim| layer.problem.bounds[dim];
                let sizes = [
                    b(Dim::N),
                    b(Dim::K) * b(Dim::G),
                    b(Dim::C),
                    b(Dim::P),
                    b(Dim::Q),
                    b(Dim::R),
                    b(Dim::S),
                ];
                assert_eq!(layer.problem.stride.0, layer.problem.stride.1);
                (sizes, layer.problem.stride.0, layer.count)
            })
            .collect();
        let rows = cosa().into_iter().filter(|row| row.network == name);
        let mut theirs: Vec<_> = rows
            .map(|row| {
                let [sizes @ .., stride] = row.sizes;
                (sizes, stride, row.count)
            })
            .collect();
        assert!(!theirs.is_empty());
        ours.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn convolutions_of_the_squeezenets_are_all_of_them() {
    for name in ["squeezenet1_0", "squeezenet1_1"] {
        let network = load(name);
        assert_eq!(convolution_macs(&network), network.macs());
    }
}

#[test]
fn depthwise_convolutions_have_one_channel_per_group() {
    for (name, count) in [("mobilenet_v1", 13), ("mobilenet_v2", 17)] {
        let network = load(name);
        let grouped: Vec<_> = network
            .layers()
            .iter()
            .filter(|layer| layer.problem.bounds[Dim::G] > 1)
            .collect();
        assert_eq!(grouped.len(), count, "{name}");
        for layer in grouped {
            assert_eq!(
                (layer.problem.bounds[Dim::K], layer.problem.bounds[Dim::C]),
                (1, 1),
                "{}",
                layer.name
            );
        }
    }
}

#[test]
fn attention_has_a_group_per_head() {
    let network = load("bert_base");
    let heads: Vec<_> = network
        .distinct()
        .into_iter()
        .filter(|layer| layer.problem.bounds[Dim::G] == 12)
        .collect();
    let sizes: Vec<_> = heads
        .iter()
        .map(|layer| {
            (
                [Dim::N, Dim::K, Dim::C].map(|dim| layer.problem.bounds[dim]),
                layer.count,
            )
        })
        .collect();
    assert_eq!(sizes, [([128, 128, 64], 12), ([128, 64, 128], 12)]);
}

#[test]
fn the_u_net_of_the_paper_maps_572_to_388() {
    let network = load("unet");
    assert_eq!(network.shape("up4.concat"), Some(&[1, 1024, 56, 56][..]));
    assert_eq!(network.shape("classes"), Some(&[1, 2, 388, 388][..]));
}

#[test]
fn the_networks_end_in_a_thousand_classes() {
    let image_net = bundled::names()
        .iter()
        .filter(|name| load(name).inputs()[0].shape[1..] == [3, 224, 224] || name.starts_with("alexnet"));
    for name in image_net {
        let network = load(name);
        let last = network.nodes().last().expect("nodes");
        assert_eq!(last.shape, [1, 1000], "{name}");
    }
}

#[test]
fn every_text_names_its_source_and_its_total() {
    for name in bundled::names() {
        let text = bundled::text(name).expect("bundled");
        let comment: Vec<_> = text.lines().take_while(|line| line.starts_with("//")).collect();
        let digits = load(name).macs().to_string();
        let grouped: Vec<_> = digits
            .as_bytes()
            .rchunks(3)
            .rev()
            .map(|part| String::from_utf8_lossy(part))
            .collect();
        let total = format!("{} multiply-accumulates", grouped.join(","));
        assert!(comment.iter().any(|line| line.contains(&total)), "{name}: {total}");
        assert!(
            comment.iter().any(|line| line.contains("20") || line.contains("19")),
            "{name} has no year"
        );
    }
}

#[test]
fn a_scaled_network_divides_channels_and_keeps_its_graph() {
    let quarter = Scale {
        divide_channels: 4,
        batch: None,
    };
    for name in bundled::names() {
        let network = load(name);
        let Ok(scaled) = network.scaled(quarter) else {
            panic!("{name} cannot be scaled: {}", network.scaled(quarter).unwrap_err());
        };
        let images = network
            .inputs()
            .iter()
            .all(|input| input.shape.len() == 4 && input.shape[1] <= 4);
        assert_eq!(scaled.inputs() == network.inputs(), images, "{name}");
        let names = |network: &Network| network.nodes().iter().map(|node| node.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&scaled), names(&network));
        assert!(scaled.macs() < network.macs(), "{name}");
    }
    let alexnet = load("alexnet").scaled(quarter).expect("scales");
    let sizes: Vec<_> = alexnet
        .layers()
        .iter()
        .map(|layer| [Dim::K, Dim::C, Dim::P, Dim::R].map(|dim| layer.problem.bounds[dim]))
        .collect();
    assert_eq!(sizes[..3], [[16, 3, 55, 11], [48, 16, 27, 5], [96, 48, 13, 3]]);
    assert_eq!(sizes[5..], [[1024, 2304, 1, 1], [1024, 1024, 1, 1], [250, 1024, 1, 1]]);
    // Features that are no colours are divided, too.
    let bert = load("bert_base").scaled(quarter).expect("scales");
    assert_eq!(bert.inputs()[0].shape, [1, 128, 192]);
}

#[test]
fn scaled_depthwise_convolutions_stay_depthwise() {
    let network = load("mobilenet_v1")
        .scaled(Scale {
            divide_channels: 4,
            batch: None,
        })
        .expect("scales");
    let second = &network.layers()[1];
    assert_eq!(second.name, "conv2_dw");
    assert_eq!(
        [Dim::G, Dim::K, Dim::C].map(|dim| second.problem.bounds[dim]),
        [8, 1, 1]
    );
}

#[test]
fn a_batch_multiplies_the_work_and_nothing_else() {
    for name in ["resnet18", "googlenet", "bert_base", "unet"] {
        let network = load(name);
        let batched = network
            .scaled(Scale {
                divide_channels: 1,
                batch: Some(16),
            })
            .expect("scales");
        assert_eq!(batched.macs(), 16 * network.macs(), "{name}");
    }
    // CoSA's ResNet-18 has this batch.
    let resnet18 = load("resnet18")
        .scaled(Scale {
            divide_channels: 1,
            batch: Some(16),
        })
        .expect("scales");
    assert!(resnet18.layers().iter().all(|layer| layer.problem.bounds[Dim::N] == 16));
}

#[test]
fn a_scale_of_zero_is_an_error() {
    for scale in [
        Scale {
            divide_channels: 0,
            batch: None,
        },
        Scale {
            divide_channels: 1,
            batch: Some(0),
        },
    ] {
        assert!(load("alexnet").scaled(scale).is_err());
    }
}
