//! The frame around the data: title, legend, axes. Everything is measured before it is drawn, so nothing overlaps.

use crate::PlotError;
use crate::axis::Axis;
use crate::canvas::{self, Area, CAPITALS, Canvas, Hold};
use crate::font;
use crate::style::{Colors, Look, POINTS, Style, TITLE, TYPE, WIDTHS};

/// Between texts, and between a text and the edge.
const GAP: f64 = 4.0;
/// From one line of type to the next.
pub(crate) const LINE: f64 = TYPE * 1.25;
/// Length of a tick.
const TICK: f64 = 2.5;
/// From the ticks of the horizontal axis to its texts: clear of the lowest text of the vertical axis.
const DROP: f64 = 2.6;
/// Side of a swatch in the legend.
const SWATCH: f64 = 14.0;
/// Lengths to which names that read upwards are shortened, if they then still differ.
const LONGEST: [f64; 2] = [78.0, 120.0];

/// How a series shows in the legend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Swatch {
    Bar,
    Line,
    LineMarker,
    Marker,
}

/// A line of the legend.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) text: String,
    pub(crate) look: Look,
    pub(crate) swatch: Swatch,
}

/// The horizontal axis.
#[derive(Debug, Clone)]
pub(crate) enum Horizontal {
    Values {
        axis: Axis,
        label: String,
    },
    /// Equal bands with names.
    Categories {
        names: Vec<String>,
        label: String,
    },
    /// Equal bands with short names that fit; empty ones are not written.
    Columns {
        names: Vec<String>,
        label: String,
    },
}

/// The vertical axis.
#[derive(Debug, Clone)]
pub(crate) enum Vertical {
    Values {
        axis: Axis,
        label: String,
    },
    /// Equal bands with names, the first on top.
    Categories {
        names: Vec<String>,
        label: String,
    },
}

/// A figure but for its data.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) legend: Vec<Entry>,
    pub(crate) x: Horizontal,
    pub(crate) y: Vertical,
    /// Height over width where the style says nothing.
    pub(crate) proportion: f64,
    /// Points that the figure needs in height, whatever its proportion.
    pub(crate) least_height: f64,
    /// Room on the right of the data, for a second legend.
    pub(crate) right: f64,
    /// Grid lines.
    pub(crate) grid: bool,
}

/// Where the data goes.
#[derive(Debug, Clone)]
pub(crate) struct Plot {
    pub(crate) area: Area,
    pub(crate) colors: Colors,
    x: Horizontal,
    y: Vertical,
}

impl Plot {
    /// Place of a value on the horizontal axis.
    pub(crate) fn x(&self, value: f64) -> f64 {
        match &self.x {
            Horizontal::Values { axis, .. } => self.area.left + axis.fraction(value) * self.area.width(),
            Horizontal::Categories { names, .. } | Horizontal::Columns { names, .. } => {
                self.area.left + (value + 0.5) / names.len().max(1) as f64 * self.area.width()
            }
        }
    }

    /// Place of a value on the vertical axis.
    pub(crate) fn y(&self, value: f64) -> f64 {
        match &self.y {
            Vertical::Values { axis, .. } => self.area.bottom - axis.fraction(value) * self.area.height(),
            Vertical::Categories { names, .. } => {
                self.area.top + (value + 0.5) / names.len().max(1) as f64 * self.area.height()
            }
        }
    }

    /// Both ends of a category on the horizontal axis.
    pub(crate) fn band(&self, position: usize) -> (f64, f64) {
        (self.x(position as f64 - 0.5), self.x(position as f64 + 0.5))
    }

    /// Both ends of a category on the vertical axis.
    pub(crate) fn row(&self, position: usize) -> (f64, f64) {
        (self.y(position as f64 - 0.5), self.y(position as f64 + 0.5))
    }
}

/// How the categories are written.
#[derive(Debug, Clone, PartialEq)]
enum Names {
    Across,
    Upwards(Vec<String>),
    /// Their numbers from 1, every so many.
    Numbers(usize),
}

fn names_in(names: &[String], band: f64) -> Names {
    let widest = names.iter().map(|name| font::width(name, TYPE)).fold(0.0, f64::max);
    if widest + GAP <= band {
        Names::Across
    } else if let Some(short) = (band >= LINE).then(|| upwards(names)).flatten() {
        Names::Upwards(short)
    } else {
        let widest = font::width(&names.len().to_string(), TYPE) + GAP + 1.0;
        let least = (widest / band).ceil() as usize;
        let every = [
            1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000, 10_000,
        ];
        Names::Numbers(every.into_iter().find(|n| *n >= least).unwrap_or(least))
    }
}

fn upwards(names: &[String]) -> Option<Vec<String>> {
    LONGEST.into_iter().find_map(|room| {
        let short: Vec<String> = names.iter().map(|name| font::shortened(name, TYPE, room)).collect();
        let different: std::collections::BTreeSet<&String> = short.iter().collect();
        (different.len() == names.len()).then_some(short)
    })
}

impl Frame {
    /// Draws the frame around what `paint` draws.
    pub(crate) fn draw(self, style: &Style, paint: impl FnOnce(&mut Canvas<'_>, &Plot)) -> Result<String, PlotError> {
        let (width, height) = size(style, self.proportion, self.least_height)?;
        let colors = style.theme.colors();
        let rows = legend_rows(&self.legend, width - 2.0 * GAP);
        let title = style.title.as_deref().map_or(0.0, |_| TITLE * 1.25 + GAP);

        // From the outside in; the width of the data decides how the categories are written.
        let y_label = label_lines(&self.y);
        let y_texts = match &self.y {
            Vertical::Values { axis, .. } => widest(axis.ticks.iter().map(|(_, text)| text.as_str())),
            Vertical::Categories { names, .. } => widest(names.iter().map(String::as_str)).min(width * 0.42),
        };
        let left = GAP + y_label + y_texts + TICK + 2.0;
        let right = width - GAP - self.right - last_tick_overhang(&self.x);
        if right - left < 40.0 {
            return Err(PlotError::Size(format!(
                "{:.2} in leave no room for the data beside its labels; choose a larger width",
                width / POINTS
            )));
        }
        let (names, x_texts) = match &self.x {
            Horizontal::Values { .. } | Horizontal::Columns { .. } => (Names::Across, LINE + DROP),
            Horizontal::Categories { names, .. } => {
                let written = names_in(names, (right - left) / names.len().max(1) as f64);
                let room = match &written {
                    Names::Upwards(names) => widest(names.iter().map(String::as_str)) + 2.0,
                    _ => LINE + DROP,
                };
                (written, room)
            }
        };
        let x_label = match &self.x {
            Horizontal::Values { label, .. } | Horizontal::Columns { label, .. } => label.clone(),
            Horizontal::Categories { label, names: all } => match names {
                Names::Numbers(_) if all.len() > 1 => {
                    let what = if label.is_empty() { "number" } else { label };
                    format!("{what} (numbered as in the CSV)")
                }
                _ => label.clone(),
            },
        };
        let x_label_room = if x_label.is_empty() { 0.0 } else { LINE + 1.0 };
        let top =
            GAP + title + rows.len() as f64 * (LINE + 1.0) + if rows.is_empty() { CAPITALS * TYPE / 2.0 } else { GAP };
        let below = GAP + x_label_room + x_texts + TICK;
        // Tall names must not squeeze the data, unless the height was asked for.
        let height = match style.height {
            Some(_) => height,
            None => height.max(top + below + 0.28 * width),
        };
        let bottom = height - below;
        if bottom - top < 30.0 {
            return Err(PlotError::Size(format!(
                "{:.2} in leave no room for the data between its labels; choose a larger height",
                height / POINTS
            )));
        }
        let plot = Plot {
            area: Area {
                left,
                top,
                right,
                bottom,
            },
            colors,
            x: self.x.clone(),
            y: self.y.clone(),
        };
        canvas::svg(width, height, |canvas| {
            canvas.fill(
                Area {
                    left: 0.0,
                    top: 0.0,
                    right: width,
                    bottom: height,
                },
                colors.paper,
            );
            if let Some(title) = &style.title {
                let title = font::shortened(title, TITLE, width - 2.0 * GAP);
                canvas.text(
                    &title,
                    (width / 2.0, GAP + TITLE * 0.9),
                    Hold::Middle,
                    TITLE,
                    colors.ink,
                );
            }
            draw_legend(canvas, &self.legend, &rows, (width, GAP + title), colors);
            if self.grid {
                draw_grid(canvas, &plot);
            }
            paint(canvas, &plot);
            draw_axes(canvas, &plot, &names);
            if !x_label.is_empty() {
                let label = font::shortened(&x_label, TYPE, width - 2.0 * GAP);
                let half = font::width(&label, TYPE) / 2.0;
                let x = ((left + right) / 2.0).clamp(GAP + half, width - GAP - half);
                canvas.text(&label, (x, height - GAP - TYPE * 0.22), Hold::Middle, TYPE, colors.ink);
            }
            let (Vertical::Values { label, .. } | Vertical::Categories { label, .. }) = &self.y;
            if !label.is_empty() {
                let label = font::shortened(label, TYPE, height - 2.0 * GAP);
                let half = font::width(&label, TYPE) / 2.0;
                let y = ((top + bottom) / 2.0).clamp(GAP + half, height - GAP - half);
                let x = GAP + CAPITALS * TYPE / 2.0 + 1.0;
                canvas.text_upwards(&label, (x, y), Hold::Middle, TYPE, colors.ink);
            }
        })
    }
}

/// Size of a figure in points.
pub(crate) fn size(style: &Style, proportion: f64, least_height: f64) -> Result<(f64, f64), PlotError> {
    let inches = style.width.inches();
    if !WIDTHS.contains(&inches) {
        return Err(PlotError::Size(format!(
            "{inches} in is no width for a figure; expected {} to {} inches",
            WIDTHS.start(),
            WIDTHS.end()
        )));
    }
    let width = inches * POINTS;
    let height = match style.height {
        Some(height) if (0.8..=40.0).contains(&height) => height * POINTS,
        Some(height) => {
            let message = format!("{height} in is no height for a figure; expected 0.8 to 40 inches");
            return Err(PlotError::Size(message));
        }
        None => (width * proportion).max(least_height),
    };
    Ok((width, height))
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    texts.map(|text| font::width(text, TYPE)).fold(0.0, f64::max)
}

/// Room for the label of the vertical axis.
fn label_lines(y: &Vertical) -> f64 {
    let (Vertical::Values { label, .. } | Vertical::Categories { label, .. }) = y;
    if label.is_empty() { 0.0 } else { LINE + 2.0 }
}

/// How far the last tick's text may stand out on the right.
fn last_tick_overhang(x: &Horizontal) -> f64 {
    match x {
        Horizontal::Categories { .. } | Horizontal::Columns { .. } => 0.0,
        Horizontal::Values { axis, .. } => axis.ticks.iter().fold(0.0, |most, (value, text)| {
            // As if the data were 100 points wide: enough for any width above.
            let room = (1.0 - axis.fraction(*value)) * 100.0;
            f64::max(most, font::width(text, TYPE) / 2.0 - room)
        }),
    }
}

/// Entries of the legend, in rows; each with its column.
fn legend_rows(entries: &[Entry], room: f64) -> Vec<Vec<(usize, f64)>> {
    if entries.is_empty() {
        return Vec::new();
    }
    let wide = |entry: &Entry| SWATCH + 3.0 + font::width(&entry.text, TYPE) + 8.0;
    let total: f64 = entries.iter().map(wide).sum();
    // One row with what each needs, or columns of equal width.
    if total - 8.0 <= room {
        let mut x = (room - (total - 8.0)) / 2.0;
        let row = entries.iter().enumerate().map(|(i, entry)| {
            let place = x;
            x += wide(entry);
            (i, place)
        });
        return vec![row.collect()];
    }
    let column = entries.iter().map(wide).fold(0.0, f64::max).min(room);
    let columns = ((room + 8.0) / column).floor().max(1.0) as usize;
    let positions: Vec<usize> = (0..entries.len()).collect();
    let columns = columns.min(entries.len());
    let start = (room + 8.0 - columns as f64 * column).max(0.0) / 2.0;
    positions
        .chunks(columns)
        .map(|row| {
            row.iter()
                .enumerate()
                .map(|(column_number, &i)| (i, start + column_number as f64 * column))
                .collect()
        })
        .collect()
}

fn draw_legend(
    canvas: &mut Canvas<'_>,
    entries: &[Entry],
    rows: &[Vec<(usize, f64)>],
    (width, top): (f64, f64),
    colors: Colors,
) {
    for (row_number, row) in rows.iter().enumerate() {
        let middle = top + (row_number as f64 + 0.5) * (LINE + 1.0);
        for &(i, x) in row {
            let x = GAP + x;
            let entry = &entries[i];
            swatch(canvas, entry, (x, middle), colors);
            let text = font::shortened(&entry.text, TYPE, width - GAP - x - SWATCH - 3.0);
            canvas.text_centred(&text, (x + SWATCH + 3.0, middle), Hold::Start, TYPE, colors.ink);
        }
    }
}

fn swatch(canvas: &mut Canvas<'_>, entry: &Entry, (x, middle): (f64, f64), colors: Colors) {
    let look = entry.look;
    let ends = [(x, middle), (x + SWATCH, middle)];
    match entry.swatch {
        Swatch::Bar => canvas.bar(
            Area {
                left: x,
                top: middle - 3.5,
                right: x + SWATCH,
                bottom: middle + 3.5,
            },
            look,
            colors.ink,
        ),
        Swatch::Line => canvas.dashed(&ends, look.dash, look.color, 1.4),
        Swatch::LineMarker => {
            canvas.dashed(&ends, look.dash, look.color, 1.2);
            canvas.marker((x + SWATCH / 2.0, middle), look.marker, 2.6, look.color);
        }
        Swatch::Marker => canvas.marker((x + SWATCH / 2.0, middle), look.marker, 2.6, look.color),
    }
}

fn draw_grid(canvas: &mut Canvas<'_>, plot: &Plot) {
    let Area {
        left,
        top,
        right,
        bottom,
    } = plot.area;
    if let Vertical::Values { axis, .. } = &plot.y {
        for (value, _) in &axis.ticks {
            let y = plot.y(*value);
            canvas.line((left, y), (right, y), plot.colors.grid, 0.4);
        }
    }
    if let Horizontal::Values { axis, .. } = &plot.x {
        for (value, _) in &axis.ticks {
            let x = plot.x(*value);
            canvas.line((x, top), (x, bottom), plot.colors.grid, 0.4);
        }
    }
}

fn draw_axes(canvas: &mut Canvas<'_>, plot: &Plot, names: &Names) {
    let Area {
        left,
        top,
        right,
        bottom,
    } = plot.area;
    let ink = plot.colors.ink;
    canvas.path(&[(left, top), (left, bottom), (right, bottom)], ink, 0.6);
    match &plot.y {
        Vertical::Values { axis, .. } => {
            let mut last = f64::INFINITY;
            for (value, text) in &axis.ticks {
                let y = plot.y(*value);
                canvas.line((left - TICK, y), (left, y), ink, 0.6);
                if last - y >= LINE {
                    canvas.text_centred(text, (left - TICK - 1.5, y), Hold::End, TYPE, ink);
                    last = y;
                }
            }
        }
        Vertical::Categories { names, .. } => {
            let room = left - GAP - TICK - 1.5 - label_lines(&plot.y);
            for (position, name) in names.iter().enumerate() {
                let y = plot.y(position as f64);
                let text = font::shortened(name, TYPE, room);
                canvas.text_centred(&text, (left - TICK - 1.5, y), Hold::End, TYPE, ink);
            }
        }
    }
    let baseline = bottom + TICK + DROP + TYPE * 0.85;
    match &plot.x {
        Horizontal::Values { axis, .. } => {
            let mut last = f64::NEG_INFINITY;
            for (value, text) in &axis.ticks {
                let x = plot.x(*value);
                canvas.line((x, bottom), (x, bottom + TICK), ink, 0.6);
                let half = font::width(text, TYPE) / 2.0;
                if x - half - last >= GAP {
                    canvas.text(text, (x, baseline), Hold::Middle, TYPE, ink);
                    last = x + half;
                }
            }
        }
        Horizontal::Categories { names: all, .. } | Horizontal::Columns { names: all, .. } => {
            for (position, name) in all.iter().enumerate() {
                let x = plot.x(position as f64);
                match names {
                    Names::Across => canvas.text(name, (x, baseline), Hold::Middle, TYPE, ink),
                    Names::Upwards(short) => {
                        canvas.text_upwards(&short[position], (x, bottom + TICK + 1.0), Hold::End, TYPE, ink);
                    }
                    Names::Numbers(every) => {
                        let number = position + 1;
                        // 1, then every so many: 1, 5, 10, 15 …
                        let shown = *every == 1 || number % every == 0 || (number == 1 && *every > 2);
                        // The last one may stand so far on the right that it would leave the page.
                        let text = number.to_string();
                        let fits = x + font::width(&text, TYPE) / 2.0 <= right + GAP;
                        if shown && fits {
                            canvas.line((x, bottom), (x, bottom + TICK), ink, 0.6);
                            canvas.text(&text, (x, baseline), Hold::Middle, TYPE, ink);
                        }
                    }
                }
            }
        }
    }
}
