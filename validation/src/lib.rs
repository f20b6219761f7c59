//! Model against simulation, against published figures, and against what other tools say.

pub mod compare;
pub mod dataflows;
pub mod published;
pub mod reference;
