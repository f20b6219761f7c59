//! What is wrong with the input, as the user reads it.

use std::fmt;

/// Everything that is wrong with what the user gave; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Faults(Vec<String>);

impl Faults {
    /// One fault: what was found and what was expected, without a full stop.
    pub(crate) fn one(message: impl Into<String>) -> Self {
        Faults(vec![message.into()])
    }

    /// An unknown name, with the nearest known one, or all of them where none is near.
    pub(crate) fn unknown(what: &str, found: &str, known: &[String]) -> Self {
        let known = || known.iter().map(String::as_str);
        let help = match cyclonest_arch::nearest(found, known()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("known: {}", known().collect::<Vec<_>>().join(", ")),
        };
        Faults::one(format!("unknown {what} `{found}`\n  help: {help}"))
    }

    /// Adds the faults of `other`.
    pub(crate) fn extend(&mut self, other: Faults) {
        self.0.extend(other.0);
    }

    /// The value, or its faults added to `all`: reading goes on, so that every fault is reported at once.
    pub(crate) fn collect<T>(all: &mut Option<Faults>, result: Result<T, Faults>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(faults) => {
                match all {
                    Some(all) => all.extend(faults),
                    None => *all = Some(faults),
                }
                None
            }
        }
    }
}

impl FromIterator<String> for Faults {
    fn from_iter<I: IntoIterator<Item = String>>(messages: I) -> Self {
        Faults(messages.into_iter().collect())
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for message in &self.0 {
            writeln!(f, "error: {}", message.trim_end())?;
        }
        Ok(())
    }
}
