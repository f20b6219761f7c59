//! The comparisons with other tools' figures, on the parts of them that come with the crate.

use std::io::Write as _;
use std::path::PathBuf;

use cyclonest_validation::reference::{finn, samo};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
}

/// The records of the file with `from` replaced by `to` in the first line that has it.
fn broken(name: &str, from: &str, to: &str) -> tempfile::NamedTempFile {
    let text = std::fs::read_to_string(data(name)).unwrap();
    let changed = text.replacen(from, to, 1);
    assert_ne!(text, changed);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(changed.as_bytes()).unwrap();
    file
}

#[test]
fn every_node_of_the_table_agrees() {
    let mut out = Vec::new();
    let report = samo::run(&[data("samo_nodes.jsonl")], None, &mut out).unwrap();
    assert_eq!(report.failed, 0, "{}", String::from_utf8_lossy(&out));
    assert!(report.passed > 300 && report.excepted < 50, "{report:?}");
}

#[test]
fn a_node_that_differs_is_named() {
    let file = broken("samo_nodes.jsonl", "\"latency\":1555200.0", "\"latency\":1555201.0");
    let mut out = Vec::new();
    let report = samo::run(&[file.path().to_owned()], None, &mut out).unwrap();
    assert_eq!(report.failed, 1);
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("latency expected 1555201, got 1555200"), "{text}");
}

#[test]
fn every_optimum_is_reached_and_proven() {
    let mut out = Vec::new();
    let report = samo::run(&[data("samo_optima.jsonl")], None, &mut out).unwrap();
    assert_eq!(
        (report.passed, report.failed),
        (18, 0),
        "{}",
        String::from_utf8_lossy(&out)
    );
}

#[test]
fn an_optimum_that_is_too_good_fails() {
    let file = broken("samo_optima.jsonl", "\"total_us\":288.0", "\"total_us\":287.0");
    let report = samo::run(&[file.path().to_owned()], None, &mut Vec::new()).unwrap();
    assert_eq!(report.failed, 1);
}

#[test]
fn every_pipeline_is_exact_to_the_cycle() {
    let mut out = Vec::new();
    let report = finn::run(&[data("finn_rtl.jsonl")], &mut out).unwrap();
    assert_eq!(
        (report.passed, report.failed),
        (125, 0),
        "{}",
        String::from_utf8_lossy(&out)
    );
}

#[test]
fn a_pipeline_that_differs_by_a_cycle_fails() {
    let file = broken("finn_rtl.jsonl", "\"frame_out_last\": [55,", "\"frame_out_last\": [56,");
    let report = finn::run(&[file.path().to_owned()], &mut Vec::new()).unwrap();
    assert_eq!(report.failed, 1);
}
