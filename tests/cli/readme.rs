//! What the README shows is what the program prints.

use super::{cyclonest, stdout};

/// Lines of the fenced block after `heading`, less those with an ellipsis.
fn sample(heading: &str) -> Vec<&'static str> {
    let readme = include_str!("../../README.md");
    let after = readme.split_once(heading).expect("the heading").1;
    let block = after.split("```").nth(1).expect("a fenced block");
    block
        .lines()
        .filter(|line| !line.is_empty() && !line.contains('…'))
        .collect()
}

#[test]
fn the_sample_output_is_real() {
    let sample = sample("The first maps and simulates");
    assert!(sample.len() > 8);
    let output = stdout(&cyclonest("simulate --arch simba --network resnet50"));
    for line in sample {
        assert!(
            output.lines().any(|printed| printed == line),
            "not printed any more: {line}\n\n{output}"
        );
    }
}

#[test]
fn every_command_of_the_readme_is_known() {
    let readme = include_str!("../../README.md");
    let commands = readme.lines().filter_map(|line| line.strip_prefix("cyclonest "));
    let mut count = 0;
    for command in commands {
        let words = command.split_whitespace().take_while(|word| !word.starts_with('#'));
        let subcommands: Vec<&str> = words
            .clone()
            .take_while(|word| word.chars().all(|c| c.is_ascii_lowercase()))
            .collect();
        assert!(!subcommands.is_empty(), "{command}");
        let help = stdout(&cyclonest(&format!("{} --help", subcommands.join(" "))));
        assert!(help.contains("Usage: cyclonest"), "{command}");
        for option in words.filter(|word| word.starts_with('-')) {
            assert!(help.contains(option), "{command}: no option {option}");
        }
        count += 1;
    }
    assert!(count >= 5);
}
