//! Readers of reference data of other systems, and what is compared with it.

pub mod timing;
