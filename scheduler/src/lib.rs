//! Schedulers and analytical cost models, each behind one trait.

pub mod cost;
mod greedy;
mod registry;
mod request;
pub mod reuse;
pub mod streaming;

pub use greedy::Greedy;
pub use registry::{by_name, names};
pub use request::{Objective, Request, ScheduleError, Scheduled, Scheduler};
