//! The schedulers by name.

use crate::{Anneal, Greedy, Milp, Random, RandomNaive, Scheduler};

/// The scheduler called `name`, as `--scheduler` takes it.
#[must_use]
pub fn by_name(name: &str) -> Option<Box<dyn Scheduler>> {
    all().into_iter().find(|scheduler| scheduler.name() == name)
}

/// Names of all schedulers.
pub fn names() -> impl Iterator<Item = String> {
    all().into_iter().map(|scheduler| scheduler.name().to_string())
}

fn all() -> Vec<Box<dyn Scheduler>> {
    vec![
        Box::new(Greedy),
        Box::new(Milp::default()),
        Box::new(Milp::cosa()),
        Box::new(Anneal::default()),
        Box::new(Anneal::linear()),
        Box::new(Anneal::from_milp()),
        Box::new(Random),
        Box::new(RandomNaive),
    ]
}
