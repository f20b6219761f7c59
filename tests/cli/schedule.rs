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

#[test]
fn weights_that_calibrate_writes_are_taken_by_milp_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("weights.ron");
    let file = file.to_str().expect("UTF-8");
    let output = cyclonest(&format!("calibrate --arch pair.ron --mappings 8 -o {file}"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("communication"), "{}", stdout(&output));
    let common = format!("schedule --arch pair.ron --network tiny.ron --budget 20 --weights {file}");
    let output = cyclonest(&format!("{common} --scheduler milp"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let refused = cyclonest(&format!("{common} --scheduler greedy"));
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("weights are for the schedulers milp"),
        "{}",
        stderr(&refused)
    );
    std::fs::write(file, "Weights(\n  levels: { \"Nowhere\": 1.0 },\n  compute: -1.0,\n)").expect("written");
    let faults = stderr(&cyclonest(&format!("{common} --scheduler milp")));
    assert!(
        faults.contains("has no such level") && faults.contains("is no weight"),
        "{faults}"
    );
}

#[test]
fn with_the_simulator_as_referee_milp_is_never_slower_than_where_it_begins() {
    let arguments = "bench schedulers --arch pair.ron --network tiny.ron --schedulers greedy,milp --budget 40";
    let output = cyclonest(&format!("{arguments} --format json"));
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["judge"].as_str(), Some("sim"));
    for pair in report["rows"].as_array().expect("rows").chunks(2) {
        let cycles = |i: usize| pair[i]["cycles"].as_f64().expect("cycles");
        // Scores lean towards less energy: by less than a percent per halving.
        assert!(cycles(1) <= cycles(0) * 1.02, "{} after {}", cycles(1), cycles(0));
    }
}

#[test]
fn orders_and_spatial_loops_are_rows_with_mappings_that_simulate_runs() {
    for what in ["permutations", "spatial"] {
        let subject = "--arch pair.ron --shape K=8,C=8,P=4,Q=4,R=3 --scheduler random --budget 5";
        let output = cyclonest(&format!("bench {what} {subject} --format json"));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        let rows = report["rows"].as_array().expect("rows");
        assert!(!rows.is_empty() && report["spread"].as_f64() >= Some(1.0), "{report}");
        assert!(rows.is_sorted_by_key(|row| row["cycles"].as_u64()));
    }
    let wrong = cyclonest("bench spatial --arch pair.ron --shape K8");
    assert!(stderr(&wrong).contains("is no bound"), "{}", stderr(&wrong));
}
