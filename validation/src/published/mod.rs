//! The simulator against published measurements of chips and RTL.
//!
//! Each constant is published, or assumed and varied by a factor of two.

pub mod eyeriss;
pub mod gemmini;

use crate::compare::Pair;

/// Mean absolute relative error of pairs; 0 of none.
fn mean_error(pairs: impl IntoIterator<Item = Pair>) -> f64 {
    let errors: Vec<f64> = pairs.into_iter().map(|pair| pair.error().abs()).collect();
    errors.iter().sum::<f64>() / errors.len().max(1) as f64
}
