//! A cloud of designs with its Pareto front: area against throughput, energy against latency.

use super::{check_series, check_value, distinct, empty, visible};
use crate::axis::{Axis, Scale};
use crate::frame::{Entry, Frame, Horizontal, Swatch, Vertical};
use crate::row::{Row as _, row, table};
use crate::style::{Look, Style};
use crate::{Figure, PlotError};

row! {
    /// One design.
    CloudRow {
        /// What it is one of: a scheduler, a machine.
        series: String,
        /// Its place on the horizontal axis.
        x: f64,
        /// Its place on the vertical axis.
        y: f64,
        /// What it is; only for the CSV.
        name: Option<String>,
    }
}

/// Which values are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Small ones: energy, latency, area.
    Lower,
    /// Large ones: throughput.
    Higher,
}

/// How a cloud is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct CloudOptions {
    /// Label of the horizontal axis, with its unit.
    pub x_label: String,
    /// Label of the vertical axis, with its unit.
    pub y_label: String,
    /// Scale of the horizontal axis.
    pub x_scale: Scale,
    /// Scale of the vertical axis.
    pub y_scale: Scale,
    /// What is better on the horizontal axis.
    pub x_better: Better,
    /// What is better on the vertical axis.
    pub y_better: Better,
}

/// Positions of the points that no other point beats: none is at least as good in both and better in one. Of equal
/// points, the first. From the best x to the worst.
#[must_use]
pub fn front(points: &[(f64, f64)], x_better: Better, y_better: Better) -> Vec<usize> {
    let sign = |better, v: f64| match better {
        Better::Lower => v,
        Better::Higher => -v,
    };
    let cost = |i: usize| (sign(x_better, points[i].0), sign(y_better, points[i].1));
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (cost(a), cost(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let mut best = f64::INFINITY;
    order.retain(|&i| {
        let y = cost(i).1;
        let better = y < best;
        best = best.min(y);
        better
    });
    order
}

/// All designs as small points, and those of the front of all series together as large ones on a stepped line. The CSV
/// has the column `front` besides.
///
/// # Errors
/// Without rows, for values that are not finite or not above 0 on a log scale, or too many series.
pub fn pareto(rows: &[CloudRow], options: &CloudOptions, style: &Style) -> Result<Figure, PlotError> {
    if rows.is_empty() {
        return Err(empty("a cloud needs at least one design"));
    }
    let series = distinct(rows.iter().map(|row| row.series.as_str()));
    check_series(&series)?;
    for row in rows {
        let name = || row.name.clone().unwrap_or_else(|| row.series.clone());
        check_value(name, "x", row.x, options.x_scale == Scale::Log)?;
        check_value(name, "y", row.y, options.y_scale == Scale::Log)?;
    }
    let values: Vec<(f64, f64)> = rows.iter().map(|r| (r.x, r.y)).collect();
    let best = front(&values, options.x_better, options.y_better);
    let colors = style.theme.colors();
    let front_look = Look {
        color: colors.ink,
        dash: &[],
        ..colors.series(0)
    };
    let mut legend: Vec<Entry> = series
        .iter()
        .enumerate()
        .map(|(i, name)| Entry {
            text: name.clone(),
            look: colors.series(i),
            swatch: Swatch::Marker,
        })
        .collect();
    legend.push(Entry {
        text: "Pareto front".to_string(),
        look: front_look,
        swatch: Swatch::Line,
    });
    let frame = Frame {
        legend,
        x: Horizontal::Values {
            axis: Axis::covering(rows.iter().map(|r| r.x), options.x_scale, false, 6),
            label: options.x_label.clone(),
        },
        y: Vertical::Values {
            axis: Axis::covering(rows.iter().map(|r| r.y), options.y_scale, false, 6),
            label: options.y_label.clone(),
        },
        proportion: 0.7,
        least_height: 0.0,
        right: 0.0,
        grid: true,
    };
    let svg = frame.draw(style, |canvas, plot| {
        let points: Vec<(f64, f64)> = rows.iter().map(|r| (plot.x(r.x), plot.y(r.y))).collect();
        let look = |i: usize| colors.series(super::position(&series, &rows[i].series));
        let radius = if rows.len() > 300 { 1.1 } else { 1.6 };
        for i in visible(&points) {
            canvas.marker(points[i], look(i).marker, radius, look(i).color);
        }
        // What the front dominates is beyond its steps: from a point along x at its y, then to the next.
        let mut steps = Vec::new();
        for (n, &i) in best.iter().enumerate() {
            if n > 0 {
                steps.push((points[i].0, points[best[n - 1]].1));
            }
            steps.push(points[i]);
        }
        let steps = super::thinned(&steps);
        if steps.len() > 1 {
            canvas.path(&steps, colors.ink, 0.9);
        }
        let marked: Vec<(f64, f64)> = best.iter().map(|&i| points[i]).collect();
        for n in visible(&marked) {
            let i = best[n];
            canvas.marker(points[i], look(i).marker, 3.0, colors.ink);
            canvas.marker(points[i], look(i).marker, 2.2, look(i).color);
        }
    })?;
    let on_front: std::collections::BTreeSet<usize> = best.into_iter().collect();
    let mut header: Vec<String> = CloudRow::COLUMNS.iter().map(|c| c.name.to_string()).collect();
    header.push("front".to_string());
    let lines = rows.iter().enumerate().map(|(i, row)| {
        let mut cells = row.write();
        cells.push(on_front.contains(&i).to_string());
        cells
    });
    let size = on_front.len() as f64;
    Ok(Figure::new(svg, table(&header, lines)).with_note("designs on the front", size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_is_what_nothing_beats() {
        let points = [(1.0, 5.0), (2.0, 3.0), (2.0, 4.0), (3.0, 3.0), (4.0, 1.0), (1.0, 5.0)];
        assert_eq!(front(&points, Better::Lower, Better::Lower), [0, 1, 4]);
        assert_eq!(front(&points, Better::Higher, Better::Higher), [4, 3, 2, 0]);
        // By definition, pair by pair.
        for (x, y) in [(Better::Lower, Better::Higher), (Better::Higher, Better::Lower)] {
            let better = |b: Better, p: f64, q: f64| match b {
                Better::Lower => p < q,
                Better::Higher => p > q,
            };
            let beats = |p: (f64, f64), q: (f64, f64)| {
                !better(x, q.0, p.0) && !better(y, q.1, p.1) && (better(x, p.0, q.0) || better(y, p.1, q.1))
            };
            let mut found = front(&points, x, y);
            found.sort_unstable();
            let expected: Vec<usize> = (0..points.len())
                .filter(|&i| !points.iter().any(|&p| beats(p, points[i])) && !points[..i].contains(&points[i]))
                .collect();
            assert_eq!(found, expected);
        }
    }
}
