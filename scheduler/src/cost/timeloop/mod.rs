//! The cost model `timeloop`: the rules of Timeloop v3 (Parashar et al., ISPASS 2019), its faults included.
//!
//! Timeloop (github.com/NVlabs/timeloop) is under the 3-clause BSD licence. This module is written from the paper and from
//! recorded runs and has none of its code.
//!
//! - The *tile* of a tensor is a bounding box. Between two steps it is kept if it did not move, its new slice is
//!   fetched if it moved as it did the time before, and all of it is fetched when the direction changes.
//! - Children whose tiles are equal are served by one access (*multicast*, and spatial reduction of outputs).
//! - A tensor that bypasses a level is demanded from the next outer level that keeps it.
//! - Outputs are not read at the first visit; their drains are not charged as reads.
//! - Cycles are the product of the temporal loops, slowed down by the level whose port is the narrowest relative to
//!   its demand.
//!
//! # Known faults of the original, kept on purpose
//!
//! - **Imperfect factors**: the default path walks only the first and the last iterations of a loop and takes the first
//!   instance for all, so idle lanes count as busy: 5,544 computes where there are 3,465. [`Variant::Exact`] walks
//!   everything, as the original does when its extrapolation is switched off; cycles stay the product of the full
//!   trip counts in both.
//! - **Stride larger than the kernel**: the box contains elements that nobody needs; a 1×1 kernel with stride 2 is
//!   charged 3.5 times the real traffic.
//! - **Halo reuse** is lost when the filter loop sits inside the sliding loop (1.5–1.9 times the real traffic), and
//!   across children: boxes that overlap without being equal are fetched separately.
//! - **Padding** is data like any other.
//! - **Latency** has no first fill, no last drain, no memory latency and no network bandwidth.
//! - Averages over instances are truncated to integers.
//!
//! Transfers between neighbouring instances, which the original also counts by default, are left out.

mod account;
mod adapter;
mod check;
mod closed;
mod nest;
mod traffic;
mod walk;

pub use account::{Evaluation, LevelStats, NetworkStats, NetworkTraffic, TensorStats};
pub use adapter::TimeloopModel;
pub use nest::{Block, DataSpace, Dimension, Hardware, Macs, Memory, Nest, NestLoop, Port, Storage, Workload};

use super::CostError;

/// How the nest is analysed. All agree on perfect factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Variant {
    /// Closed form for perfect factors, extrapolation as in the original's default for others.
    #[default]
    Default,
    /// The recursive walk with the original's extrapolation, always.
    Extrapolated,
    /// The recursive walk of every iteration, always; its time grows with the iterations.
    Exact,
}

/// Judges a nest.
///
/// # Errors
/// If factors do not give the bounds, or spatial loops or tiles do not fit; the message has all violations.
pub fn evaluate(
    workload: &Workload,
    hardware: &Hardware,
    nest: &Nest,
    variant: Variant,
) -> Result<Evaluation, CostError> {
    let violations = check::violations(workload, hardware, nest);
    if !violations.is_empty() {
        return Err(CostError::Invalid(violations.join("; ")));
    }
    let traffic = match variant {
        Variant::Default if nest.is_perfect() => closed::traffic(workload, nest),
        Variant::Default | Variant::Extrapolated => walk::traffic(workload, nest, true),
        Variant::Exact => walk::traffic(workload, nest, false),
    };
    Ok(account::account(workload, hardware, nest, &traffic))
}
