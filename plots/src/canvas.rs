//! Drawing in points on an SVG of plotters.

use plotters::backend::DrawingBackend;
use plotters::prelude::SVGBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontTransform, RGBColor, ShapeStyle, TextStyle};

use crate::PlotError;
use crate::font;
use crate::style::{Hatch, Look, Marker, POINTS};

/// Units of the SVG per point. plotters draws at whole units only; a twentieth of a point is finer than print.
const UNITS: f64 = 20.0;

/// Where the backend puts the baseline below the top of a text, in ems.
const BASELINE: f64 = 0.76;

/// The backend divides the size of a font by this.
const SIZE: f64 = 1.24;

/// A box in points; y grows downwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Area {
    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }
}

/// Where a text is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    Start,
    Middle,
    End,
}

/// An SVG in the making. The first failure is kept and ends up in [`svg`].
pub(crate) struct Canvas<'a> {
    backend: SVGBackend<'a>,
    failure: Option<PlotError>,
}

/// An SVG of this size in points, with what `paint` draws.
pub(crate) fn svg(width: f64, height: f64, paint: impl FnOnce(&mut Canvas<'_>)) -> Result<String, PlotError> {
    let size = ((width * UNITS).round() as u32, (height * UNITS).round() as u32);
    let mut text = String::new();
    let failure = {
        let mut canvas = Canvas {
            backend: SVGBackend::with_string(&mut text, size),
            failure: None,
        };
        paint(&mut canvas);
        let presented = canvas.backend.present();
        canvas.keep(presented.map_err(|error| error.to_string()));
        canvas.failure.take()
    };
    if let Some(failure) = failure {
        return Err(failure);
    }
    // The size in print: the backend knows pixels only.
    let pixels = format!("<svg width=\"{}\" height=\"{}\"", size.0, size.1);
    let print = format!(
        "<svg width=\"{:.4}in\" height=\"{:.4}in\"",
        width / POINTS,
        height / POINTS
    );
    // Most marks are opaque, which is what SVG assumes.
    Ok(text
        .replacen(&pixels, &print, 1)
        .replace(" opacity=\"1\"", "")
        .replace(" \"/>", "\"/>"))
}

fn at((x, y): (f64, f64)) -> (i32, i32) {
    ((x * UNITS).round() as i32, (y * UNITS).round() as i32)
}

fn stroke(color: RGBColor, width: f64) -> ShapeStyle {
    ShapeStyle {
        color: color.to_rgba(),
        filled: false,
        stroke_width: (width * UNITS).round().max(1.0) as u32,
    }
}

impl Canvas<'_> {
    fn keep(&mut self, result: Result<(), String>) {
        if let Err(error) = result {
            self.failure.get_or_insert(PlotError::Drawing(error));
        }
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), color: RGBColor, width: f64) {
        let drawn = self.backend.draw_line(at(from), at(to), &stroke(color, width));
        self.keep(drawn.map_err(|e| e.to_string()));
    }

    pub(crate) fn path(&mut self, points: &[(f64, f64)], color: RGBColor, width: f64) {
        let drawn = self
            .backend
            .draw_path(points.iter().copied().map(at), &stroke(color, width));
        self.keep(drawn.map_err(|e| e.to_string()));
    }

    /// A path in dashes: lengths of dash, gap, dash, … in points. Solid if there are none.
    pub(crate) fn dashed(&mut self, points: &[(f64, f64)], dash: &[f64], color: RGBColor, width: f64) {
        if dash.is_empty() {
            return self.path(points, color, width);
        }
        let (mut part, mut left, mut piece) = (0, dash[0], Vec::new());
        for pair in points.windows(2) {
            let (mut from, to) = (pair[0], pair[1]);
            if piece.is_empty() && part % 2 == 0 {
                piece.push(from);
            }
            loop {
                let (dx, dy) = (to.0 - from.0, to.1 - from.1);
                let length = dx.hypot(dy);
                if length <= left {
                    left -= length;
                    if part % 2 == 0 {
                        piece.push(to);
                    }
                    break;
                }
                from = (from.0 + dx * left / length, from.1 + dy * left / length);
                if part % 2 == 0 {
                    piece.push(from);
                    self.path(&piece, color, width);
                    piece.clear();
                } else {
                    piece.push(from);
                }
                part = (part + 1) % (dash.len() / 2 * 2);
                left = dash[part];
            }
        }
        if piece.len() > 1 {
            self.path(&piece, color, width);
        }
    }

    pub(crate) fn fill(&mut self, area: Area, color: RGBColor) {
        let style = ShapeStyle {
            color: color.to_rgba(),
            filled: true,
            stroke_width: 0,
        };
        let drawn = self
            .backend
            .draw_rect(at((area.left, area.top)), at((area.right, area.bottom)), &style, true);
        self.keep(drawn.map_err(|e| e.to_string()));
    }

    pub(crate) fn outline(&mut self, area: Area, color: RGBColor, width: f64) {
        let Area {
            left,
            top,
            right,
            bottom,
        } = area;
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        self.path(&corners, color, width);
    }

    /// A filled area of a series: its colour, its hatch and an edge.
    pub(crate) fn bar(&mut self, area: Area, look: Look, edge: RGBColor) {
        self.fill(area, look.color);
        self.hatch(area, look.hatch, crate::style::readable_on(look.color));
        self.outline(area, edge, 0.4);
    }

    /// Lines over an area. plotters knows no patterns: each line is clipped here.
    pub(crate) fn hatch(&mut self, area: Area, hatch: Hatch, ink: RGBColor) {
        const GAP: f64 = 4.0;
        const PEN: f64 = 0.45;
        let (rising, falling, horizontal, vertical) = match hatch {
            Hatch::None => (false, false, false, false),
            Hatch::Rising => (true, false, false, false),
            Hatch::Falling => (false, true, false, false),
            Hatch::Cross => (true, true, false, false),
            Hatch::Horizontal => (false, false, true, false),
            Hatch::Vertical => (false, false, false, true),
            Hatch::Grid => (false, false, true, true),
            Hatch::Dots => {
                let mut y = area.top + 1.5;
                let mut odd = false;
                while y < area.bottom - 0.5 {
                    let mut x = area.left + if odd { 1.5 + 1.75 } else { 1.5 };
                    while x < area.right - 0.5 {
                        self.dot((x, y), 0.5, ink);
                        x += 3.5;
                    }
                    y += 2.2;
                    odd = !odd;
                }
                return;
            }
        };
        // Slanted lines x ∓ y = c start at multiples of the gap, so that neighbours continue each other.
        let first = |from: f64| (from / GAP).ceil() * GAP;
        if rising {
            let mut c = first(area.left + area.top);
            while c < area.right + area.bottom {
                let from = ((c - area.bottom).max(area.left), (c - area.left).min(area.bottom));
                let to = ((c - area.top).min(area.right), (c - area.right).max(area.top));
                self.line(from, to, ink, PEN);
                c += GAP;
            }
        }
        if falling {
            let mut c = first(area.left - area.bottom);
            while c < area.right - area.top {
                let from = ((c + area.top).max(area.left), (area.left - c).max(area.top));
                let to = ((c + area.bottom).min(area.right), (area.right - c).min(area.bottom));
                self.line(from, to, ink, PEN);
                c += GAP;
            }
        }
        if horizontal {
            let mut y = area.top + GAP / 2.0;
            while y < area.bottom {
                self.line((area.left, y), (area.right, y), ink, PEN);
                y += GAP * 0.7;
            }
        }
        if vertical {
            let mut x = area.left + GAP / 2.0;
            while x < area.right {
                self.line((x, area.top), (x, area.bottom), ink, PEN);
                x += GAP * 0.7;
            }
        }
    }

    /// A filled polygon.
    pub(crate) fn polygon(&mut self, points: &[(f64, f64)], color: RGBColor, opacity: f64) {
        let style = ShapeStyle {
            color: color.mix(opacity),
            filled: true,
            stroke_width: 0,
        };
        let drawn = self.backend.fill_polygon(points.iter().copied().map(at), &style);
        self.keep(drawn.map_err(|e| e.to_string()));
    }

    pub(crate) fn dot(&mut self, center: (f64, f64), radius: f64, color: RGBColor) {
        let style = ShapeStyle {
            color: color.to_rgba(),
            filled: true,
            stroke_width: 0,
        };
        let radius = (radius * UNITS).round().max(1.0) as u32;
        let drawn = self.backend.draw_circle(at(center), radius, &style, true);
        self.keep(drawn.map_err(|e| e.to_string()));
    }

    /// A marker of a series, `radius` points from its centre to its tips.
    pub(crate) fn marker(&mut self, (x, y): (f64, f64), marker: Marker, radius: f64, color: RGBColor) {
        let r = radius;
        match marker {
            Marker::Circle => self.dot((x, y), r, color),
            Marker::Ring => {
                let corners: Vec<_> = (0..=12)
                    .map(|i| f64::from(i) * std::f64::consts::TAU / 12.0)
                    .map(|angle| (x + r * angle.cos(), y + r * angle.sin()))
                    .collect();
                self.path(&corners, color, 0.8);
            }
            Marker::Square => self.fill(
                Area {
                    left: x - 0.85 * r,
                    top: y - 0.85 * r,
                    right: x + 0.85 * r,
                    bottom: y + 0.85 * r,
                },
                color,
            ),
            Marker::Triangle => {
                self.polygon(
                    &[
                        (x, y - 1.15 * r),
                        (x + 1.05 * r, y + 0.8 * r),
                        (x - 1.05 * r, y + 0.8 * r),
                    ],
                    color,
                    1.0,
                );
            }
            Marker::TriangleDown => {
                self.polygon(
                    &[
                        (x, y + 1.15 * r),
                        (x + 1.05 * r, y - 0.8 * r),
                        (x - 1.05 * r, y - 0.8 * r),
                    ],
                    color,
                    1.0,
                );
            }
            Marker::Diamond => {
                let r = 1.15 * r;
                self.polygon(&[(x, y - r), (x + r, y), (x, y + r), (x - r, y)], color, 1.0);
            }
            Marker::Cross => {
                let r = 0.85 * r;
                self.line((x - r, y - r), (x + r, y + r), color, 1.0);
                self.line((x - r, y + r), (x + r, y - r), color, 1.0);
            }
            Marker::Plus => {
                self.line((x - r, y), (x + r, y), color, 1.0);
                self.line((x, y - r), (x, y + r), color, 1.0);
            }
        }
    }

    /// A text with its baseline at `y`.
    pub(crate) fn text(&mut self, text: &str, (x, y): (f64, f64), hold: Hold, size: f64, color: RGBColor) {
        self.write(text, (x, y - BASELINE * size), hold, size, color, FontTransform::None);
    }

    /// A text with the middle of its capitals at `y`.
    pub(crate) fn text_centred(&mut self, text: &str, (x, y): (f64, f64), hold: Hold, size: f64, color: RGBColor) {
        self.text(text, (x, y + CAPITALS / 2.0 * size), hold, size, color);
    }

    /// A text that reads upwards, with the middle of its capitals at `x`.
    pub(crate) fn text_upwards(&mut self, text: &str, (x, y): (f64, f64), hold: Hold, size: f64, color: RGBColor) {
        let x = x + CAPITALS / 2.0 * size - BASELINE * size;
        self.write(text, (x, y), hold, size, color, FontTransform::Rotate270);
    }

    fn write(
        &mut self,
        text: &str,
        place: (f64, f64),
        hold: Hold,
        size: f64,
        color: RGBColor,
        transform: FontTransform,
    ) {
        let h_pos = match hold {
            Hold::Start => HPos::Left,
            Hold::Middle => HPos::Center,
            Hold::End => HPos::Right,
        };
        let style = TextStyle::from((font::FAMILY, size * UNITS * SIZE))
            .color(&color)
            .transform(transform)
            .pos(Pos::new(h_pos, VPos::Top));
        let drawn = self.backend.draw_text(text, &style, at(place));
        self.keep(drawn.map_err(|e| e.to_string()));
    }
}

/// Height of capitals in ems (Arimo: 1409 of 2048).
pub(crate) const CAPITALS: f64 = 0.688;
