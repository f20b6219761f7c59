//! Area and power of an accelerator by its parts, and energy per access: the coefficients of a technology.
//!
//! The form is that of MAESTRO's design-space exploration (Kwon et al., MICRO 2019, section 5.2): MAC lanes and SRAM
//! grow linearly, a bus linearly in PEs × bandwidth, a matrix arbiter quadratically in the PEs. Every coefficient is
//! such that no part shrinks when the machine grows, so that the smallest machine of a range bounds the range.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::files::placed;
use crate::sources::covers;
use crate::text::{Diagnostic, from_ron};
use crate::{Source, Violation};

/// Coefficients of area \[µm²\], power \[mW\] and energy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Technology {
    /// Its name, as a plan takes it.
    pub name: String,
    /// One MAC lane with its registers.
    pub lane: Part,
    /// SRAM of the PEs.
    pub l1: Sram,
    /// The shared SRAM.
    pub l2: Sram,
    /// The bus.
    pub bus: Bus,
    /// The matrix arbiter.
    pub arbiter: Arbiter,
    /// Energy per access.
    pub energy: AccessCosts,
    /// Where each constant comes from, by its path (`"l1.area"`); an entry also stands for what goes on behind it.
    #[serde(default)]
    pub sources: BTreeMap<String, Source>,
}

/// Area and power of one part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Area \[µm²\].
    pub area: f64,
    /// Power \[mW\].
    pub power: f64,
}

/// SRAM: ⌈size ÷ cell⌉ cells, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sram {
    /// Elements in one cell.
    pub cell: u64,
    /// Area of a cell \[µm²\].
    pub area: f64,
    /// Power of a cell \[mW\].
    pub power: f64,
}

/// A bus: (`per_pe` × PEs + `constant`) × bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// Area of a unit \[µm²\].
    pub area: f64,
    /// Power of a unit \[mW\].
    pub power: f64,
    /// Units per PE and element per cycle.
    pub per_pe: f64,
    /// Units per element per cycle.
    pub constant: f64,
}

/// An arbiter: `square` × PEs² + `linear` × PEs + `constant` units, with a smallest area and power.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arbiter {
    /// Area of a unit \[µm²\].
    pub area: f64,
    /// Power of a unit \[mW\].
    pub power: f64,
    /// Smallest area \[µm²\].
    pub least_area: f64,
    /// Smallest power \[mW\].
    pub least_power: f64,
    /// Units per PE².
    pub square: f64,
    /// Units per PE.
    pub linear: f64,
    /// Units whatever the number of PEs; may be negative.
    pub constant: f64,
}

/// Energy per MAC and per element read or written; one unit for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessCosts {
    /// A MAC.
    pub mac: f64,
    /// An access of an L1.
    pub l1: f64,
    /// An access of the L2.
    pub l2: f64,
    /// An access of the memory outside. MAESTRO does not count these.
    pub dram: f64,
}

/// What area and power depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// PEs, with one lane each.
    pub pes: u64,
    /// Elements of the L1 of one PE.
    pub l1: u64,
    /// Elements of the L2.
    pub l2: u64,
    /// Elements that the network moves per cycle.
    pub bandwidth: u64,
}

/// `base` + `slope` × bandwidth; the slope is not negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    base: f64,
    slope: f64,
}

impl Linear {
    /// The value with this bandwidth.
    #[must_use]
    pub fn at(self, bandwidth: u64) -> f64 {
        self.base + self.slope * bandwidth as f64
    }
}

impl Sram {
    fn cells(&self, size: u64) -> f64 {
        size.div_ceil(self.cell).max(1) as f64
    }
}

impl Technology {
    /// Area \[µm²\]. Does not shrink when a resource grows, rounding included.
    #[must_use]
    pub fn area(&self, machine: Resources) -> f64 {
        self.area_by_bandwidth(machine).at(machine.bandwidth)
    }

    /// Power \[mW\]. Does not shrink when a resource grows, rounding included.
    #[must_use]
    pub fn power(&self, machine: Resources) -> f64 {
        self.power_by_bandwidth(machine).at(machine.bandwidth)
    }

    /// Area \[µm²\] as a function of the bandwidth; that of `machine` is not looked at.
    #[must_use]
    pub fn area_by_bandwidth(&self, machine: Resources) -> Linear {
        let (pes, bus, arbiter) = (machine.pes as f64, &self.bus, &self.arbiter);
        let sram = pes * (self.l1.cells(machine.l1) * self.l1.area) + self.l2.cells(machine.l2) * self.l2.area;
        let arbiters = (arbiter.area * self.arbiters(pes)).max(arbiter.least_area);
        Linear {
            base: pes * self.lane.area + arbiters + sram,
            slope: (bus.per_pe * pes + bus.constant) * bus.area,
        }
    }

    /// Power \[mW\] as a function of the bandwidth; that of `machine` is not looked at.
    #[must_use]
    pub fn power_by_bandwidth(&self, machine: Resources) -> Linear {
        let (pes, bus, arbiter) = (machine.pes as f64, &self.bus, &self.arbiter);
        let sram = pes * (self.l1.cells(machine.l1) * self.l1.power) + self.l2.cells(machine.l2) * self.l2.power;
        let arbiters = (arbiter.power * self.arbiters(pes)).max(arbiter.least_power);
        Linear {
            base: pes * self.lane.power + arbiters + sram,
            slope: (bus.per_pe * pes + bus.constant) * bus.power,
        }
    }

    fn arbiters(&self, pes: f64) -> f64 {
        let Arbiter {
            square,
            linear,
            constant,
            ..
        } = self.arbiter;
        (square * pes + linear) * pes + constant
    }

    /// Reads a technology and checks its rules.
    ///
    /// # Errors
    /// The first syntax error, unknown name or wrong type; otherwise every broken rule, each at its value.
    pub fn from_ron(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let technology: Technology = from_ron(text).map_err(|fault| vec![fault])?;
        match technology.check() {
            faults if faults.is_empty() => Ok(technology),
            faults => Err(placed(text, faults)),
        }
    }

    /// Every constant with its path.
    #[must_use]
    pub fn constants(&self) -> Vec<(&'static str, f64)> {
        let (a, e) = (&self.arbiter, &self.energy);
        vec![
            ("lane.area", self.lane.area),
            ("lane.power", self.lane.power),
            ("l1.cell", self.l1.cell as f64),
            ("l1.area", self.l1.area),
            ("l1.power", self.l1.power),
            ("l2.cell", self.l2.cell as f64),
            ("l2.area", self.l2.area),
            ("l2.power", self.l2.power),
            ("bus.area", self.bus.area),
            ("bus.power", self.bus.power),
            ("bus.per_pe", self.bus.per_pe),
            ("bus.constant", self.bus.constant),
            ("arbiter.area", a.area),
            ("arbiter.power", a.power),
            ("arbiter.least_area", a.least_area),
            ("arbiter.least_power", a.least_power),
            ("arbiter.square", a.square),
            ("arbiter.linear", a.linear),
            ("arbiter.constant", a.constant),
            ("energy.mac", e.mac),
            ("energy.l1", e.l1),
            ("energy.l2", e.l2),
            ("energy.dram", e.dram),
        ]
    }

    /// Constants without an entry in `sources`; none in a bundled technology.
    #[must_use]
    pub fn unsourced(&self) -> Vec<&'static str> {
        let sourced = |path: &str| self.sources.keys().any(|entry| covers(entry, path));
        let paths = self.constants().into_iter().map(|(path, _)| path);
        paths.filter(|path| !sourced(path)).collect()
    }

    /// Every broken rule: constants are finite, and no part shrinks when the machine grows.
    fn check(&self) -> Vec<Violation> {
        let mut faults = Vec::new();
        let constants = self.constants();
        for &(path, value) in &constants {
            let message = match path {
                "l1.cell" | "l2.cell" if value < 1.0 => format!("{value}: at least one element is expected"),
                "arbiter.constant" if value.is_finite() => continue,
                "arbiter.constant" => format!("{value}: a finite number is expected"),
                _ if !value.is_finite() || value < 0.0 => {
                    format!("{value}: a number of at least 0 is expected, or a larger machine would be smaller")
                }
                _ => continue,
            };
            faults.push(Violation {
                path: path.to_owned(),
                message,
                help: None,
            });
        }
        for entry in self.sources.keys() {
            if !constants.iter().any(|(path, _)| covers(entry, path)) {
                faults.push(Violation {
                    path: format!("sources[\"{entry}\"]"),
                    message: format!("there is no constant `{entry}`"),
                    help: crate::nearest(entry, constants.iter().map(|(path, _)| *path))
                        .map(|name| format!("did you mean `{name}`?")),
                });
            }
        }
        faults
    }
}

/// The technologies that come with the crate.
const BUNDLED: &[(&str, &str)] = &[
    ("maestro_28nm", include_str!("../technologies/maestro_28nm.ron")),
    (
        "maestro_28nm_2019",
        include_str!("../technologies/maestro_28nm_2019.ron"),
    ),
];

impl Technology {
    /// Names of the bundled technologies.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUNDLED.iter().map(|(name, _)| *name)
    }

    /// A bundled technology; `None` if there is none of that name.
    ///
    /// # Panics
    /// If a bundled file is broken, which the tests of this crate exclude.
    #[must_use]
    pub fn load(name: &str) -> Option<Technology> {
        let (_, text) = BUNDLED.iter().find(|(n, _)| *n == name)?;
        match Technology::from_ron(text) {
            Ok(technology) => Some(technology),
            Err(faults) => panic!("bundled technology:\n{}", crate::render(name, text, &faults)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_constant_of_a_bundled_technology_has_a_source() {
        for name in Technology::names() {
            let technology = Technology::load(name).unwrap();
            assert_eq!(technology.name, name);
            assert!(
                technology.unsourced().is_empty(),
                "{name}: {:?}",
                technology.unsourced()
            );
        }
    }

    /// By hand from the coefficients: 4 PEs, L1 of 65 and L2 of 32,769 elements take two cells each.
    #[test]
    fn area_and_power_are_the_sums_of_their_parts() {
        let technology = Technology::load("maestro_28nm_2019").unwrap();
        let machine = Resources {
            pes: 4,
            l1: 65,
            l2: 32_769,
            bandwidth: 3,
        };
        let bus = (14.662 * 4.0 + 28.895) * 3.0;
        let arbiter = 1.2886 * 16.0 + 5.5814 * 4.0 - 23.711;
        let area = 4.0 * 4470.9014 + 4.0 * 2.0 * 4505.1889 + 2.0 * 4161.536 + 101.7938 * bus + 395.473 * arbiter;
        let power = 4.0 * 1.2223 + 4.0 * 2.0 * 0.2208 + 2.0 * 4.0 + 0.0008 * bus + 0.34;
        assert!((technology.area(machine) / area - 1.0).abs() < 1e-12);
        assert!((technology.power(machine) / power - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_larger_machine_is_never_smaller() {
        for name in Technology::names() {
            let technology = Technology::load(name).unwrap();
            let of = |pes, l1, l2, bandwidth| {
                let machine = Resources { pes, l1, l2, bandwidth };
                (technology.area(machine), technology.power(machine))
            };
            for n in 1..200 {
                let (a, b) = (of(n, 3 * n, 7 * n, n), of(n + 1, 3 * n + 1, 7 * n + 5, n + 1));
                assert!(a.0 <= b.0 && a.1 <= b.1, "{n}");
                let (x, y) = (of(n, n, n, n), of(n, n, n, n + 1));
                assert!(x.0 <= y.0 && x.1 <= y.1, "{n}");
            }
        }
    }

    #[test]
    fn every_fault_is_reported_at_its_place() {
        let text = BUNDLED[0]
            .1
            .replace("per_pe: 14.662", "per_pe: -1")
            .replace("\"l1\"", "\"l3\"");
        let faults = Technology::from_ron(&text).unwrap_err();
        let messages: Vec<&str> = faults.iter().map(|f| f.message.as_str()).collect();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(messages[0].starts_with("-1: a number of at least 0"), "{messages:?}");
        assert_eq!(messages[1], "there is no constant `l3`");
    }
}
