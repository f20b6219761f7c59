//! The two analyses of the model `timeloop` against each other, and its adapter.

use cyclonest_arch::directives::{Style, lower};
use cyclonest_scheduler::cost::CostModel;
use cyclonest_scheduler::cost::maestro::MaestroModel;
use cyclonest_scheduler::cost::timeloop::{
    Block, DataSpace, Dimension, Hardware, Macs, Nest, NestLoop, Storage, TimeloopModel, Variant, Workload, evaluate,
};
use cyclonest_workloads::{Dim, DimMap, Pair, Problem};
use proptest::prelude::*;

const DIMS: [&str; 6] = ["K", "C", "P", "Q", "R", "S"];
const LEVELS: usize = 3;

/// Trips of one dimension in the seven places that a loop can be: temporal and spatial per level, inner to outer;
/// the spatial ones are along X and Y in turn.
type Factors = Vec<[u64; 2 * LEVELS]>;

fn workload(bounds: &[u64], stride: u64) -> Workload {
    let space = |name: &str, axes: Vec<Vec<(usize, u64)>>, read_write| DataSpace {
        name: name.to_owned(),
        axes,
        read_write,
    };
    let one = |d: usize| vec![(d, 1)];
    Workload {
        dims: DIMS
            .iter()
            .zip(bounds)
            .map(|(name, &bound)| Dimension {
                name: (*name).to_owned(),
                bound,
            })
            .collect(),
        tensors: vec![
            space("W", vec![one(0), one(1), one(4), one(5)], false),
            space(
                "I",
                vec![one(1), vec![(2, stride), (4, 1)], vec![(3, stride), (5, 1)]],
                false,
            ),
            space("O", vec![one(0), one(2), one(3)], true),
        ],
    }
}

fn hardware() -> Hardware {
    let storage = |l: usize| Storage {
        name: format!("L{l}"),
        instances: 1 << 40,
        mesh_x: 1 << 20,
        memories: Vec::new(),
        ports: Vec::new(),
        reduces: l + 1 < LEVELS,
    };
    Hardware {
        macs: Macs {
            name: "MAC".to_owned(),
            instances: 1 << 40,
            mesh_x: 1 << 20,
        },
        levels: (0..LEVELS).map(storage).collect(),
    }
}

/// The nest with `factors`, and last-iteration bounds for `bounds`; `orders` permutes the temporal loops.
fn nest(bounds: &[u64], factors: &Factors, orders: &[Vec<usize>], keeps: &[bool]) -> Nest {
    let mut left = bounds.to_vec();
    let mut next = |dim: usize, bound: u64| {
        let last = (left[dim] - 1) % bound + 1;
        left[dim] = left[dim].div_ceil(bound);
        NestLoop { dim, bound, last }
    };
    let mut blocks = Vec::new();
    for level in 0..LEVELS {
        let mut block = Block {
            temporal: Vec::new(),
            spatial_x: Vec::new(),
            spatial_y: Vec::new(),
            keeps: if level == 1 { keeps.to_vec() } else { vec![true; 3] },
        };
        for (dim, f) in factors.iter().enumerate() {
            let spatial = next(dim, f[2 * level + 1]);
            if dim % 2 == 0 {
                block.spatial_x.push(spatial);
            } else {
                block.spatial_y.push(spatial);
            }
        }
        for &dim in &orders[level] {
            block.temporal.push(next(dim, factors[dim][2 * level]));
        }
        blocks.push(block);
    }
    Nest { blocks }
}

fn factors() -> impl Strategy<Value = Factors> {
    let one = prop_oneof![4 => Just(1u64), 2 => Just(2), 1 => Just(3)];
    let spatial = prop_oneof![6 => Just(1u64), 1 => Just(2)];
    let dim = (
        proptest::collection::vec(one, LEVELS),
        proptest::collection::vec(spatial, LEVELS),
    )
        .prop_map(|(t, s)| std::array::from_fn(|i| if i % 2 == 0 { t[i / 2] } else { s[i / 2] }));
    proptest::collection::vec(dim, DIMS.len())
}

fn orders() -> impl Strategy<Value = Vec<Vec<usize>>> {
    proptest::collection::vec(Just((0..DIMS.len()).collect::<Vec<_>>()).prop_shuffle(), LEVELS)
}

fn iterations(factors: &Factors) -> u64 {
    factors.iter().flatten().product()
}

/// True if every instance has something to do at some time. Averages are taken over those that have.
fn all_instances_work(bounds: &[u64], factors: &Factors) -> bool {
    bounds.iter().zip(factors).all(|(&bound, f)| {
        let places = |mut i: u64| -> Vec<u64> {
            let mut spatial = Vec::new();
            for level in 0..LEVELS {
                spatial.push(i % f[2 * level + 1]);
                i /= f[2 * level + 1] * f[2 * level];
            }
            spatial
        };
        let used: std::collections::BTreeSet<Vec<u64>> = (0..bound).map(places).collect();
        used.len() as u64 == f.iter().skip(1).step_by(2).product::<u64>()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn closed_form_equals_the_walk_of_every_iteration(
        factors in factors(),
        orders in orders(),
        keeps in proptest::collection::vec(any::<bool>(), 3),
        stride in 1u64..4,
    ) {
        prop_assume!(iterations(&factors) <= 20_000);
        let bounds: Vec<u64> = factors.iter().map(|f| f.iter().product()).collect();
        let (workload, nest) = (workload(&bounds, stride), nest(&bounds, &factors, &orders, &keeps));
        prop_assert!(nest.is_perfect());
        let closed = evaluate(&workload, &hardware(), &nest, Variant::Default).unwrap();
        let walked = evaluate(&workload, &hardware(), &nest, Variant::Exact).unwrap();
        prop_assert_eq!(closed.computes, bounds.iter().product::<u64>());
        prop_assert_eq!(closed, walked);
    }

    #[test]
    fn every_iteration_of_an_imperfect_nest_is_computed_once(
        factors in factors(),
        orders in orders(),
        short in proptest::collection::vec(0u64..3, DIMS.len()),
    ) {
        prop_assume!(iterations(&factors) <= 20_000);
        let bounds: Vec<u64> = factors
            .iter()
            .zip(&short)
            .map(|(f, s)| f.iter().product::<u64>().saturating_sub(*s).max(1))
            .collect();
        prop_assume!(all_instances_work(&bounds, &factors));
        let (workload, nest) = (workload(&bounds, 1), nest(&bounds, &factors, &orders, &[true; 3]));
        let walked = evaluate(&workload, &hardware(), &nest, Variant::Exact).unwrap();
        prop_assert_eq!(walked.computes, bounds.iter().product::<u64>());
    }
}

#[test]
fn idle_lanes_count_as_busy_in_the_default_analysis() {
    // K 6 on four lanes: 4 and 2. All eight lane-steps are counted by default, the six that exist by the walk.
    let bounds = [6, 1, 1, 1, 1, 1];
    let mut factors: Factors = vec![[1; 6]; 6];
    (factors[0][3], factors[0][4]) = (4, 2);
    let orders = vec![(0..6).collect::<Vec<_>>(); LEVELS];
    let (workload, nest) = (workload(&bounds, 1), nest(&bounds, &factors, &orders, &[true; 3]));
    let computes = |variant| evaluate(&workload, &hardware(), &nest, variant).unwrap().computes;
    assert_eq!((computes(Variant::Default), computes(Variant::Exact)), (8, 6));
}

#[test]
fn both_models_judge_every_lowered_style() {
    let mut bounds = DimMap::ones();
    for (dim, n) in [
        (Dim::K, 16),
        (Dim::C, 8),
        (Dim::P, 8),
        (Dim::Q, 8),
        (Dim::R, 3),
        (Dim::S, 3),
    ] {
        bounds[dim] = n;
    }
    for stride in [1, 2] {
        let problem = Problem {
            stride: Pair(stride, stride),
            ..Problem::new(bounds)
        };
        for style in Style::ALL {
            let layer = style.layer("conv", &problem, 24).unwrap();
            let lowered = lower(&layer, 24).unwrap();
            let (arch, mapping) = lowered.machine(8, 1).unwrap();
            let timeloop = TimeloopModel::default().evaluation(&problem, &arch, &mapping).unwrap();
            let name = style.name();
            assert!(timeloop.computes >= problem.macs(), "{name}");
            let maestro = MaestroModel
                .evaluate(&problem, &arch, &mapping)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            // Neither is below what the used PEs can do.
            let floor = problem.macs() as f64 / 24.0;
            assert!(maestro.cycles >= floor && timeloop.cycles as f64 >= floor, "{name}");
        }
    }
}
