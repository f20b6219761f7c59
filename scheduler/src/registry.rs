//! The schedulers by name.

use crate::{Greedy, Scheduler};

/// Every scheduler that needs nothing but its request, by name.
const SCHEDULERS: &[&dyn Scheduler] = &[&Greedy];

/// The scheduler called `name`, as `--scheduler` takes it.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Scheduler> {
    SCHEDULERS.iter().copied().find(|s| s.name() == name)
}

/// Names of all schedulers.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCHEDULERS.iter().map(|s| s.name())
}
