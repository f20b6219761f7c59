//! Convergence of a search: the best found so far over the evaluations, as median and middle half of the seeds.

use std::collections::BTreeMap;

use super::{check_series, check_value, distinct, empty};
use crate::axis::{Axis, Scale};
use crate::frame::{Entry, Frame, Horizontal, Swatch, Vertical};
use crate::row::{row, table};
use crate::stats::quantile;
use crate::style::Style;
use crate::{Figure, PlotError};

row! {
    /// An improvement.
    ConvergenceRow {
        /// The search.
        series: String,
        /// Its seed.
        seed: u64,
        /// Evaluations when it was found.
        evaluations: f64,
        /// The best so far.
        best: f64,
    }
}

/// How convergence is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvergenceOptions {
    /// Label of the vertical axis, with its unit.
    pub y_label: String,
    /// Scale of the evaluations.
    pub x_scale: Scale,
    /// Scale of the objective.
    pub y_scale: Scale,
}

/// Statistics at one number of evaluations.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    evaluations: f64,
    lower: f64,
    median: f64,
    upper: f64,
}

/// The best found so far: a step line for the median over the seeds of a series and a band for its middle half. A line
/// begins where every seed has found something and ends at the last improvement of any series. The CSV has the
/// statistics.
///
/// # Errors
/// Without rows, for values that are not finite or not above 0 on a log scale, or too many series.
pub fn convergence(rows: &[ConvergenceRow], options: &ConvergenceOptions, style: &Style) -> Result<Figure, PlotError> {
    if rows.is_empty() {
        return Err(empty("convergence needs at least one improvement"));
    }
    let series = distinct(rows.iter().map(|row| row.series.as_str()));
    check_series(&series)?;
    for row in rows {
        let name = || format!("{}, seed {}", row.series, row.seed);
        check_value(name, "evaluations", row.evaluations, options.x_scale == Scale::Log)?;
        check_value(name, "best", row.best, options.y_scale == Scale::Log)?;
    }
    let last = rows.iter().map(|r| r.evaluations).fold(0.0, f64::max);
    let steps: Vec<Vec<Step>> = series.iter().map(|name| steps(rows, name, last)).collect();
    let seeds: Vec<usize> = series
        .iter()
        .map(|name| {
            let seeds: std::collections::BTreeSet<u64> =
                rows.iter().filter(|r| r.series == *name).map(|r| r.seed).collect();
            seeds.len()
        })
        .collect();
    let colors = style.theme.colors();
    let values = || steps.iter().flatten();
    let frame = Frame {
        legend: series
            .iter()
            .enumerate()
            .map(|(i, name)| Entry {
                text: match seeds[i] {
                    1 => name.clone(),
                    n => format!("{name} ({n} seeds)"),
                },
                look: colors.series(i),
                swatch: Swatch::Line,
            })
            .collect(),
        x: Horizontal::Values {
            axis: Axis::covering(values().map(|s| s.evaluations), options.x_scale, false, 6),
            label: "evaluations".to_string(),
        },
        y: Vertical::Values {
            axis: Axis::covering(values().flat_map(|s| [s.lower, s.upper]), options.y_scale, false, 6),
            label: options.y_label.clone(),
        },
        proportion: 0.62,
        least_height: 0.0,
        right: 0.0,
        grid: true,
    };
    let svg = frame.draw(style, |canvas, plot| {
        let outline = |steps: &[Step], value: fn(&Step) -> f64| -> Vec<(f64, f64)> {
            let mut points = Vec::new();
            for (i, step) in steps.iter().enumerate() {
                let x = plot.x(step.evaluations);
                if i > 0 {
                    points.push((x, plot.y(value(&steps[i - 1]))));
                }
                points.push((x, plot.y(value(step))));
            }
            super::thinned(&points)
        };
        for (i, steps) in steps.iter().enumerate() {
            let mut band = outline(steps, |s| s.upper);
            band.extend(outline(steps, |s| s.lower).into_iter().rev());
            if seeds[i] > 1 && band.len() > 3 {
                canvas.polygon(&band, colors.series(i).color, 0.22);
            }
        }
        for (i, steps) in steps.iter().enumerate() {
            let look = colors.series(i);
            let line = outline(steps, |s| s.median);
            match line.len() {
                0 => {}
                1 => canvas.marker(line[0], look.marker, 2.4, look.color),
                _ => canvas.dashed(&line, look.dash, look.color, 1.3),
            }
        }
    })?;
    let header = [
        "series",
        "evaluations",
        "median",
        "lower_quartile",
        "upper_quartile",
        "seeds",
    ]
    .map(String::from);
    let lines = steps.iter().enumerate().flat_map(|(i, steps)| {
        let (name, seeds) = (&series[i], seeds[i]);
        steps.iter().map(move |s| {
            let numbers = [s.evaluations, s.median, s.lower, s.upper].map(|v| v.to_string());
            let [evaluations, median, lower, upper] = numbers;
            vec![name.clone(), evaluations, median, lower, upper, seeds.to_string()]
        })
    });
    Ok(Figure::new(svg, table(&header, lines)))
}

/// Statistics of a series wherever one of its seeds improves, and at the end.
fn steps(rows: &[ConvergenceRow], series: &str, last: f64) -> Vec<Step> {
    let mut of: Vec<&ConvergenceRow> = rows.iter().filter(|r| r.series == series).collect();
    of.sort_by(|a, b| a.evaluations.total_cmp(&b.evaluations));
    let mut now: BTreeMap<u64, Option<f64>> = of.iter().map(|row| (row.seed, None)).collect();
    let mut steps: Vec<Step> = Vec::new();
    for (i, row) in of.iter().enumerate() {
        now.insert(row.seed, Some(row.best));
        let more = of.get(i + 1).is_some_and(|next| next.evaluations == row.evaluations);
        let Some(mut found) = now.values().copied().collect::<Option<Vec<f64>>>() else {
            continue;
        };
        if more {
            continue;
        }
        found.sort_by(f64::total_cmp);
        let at = |fraction| quantile(&found, fraction).unwrap_or(f64::NAN);
        steps.push(Step {
            evaluations: row.evaluations,
            lower: at(0.25),
            median: at(0.5),
            upper: at(0.75),
        });
    }
    if let Some(&end) = steps.last().filter(|end| end.evaluations < last) {
        steps.push(Step {
            evaluations: last,
            ..end
        });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_taken_once_all_seeds_have_found_something() {
        let row = |seed, evaluations, best| ConvergenceRow {
            series: "s".into(),
            seed,
            evaluations,
            best,
        };
        let rows = [row(0, 1.0, 10.0), row(1, 3.0, 20.0), row(0, 5.0, 4.0), row(1, 5.0, 6.0)];
        let steps = steps(&rows, "s", 8.0);
        let medians: Vec<(f64, f64)> = steps.iter().map(|s| (s.evaluations, s.median)).collect();
        assert_eq!(medians, [(3.0, 15.0), (5.0, 5.0), (8.0, 5.0)]);
        assert_eq!((steps[0].lower, steps[0].upper), (12.5, 17.5));
    }
}
