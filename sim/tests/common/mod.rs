//! Cases for the tests of the fast-forward.

use cyclonest_arch::Loop;
use cyclonest_sim::Outcome;
use cyclonest_testkit::generate::{Case, case};
use cyclonest_workloads::Dim;

/// The case with one more temporal loop outside the PE level, so long that there is something to skip. The bound grows
/// by the same factor, so what was clipped stays clipped, now in many iterations.
pub(crate) fn stretched(seed: u64) -> Option<Case> {
    let mut case = case(seed);
    let dim = Dim::ALL[(seed % 8) as usize];
    let trips = 5 + seed / 8 % 20;
    let level = (seed / 160) as usize % case.arch.event_level();
    let loops = &mut case.mapping.levels[level].temporal;
    loops.insert((seed / 640) as usize % (loops.len() + 1), Loop(dim, trips));
    case.problem.bounds[dim] *= trips;
    case.mapping.bounds = case.problem.bounds;
    case.mapping.check(&case.problem, &case.arch).is_empty().then_some(case)
}

/// Numbers of the random cases; `CYCLONEST_CASES` asks for another number of them.
pub(crate) fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("CYCLONEST_CASES").ok().and_then(|n| n.parse().ok());
    0..asked.unwrap_or(10_000)
}

/// The valid ones of these cases.
pub(crate) fn cases(seeds: impl Iterator<Item = u64>) -> impl Iterator<Item = (u64, Case)> {
    seeds.filter_map(|seed| Some((seed, stretched(seed)?)))
}

/// The outcome without what it says of skipping.
pub(crate) fn without_skip_report(outcome: &Outcome) -> Outcome {
    Outcome {
        skipped_cycles: 0,
        skipped_events: 0,
        ..outcome.clone()
    }
}
