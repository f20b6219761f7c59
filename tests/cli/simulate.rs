//! `simulate`: what it prints is consistent in itself, and the same for any number of threads.

use std::collections::BTreeSet;

use cyclonest_arch::Accelerator;
use cyclonest_workloads::Tensor;
use serde_json::Value;

use super::{cyclonest, inputs, stderr, stdout};

/// Runs `simulate` and returns what it printed.
fn simulated(arguments: &str, code: i32) -> String {
    let output = cyclonest(&format!("simulate {arguments}"));
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    stdout(&output)
}

fn json(arguments: &str) -> Value {
    serde_json::from_str(&simulated(&format!("--format json {arguments}"), 0)).expect("JSON")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no list {key}"))
}

fn integer(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no integer"))
}

fn sum(object: &Value) -> u64 {
    object.as_object().expect("an object").values().map(integer).sum()
}

fn pair() -> Accelerator {
    let text = std::fs::read_to_string(inputs().join("pair.ron")).expect("readable");
    Accelerator::from_ron(&text).expect("valid")
}

#[test]
fn the_result_has_the_same_bytes_for_any_number_of_threads() {
    for case in [
        "--arch pair.ron --network tiny.ron",
        "--arch small3 --network alexnet --channels-divide 16 --check-values --seed 3",
    ] {
        for format in ["human", "json", "csv"] {
            let run = |threads: u32| simulated(&format!("{case} --format {format} --threads {threads}"), 0);
            let one = run(1);
            assert!(!one.is_empty());
            assert_eq!(one, run(2), "{case} {format}");
            assert_eq!(one, run(4), "{case} {format}");
        }
    }
}

#[test]
fn busy_and_stalled_cycles_of_all_pes_are_pes_times_cycles() {
    for case in [
        "--arch pair.ron --network tiny.ron",
        "--arch simba --network alexnet --channels-divide 16",
    ] {
        let result = json(case);
        for layer in list(&result, "layers") {
            let accounted = integer(&layer["busy_cycles"]) + sum(&layer["stall_cycles"]);
            assert_eq!(
                accounted,
                integer(&result["pes"]) * integer(&layer["cycles"]),
                "{}",
                layer["name"]
            );
        }
    }
}

#[test]
fn energy_follows_from_the_printed_counts() {
    let simba = cyclonest_arch::bundled::load("simba").expect("bundled");
    for (case, arch) in [
        ("--arch pair.ron --network tiny.ron", pair()),
        ("--arch simba --network alexnet --channels-divide 16", simba),
    ] {
        let result = json(case);
        for layer in list(&result, "layers") {
            let mut energy = integer(&layer["macs"]) as f64 * arch.compute.energy_per_mac;
            for (level, printed) in arch.levels.iter().zip(list(layer, "levels")) {
                for tensor in Tensor::ALL {
                    let counts = &printed["tensors"][tensor.to_string()];
                    let count = |key: &str| integer(&counts[key]) as f64;
                    if let Some(bank) = level.banks.iter().find(|bank| bank.holds.contains(tensor)) {
                        energy += (count("reads") + count("drains")) * bank.energy.read;
                        energy += (count("fills") + count("updates")) * bank.energy.write;
                    } else {
                        assert_eq!(sum(counts), 0, "{} does not hold {tensor}", level.name);
                    }
                    if let Some(network) = &level.below {
                        let hops = integer(&printed["network"][tensor.to_string()]["bit_hops"]);
                        energy += hops as f64 * network.energy_per_bit_hop;
                    }
                }
            }
            let printed = layer["energy_pj"].as_f64().expect("a number");
            assert!(energy > 0.0);
            assert!(
                (energy - printed).abs() <= 1e-9 * energy,
                "{}: {energy} {printed}",
                layer["name"]
            );
        }
    }
}

#[test]
fn totals_and_utilization_follow_from_the_printed_layers() {
    let result = json("--arch pair.ron --network tiny.ron");
    let weighted = |value: &dyn Fn(&Value) -> u64| -> u64 {
        list(&result, "layers")
            .iter()
            .map(|layer| integer(&layer["count"]) * value(layer))
            .sum()
    };
    let totals = &result["totals"];
    assert_eq!(integer(&totals["layers"]), 4);
    assert_eq!(integer(&totals["distinct_layers"]), 3);
    for key in ["macs", "cycles", "busy_cycles"] {
        assert_eq!(integer(&totals[key]), weighted(&|layer| integer(&layer[key])), "{key}");
    }
    assert_eq!(
        sum(&totals["stall_cycles"]),
        weighted(&|layer| sum(&layer["stall_cycles"]))
    );
    for (position, level) in list(totals, "levels").iter().enumerate() {
        for tensor in ["Weights", "Inputs", "Outputs"] {
            for count in ["reads", "fills", "updates", "drains", "read_modify_writes"] {
                let of = |level: &Value| integer(&level["tensors"][tensor][count]);
                assert_eq!(of(level), weighted(&|layer| of(&layer["levels"][position])));
            }
        }
    }
    let lanes = integer(&result["lanes"]) as f64;
    for entry in list(&result, "layers").iter().chain([totals]) {
        let expected = integer(&entry["macs"]) as f64 / (lanes * integer(&entry["cycles"]) as f64);
        assert_eq!(entry["utilization"].as_f64(), Some(expected));
    }
}

#[test]
fn checked_values_equal_the_direct_convolution() {
    let result = json("--arch pair.ron --network tiny.ron --check-values --seed 7");
    assert_eq!(list(&result, "layers").len(), 3);
    for layer in list(&result, "layers") {
        assert_eq!(layer["values"], "equal", "{}", layer["name"]);
    }
}

#[test]
fn a_layer_that_cannot_be_mapped_is_reported_and_the_others_run() {
    let arguments = "--format json --arch small_home.ron --network tiny.ron";
    let result: Value = serde_json::from_str(&simulated(arguments, 1)).expect("JSON");
    let names = |key: &str| -> Vec<&str> { list(&result, key).iter().filter_map(|l| l["name"].as_str()).collect() };
    assert_eq!(names("layers"), ["conv1", "conv2"]);
    assert_eq!(names("failed"), ["fc"]);
    insta::assert_snapshot!(list(&result, "failed")[0]["error"].as_str().expect("text"));
    assert!(simulated("--arch small_home.ron --network tiny.ron", 1).contains("failed: fc"));
}

#[test]
fn a_layer_is_selected_by_any_of_its_names() {
    let result = json("--arch pair.ron --network tiny.ron --layer conv3");
    assert_eq!(list(&result, "layers").len(), 1);
    assert_eq!(list(&result, "layers")[0]["name"], "conv2");
    assert_eq!(
        list(&result, "layers")[0]["names"],
        serde_json::json!(["conv2", "conv3"])
    );
}

#[test]
fn a_mapping_from_a_file_is_the_one_that_is_simulated() {
    let result = json("--arch pair.ron --network tiny.ron --layer conv1 --mapping conv1.ron");
    let layer = &list(&result, "layers")[0];
    assert_eq!(layer["mapped_by"], "file");
    assert_eq!(layer["mapping"]["levels"][0]["temporal"], serde_json::json!([["P", 6]]));
    assert_eq!(
        layer["mapping"]["levels"][0]["spatial"],
        serde_json::json!([["K", 2, "X"]])
    );
    // Six steps of six input rows less the padding, one pass for both PEs; weights for each PE alone.
    let network = &layer["levels"][0]["network"];
    let degrees = |tensor: &str| -> Vec<&String> {
        network[tensor]["words_by_multicast"]
            .as_object()
            .expect("an object")
            .keys()
            .collect()
    };
    assert_eq!(degrees("Inputs"), ["2"]);
    assert_eq!(degrees("Weights"), ["1"]);
}

#[test]
fn layers_without_a_mapping_in_the_file_are_mapped_by_the_named_scheduler() {
    let result = json("--arch pair.ron --network tiny.ron --mapping conv1.ron --scheduler greedy");
    let by: Vec<&str> = list(&result, "layers")
        .iter()
        .filter_map(|l| l["mapped_by"].as_str())
        .collect();
    assert_eq!(by, ["file", "greedy", "greedy"]);
}

#[test]
fn saved_mappings_give_the_same_result_when_they_are_read_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("mappings.ron");
    let arguments = "--arch simba --network alexnet --channels-divide 16";
    let scheduled = json(&format!("{arguments} --save-mappings {}", file.display()));
    let read = json(&format!("{arguments} --mapping {}", file.display()));
    assert_eq!(scheduled["totals"], read["totals"]);
    assert_eq!(list(&read, "layers")[0]["mapped_by"], "file");
}

#[test]
fn a_file_gets_the_bytes_of_standard_output() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let target = folder.path().join("result.csv");
    std::fs::write(&target, "an older result").expect("writable");
    let arguments = "--arch pair.ron --network tiny.ron --format csv";
    let printed = simulated(&format!("{arguments} -o {}", target.display()), 0);
    assert_eq!(printed, "");
    assert_eq!(
        std::fs::read_to_string(&target).expect("readable"),
        simulated(arguments, 0)
    );
    assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 1);
}

#[test]
fn csv_has_one_row_per_distinct_layer() {
    let text = simulated("--arch pair.ron --network tiny.ron --format csv", 0);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let layer = reader
        .headers()
        .expect("a header")
        .iter()
        .position(|c| c == "layer")
        .expect("a column layer");
    let names: Vec<String> = reader
        .records()
        .map(|row| row.expect("a full row")[layer].to_string())
        .collect();
    assert_eq!(names, ["conv1", "conv2", "fc"]);
}

#[test]
fn every_field_is_documented() {
    let document = include_str!("../../docs/output.md");
    let mut fields = BTreeSet::new();
    collect_fields(&json("--arch pair.ron --network tiny.ron"), &mut fields);
    // Names of levels, tensors, dimensions, degrees and reasons are keys too.
    let given = ["Weights", "Inputs", "Outputs", "DRAM", "PE"];
    for field in fields {
        let is_name = field
            .chars()
            .next()
            .is_none_or(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
        let is_reason = field.contains('@') || field.contains(' ');
        if !is_name && !is_reason && !given.contains(&field.as_str()) {
            assert!(
                document.contains(&format!("`{field}`")),
                "docs/output.md does not explain `{field}`"
            );
        }
    }
}

fn collect_fields(value: &Value, fields: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| {
            fields.insert(key.clone());
            // Occupancies are keyed by the names of ports and channels.
            if key != "occupancy_cycles" {
                collect_fields(value, fields);
            }
        }),
        Value::Array(items) => items.iter().for_each(|item| collect_fields(item, fields)),
        _ => {}
    }
}
