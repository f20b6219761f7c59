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

/// A number that looks random, the same everywhere.
fn next(state: &mut u64, below: usize) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % below
}

/// One field of a record, or of one of its stages, becomes something else, or goes.
fn disturb(record: &mut serde_json::Value, state: &mut u64) {
    let stages = record["stages"].as_array().map_or(0, Vec::len);
    let target = if stages == 0 || next(state, 4) == 0 {
        record
    } else {
        &mut record["stages"][next(state, stages)]
    };
    if target.as_object().is_none_or(serde_json::Map::is_empty) {
        return;
    }
    let fields = target.as_object_mut().unwrap();
    let key = fields.keys().nth(next(state, fields.len())).unwrap().clone();
    if next(state, 6) == 0 {
        fields.remove(&key);
        return;
    }
    let choices = [
        "0",
        "1",
        "2",
        "3",
        "5",
        "7",
        "16",
        "-1",
        "1.5",
        "4294967296",
        "18446744073709551615",
        "null",
        "\"x\"",
        "[]",
        "[1, 3]",
        "[2, 1]",
        "[0, 0]",
        "true",
        "{}",
    ];
    fields.insert(key, serde_json::from_str(choices[next(state, choices.len())]).unwrap());
}

#[test]
fn a_disturbed_pipeline_is_compared_or_refused_with_a_reason() {
    let text = std::fs::read_to_string(data("finn_rtl.jsonl")).unwrap();
    let records: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let mut state = 5;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let count = 600;
    for _ in 0..count {
        let mut record = records[next(&mut state, records.len())].clone();
        for _ in 0..=next(&mut state, 2) {
            disturb(&mut record, &mut state);
        }
        writeln!(file, "{record}").unwrap();
    }
    writeln!(file, "{{\"done\": false}}").unwrap();
    let mut out = Vec::new();
    let report = finn::run(&[file.path().to_owned()], &mut out).unwrap();
    assert_eq!(report.passed + report.failed, count);
    assert_eq!(report.left_out, 1);
    // Some fields do not matter, most do.
    assert!(report.passed > 50 && report.failed > 200, "{report:?}");
    let text = String::from_utf8(out).unwrap();
    for reason in [
        "no `frames`",
        "unknown",
        "does not fit",
        "not a multiple",
        "words per frame",
        "left out",
    ] {
        assert!(text.contains(reason), "{reason} is missing in\n{text}");
    }
}

/// The stages of a chain at any rate run through and end after as many words as they should.
#[test]
fn chains_that_nobody_measured_run_through() {
    let mut state = 11;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for _ in 0..60 {
        let mut draw = |list: &[u64]| list[next(&mut state, list.len())];
        let (channels, simd, pe) = (draw(&[2, 4]), draw(&[1, 2]), draw(&[1, 2, 4]));
        let (kernel, stride, pad) = (draw(&[1, 2, 3]), draw(&[1, 2]), draw(&[0, 1]));
        let (rows, columns) = (draw(&[5, 6, 8]), draw(&[4, 7]));
        let (padded_rows, padded_columns) = (rows + 2 * pad, columns + 2 * pad);
        let mut stages = Vec::new();
        if pad > 0 {
            stages
                .push(serde_json::json!({"t": "pad", "H": rows, "W": columns, "P": pad, "C": channels, "SIMD": simd}));
        }
        stages.push(
            serde_json::json!({"t": "swg", "H": padded_rows, "W": padded_columns, "C": channels, "k": kernel,
            "SIMD": simd, "s": stride}),
        );
        if draw(&[0, 1]) == 1 {
            stages.push(serde_json::json!({"t": "fifo", "depth": draw(&[1, 3, 16])}));
        }
        stages.push(
            serde_json::json!({"t": "mvu", "MW": kernel * kernel * channels, "MH": 4, "PE": pe,
            "SIMD": if kernel == 1 { simd } else { draw(&[simd]) }, "q": 4}),
        );
        let record = serde_json::json!({"name": "chain", "stages": stages, "frames": 3, "in_bits": 4 * simd, "act_bits": 4,
            "acc_bits": 24, "frame_elems": rows * columns * channels, "in_rate": [draw(&[1, 2]), draw(&[2, 3, 5])],
            "out_rate": [1, draw(&[1, 2, 7])], "frame_in_last": [], "frame_out_last": []});
        writeln!(file, "{record}").unwrap();
    }
    let mut out = Vec::new();
    let report = finn::run(&[file.path().to_owned()], &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(report.failed, 60);
    // Nothing was expected, three frames came: no reason but this one.
    assert_eq!(text.matches("frame_out_last expected [], got [").count(), 60, "{text}");
}
