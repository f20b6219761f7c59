//! The dataflow styles: evaluated by MAESTRO's model, lowered to mappings, simulated.

use cyclonest_arch::Reduction;
use cyclonest_arch::directives::{Lowered, Style, figures, lower};
use cyclonest_scheduler::cost::CostModel;
use cyclonest_scheduler::cost::exact::Exact;
use cyclonest_scheduler::cost::maestro::{Machine, evaluate};
use cyclonest_sim::{Options, Values, simulate};
use cyclonest_workloads::{Dim, DimMap, Padding, Pair, Problem, bundled};

fn machine(pes: u64) -> Machine {
    Machine {
        pes,
        noc_bandwidth: 32,
        noc_latency: 1,
        offchip_bandwidth: 50,
    }
}

fn problem(bounds: &[(Dim, u64)], stride: u64) -> Problem {
    let mut map = DimMap::ones();
    for &(dim, n) in bounds {
        map[dim] = n;
    }
    Problem {
        stride: Pair(stride, stride),
        ..Problem::new(map)
    }
}

/// Layers of every kind, scaled down until they simulate in no time.
fn small_layers() -> Vec<(&'static str, Problem)> {
    use Dim::{C, G, K, P, Q, R, S};
    let padded = Problem {
        padding: Padding {
            top: 1,
            bottom: 1,
            left: 1,
            right: 1,
        },
        ..problem(&[(K, 5), (C, 3), (P, 7), (Q, 6), (R, 3), (S, 3)], 1)
    };
    vec![
        ("3x3", problem(&[(K, 8), (C, 4), (P, 6), (Q, 6), (R, 3), (S, 3)], 1)),
        ("3x3 padded, odd", padded),
        (
            "3x3 stride 2",
            problem(&[(K, 4), (C, 6), (P, 5), (Q, 5), (R, 3), (S, 3)], 2),
        ),
        ("1x1", problem(&[(K, 16), (C, 12), (P, 7), (Q, 7)], 1)),
        ("1x1 stride 2", problem(&[(K, 6), (C, 5), (P, 4), (Q, 4)], 2)),
        ("5x5", problem(&[(K, 3), (C, 2), (P, 5), (Q, 9), (R, 5), (S, 5)], 1)),
        ("depthwise", problem(&[(G, 12), (P, 6), (Q, 6), (R, 3), (S, 3)], 1)),
        (
            "grouped",
            problem(&[(G, 2), (K, 4), (C, 3), (P, 6), (Q, 6), (R, 3), (S, 3)], 1),
        ),
        ("fully connected", problem(&[(K, 20), (C, 30)], 1)),
    ]
}

#[test]
fn every_style_evaluates_on_every_layer_of_vgg16_and_mobilenet_v2() {
    let mut refused = Vec::new();
    let mut evaluated = 0;
    for network in ["vgg16", "mobilenet_v2"] {
        for layer in bundled::load(network).unwrap().distinct() {
            for style in Style::ALL {
                for pes in [64, 168, 256, 1024] {
                    let mapped = style.layer(&layer.name, &layer.problem, pes).unwrap();
                    match evaluate(&mapped, &machine(pes)) {
                        Ok(e) => {
                            assert!(e.runtime > 0, "{network} {} {}", layer.name, style.name());
                            evaluated += 1;
                        }
                        Err(e) => refused.push(format!("{network} {} {} {pes}: {e}", layer.name, style.name())),
                    }
                }
            }
        }
    }
    assert_eq!(refused, Vec::<String>::new());
    assert!(evaluated > 500, "{evaluated}");
}

#[test]
fn every_style_lowers_on_every_layer_of_vgg16_and_mobilenet_v2() {
    for network in ["vgg16", "mobilenet_v2"] {
        for layer in bundled::load(network).unwrap().distinct() {
            for style in Style::ALL {
                for pes in [64, 168, 256, 1024] {
                    let lowered = lowered(&layer.name, style, &layer.problem, pes);
                    let (arch, mapping) = lowered.machine(32, 1).unwrap();
                    // The layer as it is, its padding neither stored nor moved, takes the same mapping.
                    assert_eq!(
                        mapping.check(&layer.problem, &arch),
                        [],
                        "{} {}",
                        layer.name,
                        style.name()
                    );
                }
            }
        }
    }
}

fn lowered(name: &str, style: Style, problem: &Problem, pes: u64) -> Lowered {
    let layer = style.layer(name, problem, pes).unwrap();
    lower(&layer, pes).unwrap_or_else(|e| panic!("{name} {}: {e}", style.name()))
}

#[test]
fn every_style_lowers_and_computes_every_mac() {
    for (name, problem) in small_layers() {
        for style in Style::ALL {
            for pes in [12, 64] {
                let lowered = lowered(name, style, &problem, pes);
                let (arch, mapping) = lowered.machine(16, 1).unwrap();
                assert_eq!(arch.check(), [], "{name} {}", style.name());
                let options = Options {
                    check_values: true,
                    ..Options::default()
                };
                let outcome = simulate(&lowered.problem, &arch, &mapping, options)
                    .unwrap_or_else(|e| panic!("{name} {} on {pes} PEs: {e}\n{mapping:?}", style.name()));
                assert_eq!(outcome.counts.macs, problem.macs(), "{name} {}", style.name());
                assert_eq!(outcome.values, Values::Equal, "{name} {}", style.name());
            }
        }
    }
}

#[test]
fn row_stationary_shares_inputs_along_the_diagonal() {
    // Four output rows and three filter rows need six input rows: one pass of each serves up to three PEs.
    let problem = problem(&[(Dim::P, 4), (Dim::Q, 1), (Dim::R, 3), (Dim::S, 1)], 1);
    let lowered = lowered("conv", Style::YRP, &problem, 12);
    let (arch, mapping) = lowered.machine(16, 1).unwrap();
    let outcome = simulate(&lowered.problem, &arch, &mapping, Options::default()).unwrap();
    let inputs = &outcome.counts.levels[0].tensors[cyclonest_workloads::Tensor::Inputs];
    assert_eq!(inputs.reads, 6);
}

#[test]
fn figure_5_and_6_lower_and_compute_every_mac() {
    for example in figures::one_dimensional()
        .into_iter()
        .chain([figures::row_stationary()])
    {
        let lowered = lower(&example.layer, example.pes).unwrap_or_else(|e| panic!("{}: {e}", example.label));
        let (arch, mapping) = lowered.machine(4, 1).unwrap();
        let outcome = simulate(&lowered.problem, &arch, &mapping, Options::default()).unwrap();
        assert_eq!(outcome.counts.macs, lowered.problem.macs(), "{}", example.label);
        evaluate(&example.layer, &machine(example.pes)).unwrap_or_else(|e| panic!("{}: {e}", example.label));
    }
}

#[test]
fn styles_take_the_machines_that_they_are_named_after() {
    use Dim::{C, K, P, Q, R, S};
    let layer = problem(&[(K, 64), (C, 64), (P, 14), (Q, 14), (R, 3), (S, 3)], 1);
    for (style, machine) in [
        (Style::KCP, "nvdla_like"),
        (Style::YRP, "eyeriss"),
        (Style::YXP, "shidiannao_like"),
    ] {
        let arch = cyclonest_arch::bundled::load(machine).unwrap();
        let first_fan: u64 = (0..arch.levels.len())
            .map(|l| arch.child_mesh(l))
            .map(|m| m.0 * m.1)
            .product();
        let lowered = lowered("conv", style, &layer, first_fan);
        match lowered.onto(&layer, &arch) {
            Ok(mapping) => assert_eq!(mapping.check(&layer, &arch), [], "{machine}"),
            Err(e) => panic!("{} on {machine}: {e}", style.name()),
        }
    }
}

#[test]
fn filter_rows_take_the_axis_that_only_they_need() {
    use Dim::{C, K, P, Q, R, S};
    // 27 output rows fit 14×12 as 9×3, which leaves 4 for the 5 filter rows along Y; as 14×2 they leave enough.
    let layer = problem(&[(K, 16), (C, 4), (P, 27), (Q, 27), (R, 5), (S, 5)], 1);
    let arch = cyclonest_arch::bundled::load("eyeriss").unwrap();
    let mapping = lowered("conv2", Style::YRP, &layer, 168).onto(&layer, &arch).unwrap();
    assert_eq!(mapping.check(&layer, &arch), []);
    let spread = |dim| {
        mapping.levels[1]
            .spatial
            .iter()
            .filter(move |l| l.0 == dim)
            .map(|l| l.1)
    };
    assert_eq!(spread(R).product::<u64>(), 5, "{mapping:?}");
    assert!(spread(P).product::<u64>() >= 27, "{mapping:?}");
}

#[test]
fn sums_that_go_to_l2_one_by_one_limit_exact_like_the_simulation() {
    // 128 sums per step pass the network to L2, and nobody waits for one before the next turn of C.
    let problem = problem(
        &[
            (Dim::K, 8),
            (Dim::C, 128),
            (Dim::P, 7),
            (Dim::Q, 7),
            (Dim::R, 3),
            (Dim::S, 3),
        ],
        1,
    );
    let lowered = lowered("conv", Style::KCP, &problem, 128);
    let (mut arch, mapping) = lowered.machine(40, 1).unwrap();
    for network in arch.levels.iter_mut().filter_map(|level| level.below.as_mut()) {
        network.reduction = Reduction::None;
    }
    let cycles = simulate(&lowered.problem, &arch, &mapping, Options::default())
        .unwrap()
        .cycles as f64;
    let exact = Exact.evaluate(&lowered.problem, &arch, &mapping).unwrap().cycles;
    assert!((exact - cycles).abs() < 0.05 * cycles, "{exact} instead of {cycles}");
}
