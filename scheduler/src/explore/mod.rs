//! Exploration of hardware designs: every combination of PEs, buffers, network and dataflow within area and power.
//!
//! A [`Plan`] names ranges; [`Space`] numbers the designs and divides them into chunks; a [`Sweeper`] goes through
//! chunks and keeps the best ([`Kept`]); [`run`] does that on several threads. The figures of one design, in full,
//! are a [`Row`].
//!
//! After MAESTRO's design-space exploration (Kwon et al., MICRO 2019, section 5.2), whose loops also skip by the
//! smallest area and power inside; the bound on latency and energy is an addition.

mod group;
mod kept;
mod machine;
mod plan;
mod row;
mod run;
mod space;
mod sweep;

pub use kept::{Entry, Kept, Stored};
pub use machine::Mapped;
pub use plan::{Axis, Budget, MappingChoice, Model, Objective, Pes, Plan, Size, Values, names, text};
pub use row::{Row, mapped, row};
pub use run::{Explored, explore, run};
pub use space::{Design, Space, SpaceError};
pub use sweep::{Sweeper, Swept, Tally};
