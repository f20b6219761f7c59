//! Sizes, widths and clocks with their units, as they are written in RON.

use serde::{Deserialize, Serialize};

/// Size of a storage bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Capacity {
    /// Never full (DRAM).
    Unbounded,
    /// Elements, whatever their precision.
    Words(u64),
    /// Bytes.
    Bytes(u64),
    /// 1,024 bytes.
    KiB(u64),
    /// 1,048,576 bytes.
    MiB(u64),
}

impl Capacity {
    /// Bits that the bank holds; `None` where it is unbounded or given in words (see [`Capacity::words`]) or the
    /// number overflows 64 bits.
    #[must_use]
    pub fn bits(self) -> Option<u64> {
        match self {
            Capacity::Unbounded | Capacity::Words(_) => None,
            Capacity::Bytes(n) => n.checked_mul(8),
            Capacity::KiB(n) => n.checked_mul(8 << 10),
            Capacity::MiB(n) => n.checked_mul(8 << 20),
        }
    }

    /// Elements that the bank holds, if it is given in words.
    #[must_use]
    pub const fn words(self) -> Option<u64> {
        if let Capacity::Words(n) = self { Some(n) } else { None }
    }
}

/// What a port or a link moves in one of its cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Width {
    /// Bits per cycle.
    Bits(u64),
    /// Bytes per cycle.
    Bytes(u64),
    /// Elements per cycle, whatever their precision.
    Words(u64),
    /// Everything at once: counted, never the limit.
    Unlimited,
}

impl Width {
    /// Cycles that `elements` of `bits` bits occupy the resource: ⌈bits ÷ width⌉ (rule 11).
    #[inline]
    #[must_use]
    pub const fn cycles(self, elements: u64, bits: u64) -> u64 {
        match self {
            Width::Bits(w) => (elements * bits).div_ceil(w),
            Width::Bytes(w) => (elements * bits).div_ceil(8 * w),
            Width::Words(w) => elements.div_ceil(w),
            Width::Unlimited => 0,
        }
    }
}

/// A clock frequency in MHz.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Clock {
    /// Millions of cycles per second.
    MHz(f64),
}

impl Clock {
    /// The frequency in MHz.
    #[must_use]
    pub const fn mhz(self) -> f64 {
        let Clock::MHz(f) = self;
        f
    }
}
