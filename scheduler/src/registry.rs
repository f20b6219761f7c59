//! The schedulers by name.

use cyclonest_arch::directives::Style;

use crate::{Anneal, Dataflow, Exhaustive, External, Greedy, Hybrid, Milp, Random, RandomNaive, Scheduler, Weights};

/// The scheduler called `name`, as `--scheduler` takes it: one of [`names`], `hybrid:N` or `external:CMD`.
#[must_use]
pub fn by_name(name: &str) -> Option<Box<dyn Scheduler>> {
    if let Some(command) = name.strip_prefix("external:") {
        let command = command.trim();
        return (!command.is_empty()).then(|| Box::new(External::new(command)) as Box<dyn Scheduler>);
    }
    if let Some(victory) = name.strip_prefix("hybrid:") {
        let victory = victory.parse().ok().filter(|&n: &u64| n > 0)?;
        return Some(Box::new(Hybrid::new(victory)));
    }
    all().into_iter().find(|scheduler| scheduler.name() == name)
}

/// The scheduler called `name` with other weights in its program; `None` if it has no program with weights to choose.
#[must_use]
pub fn with_weights(name: &str, weights: &Weights) -> Option<Box<dyn Scheduler>> {
    match name {
        "milp" => Some(Box::new(Milp::with(weights.clone()))),
        "anneal:milp" => Some(Box::new(Anneal::from_milp_with(weights.clone()))),
        _ => None,
    }
}

/// Names of all schedulers that are complete as they stand.
pub fn names() -> impl Iterator<Item = String> {
    all().into_iter().map(|scheduler| scheduler.name().to_string())
}

fn all() -> Vec<Box<dyn Scheduler>> {
    let mut all: Vec<Box<dyn Scheduler>> = vec![
        Box::new(Greedy),
        Box::new(Milp::default()),
        Box::new(Milp::cosa()),
        Box::new(Anneal::default()),
        Box::new(Anneal::linear()),
        Box::new(Anneal::from_milp()),
        Box::new(Random),
        Box::new(RandomNaive),
        Box::new(Hybrid::default()),
        Box::new(Exhaustive::default()),
        Box::new(Exhaustive::with_bypass()),
    ];
    all.extend(Style::ALL.map(|style| Box::new(Dataflow::new(style)) as Box<dyn Scheduler>));
    all
}
