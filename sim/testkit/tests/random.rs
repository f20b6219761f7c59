//! The generator covers what it promises, and the oracle's outcomes are sound.

use cyclonest_testkit::features::coverage;
use cyclonest_testkit::generate::{Case, case, cases};
use cyclonest_testkit::invariants::{Figures, violations};
use cyclonest_testkit::oracle::{Options, OracleOutcome, simulate};

const CASES: u64 = 400;

fn run(case: &Case) -> OracleOutcome {
    simulate(&case.problem, &case.arch, &case.mapping, Options::default())
        .unwrap_or_else(|error| panic!("{error}\n{case:#?}"))
}

#[test]
fn every_feature_is_in_a_twentieth_of_the_cases() {
    let all: Vec<Case> = (0..2_000).map(case).collect();
    let counted = coverage(&all);
    let rare: Vec<_> = counted.iter().filter(|(_, n)| **n * 20 < all.len()).collect();
    assert!(rare.is_empty(), "{rare:?} of {}", all.len());
}

#[test]
fn half_of_the_cases_have_three_residencies_per_stream_and_a_third_stall() {
    let outcomes: Vec<OracleOutcome> = (0..CASES).map(|seed| run(&case(seed))).collect();
    let deep = outcomes
        .iter()
        .filter(|o| o.residencies.iter().sum::<usize>() >= 3 * o.residencies.len())
        .count();
    assert!(deep * 2 >= outcomes.len(), "{deep} of {}", outcomes.len());
    let stalled = outcomes.iter().filter(|o| o.stalled_between_bursts > 0).count();
    assert!(stalled * 10 >= outcomes.len() * 3, "{stalled} of {}", outcomes.len());
}

#[test]
fn the_oracle_computes_the_convolution_and_its_outcomes_are_sound() {
    for seed in 0..CASES {
        let case = case(seed);
        let outcome = run(&case);
        assert_eq!(outcome.fault, None, "seed {seed}");
        let figures = Figures {
            cycles: outcome.cycles,
            pes: outcome.pes,
            busy: outcome.busy_cycles,
            stalled: outcome.stall_cycles.values().sum(),
            counts: &outcome.counts,
            occupancy: &outcome.occupancy,
        };
        let mut found = violations(&case, figures);
        if outcome.cycles > outcome.sum_of_parts {
            found.push(format!(
                "{} cycles, more than all parts: {}",
                outcome.cycles, outcome.sum_of_parts
            ));
        }
        assert!(found.is_empty(), "seed {seed}: {found:#?}");
    }
}

#[test]
fn a_dropped_transfer_never_goes_unseen() {
    let mut dropped = 0;
    for seed in 0..CASES {
        let case = case(seed);
        let transfers = run(&case).transfers;
        for k in 0..3 {
            let options = Options {
                drop_transfer: Some(((seed * 7 + k * 13) % transfers) as usize),
                ..Options::default()
            };
            let outcome = simulate(&case.problem, &case.arch, &case.mapping, options).unwrap();
            assert!(
                outcome.fault.is_some(),
                "seed {seed}, transfer {:?}",
                options.drop_transfer
            );
            dropped += 1;
        }
    }
    assert!(dropped >= 500);
}

#[test]
fn a_seed_always_gives_the_same_case() {
    for seed in 0..20 {
        assert_eq!(case(seed), case(seed));
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(40))]
    #[test]
    fn every_size_gives_valid_cases(case in cases()) {
        proptest::prop_assert!(case.arch.check().is_empty());
        proptest::prop_assert!(case.mapping.check(&case.problem, &case.arch).is_empty());
        proptest::prop_assert_eq!(run(&case).fault, None);
    }
}
