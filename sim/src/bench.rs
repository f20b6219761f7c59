//! The engine with and without its world, for `benches/throughput.rs`.

use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_workloads::Problem;

use crate::engine::Built;
use crate::engine::plain::PlainColumns;
use crate::{Options, Outcome, SimError};

/// A machine with a mapping loaded, not run yet.
#[allow(missing_debug_implementations)]
pub struct Prepared(Built);

/// The same machine as plain vectors of structs.
#[allow(missing_debug_implementations)]
pub struct Plain(PlainColumns);

impl Prepared {
    /// Builds the machine.
    ///
    /// # Errors
    /// As [`crate::simulate`].
    pub fn new(problem: &Problem, arch: &Accelerator, mapping: &Mapping, options: Options) -> Result<Self, SimError> {
        crate::build(problem, arch, mapping, options).map(Prepared)
    }

    /// Takes the columns out of the world.
    #[must_use]
    pub fn into_plain(self) -> Plain {
        Plain(PlainColumns::new(self.0))
    }

    /// Runs to the end, as a system.
    ///
    /// # Errors
    /// As [`crate::simulate`].
    pub fn run(self, arch: &Accelerator) -> Result<Outcome, SimError> {
        self.0.run(arch, &mut crate::Silent)
    }
}

impl Plain {
    /// Runs to the end, without specs.
    ///
    /// # Errors
    /// As [`crate::simulate`].
    pub fn run(self, arch: &Accelerator) -> Result<Outcome, SimError> {
        self.0.run(arch)
    }
}
