//! The engine against the per-cycle oracle, on random machines, layers and mappings.

use std::collections::BTreeMap;

use cyclonest_sim::{Fault, Options, Outcome, SimError, Values, simulate};
use cyclonest_testkit::generate::{Case, case};
use cyclonest_testkit::invariants::{Figures, violations};
use cyclonest_testkit::oracle::{self, OracleOutcome};

const CASES: u64 = 2_000;

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
    let stalls = |reasons: Vec<(String, u64)>| -> BTreeMap<String, u64> {
        reasons.into_iter().filter(|(_, cycles)| *cycles > 0).collect()
    };
    let of_engine = stalls(engine.stall_cycles.iter().map(|(r, n)| (r.to_string(), *n)).collect());
    let of_oracle = stalls(oracle.stall_cycles.iter().map(|(r, n)| (r.to_string(), *n)).collect());
    compare("stalls".into(), format!("{of_engine:?}"), format!("{of_oracle:?}"));
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
        match with_engine(&case, Options::default()) {
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
    let all = disagreements(0..CASES);
    assert!(
        all.is_empty(),
        "{} of {CASES} disagree:\n{}",
        all.len(),
        all[..all.len().min(5)].join("\n")
    );
}

#[test]
fn values_equal_the_direct_convolution_and_outcomes_are_sound() {
    for seed in 0..CASES {
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
        };
        match with_engine(&case, options) {
            Err(SimError::Deadlock { chain, .. }) => assert!(!chain.is_empty(), "seed {seed}"),
            other => panic!("seed {seed}: {fault:?} gave {other:?}"),
        }
    }
}
