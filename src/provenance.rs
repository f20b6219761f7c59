//! What a result was made with: the arguments of the command and what it read.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::inputs;

/// What a result was made with. `docs/output.md` describes the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Provenance {
    /// Arguments of the command that the result depends on, the command first.
    pub(crate) arguments: Vec<String>,
    /// Descriptions that were read, bundled ones by their names.
    pub(crate) inputs: Vec<Input>,
}

/// A description that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Input {
    /// A file, or the name of a bundled description.
    pub(crate) name: String,
    /// Of its bytes, in hexadecimal.
    pub(crate) sha256: String,
}

/// Options that do not change a result, with their short names.
const WITHOUT_EFFECT: [&str; 3] = ["--threads", "--output", "-o"];

impl Provenance {
    /// Of this run, which read the machines, networks, mappings and weights `given` by name or as files.
    pub(crate) fn of_this_run<'a>(given: impl IntoIterator<Item = &'a str>) -> Self {
        let mut inputs: Vec<Input> = given.into_iter().filter_map(Input::read).collect();
        inputs.dedup();
        Provenance {
            arguments: effective(std::env::args_os().skip(1)),
            inputs,
        }
    }

    /// The command as one types it into a shell.
    pub(crate) fn command(&self) -> String {
        let words = self.arguments.iter().map(|word| quoted(word));
        std::iter::once("cyclonest".to_string())
            .chain(words)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

impl Input {
    fn read(given: &str) -> Option<Self> {
        let bundled = cyclonest_arch::bundled::text(given).or_else(|| cyclonest_workloads::bundled::text(given));
        let sha256 = match bundled {
            Some(text) => hash(text.as_bytes()),
            // What cannot be read twice, like a pipe, has no hash.
            None if !Path::new(given).is_file() => return None,
            None => hash(&inputs::read_bytes(Path::new(given)).ok()?),
        };
        Some(Input {
            name: given.to_string(),
            sha256,
        })
    }
}

/// The arguments without the options that have no effect on a result.
fn effective(arguments: impl Iterator<Item = OsString>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    while let Some(argument) = arguments.next() {
        if WITHOUT_EFFECT.contains(&argument.as_str()) {
            arguments.next();
            continue;
        }
        let attached = argument.split_once('=').map_or(argument.as_str(), |(option, _)| option);
        let short = argument.starts_with("-o") && argument.len() > 2;
        if !short && !WITHOUT_EFFECT.contains(&attached) {
            kept.push(argument);
        }
    }
    kept
}

/// A word that a shell reads as it stands.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(line: &str) -> String {
        effective(line.split(' ').map(OsString::from)).join(" ")
    }

    #[test]
    fn threads_and_the_place_of_the_output_are_no_part_of_a_result() {
        let line = "simulate --arch a.ron --seed 3 --format json";
        for without_effect in [
            "--threads 2",
            "--threads=2",
            "-o x.json",
            "-ox.json",
            "--output x.json",
            "--output=x.json",
        ] {
            let given = line.replace("--seed", &format!("{without_effect} --seed"));
            assert_eq!(kept(&given), line);
        }
    }

    #[test]
    fn a_shell_reads_the_command_as_it_was_given() {
        let made = Provenance {
            arguments: ["show", "--layer", "it's #1", ""].map(String::from).to_vec(),
            inputs: Vec::new(),
        };
        assert_eq!(made.command(), r"cyclonest show --layer 'it'\''s #1' ''");
    }

    #[test]
    fn bundled_descriptions_and_files_have_hashes_and_what_is_neither_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.ron");
        std::fs::write(&file, "abc").unwrap();
        let file = file.to_str().unwrap();
        let made = Provenance::of_this_run(["simba", "alexnet", file, "all"]);
        let names: Vec<&str> = made.inputs.iter().map(|input| input.name.as_str()).collect();
        assert_eq!(names, ["simba", "alexnet", file]);
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(made.inputs[2].sha256, abc);
        let simba = cyclonest_arch::bundled::text("simba").unwrap();
        assert_eq!(made.inputs[0].sha256, hash(simba.as_bytes()));
    }
}
