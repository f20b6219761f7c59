//! Schedulers and analytical cost models, each behind one trait.

mod anneal;
pub mod cost;
mod descent;
mod greedy;
mod judge;
mod milp;
mod moves;
mod parallel;
mod random;
mod registry;
mod request;
pub mod reuse;
mod space;
pub mod streaming;

pub use anneal::Anneal;
pub use greedy::Greedy;
pub use milp::{Milp, Weights};
pub use random::{Random, RandomNaive};
pub use registry::{by_name, names};
pub use request::{Objective, Observer, Proof, Request, ScheduleError, Scheduled, Scheduler};
