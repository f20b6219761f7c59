//! One design in full, determined by itself: another way to the figures of a sweep.

use cyclonest_arch::directives::Style;
use serde::{Deserialize, Serialize};

use super::group::{Group, Refusal};
use super::machine::Mapped;
use super::plan::MappingChoice;
use super::space::{Design, Space};

/// A design with its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The design.
    pub design: Design,
    /// How its layers are mapped: `KC-P`, `adaptive`, or the scheduler.
    pub mapping: String,
    /// L1 of one PE \[elements\].
    pub l1: u64,
    /// L2 \[elements\].
    pub l2: u64,
    /// Latency of all layers \[cycles\].
    pub cycles: f64,
    /// MACs per cycle.
    pub throughput: f64,
    /// Energy of all layers, in the technology's unit.
    pub energy: f64,
    /// Area \[mm²\].
    pub area_mm2: f64,
    /// Power \[mW\].
    pub power_mw: f64,
}

impl MappingChoice {
    /// Its name in results.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            MappingChoice::Style(style) => style.name().to_owned(),
            MappingChoice::Adaptive => "adaptive".to_owned(),
            MappingChoice::Scheduler(name) => name.clone(),
        }
    }
}

fn text(refusal: Refusal) -> String {
    match refusal {
        Refusal::Capacity => "a buffer is smaller than the mapping needs".to_owned(),
        Refusal::Model(why) => why,
    }
}

/// The figures of one design.
///
/// # Errors
/// Why the model or the scheduler refuses it, or that it does not fit its buffers.
pub fn row(space: &Space, number: u64) -> Result<Row, String> {
    let design = space.design(number);
    let figures = Group::new(space, &design)?.figures(&design).map_err(text)?;
    let resources = design.resources(figures.l1, figures.l2);
    Ok(Row {
        mapping: space.plan.mappings[design.mapping].name(),
        l1: figures.l1,
        l2: figures.l2,
        cycles: figures.cycles,
        throughput: space.macs() as f64 / figures.cycles,
        energy: figures.energy,
        area_mm2: space.technology.area(resources) * 1e-6,
        power_mw: space.technology.power(resources),
        design,
    })
}

/// What each layer of a design is mapped to, in the order of [`Space::layers`], to be simulated: the machine and the
/// mapping, and the style where it is one.
///
/// # Errors
/// As [`row`]; and if the loop nest cannot express a style.
pub fn mapped(space: &Space, number: u64) -> Result<Vec<(Option<Style>, Mapped)>, String> {
    let design = space.design(number);
    Group::new(space, &design)?.mapped(&design).map_err(text)
}
