//! Random machines, layers and mappings, and the slow per-cycle reference that the simulator is checked against.

pub mod oracle;
