//! Stacked bars: energy by level and tensor, cycles by busy and stall reason.

use std::collections::BTreeMap;

use super::{check_value, distinct, empty};
use crate::axis::{Axis, Scale};
use crate::canvas::Area;
use crate::frame::{Entry, Frame, Horizontal, Swatch, Vertical};
use crate::row::row;
use crate::style::{Hatch, Look, Style};
use crate::{Figure, PlotError, write_csv};

row! {
    /// One part of a bar.
    StackRow {
        /// The bar: a layer, a machine.
        bar: String,
        /// What the part is: a storage level, a stall reason. Told by colour.
        part: String,
        /// What it is of that: a tensor. Told by hatch; empty for parts that are not divided.
        detail: Option<String>,
        /// Its height, at least 0.
        value: f64,
    }
}

/// How stacked bars are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct StackOptions {
    /// Label of the vertical axis, with its unit.
    pub y_label: String,
    /// Label of the horizontal axis; may be empty.
    pub x_label: String,
    /// Every bar is 100 % high.
    pub shares: bool,
}

/// Parts with a colour of their own; the smallest of more are drawn as one.
const PARTS: usize = 8;
/// Details with a hatch of their own.
const DETAILS: usize = 7;
/// Bars that are still seen.
const BARS: usize = 400;

const REST: &str = "other";

/// Stacked bars. Of more than eight parts, the smallest are drawn together as `other`; the CSV has all of them.
///
/// # Errors
/// Without rows, for values that are not finite or below 0, for too many bars or details, or if `shares` are asked for
/// and a bar's sum is 0.
pub fn stacked(rows: &[StackRow], options: &StackOptions, style: &Style) -> Result<Figure, PlotError> {
    if rows.is_empty() {
        return Err(empty("stacked bars need at least one part"));
    }
    for row in rows {
        let name = || format!("{}, {}", row.bar, row.part);
        check_value(name, "value", row.value, false)?;
        if row.value < 0.0 {
            let message = format!("value is {}; expected at least 0", row.value);
            return Err(PlotError::value(name(), message));
        }
    }
    let bars = distinct(rows.iter().map(|row| row.bar.as_str()));
    if bars.len() > BARS {
        return Err(PlotError::TooMany {
            what: "bars",
            found: bars.len(),
            most: BARS,
            hint: "choose some, or sum them",
        });
    }
    let parts = Parts::of(rows);
    let details = distinct(rows.iter().filter_map(|row| row.detail.as_deref()));
    if details.len() > DETAILS {
        return Err(PlotError::TooMany {
            what: "details",
            found: details.len(),
            most: DETAILS,
            hint: "leave the column out, or sum the smallest",
        });
    }

    // Summed by bar, part and detail, in the order of the legend, so that every bar has the same order.
    let mut heights: Vec<BTreeMap<(usize, usize), f64>> = vec![BTreeMap::new(); bars.len()];
    for row in rows {
        let detail = row.detail.as_deref().map_or(0, |d| super::position(&details, d) + 1);
        let key = (parts.position(&row.part), detail);
        *heights[super::position(&bars, &row.bar)].entry(key).or_default() += row.value;
    }
    if options.shares {
        for (bar, parts) in bars.iter().zip(&mut heights) {
            let sum: f64 = parts.values().sum();
            if sum <= 0.0 {
                return Err(PlotError::value(
                    bar.as_str(),
                    "the sum is 0; shares need a sum above 0",
                ));
            }
            parts.values_mut().for_each(|v| *v *= 100.0 / sum);
        }
    }
    let colors = style.theme.colors();
    let look = |part: usize, detail: usize| -> Look {
        let look = colors.series(part);
        match (details.is_empty(), detail) {
            (true, _) => look,
            (false, 0) => Look {
                hatch: Hatch::None,
                ..look
            },
            (false, n) => Look {
                hatch: colors.series(n).hatch,
                ..look
            },
        }
    };
    let mut legend: Vec<Entry> = (0..parts.names.len())
        .map(|i| Entry {
            text: parts.names[i].clone(),
            look: look(i, 0),
            swatch: Swatch::Bar,
        })
        .collect();
    legend.extend(details.iter().enumerate().map(|(i, name)| Entry {
        text: name.clone(),
        look: Look {
            color: colors.paper,
            ..look(0, i + 1)
        },
        swatch: Swatch::Bar,
    }));
    let sums = heights.iter().map(|parts| parts.values().sum::<f64>());
    let frame = Frame {
        legend,
        x: Horizontal::Categories {
            names: bars.clone(),
            label: options.x_label.clone(),
        },
        y: Vertical::Values {
            axis: match options.shares {
                true => Axis::exactly(0.0, 100.0, 5),
                false => Axis::covering(sums, Scale::Linear, true, 6),
            },
            label: options.y_label.clone(),
        },
        proportion: 0.7,
        least_height: 0.0,
        right: 0.0,
        grid: true,
    };
    let svg = frame.draw(style, |canvas, plot| {
        for (b, parts) in heights.iter().enumerate() {
            let (left, right) = plot.band(b);
            let margin = (right - left) * 0.15;
            let mut below = 0.0;
            for (&(part, detail), &value) in parts {
                let (bottom, top) = (plot.y(below), plot.y(below + value));
                below += value;
                // Thinner than its edge it could not be seen.
                if bottom - top >= 0.05 {
                    let area = Area {
                        left: left + margin,
                        top,
                        right: right - margin,
                        bottom,
                    };
                    canvas.bar(area, look(part, detail), colors.ink);
                }
            }
        }
    })?;
    Ok(Figure::new(svg, write_csv(rows)))
}

/// The parts that have a colour.
struct Parts {
    names: Vec<String>,
    merged: bool,
}

impl Parts {
    fn of(rows: &[StackRow]) -> Self {
        let all = distinct(rows.iter().map(|row| row.part.as_str()));
        if all.len() <= PARTS {
            return Parts {
                names: all,
                merged: false,
            };
        }
        // By their share of their bar, so that small bars count as much as large ones.
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        rows.iter()
            .for_each(|row| *sums.entry(&row.bar).or_default() += row.value);
        let mut weights: BTreeMap<&str, f64> = BTreeMap::new();
        for row in rows {
            let sum = sums[row.bar.as_str()];
            *weights.entry(&row.part).or_default() += if sum > 0.0 { row.value / sum } else { 0.0 };
        }
        let mut ranked: Vec<&String> = all.iter().collect();
        ranked.sort_by(|a, b| weights[b.as_str()].total_cmp(&weights[a.as_str()]));
        let kept = &ranked[..PARTS - 1];
        let mut names: Vec<String> = all.iter().filter(|name| kept.contains(name)).cloned().collect();
        names.push(REST.to_string());
        Parts { names, merged: true }
    }

    fn position(&self, part: &str) -> usize {
        let last = self.names.len() - 1;
        match self.names.iter().position(|name| name == part) {
            Some(position) => position,
            None => {
                debug_assert!(self.merged);
                last
            }
        }
    }
}
