//! The convolutions that native code is measured on.

use std::collections::BTreeMap;

use cyclonest_sconv::{ConvShape, Padding};
use cyclonest_workloads::{Dim, DistinctLayer, Problem};
use serde::{Deserialize, Serialize};

/// One row of `data/convolutions.csv`.
#[derive(Debug, Deserialize)]
struct Row {
    model: String,
    name: String,
    count: u64,
    c: usize,
    h: usize,
    w: usize,
    k: usize,
    r: usize,
    s: usize,
    stride: usize,
    pad: usize,
    dilation: usize,
    groups: usize,
}

/// A distinct convolution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeLayer {
    /// `model:layer` of its first occurrence.
    pub name: String,
    /// Its shape.
    pub shape: ConvShape,
    /// How often it occurs, by model.
    pub models: BTreeMap<String, u64>,
}

impl NativeLayer {
    /// How often it occurs in all models.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.models.values().sum()
    }
}

/// The distinct convolutions (143) of the seven models whose convolutions number 393, smallest first: ResNet-18, -50 and
/// -152 v1, VGG-16, SqueezeNet 1.0, GoogLeNet and Inception v2, at 224×224, from their published definitions.
///
/// # Panics
/// If the bundled table is broken, which a test excludes.
#[must_use]
pub fn published() -> Vec<NativeLayer> {
    let mut reader = csv::Reader::from_reader(include_str!("../../data/convolutions.csv").as_bytes());
    let mut layers: Vec<NativeLayer> = Vec::new();
    for row in reader.deserialize() {
        let row: Row = row.expect("the bundled table is complete");
        let shape = ConvShape {
            kernel: (row.r, row.s),
            ..ConvShape::new(row.c, row.h, row.w, row.k, row.r)
                .with_stride(row.stride)
                .with_padding(row.pad)
                .with_dilation(row.dilation)
                .with_groups(row.groups)
        };
        add(&mut layers, &row.model, &row.name, shape, row.count);
    }
    layers
}

/// Names of the seven models.
#[must_use]
pub fn models() -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in published().iter().flat_map(|layer| layer.models.keys()) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// The layers of a network that are convolutions (with R·S = 1 and one output also matrix products).
#[must_use]
pub fn of_network(model: &str, layers: &[DistinctLayer]) -> Vec<NativeLayer> {
    let mut found = Vec::new();
    for layer in layers {
        add(&mut found, model, &layer.name, shape_of(&layer.problem), layer.count);
    }
    found
}

fn add(layers: &mut Vec<NativeLayer>, model: &str, name: &str, shape: ConvShape, count: u64) {
    match layers.iter_mut().find(|layer| layer.shape == shape) {
        Some(layer) => *layer.models.entry(model.to_string()).or_default() += count,
        None => layers.push(NativeLayer {
            name: format!("{model}:{name}"),
            shape,
            models: BTreeMap::from([(model.to_string(), count)]),
        }),
    }
}

/// A loop nest as the shape of a convolution.
#[must_use]
pub fn shape_of(problem: &Problem) -> ConvShape {
    let b = |dim: Dim| problem.bounds[dim] as usize;
    let extent = problem.padded_extent();
    let padding = Padding {
        top: problem.padding.top as usize,
        bottom: problem.padding.bottom as usize,
        left: problem.padding.left as usize,
        right: problem.padding.right as usize,
    };
    ConvShape {
        batch: b(Dim::N),
        groups: b(Dim::G),
        channels: b(Dim::G) * b(Dim::C),
        filters: b(Dim::G) * b(Dim::K),
        height: extent.0 as usize - padding.top - padding.bottom,
        width: extent.1 as usize - padding.left - padding.right,
        kernel: (b(Dim::R), b(Dim::S)),
        stride: (problem.stride.0 as usize, problem.stride.1 as usize),
        dilation: (problem.dilation.0 as usize, problem.dilation.1 as usize),
        padding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_models_have_393_convolutions_of_143_shapes() {
        let layers = published();
        assert_eq!(layers.len(), 143);
        assert_eq!(layers.iter().map(NativeLayer::count).sum::<u64>(), 393);
        assert_eq!(models().len(), 7);
        let pointwise = layers.iter().filter(|layer| layer.shape.is_pointwise());
        assert_eq!(pointwise.map(NativeLayer::count).sum::<u64>(), 219);
        assert!(layers.iter().all(|layer| layer.shape.check().is_ok()));
    }

    #[test]
    fn a_loop_nest_becomes_the_shape_with_its_windows() {
        let resnet = cyclonest_workloads::bundled::load("resnet50").expect("bundled");
        for layer in of_network("resnet50", &resnet.distinct()) {
            assert!(layer.shape.check().is_ok(), "{layer:?}");
        }
        let nests = resnet.distinct();
        let stem = nests
            .iter()
            .find(|layer| layer.problem.bounds[Dim::R] == 7)
            .expect("a stem");
        let shape = shape_of(&stem.problem);
        assert_eq!(shape.macs(), stem.problem.macs());
        assert_eq!(shape.output(), (112, 112));
    }
}
