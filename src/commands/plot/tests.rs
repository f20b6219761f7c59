//! Rows of figures from results, against sums by other ways.

use clap::Parser as _;

use super::rows::{self, Source};
use super::{Args, draw};
use crate::results::Data;

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn args(line: &str) -> Args {
    Line::try_parse_from(["plot"].into_iter().chain(line.split_whitespace()))
        .expect("arguments")
        .args
}

/// What `bench schedulers` writes, in short.
fn bench() -> Source {
    let text = r#"{"command": "bench schedulers", "rows": [
        {"network": "n", "layer": "a", "count": 1, "scheduler": "greedy", "cycles": 100, "energy_pj": 5.0, "estimated_cycles": 90.0},
        {"network": "n", "layer": "b", "count": 3, "scheduler": "greedy", "cycles": 300, "energy_pj": 6.0, "estimated_cycles": 300.0},
        {"network": "n", "layer": "a", "count": 1, "scheduler": "anneal", "cycles": 50, "energy_pj": 7.0, "estimated_cycles": 50.0},
        {"network": "n", "layer": "b", "count": 3, "scheduler": "anneal", "cycles": null, "energy_pj": null, "estimated_cycles": null}
    ]}"#;
    Source {
        path: "bench.json".into(),
        data: Data::Benched(serde_json::from_str(text).expect("JSON")),
    }
}

#[test]
fn speedups_are_cycles_of_the_baseline_over_cycles() {
    let rows = rows::speedups(&args("speedup x"), &[bench()]).expect("rows");
    let rows: Vec<(&str, &str, f64)> = rows
        .iter()
        .map(|r| (r.group.as_str(), r.series.as_str(), r.value))
        .collect();
    assert_eq!(rows, [("a", "anneal", 2.0)]);
    let rows = rows::speedups(&args("speedup x --baseline anneal"), &[bench()]).expect("rows");
    assert_eq!((rows.len(), rows[0].value), (1, 0.5));
    assert!(rows::speedups(&args("speedup x --baseline annael"), &[bench()]).is_err());
}

#[test]
fn a_cloud_sums_the_layers_that_all_schedulers_map() {
    let (rows, _, _) = rows::cloud(&args("pareto x"), &[bench()]).expect("rows");
    let points: Vec<(f64, f64)> = rows.iter().map(|r| (r.x, r.y)).collect();
    assert_eq!(points, [(100.0, 5.0), (50.0, 7.0)]);
}

#[test]
fn models_stand_against_cycles() {
    let rows = rows::scatter(&args("scatter x"), &[bench()]).expect("rows");
    assert_eq!(rows.len(), 3);
    let figure = draw(&args("scatter x"), &[bench()]).expect("a figure");
    let mape = figure
        .notes()
        .iter()
        .find(|(name, _)| name == "MAPE greedy [%]")
        .expect("stated")
        .1;
    assert!((mape - 5.0).abs() < 1e-9, "{mape}");
}
