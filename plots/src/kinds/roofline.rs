//! Roofline: what a machine could compute at an intensity, and what was reached (Williams, Waterman and Patterson,
//! CACM 52(4), 2009).

use super::{check_series, check_value, distinct, empty, visible};
use crate::axis::{Axis, Scale, number};
use crate::frame::{Entry, Frame, Horizontal, Swatch, Vertical};
use crate::row::row;
use crate::style::{Look, Style};
use crate::{Figure, PlotError, write_csv};

row! {
    /// One point below a roof.
    RoofRow {
        /// What it is: a layer.
        name: String,
        /// What it is one of: a machine, a scheduler.
        series: String,
        /// Operations per byte moved to or from the outermost level.
        intensity: f64,
        /// Operations per cycle that were reached.
        throughput: f64,
        /// Operations per cycle that the machine can do.
        peak: f64,
        /// Bytes per cycle that its outermost level can move.
        bandwidth: f64,
    }
}

/// How a roofline is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct RoofOptions {
    /// Label of the horizontal axis, with its unit.
    pub x_label: String,
    /// Label of the vertical axis, with its unit.
    pub y_label: String,
}

impl Default for RoofOptions {
    fn default() -> Self {
        RoofOptions {
            x_label: "intensity [MACs per byte]".to_string(),
            y_label: "throughput [MACs per cycle]".to_string(),
        }
    }
}

/// Points below the roof of their machine, both axes logarithmic. There is a roof for every pair of peak and bandwidth.
/// A point above its roof by more than a thousandth is an error: one of its numbers is wrong.
///
/// # Errors
/// Without rows, for values that are not finite and above 0, for points above their roof, or too many series.
pub fn roofline(rows: &[RoofRow], options: &RoofOptions, style: &Style) -> Result<Figure, PlotError> {
    if rows.is_empty() {
        return Err(empty("a roofline needs at least one point"));
    }
    let series = distinct(rows.iter().map(|row| row.series.as_str()));
    check_series(&series)?;
    let mut roofs: Vec<(f64, f64)> = Vec::new();
    for row in rows {
        let name = || format!("{}, {}", row.name, row.series);
        for (what, value) in [
            ("intensity", row.intensity),
            ("throughput", row.throughput),
            ("peak", row.peak),
            ("bandwidth", row.bandwidth),
        ] {
            check_value(name, what, value, true)?;
        }
        let roof = row.peak.min(row.intensity * row.bandwidth);
        if row.throughput > roof * 1.001 {
            let message = format!(
                "throughput {} is above the roof of {} at intensity {}",
                row.throughput, roof, row.intensity
            );
            return Err(PlotError::value(name(), message));
        }
        if !roofs.contains(&(row.peak, row.bandwidth)) {
            roofs.push((row.peak, row.bandwidth));
        }
    }
    check_series(&roofs.iter().map(|r| format!("{r:?}")).collect::<Vec<_>>())?;
    let colors = style.theme.colors();
    let roof_look = |i: usize| Look {
        color: colors.ink,
        dash: colors.series(i).dash,
        ..colors.series(i)
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
    legend.extend(roofs.iter().enumerate().map(|(i, (peak, bandwidth))| Entry {
        text: format!("roof: {} per cycle, {} B per cycle", number(*peak), number(*bandwidth)),
        look: roof_look(i),
        swatch: Swatch::Line,
    }));
    // The ridge of every roof is in the picture.
    let ridge = roofs.iter().map(|(peak, bandwidth)| peak / bandwidth);
    let x = Axis::covering(rows.iter().map(|r| r.intensity).chain(ridge), Scale::Log, false, 6);
    let tops = roofs.iter().map(|(peak, _)| *peak);
    let y = Axis::covering(rows.iter().map(|r| r.throughput).chain(tops), Scale::Log, false, 6);
    let (low, high) = (x.low, x.high);
    let frame = Frame {
        legend,
        x: Horizontal::Values {
            axis: x,
            label: options.x_label.clone(),
        },
        y: Vertical::Values {
            axis: y.clone(),
            label: options.y_label.clone(),
        },
        proportion: 0.75,
        least_height: 0.0,
        right: 0.0,
        grid: true,
    };
    let svg = frame.draw(style, |canvas, plot| {
        for (i, &(peak, bandwidth)) in roofs.iter().enumerate() {
            // From where the slope enters the picture: below, places are clamped.
            let from = low.max(y.low / bandwidth);
            let points = [(from, bandwidth * from), (peak / bandwidth, peak), (high, peak)];
            let points: Vec<(f64, f64)> = points.into_iter().map(|(x, y)| (plot.x(x), plot.y(y))).collect();
            canvas.dashed(&points, roof_look(i).dash, colors.ink, 1.0);
        }
        let points: Vec<(f64, f64)> = rows
            .iter()
            .map(|r| (plot.x(r.intensity), plot.y(r.throughput)))
            .collect();
        for i in visible(&points) {
            let look = colors.series(super::position(&series, &rows[i].series));
            canvas.marker(points[i], look.marker, 2.4, look.color);
        }
    })?;
    Ok(Figure::new(svg, write_csv(rows)))
}
