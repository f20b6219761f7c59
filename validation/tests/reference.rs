//! The compatible models on what the original tools said.

use std::path::PathBuf;

use cyclonest_validation::reference::{self, ReferenceError};

fn bundled(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// The full record files, where they are at hand: `$CYCLONEST_REFERENCE`, or `../shared/reference` next to the
/// checkout.
fn full(folder: &str) -> Vec<PathBuf> {
    let root = std::env::var_os("CYCLONEST_REFERENCE").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/reference"),
        PathBuf::from,
    );
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
        println!("skipped: no {} (set CYCLONEST_REFERENCE)", root.join(folder).display());
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "jsonl"));
    files.sort();
    files
}

#[test]
fn timeloop_agrees_on_the_bundled_records() {
    let report = reference::timeloop::validate(&[bundled("timeloop.jsonl")]).unwrap();
    assert_eq!(report.failed(), 0, "{}", report.render());
    assert_eq!(report.render(), "20 passed, 0 failed\n");
}

#[test]
fn timeloop_agrees_on_every_record_at_hand() {
    let report = reference::timeloop::validate(&full("timeloop")).unwrap();
    assert_eq!(report.failed(), 0, "{}", report.render());
}

#[test]
fn maestro_agrees_on_the_bundled_records() {
    let report = reference::maestro::validate(&[bundled("maestro.jsonl")]).unwrap();
    assert_eq!(report.render(), "117 passed, 0 failed\n");
}

#[test]
fn maestro_agrees_on_every_record_at_hand() {
    let report = reference::maestro::validate(&full("maestro")).unwrap();
    assert_eq!(report.failed(), 0, "{}", report.render());
}

#[test]
fn where_maestro_crashes_the_error_names_the_cause() {
    let mut refusals = reference::maestro::refusals(&[bundled("maestro.jsonl")]).unwrap();
    refusals.sort();
    refusals.dedup();
    insta::assert_snapshot!(refusals.join("\n"));
}

#[test]
fn closed_form_and_exhaustive_walk_agree_on_perfect_factors() {
    let mut files = full("timeloop");
    files.push(bundled("timeloop.jsonl"));
    let (agreeing, disagreeing) = reference::timeloop::compare_analyses(&files).unwrap();
    assert_eq!(disagreeing, Vec::<String>::new());
    assert!(agreeing >= 10, "{agreeing}");
}

#[test]
fn what_must_fail_names_what_does_not_fit() {
    let refusals = reference::timeloop::refusals(&[bundled("timeloop.jsonl")]).unwrap();
    let text: Vec<String> = refusals.iter().map(|(id, why)| format!("{id}: {why}")).collect();
    assert_eq!(
        text,
        [
            "38_m38_db_overflow: invalid mapping: level RF: the tiles need 282 (Inputs 200 + Weights 18 + Outputs 64), \
             256 are available",
            "39_m39_rf_overflow: invalid mapping: level RF: the tiles need 4224 (Inputs 64 + Weights 4096 + Outputs \
             64), 1024 are available",
            "40_m40_bad_product: invalid mapping: dimension Q: the factors of all levels give 4, the bound is 8",
            "63_s23_too_many_pes: invalid mapping: level RF: the spatial loops of GLB and further out need 8 \
             instances along X, 4 are available",
        ]
    );
}

#[test]
fn a_wrong_figure_is_reported_with_both_values() {
    let text = std::fs::read_to_string(bundled("timeloop.jsonl")).unwrap();
    let line = text.lines().next().unwrap();
    let wrong = line.replace("\"cycles\": \"18432\"", "\"cycles\": \"18431\"");
    assert_ne!(line, wrong);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), wrong).unwrap();
    let report = reference::timeloop::validate(&[file.path()]).unwrap();
    let id = &report.verdicts[0].id;
    assert_eq!(
        report.render(),
        format!("{id}: cycles: expected 18431, got 18432\n0 passed, 1 failed\n")
    );
}

#[test]
fn a_line_that_is_no_record_is_located() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "\n{\"id\": 3}\n").unwrap();
    let error = reference::timeloop::validate(&[file.path()]).unwrap_err();
    assert!(matches!(error, ReferenceError::Malformed { line: 2, .. }), "{error}");
}
