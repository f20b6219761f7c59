//! Explorations: interrupted or not, on any number of threads, the files at the end are the same.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{cyclonest, inputs, stderr, stdout};

/// A folder that is gone at the end of the test.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Runs an exploration that is expected to end well.
fn explored(arguments: &str, into: &Path) -> String {
    let output = cyclonest(&format!("explore {arguments} -o {}", into.display()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
}

fn results(folder: &Path) -> (String, String) {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("written");
    (read("results.csv"), read("summary.json"))
}

/// Begins or goes on, whichever is possible.
fn command(plan: &str, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cyclonest"));
    command
        .current_dir(inputs())
        .arg("explore")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if folder.join("plan.ron").exists() {
        command.arg("--resume").arg(folder);
    } else {
        command.arg(plan).arg("-o").arg(folder);
    }
    command
}

#[test]
fn threads_and_pruning_do_not_change_the_results() {
    let temporary = folder();
    let at = |name: &str| temporary.path().join(name);
    let text = explored("explore_small.ron --threads 1", &at("one"));
    assert!(text.contains("Kendall"), "{text}");
    explored("explore_small.ron --threads 3", &at("three"));
    explored("explore_small.ron --no-prune", &at("all"));
    let (csv, summary) = results(&at("one"));
    assert_eq!(results(&at("three")), (csv.clone(), summary.clone()));
    let (csv_all, summary_all) = results(&at("all"));
    assert_eq!(csv_all, csv);
    assert_ne!(summary_all, summary, "without pruning more is evaluated");
    assert!(csv.starts_with("# cyclonest explore, plan small ("), "{csv}");
    assert!(csv.lines().count() > 40);

    let status = stdout(&cyclonest(&format!("explore status {}", at("one").display())));
    assert!(status.contains("9 of 9 chunks, 35,400 of 35,400 designs"), "{status}");
}

#[test]
fn an_exploration_that_is_killed_again_and_again_ends_with_the_same_files() {
    let temporary = folder();
    let whole = temporary.path().join("whole");
    explored("explore_many.ron --no-prune", &whole);
    let killed = temporary.path().join("killed");
    let written = || std::fs::metadata(killed.join("log")).map_or(0, |log| log.len());
    let mut kills = 0;
    // From before anything is written on, and then whenever something more is.
    for more in [0, 0, 1, 1, 60, 1, 200, 1, 1, 500] {
        let enough = written() + more;
        let mut child = command("explore_many.ron", &killed)
            .arg("--no-prune")
            .spawn()
            .expect("started");
        while child.try_wait().expect("a child").is_none() {
            if written() >= enough {
                child.kill().expect("killed");
                kills += 1;
                break;
            }
        }
        child.wait().expect("ended");
    }
    assert!(kills > 3, "{kills}");
    let last = command("explore_many.ron", &killed)
        .arg("--no-prune")
        .status()
        .expect("run");
    assert!(last.success());
    assert_eq!(results(&killed), results(&whole));
}

#[test]
fn a_log_that_is_cut_off_anywhere_is_completed() {
    let temporary = folder();
    let done = temporary.path().join("done");
    explored("explore_small.ron", &done);
    let expected = results(&done);
    let log = std::fs::read(done.join("log")).expect("a log");
    for eighth in 0..8 {
        std::fs::write(done.join("log"), &log[..log.len() * eighth / 8 + eighth]).expect("cut");
        std::fs::remove_file(done.join("results.csv")).expect("removed");
        let output = cyclonest(&format!("explore --resume {}", done.display()));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(results(&done), expected);
    }
}

#[test]
fn a_changed_plan_is_refused_with_the_difference() {
    let temporary = folder();
    let done = temporary.path().join("done");
    explored("explore_small.ron", &done);
    let plan = done.join("plan.ron");
    let text = std::fs::read_to_string(&plan).expect("a copy");
    assert_eq!(
        text,
        std::fs::read_to_string(inputs().join("explore_small.ron")).expect("the original")
    );
    // Comments are not the plan.
    std::fs::write(&plan, format!("// A remark.\n{text}")).expect("written");
    assert_eq!(
        cyclonest(&format!("explore --resume {}", done.display())).status.code(),
        Some(0)
    );
    std::fs::write(&plan, text.replace("keep: 20", "keep: 21")).expect("written");
    let output = cyclonest(&format!("explore --resume {}", done.display()));
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("  - keep: 20,\n  + keep: 21,\n"), "{message}");
    assert!(message.contains("begun with another plan"), "{message}");
    let again = cyclonest(&format!("explore explore_small.ron -o {}", done.display()));
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("explore --resume"), "{}", stderr(&again));
}

/// The limit on the size of a file stands for a full disk: the write fails in the middle of a record.
#[cfg(unix)]
#[test]
fn a_full_disk_is_reported_and_what_was_done_is_kept() {
    let temporary = folder();
    let (whole, limited) = (temporary.path().join("whole"), temporary.path().join("limited"));
    explored("explore_small.ron", &whole);
    // In units of 512 bytes (or 1,024 in some shells); the log of this plan has some 40 kB.
    let script = format!(
        "ulimit -f 20; exec {} explore explore_small.ron -o {}",
        env!("CARGO_BIN_EXE_cyclonest"),
        limited.display()
    );
    let output = Command::new("sh")
        .current_dir(inputs())
        .args(["-c", &script])
        .output()
        .expect("sh");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let message = stderr(&output);
    assert!(message.contains("log: cannot be written: File too large"), "{message}");
    assert!(message.contains("of 9 chunks are kept"), "{message}");
    assert!(message.contains("explore --resume"), "{message}");
    let status = stdout(&cyclonest(&format!("explore status {}", limited.display())));
    assert!(!status.contains(" 0 of 9 chunks"), "{status}");
    let output = cyclonest(&format!("explore --resume {}", limited.display()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(results(&limited), results(&whole));
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_before_any_work() {
    let temporary = folder();
    let file: PathBuf = temporary.path().join("file");
    std::fs::write(&file, "").expect("written");
    let output = cyclonest(&format!("explore explore_small.ron -o {}/x", file.display()));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot be made"), "{}", stderr(&output));
    let missing = cyclonest(&format!("explore --resume {}", temporary.path().display()));
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        stderr(&missing).contains("there is no exploration: plan.ron is missing"),
        "{}",
        stderr(&missing)
    );
}

#[test]
fn every_fault_of_a_plan_is_reported_where_it_stands() {
    let temporary = folder();
    let into = temporary.path().join("none");
    let output = cyclonest(&format!("explore broken/explore_plan.ron -o {}", into.display()));
    assert_eq!(output.status.code(), Some(2));
    assert!(!into.exists());
    insta::assert_snapshot!(stderr(&output));
    let output = cyclonest(&format!("explore broken/explore_names.ron -o {}", into.display()));
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(stderr(&output));
    let output = cyclonest(&format!("explore kc_p_vgg16_erly -o {}", into.display()));
    assert_eq!(
        stderr(&output),
        "error: unknown plan `kc_p_vgg16_erly`\n  help: did you mean `kc_p_vgg16_early`?\n"
    );
}

#[test]
fn check_says_what_a_plan_is() {
    let output = cyclonest("check explore_small.ron");
    assert_eq!(
        stdout(&output),
        "explore_small.ron: plan small: 35,400 designs on 1 layer of lenet\n"
    );
}
