//! The command line of Cyclonest.
fn main() {}
