//! Random machines, layers and mappings, and the slow per-cycle reference that the simulator is checked against.

pub mod features;
pub mod generate;
pub mod invariants;
pub mod oracle;
