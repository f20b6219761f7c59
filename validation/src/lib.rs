//! Model against simulation, against published figures, and against what other tools say.

pub mod calibrate;
pub mod compare;
mod csa;
pub mod dataflows;
pub mod host;
pub mod native;
pub mod observe;
pub mod oracle;
pub mod published;
pub mod reference;
pub mod tuned;

pub use csa::Csa;
