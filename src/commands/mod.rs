//! One file per subcommand.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod explain;
pub(crate) mod explore;
pub(crate) mod host;
pub(crate) mod list;
pub(crate) mod native;
pub(crate) mod plot;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod schedule;
pub(crate) mod show;
pub(crate) mod simulate;
pub(crate) mod stream;
pub(crate) mod validate;
