//! An exploration in a folder: the plan, a log that survives being killed, and the results.

mod identity;
mod log;
mod results;
mod session;
mod verify;

pub(crate) use results::Results;
pub(crate) use session::{Progress, Session, load, load_from};
