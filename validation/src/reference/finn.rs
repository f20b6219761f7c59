//! Pipelines of FINN's RTL library under Verilator: the cycle of every frame's last input and last output.
//!
//! One JSON object per line: `stages` in order, each with `t`:
//!
//! - `mvu`: `MW`, `MH`, `PE`, `SIMD`;
//! - `swg`: `H`, `W`, `C`, `k` (or `kh`, `kw`), `SIMD`, `s`, optionally `d`, `par` and `dw`;
//! - `pad`: `H`, `W`, `P` (all around), `C`, `SIMD`;
//! - `dwc`: `ow` (output bits);
//! - `fifo`: `depth`;
//!
//! `in_bits` (of the first stream), `act_bits`, `acc_bits`, `frames`, `frame_elems` (elements per frame),
//! `in_rate` and `out_rate` (tokens, cycles), and the measured `frame_in_last` and `frame_out_last`.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;

use cyclonest_arch::streaming::pipeline::{Converter, MatrixVector, Padding, Pipeline, Rate, Stage, StageKind, Window};
use cyclonest_sim::streaming::{Options, PipelineOutcome, simulate};
use serde_json::Value;

/// Core stages of the matrix-vector unit's DSP pipeline.
const CORE_DEPTH: u64 = 5;

/// How many records agree.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Report {
    /// Records whose every cycle is equal.
    pub passed: usize,
    /// Records with a difference, or that could not be read.
    pub failed: usize,
    /// The same for records with a depthwise window, which are in the numbers above as well.
    pub depthwise: (usize, usize),
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
    let outcome = describe(value).and_then(|pipeline| {
        let frames = value["frames"].as_u64().ok_or("no `frames`")?;
        simulate(
            &pipeline,
            Options {
                frames,
                ..Options::default()
            },
        )
        .map_err(|e| e.to_string())
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

/// The record's pipeline.
///
/// # Errors
/// If a field is missing or a stage is unknown.
fn describe(value: &Value) -> Result<Pipeline, String> {
    let stages = value["stages"].as_array().ok_or("no `stages`")?;
    let rate = |key: &str| -> Result<Rate, String> {
        let part = |i: usize| value[key][i].as_u64().filter(|&n| n > 0).ok_or(format!("no `{key}`"));
        Ok(Rate {
            tokens: part(0)?,
            cycles: part(1)?,
        })
    };
    let bits = |key: &str| value[key].as_u64().ok_or(format!("no `{key}`"));
    let act_bits = bits("act_bits")?;
    // Bits of the stream between stages, and words of it per frame.
    let mut width = bits("in_bits")?;
    let mut words = bits("frame_elems")? * act_bits / width;
    let mut list = vec![Stage {
        name: "source".to_owned(),
        kind: StageKind::Source {
            tokens: words,
            rate: rate("in_rate")?,
        },
    }];
    for (index, stage) in stages.iter().enumerate() {
        let kind = stage["t"].as_str().unwrap_or_default();
        let field = |key: &str| {
            stage[key]
                .as_u64()
                .ok_or_else(|| format!("stage {index} (`{kind}`) has no `{key}`"))
        };
        let or = |key: &str, default: u64| stage[key].as_u64().unwrap_or(default);
        let unit = match kind {
            "fifo" => StageKind::Fifo { depth: field("depth")? },
            "pad" => {
                let (rows, columns, pad) = (field("H")?, field("W")?, field("P")?);
                let turns = field("C")? / field("SIMD")?;
                words = (rows + 2 * pad) * (columns + 2 * pad) * turns;
                StageKind::Padding(Padding {
                    rows,
                    columns,
                    pads: [pad; 4],
                    turns,
                })
            }
            "swg" => {
                let square = or("k", 0);
                let kernel = (or("kh", square), or("kw", square));
                if kernel.0 == 0 || kernel.1 == 0 {
                    return Err(format!("stage {index} (`swg`) has no `k`"));
                }
                let window = Window {
                    rows: field("H")?,
                    columns: field("W")?,
                    kernel,
                    stride: (or("s", 1), or("s", 1)),
                    dilation: (or("d", 1), or("d", 1)),
                    turns: field("C")? / field("SIMD")?,
                    // A window of one position needs no cyclic buffer either.
                    parallel: or("par", 0) == 1 || kernel == (1, 1),
                    depthwise: or("dw", 0) == 1,
                };
                if window.parallel {
                    width *= kernel.0 * kernel.1;
                }
                words = window.words_out();
                StageKind::Window(window)
            }
            "mvu" => {
                let (simd, pe) = (field("SIMD")?, field("PE")?);
                let unit = MatrixVector {
                    synapse_fold: field("MW")? / simd,
                    neuron_fold: field("MH")? / pe,
                    depth: CORE_DEPTH,
                };
                words = words / unit.synapse_fold * unit.neuron_fold;
                // Quantised outputs are as wide as activations, others as the accumulator.
                let element = match or("q", 0) {
                    0 => bits("acc_bits")?,
                    quantised => quantised,
                };
                width = pe * element;
                StageKind::MatrixVector(unit)
            }
            "dwc" => {
                let converter = Converter {
                    bits_in: width,
                    bits_out: field("ow")?,
                };
                words = words * width / converter.bits_out;
                width = converter.bits_out;
                StageKind::Converter(converter)
            }
            other => return Err(format!("stage {index} is of the unknown kind `{other}`")),
        };
        list.push(Stage {
            name: format!("{kind} {index}"),
            kind: unit,
        });
    }
    list.push(Stage {
        name: "sink".to_owned(),
        kind: StageKind::Sink {
            tokens: words,
            rate: rate("out_rate")?,
        },
    });
    Ok(Pipeline::chain(value["name"].as_str().unwrap_or_default(), list))
}
