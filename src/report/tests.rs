//! The report of a made-up outcome: names, sums, columns.

use std::collections::BTreeMap;

use cyclonest_arch::{Accelerator, Counts, LevelMapping, Mapping, Passes};
use cyclonest_sim::{Outcome, StallReason, Values};
use cyclonest_workloads::{Dim, DimMap, DistinctLayer, Problem, Tensor, TensorSet};

use super::*;

fn machine() -> Accelerator {
    Accelerator::from_ron(include_str!("../../tests/inputs/pair.ron")).expect("valid")
}

fn layer(arch: &Accelerator, name: &str, count: u64, values: Values) -> LayerReport {
    let mut bounds = DimMap::ones();
    bounds[Dim::K] = 6;
    let mut counts = Counts::new(arch);
    counts.macs = 6;
    counts.levels[0].tensors[Tensor::Inputs].reads = 10;
    counts.levels[1].tensors[Tensor::Outputs].drains = 3;
    let passes = Passes { elements: 10, words: 4 };
    counts.levels[0].network[Tensor::Inputs].down.insert(2, passes);
    counts.levels[0].network[Tensor::Inputs].bit_hops = 7;
    let in_flight = StallReason::InFlight {
        tensor: Tensor::Inputs,
        level: 0,
    };
    let outcome = Outcome {
        cycles: 10,
        pes: 2,
        busy_cycles: 6,
        stall_cycles: BTreeMap::from([(in_flight, 9), (StallReason::Finished, 5)]),
        fill_stall_cycles: BTreeMap::from([(in_flight, 4)]),
        drain_cycles: 2,
        counts,
        occupancy: BTreeMap::new(),
        values,
        skipped_cycles: 0,
        skipped_events: 0,
        events: 0,
        transfers: 0,
    };
    let distinct = DistinctLayer {
        name: name.into(),
        count,
        names: vec![name.into()],
        problem: Problem::new(bounds),
    };
    let levels = ["DRAM", "PE"].map(|level| LevelMapping {
        level: level.into(),
        temporal: vec![],
        spatial: vec![],
        keeps: TensorSet::ALL,
    });
    let mapping = Mapping {
        bounds,
        levels: levels.to_vec(),
    };
    LayerReport::new(&distinct, arch, ("greedy".into(), mapping), outcome)
}

fn report(layers: impl Fn(&Accelerator) -> Vec<LayerReport>, failed: Vec<Failed>) -> Result<Report, Overflow> {
    let arch = machine();
    let subject = Subject {
        arch: &arch,
        network: "tiny".into(),
        about: String::new(),
        scheduler: "greedy".into(),
        channels_divided_by: 1,
        seed: 0,
        provenance: Provenance::of_this_run([]),
    };
    Report::new(subject, layers(&arch), failed)
}

fn two_layers(arch: &Accelerator) -> Vec<LayerReport> {
    vec![
        layer(arch, "a", 3, Values::Equal),
        layer(arch, "b", 2, Values::NotChecked),
    ]
}

#[test]
fn stall_reasons_name_their_level() {
    let layer = layer(&machine(), "a", 1, Values::NotChecked);
    let reasons: Vec<&String> = layer.stall_cycles.keys().collect();
    assert_eq!(reasons, ["finished", "in_flight:Inputs@DRAM"]);
}

#[test]
fn utilization_is_macs_over_lanes_and_cycles() {
    let layer = layer(&machine(), "a", 1, Values::NotChecked);
    assert_eq!(layer.utilization, 6.0 / (2.0 * 10.0));
}

#[test]
fn totals_weigh_every_layer_by_its_count() {
    let totals = report(two_layers, vec![]).expect("small").totals;
    assert_eq!((totals.layers, totals.distinct_layers), (5, 2));
    assert_eq!((totals.macs, totals.cycles, totals.busy_cycles), (30, 50, 30));
    assert_eq!(totals.stall_cycles["in_flight:Inputs@DRAM"], 45);
    assert_eq!(totals.levels[0].tensors[Tensor::Inputs].reads, 50);
    assert_eq!(totals.levels[1].tensors[Tensor::Outputs].drains, 15);
    let network = totals.levels[0].network.as_ref().expect("there is one");
    assert_eq!(network[Tensor::Inputs].words_by_multicast[&2], 20);
    assert_eq!(network[Tensor::Inputs].bit_hops, 35);
    // Each run: 6 MACs of 0.5 pJ, 10 reads of 200 pJ, 3 drains of 2 pJ, 7 bit hops of 0.1 pJ.
    assert!((totals.energy_pj - 5.0 * (3.0 + 2000.0 + 6.0 + 0.7)).abs() < 1e-9);
    assert_eq!(totals.milliseconds, 50.0 / 100e3);
}

#[test]
fn a_total_beyond_64_bits_is_refused() {
    let huge = |arch: &Accelerator| vec![layer(arch, "a", u64::MAX / 2, Values::Equal)];
    assert!(report(huge, vec![]).is_err());
}

#[test]
fn a_failed_layer_or_different_values_make_a_report_incomplete() {
    assert!(report(two_layers, vec![]).expect("small").is_complete());
    let failed = Failed {
        name: "c".into(),
        count: 1,
        macs: 6,
        error: "no valid mapping".into(),
    };
    assert!(!report(two_layers, vec![failed]).expect("small").is_complete());
    let different = |arch: &Accelerator| vec![layer(arch, "a", 1, Values::Different("O[0]".into()))];
    assert!(!report(different, vec![]).expect("small").is_complete());
}

#[test]
fn every_csv_row_has_every_column() {
    let failed = Failed {
        name: "c".into(),
        count: 1,
        macs: 6,
        error: "no valid mapping: \"too\", big".into(),
    };
    let text = report(two_layers, vec![failed])
        .expect("small")
        .to_csv()
        .expect("writable");
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().expect("a header").clone();
    // The reader refuses rows of another length than the header's.
    let rows: Vec<_> = reader.records().map(|row| row.expect("a full row")).collect();
    let cell = |row: usize, column: &str| {
        let position = header.iter().position(|name| name == column);
        &rows[row][position.unwrap_or_else(|| panic!("no column {column}"))]
    };
    assert_eq!(rows.len(), 3);
    assert_eq!(cell(0, "stalled_PE_cycles in_flight:Inputs@DRAM"), "9");
    assert_eq!(cell(0, "DRAM Inputs reads_elements"), "10");
    assert_eq!(cell(0, "DRAM Inputs down_words"), "4");
    assert_eq!(cell(1, "PE Outputs drains_elements"), "3");
    assert_eq!((cell(2, "layer"), cell(2, "cycles")), ("c", ""));
    assert_eq!(cell(2, "error"), "no valid mapping: \"too\", big");
}

#[test]
fn the_table_names_failures_and_assumed_constants() {
    let failed = Failed {
        name: "c".into(),
        count: 4,
        macs: 6,
        error: "no valid mapping".into(),
    };
    insta::assert_snapshot!(report(two_layers, vec![failed]).expect("small").to_human());
}
