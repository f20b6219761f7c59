//! `greedy` maps every layer of the bundled networks onto every bundled machine, and its mappings are valid.

use std::collections::BTreeSet;

use cyclonest_arch::{Accelerator, Capacity, Mapping, bundled};
use cyclonest_scheduler::{Request, ScheduleError, by_name};
use cyclonest_workloads::{DimMap, Padding, Pair, Problem, Tensor, bundled as networks};
use proptest::prelude::*;

fn greedy(problem: &Problem, arch: &Accelerator) -> Result<Mapping, ScheduleError> {
    by_name("greedy")
        .unwrap()
        .schedule(&Request::new(problem, arch))
        .map(|scheduled| scheduled.mapping)
}

/// Distinct problems of the networks that every machine must run.
fn problems() -> BTreeSet<Problem> {
    ["alexnet", "bert_base", "mobilenet_v2", "resnet50", "vgg16"]
        .into_iter()
        .flat_map(|name| networks::load(name).unwrap().distinct())
        .map(|layer| layer.problem)
        .collect()
}

/// Steps of the PE level, over all of its instances: what the simulator has to go through.
fn pe_steps(mapping: &Mapping, arch: &Accelerator) -> u64 {
    mapping.levels[..arch.event_level()]
        .iter()
        .flat_map(|l| {
            let temporal = l.temporal.iter().map(|t| t.1);
            temporal.chain(l.spatial.iter().map(|s| s.1))
        })
        .product()
}

fn maps_everything_onto(name: &str) {
    let arch = bundled::load(name).unwrap();
    for problem in problems() {
        let mapping = greedy(&problem, &arch).unwrap_or_else(|e| panic!("{name}, {problem:?}: {e}"));
        assert_eq!(mapping.check(&problem, &arch), [], "{name}, {problem:?}");
    }
}

macro_rules! every_layer_is_mapped_onto {
    ($($test:ident: $name:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            maps_everything_onto($name);
        })*

        #[test]
        fn no_bundled_machine_is_left_out() {
            assert_eq!(bundled::names().collect::<Vec<_>>(), [$($name),*]);
        }
    };
}

every_layer_is_mapped_onto! {
    every_layer_is_mapped_onto_eyeriss: "eyeriss",
    every_layer_is_mapped_onto_eyeriss_chip: "eyeriss_chip",
    every_layer_is_mapped_onto_gemmini: "gemmini",
    every_layer_is_mapped_onto_nvdla_like: "nvdla_like",
    every_layer_is_mapped_onto_power10: "power10",
    every_layer_is_mapped_onto_shidiannao_like: "shidiannao_like",
    every_layer_is_mapped_onto_simba: "simba",
    every_layer_is_mapped_onto_simba_4x: "simba_4x",
    every_layer_is_mapped_onto_simba_large: "simba_large",
    every_layer_is_mapped_onto_simba_sram: "simba_sram",
    every_layer_is_mapped_onto_skylake_x: "skylake_x",
    every_layer_is_mapped_onto_small3: "small3",
}

#[test]
fn resnet50_on_simba_stays_below_two_million_pe_steps_per_layer() {
    let arch = bundled::load("simba").unwrap();
    for layer in networks::load("resnet50").unwrap().distinct() {
        let mapping = greedy(&layer.problem, &arch).unwrap();
        let steps = pe_steps(&mapping, &arch);
        assert!(steps < 2_000_000, "{}: {steps} steps", layer.name);
    }
}

#[test]
fn the_same_request_gives_the_same_mapping() {
    let arch = bundled::load("simba").unwrap();
    let problem = Problem::new(DimMap([2, 1, 13, 27, 14, 15, 3, 1]));
    assert_eq!(greedy(&problem, &arch), greedy(&problem, &arch));
}

fn small_problems() -> impl Strategy<Value = Problem> {
    let bounds = (
        1_u64..4,
        1_u64..5,
        1_u64..20,
        1_u64..20,
        1_u64..12,
        1_u64..12,
        1_u64..6,
        1_u64..4,
    );
    let pair = || (1_u64..4, 1_u64..3).prop_map(|(y, x)| Pair(y, x));
    (bounds, pair(), pair(), 0_u64..2).prop_map(|((n, g, k, c, p, q, r, s), stride, dilation, border)| {
        let mut problem = Problem::new(DimMap([n, g, k, c, p, q, r, s]));
        (problem.stride, problem.dilation) = (stride, dilation);
        if problem.padded_extent().0.min(problem.padded_extent().1) > 2 * border {
            problem.padding = Padding {
                top: border,
                bottom: border,
                left: border,
                right: border,
            };
        }
        problem
    })
}

/// A bundled machine with the capacities inside its outermost level cut down to a few elements, other meshes,
/// another PE level.
fn machines() -> impl Strategy<Value = Accelerator> {
    let name = prop::sample::select(bundled::names().collect::<Vec<_>>());
    (
        name,
        prop::collection::vec((1_u64..200, 1_u64..5, 1_u64..4), 8),
        0_usize..6,
    )
        .prop_map(|(name, sizes, event)| {
            let mut arch = bundled::load(name).unwrap();
            for (level, (words, x, y)) in arch.levels.iter_mut().skip(1).zip(sizes) {
                level.mesh = (x, y);
                level
                    .banks
                    .iter_mut()
                    .for_each(|bank| bank.size = Capacity::Words(words));
            }
            // The PE level is never the outermost.
            arch.event_level = arch.levels.get(event.max(1)).map(|level| level.name.clone());
            arch
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn random_problems_are_mapped_onto_random_machines(problem in small_problems(), arch in machines()) {
        prop_assert_eq!(arch.check(), []);
        let mapping = greedy(&problem, &arch);
        // The outermost level has no bounds, and what does not fit further in is not kept there.
        let mapping = mapping.map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(mapping.check(&problem, &arch), []);
    }

    #[test]
    fn what_does_not_fit_the_home_of_the_tensors_is_named(problem in small_problems(), words in 1_u64..60) {
        let mut arch = bundled::load("small3").unwrap();
        arch.levels[0].banks[0].size = Capacity::Words(words);
        let all: u64 = Tensor::ALL.into_iter().map(|t| problem.touched(t)).sum();
        match greedy(&problem, &arch) {
            Ok(mapping) => {
                prop_assert!(all <= words);
                prop_assert_eq!(mapping.check(&problem, &arch), []);
            }
            Err(ScheduleError::Infeasible(why)) => {
                prop_assert!(all > words);
                prop_assert!(why.starts_with(&format!("DRAM: needs {all} words, there are {words}")), "{}", why);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
