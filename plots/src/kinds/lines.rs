//! Lines with markers: a quantity over another, one line per series.

use super::{check_series, check_value, distinct, empty};
use crate::axis::{Axis, Scale};
use crate::frame::{Entry, Frame, Horizontal, Swatch, Vertical};
use crate::row::row;
use crate::style::Style;
use crate::{Figure, PlotError, write_csv};

row! {
    /// One point of a line.
    LineRow {
        /// The line that it belongs to.
        series: String,
        /// Its place on the horizontal axis.
        x: f64,
        /// Its place on the vertical axis.
        y: f64,
    }
}

/// How lines are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct LineOptions {
    /// Label of the horizontal axis, with its unit.
    pub x_label: String,
    /// Label of the vertical axis, with its unit.
    pub y_label: String,
    /// Scale of the horizontal axis.
    pub x_scale: Scale,
    /// Scale of the vertical axis.
    pub y_scale: Scale,
    /// The vertical axis starts at 0, where it is linear.
    pub from_zero: bool,
}

/// Markers on one line; with more, they are left out.
const MARKERS: usize = 40;

/// Lines through the points of each series, from left to right.
///
/// # Errors
/// Without rows, for values that are not finite or not above 0 on a log scale, or too many series.
pub fn lines(rows: &[LineRow], options: &LineOptions, style: &Style) -> Result<Figure, PlotError> {
    if rows.is_empty() {
        return Err(empty("lines need at least one point"));
    }
    let series = distinct(rows.iter().map(|row| row.series.as_str()));
    check_series(&series)?;
    for row in rows {
        check_value(|| row.series.clone(), "x", row.x, options.x_scale == Scale::Log)?;
        check_value(|| row.series.clone(), "y", row.y, options.y_scale == Scale::Log)?;
    }
    let colors = style.theme.colors();
    let frame = Frame {
        legend: match series.len() {
            1 => Vec::new(),
            _ => series
                .iter()
                .enumerate()
                .map(|(i, name)| Entry {
                    text: name.clone(),
                    look: colors.series(i),
                    swatch: Swatch::LineMarker,
                })
                .collect(),
        },
        x: Horizontal::Values {
            axis: Axis::covering(rows.iter().map(|r| r.x), options.x_scale, false, 6),
            label: options.x_label.clone(),
        },
        y: Vertical::Values {
            axis: Axis::covering(rows.iter().map(|r| r.y), options.y_scale, options.from_zero, 6),
            label: options.y_label.clone(),
        },
        proportion: 0.62,
        least_height: 0.0,
        right: 0.0,
        grid: true,
    };
    let svg = frame.draw(style, |canvas, plot| {
        for (i, name) in series.iter().enumerate() {
            let look = colors.series(i);
            let mut points: Vec<(f64, f64)> = rows.iter().filter(|r| r.series == *name).map(|r| (r.x, r.y)).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let points: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (plot.x(x), plot.y(y))).collect();
            let thinned = super::thinned(&points);
            if thinned.len() > 1 {
                canvas.dashed(&thinned, look.dash, look.color, 1.2);
            }
            if points.len() <= MARKERS {
                points
                    .iter()
                    .for_each(|&at| canvas.marker(at, look.marker, 2.4, look.color));
            }
        }
    })?;
    Ok(Figure::new(svg, write_csv(rows)))
}
