//! Pipelines: timing identities, deadlocks, FIFO depths, values.

use std::collections::BTreeMap;

use cyclonest_arch::streaming::pipeline::{Layer, Link, Pipeline, Rate, Stage, StageKind, Window};
use cyclonest_arch::streaming::{Design, Folding, Front, FrontOp, Graph, Objective, Platform, backend};
use cyclonest_sim::streaming::{
    Ends, Options, PipelineError, kernels, partition_pipeline, resolve_deadlock, simulate, simulate_values, size_fifos,
};

fn stage(name: &str, kind: StageKind) -> Stage {
    Stage {
        name: name.to_owned(),
        kind,
    }
}

const fn pixelwise(pixels: u64, cycles: u64) -> Layer {
    Layer {
        input: (1, pixels),
        output: (1, pixels),
        kernel: (1, 1),
        stride: (1, 1),
        pads: [0; 4],
        cycles,
        read_cycles: 1,
        buffer: 1,
        whole_rows: false,
    }
}

fn all_ones(graph: &Graph) -> Design {
    Design {
        network: graph.network.clone(),
        backend: graph.backend.clone(),
        platform: "zc706".to_owned(),
        objective: Objective::Latency,
        foldings: graph.nodes.iter().map(|n| (n.name.clone(), Folding::ONE)).collect(),
        cuts: Vec::new(),
        fifo_depths: Vec::new(),
    }
}

fn front(network: &str) -> Front {
    Front::from_network(&cyclonest_workloads::bundled::load(network).expect("bundled")).expect("lowers")
}

/// Fork, a branch of a 3×3 window, an empty branch, join.
fn residual(skip_depth: u64) -> Pipeline {
    let map = (8, 8);
    let plain = Layer {
        input: map,
        output: map,
        ..pixelwise(1, 64)
    };
    let window = Layer {
        kernel: (3, 3),
        pads: [1; 4],
        buffer: 4 * 8 - 1,
        ..plain
    };
    let link = |from, to, depth| Link { from, to, depth };
    Pipeline {
        name: "residual".to_owned(),
        stages: vec![
            stage(
                "source",
                StageKind::Source {
                    tokens: 64,
                    rate: Rate::FULL,
                },
            ),
            stage("fork", StageKind::Layer(plain)),
            stage("conv", StageKind::Layer(window)),
            stage("add", StageKind::Layer(plain)),
            stage(
                "sink",
                StageKind::Sink {
                    tokens: 64,
                    rate: Rate::FULL,
                },
            ),
        ],
        links: vec![
            link(0, 1, 0),
            link(1, 2, 2),
            link(1, 3, skip_depth),
            link(2, 3, 2),
            link(3, 4, 2),
        ],
        memory: None,
    }
}

#[test]
fn a_chain_of_vectors_takes_the_sum_of_its_nodes_and_one_cycle_per_hop() {
    let stages = vec![
        stage(
            "source",
            StageKind::Source {
                tokens: 1,
                rate: Rate::FULL,
            },
        ),
        stage("a", StageKind::Layer(pixelwise(1, 100))),
        stage("b", StageKind::Layer(pixelwise(1, 30))),
        stage(
            "sink",
            StageKind::Sink {
                tokens: 1,
                rate: Rate::FULL,
            },
        ),
    ];
    let mut chain = Pipeline::chain("chain", stages);
    chain.links.iter_mut().for_each(|l| l.depth = 1);
    let outcome = simulate(
        &chain,
        Options {
            frames: 10,
            fast_forward: true,
        },
    )
    .unwrap();
    assert_eq!(outcome.first_frame, 100 + 30 + 2 + 1);
    assert_eq!(outcome.interval, (9 * 100, 9));
}

#[test]
fn skipping_frames_changes_nothing() {
    let flow = backend("finn").unwrap();
    let graph = flow.graph(&front("lenet")).unwrap();
    let platform = Platform::named("zedboard").unwrap();
    let design = all_ones(&graph);
    for (frames, ends) in [(9, Ends::Unlimited), (12, Ends::Memory(&platform))] {
        let pipeline = partition_pipeline(&graph, flow.as_ref(), &design, (0, graph.nodes.len() - 1), ends);
        let fast = simulate(
            &pipeline,
            Options {
                frames,
                fast_forward: true,
            },
        )
        .unwrap();
        let full = simulate(
            &pipeline,
            Options {
                frames,
                fast_forward: false,
            },
        )
        .unwrap();
        assert!(fast.skipped.is_some() && full.skipped.is_none());
        assert!(fast.steps < full.steps);
        assert_eq!(
            (fast.cycles, fast.interval, fast.frames),
            (full.cycles, full.interval, full.frames)
        );
        assert_eq!(fast.links, full.links);
        assert_eq!(fast.stages, full.stages);
    }
}

#[test]
fn pixels_that_a_stride_leaves_unread_do_not_disturb_the_skipping() {
    // The last window of a frame ends at pixel 10 of 16: when the frame is out, five of its pixels are still to come.
    let strided = Layer {
        input: (4, 4),
        output: (2, 2),
        stride: (2, 2),
        buffer: 8,
        ..pixelwise(1, 4)
    };
    let rate = Rate { tokens: 1, cycles: 3 };
    let stages = vec![
        stage("source", StageKind::Source { tokens: 16, rate }),
        stage("strided", StageKind::Layer(strided)),
        stage(
            "sink",
            StageKind::Sink {
                tokens: 4,
                rate: Rate::FULL,
            },
        ),
    ];
    let mut pipeline = Pipeline::chain("strided", stages);
    pipeline.links.iter_mut().for_each(|l| l.depth = 1);
    let run = |fast_forward| {
        let frames = 20;
        simulate(&pipeline, Options { frames, fast_forward }).unwrap()
    };
    let (fast, full) = (run(true), run(false));
    assert!(fast.skipped.is_some() && full.skipped.is_none());
    assert_eq!(full.interval, (19 * 48, 19));
    // Before the end of the frame's own input: the unread pixels come with the next frame.
    assert!(full.first_frame < 48, "{}", full.first_frame);
    assert_eq!((fast.cycles, fast.interval), (full.cycles, full.interval));
    assert_eq!(fast.links, full.links);
}

/// FINN's foldings (SIMD, PE) of every node, in order.
fn folded(graph: &Graph, foldings: &[(u64, u64)]) -> Design {
    let mut design = all_ones(graph);
    assert_eq!(design.foldings.len(), foldings.len());
    for ((_, folding), &(cin, cout)) in design.foldings.iter_mut().zip(foldings) {
        *folding = Folding { cin, cout, k: 1 };
    }
    design
}

/// Designs by FINN: the nodes' sum of cycles, the cycles until the first frame has left the last node, and the interval
/// by depth of the FIFOs. From an independent pixel-level simulation.
#[test]
fn first_frames_and_intervals_are_those_of_an_independent_simulation() {
    let ones = |n: usize| vec![(1, 1); n];
    let cnv_tuned = [
        (3, 3),
        (3, 3),
        (3, 16),
        (32, 32),
        (32, 32),
        (1, 1),
        (32, 32),
        (32, 16),
        (32, 32),
        (32, 16),
        (1, 1),
        (32, 32),
        (32, 4),
        (32, 32),
        (32, 1),
        (4, 1),
        (8, 1),
        (1, 5),
        (1, 1),
    ];
    let cnv_rule = [
        (3, 3),
        (3, 3),
        (3, 32),
        (64, 64),
        (64, 16),
        (32, 32),
        (32, 32),
        (32, 16),
        (64, 64),
        (64, 16),
        (16, 16),
        (16, 16),
        (16, 8),
        (8, 8),
        (8, 4),
        (8, 1),
        (16, 1),
        (1, 1),
        (1, 1),
    ];
    let mpcnn = [
        (1, 1),
        (1, 1),
        (1, 10),
        (20, 20),
        (20, 20),
        (10, 4),
        (1, 1),
        (1, 1),
        (1, 1),
        (2, 1),
        (1, 1),
        (1, 1),
    ];
    let lenet = [
        (1, 1),
        (1, 1),
        (1, 10),
        (20, 20),
        (20, 20),
        (20, 5),
        (10, 10),
        (10, 2),
        (1, 1),
        (1, 1),
    ];
    let tfc = [(16, 16), (16, 8), (16, 1), (16, 1), (2, 1), (1, 1)];
    let simple = [(16, 16), (16, 2), (64, 1), (32, 1), (1, 5), (1, 1)];
    let mobilenet = [
        (3, 3),
        (3, 3),
        (3, 3),
        (3, 32),
        (32, 32),
        (32, 32),
        (32, 32),
        (16, 16),
        (32, 32),
        (32, 32),
        (32, 32),
        (16, 16),
        (64, 64),
        (64, 64),
        (64, 64),
        (16, 32),
        (16, 16),
        (16, 16),
        (16, 16),
        (16, 16),
        (32, 32),
        (32, 32),
        (32, 32),
        (16, 32),
        (8, 8),
        (8, 8),
        (8, 8),
        (16, 16),
        (16, 16),
        (16, 16),
        (16, 16),
        (16, 32),
        (16, 16),
        (16, 16),
        (16, 16),
        (16, 32),
        (16, 16),
        (16, 16),
        (16, 16),
        (16, 32),
        (16, 16),
        (16, 16),
        (16, 16),
        (16, 32),
        (16, 16),
        (16, 16),
        (16, 16),
        (16, 32),
        (4, 4),
        (4, 4),
        (4, 4),
        (16, 16),
        (8, 8),
        (8, 8),
        (8, 8),
        (16, 32),
        (4, 4),
        (4, 4),
        (4, 4),
        (1, 1),
    ];
    type Case = (&'static str, Vec<(u64, u64)>, u64, u64, &'static [(u64, u64)]);
    let cases: [Case; 9] = [
        ("simple", simple.to_vec(), 134, 140, &[(1, 32), (2, 32), (32, 32)]),
        ("tfc", tfc.to_vec(), 1283, 1289, &[(1, 392), (2, 392), (32, 392)]),
        ("tfc", ones(6), 59_802, 59_808, &[(1, 50_176)]),
        ("lenet", ones(10), 2_342_494, 2_125_766, &[(1, 1_600_000)]),
        (
            "lenet",
            lenet.to_vec(),
            87_754,
            55_996,
            &[(1, 29_757), (2, 28_800), (32, 28_800)],
        ),
        (
            "mpcnn",
            mpcnn.to_vec(),
            152_006,
            92_146,
            &[(1, 48_601), (2, 45_001), (32, 39_200)],
        ),
        (
            "cnv",
            cnv_tuned.to_vec(),
            247_684,
            136_750,
            &[(1, 32_768), (1024, 32_768)],
        ),
        (
            "mobilenet_v1_samo",
            mobilenet.to_vec(),
            3_523_650,
            308_146,
            &[(2, 113_881)],
        ),
        (
            "cnv",
            cnv_rule.to_vec(),
            180_210,
            100_794,
            &[(1, 28_712), (2, 28_658), (8, 28_334), (32, 28_224), (128, 28_224)],
        ),
    ];
    let flow = backend("finn").unwrap();
    for (network, foldings, sum, first, intervals) in cases {
        let graph = flow.graph(&front(network)).unwrap();
        let mut design = folded(&graph, &foldings);
        let cycles = graph
            .nodes
            .iter()
            .zip(&design.foldings)
            .map(|(n, f)| flow.latency(n, f.1));
        assert_eq!(cycles.sum::<u64>(), sum, "{network}");
        for &(depth, interval) in intervals {
            design.fifo_depths = vec![depth; graph.edges.len()];
            let nodes = (0, graph.nodes.len() - 1);
            let pipeline = partition_pipeline(&graph, flow.as_ref(), &design, nodes, Ends::Unlimited);
            let frames = 8;
            let fast_forward = true;
            let outcome = simulate(&pipeline, Options { frames, fast_forward }).unwrap();
            // Here the frame has left when the sink has taken its last pixel.
            assert_eq!(
                (outcome.first_frame, outcome.interval),
                (first + 1, (7 * interval, 7)),
                "{network} {sum} at depth {depth}"
            );
        }
    }
}

#[test]
fn skipping_words_changes_nothing() {
    let window = Window {
        rows: 9,
        columns: 9,
        kernel: (3, 3),
        stride: (2, 2),
        dilation: (1, 1),
        turns: 2,
        parallel: false,
        depthwise: false,
    };
    for rate in [Rate::FULL, Rate { tokens: 2, cycles: 3 }, Rate { tokens: 1, cycles: 5 }] {
        let stages = vec![
            stage("source", StageKind::Source { tokens: 162, rate }),
            stage("fifo", StageKind::Fifo { depth: 3 }),
            stage("window", StageKind::Window(window)),
            stage(
                "sink",
                StageKind::Sink {
                    tokens: window.words_out(),
                    rate,
                },
            ),
        ];
        let pipeline = Pipeline::chain("words", stages);
        let fast = simulate(
            &pipeline,
            Options {
                frames: 40,
                fast_forward: true,
            },
        )
        .unwrap();
        let full = simulate(
            &pipeline,
            Options {
                frames: 40,
                fast_forward: false,
            },
        )
        .unwrap();
        assert!(fast.skipped.is_some());
        assert_eq!((fast.cycles, fast.interval), (full.cycles, full.interval));
        assert_eq!(fast.links, full.links);
    }
}

#[test]
fn a_skip_fifo_that_is_too_small_deadlocks_and_is_named() {
    let Err(PipelineError::Deadlock { chain, full, .. }) = simulate(&residual(2), Options::default()) else {
        panic!("a deadlock is expected");
    };
    let text = chain.join("\n");
    for name in ["`add`", "`conv`", "`fork`", "depth 2"] {
        assert!(text.contains(name), "{text}");
    }
    assert_eq!(full, [2]);
}

#[test]
fn the_depth_that_resolves_a_deadlock_is_the_smallest() {
    let pipeline = residual(2);
    let depths = resolve_deadlock(&pipeline, &[2], 3).expect("a depth resolves it");
    let [(2, depth)] = depths[..] else { panic!("{depths:?}") };
    assert!(simulate(&residual(depth), Options::default()).is_ok());
    assert!(simulate(&residual(depth - 1), Options::default()).is_err());
}

#[test]
fn sized_fifos_keep_the_interval_and_none_can_be_smaller() {
    let pipeline = residual(2);
    let sizing = size_fifos(&pipeline, 8).unwrap();
    assert_eq!(sizing.cycles.0, sizing.cycles.1);
    let mut sized = pipeline;
    for (link, depth) in sized.links.iter_mut().zip(&sizing.depths) {
        link.depth = *depth;
    }
    let options = Options {
        frames: 8,
        fast_forward: true,
    };
    assert_eq!(simulate(&sized, options).unwrap().interval.0, sizing.cycles.0);
    for link in 1..sized.links.len() {
        if sized.links[link].depth > 0 {
            let mut smaller = sized.clone();
            smaller.links[link].depth -= 1;
            let slower = simulate(&smaller, options).map_or(true, |o| o.interval.0 > sizing.cycles.0);
            assert!(slower, "link {link} could be smaller");
        }
    }
}

/// A small deterministic integer.
fn small(n: usize) -> i64 {
    ((n * 2_654_435_761) >> 7) as i64 % 5 - 2
}

/// Direct computation of a network, map by map, in its own order: channel, row, column.
fn direct(front: &Front, weights: &BTreeMap<usize, Vec<i64>>, input: &[i64]) -> Vec<i64> {
    let mut maps: Vec<Vec<i64>> = Vec::new();
    for (index, layer) in front.layers.iter().enumerate() {
        let read = |i: usize| layer.inputs.get(i).map_or(input, |&l| &maps[l]);
        let (x, i, o) = (read(0), layer.input, layer.output);
        let mut out = vec![0i64; o.size() as usize];
        let at = |c: u64, y: i64, z: i64| {
            let inside = y >= 0 && z >= 0 && y < i.h as i64 && z < i.w as i64;
            inside.then(|| x[((c * i.h + y as u64) * i.w + z as u64) as usize])
        };
        let positions = layer.kernel.0 * layer.kernel.1;
        for k in 0..o.c {
            for y in 0..o.h {
                for z in 0..o.w {
                    let origin = (
                        (y * layer.stride.0) as i64 - layer.pads[0] as i64,
                        (z * layer.stride.1) as i64 - layer.pads[1] as i64,
                    );
                    let taps = (0..layer.kernel.0 as i64).flat_map(|r| (0..layer.kernel.1 as i64).map(move |s| (r, s)));
                    let value = match layer.op {
                        FrontOp::Conv => {
                            let per_group = i.c / layer.groups;
                            let first = k / (o.c / layer.groups) * per_group;
                            let w = &weights[&index];
                            taps.flat_map(|t| (0..per_group).map(move |c| (t, c)))
                                .map(|((r, s), c)| {
                                    let tap = r as u64 * layer.kernel.1 + s as u64;
                                    let weight = w[((k * per_group + c) * positions + tap) as usize];
                                    weight * at(first + c, origin.0 + r, origin.1 + s).unwrap_or(0)
                                })
                                .sum()
                        }
                        FrontOp::Fc => {
                            let n = i.size() as usize;
                            (0..n).map(|j| weights[&index][k as usize * n + j] * x[j]).sum()
                        }
                        FrontOp::MaxPool => taps
                            .filter_map(|(r, s)| at(k, origin.0 + r, origin.1 + s))
                            .max()
                            .unwrap_or(0),
                        other => panic!("{other:?} is not in these networks"),
                    };
                    out[((k * o.h + y) * o.w + z) as usize] = if layer.relu { value.max(0) } else { value };
                }
            }
        }
        maps.push(out);
    }
    maps.pop().expect("there is a layer")
}

fn values_agree(network: &str, flow: &str) {
    let front = front(network);
    let flow = backend(flow).unwrap();
    let graph = flow.graph(&front).unwrap();
    let mut weights = BTreeMap::new();
    for (index, layer) in front.layers.iter().enumerate() {
        let count = match layer.op {
            FrontOp::Conv => layer.output.c * (layer.input.c / layer.groups) * layer.kernel.0 * layer.kernel.1,
            FrontOp::Fc => layer.output.c * layer.input.size(),
            _ => continue,
        };
        weights.insert(
            index,
            (0..count as usize).map(|n| small(n + 31 * index)).collect::<Vec<_>>(),
        );
    }
    let map = front.input;
    let frame = |f: usize| {
        (0..map.size() as usize)
            .map(|n| small(n * 3 + f * 101))
            .collect::<Vec<i64>>()
    };
    let frames: Vec<Vec<i64>> = (0..3).map(frame).collect();
    // As pixels: all channels of a position together.
    let count = map.pixels() as usize;
    let pixel = |frame: &Vec<i64>, p: usize| (0..map.c as usize).map(|c| frame[c * count + p]).collect::<Vec<i64>>();
    let pixels: Vec<Vec<Vec<i64>>> = frames
        .iter()
        .map(|f| (0..count).map(|p| pixel(f, p)).collect())
        .collect();
    let nodes = (0, graph.nodes.len() - 1);
    let pipeline = partition_pipeline(&graph, flow.as_ref(), &all_ones(&graph), nodes, Ends::Unlimited);
    // Stage 0 is the source.
    let computing = kernels(&graph, &front, &weights)
        .into_iter()
        .map(|(node, k)| (node + 1, k))
        .collect();
    let options = Options {
        frames: 3,
        fast_forward: false,
    };
    let outcome = simulate_values(&pipeline, options, &computing, &pixels).unwrap();
    assert_eq!(outcome.values.len(), 3);
    for (frame, got) in frames.iter().zip(&outcome.values) {
        let expected = direct(&front, &weights, frame);
        assert!(
            expected.iter().any(|&v| v != expected[0]),
            "equal outputs would compare nothing"
        );
        let got: Vec<i64> = got.concat();
        if flow.name() == "finn" {
            let largest = expected.iter().max().unwrap();
            assert_eq!(got, [expected.iter().position(|v| v == largest).unwrap() as i64]);
        } else {
            assert_eq!(got, expected);
        }
    }
}

#[test]
fn tfc_computes_what_it_should() {
    for flow in ["fpgaconvnet", "hls4ml", "finn"] {
        values_agree("tfc", flow);
    }
}

#[test]
fn lenet_computes_what_it_should() {
    for flow in ["fpgaconvnet", "hls4ml", "finn"] {
        values_agree("lenet", flow);
    }
}
