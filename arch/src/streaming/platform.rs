//! FPGA boards: what a partition may spend, how fast it reaches memory, how long a reconfiguration takes.

use serde::{Deserialize, Serialize};

use super::Resources;

/// A board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Platform {
    /// As `--platform` takes it.
    pub name: String,
    /// The device's part number.
    pub part: String,
    /// What one configuration may use.
    pub resources: Resources,
    /// Off-chip bandwidth \[Gbit/s\].
    pub bandwidth_gbps: f64,
    /// Time of a full reconfiguration \[µs\].
    pub reconfiguration_us: f64,
    /// Clock that the FINN backend reaches on it \[MHz\]; the other backends run at 100 MHz.
    pub finn_clock_mhz: f64,
    /// Where the figures come from.
    pub source: String,
}

/// Why a platform cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlatformError {
    /// Neither bundled nor a file.
    #[error("unknown platform `{name}`: the bundled ones are {}", .known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The text is not a platform.
    #[error("{0}")]
    Syntax(String),
}

const BUNDLED: [&str; 10] = [
    include_str!("../../platforms/zedboard.ron"),
    include_str!("../../platforms/zc706.ron"),
    include_str!("../../platforms/zcu104.ron"),
    include_str!("../../platforms/zcu106.ron"),
    include_str!("../../platforms/ultra96.ron"),
    include_str!("../../platforms/u200.ron"),
    include_str!("../../platforms/u250.ron"),
    include_str!("../../platforms/u250_1slr.ron"),
    include_str!("../../platforms/u250_4slr.ron"),
    include_str!("../../platforms/zed_quarter.ron"),
];

impl Platform {
    /// Reads a platform from RON.
    ///
    /// # Errors
    /// If the text is not one; the message carries line and column.
    pub fn from_ron(text: &str) -> Result<Self, PlatformError> {
        ron::from_str(text).map_err(|e| PlatformError::Syntax(e.to_string()))
    }

    /// All bundled platforms.
    #[must_use]
    pub fn bundled() -> Vec<Self> {
        BUNDLED
            .iter()
            .map(|text| Self::from_ron(text).expect("bundled platforms are well-formed, see the tests"))
            .collect()
    }

    /// The bundled platform of that name.
    ///
    /// # Errors
    /// If there is none; the message lists those that there are.
    pub fn named(name: &str) -> Result<Self, PlatformError> {
        let all = Self::bundled();
        let known = all.iter().map(|p| p.name.clone()).collect();
        all.into_iter()
            .find(|p| p.name == name)
            .ok_or_else(|| PlatformError::Unknown {
                name: name.to_owned(),
                known,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bundled_platform_is_well_formed_and_names_its_source() {
        for platform in Platform::bundled() {
            assert!(!platform.source.is_empty(), "{}", platform.name);
            assert!(
                platform.resources.dsp > 0 && platform.bandwidth_gbps > 0.0,
                "{}",
                platform.name
            );
        }
    }

    #[test]
    fn an_unknown_platform_lists_the_known_ones() {
        let message = Platform::named("zc7o6").unwrap_err().to_string();
        assert!(message.contains("zc706"), "{message}");
    }
}
