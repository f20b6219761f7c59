//! `list`, `show` and `check` of valid inputs.

use super::{cyclonest, stderr, stdout};

fn shown(arguments: &str) -> String {
    let output = cyclonest(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(output.stderr.is_empty());
    stdout(&output)
}

#[test]
fn an_accelerator_is_drawn() {
    insta::assert_snapshot!(shown("show pair.ron"));
}

#[test]
fn a_mapping_is_printed_as_its_loop_nest() {
    insta::assert_snapshot!(shown("show conv1.ron"));
}

#[test]
fn the_layers_of_a_network_are_listed() {
    insta::assert_snapshot!(shown("show tiny.ron"));
}

#[test]
fn check_says_what_a_file_is() {
    insta::assert_snapshot!(shown(
        "check --arch pair.ron --network tiny.ron pair.ron tiny.ron conv1.ron"
    ));
}

#[test]
fn every_listed_name_can_be_shown() {
    for kind in ["archs", "networks"] {
        let listed = shown(&format!("list {kind}"));
        let names: Vec<&str> = listed
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert!(names.len() > 1, "{listed}");
        for name in names {
            assert!(shown(&format!("show {name}")).contains(name));
        }
    }
}

#[test]
fn a_closed_pipe_is_success() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_cyclonest"))
        .args(["show", "simba"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
