//! Pipelines of FINN's RTL library under Verilator: the cycle of every frame's last input and last output.
//!
//! One JSON object per line: `stages` in order, each with `t`:
//!
//! - `mvu`: `MW`, `MH`, `PE`, `SIMD`;
//! - `swg`: `H`, `W`, `C`, `k` (or `kh`, `kw`), `SIMD`, `s`, optionally `d`, `par` and `dw`;
//! - `pad`: `H`, `W`, `P` (all around, or top, left, bottom, right), `C`, `SIMD`;
//! - `dwc`: `ow` (output bits);
//! - `fifo`: `depth`;
//!
//! `k`, `s` and `d` are a number or a pair: rows, columns. What cannot be described fails with the reason. Records that
//! say of themselves that they were not run to the end (`done`, `valid_timing`) are left out and counted apart.
//!
//! `in_bits` (of the first stream), `act_bits`, `acc_bits`, `frames`, `frame_elems` (elements per frame),
//! `in_rate` and `out_rate` (tokens, cycles), and the measured `frame_in_last` and `frame_out_last`.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;

use cyclonest_sim::streaming::{Options, PipelineOutcome, simulate};
use serde_json::Value;

mod describe;

/// How many records agree.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Report {
    /// Records whose every cycle is equal.
    pub passed: usize,
    /// Records with a difference, or that could not be read.
    pub failed: usize,
    /// The same for records with a depthwise window, which are in the numbers above as well.
    pub depthwise: (usize, usize),
    /// Records left out, because the measurement itself is not valid.
    pub left_out: usize,
    /// Largest relative difference of a frame's last output.
    pub worst: f64,
}

/// Simulates every record of every file and ends with `N passed, N failed`.
///
/// # Errors
/// If a file cannot be read or `out` cannot be written.
pub fn run(paths: &[PathBuf], out: &mut dyn Write) -> std::io::Result<Report> {
    let mut report = Report::default();
    for path in paths {
        let named = |e: std::io::Error| std::io::Error::new(e.kind(), format!("{}: {e}", path.display()));
        let file = std::fs::File::open(path).map_err(named)?;
        for (index, line) in BufReader::new(file).lines().enumerate() {
            let line = line.map_err(named)?;
            if line.trim().is_empty() {
                continue;
            }
            let place = format!("{}:{}", path.display(), index + 1);
            let record: Result<Value, _> = serde_json::from_str(&line);
            let invalid = |r: &Value| r["done"] == Value::Bool(false) || r["valid_timing"] == Value::Bool(false);
            if record.as_ref().is_ok_and(invalid) {
                report.left_out += 1;
                writeln!(out, "{place}: left out, the measurement was not completed")?;
                continue;
            }
            let (differences, depthwise, worst) = match record {
                Ok(value) => compare(&value),
                Err(e) => (vec![e.to_string()], false, 0.0),
            };
            report.worst = report.worst.max(worst);
            if differences.is_empty() {
                report.passed += 1;
                report.depthwise.0 += usize::from(depthwise);
            } else {
                report.failed += 1;
                report.depthwise.1 += usize::from(depthwise);
                writeln!(out, "{place}:")?;
                for difference in differences {
                    writeln!(out, "  {difference}")?;
                }
            }
        }
    }
    writeln!(
        out,
        "largest difference of a frame's last output: {:.3} %",
        report.worst * 100.0
    )?;
    let (passed, failed) = report.depthwise;
    writeln!(out, "of them with a depthwise window: {passed} passed, {failed} failed")?;
    writeln!(out, "{} passed, {} failed", report.passed, report.failed)?;
    Ok(report)
}

/// What differs, whether the record has a depthwise window, and the largest relative difference.
fn compare(value: &Value) -> (Vec<String>, bool, f64) {
    let depthwise = value["stages"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|s| s["dw"].as_u64() == Some(1));
    let outcome = describe::pipeline(value).and_then(|(pipeline, frames)| {
        // Every frame's cycles are compared: none is skipped.
        let fast_forward = false;
        simulate(&pipeline, Options { frames, fast_forward }).map_err(|e| e.to_string())
    });
    match outcome {
        Err(message) => (vec![message], depthwise, 0.0),
        Ok(outcome) => {
            let (differences, worst) = differences(value, &outcome);
            (differences, depthwise, worst)
        }
    }
}

fn differences(value: &Value, outcome: &PipelineOutcome) -> (Vec<String>, f64) {
    #![allow(clippy::cast_precision_loss)]
    let cycles = |key: &str| -> Vec<u64> {
        value[key]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_u64)
            .collect()
    };
    let name = value["name"].as_str().unwrap_or("?");
    let rates = format!("in {} out {}", value["in_rate"], value["out_rate"]);
    let mut list = Vec::new();
    let mut worst: f64 = 0.0;
    for (key, got) in [
        ("frame_in_last", &outcome.input.ends),
        ("frame_out_last", &outcome.out.ends),
    ] {
        let expected = cycles(key);
        if expected != *got {
            list.push(format!("{name} {rates}: {key} expected {expected:?}, got {got:?}"));
        }
        if key == "frame_out_last" {
            for (e, g) in expected.iter().zip(got) {
                worst = worst.max((*g as f64 - *e as f64).abs() / (*e as f64).max(1.0));
            }
        }
    }
    (list, worst)
}
