//! Rules that matter in about one random case of a hundred, each in a case made for it.

use std::path::Path;

use cyclonest_arch::{Accelerator, Accesses, Counts, Mapping};
use cyclonest_sim::{Options, SimError, Values, simulate};
use cyclonest_testkit::oracle;
use cyclonest_workloads::{Problem, Tensor};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Directed {
    problem: Problem,
    arch: Accelerator,
    mapping: Mapping,
}

fn load(name: &str) -> Directed {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/directed")
        .join(name)
        .with_extension("ron");
    let text = std::fs::read_to_string(&path).unwrap();
    ron::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs engine and oracle; both must agree and compute the convolution.
fn run(name: &str) -> Counts {
    let Directed { problem, arch, mapping } = load(name);
    let oracle = oracle::simulate(&problem, &arch, &mapping, oracle::Options::default()).unwrap();
    assert_eq!(oracle.fault, None);
    let options = Options {
        check_values: true,
        ..Options::default()
    };
    let engine = simulate(&problem, &arch, &mapping, options).unwrap();
    assert_eq!(engine.values, Values::Equal);
    assert_eq!((engine.cycles, &engine.counts), (oracle.cycles, &oracle.counts));
    oracle.counts
}

fn outputs(counts: &Counts, level: usize) -> Accesses {
    counts.levels[level].tensors[Tensor::Outputs]
}

#[test]
fn rule_4_outputs_do_not_outlive_their_parent() {
    let counts = run("rule_04");
    // PE 0 holds k0, k2, k0, k2; PE 1 holds k1 twice, although nothing came between in its own steps.
    assert_eq!(outputs(&counts, 2).drains, 6);
    assert_eq!(outputs(&counts, 2).fills, 3);
    assert_eq!(outputs(&counts, 1).drains, 6);
}

#[test]
fn rule_7_an_output_is_not_revisited_inside_a_burst() {
    let Directed { problem, arch, mapping } = load("rule_07");
    let engine = simulate(&problem, &arch, &mapping, Options::default());
    assert!(matches!(engine, Err(SimError::Invalid(_))), "{engine:?}");
    let oracle = oracle::simulate(&problem, &arch, &mapping, oracle::Options::default());
    assert!(matches!(oracle, Err(oracle::OracleError::Invalid(_))), "{oracle:?}");
}

#[test]
fn rule_17_one_member_fetches_and_moves_the_sum() {
    let counts = run("rule_17");
    // Two outputs, fetched once each by PE 0; PE 1 starts at zero again.
    assert_eq!(outputs(&counts, 0).reads, 2);
    assert_eq!(outputs(&counts, 1).fills, 2);
    // Four visits, joined by the tree.
    assert_eq!(outputs(&counts, 0).updates, 4);
    assert_eq!(outputs(&counts, 0).read_modify_writes, 0);
    assert_eq!(outputs(&counts, 1).drains, 8);
}

#[test]
fn rules_18_and_19_one_stream_of_a_visit_is_written_and_the_other_added_after_the_fetch() {
    let counts = run("rule_18");
    // Per visit one read-modify-write, and two fetches.
    assert_eq!(outputs(&counts, 0).read_modify_writes, 4);
    assert_eq!(outputs(&counts, 0).reads, 4 + 2);
    assert_eq!(outputs(&counts, 0).updates, 8);
}

#[test]
fn rule_2_a_register_inside_the_pe_is_filled_when_its_weight_changes() {
    let counts = run("rule_02_register");
    let weights = |level: usize| counts.levels[level].tensors[Tensor::Weights];
    // k0 p0, k0 p1, k1 p0, k1 p1: two fills, four reads.
    assert_eq!((weights(1).fills, weights(1).reads), (2, 2));
    assert_eq!((weights(2).fills, weights(2).reads), (2, 4));
    // Inputs come straight from the PE level; outputs start at zero and are updated once.
    assert_eq!(counts.levels[1].tensors[Tensor::Inputs].reads, 4);
    assert_eq!((outputs(&counts, 1).updates, outputs(&counts, 1).reads), (4, 0));
}

#[test]
fn rule_2_an_accumulator_inside_the_pe_sends_sums_back_and_fetches_them() {
    let counts = run("rule_02_accumulator");
    // c0 k0, c0 k1 start at zero; c1 k0, c1 k1 are fetched; all four are drained.
    let inner = outputs(&counts, 2);
    assert_eq!((inner.updates, inner.reads, inner.fills, inner.drains), (4, 2, 2, 4));
    let pe = outputs(&counts, 1);
    assert_eq!((pe.updates, pe.reads, pe.read_modify_writes, pe.drains), (4, 2, 0, 2));
}
