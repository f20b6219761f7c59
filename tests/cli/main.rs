//! The program as its users meet it: arguments in; text, files and exit codes out.

mod broken;
mod compare;
mod explain;
mod explore;
mod names;
mod native;
mod plot;
mod readme;
mod reproduce;
mod schedule;
mod show;
mod simulate;
mod validate;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Folder of the inputs; the program runs in it, so that messages have the same paths everywhere.
fn inputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs")
}

/// Runs the program, with its arguments as one would type them, in the folder of the inputs.
fn cyclonest(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cyclonest"))
        .current_dir(inputs())
        .args(arguments.split_whitespace())
        .output()
        .expect("the program starts")
}

/// What it wrote to standard output.
fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// What it wrote to standard error.
fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}
