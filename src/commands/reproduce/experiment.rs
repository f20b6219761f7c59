//! What an experiment is, and what it leaves.

use cyclonest_plots::Figure;
use serde::{Deserialize, Serialize};

use super::lab::Lab;

/// A published claim, or one of ours, and how it is re-run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Experiment {
    /// As the command line takes it.
    pub(super) id: &'static str,
    /// Where the claim stands.
    pub(super) source: &'static str,
    /// What is claimed.
    pub(super) claim: &'static str,
    /// The part of the project that is exercised.
    pub(super) part: &'static str,
    /// Why our figures differ from the published ones.
    pub(super) differs: &'static str,
    /// How it is run.
    pub(super) run: Run,
}

/// How an experiment is run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Run {
    /// By this function.
    Here(fn(&Lab) -> Result<Results, String>),
    /// Not at all: what it would need.
    Needs(&'static str),
}

/// What an experiment leaves.
#[derive(Debug, Default)]
pub(super) struct Results {
    /// Figures, by what stands behind the experiment's name in the name of the file; empty for the only one.
    pub(super) figures: Vec<(&'static str, Figure)>,
    /// What was found.
    pub(super) findings: Vec<Finding>,
    /// What was left out and why: a part of the machine that is absent.
    pub(super) skipped: Vec<String>,
    /// What else of the machine and its state the figures depend on.
    pub(super) conditions: Vec<String>,
}

/// A figure of the paper beside ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finding {
    /// What is measured.
    pub(super) what: String,
    /// What the paper says of it.
    pub(super) paper: String,
    /// What we get.
    pub(super) ours: String,
}

impl Results {
    /// Adds a finding.
    pub(super) fn found(&mut self, what: impl Into<String>, paper: impl Into<String>, ours: impl Into<String>) {
        self.findings.push(Finding {
            what: what.into(),
            paper: paper.into(),
            ours: ours.into(),
        });
    }

    /// Adds a figure.
    pub(super) fn figure(
        &mut self,
        name: &'static str,
        figure: Result<Figure, cyclonest_plots::PlotError>,
    ) -> Result<(), String> {
        self.figures.push((name, figure.map_err(|error| error.to_string())?));
        Ok(())
    }
}

/// An experiment that was run, as it stands in its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The experiment.
    pub(super) id: String,
    /// The command that ran it.
    pub(super) command: String,
    /// A subset of the layers only.
    pub(super) quick: bool,
    /// The version that ran it.
    pub(super) version: String,
    /// Day on which it ran (UTC).
    #[serde(default)]
    pub(super) date: String,
    /// What it ran on.
    pub(super) machine: Machine,
    /// How long it took \[s\].
    pub(super) seconds: f64,
    /// Files of its figures, beside the record; each has a CSV of the same name.
    pub(super) figures: Vec<String>,
    /// What was found.
    pub(super) findings: Vec<Finding>,
    /// What was left out and why.
    pub(super) skipped: Vec<String>,
    /// What else of the machine and its state the figures depend on.
    #[serde(default)]
    pub(super) conditions: Vec<String>,
}

/// The computer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Machine {
    /// Name of the processor, with family and model.
    pub(super) processor: String,
    /// Widest vector instructions.
    #[serde(default)]
    pub(super) vectors: String,
    /// Hardware threads that may be used.
    pub(super) threads: usize,
    /// Memory \[GiB\].
    pub(super) memory_gib: Option<u64>,
    /// Operating system.
    pub(super) system: String,
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.processor)?;
        if !self.vectors.is_empty() {
            write!(f, ", {}", self.vectors)?;
        }
        if let Some(gib) = self.memory_gib {
            write!(f, ", {gib} GiB of memory")?;
        }
        write!(f, ", {}", self.system)
    }
}

impl Machine {
    /// This one, as far as the system tells.
    pub(super) fn this() -> Self {
        let field = |file: &str, key: &str| -> Option<String> {
            let text = std::fs::read_to_string(file).ok()?;
            let line = text.lines().find(|line| line.starts_with(key))?;
            Some(line.split_once(':')?.1.trim().to_string())
        };
        let memory = field("/proc/meminfo", "MemTotal").and_then(|text| text.split_whitespace().next()?.parse().ok());
        let cpu = |key: &str| field("/proc/cpuinfo", key);
        let processor = match (cpu("model name"), cpu("cpu family"), cpu("model\t")) {
            (Some(name), Some(family), Some(model)) => format!("{name}, family {family}, model {model}"),
            (Some(name), ..) => name,
            (None, ..) => std::env::consts::ARCH.to_string(),
        };
        Machine {
            processor,
            vectors: vectors().to_string(),
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
            memory_gib: memory.map(|kib: u64| kib.div_ceil(1024 * 1024)),
            system: std::env::consts::OS.to_string(),
        }
    }
}

/// The widest vector instructions that the processor and the system offer.
#[cfg(target_arch = "x86_64")]
fn vectors() -> &'static str {
    match (is_x86_feature_detected!("avx512f"), is_x86_feature_detected!("avx2")) {
        (true, _) => "AVX-512",
        (false, true) => "AVX2",
        (false, false) => "SSE",
    }
}

/// The widest vector instructions, which are looked for on x86 only.
#[cfg(not(target_arch = "x86_64"))]
fn vectors() -> &'static str {
    "not known"
}

/// Today, in UTC: `2026-03-01`.
pub(super) fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    day(since.map_or(0, |time| time.as_secs() / 86_400))
}

/// The day so many days after the first of January 1970, in the Gregorian calendar.
fn day(mut days: u64) -> String {
    let leap = |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}", month + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn days_are_counted_in_the_gregorian_calendar() {
        // By `date -u -d @$((N * 86400))`.
        for (days, text) in [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_453, "2025-12-31"),
            (20_787, "2026-11-30"),
        ] {
            assert_eq!(day(days), text);
        }
    }
}
