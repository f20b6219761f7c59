//! How long a PE computes (rule 14).

use cyclonest_arch::Width;
use cyclonest_workloads::{Dim, DimMap, Tensor};

use super::fan::distinct;
use crate::cost::exact::hardware::Hardware;
use crate::cost::exact::latency::{KINDS, Timing};
use crate::cost::exact::nest::Nest;
use crate::cost::exact::window::AffineAxis;

/// The inside of a PE.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// Extents of a PE's tile, and temporal trips over them.
    extent: DimMap<u64>,
    trips: DimMap<u64>,
    interval: f64,
    /// Cycles per trip of the busiest port, without the reads of sums.
    ports: f64,
    /// The port that sums are read through: cycles per trip of everything on it, sums included, and cycles per sum.
    sums: (f64, f64),
}

impl Default for Work {
    fn default() -> Self {
        Work {
            extent: DimMap::ones(),
            trips: DimMap::ones(),
            interval: 1.0,
            ports: 0.0,
            sums: (0.0, 0.0),
        }
    }
}

impl Work {
    /// What limits a burst (rule 14).
    pub(super) fn new(
        nest: &Nest,
        keeps: &[[bool; 3]],
        hardware: &Hardware,
        timing: &Timing,
        axes: &[AffineAxis; 2],
    ) -> Work {
        let (event, levels) = (hardware.event, nest.levels());
        let mut burst = Work {
            extent: DimMap::from_fn(|dim| nest.extent(event, dim)),
            trips: DimMap::from_fn(|dim| {
                let inside = nest.inside(event, dim).iter();
                inside.filter(|d| !d.spatial).map(|d| d.trips).product()
            }),
            interval: timing.interval,
            ..Work::default()
        };
        for level in event..levels {
            // Cycles per trip, by port.
            let mut ports = [0.0; KINDS];
            let mut sums = None;
            for tensor in Tensor::ALL {
                let t = tensor as usize;
                if !keeps[level][t] {
                    continue;
                }
                let last = !(level + 1..levels).any(|inner| keeps[inner][t]);
                if !last {
                    // What moves between levels of a PE is at most what the lanes take.
                    continue;
                }
                let (read, write) = hardware.port(level, tensor);
                let per_trip = distinct(nest, hardware, axes, tensor, level..levels);
                let outputs = tensor == Tensor::Outputs;
                let bits = if outputs {
                    hardware.bits[t].0
                } else {
                    hardware.bits[t].1
                };
                let cycles = |width: Width| per_trip * per_element(width, bits);
                ports[timing.read[level][t] % KINDS] += cycles(read);
                if outputs {
                    ports[timing.write[level][t] % KINDS] += cycles(write);
                    if timing.read[level][t] != timing.write[level][t] {
                        sums = Some((timing.read[level][t] % KINDS, per_element(read, bits)));
                    }
                }
            }
            for (kind, &cycles) in ports.iter().enumerate() {
                match sums {
                    Some((port, per_sum)) if port == kind => burst.sums = (cycles, per_sum),
                    _ => burst.ports = burst.ports.max(cycles),
                }
            }
        }
        burst
    }

    /// Length of the burst at `at` (rule 14), of whose sums `opening` start at zero.
    #[inline]
    pub(super) fn length(&self, at: &DimMap<u64>, bounds: &DimMap<u64>, opening: u64) -> i64 {
        let mut trips = 1.0;
        for dim in Dim::ALL {
            let (extent, full) = (self.extent[dim], self.trips[dim]);
            let left = bounds[dim] - at[dim];
            if left < extent {
                // The lanes stand inside the temporal loops: the last trip may use some of them only.
                trips *= left.div_ceil(extent / full) as f64;
            } else {
                trips *= full as f64;
            }
        }
        let sums = self.sums.0 * trips - self.sums.1 * opening as f64;
        let longest = (trips * self.interval).max(trips * self.ports).max(sums);
        longest.ceil() as i64
    }
}

/// Cycles per element, as a fraction.
fn per_element(width: Width, bits: u64) -> f64 {
    match width {
        Width::Bits(w) => bits as f64 / w as f64,
        Width::Bytes(w) => bits as f64 / (8 * w) as f64,
        Width::Words(w) => 1.0 / w as f64,
        Width::Unlimited => 0.0,
    }
}
