//! Exact fast-forward (rule 27): the outcome is the same with and without.

use cyclonest_arch::Loop;
use cyclonest_sim::{FastForward, Options, Outcome, simulate};
use cyclonest_testkit::generate::{Case, case};
use cyclonest_workloads::Dim;

/// The case with one more temporal loop outside the PE level, so long that there is something to skip. The bound grows
/// by the same factor, so what was clipped stays clipped, now in many iterations.
fn stretched(seed: u64) -> Option<Case> {
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

/// Random triples; `CYCLONEST_CASES` asks for more.
fn seeds() -> std::ops::Range<u64> {
    let more = std::env::var("CYCLONEST_CASES").ok().and_then(|n| n.parse().ok());
    0..more.unwrap_or(10_000)
}

fn without_skip_report(outcome: &Outcome) -> Outcome {
    Outcome {
        skipped_cycles: 0,
        skipped_events: 0,
        ..outcome.clone()
    }
}

#[test]
fn outcomes_are_equal_with_and_without() {
    let (mut valid, mut skipping) = (0, 0);
    for seed in seeds() {
        let Some(case) = stretched(seed) else { continue };
        valid += 1;
        let run = |fast_forward| {
            let options = Options {
                fast_forward,
                ..Options::default()
            };
            simulate(&case.problem, &case.arch, &case.mapping, options)
        };
        let full = run(FastForward::Off).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        for mode in [FastForward::Eager, FastForward::On] {
            let fast = run(mode).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert_eq!(without_skip_report(&fast), full, "seed {seed}, {mode:?}");
            let within = |(reason, cycles)| fast.stall_cycles.get(reason).is_some_and(|all| cycles <= all);
            assert!(fast.fill_stall_cycles.iter().all(within), "seed {seed}");
            skipping += u64::from(mode == FastForward::Eager && fast.skipped_cycles > 0);
        }
    }
    println!("{skipping} of {valid} cases skipped something");
    assert!(valid * 10 >= seeds().end * 9, "only {valid} stretched cases are valid");
    assert!(
        skipping * 4 >= valid,
        "only {skipping} of {valid} cases skipped anything"
    );
}
