//! What buffers and FIFOs hold over time.

use super::{check_series, check_value, distinct, empty};
use crate::axis::{Axis, Scale};
use crate::frame::{Entry, Frame, Horizontal, Swatch, Vertical};
use crate::row::row;
use crate::style::Style;
use crate::{Figure, PlotError, write_csv};

row! {
    /// A change of what a buffer holds.
    OccupancyRow {
        /// The buffer.
        buffer: String,
        /// From this cycle on …
        cycle: f64,
        /// … it holds this much, at least 0.
        held: f64,
        /// What it can hold.
        capacity: Option<f64>,
    }
}

/// How occupancy is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct OccupancyOptions {
    /// Label of the vertical axis, with its unit.
    pub y_label: String,
    /// Label of the horizontal axis, with its unit.
    pub x_label: String,
}

impl Default for OccupancyOptions {
    fn default() -> Self {
        OccupancyOptions {
            y_label: "held [slots]".to_string(),
            x_label: "time [cycles]".to_string(),
        }
    }
}

/// A stepped line per buffer, and thin lines at the capacities. Every line ends at the last change of any buffer.
///
/// # Errors
/// Without rows, for values that are not finite or below 0, for a buffer that holds more than it can, or too many
/// buffers.
pub fn occupancy(rows: &[OccupancyRow], options: &OccupancyOptions, style: &Style) -> Result<Figure, PlotError> {
    if rows.is_empty() {
        return Err(empty("occupancy needs at least one change"));
    }
    let buffers = distinct(rows.iter().map(|row| row.buffer.as_str()));
    check_series(&buffers)?;
    for row in rows {
        let name = || format!("{} at cycle {}", row.buffer, row.cycle);
        check_value(name, "cycle", row.cycle, false)?;
        check_value(name, "held", row.held, false)?;
        if row.held < 0.0 {
            let message = format!("held is {}; expected at least 0", row.held);
            return Err(PlotError::value(name(), message));
        }
        if let Some(capacity) = row.capacity.filter(|c| row.held > *c) {
            let message = format!("held is {}, more than the capacity of {capacity}", row.held);
            return Err(PlotError::value(name(), message));
        }
    }
    let colors = style.theme.colors();
    let cycles = || rows.iter().map(|r| r.cycle);
    let last = cycles().fold(f64::NEG_INFINITY, f64::max);
    let first = cycles().fold(f64::INFINITY, f64::min);
    let frame = Frame {
        legend: buffers
            .iter()
            .enumerate()
            .map(|(i, name)| Entry {
                text: name.clone(),
                look: colors.series(i),
                swatch: Swatch::Line,
            })
            .collect(),
        x: Horizontal::Values {
            axis: match last > first {
                true => Axis::exactly(first, last, 6),
                false => Axis::covering([first], Scale::Linear, false, 4),
            },
            label: options.x_label.clone(),
        },
        y: Vertical::Values {
            axis: held_axis(rows),
            label: options.y_label.clone(),
        },
        proportion: 0.55,
        least_height: 0.0,
        right: 0.0,
        grid: true,
    };
    let svg = frame.draw(style, |canvas, plot| {
        for (i, name) in buffers.iter().enumerate() {
            let look = colors.series(i);
            let mut of: Vec<&OccupancyRow> = rows.iter().filter(|r| r.buffer == *name).collect();
            of.sort_by(|a, b| a.cycle.total_cmp(&b.cycle));
            if let Some(capacity) = of.iter().find_map(|r| r.capacity) {
                let y = plot.y(capacity);
                canvas.dashed(
                    &[(plot.area.left, y), (plot.area.right, y)],
                    &[1.0, 1.5],
                    look.color,
                    0.7,
                );
            }
            // Lines at the same height are set apart by half a point each.
            let shift = i as f64 * 0.6;
            let mut points: Vec<(f64, f64)> = Vec::new();
            for row in &of {
                let (x, y) = (plot.x(row.cycle), plot.y(row.held) - shift);
                if let Some(before) = points.last() {
                    points.push((x, before.1));
                }
                points.push((x, y));
            }
            if let Some(end) = points.last().copied() {
                points.push((plot.x(last), end.1));
            }
            canvas.dashed(&super::thinned(&points), look.dash, look.color, 1.0);
        }
    })?;
    Ok(Figure::new(svg, write_csv(rows)))
}

/// What is held is counted in whole slots in most files: no ticks between them then.
fn held_axis(rows: &[OccupancyRow]) -> Axis {
    let values = || rows.iter().flat_map(|r| [r.held, r.capacity.unwrap_or(0.0)]);
    let mut axis = Axis::covering(values(), Scale::Linear, true, 6);
    if values().all(|value| value.fract() == 0.0) && axis.ticks.iter().filter(|(v, _)| v.fract() == 0.0).count() > 1 {
        axis.ticks.retain(|(value, _)| value.fract() == 0.0);
    }
    axis
}
