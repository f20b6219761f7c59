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
}

/// The computer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Machine {
    /// Name of the processor.
    pub(super) processor: String,
    /// Hardware threads that may be used.
    pub(super) threads: usize,
    /// Memory \[GiB\].
    pub(super) memory_gib: Option<u64>,
    /// Operating system.
    pub(super) system: String,
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
        Machine {
            processor: field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_string()),
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
            memory_gib: memory.map(|kib: u64| kib.div_ceil(1024 * 1024)),
            system: std::env::consts::OS.to_string(),
        }
    }
}
