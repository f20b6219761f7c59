//! No text of any figure is clipped, overlaps another or is smaller than 8 pt.

mod common;

use common::assert_legible;
use cyclonest_plots::*;

const WIDTHS: [Width; 4] = [Width::Ieee1, Width::Acm1, Width::Ieee2, Width::Acm2];

fn styles() -> impl Iterator<Item = Style> {
    WIDTHS.into_iter().flat_map(|width| {
        [None, Some("A title that says what is compared".to_string())].map(|title| Style {
            width,
            title,
            ..Style::default()
        })
    })
}

/// Keeps pictures for looking at: `CYCLONEST_PICTURES=FOLDER`.
fn show(name: &str, figure: &Figure) {
    if let Some(folder) = std::env::var_os("CYCLONEST_PICTURES") {
        let folder = std::path::PathBuf::from(folder);
        figure.save(&folder.join(format!("{name}.png"))).unwrap();
        std::fs::write(folder.join(format!("{name}.svg")), figure.svg()).unwrap();
    }
}

fn check(name: &str, draw: impl Fn(&Style) -> Result<Figure, PlotError>) {
    for (i, style) in styles().enumerate() {
        let figure = draw(&style).unwrap_or_else(|error| panic!("{name}: {error}"));
        if i < 5 {
            show(&format!("{name}-{i}"), &figure);
        }
        assert_legible(&format!("{name} in {:?}", style.width), &figure);
    }
}

fn layer(i: usize) -> String {
    format!(
        "inception_{}{}/{}x{}_reduce",
        i / 5 + 3,
        (b'a' + (i % 5) as u8) as char,
        1 + i % 5,
        1 + i % 5
    )
}

fn bar_rows(groups: usize, series: usize) -> Vec<BarRow> {
    (0..groups)
        .flat_map(|g| {
            (0..series).map(move |s| BarRow {
                group: layer(g),
                series: [
                    "greedy",
                    "random",
                    "milp:cosa",
                    "anneal",
                    "hybrid",
                    "exhaustive",
                    "nvdla",
                    "shi-diannao",
                ][s]
                    .to_string(),
                value: 0.6 + ((g * 7 + s * 13) % 23) as f64 / 7.0,
            })
        })
        .collect()
}

#[test]
fn bars_with_60_layers_and_with_3() {
    for groups in [1, 3, 12, 60] {
        for series in [1, 3, 8] {
            for scale in [Scale::Linear, Scale::Log] {
                let options = BarOptions {
                    scale,
                    ..BarOptions::speedup()
                };
                check(&format!("bars-{groups}-{series}-{scale:?}"), |style| {
                    bars(&bar_rows(groups, series), &options, style)
                });
            }
        }
    }
}

#[test]
fn scatter_of_many_and_of_one() {
    for n in [1, 2, 60, 10_000] {
        let rows: Vec<ScatterRow> = (0..n)
            .map(|i| {
                let simulated = 1000.0 * 1.0017_f64.powi(i % 4000);
                ScatterRow {
                    name: layer(i as usize),
                    series: ["exact", "timeloop", "maestro"][i as usize % 3].to_string(),
                    simulated,
                    modelled: simulated * (0.8 + f64::from(i * 31 % 41) / 100.0),
                }
            })
            .collect();
        check(&format!("scatter-{n}"), |style| {
            scatter(&rows, &ScatterOptions::cycles(), style)
        });
    }
}

#[test]
fn lines_of_many_and_of_one() {
    for n in [1, 12, 10_000] {
        let rows: Vec<LineRow> = (0..n)
            .map(|i| LineRow {
                series: ["simba", "eyeriss"][i % 2].to_string(),
                x: 1.0 + i as f64,
                y: 1e6 / (1.0 + i as f64),
            })
            .collect();
        for scale in [Scale::Linear, Scale::Log] {
            let options = LineOptions {
                x_label: "buffer [KiB]".into(),
                y_label: "latency [cycles]".into(),
                x_scale: scale,
                y_scale: scale,
                from_zero: true,
            };
            check(&format!("lines-{n}-{scale:?}"), |style| lines(&rows, &options, style));
        }
    }
}
