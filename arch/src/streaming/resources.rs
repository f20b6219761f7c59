//! What a design spends and what a device has.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// Amounts of the four resources of an FPGA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Resources {
    /// DSP slices.
    pub dsp: u64,
    /// Block RAMs of 18 Kibit.
    pub bram: u64,
    /// Look-up tables.
    pub lut: u64,
    /// Flip-flops.
    pub ff: u64,
}

impl Resources {
    /// Names, in the order of [`Resources::as_array`].
    pub const NAMES: [&'static str; 4] = ["DSP", "BRAM", "LUT", "FF"];

    /// DSP, BRAM, LUT, FF.
    #[must_use]
    pub const fn as_array(self) -> [u64; 4] {
        [self.dsp, self.bram, self.lut, self.ff]
    }

    /// The inverse of [`Resources::as_array`].
    #[must_use]
    pub const fn from_array([dsp, bram, lut, ff]: [u64; 4]) -> Self {
        Self { dsp, bram, lut, ff }
    }

    /// Whether nothing exceeds `available`.
    #[must_use]
    pub const fn fits(self, available: Self) -> bool {
        self.dsp <= available.dsp && self.bram <= available.bram && self.lut <= available.lut && self.ff <= available.ff
    }
}

impl Add for Resources {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            dsp: self.dsp + other.dsp,
            bram: self.bram + other.bram,
            lut: self.lut + other.lut,
            ff: self.ff + other.ff,
        }
    }
}

impl AddAssign for Resources {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Resources {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            dsp: self.dsp - other.dsp,
            bram: self.bram - other.bram,
            lut: self.lut - other.lut,
            ff: self.ff - other.ff,
        }
    }
}

impl Sum for Resources {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DSP {} BRAM {} LUT {} FF {}", self.dsp, self.bram, self.lut, self.ff)
    }
}
