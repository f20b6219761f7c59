//! Cycles of the macro-kernel on the host, predicted three ways: by the simulator, by the ECM formula, by the roofline.
//!
//! Nothing is fitted to layers: all three take the machine as `cyclonest host` measured it. The kernel numbers its windows
//! through all output rows, so the layer that is simulated has its windows in one row. A layer's tensors are taken to
//! be, at the start, in the innermost level that holds all of them, as in repeated runs. Packing stands outside the
//! loop nest and is added: packed bytes ÷ the write bandwidth of L1.

use cyclonest_arch::{Accelerator, Capacity, Mapping};
use cyclonest_sconv::{Fill, Tiling};
use cyclonest_sim::{Options, simulate};
use cyclonest_workloads::{Dim, DimMap, Pair, Problem, Tensor};
use serde::{Deserialize, Serialize};

use super::{Gate, NativeLayer, contender::tiled, operands, sample::Spread};
use crate::csa::Core;

/// Predicted cycles of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Simulated mapping plus packing.
    pub simulated: f64,
    /// ECM formula plus packing.
    pub ecm: f64,
    /// Roofline: the larger of peak compute and compulsory traffic of main memory.
    pub roofline: f64,
    /// Of the first two, packing.
    pub packing: f64,
    /// Tiles per channel tile that did not fit the machine's slots as CSA chose them, so that fewer channels were simulated.
    pub shrunk: bool,
}

/// One tiling of one layer, measured and predicted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Choice {
    /// The layer.
    pub layer: String,
    /// The tiling.
    pub tiling: Tiling,
    /// Measured cycles.
    pub measured: f64,
    /// Simulated cycles.
    pub simulated: f64,
}

/// Predicts SConv's macro-kernel with `tiling` on one layer.
///
/// # Errors
/// A machine without the memories of a CPU, or a mapping that cannot be simulated.
pub fn predict(layer: &NativeLayer, tiling: &Tiling, arch: &Accelerator) -> Result<Prediction, String> {
    let core = Core::of(arch)?;
    let shape = &layer.shape;
    let bytes = 4
        * (shape.channels * shape.height * shape.width
            + shape.weights_len()
            + shape.filters * shape.windows() * shape.batch);
    let memory = width(arch, 0, false);
    let arch = warm(arch, bytes as u64);
    let core_warm = Core::of(&arch)?;
    let problem = flat(layer);
    let mut tiling_used = *tiling;
    let mut mapping: Mapping = core_warm.mapping(&problem, &arch, &tiling_used);
    while !mapping.check(&problem, &arch).is_empty() {
        if tiling_used.nc == 1 {
            return Err(format!("{}: no mapping fits", layer.name));
        }
        tiling_used.nc = tiling_used.nc.div_ceil(2);
        mapping = core_warm.mapping(&problem, &arch, &tiling_used);
    }
    let outcome = simulate(&problem, &arch, &mapping, Options::default()).map_err(|error| error.to_string())?;

    let micro = core.micro;
    let (inputs, filters) = (
        shape.windows().div_ceil(micro.windows),
        shape.group_filters().div_ceil(micro.filters),
    );
    let depth = shape.group_channels() * shape.taps();
    let rate = |index: usize, write: bool| width(&arch, index, write);
    let innermost = arch.levels.len() - 2;
    // Inputs are packed once per block of stationary filter tiles, or once.
    let blocks = match tiling.stationary {
        cyclonest_sconv::Stationary::Weight => filters.div_ceil(tiling.k3),
        cyclonest_sconv::Stationary::Input => 1,
    };
    let repeats = (shape.batch * shape.groups) as f64;
    let packed = if shape.is_pointwise() {
        0.0
    } else {
        (inputs * micro.windows * depth * 4 * blocks) as f64
    };
    let packing = repeats * packed / rate(innermost, true);

    let lanes = (arch.compute.lanes.0 * arch.compute.lanes.1) as f64;
    let compute = (inputs * micro.windows * shape.group_filters() * depth) as f64 / lanes;
    // Per depth: one vector of inputs and a broadcast of every filter.
    let loads =
        (inputs * filters * depth) as f64 * 4.0 * (micro.windows + micro.filters) as f64 / rate(innermost, false);
    let line = core.caches.line as f64;
    let transfers: f64 = tiling.accesses[1..]
        .iter()
        .enumerate()
        .map(|(above, lines)| lines * line / rate(innermost.saturating_sub(above + 1), false))
        .sum();
    let ecm = repeats * compute.max(loads + transfers) + packing;
    let roofline = (shape.macs() as f64 / lanes).max(bytes as f64 / memory);
    Ok(Prediction {
        simulated: outcome.cycles as f64 + packing,
        ecm,
        roofline,
        packing,
        shrunk: tiling_used != *tiling,
    })
}

/// The layer with its windows in one row, as the kernel numbers them; padding is multiplied like everything else.
fn flat(layer: &NativeLayer) -> Problem {
    let shape = &layer.shape;
    let (stride, dilation) = (shape.stride.1 as u64, shape.dilation);
    let b = |n: usize| n as u64;
    Problem {
        stride: Pair(1, stride),
        dilation: Pair(b(dilation.0), b(dilation.1)),
        ..Problem::new(DimMap::from_fn(|dim| match dim {
            Dim::N => b(shape.batch),
            Dim::G => b(shape.groups),
            Dim::K => b(shape.group_filters()),
            Dim::C => b(shape.group_channels()),
            Dim::P => 1,
            Dim::Q => b(shape.windows()),
            Dim::R => b(shape.kernel.0),
            Dim::S => b(shape.kernel.1),
        }))
    }
}

/// `arch` without the levels outside the innermost one that holds `bytes`; L1 always has a level above it.
fn warm(arch: &Accelerator, bytes: u64) -> Accelerator {
    let last = arch.levels.len() - 3;
    let holds = |index: &usize| match arch.levels[*index].banks[0].size {
        Capacity::Unbounded => true,
        size => size.bits().is_some_and(|bits| bits / 8 >= bytes),
    };
    let start = (0..=last).rev().find(holds).unwrap_or(0);
    let mut warm = arch.clone();
    warm.levels.drain(..start);
    warm.levels[0].banks[0].size = Capacity::Unbounded;
    warm
}

/// Bytes per cycle of a level's port.
fn width(arch: &Accelerator, level: usize, write: bool) -> f64 {
    let bank = &arch.levels[level].banks[0];
    let width = if write {
        bank.write_width(Tensor::Outputs)
    } else {
        bank.read_width(Tensor::Inputs)
    };
    match width {
        cyclonest_arch::Width::Bits(bits) => bits as f64 / 8.0,
        cyclonest_arch::Width::Bytes(bytes) => bytes as f64,
        cyclonest_arch::Width::Words(words) => words as f64 * 4.0,
        cyclonest_arch::Width::Unlimited => f64::INFINITY,
    }
}

/// Measures and predicts several tilings of a layer: both stationary tensors, channels and blocks halved and quartered.
///
/// # Errors
/// As [`predict`].
pub fn choices(layer: &NativeLayer, arch: &Accelerator, gate: &Gate, samples: usize) -> Result<Vec<Choice>, String> {
    let core = Core::of(arch)?;
    let analysis = cyclonest_sconv::csa(&layer.shape, core.micro, &core.caches, Fill::default());
    let mut tilings: Vec<Tiling> = Vec::new();
    for base in [analysis.weight, analysis.input] {
        for nc in [1, 2, 4, 8] {
            for k in [1, 4, 16] {
                let tiling = Tiling {
                    nc: base.nc.div_ceil(nc),
                    k2: base.k2.div_ceil(k),
                    ..base
                };
                if !tilings
                    .iter()
                    .any(|t| (t.stationary, t.nc, t.k2, t.k3) == (tiling.stationary, tiling.nc, tiling.k2, tiling.k3))
                {
                    tilings.push(tiling);
                }
            }
        }
    }
    let (input, weights) = operands(&layer.shape);
    let mut running = Vec::new();
    for tiling in tilings {
        let contender =
            tiled(&layer.shape, tiling, &input, &weights).map_err(|absent| format!("{}: {absent:?}", layer.name))?;
        running.push((tiling, contender, Vec::new()));
    }
    let repeats: Vec<u32> = running
        .iter_mut()
        .map(|(_, contender, _)| gate.repeats(&mut || contender.run()))
        .collect();
    for _ in 0..samples {
        for ((_, contender, taken), repeats) in running.iter_mut().zip(&repeats) {
            taken.push(gate.sample(*repeats, &mut || contender.run()));
        }
    }
    running
        .into_iter()
        .map(|(tiling, _, taken)| {
            Ok(Choice {
                layer: layer.name.clone(),
                tiling,
                measured: Spread::of(&taken).median,
                simulated: predict(layer, &tiling, arch)?.simulated,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compute_bound_layer_is_predicted_near_its_bound() {
        let arch = cyclonest_arch::bundled::load("skylake_x").expect("bundled");
        let layer = crate::native::layers::published()
            .into_iter()
            .find(|layer| layer.shape.channels == 256 && layer.shape.kernel == (3, 3))
            .expect("one");
        let core = Core::of(&arch).expect("a core");
        let tiling = cyclonest_sconv::csa(&layer.shape, core.micro, &core.caches, Fill::default()).best();
        let prediction = predict(&layer, &tiling, &arch).expect("predicted");
        assert!(prediction.simulated >= prediction.roofline * 0.99, "{prediction:?}");
        assert!(prediction.simulated <= prediction.roofline * 2.0, "{prediction:?}");
    }
}
