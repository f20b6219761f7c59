//! `plot` on good, odd and broken data.

use super::{cyclonest, stderr, stdout};

/// Draws to a file in a fresh folder; the message and what is left there.
fn drawn(arguments: &str, name: &str) -> (String, Option<i32>, Vec<String>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let target = folder.path().join(name);
    let output = cyclonest(&format!("plot {arguments} -o {}", target.display()));
    let mut left: Vec<String> = std::fs::read_dir(folder.path())
        .expect("readable")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    let message = stderr(&output).replace(&folder.path().display().to_string(), "FOLDER");
    (message, output.status.code(), left)
}

fn rejected(arguments: &str) -> String {
    let (message, code, left) = drawn(arguments, "figure.svg");
    assert_eq!(code, Some(2), "{message}");
    assert!(left.is_empty(), "left behind: {left:?}");
    message
}

#[test]
fn every_broken_file_has_its_message() {
    let mut all = String::new();
    for file in [
        "columns.csv",
        "empty.csv",
        "no_rows.csv",
        "not_numbers.csv",
        "twice.csv",
        "zero.csv",
        "truncated.json",
        "no_layers.json",
        "foreign.json",
        "missing.csv",
    ] {
        all.push_str(&format!("{file}\n{}\n", rejected(&format!("speedup figures/{file}"))));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn an_unknown_kind() {
    insta::assert_snapshot!(rejected("pie figures/one_row.csv"));
}

#[test]
fn a_folder_that_does_not_exist_and_an_ending_that_is_no_format() {
    let nowhere = cyclonest("plot speedup figures/one_row.csv -o nowhere/figure.svg");
    let ending = cyclonest("plot speedup figures/one_row.csv -o figure.gif");
    let over = cyclonest("plot speedup figures/one_row.csv -o figures/one_row.svg");
    for output in [&nowhere, &ending, &over] {
        assert_eq!(output.status.code(), Some(2));
    }
    insta::assert_snapshot!(stderr(&nowhere) + &stderr(&ending) + &stderr(&over));
}

#[test]
fn sizes_that_make_no_sense() {
    insta::assert_snapshot!(
        rejected("speedup figures/one_row.csv --width 0.5")
            + &rejected("speedup figures/one_row.csv --width wide")
            + &rejected("speedup figures/one_row.csv --height 90")
            + &rejected("gantt figures/one_row.csv --window 5:5")
    );
}

#[test]
fn one_row_is_a_figure_in_every_format_with_its_numbers_beside() {
    for (name, magic) in [("a.svg", "<svg"), ("a.png", "\u{89}PNG"), ("a.pdf", "%PDF")] {
        let (message, code, left) = drawn("speedup figures/one_row.csv", name);
        assert_eq!(code, Some(0), "{message}");
        let mut expected = vec!["a.csv".to_string(), name.to_string()];
        expected.sort();
        assert_eq!(left, expected, "{magic}");
    }
    let text = stdout(&cyclonest("plot speedup figures/one_row.csv"));
    assert!(text.starts_with("<svg width=\"3.4870in\""), "{text}");
    assert!(text.contains("conv1"));
}

#[test]
fn a_file_from_a_spreadsheet_is_read() {
    let output = cyclonest("plot speedup figures/wild.csv");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("greedy") && text.contains("anneal"));
}

#[test]
fn ten_thousand_rows_are_refused_as_bars_and_drawn_as_points_and_lines() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("many.csv");
    let mut text = "group,series,value,x,y\n".to_string();
    for i in 0..10_000 {
        text.push_str(&format!("layer{i},greedy,{},{i},{}\n", 1 + i % 7, i % 97));
    }
    std::fs::write(&data, text).expect("writable");
    let bars = cyclonest(&format!("plot speedup {}", data.display()));
    assert_eq!(bars.status.code(), Some(2));
    insta::assert_snapshot!(stderr(&bars).replace(&folder.path().display().to_string(), "FOLDER"));
    for kind in ["layers", "lines", "pareto"] {
        let output = cyclonest(&format!("plot {kind} {}", data.display()));
        assert_eq!(output.status.code(), Some(0), "{kind}: {}", stderr(&output));
        assert!(output.stdout.len() < 1_500_000, "{kind}: {} bytes", output.stdout.len());
    }
}

#[test]
fn columns_are_picked_by_name() {
    let output =
        cyclonest("plot pareto figures/designs.csv --x area_mm2 --y throughput --y-better higher --series kind");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("area [mm²]"));
    assert_eq!(stderr(&output).trim(), "designs on the front: 2.000000");
    insta::assert_snapshot!(rejected("pareto figures/designs.csv --x area --y throughput"));
}

#[test]
fn results_of_simulate_are_drawn_by_every_kind_that_reads_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (greedy, random, trace) = (path("greedy.json"), path("random.json"), path("trace.json"));
    for (scheduler, file) in [("greedy", &greedy), ("random", &random)] {
        let output = cyclonest(&format!(
            "simulate --arch pair.ron --network tiny.ron --scheduler {scheduler} --format json -o {file}"
        ));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let output = cyclonest(&format!(
        "simulate --arch pair.ron --network tiny.ron --layer conv1 --no-fast-forward --trace {trace}"
    ));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for arguments in [
        format!("speedup {greedy} {random}"),
        format!("layers {greedy} {random}"),
        format!("reuse {greedy}"),
        format!("energy {greedy} --arch pair.ron"),
        format!("cycles {greedy} {random}"),
        format!("pareto {greedy} {random}"),
        format!("gantt {trace}"),
        format!("occupancy {trace}"),
        format!("pes {trace}"),
    ] {
        let output = cyclonest(&format!("plot {arguments}"));
        assert_eq!(output.status.code(), Some(0), "{arguments}: {}", stderr(&output));
        assert!(stdout(&output).starts_with("<svg "), "{arguments}");
    }
    // Several layers are no trace.
    let output = cyclonest(&format!("simulate --arch pair.ron --network tiny.ron --trace {trace}"));
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(stderr(&output));
}
