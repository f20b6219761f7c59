//! What can be wrong with a request.

use thiserror::Error;

/// Why a plan cannot be made or run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A size that must be positive is zero.
    #[error("{what} is zero")]
    Zero {
        /// Which size.
        what: &'static str,
    },
    /// Channels or filters do not divide into the groups.
    #[error("{count} {what} do not divide into {groups} groups")]
    Groups {
        /// Input channels or filters.
        what: &'static str,
        /// How many of them.
        count: usize,
        /// How many groups.
        groups: usize,
    },
    /// The dilated kernel is larger than the padded input.
    #[error("the kernel spans {kernel} {axis}, the padded input has {input}")]
    KernelTooLarge {
        /// Rows or columns.
        axis: &'static str,
        /// Extent of the dilated kernel.
        kernel: usize,
        /// Extent of the padded input.
        input: usize,
    },
    /// The tensors would not fit into the address space.
    #[error("the {what} would need more bytes than can be addressed")]
    TooLarge {
        /// Which tensor.
        what: &'static str,
    },
    /// A slice has the wrong length.
    #[error("{what} has {found} elements, expected {expected}")]
    Length {
        /// Which slice.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length that the shape asks for.
        expected: usize,
    },
    /// Filters that were packed for another plan.
    #[error("the filters were packed for another plan ({found}, this one is {expected})")]
    ForeignFilters {
        /// What they were packed for.
        found: String,
        /// What this plan is.
        expected: String,
    },
    /// The kernel family cannot run this shape or layout.
    #[error("{family} does not support {what}")]
    Unsupported {
        /// The kernel family.
        family: String,
        /// What it does not support.
        what: String,
    },
    /// This CPU has not the instructions that were asked for.
    #[error("this CPU has no {0}")]
    NoInstructions(&'static str),
}
