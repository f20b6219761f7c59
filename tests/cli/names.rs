//! Unknown names suggest the nearest known one.

use super::{cyclonest, stderr};

fn unknown(arguments: &str) -> String {
    let output = cyclonest(arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    stderr(&output)
}

#[test]
fn an_unknown_accelerator_network_and_scheduler_are_reported_at_once() {
    let message = unknown("simulate --arch simbaa --network alexnot --scheduler gredy");
    insta::assert_snapshot!(message, @r"
    error: unknown accelerator `simbaa`
      help: did you mean `simba`?
    error: unknown network `alexnot`
      help: did you mean `alexnet`?
    error: unknown scheduler `gredy`
      help: did you mean `greedy`?
    ");
}

#[test]
fn unknown_layers_are_reported_at_once() {
    let message = unknown("simulate --arch small3 --network alexnet --layer conv --layer cf6");
    insta::assert_snapshot!(message, @r"
    error: unknown layer `conv`
      help: did you mean `conv1`?
    error: unknown layer `cf6`
      help: did you mean `fc6`?
    ");
}

#[test]
fn a_name_that_is_near_to_nothing_lists_what_is_known() {
    let message = unknown("simulate --arch pair.ron --network tiny.ron --layer wholly_else");
    insta::assert_snapshot!(message, @r"
    error: unknown layer `wholly_else`
      help: known: conv1, conv2, conv3, fc
    ");
}
