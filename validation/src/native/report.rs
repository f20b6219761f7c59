//! What the measurements say.

use std::fmt::Write;

use cyclonest_sconv::Stationary;
use serde::{Deserialize, Serialize};

use super::{Kernel, LayerReport, Prediction, Report, occurrences};
use crate::compare::{Agreement, Interval, Pair};

/// One of our kernels against one baseline.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Comparison {
    /// Ours.
    pub ours: Kernel,
    /// Against.
    pub versus: Versus,
    /// Of which layers.
    pub layers: String,
    /// Distinct layers, and all of them by count.
    pub distinct: usize,
    /// All of them by count.
    pub count: u64,
    /// Geometric mean of baseline time ÷ ours, weighted by count.
    pub geomean: f64,
    /// Ratio of the summed times: what the convolutions of all these layers together gain.
    pub total: f64,
    /// Share of layers, by count, that are faster with ours.
    pub faster: f64,
    /// Largest ratio and its layer.
    pub largest: (f64, String),
    /// Smallest ratio and its layer.
    pub smallest: (f64, String),
}

/// A baseline, or the better of two for each layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Versus {
    /// This one.
    One(Kernel),
    /// oneDNN with NCHW in and out, by whichever way is faster for the layer: told so, or blocked with reorders.
    OnednnNchwFaster,
}

impl Versus {
    fn cycles(self, layer: &LayerReport) -> Option<f64> {
        match self {
            Versus::One(kernel) => layer.cycles(kernel),
            Versus::OnednnNchwFaster => {
                let ways = [layer.cycles(Kernel::OnednnNchw), layer.cycles(Kernel::OnednnReordered)];
                ways.into_iter().flatten().min_by(f64::total_cmp)
            }
        }
    }

    /// Its name in tables.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Versus::One(kernel) => kernel.label(),
            Versus::OnednnNchwFaster => "oneDNN NCHW in and out",
        }
    }
}

/// Compares over the layers that `choose` picks; `None` if none of them ran on both.
fn compare(
    report: &Report,
    ours: Kernel,
    versus: Versus,
    layers: &str,
    model: Option<&str>,
    choose: &dyn Fn(&LayerReport) -> bool,
) -> Option<Comparison> {
    let rows: Vec<(&LayerReport, u64, f64, f64)> = report
        .layers
        .iter()
        .filter(|layer| choose(layer))
        .filter_map(|layer| {
            Some((
                layer,
                occurrences(&layer.layer.models, model),
                layer.cycles(ours)?,
                versus.cycles(layer)?,
            ))
        })
        .filter(|(_, count, ..)| *count > 0)
        .collect();
    let count: u64 = rows.iter().map(|row| row.1).sum();
    let ratio = |row: &&(&LayerReport, u64, f64, f64)| row.3 / row.2;
    let largest = rows.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    let smallest = rows.iter().min_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    let weighted =
        |value: &dyn Fn(f64, f64) -> f64| rows.iter().map(|(_, n, a, b)| *n as f64 * value(*a, *b)).sum::<f64>();
    Some(Comparison {
        ours,
        versus,
        layers: layers.to_string(),
        distinct: rows.len(),
        count,
        geomean: (weighted(&|a, b| (b / a).ln()) / count as f64).exp(),
        total: weighted(&|_, b| b) / weighted(&|a, _| a),
        faster: weighted(&|a, b| f64::from(u8::from(b > a))) / count as f64,
        largest: (ratio(&largest), largest.0.layer.name.clone()),
        smallest: (ratio(&smallest), smallest.0.layer.name.clone()),
    })
}

/// The comparisons that the report prints: SConv against OpenBLAS per model and overall, then the best family.
#[must_use]
pub fn comparisons(report: &Report) -> Vec<Comparison> {
    let openblas = Versus::One(Kernel::Openblas);
    let all = |_: &LayerReport| true;
    let mut models: Vec<&String> = Vec::new();
    for name in report.layers.iter().flat_map(|layer| layer.layer.models.keys()) {
        if !models.contains(&name) {
            models.push(name);
        }
    }
    let mut rows: Vec<Option<Comparison>> = models
        .iter()
        .map(|model| compare(report, Kernel::Sconv, openblas, model, Some(model), &all))
        .collect();
    rows.push(compare(report, Kernel::Sconv, openblas, "all", None, &all));
    let wide = |layer: &LayerReport| layer.layer.shape.taps() > 1;
    let narrow = |layer: &LayerReport| layer.layer.shape.taps() == 1;
    for (ours, versus) in [
        (Kernel::Best, openblas),
        (Kernel::Best, Versus::One(Kernel::Matrixmultiply)),
        (Kernel::Best, Versus::OnednnNchwFaster),
        (Kernel::BestBlocked, Versus::One(Kernel::OnednnBlocked)),
    ] {
        rows.push(compare(report, ours, versus, "R·S > 1", None, &wide));
        rows.push(compare(report, ours, versus, "1×1", None, &narrow));
        rows.push(compare(report, ours, versus, "all", None, &all));
    }
    for kernel in Kernel::ABLATIONS {
        let ours = match kernel {
            Kernel::Direct | Kernel::Pointwise => Kernel::Best,
            _ => Kernel::Sconv,
        };
        rows.push(compare(report, ours, Versus::One(kernel), "all", None, &all));
    }
    rows.into_iter().flatten().collect()
}

/// What a whole model gains if `share` of its time is convolutions that get `speedup` times faster (Amdahl).
#[must_use]
pub fn amdahl(speedup: f64, share: f64) -> f64 {
    1.0 / (1.0 - share + share / speedup)
}

/// The report as text.
#[must_use]
pub fn human(report: &Report) -> String {
    let mut text = String::new();
    write_human(report, &mut text).expect("writing to a string does not fail");
    text
}

fn write_human(report: &Report, text: &mut String) -> std::fmt::Result {
    let gate = &report.gate;
    writeln!(
        text,
        "host: {} at {:.2} GHz, peak {} multiply-adds per cycle (FMA loop reaches {:.1}); caches {} KiB, {} KiB, {} KiB",
        gate.isa,
        gate.clock / 1e9,
        gate.peak,
        gate.usual,
        report.caches.l1 >> 10,
        report.caches.l2 >> 10,
        report.caches.l3 >> 10
    )?;
    for line in &report.libraries {
        writeln!(text, "{line}")?;
    }
    writeln!(
        text,
        "\nmedian cycles of a run and share of peak (multiply-adds on padding count as work that is done); × is time of the\n\
         baseline ÷ ours in the same layout; ± is half the distance of the quartiles of `best`\n"
    )?;
    writeln!(
        text,
        "{:44} {:>3} {:28} {:>8} {:>5} {:>8} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5}  SConv tiling; best family",
        "layer", "n", "shape", "sconv", "%peak", "best", "%peak", "±%", "s×OB", "×OB", "×mm", "×DNN", "b×DNN"
    )?;
    for layer in &report.layers {
        let shape = &layer.layer.shape;
        let share = |kernel: Kernel| {
            layer
                .cycles(kernel)
                .map(|cycles| 100.0 * layer.macs as f64 / cycles / gate.peak)
        };
        let number =
            |value: Option<f64>, digits: usize| value.map_or("-".to_string(), |value| format!("{value:.digits$}"));
        let thousands = |kernel: Kernel| number(layer.cycles(kernel).map(|cycles| cycles / 1e3), 0) + "k";
        let ratio =
            |ours: Kernel, versus: Versus| number(layer.cycles(ours).zip(versus.cycles(layer)).map(|(a, b)| b / a), 2);
        let best = layer.measured.iter().find(|measured| measured.kernel == Kernel::Best);
        let letters = if layer.tiling.stationary == Stationary::Input {
            "IS"
        } else {
            "WS"
        };
        writeln!(
            text,
            "{:44} {:>3} {:28} {:>8} {:>5} {:>8} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5}  {letters} Nc={} K2={} K3={}; {}{}",
            layer.layer.name,
            layer.layer.count(),
            shape_text(shape),
            thousands(Kernel::Sconv),
            number(share(Kernel::Sconv), 0),
            thousands(Kernel::Best),
            number(share(Kernel::Best), 0),
            number(best.map(|best| 50.0 * best.cycles.relative()), 1),
            ratio(Kernel::Sconv, Versus::One(Kernel::Openblas)),
            ratio(Kernel::Best, Versus::One(Kernel::Openblas)),
            ratio(Kernel::Best, Versus::One(Kernel::Matrixmultiply)),
            ratio(Kernel::Best, Versus::OnednnNchwFaster),
            ratio(Kernel::BestBlocked, Versus::One(Kernel::OnednnBlocked)),
            layer.tiling.nc,
            layer.tiling.k2,
            layer.tiling.k3,
            best.map_or("-", |best| best.detail.split(' ').next().unwrap_or("-")),
            if best.is_some_and(|best| best.cycles.noisy) {
                " (noisy)"
            } else {
                ""
            }
        )?;
    }
    writeln!(text, "\nbaseline time ÷ ours, over distinct layers weighted by count")?;
    writeln!(
        text,
        "{:14} {:30} {:16} {:>8} {:>5} {:>8} {:>7} {:>7}  {:32} smallest",
        "ours", "against", "layers", "distinct", "count", "geomean", "total", "faster", "largest"
    )?;
    for row in comparisons(report) {
        writeln!(
            text,
            "{:14} {:30} {:16} {:>8} {:>5} {:>8.3} {:>7.3} {:>6.1}%  {:5.2} {:26} {:5.2} {}",
            row.ours.label(),
            row.versus.label(),
            row.layers,
            row.distinct,
            row.count,
            row.geomean,
            row.total,
            100.0 * row.faster,
            row.largest.0,
            row.largest.1,
            row.smallest.0,
            row.smallest.1
        )?;
    }
    let rates = |kernel: Kernel| {
        report
            .layers
            .iter()
            .filter_map(move |layer| Some((layer, layer.macs as f64 / layer.cycles(kernel)? / gate.peak)))
    };
    for kernel in [Kernel::Sconv, Kernel::Best, Kernel::BestBlocked] {
        if let Some((layer, share)) = rates(kernel).max_by(|a, b| a.1.total_cmp(&b.1)) {
            writeln!(
                text,
                "{}: best share of peak {:.1} % ({})",
                kernel.label(),
                100.0 * share,
                layer.layer.name
            )?;
        }
        let deep: Vec<(u64, f64, &str)> = rates(kernel)
            .filter(|(layer, _)| layer.layer.shape.kernel == (3, 3) && layer.layer.shape.stride == (1, 1))
            .filter(|(layer, _)| {
                layer
                    .layer
                    .models
                    .keys()
                    .any(|model| model.starts_with("vgg") || model.starts_with("resnet"))
            })
            .map(|(layer, share)| (layer.layer.count(), share, layer.layer.name.as_str()))
            .collect();
        let count: u64 = deep.iter().map(|row| row.0).sum();
        if let Some(least) = deep.iter().min_by(|a, b| a.1.total_cmp(&b.1)) {
            let mean = (deep.iter().map(|(n, share, _)| *n as f64 * share.ln()).sum::<f64>() / count as f64).exp();
            writeln!(
                text,
                "{}: VGG and ResNet 3×3 layers of stride 1: geomean {:.1} % of peak, least {:.1} % ({})",
                kernel.label(),
                100.0 * mean,
                100.0 * least.1,
                least.2
            )?;
        }
    }
    writeln!(
        text,
        "CSA: weight-stationary for {} of {} layers, input-stationary for {}",
        report.stationary(Stationary::Weight),
        report.layers.len(),
        report.stationary(Stationary::Input)
    )?;
    let shares: Vec<(u64, f64, f64)> = report
        .layers
        .iter()
        .filter(|layer| !layer.layer.shape.is_pointwise())
        .filter_map(|layer| {
            let share = |kernel| layer.measured.iter().find(|m| m.kernel == kernel)?.packing_share;
            Some((
                layer.layer.count(),
                share(Kernel::Sconv)?,
                share(Kernel::SconvScalarPacking)?,
            ))
        })
        .collect();
    if !shares.is_empty() {
        let count: u64 = shares.iter().map(|row| row.0).sum();
        let mean = |value: &dyn Fn(&(u64, f64, f64)) -> f64| {
            100.0 * shares.iter().map(|row| row.0 as f64 * value(row)).sum::<f64>() / count as f64
        };
        writeln!(
            text,
            "packing, mean share of SConv's time over the {} distinct layers that pack: {:.1} % with vectors, {:.1} % element by element",
            shares.len(),
            mean(&|row| row.1),
            mean(&|row| row.2)
        )?;
    }
    let per_model = comparisons(report)
        .into_iter()
        .filter(|row| row.ours == Kernel::Sconv && row.versus == Versus::One(Kernel::Openblas));
    for row in per_model {
        writeln!(
            text,
            "Amdahl, not measured: {} with convolutions {:.1} % faster by SConv gains {:.1} % if they are 80 % of its time, {:.1} % if 90 %",
            row.layers,
            100.0 * (row.total - 1.0),
            100.0 * (amdahl(row.total, 0.8) - 1.0),
            100.0 * (amdahl(row.total, 0.9) - 1.0)
        )?;
    }
    write_predictions(report, text)?;
    for layer in &report.layers {
        for (kernel, reason) in &layer.refused {
            writeln!(text, "{}: {} did not run: {reason}", layer.layer.name, kernel.label())?;
        }
    }
    let (taken, rejected) = report.samples();
    writeln!(text, "samples: {taken}, rejected by the clock and FMA gate: {rejected}")?;
    if rejected * 5 > taken {
        writeln!(
            text,
            "warning: more than a fifth of the samples was rejected: the machine is busy, do not trust small differences"
        )?;
    }
    match report.wrong()[..] {
        [] => writeln!(text, "every output is within the error bound of the f64 reference"),
        ref wrong => wrong.iter().try_for_each(|(layer, kernel, error)| {
            writeln!(
                text,
                "WRONG: {layer} by {}: error {error:.2} of the bound",
                kernel.label()
            )
        }),
    }
}

/// A way to predict: its name, its figure.
type Way = (&'static str, fn(&Prediction) -> f64);

/// Predicted against measured cycles of SConv.
fn write_predictions(report: &Report, text: &mut String) -> std::fmt::Result {
    let rows: Vec<(&LayerReport, f64, Prediction)> = report
        .layers
        .iter()
        .filter_map(|layer| Some((layer, layer.cycles(Kernel::Sconv)?, layer.prediction?)))
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "\nSConv's cycles, predicted and measured; error = predicted ÷ measured − 1"
    )?;
    let error = |predicted: f64, measured: f64| 100.0 * (predicted / measured - 1.0);
    writeln!(
        text,
        "{:44} {:>9} {:>9} {:>7} {:>7} {:>7} {:>8}",
        "layer", "measured", "simulated", "sim %", "ECM %", "roof %", "packing"
    )?;
    for (layer, measured, prediction) in &rows {
        writeln!(
            text,
            "{:44} {:>8.0}k {:>8.0}k {:>+7.1} {:>+7.1} {:>+7.1} {:>7.1}%{}",
            layer.layer.name,
            measured / 1e3,
            prediction.simulated / 1e3,
            error(prediction.simulated, *measured),
            error(prediction.ecm, *measured),
            error(prediction.roofline, *measured),
            100.0 * prediction.packing / prediction.simulated,
            if prediction.shrunk {
                " (fewer channels per tile than CSA chose)"
            } else {
                ""
            }
        )?;
    }
    let ways: [Way; 3] = [
        ("simulation", |p| p.simulated),
        ("ECM", |p| p.ecm),
        ("roofline", |p| p.roofline),
    ];
    for (name, value) in ways {
        let mut errors: Vec<(f64, &str)> = rows
            .iter()
            .map(|(layer, measured, p)| (error(value(p), *measured), layer.layer.name.as_str()))
            .collect();
        errors.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
        let bias = errors.iter().map(|e| e.0).sum::<f64>() / errors.len() as f64;
        let worst: Vec<String> = errors
            .iter()
            .take(3)
            .map(|(error, layer)| format!("{layer} {error:+.1} %"))
            .collect();
        let pairs: Vec<Pair> = rows
            .iter()
            .map(|(_, measured, p)| Pair {
                measured: *measured,
                estimated: value(p),
            })
            .collect();
        let agreement = Agreement::of(&pairs, true, 0);
        writeln!(
            text,
            "{name}: mean absolute error {} %, bias {bias:+.1} %, median {:.1} %, τ over layers {}; worst: {}",
            interval(agreement.mean_error, 100.0, 1),
            100.0 * agreement.median_error.unwrap_or(f64::NAN),
            interval(agreement.kendall, 1.0, 3),
            worst.join(", ")
        )?;
    }
    let mut names: Vec<&str> = Vec::new();
    for choice in &report.choices {
        if names.last() != Some(&choice.layer.as_str()) {
            names.push(&choice.layer);
        }
    }
    let mut taus = Vec::new();
    for name in names {
        let pairs: Vec<(f64, f64)> = report
            .choices
            .iter()
            .filter(|choice| choice.layer == name)
            .map(|choice| (choice.simulated, choice.measured))
            .collect();
        let ranked: Vec<Pair> = pairs
            .iter()
            .map(|pair| Pair {
                measured: pair.1,
                estimated: pair.0,
            })
            .collect();
        let tau = Agreement::of(&ranked, true, 0).kendall;
        taus.extend(tau.map(|tau| tau.value));
        let range = |value: fn(&(f64, f64)) -> f64| {
            let values = || pairs.iter().map(value);
            values().fold(0.0, f64::max) / values().fold(f64::MAX, f64::min)
        };
        writeln!(
            text,
            "tilings of {name}: {} of them, slowest ÷ fastest {:.2} measured and {:.2} simulated, τ {}",
            pairs.len(),
            range(|pair| pair.1),
            range(|pair| pair.0),
            interval(tau, 1.0, 3)
        )?;
    }
    if !taus.is_empty() {
        writeln!(
            text,
            "rank correlation over tilings, mean of {} layers: τ {:.3}",
            taus.len(),
            taus.iter().sum::<f64>() / taus.len() as f64
        )?;
    }
    Ok(())
}

/// A statistic with its 95 % interval.
fn interval(interval: Option<Interval>, scale: f64, digits: usize) -> String {
    interval.map_or("-".to_string(), |Interval { value, low, high }| {
        format!(
            "{:.digits$} [{:.digits$}, {:.digits$}]",
            scale * value,
            scale * low,
            scale * high
        )
    })
}

fn shape_text(shape: &cyclonest_sconv::ConvShape) -> String {
    let mut text = format!(
        "{}×{}×{} → {}, {}×{}",
        shape.channels, shape.height, shape.width, shape.filters, shape.kernel.0, shape.kernel.1
    );
    if shape.stride != (1, 1) {
        text += &format!(" s{}", shape.stride.0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amdahl_by_hand() {
        assert!((amdahl(2.0, 0.5) - 4.0 / 3.0).abs() < 1e-12);
        assert!((amdahl(1.0, 0.9) - 1.0).abs() < 1e-12);
    }
}
