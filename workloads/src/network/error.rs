//! What is wrong with a network, and where.

use std::fmt;

/// One fault of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkError {
    /// Line, from 1, and column, from 1, of the text that is at fault; `None` if the network has no text.
    pub position: Option<(usize, usize)>,
    /// The node or input at fault, if it is one.
    pub node: Option<String>,
    /// What was found and what was expected.
    pub message: String,
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.position {
            write!(f, "{line}:{column}: ")?;
        }
        if let Some(node) = &self.node {
            write!(f, "{node:?}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// Every fault of a network, in the order of the text; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkErrors(Vec<NetworkError>);

impl NetworkErrors {
    /// Wraps a list of faults.
    pub(crate) fn new(mut errors: Vec<NetworkError>) -> Self {
        debug_assert!(!errors.is_empty());
        errors.sort_by_key(|error| error.position);
        NetworkErrors(errors)
    }

    /// The faults.
    #[must_use]
    pub fn as_slice(&self) -> &[NetworkError] {
        &self.0
    }
}

/// One line per fault: `line:column: "node": message`. Callers that know the file put its name in front.
impl fmt::Display for NetworkErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for NetworkErrors {}

impl<'a> IntoIterator for &'a NetworkErrors {
    type Item = &'a NetworkError;
    type IntoIter = std::slice::Iter<'a, NetworkError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// The candidate nearest to `name`, if one is near enough to be a slip of the pen.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|&(distance, candidate)| distance <= candidate.chars().count().max(3) / 3 + 1)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}
