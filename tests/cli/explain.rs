//! `explain`: the reuse of a mapping.

use super::{cyclonest, stderr, stdout};

#[test]
fn a_dataflow_style_is_explained_with_what_the_machine_has() {
    let output = cyclonest("explain --arch small3 --network tiny.ron --layer conv1 --dataflow KC-P");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    insta::assert_snapshot!(stdout(&output));
}

#[test]
fn a_mapping_of_a_file_is_explained() {
    let output =
        cyclonest("explain --arch pair.ron --network tiny.ron --layer conv1 --mapping conv1.ron --format json");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["mapped_by"], "file");
    let lines = report["reuse"].as_array().expect("lines");
    // Three tensors, from DRAM to the PE and from there to the lanes.
    assert_eq!(lines.len(), 6);
    // K is spread over two PEs: both need the same inputs.
    let inputs = lines
        .iter()
        .find(|l| l["tensor"] == "Inputs" && l["from"] == "DRAM")
        .expect("inputs");
    assert_eq!(inputs["spatial"]["factor"], 2.0);
    assert_eq!(inputs["spatial"]["cause"][0], "K 2");
    assert_eq!(report["directives"].is_string(), report["not_expressible"].is_null());
}

#[test]
fn an_unknown_dataflow_is_a_fault() {
    let output = cyclonest("explain --arch pair.ron --network tiny.ron --layer conv1 --dataflow KC");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("unknown dataflow `KC`"), "{}", stderr(&output));
}
