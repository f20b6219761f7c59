//! Model against simulation, against published figures, and against what other tools say.

pub mod compare;
mod csa;
pub mod host;
pub mod native;
pub mod reference;

pub use csa::Csa;
