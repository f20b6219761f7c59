//! A model against the simulator: one point per case, the line y = x, a band of ±10 %, R² and the mean error.

use super::{check_series, check_value, distinct, empty, visible};
use crate::axis::{Axis, Scale, number};
use crate::canvas::Hold;
use crate::font;
use crate::frame::{Entry, Frame, Horizontal, Swatch, Vertical};
use crate::row::row;
use crate::stats::{mape, r_squared};
use crate::style::{Style, TYPE};
use crate::{Figure, PlotError, write_csv};

row! {
    /// One case.
    ScatterRow {
        /// What it is: a layer, a mapping.
        name: String,
        /// What it is one of: a model, a machine.
        series: String,
        /// What the simulator measured.
        simulated: f64,
        /// What the model says.
        modelled: f64,
    }
}

/// How a model is compared with simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct ScatterOptions {
    /// Label of the horizontal axis, with its unit.
    pub x_label: String,
    /// Label of the vertical axis, with its unit.
    pub y_label: String,
    /// Scale of both axes.
    pub scale: Scale,
    /// Half width of the band around y = x; 0.1 is ±10 %.
    pub band: f64,
}

impl ScatterOptions {
    /// Cycles on log scales, with a band of ±10 %.
    #[must_use]
    pub fn cycles() -> Self {
        ScatterOptions {
            x_label: "simulated [cycles]".to_string(),
            y_label: "modelled [cycles]".to_string(),
            scale: Scale::Log,
            band: 0.1,
        }
    }
}

/// Points of a model against simulation. The figure states R² (see [`r_squared`]) and the mean absolute error in percent
/// of each series; both are among its notes.
///
/// # Errors
/// Without rows, for values that are not finite, for `simulated` that is not above 0, or too many series.
pub fn scatter(rows: &[ScatterRow], options: &ScatterOptions, style: &Style) -> Result<Figure, PlotError> {
    if rows.is_empty() {
        return Err(empty("a comparison needs at least one case"));
    }
    let series = distinct(rows.iter().map(|row| row.series.as_str()));
    check_series(&series)?;
    for row in rows {
        let name = || format!("{}, {}", row.name, row.series);
        check_value(name, "simulated", row.simulated, true)?;
        check_value(name, "modelled", row.modelled, options.scale == Scale::Log)?;
    }
    let mut notes = Vec::new();
    let mut stated = Vec::new();
    for name in &series {
        let of = |value: fn(&ScatterRow) -> f64| -> Vec<f64> {
            rows.iter().filter(|r| r.series == *name).map(value).collect()
        };
        let (modelled, simulated) = (of(|r| r.modelled), of(|r| r.simulated));
        let mut words = Vec::new();
        if let Some(r2) = r_squared(&modelled, &simulated) {
            notes.push((format!("R² {name}"), r2));
            words.push(format!("R² {}", coefficient(r2)));
        }
        if let Some(error) = mape(&modelled, &simulated) {
            notes.push((format!("MAPE {name} [%]"), 100.0 * error));
            words.push(format!("MAPE {} %", percent(100.0 * error)));
        }
        stated.push(words.join(", "));
    }
    let colors = style.theme.colors();
    // Both axes are the same, so that y = x is the diagonal.
    let values = || rows.iter().flat_map(|r| [r.simulated, r.modelled]);
    let axis = Axis::covering(values(), options.scale, options.scale == Scale::Linear, 5);
    let entry = |(i, name): (usize, &String)| Entry {
        text: format!("{name}: {}", stated[i]),
        look: colors.series(i),
        swatch: Swatch::Marker,
    };
    let frame = Frame {
        legend: series.iter().enumerate().map(entry).collect(),
        x: Horizontal::Values {
            axis: axis.clone(),
            label: options.x_label.clone(),
        },
        y: Vertical::Values {
            axis: axis.clone(),
            label: options.y_label.clone(),
        },
        proportion: if style.width.inches() > 4.5 { 0.6 } else { 0.85 },
        least_height: 0.0,
        right: 0.0,
        grid: true,
    };
    let svg = frame.draw(style, |canvas, plot| {
        let along: Vec<f64> = (0..=60)
            .map(|i| f64::from(i) / 60.0)
            .map(|t| match options.scale {
                Scale::Linear => axis.low + t * (axis.high - axis.low),
                Scale::Log => axis.low * (axis.high / axis.low).powf(t),
            })
            .collect();
        let side = |factor: f64| along.iter().map(move |&v| (v, v * factor));
        let band: Vec<(f64, f64)> = side(1.0 + options.band)
            .chain(side(1.0 - options.band).collect::<Vec<_>>().into_iter().rev())
            .map(|(x, y)| (plot.x(x), plot.y(y)))
            .collect();
        canvas.polygon(&band, colors.grid, 0.8);
        let diagonal = [
            (plot.x(axis.low), plot.y(axis.low)),
            (plot.x(axis.high), plot.y(axis.high)),
        ];
        canvas.line(diagonal[0], diagonal[1], colors.soft, 0.8);
        let points: Vec<(f64, f64)> = rows.iter().map(|r| (plot.x(r.simulated), plot.y(r.modelled))).collect();
        for i in visible(&points) {
            let look = colors.series(super::position(&series, &rows[i].series));
            canvas.marker(points[i], look.marker, 2.2, look.color);
        }
        // In the lower right corner there are points only if the model is far too low there.
        let text = format!("line: y = x, band: ±{} %", number(options.band * 100.0));
        let wide = font::width(&text, TYPE);
        let (right, bottom) = (plot.area.right - 4.0, plot.area.bottom - 5.0);
        let free = points
            .iter()
            .all(|p| p.0 < right - wide - 3.0 || p.1 < bottom - TYPE - 3.0);
        if free && wide < plot.area.width() - 8.0 {
            canvas.text(&text, (right, bottom), Hold::End, TYPE, colors.soft);
        }
    })?;
    let figure = Figure::new(svg, write_csv(rows));
    Ok(notes
        .into_iter()
        .fold(figure, |figure, (name, value)| figure.with_note(name, value)))
}

/// As many digits as tell it from 1.
fn coefficient(r2: f64) -> String {
    let digits = match 1.0 - r2 {
        rest if rest <= 0.0 => 3,
        rest => (1 - rest.log10().floor() as i32).clamp(3, 6),
    };
    format!("{r2:.*}", digits as usize).replace('-', "−")
}

fn percent(value: f64) -> String {
    match value {
        v if v >= 10.0 => format!("{v:.0}"),
        v if v >= 1.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}
