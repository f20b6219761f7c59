//! The same kind of schedule, executed natively: convolutions on the host beside other libraries.
//!
//! [`measure`] runs every layer with all contenders interleaved, so that what disturbs the machine disturbs all alike; only
//! ratios from one such run are compared. Every output is checked against the definition in f64.

mod contender;
pub mod layers;
mod predict;
mod report;
mod sample;

use std::collections::BTreeMap;

use cyclonest_sconv::{Caches, ConvShape, Layout, Stationary, Tiling, error_bound, reference};
use serde::{Deserialize, Serialize};

pub use contender::{Kernel, Paths};
pub use layers::NativeLayer;
pub use predict::{Choice, Prediction, choices, predict};
pub use report::{Comparison, Versus, amdahl, comparisons, human};
pub use sample::{Gate, Sample, Spread};

use contender::{Absent, Libraries, prepare};

/// What to run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the libraries are.
    pub paths: Paths,
    /// Samples of each contender and layer; rejected ones are taken again, up to as many.
    pub samples: usize,
    /// Whether to measure the parts of SConv.
    pub ablations: bool,
}

/// One contender on one layer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    /// Who.
    pub kernel: Kernel,
    /// Kernel family, implementation or tiling.
    pub detail: String,
    /// Cycles of a run.
    pub cycles: Spread,
    /// Largest error relative to the bound: at most 1 if correct.
    pub error: f64,
    /// Share of packing in a run of SConv (with its ablations).
    pub packing_share: Option<f64>,
}

/// One layer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LayerReport {
    /// The layer.
    pub layer: NativeLayer,
    /// Multiply-accumulates of a run, those on padding included.
    pub macs: u64,
    /// What CSA chose for SConv.
    pub tiling: Tiling,
    /// What is predicted of SConv, if asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prediction: Option<Prediction>,
    /// Who ran it.
    pub measured: Vec<Measured>,
    /// Who did not, and why.
    pub refused: Vec<(Kernel, String)>,
}

impl LayerReport {
    /// Median cycles of `kernel`.
    #[must_use]
    pub fn cycles(&self, kernel: Kernel) -> Option<f64> {
        self.measured
            .iter()
            .find(|measured| measured.kernel == kernel)
            .map(|measured| measured.cycles.median)
    }
}

/// Everything that was measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// Form of this report.
    pub schema: u32,
    /// The core.
    pub gate: Gate,
    /// Caches that CSA tiled for.
    pub caches: Caches,
    /// One line for every library: what was found, or why it is skipped.
    pub libraries: Vec<String>,
    /// The layers.
    pub layers: Vec<LayerReport>,
    /// Tilings of a few layers, measured and predicted, if asked for.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub choices: Vec<Choice>,
}

impl Report {
    /// Samples taken and, of them, rejected.
    #[must_use]
    pub fn samples(&self) -> (usize, usize) {
        let all = self.layers.iter().flat_map(|layer| &layer.measured);
        all.fold((0, 0), |(taken, rejected), Measured { cycles, .. }| {
            let more = if cycles.noisy {
                cycles.samples
            } else {
                cycles.samples + cycles.rejected
            };
            (taken + more, rejected + cycles.rejected)
        })
    }

    /// Layers with an output outside the error bound: layer, kernel, error relative to the bound.
    #[must_use]
    pub fn wrong(&self) -> Vec<(&str, Kernel, f64)> {
        let rows = self
            .layers
            .iter()
            .flat_map(|layer| layer.measured.iter().map(move |measured| (layer, measured)));
        rows.filter(|(_, measured)| measured.error.is_nan() || measured.error > 1.0)
            .map(|(layer, measured)| (layer.layer.name.as_str(), measured.kernel, measured.error))
            .collect()
    }

    /// Layers for which CSA chose this stationary tensor.
    #[must_use]
    pub fn stationary(&self, stationary: Stationary) -> usize {
        self.layers
            .iter()
            .filter(|layer| layer.tiling.stationary == stationary)
            .count()
    }
}

/// Measures `layers`, telling `progress` of each that is done.
pub fn measure(layers: &[NativeLayer], config: &Config, progress: &mut dyn FnMut(usize, &LayerReport)) -> Report {
    let libraries = Libraries::load(&config.paths);
    let gate = Gate::calibrate();
    let caches = Caches::host();
    let mut reports = Vec::new();
    for layer in layers {
        let report = measure_layer(layer, config, &libraries, &gate);
        progress(reports.len(), &report);
        reports.push(report);
    }
    Report {
        schema: 1,
        gate,
        caches,
        libraries: libraries.lines,
        layers: reports,
        choices: Vec::new(),
    }
}

/// Layers of which tilings are compared: at most this many.
const RANKED: usize = 6;

/// Predicts SConv's cycles on every layer of `report` for the host `arch`, and measures and predicts several tilings of
/// some layers: those whose size is a sixth, two sixths and so on along all that take 0.3 to 30 million cycles.
///
/// # Errors
/// A machine without the memories of a CPU, or a layer that cannot be mapped onto it.
pub fn add_predictions(report: &mut Report, arch: &cyclonest_arch::Accelerator, samples: usize) -> Result<(), String> {
    for layer in &mut report.layers {
        layer.prediction = Some(predict(&layer.layer, &layer.tiling, arch)?);
    }
    let mut fit: Vec<&LayerReport> = report
        .layers
        .iter()
        .filter(|layer| {
            layer
                .cycles(Kernel::Sconv)
                .is_some_and(|cycles| (3e5..3e7).contains(&cycles))
        })
        .collect();
    fit.sort_by_key(|layer| (layer.macs, layer.layer.name.clone()));
    let count = RANKED.min(fit.len());
    let mut all = Vec::new();
    for index in 0..count {
        let layer = fit[(2 * index + 1) * fit.len() / (2 * count)];
        all.extend(choices(&layer.layer, arch, &report.gate, samples.min(5))?);
    }
    report.choices = all;
    Ok(())
}

/// Values in −1..1 that differ from element to element.
fn values(len: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

/// Input and weights of a layer, the same in every run.
pub(crate) fn operands(shape: &ConvShape) -> (Vec<f32>, Vec<f32>) {
    (values(Layout::Nchw.input_len(shape), 1), values(shape.weights_len(), 2))
}

fn measure_layer(layer: &NativeLayer, config: &Config, libraries: &Libraries, gate: &Gate) -> LayerReport {
    let shape = &layer.shape;
    let (input, weights) = operands(shape);
    let mut kernels = Kernel::USUAL.to_vec();
    if config.ablations {
        kernels.extend(Kernel::ABLATIONS);
    }
    let mut running = Vec::new();
    let mut refused = Vec::new();
    for kernel in kernels {
        if kernel == Kernel::Pointwise && !shape.is_pointwise() {
            continue;
        }
        match prepare(kernel, libraries, shape, &input, &weights) {
            Ok(contender) => running.push((kernel, contender)),
            Err(Absent::Library) => {}
            Err(Absent::Refused(reason)) => refused.push((kernel, reason)),
        }
    }
    let expected = reference(shape, &input, &weights).unwrap_or_default();
    let largest = expected.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    let bound = error_bound(shape, largest);

    let mut samples = vec![Vec::new(); running.len()];
    let repeats: Vec<u32> = running
        .iter_mut()
        .map(|(_, contender)| gate.repeats(&mut || contender.run()))
        .collect();
    for round in 0..2 * config.samples {
        for (((_, contender), samples), repeats) in running.iter_mut().zip(&mut samples).zip(&repeats) {
            let accepted = samples.iter().filter(|sample: &&Sample| sample.accepted).count();
            if round < config.samples || accepted < config.samples {
                samples.push(gate.sample(*repeats, &mut || contender.run()));
            }
        }
    }
    let measured = running
        .iter_mut()
        .zip(&samples)
        .map(|((kernel, contender), samples)| {
            let output = contender.output();
            let errors = output
                .iter()
                .zip(&expected)
                .map(|(found, expected)| (f64::from(*found) - expected).abs());
            // NaN counts as wrong, whatever follows it.
            let error = errors.fold(0.0f64, |most, error| {
                if error.is_nan() || most.is_nan() {
                    f64::NAN
                } else {
                    most.max(error)
                }
            });
            let error = if output.len() == expected.len() {
                error
            } else {
                f64::NAN
            };
            let wants_share = config.ablations && matches!(kernel, Kernel::Sconv | Kernel::SconvScalarPacking);
            Measured {
                kernel: *kernel,
                detail: contender.detail(),
                cycles: Spread::of(samples),
                error: error / bound,
                packing_share: if wants_share { contender.packing_share() } else { None },
            }
        })
        .collect();
    let analysis = cyclonest_sconv::csa(shape, micro_tile(), &Caches::host(), cyclonest_sconv::Fill::default());
    LayerReport {
        layer: layer.clone(),
        macs: shape.macs(),
        tiling: analysis.best(),
        prediction: None,
        measured,
        refused,
    }
}

/// SConv's micro-kernel on this host.
pub(crate) fn micro_tile() -> cyclonest_sconv::MicroTile {
    cyclonest_sconv::micro_tile(cyclonest_sconv::Isa::detect())
}

/// Counts of a layer's occurrences in one model, or in all.
fn occurrences(models: &BTreeMap<String, u64>, model: Option<&str>) -> u64 {
    match model {
        Some(model) => models.get(model).copied().unwrap_or(0),
        None => models.values().sum(),
    }
}
