//! Records of what other tools say, and our compatible models run on them.
//!
//! A file has one JSON record per line. Every field that a runner judges is compared; what differs is printed as
//! `expected` and `got`; the last line of a report is `N passed, N failed`.

pub mod finn;
pub mod maestro;
pub mod samo;
pub mod timeloop;
pub mod timing;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A field of a record on which the tool and our model disagree.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Which field: `RF.Weights.reads`.
    pub field: String,
    /// What the record says.
    pub expected: String,
    /// What our model says.
    pub got: String,
    /// False if it is shown for comparison only.
    pub judged: bool,
}

/// The verdict on one record.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Name of the record.
    pub id: String,
    /// Every field that differs.
    pub differences: Vec<Difference>,
}

impl Verdict {
    /// True if no judged field differs.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.differences.iter().all(|d| !d.judged)
    }
}

/// Verdicts on the records of some files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// One per record, in the order of the files.
    pub verdicts: Vec<Verdict>,
}

/// Why a file of records cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The file cannot be read.
    #[error("{file}: {reason}")]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A line is not a record of the format.
    #[error("{file}:{line}: {reason}")]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What was expected.
        reason: String,
    },
}

impl Report {
    /// Records on which no judged field differs.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.verdicts.iter().filter(|v| v.passed()).count()
    }

    /// The others.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.verdicts.len() - self.passed()
    }

    /// Every field that differs, a line each, and the line `N passed, N failed` at the end.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        for verdict in &self.verdicts {
            for d in &verdict.differences {
                let note = if d.judged { "" } else { " (not judged)" };
                let _ = writeln!(
                    out,
                    "{}: {}: expected {}, got {}{note}",
                    verdict.id, d.field, d.expected, d.got
                );
            }
        }
        let _ = writeln!(out, "{} passed, {} failed", self.passed(), self.failed());
        out
    }
}

/// Judges every line of `files`.
fn run<T: serde::de::DeserializeOwned>(
    files: &[impl AsRef<Path>],
    judge: impl Fn(T) -> Result<Verdict, String>,
) -> Result<Report, ReferenceError> {
    Ok(Report {
        verdicts: each(files, judge)?,
    })
}

/// Calls `f` with the record on every line of `files`.
fn each<T: serde::de::DeserializeOwned, R>(
    files: &[impl AsRef<Path>],
    f: impl Fn(T) -> Result<R, String>,
) -> Result<Vec<R>, ReferenceError> {
    let mut results = Vec::new();
    for file in files {
        let file = file.as_ref();
        let text = std::fs::read_to_string(file).map_err(|e| ReferenceError::Unreadable {
            file: file.to_owned(),
            reason: e.to_string(),
        })?;
        for (n, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            let malformed = |reason: String| ReferenceError::Malformed {
                file: file.to_owned(),
                line: n + 1,
                reason,
            };
            let record = serde_json::from_str(line).map_err(|e| malformed(e.to_string()))?;
            results.push(f(record).map_err(malformed)?);
        }
    }
    Ok(results)
}

/// Collects differences.
#[derive(Debug, Default)]
struct Comparison {
    differences: Vec<Difference>,
}

impl Comparison {
    /// Notes `field` unless the two numbers are equal to within `tolerance`, absolute and relative.
    fn number(&mut self, field: String, expected: f64, got: f64, tolerance: f64, judged: bool) {
        self.rounded(field, expected, got, tolerance * expected.abs().max(1.0), judged);
    }

    /// Notes `field` unless the two numbers are at most `tolerance` apart.
    fn rounded(&mut self, field: String, expected: f64, got: f64, tolerance: f64, judged: bool) {
        let off = (expected - got).abs();
        if off > tolerance + f64::EPSILON * expected.abs() || off.is_nan() {
            self.differences.push(Difference {
                field,
                expected: expected.to_string(),
                got: got.to_string(),
                judged,
            });
        }
    }

    /// Notes `field` as it is.
    fn note(&mut self, field: impl Into<String>, expected: impl Into<String>, got: impl Into<String>) {
        self.differences.push(Difference {
            field: field.into(),
            expected: expected.into(),
            got: got.into(),
            judged: true,
        });
    }
}
