//! The records of the plain timing simulator against the engine and against the per-cycle oracle.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_testkit::oracle::{self, Stall};
use cyclonest_validation::reference::timing::{Measured, Report, run};
use cyclonest_workloads::Problem;

fn with_oracle(problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Measured, String> {
    let outcome =
        oracle::simulate(problem, arch, mapping, oracle::Options::default()).map_err(|error| error.to_string())?;
    if let Some(fault) = outcome.fault {
        return Err(fault);
    }
    let mut stall_by_operand = BTreeMap::new();
    for (stall, cycles) in outcome.stall_cycles {
        let operand = match stall.operand() {
            Some(tensor) => tensor.letter().to_string(),
            None if stall == Stall::Unmapped => "unused".into(),
            None => "finished".into(),
        };
        *stall_by_operand.entry(operand).or_default() += cycles;
    }
    Ok(Measured {
        cycles: outcome.cycles,
        counts: outcome.counts,
        stall_by_operand,
    })
}

fn with_engine(problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Measured, String> {
    cyclonest_sim::simulate(problem, arch, mapping, cyclonest_sim::Options::default())
        .map(|outcome| Measured::from(&outcome))
        .map_err(|error| error.to_string())
}

type Simulate = fn(&Problem, &Accelerator, &Mapping) -> Result<Measured, String>;

fn all_pass(path: PathBuf, simulate: Simulate) -> Report {
    let mut out = Vec::new();
    let report = run(&[path], &simulate, &mut out).unwrap();
    assert_eq!(report.failed, 0, "{}", String::from_utf8_lossy(&out));
    assert!(report.passed > 0);
    report
}

fn subset() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/timing/records.jsonl")
}

/// All records, if they are at hand.
fn everything() -> Option<PathBuf> {
    let folder = std::env::var_os("CYCLONEST_REFERENCE").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/reference"),
        PathBuf::from,
    );
    let path = folder.join("timing/random.jsonl");
    if !path.exists() {
        println!(
            "skipped: {} is missing; CYCLONEST_REFERENCE names the folder",
            path.display()
        );
    }
    path.exists().then_some(path)
}

#[test]
fn the_oracle_equals_the_records() {
    assert_eq!(all_pass(subset(), with_oracle).passed, 150);
}

#[test]
fn the_engine_equals_the_records() {
    assert_eq!(all_pass(subset(), with_engine).passed, 150);
}

#[test]
fn the_oracle_equals_all_records() {
    if let Some(path) = everything() {
        all_pass(path, with_oracle);
    }
}

#[test]
fn the_engine_equals_all_records() {
    if let Some(path) = everything() {
        all_pass(path, with_engine);
    }
}
