//! No text of any figure is clipped, overlaps another or is smaller than 8 pt.

mod common;

use common::assert_legible;
use cyclonest_plots::*;

/// One column with and without a title, the narrowest column, and both columns.
fn styles() -> [Style; 4] {
    let title = || Some("A title that says what is compared".to_string());
    [
        (Width::Ieee1, None),
        (Width::Acm1, title()),
        (Width::Ieee2, title()),
        (Width::Ieee1, title()),
    ]
    .map(|(width, title)| Style {
        width,
        title,
        ..Style::default()
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
    // Large data says nothing new in every width.
    let most = if name.contains("10000") { 2 } else { usize::MAX };
    for (i, style) in styles().into_iter().enumerate().take(most) {
        let figure = draw(&style).unwrap_or_else(|error| panic!("{name}: {error}"));
        show(&format!("{name}-{i}"), &figure);
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

#[test]
fn layers_sorted() {
    for (groups, series) in [(1, 1), (5, 2), (60, 3), (10_000, 1)] {
        let mut rows = bar_rows(groups, series);
        if groups > 100 {
            rows.iter_mut()
                .enumerate()
                .for_each(|(i, row)| row.group = format!("layer{i}"));
        }
        for scale in [Scale::Linear, Scale::Log] {
            let options = BarOptions {
                scale,
                ..BarOptions::speedup()
            };
            check(&format!("layers-{groups}-{series}-{scale:?}"), |style| {
                layers(&rows, &options, style)
            });
        }
    }
}

#[test]
fn stacks_of_levels_and_of_stalls() {
    let levels = [
        "DRAM",
        "GlobalBuffer",
        "WeightBuffer",
        "AccumulationBuffer",
        "Registers",
        "MAC",
    ];
    let tensors = ["Weights", "Inputs", "Outputs"];
    for bars in [1, 4, 20, 60] {
        let mut rows = Vec::new();
        for b in 0..bars {
            for (l, level) in levels.iter().enumerate() {
                for (t, tensor) in tensors.iter().enumerate() {
                    rows.push(StackRow {
                        bar: layer(b),
                        part: (*level).to_string(),
                        detail: (l < 5).then(|| (*tensor).to_string()),
                        value: ((b + 1) * (l * 3 + t + 1) % 17 + 1) as f64 * 1e6,
                    });
                }
            }
        }
        for shares in [false, true] {
            let options = StackOptions {
                y_label: "energy [pJ]".into(),
                x_label: String::new(),
                shares,
            };
            check(&format!("stacked-{bars}-{shares}"), |style| {
                stacked(&rows, &options, style)
            });
        }
    }
    let reasons: Vec<StackRow> = (0..12)
        .flat_map(|b| {
            (0..14).map(move |r| StackRow {
                bar: format!("layer{b}"),
                part: if r == 0 {
                    "busy".into()
                } else {
                    format!("in_flight:Weights@Level{r}")
                },
                detail: None,
                value: f64::from(1000 / (1 + r * (b % 3 + 1))),
            })
        })
        .collect();
    let options = StackOptions {
        y_label: "PE-cycles [%]".into(),
        x_label: "layer".into(),
        shares: true,
    };
    check("stacked-reasons", |style| stacked(&reasons, &options, style));
}

#[test]
fn rooflines() {
    for n in [1, 20, 10_000] {
        let rows: Vec<RoofRow> = (0..n)
            .map(|i| {
                let (peak, bandwidth) = [(256.0, 16.0), (168.0, 2.0)][i % 2];
                let intensity = 0.5 * 1.3_f64.powi((i % 25) as i32);
                RoofRow {
                    name: layer(i),
                    series: ["simba", "eyeriss"][i % 2].into(),
                    intensity,
                    throughput: f64::min(peak, intensity * bandwidth) * (0.2 + (i * 7 % 11) as f64 / 14.0),
                    peak,
                    bandwidth,
                }
            })
            .collect();
        check(&format!("roofline-{n}"), |style| {
            roofline(&rows, &RoofOptions::default(), style)
        });
    }
}

#[test]
fn clouds() {
    for n in [1, 30, 10_000] {
        let rows: Vec<CloudRow> = (0..n)
            .map(|i| {
                let t = (i * 7919 % 10_007) as f64 / 10_007.0;
                CloudRow {
                    series: ["greedy", "anneal"][i % 2].into(),
                    x: 1e5 * (1.0 + t),
                    y: 1e7 * (1.0 + (i * 104_729 % 9973) as f64 / 9973.0) / (1.0 + t),
                    name: None,
                }
            })
            .collect();
        let options = CloudOptions {
            x_label: "latency [cycles]".into(),
            y_label: "energy [pJ]".into(),
            x_scale: Scale::Linear,
            y_scale: Scale::Linear,
            x_better: Better::Lower,
            y_better: Better::Lower,
        };
        check(&format!("pareto-{n}"), |style| pareto(&rows, &options, style));
    }
}

#[test]
fn convergence_of_seeds() {
    for (seeds, points) in [(1, 1), (7, 20), (20, 250)] {
        let rows: Vec<ConvergenceRow> = ["anneal", "random"]
            .into_iter()
            .enumerate()
            .flat_map(|(s, series)| {
                (0..seeds).flat_map(move |seed| {
                    (0..points).map(move |i| ConvergenceRow {
                        series: series.into(),
                        seed,
                        evaluations: 1.0 + (i * (seed + 3)) as f64,
                        best: 1e6 * (1.0 + 5.0 / (1.0 + i as f64 * (1.0 + s as f64) + seed as f64 / 3.0)),
                    })
                })
            })
            .collect();
        let options = ConvergenceOptions {
            y_label: "best [cycles]".into(),
            x_scale: Scale::Log,
            y_scale: Scale::Linear,
        };
        check(&format!("convergence-{seeds}-{points}"), |style| {
            convergence(&rows, &options, style)
        });
    }
}

#[test]
fn gantt_charts() {
    for n in [1, 40, 10_000] {
        let mut rows: Vec<GanttRow> = (0..n)
            .map(|i| {
                let start = (i / 6 * 20) as f64;
                GanttRow {
                    resource: [
                        "DRAM read port",
                        "DRAM network",
                        "GlobalBuffer write",
                        "GlobalBuffer read",
                        "PE 0",
                        "PE 1",
                    ][i % 6]
                        .into(),
                    start: start + (i % 6) as f64 * 3.0,
                    end: start + (i % 6) as f64 * 3.0 + 8.0 + (i % 5) as f64,
                    kind: if i % 6 > 3 {
                        "compute"
                    } else {
                        ["Weights", "Inputs", "Outputs"][i % 3]
                    }
                    .into(),
                    label: Some(format!("{i}")),
                }
            })
            .collect();
        if n > 1 {
            let end = rows.iter().map(|r| r.end).fold(0.0, f64::max);
            rows.push(GanttRow {
                resource: SKIPPED.into(),
                start: end,
                end: end * 1.3,
                kind: SKIPPED.into(),
                label: Some("repeats 12 times".into()),
            });
        }
        check(&format!("gantt-{n}"), |style| {
            gantt(&rows, &GanttOptions::default(), style)
        });
    }
}

#[test]
fn maps_of_pes_and_links() {
    let options = HeatOptions {
        label: "busy [% of cycles]".into(),
        x_label: "PE column".into(),
        y_label: "PE row".into(),
        range: Some((0.0, 100.0)),
    };
    for (columns, lines) in [(1, 1), (4, 4), (14, 12), (100, 100)] {
        let rows: Vec<HeatRow> = (0..columns)
            .flat_map(|x| {
                (0..lines).map(move |y| HeatRow {
                    x,
                    y,
                    value: ((x * 37 + y * 11) % 101) as f64,
                })
            })
            .collect();
        check(&format!("heat-{columns}"), |style| heat(&rows, &options, style));
        if columns > 1 {
            let mut rows = Vec::new();
            for x in 0..columns - 1 {
                for y in 0..lines {
                    rows.push(LinkRow {
                        from_x: x,
                        from_y: y,
                        to_x: x + 1,
                        to_y: y,
                        value: (1000 * (columns - x)) as f64,
                    });
                    rows.push(LinkRow {
                        from_x: x + 1,
                        from_y: y,
                        to_x: x,
                        to_y: y,
                        value: (300 * (columns - x)) as f64,
                    });
                }
            }
            let options = HeatOptions {
                label: "traffic [bit]".into(),
                range: None,
                ..options.clone()
            };
            check(&format!("links-{columns}"), |style| links(&rows, &options, style));
        }
    }
}

#[test]
fn occupancy_over_time() {
    for n in [1, 40, 10_000] {
        let rows: Vec<OccupancyRow> = (0..n)
            .map(|i| OccupancyRow {
                buffer: ["GlobalBuffer Weights", "GlobalBuffer Inputs", "PE 0 Outputs"][i % 3].into(),
                cycle: (i * 13) as f64,
                held: ((i / 3) % 3) as f64,
                capacity: Some(2.0),
            })
            .collect();
        check(&format!("occupancy-{n}"), |style| {
            occupancy(&rows, &OccupancyOptions::default(), style)
        });
    }
}

#[test]
fn tables_of_spaces() {
    for n in [1, 60] {
        let rows: Vec<SpaceRow> = (0..n)
            .flat_map(|i| {
                ["all mappings", "valid", "pruned"]
                    .into_iter()
                    .enumerate()
                    .map(move |(s, space)| SpaceRow {
                        problem: layer(i),
                        space: space.into(),
                        log10_size: 20.0 / (1.0 + s as f64) + i as f64 / 7.0,
                    })
            })
            .collect();
        check(&format!("space-{n}"), |style| space(&rows, style));
    }
}
