//! Timing on a machine that is not ours alone: cycles from thread time and a clock measured beside every sample, and an FMA
//! loop beside it that tells whether the core was ours.

use cyclonest_sconv::{
    Isa,
    probe::{clock, fma_rate, thread_time},
};
use serde::{Deserialize, Serialize};

/// Links of the chain that measures the clock, and vector operations of the FMA loop: some tens of microseconds each.
const LINKS: u64 = 30_000;
const VECTORS: u64 = 40_000;
/// Share of the loop's usual rate below which the samples beside it do not count.
const FLOOR: f64 = 0.95;
/// How far two clocks beside one sample may be apart.
const DRIFT: f64 = 0.03;
/// Seconds of work in a sample, where a run is shorter.
const WORK: f64 = 1e-3;

/// What a core can do, and the check that it still does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// Instructions of the loop.
    pub isa: Isa,
    /// Peak, multiply-adds per cycle: lanes × vector operations per cycle.
    pub peak: f64,
    /// What the FMA loop reaches when nothing disturbs it, multiply-adds per cycle.
    pub usual: f64,
    /// Clock at the time, Hz.
    pub clock: f64,
}

/// A reading of the gate.
#[derive(Debug, Clone, Copy)]
struct Reading {
    clock: f64,
    fma: f64,
}

/// One timing.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Sample {
    /// Cycles of one run.
    pub cycles: f64,
    /// Whether clock and FMA loop beside it were as they should be.
    pub accepted: bool,
}

impl Gate {
    /// Finds the peak of the widest instructions of this core.
    #[must_use]
    pub fn calibrate() -> Self {
        let isa = Isa::detect();
        let mut readings: Vec<Reading> = (0..200).map(|_| read(isa)).collect();
        readings.sort_by(|a, b| a.fma.total_cmp(&b.fma));
        // The upper quartile: above it are readings whose clock was taken in another state than the loop.
        let usual = readings[readings.len() * 3 / 4].fma;
        let mut clocks: Vec<f64> = readings.iter().map(|reading| reading.clock).collect();
        clocks.sort_by(f64::total_cmp);
        let lanes = isa.lanes() as f64;
        Gate {
            isa,
            peak: (usual / lanes).round().max(1.0) * lanes,
            usual,
            clock: clocks[clocks.len() / 2],
        }
    }

    /// Runs of `work` that make a sample long enough.
    pub fn repeats(&self, work: &mut dyn FnMut()) -> u32 {
        work();
        let started = thread_time();
        work();
        let once = (thread_time() - started).as_secs_f64().max(1e-7);
        (WORK / once).ceil().clamp(1.0, 10_000.0) as u32
    }

    /// Times `repeats` runs of `work` after one that is not timed.
    pub fn sample(&self, repeats: u32, work: &mut dyn FnMut()) -> Sample {
        work();
        let before = read(self.isa);
        let started = thread_time();
        for _ in 0..repeats {
            work();
        }
        let seconds = (thread_time() - started).as_secs_f64() / f64::from(repeats);
        let after = read(self.isa);
        let clock = (before.clock + after.clock) / 2.0;
        let steady = (before.clock - after.clock).abs() <= DRIFT * clock;
        let ours = [before, after]
            .iter()
            .all(|reading| (FLOOR..=2.0 - FLOOR).contains(&(reading.fma / self.usual)));
        Sample {
            cycles: seconds * clock,
            accepted: steady && ours,
        }
    }
}

fn read(isa: Isa) -> Reading {
    let first = clock(LINKS / 2);
    let rate = fma_rate(isa, VECTORS);
    let second = clock(LINKS / 2);
    let clock = (first + second) / 2.0;
    Reading {
        clock,
        fma: rate / clock,
    }
}

/// Median and quartiles of what was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Median cycles.
    pub median: f64,
    /// First quartile.
    pub low: f64,
    /// Third quartile.
    pub high: f64,
    /// Samples behind it.
    pub samples: usize,
    /// Samples that were rejected.
    pub rejected: usize,
    /// True if fewer than three samples were accepted, so that rejected ones are counted as well.
    pub noisy: bool,
}

impl Spread {
    /// Of at least one sample.
    #[must_use]
    pub fn of(samples: &[Sample]) -> Self {
        let accepted: Vec<f64> = samples
            .iter()
            .filter(|sample| sample.accepted)
            .map(|sample| sample.cycles)
            .collect();
        let rejected = samples.len() - accepted.len();
        let noisy = accepted.len() < 3;
        let mut cycles = if noisy {
            samples.iter().map(|sample| sample.cycles).collect()
        } else {
            accepted
        };
        cycles.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let position = share * (cycles.len().max(1) - 1) as f64;
            let (below, part) = (position.floor() as usize, position.fract());
            let value = |i: usize| cycles.get(i).copied().unwrap_or(f64::NAN);
            if part == 0.0 {
                value(below)
            } else {
                value(below) * (1.0 - part) + value(below + 1) * part
            }
        };
        Spread {
            median: at(0.5),
            low: at(0.25),
            high: at(0.75),
            samples: cycles.len(),
            rejected,
            noisy,
        }
    }

    /// Distance of the quartiles relative to the median.
    #[must_use]
    pub fn relative(&self) -> f64 {
        (self.high - self.low) / self.median
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(cycles: f64, accepted: bool) -> Sample {
        Sample { cycles, accepted }
    }

    #[test]
    fn rejected_samples_do_not_count_unless_there_is_nothing_else() {
        let samples = [
            sample(1.0, true),
            sample(2.0, true),
            sample(3.0, true),
            sample(99.0, false),
        ];
        let spread = Spread::of(&samples);
        assert_eq!((spread.median, spread.low, spread.high), (2.0, 1.5, 2.5));
        assert_eq!((spread.samples, spread.rejected, spread.noisy), (3, 1, false));
        let spread = Spread::of(&samples[2..]);
        assert_eq!((spread.median, spread.samples, spread.noisy), (51.0, 2, true));
    }
}
