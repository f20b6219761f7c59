//! Speed-up of every layer, sorted: how many layers gain, and how much.

use std::collections::BTreeMap;

use super::{check_series, check_value, distinct, empty, visible};
use crate::axis::{Axis, Scale};
use crate::frame::{Entry, Frame, Horizontal, Swatch, Vertical};
use crate::stats::geomean;
use crate::style::Style;
use crate::{BarOptions, BarRow, Figure, GEOMEAN, PlotError, write_csv};

/// Layers whose points stand on a line from the reference.
const STEMS: usize = 150;

/// A point per layer (the group of the row) and series, from the highest value of the first series to the lowest; layers
/// that it lacks come last, by the next series.
///
/// # Errors
/// Without rows, for values that are not finite and above 0, or too many series.
pub fn layers(rows: &[BarRow], options: &BarOptions, style: &Style) -> Result<Figure, PlotError> {
    let rows: Vec<&BarRow> = rows.iter().filter(|row| row.group != GEOMEAN).collect();
    if rows.is_empty() {
        return Err(empty("a comparison of layers needs at least one"));
    }
    let series = distinct(rows.iter().map(|row| row.series.as_str()));
    check_series(&series)?;
    let mut by_layer: BTreeMap<&str, Vec<Option<f64>>> = BTreeMap::new();
    for row in &rows {
        check_value(|| format!("{}, {}", row.group, row.series), "value", row.value, true)?;
        let values = by_layer.entry(&row.group).or_insert_with(|| vec![None; series.len()]);
        if values[super::position(&series, &row.series)]
            .replace(row.value)
            .is_some()
        {
            return Err(PlotError::value(
                format!("{}, {}", row.group, row.series),
                "is there twice; expected one value per layer and series",
            ));
        }
    }
    let mut sorted: Vec<(&str, Vec<Option<f64>>)> = by_layer.into_iter().collect();
    sorted.sort_by(|a, b| {
        let key =
            |values: &[Option<f64>]| -> Vec<f64> { values.iter().map(|v| v.map_or(f64::INFINITY, |v| -v)).collect() };
        let (a_key, b_key) = (key(&a.1), key(&b.1));
        let order = a_key
            .iter()
            .zip(&b_key)
            .map(|(x, y)| x.total_cmp(y))
            .find(|o| o.is_ne());
        order.unwrap_or_else(|| a.0.cmp(b.0))
    });

    let colors = style.theme.colors();
    let values = rows.iter().map(|row| row.value).chain(options.reference);
    let frame = Frame {
        legend: match series.len() {
            1 => Vec::new(),
            _ => series
                .iter()
                .enumerate()
                .map(|(i, name)| Entry {
                    text: name.clone(),
                    look: colors.series(i),
                    swatch: Swatch::Marker,
                })
                .collect(),
        },
        x: Horizontal::Categories {
            names: sorted.iter().map(|(name, _)| (*name).to_string()).collect(),
            label: if options.x_label.is_empty() {
                "layer"
            } else {
                &options.x_label
            }
            .to_string(),
        },
        y: Vertical::Values {
            axis: Axis::covering(values, options.scale, options.scale == Scale::Linear, 6),
            label: options.y_label.clone(),
        },
        proportion: 0.55,
        least_height: 0.0,
        right: 0.0,
        grid: true,
    };
    let svg = frame.draw(style, |canvas, plot| {
        let base = plot.y(options.reference.unwrap_or(0.0));
        if options.reference.is_some() {
            canvas.line((plot.area.left, base), (plot.area.right, base), colors.soft, 0.8);
        }
        if sorted.len() <= STEMS {
            for (i, (_, values)) in sorted.iter().enumerate() {
                let x = plot.x(i as f64);
                let places = values.iter().flatten().map(|v| plot.y(*v));
                let (top, bottom) = places.fold((base, base), |(t, b), y| (t.min(y), b.max(y)));
                canvas.line((x, top), (x, bottom), colors.soft, 0.5);
            }
        }
        for (s, _) in series.iter().enumerate() {
            let look = colors.series(s);
            let points: Vec<(f64, f64)> = sorted
                .iter()
                .enumerate()
                .filter_map(|(i, (_, values))| values[s].map(|v| (plot.x(i as f64), plot.y(v))))
                .collect();
            for i in visible(&points) {
                canvas.marker(points[i], look.marker, 2.2, look.color);
            }
        }
    })?;
    let table: Vec<BarRow> = sorted
        .iter()
        .flat_map(|(name, values)| {
            values.iter().zip(&series).filter_map(|(value, series)| {
                value.map(|value| BarRow {
                    group: (*name).to_string(),
                    series: series.clone(),
                    value,
                })
            })
        })
        .collect();
    let mut figure = Figure::new(svg, write_csv(&table));
    for name in &series {
        let values: Vec<f64> = rows.iter().filter(|r| r.series == *name).map(|r| r.value).collect();
        if let Some(mean) = geomean(&values) {
            figure = figure.with_note(format!("{GEOMEAN} {name}"), mean);
        }
    }
    Ok(figure)
}
