//! JSON.

use super::Report;

impl Report {
    /// The report as indented JSON.
    pub(crate) fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }
}
