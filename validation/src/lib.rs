//! Placeholder.

pub mod reference;
