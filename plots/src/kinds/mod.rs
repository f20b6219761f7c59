//! The kinds of figures: one file each.

pub(crate) mod bars;
pub(crate) mod convergence;
pub(crate) mod gantt;
pub(crate) mod heat;
pub(crate) mod layers;
pub(crate) mod lines;
pub(crate) mod occupancy;
pub(crate) mod pareto;
pub(crate) mod roofline;
pub(crate) mod scatter;
pub(crate) mod space;
pub(crate) mod stacked;

use crate::PlotError;
use crate::style::SERIES;

/// The different names in the order in which they first occur.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    let mut order = Vec::new();
    for name in names {
        if seen.insert(name) {
            order.push(name.to_string());
        }
    }
    order
}

fn position(names: &[String], name: &str) -> usize {
    names.iter().position(|n| n == name).unwrap_or(0)
}

/// More series than can be told apart are refused.
fn check_series(series: &[String]) -> Result<(), PlotError> {
    match series.len() {
        0..=SERIES => Ok(()),
        found => Err(PlotError::TooMany {
            what: "series",
            found,
            most: SERIES,
            hint: "choose some, or sum the smallest",
        }),
    }
}

/// NaN and infinity are refused; on a log scale also what is not above 0.
fn check_value(row: impl Fn() -> String, what: &str, value: f64, positive: bool) -> Result<(), PlotError> {
    if !value.is_finite() {
        let message = format!("{what} is {value}; expected a finite number");
        return Err(PlotError::value(row(), message));
    }
    if positive && value <= 0.0 {
        let message = format!("{what} is {value}; expected a number above 0");
        return Err(PlotError::value(row(), message));
    }
    Ok(())
}

fn empty(what: &str) -> PlotError {
    PlotError::Empty(what.to_string())
}

/// The points of a line, sorted along it, without those that fall on the tenth of a point of the one before.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::with_capacity(points.len().min(4096));
    for (i, &point) in points.iter().enumerate() {
        let near = kept
            .last()
            .is_some_and(|last| (last.0 - point.0).abs() < 0.1 && (last.1 - point.1).abs() < 0.1);
        if !near || i + 1 == points.len() {
            kept.push(point);
        }
    }
    kept
}

/// Positions of the points of a cloud that can be seen: of those on the same half point, the first.
fn visible(points: &[(f64, f64)]) -> Vec<usize> {
    let mut seen = std::collections::BTreeSet::new();
    let cell = |v: f64| (v * 2.0).round() as i64;
    (0..points.len())
        .filter(|&i| seen.insert((cell(points[i].0), cell(points[i].1))))
        .collect()
}
