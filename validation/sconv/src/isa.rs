//! Instruction sets, found at run time.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Error;

/// Vector instructions that a plan uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Isa {
    /// No instruction beyond what the target always has.
    Portable,
    /// AVX2 with FMA: 16 registers of 8 lanes.
    Avx2,
    /// AVX-512F: 32 registers of 16 lanes.
    Avx512,
}

impl Isa {
    /// All instruction sets, the widest last.
    pub const ALL: [Isa; 3] = [Isa::Portable, Isa::Avx2, Isa::Avx512];

    /// The widest that this CPU has.
    #[must_use]
    pub fn detect() -> Isa {
        Isa::ALL
            .into_iter()
            .rev()
            .find(|isa| isa.available())
            .unwrap_or(Isa::Portable)
    }

    /// Whether this CPU has it.
    #[must_use]
    pub fn available(self) -> bool {
        match self {
            Isa::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Isa::Avx2.available() && is_x86_feature_detected!("avx512f"),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// An error unless this CPU has it.
    pub(crate) fn require(self) -> Result<(), Error> {
        if self.available() {
            return Ok(());
        }
        Err(Error::NoInstructions(match self {
            Isa::Portable => "portable instructions",
            Isa::Avx2 => "AVX2 with FMA",
            Isa::Avx512 => "AVX-512F",
        }))
    }

    /// Lanes of a register, f32.
    #[must_use]
    pub fn lanes(self) -> usize {
        match self {
            Isa::Portable => 4,
            Isa::Avx2 => 8,
            Isa::Avx512 => 16,
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "AVX2",
            Isa::Avx512 => "AVX-512",
        })
    }
}
