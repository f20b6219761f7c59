//! The model `exact` against the records of a plain simulator of the timing contract, and against the simulator on
//! the same machines and on bundled ones.

use std::path::PathBuf;

use cyclonest_arch::{Accelerator, Mapping, bundled};
use cyclonest_scheduler::cost::exact::Evaluator;
use cyclonest_scheduler::{Request, by_name};
use cyclonest_validation::reference::timing::{flatten, read};
use cyclonest_workloads::{Dim, DimMap, Padding, Pair, Problem};

/// The records, if the reference data stands beside the checkout or where `CYCLONEST_REFERENCE` says.
fn records() -> Option<PathBuf> {
    let root = std::env::var_os("CYCLONEST_REFERENCE").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/reference"),
        PathBuf::from,
    );
    let path = root.join("timing/random.jsonl");
    if !path.exists() {
        println!("skipped: {} is missing", path.display());
        return None;
    }
    Some(path)
}

#[test]
fn counts_equal_the_plain_simulators_on_every_record() {
    let Some(path) = records() else { return };
    let mut evaluator = Evaluator::new();
    let (mut total, mut wrong) = (0, 0);
    for record in read(&path).expect("readable") {
        let record = record.expect("well-formed");
        evaluator
            .evaluate(&record.problem, &record.arch, &record.mapping)
            .expect("valid");
        let got = flatten(&evaluator.counts(&record.arch));
        let expected = &record.expected.counts;
        total += 1;
        if got != *expected {
            wrong += 1;
            println!("{}", record.id);
            let keys: std::collections::BTreeSet<_> = got.keys().chain(expected.keys()).collect();
            for key in keys {
                if got.get(key) != expected.get(key) {
                    println!("  {key}: expected {:?}, got {:?}", expected.get(key), got.get(key));
                }
            }
        }
    }
    assert_eq!(wrong, 0, "of {total} records");
}

/// Asserts that every count of the model is the simulator's: accesses, elements and words by degree, bit hops.
fn assert_counts(evaluator: &mut Evaluator, problem: &Problem, arch: &Accelerator, mapping: &Mapping, name: &str) {
    let outcome = cyclonest_sim::simulate(problem, arch, mapping, cyclonest_sim::Options::default())
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    evaluator.evaluate(problem, arch, mapping).expect("valid");
    let counts = evaluator.counts(arch);
    assert_eq!(counts.macs, outcome.counts.macs, "{name}");
    for (model, simulated) in counts.levels.iter().zip(&outcome.counts.levels) {
        assert_eq!(model, simulated, "{name}: {problem:?}");
    }
}

#[test]
fn every_count_equals_the_simulators_on_the_records_machines() {
    let Some(path) = records() else { return };
    let mut evaluator = Evaluator::new();
    for record in read(&path).expect("readable") {
        let r = record.expect("well-formed");
        assert_counts(&mut evaluator, &r.problem, &r.arch, &r.mapping, &r.id);
    }
}

#[test]
fn every_count_equals_the_simulators_on_bundled_machines() {
    let mut layers = vec![
        Problem::new(DimMap([1, 1, 24, 13, 1, 1, 1, 1])),
        Problem::new(DimMap([2, 12, 1, 1, 9, 7, 3, 3])),
        Problem::new(DimMap([1, 1, 20, 6, 13, 11, 3, 2])),
        Problem::new(DimMap([1, 2, 5, 7, 6, 9, 1, 1])),
    ];
    layers[1].padding = Padding {
        top: 1,
        bottom: 1,
        left: 1,
        right: 1,
    };
    layers[2].stride = Pair(2, 3);
    layers[2].padding.top = 1;
    layers[3].stride = Pair(2, 2);
    let greedy = by_name("greedy").expect("registered");
    let mut evaluator = Evaluator::new();
    for name in bundled::names() {
        let arch = bundled::load(name).expect("bundled");
        for problem in &layers {
            let request = Request::new(problem, &arch);
            let mapping = greedy.schedule(&request).expect("maps").mapping;
            assert_eq!(mapping.bounds[Dim::K], problem.bounds[Dim::K]);
            assert_counts(&mut evaluator, problem, &arch, &mapping, name);
        }
    }
}
