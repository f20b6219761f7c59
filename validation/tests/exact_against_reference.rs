//! The model `exact` against the records of a plain simulator of the timing contract.

use std::path::PathBuf;

use cyclonest_scheduler::cost::exact::Evaluator;
use cyclonest_validation::reference::timing::{flatten, read};

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
