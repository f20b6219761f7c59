//! Sizes of design spaces, as a table.

use std::collections::BTreeMap;

use super::{check_value, distinct, empty};
use crate::canvas::{self, Area, Hold};
use crate::font;
use crate::frame::{LINE, size};
use crate::row::row;
use crate::style::{Style, TITLE, TYPE};
use crate::{Figure, PlotError, write_csv};

row! {
    /// The size of one space.
    SpaceRow {
        /// The problem: a layer, a network.
        problem: String,
        /// The space: what may be chosen, under which rules.
        space: String,
        /// log10 of the number of points.
        log10_size: f64,
    }
}

/// Head of the first column.
const CORNER: &str = "design points";

/// Problems in one table.
const PROBLEMS: usize = 120;

/// A line per problem, a column per space.
///
/// # Errors
/// Without rows, for values that are not finite or below 0, for a cell that is given twice, or more than fits.
pub fn space(rows: &[SpaceRow], style: &Style) -> Result<Figure, PlotError> {
    if rows.is_empty() {
        return Err(empty("a table of design spaces needs at least one"));
    }
    let mut cells = BTreeMap::new();
    for row in rows {
        let name = || format!("{}, {}", row.problem, row.space);
        check_value(name, "log10_size", row.log10_size, false)?;
        if row.log10_size < 0.0 {
            let message = format!(
                "log10_size is {}; expected at least 0, a space of one point",
                row.log10_size
            );
            return Err(PlotError::value(name(), message));
        }
        if cells
            .insert((row.problem.as_str(), row.space.as_str()), row.log10_size)
            .is_some()
        {
            return Err(PlotError::value(
                name(),
                "is there twice; expected one size per problem and space",
            ));
        }
    }
    let problems = distinct(rows.iter().map(|row| row.problem.as_str()));
    let spaces = distinct(rows.iter().map(|row| row.space.as_str()));
    if problems.len() > PROBLEMS {
        return Err(PlotError::TooMany {
            what: "problems",
            found: problems.len(),
            most: PROBLEMS,
            hint: "choose some",
        });
    }
    let colors = style.theme.colors();
    let title = style.title.as_deref().map_or(0.0, |_| TITLE * 1.25 + 4.0);
    let line = LINE + 2.0;
    let (width, height) = size(style, 0.0, title + line * (problems.len() + 1) as f64 + 14.0)?;
    let left = 6.0;
    let longest = problems
        .iter()
        .map(|p| font::width(p, TYPE))
        .fold(font::width(CORNER, TYPE), f64::max);
    // Every column has what it needs; the names of the problems give way first, then those of the spaces.
    let need = |space: &String| -> f64 {
        let sizes = cells
            .iter()
            .filter(|((_, of), _)| of == space)
            .map(|(_, log)| points(*log));
        let widest = sizes.map(|text| font::width(&text, TYPE)).fold(0.0, f64::max);
        widest.max(font::width(space, TYPE)) + 12.0
    };
    let needs: Vec<f64> = spaces.iter().map(need).collect();
    let room = width - 2.0 * left;
    let first = (longest + 8.0).min(room - needs.iter().sum::<f64>()).max(room * 0.3);
    let column = (room - first) / needs.iter().sum::<f64>();
    if (room - first) / (spaces.len() as f64) < 40.0 {
        return Err(PlotError::TooMany {
            what: "spaces",
            found: spaces.len(),
            most: ((room - first) / 40.0) as usize,
            hint: "choose some, or a larger width",
        });
    }
    let svg = canvas::svg(width, height, |canvas| {
        let page = Area {
            left: 0.0,
            top: 0.0,
            right: width,
            bottom: height,
        };
        canvas.fill(page, colors.paper);
        if let Some(title) = &style.title {
            let title = font::shortened(title, TITLE, width - 8.0);
            canvas.text(
                &title,
                (width / 2.0, 4.0 + TITLE * 0.9),
                Hold::Middle,
                TITLE,
                colors.ink,
            );
        }
        let middle = |n: usize| 6.0 + title + line * (n as f64 + 0.5);
        let rule = |n: usize| 6.0 + title + line * n as f64;
        let right_of = |s: usize| left + first + column * needs[..=s].iter().sum::<f64>();
        for (y, weight) in [(rule(0), 0.9), (rule(1), 0.5), (rule(problems.len() + 1), 0.9)] {
            canvas.line((left, y), (width - left, y), colors.ink, weight);
        }
        canvas.text_centred(CORNER, (left, middle(0)), Hold::Start, TYPE, colors.soft);
        for (s, space) in spaces.iter().enumerate() {
            let text = font::shortened(space, TYPE, column * needs[s] - 6.0);
            canvas.text_centred(&text, (right_of(s), middle(0)), Hold::End, TYPE, colors.ink);
        }
        for (p, problem) in problems.iter().enumerate() {
            let text = font::shortened(problem, TYPE, first - 8.0);
            canvas.text_centred(&text, (left, middle(p + 1)), Hold::Start, TYPE, colors.ink);
            for (s, space) in spaces.iter().enumerate() {
                let text = match cells.get(&(problem.as_str(), space.as_str())) {
                    Some(log) => points(*log),
                    None => "–".to_string(),
                };
                canvas.text_centred(&text, (right_of(s), middle(p + 1)), Hold::End, TYPE, colors.ink);
            }
        }
    })?;
    Ok(Figure::new(svg, write_csv(rows)))
}

/// `1`, `5,040`, `1.2·10²⁴`.
fn points(log10: f64) -> String {
    if log10 < 6.0 {
        let digits = format!("{:.0}", 10_f64.powf(log10));
        let mut text = String::new();
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i) % 3 == 0 {
                text.push(',');
            }
            text.push(digit);
        }
        return text;
    }
    // Rounded first, so that 9.96 becomes 1.0 of the next power.
    let tenths = (log10.fract() + 1e-12, log10.floor());
    let mantissa = (10_f64.powf(tenths.0) * 10.0).round() / 10.0;
    let (mantissa, exponent) = if mantissa >= 10.0 {
        (1.0, tenths.1 + 1.0)
    } else {
        (mantissa, tenths.1)
    };
    format!("{mantissa:.1}·10{}", crate::axis::superscript(exponent as i32))
}

#[cfg(test)]
mod tests {
    use super::points;

    #[test]
    fn sizes_read_well() {
        assert_eq!(points(0.0), "1");
        assert_eq!(points(5040_f64.log10()), "5,040");
        assert_eq!(points(1.23e24_f64.log10()), "1.2·10²⁴");
        assert_eq!(points(9.97e9_f64.log10()), "1.0·10¹⁰");
    }
}
