//! Optimisers of streaming designs: the exact one against enumeration, the others against the exact one.

use cyclonest_arch::streaming::{
    Coefficients, Front, FrontLayer, FrontOp, Map, Objective, Platform, Resources, backends,
};
use cyclonest_scheduler::streaming::{Anneal, Brute, Budget, Exact, OptimiseError, Optimiser, Rule, Space, SpaceSize};

fn fc(name: &str, inputs: Vec<usize>, from: Map, to: u64) -> FrontLayer {
    FrontLayer {
        name: name.to_owned(),
        op: FrontOp::Fc,
        inputs,
        input: from,
        output: Map::new(to, 1, 1),
        kernel: (1, 1),
        stride: (1, 1),
        pads: [0; 4],
        groups: 1,
        relu: false,
    }
}

fn conv(name: &str, inputs: Vec<usize>, from: Map, to: u64) -> FrontLayer {
    FrontLayer {
        op: FrontOp::Conv,
        output: Map::new(to, from.h, from.w),
        kernel: (3, 3),
        pads: [1; 4],
        ..fc(name, inputs, from, to)
    }
}

fn chain() -> Front {
    Front {
        name: "chain".to_owned(),
        input: Map::new(4, 1, 1),
        layers: vec![
            fc("a", vec![], Map::new(4, 1, 1), 6),
            fc("b", vec![0], Map::new(6, 1, 1), 4),
            fc("c", vec![1], Map::new(4, 1, 1), 2),
        ],
    }
}

fn residual() -> Front {
    let map = Map::new(2, 4, 4);
    let add = FrontLayer {
        op: FrontOp::Add,
        output: map,
        ..fc("add", vec![0, 1], map, 2)
    };
    Front {
        name: "residual".to_owned(),
        input: map,
        layers: vec![conv("a", vec![], map, 2), conv("b", vec![0], map, 2), add],
    }
}

fn platform(resources: [u64; 4], bandwidth_gbps: f64, reconfiguration_us: f64) -> Platform {
    Platform {
        name: "small".to_owned(),
        part: String::new(),
        resources: Resources::from_array(resources),
        bandwidth_gbps,
        reconfiguration_us,
        finn_clock_mhz: 100.0,
        source: "test".to_owned(),
    }
}

/// Numbers that look random, the same everywhere.
fn next(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn exact_finds_what_enumeration_finds() {
    let mut state = 1;
    let (mut feasible, mut infeasible, mut cut) = (0, 0, 0);
    for round in 0..60 {
        let mut draw = |low: u64, high: u64| low + next(&mut state) % (high - low);
        let board = platform(
            [draw(3, 40), draw(4, 90), draw(500, 20_000), draw(800, 30_000)],
            [0.05, 0.5, 5.0][round % 3],
            [0.1, 1.0, 50.0][round / 3 % 3],
        );
        let objective = if round % 2 == 0 {
            Objective::Latency
        } else {
            Objective::Throughput { batch: draw(2, 300) }
        };
        for front in [chain(), residual()] {
            for flow in backends() {
                let graph = flow.graph(&front).unwrap();
                let space = Space::new(&graph, flow.as_ref(), &board, &Coefficients::estimate());
                if SpaceSize::of(&space, flow.as_ref()).inter > 200_000.0 {
                    continue;
                }
                let everything = Budget {
                    evaluations: u64::MAX,
                    seed: 0,
                };
                let brute = Brute.optimise(&space, objective, everything);
                let exact = Exact::default().optimise(&space, objective, everything);
                match (brute, exact) {
                    (Ok(brute), Ok(exact)) => {
                        feasible += 1;
                        cut += usize::from(!exact.design.cuts.is_empty());
                        let label = format!("round {round} {} {}", front.name, flow.name());
                        assert!(
                            (brute.time_us - exact.time_us).abs() <= 1e-9 * brute.time_us,
                            "{label}: {} {}",
                            brute.time_us,
                            exact.time_us
                        );
                        assert!(exact.is_proven(), "{label}");
                        let broken = exact
                            .design
                            .check(&graph, flow.as_ref(), &board, &Coefficients::estimate());
                        assert!(broken.is_empty(), "{label}: {broken:?}");
                    }
                    (Err(OptimiseError::Infeasible { .. }), Err(OptimiseError::Infeasible { .. })) => infeasible += 1,
                    (brute, exact) => panic!("round {round} {} {}: {brute:?} {exact:?}", front.name, flow.name()),
                }
            }
        }
    }
    assert!(
        feasible > 50 && infeasible > 10 && cut > 5,
        "{feasible} {infeasible} {cut}: the cases must differ"
    );
}

#[test]
fn enumeration_judges_as_many_designs_as_the_count_says() {
    let board = platform([1000; 4], 5.0, 1.0);
    for front in [chain(), residual()] {
        for flow in backends() {
            let graph = flow.graph(&front).unwrap();
            let space = Space::new(&graph, flow.as_ref(), &board, &Coefficients::estimate());
            let size = SpaceSize::of(&space, flow.as_ref());
            assert!(size.full >= size.intra && size.intra >= size.inter);
            if size.inter < 1e6 {
                let count = Brute::count(&space, flow.as_ref(), Objective::Latency, u64::MAX);
                assert_eq!(count.judged as f64, size.inter, "{} {}", front.name, flow.name());
            }
        }
    }
}

#[test]
fn neither_rule_nor_annealing_is_better_than_exact() {
    for network in ["simple", "tfc", "lenet", "mpcnn"] {
        let bundled = cyclonest_workloads::bundled::load(network).unwrap();
        let front = Front::from_network(&bundled).unwrap();
        for flow in backends() {
            let graph = flow.graph(&front).unwrap();
            let board = Platform::named("zc706").unwrap();
            let space = Space::new(&graph, flow.as_ref(), &board, &Coefficients::estimate());
            for objective in [Objective::Latency, Objective::Throughput { batch: 256 }] {
                let budget = Budget {
                    evaluations: 2000,
                    seed: 7,
                };
                let exact = Exact::default().optimise(&space, objective, budget).unwrap();
                assert!(exact.is_proven());
                for other in [&Rule as &dyn Optimiser, &Anneal] {
                    let found = other.optimise(&space, objective, budget).unwrap();
                    assert!(
                        found.time_us >= exact.time_us * (1.0 - 1e-12),
                        "{network} {}",
                        other.name()
                    );
                    let broken = found
                        .design
                        .check(&graph, flow.as_ref(), &board, &Coefficients::estimate());
                    assert!(broken.is_empty(), "{network} {}: {broken:?}", other.name());
                    assert_eq!(
                        found,
                        other.optimise(&space, objective, budget).unwrap(),
                        "same seed, same answer"
                    );
                }
            }
        }
    }
}

#[test]
fn an_infeasible_platform_names_what_runs_out_and_the_least_that_would_do() {
    let board = platform([1, 1, 10, 10], 5.0, 1.0);
    let flow = cyclonest_arch::streaming::backend("fpgaconvnet").unwrap();
    let graph = flow.graph(&chain()).unwrap();
    let space = Space::new(&graph, flow.as_ref(), &board, &Coefficients::estimate());
    let error = Exact::default()
        .optimise(&space, Objective::Latency, Budget::default())
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("`a` need at least") && text.contains("LUT, there are 10"),
        "{text}"
    );
}
