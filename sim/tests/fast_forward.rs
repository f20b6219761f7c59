//! Exact fast-forward (rule 27): the outcome is the same with and without.

use cyclonest_sim::{FastForward, Options, simulate};

mod common;

use common::{cases, seeds, without_skip_report};

/// Compares the outcomes of the cases of some seeds; how many are valid, and how many of them skip something.
fn compare(seeds: impl Iterator<Item = u64>) -> (u64, u64) {
    let (mut valid, mut skipping) = (0, 0);
    for (seed, case) in cases(seeds) {
        valid += 1;
        let run = |fast_forward| {
            let options = Options {
                fast_forward,
                ..Options::default()
            };
            simulate(&case.problem, &case.arch, &case.mapping, options)
        };
        let full = run(FastForward::Off).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        // Where it looks only when that pays, it does not look at cases as small as most of these.
        let on = (seed % 10 == 0).then_some(FastForward::On);
        for mode in on.into_iter().chain([FastForward::Eager]) {
            let fast = run(mode).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert_eq!(without_skip_report(&fast), full, "seed {seed}, {mode:?}");
            let within = |(reason, cycles)| fast.stall_cycles.get(reason).is_some_and(|all| cycles <= all);
            assert!(fast.fill_stall_cycles.iter().all(within), "seed {seed}");
            skipping += u64::from(mode == FastForward::Eager && fast.skipped_cycles > 0);
        }
    }
    (valid, skipping)
}

#[test]
fn outcomes_are_equal_with_and_without() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (valid, skipping) = std::thread::scope(|scope| {
        let share = |thread| scope.spawn(move || compare(seeds().skip(thread).step_by(threads)));
        let shares: Vec<_> = (0..threads).map(share).collect();
        shares
            .into_iter()
            .map(|share| share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .fold((0, 0), |sum, share| (sum.0 + share.0, sum.1 + share.1))
    });
    println!("{skipping} of {valid} cases skipped something");
    assert!(valid * 10 >= seeds().end * 9, "only {valid} stretched cases are valid");
    assert!(
        skipping * 4 >= valid,
        "only {skipping} of {valid} cases skipped anything"
    );
}
