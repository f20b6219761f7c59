//! What can be wrong with data and with writing a figure.

use std::path::PathBuf;

/// Why there is no figure.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// No row that could be drawn.
    #[error("no rows: {0}")]
    Empty(String),
    /// A value that the figure cannot show, with the row that holds it.
    #[error("{row}: {message}")]
    Value {
        /// The row, as the user would recognise it.
        row: String,
        /// What was found and what was expected.
        message: String,
    },
    /// More than the figure can show legibly.
    #[error("{found} {what} are more than the {most} that fit; {hint}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many can be drawn.
        most: usize,
        /// What to do instead.
        hint: &'static str,
    },
    /// The figure's size makes no sense.
    #[error("{0}")]
    Size(String),
    /// The drawing or conversion failed.
    #[error("drawing failed: {0}")]
    Drawing(String),
    /// A file cannot be written.
    #[error("{path}: cannot be written: {message}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        message: String,
    },
}

impl PlotError {
    pub(crate) fn value(row: impl Into<String>, message: impl Into<String>) -> Self {
        PlotError::Value {
            row: row.into(),
            message: message.into(),
        }
    }
}
