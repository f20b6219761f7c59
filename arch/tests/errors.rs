//! What a user reads when a machine or a mapping is broken: exact texts, with line, column and the source line.

use cyclonest_arch::{Accelerator, Mapping, bundled, render};
use cyclonest_workloads::{DimMap, Problem};

/// `small3` with the first occurrence of `from` replaced, and what reading it says.
fn machine(from: &str, to: &str) -> String {
    let text = bundled::text("small3").unwrap();
    assert!(text.contains(from), "{from}");
    let text = text.replacen(from, to, 1);
    let faults = Accelerator::from_ron(&text).expect_err("a broken machine must not be read");
    render("machine.ron", &text, &faults)
}

macro_rules! broken_machines {
    ($($name:ident: $from:expr => $to:expr),* $(,)?) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(machine($from, $to));
        })*
    };
}

broken_machines! {
    syntax_error: "clock: MHz(100)," => "clock: MHz(100",
    unclosed_string: "name: \"GB\"," => "name: \"GB,",
    truncated_file: "event_level: \"PE\"," => "/* the rest is lost",
    unknown_field: "latency: 10," => "latancy: 10,",
    unknown_tensor: "holds: [Weights, Inputs, Outputs]" => "holds: [Weights, Input, Outputs]",
    unknown_unit: "size: KiB(16)" => "size: KB(16)",
    unknown_port_kind: "ports: Shared(" => "ports: Sharde(",
    missing_field: "clock: MHz(100)," => "",
    field_given_twice: "latency: 10," => "latency: 10, latency: 11,",
    wrong_type: "latency: 10," => "latency: \"ten\",",
    negative_latency: "latency: 10," => "latency: -10,",
    latency_over_64_bits: "latency: 10," => "latency: 18446744073709551616,",
    fractional_latency: "latency: 10," => "latency: 1.5,",
    zero_latency: "latency: 10," => "latency: 0,",
    zero_width: "read: Bytes(4)" => "read: Bytes(0)",
    zero_mesh: "mesh: (2, 2)" => "mesh: (2, 0)",
    zero_slots: "slots: { Weights: 2, Inputs: 2, Outputs: 2 }" => "slots: { Weights: 0, Inputs: 2, Outputs: 2 }",
    zero_capacity: "size: KiB(16)" => "size: KiB(0)",
    capacity_overflows_in_bits: "size: KiB(16)" => "size: MiB(18446744073709551615)",
    instances_overflow: "mesh: (2, 2)" => "mesh: (18446744073709551615, 3)",
    duplicate_level: "name: \"GB\"" => "name: \"DRAM\"",
    unknown_event_level: "event_level: \"PE\"" => "event_level: \"PEs\"",
    outermost_without_outputs: "holds: [Weights, Inputs, Outputs]" => "holds: [Weights, Inputs]",
    tensor_held_twice: "holds: [Inputs],\n          size: Bytes(512)" => "holds: [Inputs, Weights],\n          size: Bytes(512)",
    unknown_top_level_field: "event_level" => "event_levle",
    negative_energy: "energy: (read: 6.0, write: 6.0)" => "energy: (read: 6.0, write: -6.0)",
    partial_narrower_than_final: "partial: 24" => "partial: 4",
    words_missing: "Inputs: (bits: 8), " => "",
    channel_missing: "down: OneForAll(width: Bytes(4), latency: 1)" => "down: PerTensor({ Weights: (width: Bytes(4)), Outputs: (width: Bytes(4), latency: 0) })",
    ports_missing: "ports: ReadWrite(read: Bytes(4), write: Bytes(4))" => "ports: PerTensor({ Weights: (read: Words(1), write: Words(1)), Inputs: (read: Words(1), write: Words(1)) })",
    slots_for_a_tensor_not_held: "slots: { Weights: 2 }" => "slots: { Inputs: 2 }",
    source_of_nothing: "\"DRAM.energy\"" => "\"DRAM.enargy\"",
    not_a_number: "energy_per_mac: 1.0" => "energy_per_mac: NaN",
}

#[test]
fn every_violation_is_reported_at_once() {
    let text = bundled::text("small3")
        .unwrap()
        .replace("latency: 2,", "latency: 0,")
        .replace("mesh: (2, 2)", "mesh: (0, 2)")
        .replace("interval: 1", "interval: 0")
        .replace("MHz(100)", "MHz(-1)");
    let faults = Accelerator::from_ron(&text).unwrap_err();
    insta::assert_snapshot!(render("machine.ron", &text, &faults));
}

#[test]
fn no_level() {
    let text = r#"Accelerator(
  name: "empty", clock: MHz(1),
  words: { Weights: (bits: 8), Inputs: (bits: 8), Outputs: (bits: 8) },
  levels: [],
  compute: Compute(),
)"#;
    insta::assert_snapshot!(render("machine.ron", text, &Accelerator::from_ron(text).unwrap_err()));
}

#[test]
fn networks_belong_between_levels() {
    let text = bundled::text("small3").unwrap();
    let (start, end) = (
        text.find("      below: Network(").unwrap(),
        text.find("    Level(\n      name: \"GB\"").unwrap(),
    );
    let (network, rest) = (&text[start..end - "    ),\n".len()], &text[end..]);
    let inner = rest.rfind("    ),\n  ],\n  event_level").unwrap();
    let moved = format!(
        "{}    ),\n{}{network}{}",
        &text[..start],
        &rest[..inner],
        &rest[inner..]
    );
    insta::assert_snapshot!(render(
        "machine.ron",
        &moved,
        &Accelerator::from_ron(&moved).unwrap_err()
    ));
}

const MAPPING: &str = r#"Mapping(
  bounds: { K: 8, C: 16, P: 12, Q: 10, R: 3, S: 3 },
  levels: [
    (level: "DRAM", temporal: [(K, 2), (P, 3)], keeps: [Weights, Inputs, Outputs]),
    (level: "GB", temporal: [(P, 2), (C, 4)], spatial: [(K, 2, X), (P, 2, Y)], keeps: [Weights, Inputs, Outputs]),
    (level: "PE", temporal: [(K, 2), (Q, 10), (C, 4), (R, 3), (S, 3)], keeps: [Weights, Inputs, Outputs]),
  ],
)
"#;

fn problem() -> Problem {
    Problem::new(DimMap([1, 1, 8, 16, 12, 10, 3, 3]))
}

#[test]
fn the_sound_mapping_is_sound() {
    let mapping = Mapping::from_ron(MAPPING).unwrap();
    assert_eq!(mapping.check(&problem(), &bundled::load("small3").unwrap()), []);
}

/// `MAPPING` with replacements, and what reading or checking it on `arch` says.
fn mapping_on(arch: &str, replacements: &[(&str, &str)]) -> String {
    let mut text = MAPPING.to_string();
    for (from, to) in replacements {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let faults = match Mapping::from_ron(&text) {
        Err(faults) => faults,
        Ok(mapping) => Mapping::diagnose(&text, &mapping.check(&problem(), &bundled::load(arch).unwrap())),
    };
    assert!(!faults.is_empty(), "a broken mapping must not pass");
    render("mapping.ron", &text, &faults)
}

macro_rules! broken_mappings {
    ($($name:ident: $($from:expr => $to:expr),+;)*) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(mapping_on("small3", &[$(($from, $to)),+]));
        })*
    };
}

broken_mappings! {
    mapping_with_an_unknown_dimension: "(Q, 10)" => "(W, 10)";
    mapping_with_an_unknown_axis: "(K, 2, X)" => "(K, 2, Z)";
    mapping_with_a_zero_bound: "K: 8" => "K: 0";
    mapping_for_another_layer: "K: 8" => "K: 16";
    mapping_short_of_the_bound: "(P, 3)" => "(P, 2)";
    mapping_with_a_zero_trip: "(C, 4), (R, 3)" => "(C, 0), (R, 3)";
    mapping_that_overflows: "(K, 2), (P, 3)" => "(K, 18446744073709551615), (P, 3)";
    mapping_wider_than_the_mesh: "(K, 2, X)" => "(K, 4, X)";
    mapping_over_capacity: "(P, 2), (C, 4)" => "(C, 4)", "(Q, 10), (C, 4)" => "(P, 2), (Q, 10), (C, 16)";
    mapping_that_bypasses_its_home: "keeps: [Weights, Inputs, Outputs]" => "keeps: [Weights, Inputs]";
    mapping_that_revisits_outputs:
        "temporal: [(K, 2), (Q, 10), (C, 4), (R, 3), (S, 3)], keeps: [Weights, Inputs, Outputs]" =>
        "temporal: [(K, 2), (C, 4), (Q, 10), (R, 3), (S, 3)], keeps: [Weights, Inputs]";
    mapping_with_three_faults: "(K, 2, X)" => "(K, 4, X)", "(P, 3)" => "(P, 2)", "Q: 10" => "Q: 11";
    mapping_without_a_level: "    (level: \"DRAM\", temporal: [(K, 2), (P, 3)], keeps: [Weights, Inputs, Outputs]),\n" => "";
    mapping_with_a_renamed_level: "level: \"GB\"" => "level: \"GLB\"";
}

#[test]
fn mapping_for_another_machine() {
    insta::assert_snapshot!(mapping_on("simba", &[]));
}

#[test]
fn mapping_that_keeps_what_the_level_does_not_hold() {
    let eyeriss_like = MAPPING
        .replace("\"GB\"", "\"CBUF\"")
        .replace("\"PE\"", "\"Cell\"")
        .replace("  ],\n)", "    (level: \"Mul\", keeps: [Weights]),\n  ],\n)");
    let mapping = Mapping::from_ron(&eyeriss_like).unwrap();
    let violations = mapping.check(&problem(), &bundled::load("nvdla_like").unwrap());
    insta::assert_snapshot!(render(
        "mapping.ron",
        &eyeriss_like,
        &Mapping::diagnose(&eyeriss_like, &violations)
    ));
}

#[test]
fn the_nest_prints_levels_loops_and_tiles() {
    let mapping = Mapping::from_ron(MAPPING).unwrap();
    insta::assert_snapshot!(mapping.nest(Some(&problem())));
}
