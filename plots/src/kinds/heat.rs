//! Maps of a mesh: a value per PE, a value per link of the network.

use std::collections::BTreeMap;

use super::{check_value, empty};
use crate::axis::{Axis, Scale, number};
use crate::canvas::{Area, Canvas, Hold};
use crate::font;
use crate::frame::{Frame, Horizontal, Plot, Vertical};
use crate::row::row;
use crate::style::{Style, TYPE, readable_on};
use crate::{Figure, PlotError, write_csv};

row! {
    /// A cell of a map.
    HeatRow {
        /// Column, from 0.
        x: u64,
        /// Row, from 0.
        y: u64,
        /// Its value.
        value: f64,
    }
}

row! {
    /// A link between neighbours of a mesh, in one direction.
    LinkRow {
        /// Column where it begins.
        from_x: u64,
        /// Row where it begins.
        from_y: u64,
        /// Column where it ends.
        to_x: u64,
        /// Row where it ends.
        to_y: u64,
        /// Its value, at least 0.
        value: f64,
    }
}

/// How a map is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatOptions {
    /// What the colours mean, with the unit.
    pub label: String,
    /// What a column is.
    pub x_label: String,
    /// What a row is.
    pub y_label: String,
    /// Both ends of the colours; those of the data otherwise.
    pub range: Option<(f64, f64)>,
}

/// Cells on a side.
const SIDE: u64 = 256;

/// Room for the scale of colours.
const SCALE: f64 = 62.0;

/// A map of cells, (0, 0) in the upper left corner. Cells without a row stay empty. Where all values
/// fit, each stands in its cell.
///
/// # Errors
/// Without rows, for values that are not finite, for a cell that is given twice, or a side of more than 256 cells.
pub fn heat(rows: &[HeatRow], options: &HeatOptions, style: &Style) -> Result<Figure, PlotError> {
    if rows.is_empty() {
        return Err(empty("a map needs at least one cell"));
    }
    let mut cells = BTreeMap::new();
    for row in rows {
        let name = || format!("cell ({}, {})", row.x, row.y);
        check_value(name, "value", row.value, false)?;
        if cells.insert((row.x, row.y), row.value).is_some() {
            return Err(PlotError::value(name(), "is there twice; expected one value per cell"));
        }
    }
    let (columns, lines) = extent(rows.iter().map(|row| (row.x, row.y)))?;
    let range = range(options, rows.iter().map(|row| row.value));
    let colors = style.theme.colors();
    let svg = frame(columns, lines, options, style).draw(style, |canvas, plot| {
        let side = (plot.area.width() / columns as f64, plot.area.height() / lines as f64);
        let widest = cells
            .values()
            .map(|v| font::width(&number(*v), TYPE))
            .fold(0.0, f64::max);
        let written = widest + 3.0 <= side.0 && TYPE * 1.3 <= side.1;
        for (&(x, y), &value) in &cells {
            let ((left, right), (top, bottom)) = (plot.band(x as usize), plot.row(y as usize));
            let color = colors.ramp(range.fraction(value));
            // A little into the next cells, which cover it: no seam shows between them.
            let into = |place: u64, cells: u64| if place + 1 < cells { 0.4 } else { 0.0 };
            let area = Area {
                left,
                top,
                right: right + into(x, columns),
                bottom: bottom + into(y, lines),
            };
            canvas.fill(area, color);
            let text = number(value);
            if written {
                let middle = ((left + right) / 2.0, (top + bottom) / 2.0);
                canvas.text_centred(&text, middle, Hold::Middle, TYPE, readable_on(color));
            }
        }
        color_scale(canvas, plot, &range, &options.label);
    })?;
    Ok(Figure::new(svg, write_csv(rows)))
}

/// A map of a mesh's links: every link is a bar between its routers, coloured by its value; of two directions, each has
/// its side. Links without a row are thin lines.
///
/// # Errors
/// Without rows, for values that are not finite or below 0, for links between cells that are not neighbours or given
/// twice, or a side of more than 256 cells.
pub fn links(rows: &[LinkRow], options: &HeatOptions, style: &Style) -> Result<Figure, PlotError> {
    if rows.is_empty() {
        return Err(empty("a map needs at least one link"));
    }
    let mut known = BTreeMap::new();
    for row in rows {
        let name = || format!("link ({}, {}) to ({}, {})", row.from_x, row.from_y, row.to_x, row.to_y);
        check_value(name, "value", row.value, false)?;
        if row.value < 0.0 {
            let message = format!("value is {}; expected at least 0", row.value);
            return Err(PlotError::value(name(), message));
        }
        if row
            .from_x
            .abs_diff(row.to_x)
            .saturating_add(row.from_y.abs_diff(row.to_y))
            != 1
        {
            return Err(PlotError::value(name(), "does not join neighbours"));
        }
        if known
            .insert((row.from_x, row.from_y, row.to_x, row.to_y), row.value)
            .is_some()
        {
            return Err(PlotError::value(name(), "is there twice; expected one value per link"));
        }
    }
    let ends = rows.iter().flat_map(|r| [(r.from_x, r.from_y), (r.to_x, r.to_y)]);
    let (columns, lines) = extent(ends)?;
    let range = range(options, rows.iter().map(|row| row.value));
    let colors = style.theme.colors();
    let svg = frame(columns, lines, options, style).draw(style, |canvas, plot| {
        let at = |x: u64, y: u64| (plot.x(x as f64), plot.y(y as f64));
        let pitch = (plot.area.width() / columns as f64).min(plot.area.height() / lines as f64);
        let (router, thick) = (pitch * 0.17, (pitch * 0.13).clamp(0.6, 6.0));
        for y in 0..lines {
            for x in 0..columns {
                if x + 1 < columns {
                    canvas.line(at(x, y), at(x + 1, y), colors.grid, 0.5);
                }
                if y + 1 < lines {
                    canvas.line(at(x, y), at(x, y + 1), colors.grid, 0.5);
                }
            }
        }
        for (&(from_x, from_y, to_x, to_y), &value) in &known {
            let (from, to) = (at(from_x, from_y), at(to_x, to_y));
            let length = (to.0 - from.0).hypot(to.1 - from.1);
            let along = ((to.0 - from.0) / length, (to.1 - from.1) / length);
            // Traffic keeps to the right, so that opposite links stand beside each other.
            let aside = (-along.1 * thick * 0.6, along.0 * thick * 0.6);
            let point = |d: f64, s: f64| {
                (
                    from.0 + along.0 * d + aside.0 + -along.1 * s,
                    from.1 + along.1 * d + aside.1 + along.0 * s,
                )
            };
            let (start, tip) = (router, length - router);
            let neck = (tip - thick).max(start);
            let half = thick * 0.5;
            let arrow = [
                point(start, -half),
                point(neck, -half),
                point(tip, 0.0),
                point(neck, half),
                point(start, half),
            ];
            canvas.polygon(&arrow, colors.ramp(range.fraction(value)), 1.0);
            let mut outline = arrow.to_vec();
            outline.push(arrow[0]);
            canvas.path(&outline, colors.soft, 0.25);
        }
        for y in 0..lines {
            for x in 0..columns {
                let (x, y) = at(x, y);
                let area = Area {
                    left: x - router,
                    top: y - router,
                    right: x + router,
                    bottom: y + router,
                };
                canvas.fill(area, colors.paper);
                canvas.outline(area, colors.ink, 0.5);
            }
        }
        color_scale(canvas, plot, &range, &options.label);
    })?;
    Ok(Figure::new(svg, write_csv(rows)))
}

/// Columns and rows.
fn extent(cells: impl Iterator<Item = (u64, u64)>) -> Result<(u64, u64), PlotError> {
    let (x, y) = cells.fold((0, 0), |(x, y), cell| (cell.0.max(x), cell.1.max(y)));
    match x.max(y) {
        0..SIDE => Ok((x + 1, y + 1)),
        most => Err(PlotError::TooMany {
            what: "cells on a side",
            found: usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1),
            most: SIDE as usize,
            hint: "draw a part of the map",
        }),
    }
}

fn range(options: &HeatOptions, values: impl Iterator<Item = f64>) -> Axis {
    match options.range {
        Some((low, high)) if high > low => Axis::exactly(low, high, 5),
        _ => {
            let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
            match high > low {
                true => Axis::exactly(low, high, 5),
                false => Axis::covering([low], Scale::Linear, true, 4),
            }
        }
    }
}

fn frame(columns: u64, lines: u64, options: &HeatOptions, style: &Style) -> Frame {
    let names = |n: u64| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
    // Every so many, so that rows of less than a line's height can be read.
    let width = style.width.inches() * crate::style::POINTS;
    let side = (width - SCALE - 40.0) / columns as f64;
    let height = (side * lines as f64).clamp(60.0, width * 1.3);
    let every = (12.0 * lines as f64 / height).ceil().max(1.0) as u64;
    let across = (16.0 / side).ceil().max(1.0) as u64;
    let thin = |n: u64, every: u64| -> Vec<String> {
        let show = |(i, name): (usize, String)| {
            if (i as u64).is_multiple_of(every) {
                name
            } else {
                String::new()
            }
        };
        names(n).into_iter().enumerate().map(show).collect()
    };
    Frame {
        legend: Vec::new(),
        x: Horizontal::Columns {
            names: thin(columns, across),
            label: options.x_label.clone(),
        },
        y: Vertical::Categories {
            names: thin(lines, every),
            label: options.y_label.clone(),
        },
        proportion: 0.0,
        least_height: height + 40.0 + if style.title.is_some() { 16.0 } else { 0.0 },
        right: SCALE,
        grid: false,
    }
}

/// The colours and their values, on the right of the data.
fn color_scale(canvas: &mut Canvas<'_>, plot: &Plot, range: &Axis, label: &str) {
    const STEPS: usize = 40;
    let colors = plot.colors;
    let left = plot.area.right + 8.0;
    let height = plot.area.height();
    let bar = Area {
        left,
        top: plot.area.top,
        right: left + 9.0,
        bottom: plot.area.bottom,
    };
    for step in 0..STEPS {
        let part = Area {
            // A little into the next step, which covers it: no seam shows between them.
            top: (bar.bottom - height * (step + 1) as f64 / STEPS as f64 - 0.4).max(bar.top),
            bottom: bar.bottom - height * step as f64 / STEPS as f64,
            ..bar
        };
        canvas.fill(part, colors.ramp((step as f64 + 0.5) / STEPS as f64));
    }
    canvas.outline(bar, colors.ink, 0.5);
    let mut last = f64::INFINITY;
    for (value, text) in &range.ticks {
        let y = bar.bottom - range.fraction(*value) * height;
        // Clear of the edges of the page.
        if last - y >= TYPE * 1.3 && y - plot.area.top >= -1.0 {
            canvas.line((bar.right, y), (bar.right + 2.0, y), colors.ink, 0.5);
            canvas.text_centred(text, (bar.right + 3.5, y), Hold::Start, TYPE, colors.ink);
            last = y;
        }
    }
    let x = plot.area.right + SCALE - 3.0;
    let label = font::shortened(label, TYPE, height + 20.0);
    let half = font::width(&label, TYPE) / 2.0;
    let y = ((bar.top + bar.bottom) / 2.0).max(half + 4.0);
    canvas.text_upwards(&label, (x - TYPE * 0.35, y), Hold::Middle, TYPE, colors.ink);
}
