//! Machines and mappings as RON files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::text::{Diagnostic, Locator, Part, from_ron, to_ron};
use crate::{Accelerator, Mapping, MappingViolation, Violation};

/// A file of mappings: one per layer of a network on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mappings {
    /// Version of the format: 1.
    #[serde(default = "schema")]
    pub schema: u64,
    /// Name of the machine that they were made for.
    #[serde(default)]
    pub arch: String,
    /// Name of the network.
    #[serde(default)]
    pub network: String,
    /// Name of the scheduler that made them.
    #[serde(default)]
    pub scheduler: String,
    /// Its seed.
    #[serde(default)]
    pub seed: u64,
    /// One mapping per layer name.
    pub layers: BTreeMap<String, Mapping>,
}

const fn schema() -> u64 {
    1
}

impl Accelerator {
    /// Reads a machine and checks its rules.
    ///
    /// # Errors
    /// The first syntax error, unknown name or wrong type; otherwise every broken rule, each at its value.
    pub fn from_ron(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let arch: Accelerator = from_ron(text).map_err(|fault| vec![fault])?;
        let violations = arch.check();
        if violations.is_empty() {
            return Ok(arch);
        }
        Err(placed(text, violations))
    }

    /// Writes the machine as RON.
    #[must_use]
    pub fn to_ron(&self) -> String {
        to_ron(self)
    }
}

impl Mapping {
    /// Reads one mapping; [`Mapping::check`] judges it.
    ///
    /// # Errors
    /// The first syntax error, unknown name or wrong type.
    pub fn from_ron(text: &str) -> Result<Self, Vec<Diagnostic>> {
        from_ron(text).map_err(|fault| vec![fault])
    }

    /// Writes the mapping as RON.
    #[must_use]
    pub fn to_ron(&self) -> String {
        to_ron(self)
    }

    /// Places in `text`, which this mapping was read from, of what [`Mapping::check`] found.
    #[must_use]
    pub fn diagnose(text: &str, violations: &[MappingViolation]) -> Vec<Diagnostic> {
        let locator = Locator::new(text);
        let place = |v: &MappingViolation| diagnostic(&locator, &v.path(), Part::Value, v.to_string(), None);
        in_order(violations.iter().map(place).collect())
    }
}

impl Mappings {
    /// Reads a file of mappings; [`Mapping::check`] judges each.
    ///
    /// # Errors
    /// The first syntax error, unknown name or wrong type; an unknown version of the format.
    pub fn from_ron(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let mappings: Mappings = from_ron(text).map_err(|fault| vec![fault])?;
        if mappings.schema == schema() {
            return Ok(mappings);
        }
        let message = format!("version {} of the format is unknown; 1 is expected", mappings.schema);
        let locator = Locator::new(text);
        Err(vec![diagnostic(&locator, "schema", Part::Value, message, None)])
    }

    /// Writes the mappings as RON.
    #[must_use]
    pub fn to_ron(&self) -> String {
        to_ron(self)
    }

    /// Places in `text`, which these mappings were read from, of what [`Mapping::check`] found in one layer.
    #[must_use]
    pub fn diagnose(text: &str, layer: &str, violations: &[MappingViolation]) -> Vec<Diagnostic> {
        let locator = Locator::new(text);
        let place = |v: &MappingViolation| {
            let path = format!("layers[\"{layer}\"].{}", v.path());
            diagnostic(&locator, &path, Part::Value, format!("{layer}: {v}"), None)
        };
        in_order(violations.iter().map(place).collect())
    }
}

/// Violations at their places in `text`, from which the value that breaks the rules was read.
#[must_use]
pub fn placed(text: &str, violations: Vec<Violation>) -> Vec<Diagnostic> {
    let locator = Locator::new(text);
    let placed = violations.into_iter().map(|v| {
        let part = if v.path.starts_with("sources") {
            Part::Key
        } else {
            Part::Value
        };
        diagnostic(&locator, &v.path, part, v.message, v.help)
    });
    in_order(placed.collect())
}

/// Sorted by place; the order of the checks where that is the same.
fn in_order(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.sort_by_key(|d| (d.line, d.column));
    diagnostics
}

fn diagnostic(locator: &Locator<'_>, path: &str, part: Part, message: String, help: Option<String>) -> Diagnostic {
    let (line, column) = locator.line_column(locator.find(path, part).start);
    Diagnostic {
        line,
        column,
        message,
        help,
    }
}
