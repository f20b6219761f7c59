//! `schedule` and `bench schedulers`.

use super::{cyclonest, stderr, stdout};

#[test]
fn mappings_that_schedule_writes_are_what_simulate_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mappings.ron");
    let file = file.to_str().expect("UTF-8");
    for scheduler in ["greedy", "milp", "random"] {
        let common = "--arch pair.ron --network tiny.ron";
        let output = cyclonest(&format!(
            "schedule {common} --scheduler {scheduler} --budget 50 -o {file}"
        ));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stdout(&output).contains("utilisation"), "{}", stdout(&output));
        let simulated = cyclonest(&format!("simulate {common} --mapping {file} --check-values"));
        assert_eq!(simulated.status.code(), Some(0), "{}", stderr(&simulated));
    }
}

#[test]
fn schedule_prints_the_same_bytes_for_any_number_of_threads() {
    let with = |threads: u32| {
        let rest = "--scheduler anneal --budget 200 --format json --oracle sim --objective edp --seed 5";
        stdout(&cyclonest(&format!(
            "schedule --arch pair.ron --network tiny.ron --threads {threads} {rest}"
        )))
    };
    let one = with(1);
    assert!(
        one.contains("\"oracle\": \"sim\"") && one.contains("\"convergence\""),
        "{one}"
    );
    assert_eq!(one, with(3));
}

#[test]
fn the_simulator_as_oracle_estimates_what_it_simulates() {
    let arguments =
        "bench schedulers --arch pair.ron --network tiny.ron --schedulers random,milp --budget 30 --oracle sim";
    let output = cyclonest(&format!("{arguments} --format json"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    assert!(rows.len() >= 6);
    for row in rows {
        assert_eq!(row["cycles"].as_f64(), row["estimated_cycles"].as_f64(), "{row}");
        assert!(row["cycles"].as_u64() >= row["lower_bound"].as_u64(), "{row}");
    }
    let first = &report["summary"][0];
    assert_eq!(first["cycles_ratio"].as_f64(), Some(1.0));
}

#[test]
fn a_layer_that_an_external_program_fails_on_is_reported() {
    let output = cyclonest("bench schedulers --arch pair.ron --network tiny.ron --schedulers greedy,external:false");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("external scheduler: `false` failed"),
        "{}",
        stdout(&output)
    );
}
