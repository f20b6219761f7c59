//! Scales, ticks and how numbers read.

use plotters::coord::ranged1d::Ranged as _;
use plotters::coord::types::RangedCoordf64;

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Equal distances for equal differences.
    #[default]
    Linear,
    /// Equal distances for equal ratios; values must be above 0.
    Log,
}

/// A range of values on a scale, with its ticks.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis that holds all values, with about `wanted` ticks. The values are finite; on a log scale above 0.
    pub(crate) fn covering(
        values: impl IntoIterator<Item = f64>,
        scale: Scale,
        from_zero: bool,
        wanted: usize,
    ) -> Self {
        let (mut low, mut high) = values
            .into_iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            });
        if low > high {
            (low, high) = match scale {
                Scale::Linear => (0.0, 1.0),
                Scale::Log => (1.0, 10.0),
            };
        }
        match scale {
            Scale::Linear => {
                if from_zero {
                    low = low.min(0.0);
                    high = high.max(0.0);
                }
                Self::linear(low, high, from_zero, wanted)
            }
            Scale::Log => Self::log(low, high, wanted),
        }
    }

    /// A linear axis with these ends.
    pub(crate) fn exactly(low: f64, high: f64, wanted: usize) -> Self {
        Axis {
            scale: Scale::Linear,
            low,
            high,
            ticks: linear_ticks(low, high, wanted),
        }
    }

    fn linear(mut low: f64, mut high: f64, from_zero: bool, wanted: usize) -> Self {
        if high - low <= low.abs().max(high.abs()) * 1e-9 {
            // One value, or as good as one.
            let margin = if high == 0.0 { 1.0 } else { high.abs() * 0.1 };
            if from_zero && high > 0.0 {
                high += margin;
            } else {
                low -= margin;
                high += margin;
            }
        } else {
            let margin = (high - low) * 0.05;
            high += margin;
            if !(from_zero && low == 0.0) {
                low -= margin;
            }
        }
        let ticks = linear_ticks(low, high, wanted);
        Axis {
            scale: Scale::Linear,
            low,
            high,
            ticks,
        }
    }

    fn log(low: f64, high: f64, wanted: usize) -> Self {
        // A fourteenth more on both sides, and never less than a factor of two.
        let ratio = (high / low).max(1.0);
        let margin = if ratio < 1.5 { 1.5 } else { ratio.powf(0.06).max(1.1) };
        let (low, high) = (low / margin, high * margin);
        Axis {
            scale: Scale::Log,
            low,
            high,
            ticks: log_ticks(low, high, wanted),
        }
    }

    /// Place of a value: 0 at the low end, 1 at the high end. Values outside stay at the end.
    pub(crate) fn fraction(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value <= 0.0 => 0.0,
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        place.clamp(0.0, 1.0)
    }
}

fn linear_ticks(low: f64, high: f64, wanted: usize) -> Vec<(f64, String)> {
    let coordinate: RangedCoordf64 = (low..high).into();
    let points: Vec<f64> = coordinate
        .key_points(wanted.max(2))
        .into_iter()
        .filter(|v| (low..=high).contains(v))
        .collect();
    let step = points.windows(2).map(|p| p[1] - p[0]).fold(f64::INFINITY, f64::min);
    let largest = points.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    points
        .into_iter()
        .map(|value| {
            let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
            (value, tick_text(value, step, largest))
        })
        .collect()
}

fn log_ticks(low: f64, high: f64, wanted: usize) -> Vec<(f64, String)> {
    let wanted = wanted.max(2);
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let decades = (high / low).log10();
    let within = |steps: &[f64]| -> Vec<f64> {
        (first..=last)
            .flat_map(|exponent| steps.iter().map(move |step| step * 10_f64.powi(exponent)))
            .filter(|v| (low..=high).contains(v))
            .collect()
    };
    let candidates = [
        within(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]),
        within(&[1.0, 2.0, 3.0, 5.0]),
        within(&[1.0, 2.0, 5.0]),
        within(&[1.0, 3.0]),
    ];
    if decades < 3.0
        && let Some(points) = candidates
            .into_iter()
            .find(|points| (2..=wanted + 1).contains(&points.len()))
    {
        return points.into_iter().map(|v| (v, number(v))).collect();
    }
    let all = within(&[1.0]);
    if all.len() < 2 {
        // Less than the step from 1 to 1.5: as if it were linear.
        return linear_ticks(low, high, wanted)
            .into_iter()
            .filter(|(v, _)| *v > 0.0)
            .collect();
    }
    let every = all.len().div_ceil(wanted);
    // A thousand is spelt out where nothing larger follows.
    let plain = high < 1e4;
    all.into_iter().step_by(every).map(|v| (v, power(v, plain))).collect()
}

const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// `10⁶`; up to a thousand as it is if `plain`.
fn power(value: f64, plain: bool) -> String {
    let exponent = value.log10().round() as i32;
    match exponent {
        0 => "1".to_string(),
        1 => "10".to_string(),
        2 => "100".to_string(),
        3 if plain => "1000".to_string(),
        -1 => "0.1".to_string(),
        _ => format!("10{}", superscript(exponent)),
    }
}

pub(crate) fn superscript(n: i32) -> String {
    n.to_string()
        .chars()
        .map(|c| match c.to_digit(10) {
            Some(digit) => SUPERSCRIPTS[digit as usize],
            None => '⁻',
        })
        .collect()
}

const PREFIXES: [(f64, &str); 6] = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];

/// Text of a tick, with as many decimals as the step needs.
fn tick_text(value: f64, step: f64, largest: f64) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    let minus = if value < 0.0 { "−" } else { "" };
    let value = value.abs();
    let (scale, prefix) = match largest {
        l if !(1e-3..1e18).contains(&l) => return format!("{minus}{}", scientific(value)),
        l if l >= 1e4 => PREFIXES.into_iter().find(|(scale, _)| l >= *scale).unwrap_or((1.0, "")),
        _ => (1.0, ""),
    };
    let decimals = (-(step / scale).log10() + 1e-9).ceil().clamp(0.0, 9.0) as usize;
    let text = format!("{:.*}", decimals, value / scale);
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    match prefix {
        "" => format!("{minus}{text}"),
        _ => format!("{minus}{text} {prefix}"),
    }
}

fn scientific(value: f64) -> String {
    let exponent = value.log10().floor() as i32;
    let mantissa = format!("{:.2}", value / 10_f64.powi(exponent));
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    match mantissa {
        "1" => format!("10{}", superscript(exponent)),
        _ => format!("{mantissa}·10{}", superscript(exponent)),
    }
}

/// A number on its own, in three or four digits: `0.42`, `1.37`, `12.5`, `830`, `1.2 M`.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    let minus = if value < 0.0 { "−" } else { "" };
    let magnitude = value.abs();
    if !(1e-3..1e18).contains(&magnitude) {
        return format!("{minus}{}", scientific(magnitude));
    }
    let (scale, prefix) = match magnitude {
        m if m >= 9_999.5 => PREFIXES.into_iter().find(|(scale, _)| m >= *scale).unwrap_or((1.0, "")),
        _ => (1.0, ""),
    };
    let scaled = magnitude / scale;
    let decimals = (2 - scaled.log10().floor() as i32).clamp(0, 5) as usize;
    let text = format!("{scaled:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    match prefix {
        "" => format!("{minus}{text}"),
        _ => format!("{minus}{text} {prefix}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_inside() {
        let axis = Axis::covering([0.3, 2.4], Scale::Linear, true, 6);
        assert_eq!(texts(&axis), ["0", "0.5", "1", "1.5", "2", "2.5"]);
        let axis = Axis::covering([1_200_000.0, 2_400_000.0], Scale::Linear, true, 6);
        assert!(texts(&axis).contains(&"1.5 M"), "{:?}", axis.ticks);
    }

    #[test]
    fn log_ticks_are_decades_where_there_are_many() {
        let axis = Axis::covering([3.0, 4e6], Scale::Log, false, 8);
        assert_eq!(texts(&axis), ["10", "100", "10³", "10⁴", "10⁵", "10⁶"]);
        let axis = Axis::covering([1.0, 2e3], Scale::Log, false, 6);
        assert_eq!(texts(&axis), ["1", "10", "100", "1000"]);
        let axis = Axis::covering([0.5, 3.0], Scale::Log, false, 6);
        assert!(
            texts(&axis).contains(&"1") && texts(&axis).contains(&"2"),
            "{:?}",
            axis.ticks
        );
    }

    #[test]
    fn one_value_has_an_axis_with_ticks() {
        for value in [0.0, 1.0, -3.0, 5e9, 1e-12] {
            for from_zero in [true, false] {
                let axis = Axis::covering([value], Scale::Linear, from_zero, 5);
                assert!(axis.low < axis.high && axis.ticks.len() >= 2, "{value} {axis:?}");
                assert!(axis.ticks.len() <= 12, "{value} {axis:?}");
            }
        }
        let axis = Axis::covering([42.0], Scale::Log, false, 5);
        assert!(axis.low < 42.0 && 42.0 < axis.high && axis.ticks.len() >= 2, "{axis:?}");
    }

    #[test]
    fn ticks_have_different_texts() {
        for (low, high) in [(0.998, 1.002), (1e6, 1.001e6), (12_345.0, 12_346.0), (0.0, 3e-7)] {
            for scale in [Scale::Linear, Scale::Log] {
                let axis = Axis::covering([f64::max(low, 1e-9), high], scale, false, 6);
                let mut seen = texts(&axis);
                seen.dedup();
                assert_eq!(seen.len(), axis.ticks.len(), "{:?}", axis.ticks);
            }
        }
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(number(1.372_4), "1.37");
        assert_eq!(number(0.042), "0.042");
        assert_eq!(number(830.4), "830");
        assert_eq!(number(1_234_567.0), "1.23 M");
        assert_eq!(number(-2.0), "−2");
        assert_eq!(number(1e-7), "10⁻⁷");
        assert_eq!(number(2.5e-7), "2.5·10⁻⁷");
    }
}
