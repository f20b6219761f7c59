//! `compare`: models against the simulation.

use super::{cyclonest, stderr, stdout};

#[test]
fn compare_prints_the_same_bytes_for_any_number_of_threads() {
    for rest in ["--format json", "--mappings 20 --format csv", "--arch pair.ron,small3"] {
        let with = |threads: u32| {
            stdout(&cyclonest(&format!(
                "compare --arch pair.ron --network tiny.ron --seed 4 --threads {threads} {rest}"
            )))
        };
        let one = with(1);
        assert!(one.contains("exact") && one.contains("timeloop"), "{one}");
        assert_eq!(one, with(3));
    }
}

#[test]
fn errors_are_those_of_the_cycles_that_simulate_reports() {
    let common = "--arch pair.ron --network tiny.ron --format json";
    let simulated: serde_json::Value =
        serde_json::from_str(&stdout(&cyclonest(&format!("simulate {common}")))).expect("JSON");
    let compared: serde_json::Value =
        serde_json::from_str(&stdout(&cyclonest(&format!("compare {common}")))).expect("JSON");
    let rows = compared["layers"].as_array().expect("layers");
    assert_eq!(rows.len(), simulated["layers"].as_array().expect("layers").len());
    for (row, layer) in rows.iter().zip(simulated["layers"].as_array().expect("layers")) {
        let cycles = layer["cycles"].as_f64().expect("cycles");
        assert_eq!(row["cycles"].as_f64(), Some(cycles));
        for verdict in row["verdicts"].as_array().expect("verdicts") {
            if let Some(error) = verdict["error"].as_f64() {
                let estimate = verdict["estimate"].as_f64().expect("an estimate");
                assert!((error - (estimate - cycles) / cycles).abs() < 1e-12, "{verdict}");
            } else {
                assert!(
                    verdict["model"] == "cosa" || verdict["refused"].is_string(),
                    "{verdict}"
                );
            }
        }
    }
}

#[test]
fn an_unknown_model_and_a_mapping_for_several_machines_are_faults() {
    let output = cyclonest("compare --arch pair.ron --network tiny.ron --models exakt");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "error: unknown model `exakt`\n  help: did you mean `exact`?\n"
    );
    let output = cyclonest("compare --arch pair.ron,small3 --network tiny.ron --mapping x.ron");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("one accelerator and one network"));
}
