//! What every kind draws, by its elements and numbers: pixels may change, these may not without being looked at.

mod common;

use cyclonest_plots::*;
use resvg::usvg::{Group, Node};

/// Filled and stroked paths by colour, and texts in reading order.
fn structure(figure: &Figure) -> String {
    fn count(group: &Group, paths: &mut std::collections::BTreeMap<String, usize>) {
        use resvg::usvg::Paint;
        let color = |paint: &Paint| match paint {
            Paint::Color(c) => format!("#{:02X}{:02X}{:02X}", c.red, c.green, c.blue),
            _ => "pattern".to_string(),
        };
        for node in group.children() {
            match node {
                Node::Group(group) => count(group, paths),
                Node::Path(path) => {
                    if let Some(fill) = path.fill() {
                        *paths.entry(format!("fill {}", color(fill.paint()))).or_default() += 1;
                    }
                    if let Some(stroke) = path.stroke() {
                        *paths.entry(format!("stroke {}", color(stroke.paint()))).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
    }
    let tree = common::tree(figure.svg());
    let mut paths = std::collections::BTreeMap::new();
    count(tree.root(), &mut paths);
    let texts: Vec<String> = common::texts(&tree).into_iter().map(|t| t.text).collect();
    let paths: Vec<String> = paths.iter().map(|(what, n)| format!("{n} × {what}")).collect();
    let notes: Vec<String> = figure
        .notes()
        .iter()
        .map(|(name, value)| format!("{name} = {value:.6}"))
        .collect();
    format!(
        "{}\n{}\n{}\n{}",
        paths.join("\n"),
        texts.join(" | "),
        notes.join("\n"),
        figure.csv()
    )
}

fn bar(group: &str, series: &str, value: f64) -> BarRow {
    BarRow {
        group: group.into(),
        series: series.into(),
        value,
    }
}

fn speedups() -> Vec<BarRow> {
    vec![
        bar("conv1", "anneal", 1.5),
        bar("conv1", "milp", 2.0),
        bar("conv2", "anneal", 0.75),
        bar("conv2", "milp", 4.5),
    ]
}

/// The figure's CSV gives the same figure again.
fn assert_round_trip<T: Row>(figure: &Figure, draw: impl Fn(&[T]) -> Result<Figure, PlotError>) {
    let rows: Vec<T> = read_csv("figure.csv", figure.csv()).expect("its own CSV");
    assert_eq!(draw(&rows).expect("drawable").svg(), figure.svg());
}

macro_rules! structure {
    ($($name:ident: $row:ty, $rows:expr, $draw:expr;)*) => {$(
        #[test]
        fn $name() {
            let draw: fn(&[$row]) -> Result<Figure, PlotError> = $draw;
            let figure = draw(&$rows).expect("drawable");
            insta::assert_snapshot!(structure(&figure));
            common::assert_legible(stringify!($name), &figure);
            assert_round_trip(&figure, draw);
            // The same rows, the same bytes.
            assert_eq!(draw(&$rows).expect("drawable"), figure);
        }
    )*};
}

structure! {
    grouped_bars: BarRow, speedups(), |rows| bars(rows, &BarOptions::speedup(), &Style::default());
    sorted_layers: BarRow, speedups(), |rows| layers(rows, &BarOptions::speedup(), &Style::default());
    reuse_factors: BarRow, [bar("GB", "Weights", 1.0), bar("GB", "Inputs", 64.0), bar("Reg", "Weights", 5000.0)],
        |rows| bars(rows, &BarOptions::reuse(), &Style::default());
    stacks: StackRow, [("a", "DRAM", Some("Weights"), 3.0), ("a", "DRAM", Some("Inputs"), 4.0), ("a", "MACs", None, 2.0),
        ("b", "MACs", None, 5.0)].map(|(bar, part, detail, value)| StackRow {
            bar: bar.into(), part: part.into(), detail: detail.map(Into::into), value,
        }),
        |rows| stacked(rows, &StackOptions { y_label: "energy [pJ]".into(), x_label: "layer".into(), shares: false },
            &Style::default());
    roof: RoofRow, [("a", 0.5, 4.0), ("b", 100.0, 200.0)].map(|(name, intensity, throughput)| RoofRow {
            name: name.into(), series: "simba".into(), intensity, throughput, peak: 256.0, bandwidth: 16.0,
        }),
        |rows| roofline(rows, &RoofOptions::default(), &Style::default());
    model_against_simulation: ScatterRow, [("a", 100.0, 110.0), ("b", 2000.0, 1900.0), ("c", 30_000.0, 30_000.0)]
        .map(|(name, simulated, modelled)| ScatterRow { name: name.into(), series: "exact".into(), simulated, modelled }),
        |rows| scatter(rows, &ScatterOptions::cycles(), &Style::default());
    cloud: CloudRow, [(1.0, 9.0), (2.0, 4.0), (3.0, 5.0), (4.0, 1.0)].map(|(x, y)| CloudRow {
            series: "greedy".into(), x, y, name: None,
        }),
        |rows| pareto(rows, &CloudOptions { x_label: "area [mm²]".into(), y_label: "latency [cycles]".into(),
            x_scale: Scale::Linear, y_scale: Scale::Linear, x_better: Better::Lower, y_better: Better::Lower },
            &Style::default());
    timeline: GanttRow, [("DRAM read", 0.0, 10.0, "Weights", Some("K0")), ("PE 0", 10.0, 30.0, "computes", None),
        ("skipped", 30.0, 90.0, "skipped", Some("repeats 3 times"))].map(|(resource, start, end, kind, label)| GanttRow {
            resource: resource.into(), start, end, kind: kind.into(), label: label.map(Into::into),
        }),
        |rows| gantt(rows, &GanttOptions::default(), &Style::default());
    cells: HeatRow, [(0, 0, 10.0), (1, 0, 90.0), (0, 1, 50.0)].map(|(x, y, value)| HeatRow { x, y, value }),
        |rows| heat(rows, &HeatOptions { label: "computing [%]".into(), x_label: "column".into(), y_label: "row".into(),
            range: Some((0.0, 100.0)) }, &Style::default());
    mesh: LinkRow, [(0, 0, 1, 0, 100.0), (1, 0, 1, 1, 40.0)].map(|(from_x, from_y, to_x, to_y, value)| LinkRow {
            from_x, from_y, to_x, to_y, value,
        }),
        |rows| links(rows, &HeatOptions { label: "traffic [bit]".into(), x_label: "column".into(), y_label: "row".into(),
            range: None }, &Style::default());
    held: OccupancyRow, [("GB", 0.0, 1.0), ("GB", 10.0, 2.0), ("FIFO", 5.0, 1.0)].map(|(buffer, cycle, held)| OccupancyRow {
            buffer: buffer.into(), cycle, held, capacity: Some(2.0),
        }),
        |rows| occupancy(rows, &OccupancyOptions::default(), &Style::default());
    sizes: SpaceRow, [("conv1", "all", 24.2), ("conv1", "valid", 3.0), ("conv2", "all", 0.0)]
        .map(|(problem, space, log10_size)| SpaceRow { problem: problem.into(), space: space.into(), log10_size }),
        |rows| space(rows, &Style::default());
    curves: LineRow, [("a", 1.0, 5.0), ("a", 2.0, 3.0), ("b", 1.0, 4.0)].map(|(series, x, y)| LineRow {
            series: series.into(), x, y,
        }),
        |rows| lines(rows, &LineOptions { x_label: "buffer [KiB]".into(), y_label: "latency [cycles]".into(),
            x_scale: Scale::Linear, y_scale: Scale::Linear, from_zero: true }, &Style::default());
}

#[test]
fn convergence_of_two_seeds() {
    let rows = [(0, 1.0, 10.0), (1, 2.0, 20.0), (0, 4.0, 4.0)].map(|(seed, evaluations, best)| ConvergenceRow {
        series: "anneal".into(),
        seed,
        evaluations,
        best,
    });
    let options = ConvergenceOptions {
        y_label: "best [cycles]".into(),
        x_scale: Scale::Log,
        y_scale: Scale::Linear,
    };
    let figure = convergence(&rows, &options, &Style::default()).expect("drawable");
    insta::assert_snapshot!(structure(&figure));
    common::assert_legible("convergence", &figure);
}

#[test]
fn a_bar_is_as_high_as_its_value() {
    let figure = bars(
        &[bar("a", "s", 1.0), bar("b", "s", 2.0)],
        &BarOptions {
            geomean: false,
            reference: None,
            ..BarOptions::speedup()
        },
        &Style::default(),
    )
    .expect("drawable");
    let heights: Vec<f64> = figure
        .svg()
        .lines()
        .filter(|line| line.starts_with("<rect") && line.contains("#0072B2"))
        .map(|line| {
            line.split("height=\"")
                .nth(1)
                .and_then(|t| t.split('"').next())
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    assert_eq!(heights.len(), 2);
    assert!((heights[1] / heights[0] - 2.0).abs() < 0.002, "{heights:?}");
}

#[test]
fn all_formats_are_written_and_pdf_has_the_font() {
    let figure = bars(&speedups(), &BarOptions::speedup(), &Style::default()).expect("drawable");
    let png = figure.png(200.0).expect("PNG");
    assert_eq!(&png[1..4], b"PNG");
    let width = u32::from_be_bytes(png[16..20].try_into().unwrap());
    assert_eq!(width, (3.487_f64 * 200.0).round() as u32);
    let pdf = figure.pdf().expect("PDF");
    let text = String::from_utf8_lossy(&pdf);
    assert!(text.starts_with("%PDF") && text.contains("Arimo") && text.contains("/FontFile"));
    // 3.487 in are 251.064 points.
    assert!(text.contains("251.06"), "no page of this width");
    assert!(figure.png(5.0).is_err());
}
