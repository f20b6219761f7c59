//! The bundled font: what a text measures, and where the converters find it.

use std::sync::{Arc, LazyLock};

use ab_glyph::{Font as _, FontRef};
use resvg::usvg::fontdb::Database;

/// Arimo Regular, subset (`font/README.md`). Its widths are Arial's.
static BYTES: &[u8] = include_bytes!("../font/Arimo-Regular.ttf");

/// What the SVG asks for: ours, then fonts of the same widths.
pub(crate) const FAMILY: &str = "Arimo, Arial, Helvetica, Liberation Sans, sans-serif";

static FONT: LazyLock<FontRef<'static>> =
    LazyLock::new(|| FontRef::try_from_slice(BYTES).expect("the bundled font is a font: a test reads it"));

/// The fonts that the converters to PNG and PDF may use: the bundled one only, so that every machine draws the same.
pub(crate) fn database() -> Arc<Database> {
    static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
        let mut fonts = Database::new();
        fonts.load_font_data(BYTES.to_vec());
        Arc::new(fonts)
    });
    FONTS.clone()
}

/// The bundled font, a TrueType file under the SIL Open Font License, for pages that embed it.
#[must_use]
pub fn bundled_font() -> &'static [u8] {
    BYTES
}

/// Width of a text in points. Characters that the font lacks count as its box.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let units = f64::from(FONT.units_per_em().unwrap_or(2048.0));
    let mut sum = 0.0;
    let mut before = None;
    for c in text.chars() {
        let glyph = FONT.glyph_id(c);
        sum += f64::from(FONT.h_advance_unscaled(glyph));
        if let Some(before) = before {
            sum += f64::from(FONT.kern_unscaled(before, glyph));
        }
        before = Some(glyph);
    }
    sum * size / units
}

/// The text, shortened in its middle so that it is no wider than `room` points.
pub(crate) fn shortened(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_string();
    }
    let chars: Vec<char> = text.chars().collect();
    for kept in (1..chars.len()).rev() {
        let head: String = chars[..kept.div_ceil(2)].iter().collect();
        let tail: String = chars[chars.len() - kept / 2..].iter().collect();
        let short = format!("{head}…{tail}");
        if width(&short, size) <= room {
            return short;
        }
    }
    "…".to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_arial() {
        // Adobe's metrics of Helvetica, which Arial and Arimo share: digits 556, space 278, M 833 of 1000.
        assert!((width("0", 1000.0) - 556.0).abs() < 0.5);
        assert!((width(" ", 1000.0) - 278.0).abs() < 0.5);
        assert!((width("M", 1000.0) - 833.0).abs() < 0.5);
    }

    #[test]
    fn the_font_has_every_sign_that_figures_write() {
        for c in "µΩ×÷²³⁰¹⁴⁵⁶⁷⁸⁹⁻–—…·±→≥≤≈−√ηλ".chars() {
            assert_ne!(FONT.glyph_id(c).0, 0, "{c}");
        }
    }

    #[test]
    fn long_names_keep_both_ends() {
        let short = shortened("inception_4e/5x5_reduce", 8.0, 60.0);
        assert!(
            short.starts_with("inc") && short.ends_with("ce") && short.contains('…'),
            "{short}"
        );
        assert!(width(&short, 8.0) <= 60.0);
        assert_eq!(shortened("conv1", 8.0, 60.0), "conv1");
    }
}
