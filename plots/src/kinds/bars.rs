//! Grouped bars: speed-ups by layer or network with their geometric mean, reuse factors.

use std::collections::BTreeMap;

use super::{check_series, check_value, distinct, empty};
use crate::axis::{Axis, Scale, number};
use crate::canvas::{Area, Hold};
use crate::font;
use crate::frame::{Entry, Frame, Horizontal, Swatch, Vertical};
use crate::row::row;
use crate::stats::geomean;
use crate::style::{Style, TYPE};
use crate::{Figure, PlotError, write_csv};

row! {
    /// One bar.
    BarRow {
        /// What it stands with on the horizontal axis: a layer, a network.
        group: String,
        /// What it is compared within the group: a scheduler, a machine.
        series: String,
        /// Its height.
        value: f64,
    }
}

/// The group that holds the geometric mean of all others; rows that are already in it are computed anew.
pub const GEOMEAN: &str = "geomean";

/// How grouped bars are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct BarOptions {
    /// Label of the vertical axis, with its unit.
    pub y_label: String,
    /// Label of the horizontal axis; may be empty.
    pub x_label: String,
    /// Scale of the vertical axis.
    pub scale: Scale,
    /// Adds a group with the geometric mean of each series.
    pub geomean: bool,
    /// A line across at this value; on a log scale bars start there.
    pub reference: Option<f64>,
}

impl BarOptions {
    /// Speed-ups over a baseline at 1.
    #[must_use]
    pub fn speedup() -> Self {
        BarOptions {
            y_label: "speed-up [×]".to_string(),
            x_label: String::new(),
            scale: Scale::Linear,
            geomean: true,
            reference: Some(1.0),
        }
    }

    /// Reuse: how often what is fetched from a level is used before it is fetched again.
    #[must_use]
    pub fn reuse() -> Self {
        BarOptions {
            y_label: "reuse [uses per fetch]".to_string(),
            x_label: String::new(),
            scale: Scale::Log,
            geomean: false,
            reference: Some(1.0),
        }
    }
}

/// Bars that can be told apart in one figure.
const MOST: usize = 600;

/// Grouped bars, in the order of the rows. A group without a bar of some series has a gap there.
///
/// # Errors
/// Without rows; for values that are not finite, not above 0 where a logarithm is taken, given twice, or too many.
pub fn bars(rows: &[BarRow], options: &BarOptions, style: &Style) -> Result<Figure, PlotError> {
    let mut rows: Vec<BarRow> = match options.geomean {
        true => rows.iter().filter(|row| row.group != GEOMEAN).cloned().collect(),
        false => rows.to_vec(),
    };
    if rows.is_empty() {
        return Err(empty("bars need at least one"));
    }
    let series = distinct(rows.iter().map(|row| row.series.as_str()));
    check_series(&series)?;
    let positive = options.geomean || options.scale == Scale::Log;
    for row in &rows {
        check_value(
            || format!("{}, {}", row.group, row.series),
            "value",
            row.value,
            positive,
        )?;
    }
    let mut groups = distinct(rows.iter().map(|row| row.group.as_str()));
    if groups.len() * series.len() > MOST {
        return Err(PlotError::TooMany {
            what: "bars",
            found: groups.len() * series.len(),
            most: MOST,
            hint: "draw sorted points (`layers`) or lines, or fewer groups",
        });
    }
    let mut notes = Vec::new();
    if options.geomean {
        for name in &series {
            let values: Vec<f64> = rows.iter().filter(|r| r.series == *name).map(|r| r.value).collect();
            if let Some(mean) = geomean(&values) {
                notes.push((format!("{GEOMEAN} {name}"), mean));
            }
        }
        if groups.len() > 1 {
            groups.push(GEOMEAN.to_string());
            rows.extend(series.iter().zip(&notes).map(|(name, (_, mean))| BarRow {
                group: GEOMEAN.to_string(),
                series: name.clone(),
                value: *mean,
            }));
        }
    }
    let mut placed: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for row in &rows {
        if placed.insert((&row.group, &row.series), row.value).is_some() {
            return Err(PlotError::value(
                format!("{}, {}", row.group, row.series),
                "is there twice; expected one bar per group and series",
            ));
        }
    }

    let colors = style.theme.colors();
    let values = rows.iter().map(|row| row.value).chain(options.reference);
    let axis = Axis::covering(values, options.scale, true, 6);
    let base = match options.scale {
        Scale::Linear => 0.0,
        Scale::Log => options.reference.unwrap_or(axis.low),
    };
    let entry = |(i, name): (usize, &String)| Entry {
        text: name.clone(),
        look: colors.series(i),
        swatch: Swatch::Bar,
    };
    let frame = Frame {
        legend: match series.len() {
            1 => Vec::new(),
            _ => series.iter().enumerate().map(entry).collect(),
        },
        x: Horizontal::Categories {
            names: groups.clone(),
            label: options.x_label.clone(),
        },
        y: Vertical::Values {
            axis,
            label: options.y_label.clone(),
        },
        proportion: 0.62,
        least_height: 0.0,
        right: 0.0,
        grid: true,
    };
    let svg = frame.draw(style, |canvas, plot| {
        if let Some(reference) = options.reference {
            let y = plot.y(reference);
            canvas.line((plot.area.left, y), (plot.area.right, y), colors.soft, 0.8);
        }
        for (g, group) in groups.iter().enumerate() {
            let (left, right) = plot.band(g);
            let margin = (right - left) * 0.1;
            let wide = (right - left - 2.0 * margin) / series.len() as f64;
            for (s, name) in series.iter().enumerate() {
                let Some(&value) = placed.get(&(group.as_str(), name.as_str())) else {
                    continue;
                };
                let (from, to) = (plot.y(base), plot.y(value));
                let x = left + margin + s as f64 * wide;
                let area = Area {
                    left: x,
                    top: from.min(to),
                    right: x + wide,
                    bottom: from.max(to),
                };
                canvas.bar(area, colors.series(s), colors.ink);
                // The mean is what the text of a paper quotes: written out where there is room.
                let text = number(value);
                if group == GEOMEAN && font::width(&text, TYPE) + 2.0 <= wide && area.top - TYPE > plot.area.top {
                    canvas.text(&text, (x + wide / 2.0, area.top - 2.0), Hold::Middle, TYPE, colors.ink);
                }
            }
            if group == GEOMEAN && g > 0 {
                let ends = [(left, plot.area.top), (left, plot.area.bottom)];
                canvas.dashed(&ends, &[2.0, 2.0], colors.soft, 0.6);
            }
        }
    })?;
    let figure = Figure::new(svg, write_csv(&rows));
    Ok(notes
        .into_iter()
        .fold(figure, |figure, (name, mean)| figure.with_note(name, mean)))
}
