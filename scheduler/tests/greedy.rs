//! `greedy` maps every layer of the bundled networks onto every bundled machine, and its mappings are valid.

use std::collections::BTreeSet;

use cyclonest_arch::{Accelerator, Mapping, bundled};
use cyclonest_scheduler::{Objective, Request, ScheduleError, by_name};
use cyclonest_workloads::{DimMap, Problem, bundled as networks};

fn greedy(problem: &Problem, arch: &Accelerator) -> Result<Mapping, ScheduleError> {
    let request = Request {
        problem,
        arch,
        objective: Objective::Cycles,
        oracle: None,
        budget: 0,
        seed: 0,
    };
    by_name("greedy")
        .unwrap()
        .schedule(&request)
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
    every_layer_is_mapped_onto_nvdla_like: "nvdla_like",
    every_layer_is_mapped_onto_shidiannao_like: "shidiannao_like",
    every_layer_is_mapped_onto_simba: "simba",
    every_layer_is_mapped_onto_simba_4x: "simba_4x",
    every_layer_is_mapped_onto_simba_large: "simba_large",
    every_layer_is_mapped_onto_simba_sram: "simba_sram",
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
