//! Schedulers and analytical cost models, each behind one trait.

pub mod cost;
mod request;

pub use request::{Objective, Request, ScheduleError, Scheduled, Scheduler};
