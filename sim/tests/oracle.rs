//! The engine against the per-cycle oracle, on random machines, layers and mappings.

use std::collections::{BTreeMap, BTreeSet};

use cyclonest_sim::{Fault, Options, Outcome, SimError, Values, simulate};
use cyclonest_testkit::generate::{Case, case};
use cyclonest_testkit::invariants::{Figures, violations};
use cyclonest_testkit::oracle::{self, OracleOutcome};

/// Random triples; `CYCLONEST_CASES` asks for more.
fn seeds() -> std::ops::Range<u64> {
    let more = std::env::var("CYCLONEST_CASES").ok().and_then(|n| n.parse().ok());
    0..more.unwrap_or(2_000).max(2_000)
}

fn with_engine(case: &Case, options: Options) -> Result<Outcome, SimError> {
    simulate(&case.problem, &case.arch, &case.mapping, options)
}

fn with_oracle(case: &Case) -> OracleOutcome {
    oracle::simulate(&case.problem, &case.arch, &case.mapping, oracle::Options::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Everything in which engine and oracle differ.
fn differences(engine: &Outcome, oracle: &OracleOutcome) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: String, engine: String, oracle: String| {
        if engine != oracle {
            found.push(format!("{what}: engine {engine}, oracle {oracle}"));
        }
    };
    compare("cycles".into(), engine.cycles.to_string(), oracle.cycles.to_string());
    compare("PEs".into(), engine.pes.to_string(), oracle.pes.to_string());
    compare(
        "busy".into(),
        engine.busy_cycles.to_string(),
        oracle.busy_cycles.to_string(),
    );
    compare(
        "transfers".into(),
        engine.transfers.to_string(),
        oracle.transfers.to_string(),
    );
    let of_engine: BTreeMap<String, u64> = engine.stall_cycles.iter().map(|(r, n)| (r.to_string(), *n)).collect();
    let of_oracle: BTreeMap<String, u64> = oracle.stall_cycles.iter().map(|(r, n)| (r.to_string(), *n)).collect();
    let reasons: BTreeSet<&String> = of_engine.keys().chain(of_oracle.keys()).collect();
    for reason in reasons {
        let cycles = |of: &BTreeMap<String, u64>| of.get(reason).copied().unwrap_or(0).to_string();
        compare(format!("stalled {reason}"), cycles(&of_engine), cycles(&of_oracle));
    }
    compare(
        "MACs".into(),
        engine.counts.macs.to_string(),
        oracle.counts.macs.to_string(),
    );
    for (e, o) in engine.counts.levels.iter().zip(&oracle.counts.levels) {
        for ((t, e_accesses), (_, o_accesses)) in e.tensors.iter().zip(o.tensors.iter()) {
            compare(
                format!("{t} at {}", e.name),
                format!("{e_accesses:?}"),
                format!("{o_accesses:?}"),
            );
            compare(
                format!("network of {t} below {}", e.name),
                format!("{:?}", e.network[t]),
                format!("{:?}", o.network[t]),
            );
        }
    }
    let occupied = |of: &BTreeMap<String, u64>| {
        let mut cycles: Vec<u64> = of.values().copied().filter(|&n| n > 0).collect();
        cycles.sort_unstable();
        format!("{cycles:?}")
    };
    compare(
        "occupancy".into(),
        occupied(&engine.occupancy),
        occupied(&oracle.occupancy),
    );
    found
}

fn disagreements(seeds: impl Iterator<Item = u64>) -> Vec<String> {
    let mut all = Vec::new();
    for seed in seeds {
        let case = case(seed);
        let oracle = with_oracle(&case);
        // A panic is a disagreement, too.
        let engine = std::panic::catch_unwind(|| with_engine(&case, Options::default()));
        match engine.unwrap_or_else(|_| Err(SimError::Invalid(vec!["the engine panicked".into()]))) {
            Ok(engine) => {
                let found = differences(&engine, &oracle);
                if !found.is_empty() {
                    all.push(format!("seed {seed}:\n  {}", found.join("\n  ")));
                }
            }
            Err(error) => all.push(format!("seed {seed}: {error}")),
        }
    }
    all
}

#[test]
fn cycles_counters_and_stall_reasons_equal_the_oracle() {
    let all = disagreements(seeds());
    assert!(
        all.is_empty(),
        "{} disagree:\n{}",
        all.len(),
        all[..all.len().min(20)].join("\n")
    );
}

#[test]
fn values_equal_the_direct_convolution_and_outcomes_are_sound() {
    for seed in seeds() {
        let case = case(seed);
        let options = Options {
            check_values: true,
            seed,
            ..Options::default()
        };
        let outcome = with_engine(&case, options).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(outcome.values, Values::Equal, "seed {seed}");
        let figures = Figures {
            cycles: outcome.cycles,
            pes: outcome.pes,
            busy: outcome.busy_cycles,
            stalled: outcome.stall_cycles.values().sum(),
            counts: &outcome.counts,
            occupancy: &outcome.occupancy,
        };
        let found = violations(&case, figures);
        assert!(found.is_empty(), "seed {seed}: {found:#?}");
    }
}

#[test]
fn any_dropped_transfer_of_500_is_detected() {
    for seed in 0..500 {
        let case = case(seed);
        let transfers = with_engine(&case, Options::default()).unwrap().transfers;
        let fault = Some(Fault::DropData(seed * 7_919 % transfers));
        let options = Options {
            check_values: true,
            seed,
            fault,
            ..Options::default()
        };
        let outcome = with_engine(&case, options).unwrap();
        assert!(
            matches!(outcome.values, Values::Different(_)),
            "seed {seed}: {fault:?} went unseen"
        );
    }
}

#[test]
fn a_lost_transfer_is_a_deadlock_with_its_chain() {
    for seed in 0..200 {
        let case = case(seed);
        let transfers = with_engine(&case, Options::default()).unwrap().transfers;
        let fault = Some(Fault::LoseTransfer(seed * 7_919 % transfers));
        let options = Options {
            check_values: false,
            seed,
            fault,
            ..Options::default()
        };
        match with_engine(&case, options) {
            Err(SimError::Deadlock { chain, .. }) => assert!(!chain.is_empty(), "seed {seed}"),
            other => panic!("seed {seed}: {fault:?} gave {other:?}"),
        }
    }
}
