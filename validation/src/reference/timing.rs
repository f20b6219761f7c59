//! Records of a plain simulator of the timing contract: random (machine, problem, mapping) triples with cycles,
//! counts and stalls.
//!
//! One JSON object per line:
//!
//! - `problem`: `bounds`, `stride`, `dilation`, and `padding` (rows above and below, columns left and right);
//! - `machine`: `levels` outermost first with `read_bits`, `write_bits`, `latency`, `slots` (of every tensor),
//!   `bank` (`shared`, or `per_tensor`: ports of its own for each tensor), `port` (`read_write`, or `shared`: one
//!   port for both) and `halo`; `networks` with `width_bits`, `latency`, `multicast` (of every operand),
//!   `reduction`, `channel`, `kind` and `t_add` (cycles per adder stage of a tree, per hop of a chain); `bits` per
//!   element of W, I and O; `pipeline_depth`;
//! - `mapping`: one entry per level with `temporal`, `spatial` and `keeps`;
//! - `result`: `cycles`, `counts` (`reads L T` and so on; what is 0 is absent), `stall_by_reason` and
//!   `stall_by_operand`, both summed over PEs.
//!
//! The innermost level is the PE level; the machine has exactly the instances that the mapping's spatial loops
//! span, and unbounded capacity.

mod format;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use cyclonest_arch::{Accelerator, Counts, Mapping};
use cyclonest_sim::{Outcome, StallReason};
use cyclonest_workloads::Problem;
use serde::Deserialize;

/// One record: what to simulate and what came out elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its name.
    pub id: String,
    /// The layer.
    pub problem: Problem,
    /// The machine.
    pub arch: Accelerator,
    /// The schedule.
    pub mapping: Mapping,
    /// The published figures.
    pub expected: Expected,
}

/// The figures of a record.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Expected {
    /// Total cycles.
    pub cycles: u64,
    /// `macs`, and `KIND LEVEL TENSOR` (`reads 0 W`) \[elements\]; zeros are absent.
    pub counts: BTreeMap<String, u64>,
    /// PE-cycles by the reason in words.
    #[serde(default)]
    pub stall_by_reason: BTreeMap<String, u64>,
    /// PE-cycles by the missing operand (`W`, `I`, `O`), or `finished` or `unused`.
    pub stall_by_operand: BTreeMap<String, u64>,
}

/// The same figures of a simulator under test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// Total cycles.
    pub cycles: u64,
    /// Every counter.
    pub counts: Counts,
    /// PE-cycles by operand, named as in [`Expected::stall_by_operand`].
    pub stall_by_operand: BTreeMap<String, u64>,
}

impl From<&Outcome> for Measured {
    fn from(outcome: &Outcome) -> Self {
        let mut stall_by_operand = BTreeMap::new();
        for (&reason, &cycles) in &outcome.stall_cycles {
            let operand = match (reason.operand(), reason) {
                (Some(tensor), _) => tensor.letter().to_string(),
                (None, StallReason::Unmapped) => "unused".into(),
                (None, _) => "finished".into(),
            };
            *stall_by_operand.entry(operand).or_default() += cycles;
        }
        Measured {
            cycles: outcome.cycles,
            counts: outcome.counts.clone(),
            stall_by_operand,
        }
    }
}

/// A line that is not a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct Malformed {
    /// The file, as it was named.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What was found and what was expected.
    pub message: String,
}

/// How many records agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Records without a difference.
    pub passed: usize,
    /// Records with a difference, without a result, or malformed.
    pub failed: usize,
    /// Of the failed ones, those that could not be read.
    pub malformed: usize,
}

/// Runs every record of every file through `simulate`, prints to `out` what differs for each record that does, and
/// ends with `N passed, N failed`.
///
/// # Errors
/// If a file cannot be read or `out` cannot be written. A malformed line is printed with its position and counted.
pub fn run(
    paths: &[PathBuf],
    simulate: &dyn Fn(&Problem, &Accelerator, &Mapping) -> Result<Measured, String>,
    out: &mut dyn Write,
) -> std::io::Result<Report> {
    let mut report = Report::default();
    for path in paths {
        for record in read(path)? {
            let record = match record {
                Ok(record) => record,
                Err(malformed) => {
                    report.failed += 1;
                    report.malformed += 1;
                    writeln!(out, "{malformed}")?;
                    continue;
                }
            };
            let differences = match simulate(&record.problem, &record.arch, &record.mapping) {
                Ok(measured) => differences(&record.expected, &measured),
                Err(message) => vec![message],
            };
            if differences.is_empty() {
                report.passed += 1;
            } else {
                report.failed += 1;
                writeln!(out, "{}:", record.id)?;
                for difference in differences {
                    writeln!(out, "  {difference}")?;
                }
            }
        }
    }
    writeln!(out, "{} passed, {} failed", report.passed, report.failed)?;
    Ok(report)
}

/// Reads the records of a file; blank lines are skipped.
///
/// # Errors
/// If the file cannot be read; its name is part of the message.
pub fn read(path: &Path) -> std::io::Result<Vec<Result<Record, Malformed>>> {
    let named = |e: std::io::Error| std::io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    let file = std::fs::File::open(path).map_err(named)?;
    let mut records = Vec::new();
    for (i, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(named)?;
        if !line.trim().is_empty() {
            records.push(format::parse(&line).map_err(|(column, message)| Malformed {
                file: path.display().to_string(),
                line: i + 1,
                column,
                message,
            }));
        }
    }
    Ok(records)
}

/// What differs between a record and a simulator's figures, one readable line each; empty if nothing does.
#[must_use]
pub fn differences(expected: &Expected, measured: &Measured) -> Vec<String> {
    let mut lines = Vec::new();
    if expected.cycles != measured.cycles {
        lines.push(format!("cycles: expected {}, got {}", expected.cycles, measured.cycles));
    }
    compare("", &expected.counts, &flatten(&measured.counts), &mut lines);
    compare(
        "stall ",
        &expected.stall_by_operand,
        &measured.stall_by_operand,
        &mut lines,
    );
    lines
}

/// The counts under the keys of the format; zeros are left out.
#[must_use]
pub fn flatten(counts: &Counts) -> BTreeMap<String, u64> {
    let mut flat = BTreeMap::from([("macs".to_owned(), counts.macs)]);
    for (level, level_counts) in counts.levels.iter().enumerate() {
        for (tensor, a) in level_counts.tensors.iter() {
            for (kind, count) in [
                ("reads", a.reads),
                ("fills", a.fills),
                ("updates", a.updates),
                ("drains", a.drains),
                ("rmw", a.read_modify_writes),
            ] {
                flat.insert(format!("{kind} {level} {}", tensor.letter()), count);
            }
        }
    }
    flat.retain(|_, &mut count| count != 0);
    flat
}

fn compare(prefix: &str, expected: &BTreeMap<String, u64>, got: &BTreeMap<String, u64>, lines: &mut Vec<String>) {
    let keys: std::collections::BTreeSet<&String> = expected.keys().chain(got.keys()).collect();
    for key in keys {
        let (e, g) = (
            expected.get(key).copied().unwrap_or(0),
            got.get(key).copied().unwrap_or(0),
        );
        if e != g {
            lines.push(format!("{prefix}{key}: expected {e}, got {g}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use cyclonest_arch::{Axis, Channels, NetworkKind, Ports, Reduction, SpatialLoop};
    use cyclonest_workloads::{Dim, Padding, Pair, Tensor, TensorSet};

    use super::format::parse;
    use super::*;

    const LINE: &str = r#"{"id":"a","problem":{"bounds":{"N":1,"G":1,"K":2,"C":3,"P":4,"Q":1,"R":2,"S":1},"stride":[2,1],"dilation":[1,1],"padding":[1,0]},"machine":{"levels":[{"read_bits":16,"write_bits":64,"latency":2,"slots":1,"bank":"shared","port":"shared","halo":false},{"read_bits":64,"write_bits":32,"latency":1,"slots":2,"bank":"per_tensor","port":"read_write","halo":true}],"networks":[{"width_bits":8,"latency":1,"multicast":true,"reduction":"tree","channel":"per_tensor","kind":"bus","t_add":3}],"bits":{"W":16,"I":8,"O":24},"pipeline_depth":3},"mapping":[{"temporal":[["C",3]],"spatial":[["K",2]],"keeps":["I","O","W"]},{"temporal":[["P",4],["R",2]],"spatial":[],"keeps":["W"]}],"result":{"cycles":7,"counts":{"reads 0 I":5,"macs":48},"stall_by_reason":{},"stall_by_operand":{"W":3}}}"#;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn a_record_becomes_problem_machine_and_mapping() {
        let record = parse(LINE).unwrap();
        assert_eq!(
            record.problem.padding,
            Padding {
                top: 1,
                bottom: 1,
                left: 0,
                right: 0
            }
        );
        assert_eq!(record.problem.stride, Pair(2, 1));
        assert_eq!(record.arch.levels[1].mesh, (2, 1));
        assert_eq!(record.arch.compute.depth, 3);
        assert_eq!(record.arch.bits(Tensor::Inputs, true), 8);
        let [outer, pe] = &record.arch.levels[..] else {
            panic!("two levels")
        };
        assert_eq!(outer.banks.len(), 1);
        assert!(matches!(outer.banks[0].ports, Ports::Shared { .. }));
        assert_eq!(pe.banks.len(), 3);
        assert!(pe.banks.iter().all(|b| b.slots.values().eq(&[2])));
        assert!(pe.banks.iter().all(|b| b.halo == b.holds));
        let below = outer.below.as_ref().unwrap();
        assert_eq!(below.reduction, Reduction::Tree { stage: 3 });
        assert!(matches!(below.kind, NetworkKind::Bus(Channels::OneForAll(_))));
        assert_eq!(record.mapping.levels[0].spatial, [SpatialLoop(Dim::K, 2, Axis::X)]);
        assert_eq!(record.mapping.levels[1].keeps, TensorSet::from_iter([Tensor::Weights]));
    }

    #[test]
    fn every_difference_is_named() {
        let record = parse(LINE).unwrap();
        let mut counts = Counts::new(&record.arch);
        counts.macs = 48;
        counts.levels[0].tensors[Tensor::Inputs].reads = 6;
        counts.levels[1].tensors[Tensor::Outputs].read_modify_writes = 2;
        let measured = Measured {
            cycles: 8,
            counts,
            stall_by_operand: BTreeMap::from([("W".into(), 3), ("finished".into(), 1)]),
        };
        assert_eq!(
            differences(&record.expected, &measured),
            [
                "cycles: expected 7, got 8",
                "reads 0 I: expected 5, got 6",
                "rmw 1 O: expected 0, got 2",
                "stall finished: expected 0, got 1"
            ]
        );
    }

    #[test]
    fn a_record_that_agrees_passes_and_one_that_does_not_fails() {
        let file = file(&format!("{LINE}\n\n{LINE}\n"));
        let calls = std::cell::Cell::new(0);
        let simulate = |_: &Problem, arch: &Accelerator, _: &Mapping| {
            calls.set(calls.get() + 1);
            let mut counts = Counts::new(arch);
            counts.macs = 48;
            counts.levels[0].tensors[Tensor::Inputs].reads = 5;
            Ok(Measured {
                cycles: 6 + calls.get(),
                counts,
                stall_by_operand: BTreeMap::from([("W".into(), 3)]),
            })
        };
        let mut out = Vec::new();
        let report = run(&[file.path().to_owned()], &simulate, &mut out).unwrap();
        assert_eq!(
            report,
            Report {
                passed: 1,
                failed: 1,
                malformed: 0
            }
        );
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "a:\n  cycles: expected 7, got 8\n1 passed, 1 failed\n"
        );
    }

    #[test]
    fn a_malformed_record_is_named_by_line_and_column() {
        let zero = LINE.replace("\"read_bits\":16", "\"read_bits\":0");
        let unknown = LINE.replace("\"slots\":2", "\"slot\":2");
        let cut = &LINE[..100];
        let short = LINE.replace(r#",{"temporal":[["P",4],["R",2]],"spatial":[],"keeps":["W"]}"#, "");
        let file = file(&format!("{zero}\n{unknown}\n{cut}\n{short}\n"));
        let messages: Vec<String> = read(file.path())
            .unwrap()
            .into_iter()
            .map(|r| {
                let e = r.unwrap_err();
                format!("{}:{}: {}", e.line, e.column, e.message)
            })
            .collect();
        assert_eq!(
            messages,
            [
                "1:1: record a: read_bits of level 0 is 0, at least 1 is expected",
                "2:300: unknown field `slot`, expected one of `read_bits`, `write_bits`, `latency`, `slots`, `bank`, `port`, `halo`",
                "3:100: EOF while parsing a string",
                "4:1: record a: 1 levels in the mapping, 2 in the machine"
            ]
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read(Path::new("no/such.jsonl")).unwrap_err();
        assert!(error.to_string().starts_with("no/such.jsonl: "), "{error}");
    }
}
