//! `validate`: the last line says how many records agree.

use super::{cyclonest, stderr, stdout};

#[test]
fn malformed_records_are_counted_with_their_place() {
    let output = cyclonest("validate reference timing tiny.ron");
    assert_ne!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("tiny.ron:1:"), "{}", stdout(&output));
}

#[test]
fn a_missing_file_of_records_is_reported() {
    for kind in ["timing", "timeloop", "maestro"] {
        let output = cyclonest(&format!("validate reference {kind} no_such.jsonl"));
        assert_eq!(output.status.code(), Some(2));
        assert!(
            stderr(&output).starts_with("error: no_such.jsonl"),
            "{}",
            stderr(&output)
        );
    }
}
