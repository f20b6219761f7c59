//! The machines that come with the crate.

use crate::Accelerator;

macro_rules! machines {
    ($($name:literal),* $(,)?) => {
        /// Name and RON text of every bundled machine.
        const MACHINES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../machines/", $name, ".ron")))),*];
    };
}

machines!(
    "eyeriss",
    "eyeriss_chip",
    "gemmini",
    "nvdla_like",
    "power10",
    "shidiannao_like",
    "simba",
    "simba_4x",
    "simba_large",
    "simba_sram",
    "skylake_x",
    "small3",
);

/// Names of the bundled machines, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|(name, _)| *name)
}

/// RON text of a bundled machine.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    MACHINES.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

/// A bundled machine; `None` if there is none of that name.
///
/// # Panics
/// If a bundled file is broken, which the tests of this crate exclude.
#[must_use]
pub fn load(name: &str) -> Option<Accelerator> {
    let text = text(name)?;
    match Accelerator::from_ron(text) {
        Ok(arch) => Some(arch),
        Err(faults) => panic!(
            "the bundled machine is broken:\n{}",
            crate::render(&format!("{name}.ron"), text, &faults)
        ),
    }
}
