//! Gantt chart: what every port, network and PE does when.

use super::{check_series, check_value, distinct, empty};
use crate::axis::{Axis, Scale};
use crate::canvas::{Area, Hold};
use crate::font;
use crate::frame::{Entry, Frame, Horizontal, LINE, Swatch, Vertical};
use crate::row::row;
use crate::style::{Hatch, Style, TYPE, readable_on};
use crate::{Figure, PlotError, write_csv};

row! {
    /// An interval of one resource.
    GanttRow {
        /// Who: a port, a network, a PE. [`SKIPPED`] concerns all of them.
        resource: String,
        /// First cycle.
        start: f64,
        /// First cycle after it.
        end: f64,
        /// What it is one of: a tensor, computing, a stall.
        kind: String,
        /// Written into the bar where there is room.
        label: Option<String>,
    }
}

/// The resource of an interval that was left out, because the same happened before; its label says how often.
pub const SKIPPED: &str = "skipped";

/// How a Gantt chart is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct GanttOptions {
    /// Label of the horizontal axis, with its unit.
    pub x_label: String,
    /// Kinds that are drawn low and pale: stalls.
    pub pale: Vec<String>,
}

impl Default for GanttOptions {
    fn default() -> Self {
        GanttOptions {
            x_label: "time [cycles]".to_string(),
            pale: Vec::new(),
        }
    }
}

/// Resources that fit on a page.
const RESOURCES: usize = 60;

/// Height of a resource in points.
const ROW: f64 = LINE + 3.0;

/// A bar per interval, a line per resource in the order of the rows. Intervals of one kind that touch to less than a
/// fifth of a point are drawn as one.
///
/// # Errors
/// Without rows, for intervals that are not finite or end before they start, or too many resources or kinds.
pub fn gantt(rows: &[GanttRow], options: &GanttOptions, style: &Style) -> Result<Figure, PlotError> {
    for row in rows {
        let name = || format!("{}, {} from {}", row.resource, row.kind, row.start);
        check_value(name, "start", row.start, false)?;
        check_value(name, "end", row.end, false)?;
        if row.end < row.start {
            let message = format!("ends at {}, before it starts at {}", row.end, row.start);
            return Err(PlotError::value(name(), message));
        }
    }
    let (skipped, busy): (Vec<&GanttRow>, Vec<&GanttRow>) = rows.iter().partition(|row| row.resource == SKIPPED);
    if busy.is_empty() {
        return Err(empty("a Gantt chart needs at least one interval"));
    }
    let resources = distinct(busy.iter().map(|row| row.resource.as_str()));
    if resources.len() > RESOURCES {
        return Err(PlotError::TooMany {
            what: "resources",
            found: resources.len(),
            most: RESOURCES,
            hint: "choose some with --only",
        });
    }
    let kinds = distinct(busy.iter().map(|row| row.kind.as_str()));
    check_series(&kinds)?;
    let colors = style.theme.colors();
    let (start, end) = rows.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(s, e), r| {
        (s.min(r.start), e.max(r.end))
    });
    let axis = match end > start {
        true => Axis::exactly(start, end, 6),
        false => Axis::covering([start], Scale::Linear, false, 5),
    };
    let frame = Frame {
        legend: kinds
            .iter()
            .enumerate()
            .map(|(i, name)| Entry {
                text: name.clone(),
                look: colors.series(i),
                swatch: Swatch::Bar,
            })
            .collect(),
        x: Horizontal::Values {
            axis,
            label: options.x_label.clone(),
        },
        y: Vertical::Categories {
            names: resources.clone(),
            label: String::new(),
        },
        proportion: 0.0,
        least_height: 62.0 + LINE * (kinds.len() as f64 / 3.0).ceil() + ROW * resources.len() as f64,
        right: 0.0,
        grid: true,
    };
    let svg = frame.draw(style, |canvas, plot| {
        for row in &skipped {
            let area = Area {
                left: plot.x(row.start),
                top: plot.area.top,
                right: plot.x(row.end),
                bottom: plot.area.bottom,
            };
            canvas.fill(area, colors.grid);
            canvas.hatch(area, Hatch::Rising, colors.soft);
        }
        for (place, resource) in resources.iter().enumerate() {
            let (top, bottom) = plot.row(place);
            for (k, kind) in kinds.iter().enumerate() {
                let mut of: Vec<&&GanttRow> = busy
                    .iter()
                    .filter(|row| row.resource == *resource && row.kind == *kind)
                    .collect();
                of.sort_by(|a, b| a.start.total_cmp(&b.start));
                let pale = options.pale.contains(kind);
                let (inset, look) = (if pale { 4.2 } else { 1.2 }, colors.series(k));
                for (left, right, label) in merged(&of, |v| plot.x(v)) {
                    let area = Area {
                        left,
                        top: top + inset,
                        // What lasts is seen.
                        right: right.max(left + 0.3),
                        bottom: bottom - inset,
                    };
                    canvas.fill(area, look.color);
                    if area.width() > 2.5 {
                        canvas.hatch(area, look.hatch, readable_on(look.color));
                        canvas.outline(area, colors.ink, 0.3);
                    }
                    let Some(label) = label.filter(|l| font::width(l, TYPE) + 3.0 <= area.width() && !pale) else {
                        continue;
                    };
                    let middle = ((area.left + area.right) / 2.0, (top + bottom) / 2.0);
                    let half = font::width(label, TYPE) / 2.0 + 1.0;
                    let plate = Area {
                        left: middle.0 - half,
                        top: area.top + 0.6,
                        right: middle.0 + half,
                        bottom: area.bottom - 0.6,
                    };
                    canvas.fill(plate, look.color);
                    canvas.text_centred(label, middle, Hold::Middle, TYPE, readable_on(look.color));
                }
            }
        }
        for row in &skipped {
            let Some(label) = &row.label else { continue };
            let middle = (plot.x(row.start) + plot.x(row.end)) / 2.0;
            let half = font::width(label, TYPE) / 2.0 + 2.0;
            // Within the stretch, across it or along it.
            let wide = plot.x(row.end) - plot.x(row.start);
            let y = (plot.area.top + plot.area.bottom) / 2.0;
            if 2.0 * half <= wide {
                let plate = Area {
                    left: middle - half,
                    top: y - TYPE * 0.75,
                    right: middle + half,
                    bottom: y + TYPE * 0.75,
                };
                canvas.fill(plate, colors.paper);
                canvas.text_centred(label, (middle, y), Hold::Middle, TYPE, colors.ink);
            } else if wide >= TYPE * 1.3 && 2.0 * half <= plot.area.height() {
                let plate = Area {
                    left: middle - TYPE * 0.6,
                    top: y - half,
                    right: middle + TYPE * 0.6,
                    bottom: y + half,
                };
                canvas.fill(plate, colors.paper);
                canvas.text_upwards(label, (middle, y), Hold::Middle, TYPE, colors.ink);
            }
        }
    })?;
    Ok(Figure::new(svg, write_csv(rows)))
}

/// Intervals in points; a run of intervals that cannot be told apart is one without a label.
fn merged<'a>(rows: &[&&'a GanttRow], x: impl Fn(f64) -> f64) -> Vec<(f64, f64, Option<&'a str>)> {
    let mut all: Vec<(f64, f64, Option<&str>)> = Vec::new();
    for row in rows {
        let (left, right) = (x(row.start), x(row.end));
        match all.last_mut() {
            // Intervals that could be seen stay apart.
            Some(last) if left - last.1 < 0.2 && (right - left < 0.8 || last.1 - last.0 < 0.8) => {
                last.1 = last.1.max(right);
                last.2 = None;
            }
            _ => all.push((left, right, row.label.as_deref())),
        }
    }
    all
}
