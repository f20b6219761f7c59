//! Whatever a file contains, reading it ends with a machine or mapping, or with faults that can be printed.

use cyclonest_arch::{Accelerator, Mapping, Mappings, bundled, render};
use cyclonest_workloads::{DimMap, Problem};
use proptest::prelude::*;

const MAPPINGS: &str = include_str!("data/simba_mapping.ron");

/// Byte ranges of the numbers in a text.
fn numbers(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    for (i, c) in text.char_indices().filter(|(_, c)| c.is_ascii_digit()) {
        match ranges.last_mut() {
            Some(last) if last.end == i => last.end += c.len_utf8(),
            _ => ranges.push(i..i + c.len_utf8()),
        }
    }
    ranges
}

fn with_a_number_replaced(text: &str, which: usize, by: &str) -> String {
    let ranges = numbers(text);
    let mut text = text.to_string();
    text.replace_range(ranges[which % ranges.len()].clone(), by);
    text
}

/// Reads and checks everything that a user may hand in; every fault must have a place in the text.
fn survives(text: &str) {
    let lines = text.lines().count().max(1);
    let placed = |faults: Vec<cyclonest_arch::Diagnostic>| {
        for fault in &faults {
            assert!((1..=lines + 1).contains(&fault.line) && fault.column >= 1, "{fault:?}");
        }
        assert!(!render("file.ron", text, &faults).is_empty());
    };
    match Accelerator::from_ron(text) {
        Ok(arch) => assert_eq!(Accelerator::from_ron(&arch.to_ron()).unwrap(), arch),
        Err(faults) => placed(faults),
    }
    match Mappings::from_ron(text) {
        Ok(mappings) => {
            let problem = Problem::new(DimMap([1, 1, 64, 64, 56, 56, 3, 3]));
            for (name, mapping) in &mappings.layers {
                for arch in ["simba", "small3"] {
                    let violations = mapping.check(&problem, &bundled::load(arch).unwrap());
                    if !violations.is_empty() {
                        placed(Mappings::diagnose(text, name, &violations));
                    }
                }
            }
        }
        Err(faults) => placed(faults),
    }
    if let Err(faults) = Mapping::from_ron(text) {
        placed(faults);
    }
}

fn texts() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        bundled::text("small3").unwrap(),
        bundled::text("eyeriss").unwrap(),
        MAPPINGS,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn extreme_numbers(text in texts(), which in 0_usize..500, by in prop::sample::select(vec![
        "0", "18446744073709551615", "18446744073709551616", "9223372036854775807", "4294967296", "-1", "1e400", "NaN",
        "0x7f", "1_000", "",
    ])) {
        survives(&with_a_number_replaced(text, which, by));
    }

    #[test]
    fn cut_and_pasted_bytes(text in texts(), at in 0.0_f64..1.0, length in 0_usize..40, paste in "[(){}\\[\\]\",:/*#r é0-9A-Z]{0,6}") {
        let start = (0..=(text.len() as f64 * at) as usize).rev().find(|&i| text.is_char_boundary(i)).unwrap();
        let end = (start + length.min(text.len() - start)..=text.len()).find(|&i| text.is_char_boundary(i)).unwrap();
        survives(&format!("{}{paste}{}", &text[..start], &text[end..]));
    }
}

#[test]
fn an_empty_file_is_a_fault() {
    survives("");
    assert_eq!(Accelerator::from_ron("").unwrap_err().len(), 1);
}
