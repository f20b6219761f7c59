//! The model `exact` on random machines, layers and mappings: strides larger than the kernel, dilation, padding,
//! groups, bypassed levels, diagonal sharing, imperfect factors, mixed multicast degrees.
//!
//! `CYCLONEST_CASES=5000` runs more than the default number of cases.

use cyclonest_scheduler::cost::exact::{Evaluator, lower_bound};
use cyclonest_sim::{Options, simulate};
use cyclonest_testkit::generate::{Case, case};

const CASES: u64 = 500;

fn cases() -> u64 {
    match std::env::var("CYCLONEST_CASES") {
        Ok(text) => text.parse().expect("CYCLONEST_CASES is a number"),
        Err(_) => CASES,
    }
}

#[test]
fn every_count_equals_the_simulators_and_no_simulation_beats_the_bound() {
    let mut evaluator = Evaluator::new();
    let mut wrong = Vec::new();
    let mut beaten = Vec::new();
    for seed in 0..cases() {
        let Case { problem, arch, mapping } = case(seed);
        let outcome = simulate(&problem, &arch, &mapping, Options::default()).expect("valid");
        match evaluator.evaluate(&problem, &arch, &mapping) {
            // Accesses per level and tensor, elements and words per multicast degree, bit hops.
            Ok(()) if evaluator.counts(&arch) == outcome.counts => {}
            Ok(()) => wrong.push((seed, "counts differ".to_owned())),
            Err(error) => wrong.push((seed, error.to_string())),
        }
        if outcome.cycles < lower_bound(&problem, &arch) {
            beaten.push(seed);
        }
    }
    assert!(wrong.is_empty(), "{} of {}: {wrong:?}", wrong.len(), cases());
    assert!(beaten.is_empty(), "below the bound: {beaten:?}");
}
