//! Sizes and colours: what a two-column paper needs.
//!
//! Series are told apart three times: by colour (Okabe and Ito, *Color Universal Design*, 2008, which people with any
//! colour vision can tell apart), by hatch or marker, and by dash. So a figure survives a greyscale printer.

use std::fmt;
use std::str::FromStr;

use plotters::style::RGBColor;

/// Points per inch.
pub(crate) const POINTS: f64 = 72.0;

/// Size of all type but the title, in points. IEEE and ACM ask for at least 8 at print size.
pub(crate) const TYPE: f64 = 8.0;

/// Size of the title, in points.
pub(crate) const TITLE: f64 = 9.0;

/// Width of a figure in print.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Width {
    /// One column of an IEEE transaction or conference: 3.487 in.
    #[default]
    Ieee1,
    /// Both columns: 7.140 in.
    Ieee2,
    /// One column of ACM's `sigconf`: 3.337 in.
    Acm1,
    /// Both columns: 7.006 in.
    Acm2,
    /// Any other width in inches.
    Inches(f64),
}

impl Width {
    /// The width in inches.
    #[must_use]
    pub const fn inches(self) -> f64 {
        match self {
            Width::Ieee1 => 3.487,
            Width::Ieee2 => 7.140,
            Width::Acm1 => 3.337,
            Width::Acm2 => 7.006,
            Width::Inches(inches) => inches,
        }
    }
}

/// Widths in inches that a figure can have: narrower has no room for 8 pt type, wider is no page.
pub(crate) const WIDTHS: std::ops::RangeInclusive<f64> = 2.0..=40.0;

impl FromStr for Width {
    type Err = String;

    /// `ieee1`, `ieee2`, `acm1`, `acm2`, or inches between 2 and 40.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ieee1" => Ok(Width::Ieee1),
            "ieee2" => Ok(Width::Ieee2),
            "acm1" => Ok(Width::Acm1),
            "acm2" => Ok(Width::Acm2),
            other => match other.parse::<f64>() {
                Ok(inches) if WIDTHS.contains(&inches) => Ok(Width::Inches(inches)),
                Ok(_) => Err(format!(
                    "{other} in is no width for a figure; expected {} to {} inches",
                    WIDTHS.start(),
                    WIDTHS.end()
                )),
                Err(_) => Err("expected ieee1, ieee2, acm1, acm2 or inches".to_string()),
            },
        }
    }
}

/// Colours of everything that is not data, and how data is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// Dark ink on white.
    #[default]
    Light,
    /// Light ink on a dark page, for slides and screens.
    Dark,
    /// Black and greys only, for print without colour.
    Print,
}

impl FromStr for Theme {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "light" => Ok(Theme::Light),
            "dark" => Ok(Theme::Dark),
            "print" => Ok(Theme::Print),
            _ => Err("expected light, dark or print".to_string()),
        }
    }
}

impl fmt::Display for Theme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Theme::Light => "light",
            Theme::Dark => "dark",
            Theme::Print => "print",
        })
    }
}

/// How a figure looks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Style {
    /// Width in print.
    pub width: Width,
    /// Height in inches; each kind has its own proportion otherwise.
    pub height: Option<f64>,
    /// A line above the figure. Papers have captions instead.
    pub title: Option<String>,
    /// The colours.
    pub theme: Theme,
}

/// Blue, orange, bluish green, reddish purple, sky blue, vermillion, yellow, grey.
const OKABE_ITO: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0xF0, 0xE4, 0x42),
    RGBColor(0x99, 0x99, 0x99),
];

/// Greys whose neighbours differ.
const GREYS: [RGBColor; 8] = [
    RGBColor(0x40, 0x40, 0x40),
    RGBColor(0xC0, 0xC0, 0xC0),
    RGBColor(0x80, 0x80, 0x80),
    RGBColor(0xE8, 0xE8, 0xE8),
    RGBColor(0xA0, 0xA0, 0xA0),
    RGBColor(0x60, 0x60, 0x60),
    RGBColor(0xD4, 0xD4, 0xD4),
    RGBColor(0x20, 0x20, 0x20),
];

/// A pattern of lines over a filled area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hatch {
    None,
    Rising,
    Falling,
    Cross,
    Horizontal,
    Vertical,
    Grid,
    Dots,
}

/// A mark at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
    Plus,
    TriangleDown,
    Ring,
}

const HATCHES: [Hatch; 8] = [
    Hatch::None,
    Hatch::Rising,
    Hatch::Falling,
    Hatch::Cross,
    Hatch::Horizontal,
    Hatch::Vertical,
    Hatch::Grid,
    Hatch::Dots,
];

const MARKERS: [Marker; 8] = [
    Marker::Circle,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::Cross,
    Marker::Plus,
    Marker::TriangleDown,
    Marker::Ring,
];

/// Lengths of dash and gap in points; empty for a solid line.
const DASHES: [&[f64]; 4] = [&[], &[4.0, 2.0], &[1.2, 1.6], &[5.0, 1.6, 1.2, 1.6]];

/// Series that can be told apart.
pub(crate) const SERIES: usize = 16;

/// What one series looks like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Look {
    pub(crate) color: RGBColor,
    pub(crate) hatch: Hatch,
    pub(crate) marker: Marker,
    pub(crate) dash: &'static [f64],
}

/// The colours of a theme.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Colors {
    pub(crate) paper: RGBColor,
    pub(crate) ink: RGBColor,
    /// Lines that help reading but are no data.
    pub(crate) grid: RGBColor,
    /// Marks of the second rank: annotations, edges.
    pub(crate) soft: RGBColor,
    theme: Theme,
}

impl Theme {
    pub(crate) const fn colors(self) -> Colors {
        let (paper, ink, grid, soft) = match self {
            Theme::Light => (0xFF_FF_FF, 0x1B_1B_1B, 0xE2_E2_E2, 0x6A_6A_6A),
            Theme::Dark => (0x15_18_1D, 0xEC_EC_EC, 0x3A_3F_47, 0xA8_A8_A8),
            Theme::Print => (0xFF_FF_FF, 0x00_00_00, 0xD8_D8_D8, 0x50_50_50),
        };
        Colors {
            paper: rgb(paper),
            ink: rgb(ink),
            grid: rgb(grid),
            soft: rgb(soft),
            theme: self,
        }
    }
}

const fn rgb(code: u32) -> RGBColor {
    RGBColor((code >> 16) as u8, (code >> 8) as u8, code as u8)
}

impl Colors {
    /// Look of the series at this position. Past eight, colours come again with another hatch and marker.
    pub(crate) fn series(&self, position: usize) -> Look {
        let palette = match self.theme {
            Theme::Print => &GREYS,
            _ => &OKABE_ITO,
        };
        let shifted = position + position / 8 * 3;
        Look {
            color: palette[position % 8],
            hatch: HATCHES[shifted % 8],
            marker: MARKERS[shifted % 8],
            dash: DASHES[(position + position / 8) % 4],
        }
    }

    /// The colour of a value between 0 and 1 in a map: lightness falls evenly, so that greys keep the order.
    pub(crate) fn ramp(&self, fraction: f64) -> RGBColor {
        let stops: &[(f64, f64, f64)] = match self.theme {
            Theme::Print => &[(245.0, 245.0, 245.0), (20.0, 20.0, 20.0)],
            // ColorBrewer's YlGnBu in five steps, darker at the end.
            Theme::Light => &[
                (255.0, 255.0, 217.0),
                (180.0, 222.0, 183.0),
                (65.0, 182.0, 196.0),
                (34.0, 94.0, 168.0),
                (8.0, 22.0, 70.0),
            ],
            Theme::Dark => &[
                (26.0, 34.0, 60.0),
                (34.0, 94.0, 168.0),
                (65.0, 182.0, 196.0),
                (180.0, 222.0, 183.0),
                (255.0, 255.0, 217.0),
            ],
        };
        let place = fraction.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
        let below = (place.floor() as usize).min(stops.len() - 2);
        let t = place - below as f64;
        let mix = |a: f64, b: f64| (a + (b - a) * t).round() as u8;
        let (a, b) = (stops[below], stops[below + 1]);
        RGBColor(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
    }
}

/// Ink that can be read on `background`: black or white, whichever differs more.
pub(crate) fn readable_on(background: RGBColor) -> RGBColor {
    if luminance(background) > 0.36 {
        RGBColor(0, 0, 0)
    } else {
        RGBColor(255, 255, 255)
    }
}

/// Perceived lightness between 0 and 1 (ITU-R BT.601 luma).
pub(crate) fn luminance(color: RGBColor) -> f64 {
    (0.299 * f64::from(color.0) + 0.587 * f64::from(color.1) + 0.114 * f64::from(color.2)) / 255.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_publishers() {
        assert_eq!("ieee1".parse::<Width>().unwrap().inches(), 3.487);
        assert_eq!("acm2".parse::<Width>().unwrap().inches(), 7.006);
        assert_eq!("5.5".parse::<Width>().unwrap(), Width::Inches(5.5));
        assert!("0.5".parse::<Width>().unwrap_err().contains("expected 2 to 40"));
        assert!("NaN".parse::<Width>().is_err());
        assert!("wide".parse::<Width>().is_err());
    }

    #[test]
    fn sixteen_series_differ_in_colour_or_hatch_and_in_marker_or_colour() {
        let colors = Theme::Light.colors();
        let looks: Vec<Look> = (0..SERIES).map(|i| colors.series(i)).collect();
        for (i, a) in looks.iter().enumerate() {
            for b in &looks[..i] {
                assert!(a.color != b.color || a.hatch != b.hatch);
                assert!(a.color != b.color || a.marker != b.marker);
            }
        }
    }

    #[test]
    fn without_colour_the_first_eight_series_differ_in_hatch_and_marker() {
        let colors = Theme::Print.colors();
        let looks: Vec<Look> = (0..8).map(|i| colors.series(i)).collect();
        for (i, a) in looks.iter().enumerate() {
            for b in &looks[..i] {
                assert!(a.hatch != b.hatch && a.marker != b.marker);
            }
        }
    }

    #[test]
    fn the_ramp_falls_in_lightness() {
        for theme in [Theme::Light, Theme::Print] {
            let colors = theme.colors();
            let steps: Vec<f64> = (0..=10).map(|i| luminance(colors.ramp(f64::from(i) / 10.0))).collect();
            assert!(steps.windows(2).all(|pair| pair[0] > pair[1]), "{steps:?}");
        }
    }
}
