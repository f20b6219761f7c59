//! Schedulers and analytical cost models, each behind one trait.

mod anneal;
pub mod cost;
mod dataflow;
mod descent;
pub mod exhaustive;
pub mod explore;
pub mod external;
mod greedy;
mod hybrid;
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
pub use dataflow::Dataflow;
pub use exhaustive::Exhaustive;
pub use external::External;
pub use greedy::Greedy;
pub use hybrid::Hybrid;
pub use milp::{Milp, Terms, Weights};
pub use random::{Random, RandomNaive};
pub use registry::{by_name, names, with_weights};
pub use request::{Objective, Observer, Proof, Request, ScheduleError, Scheduled, Scheduler};
