//! One burst: everything inside the PE level for one step (rules 2, 14 and 15).
//!
//! Bursts fall into few classes: a tile is full or clipped in every dimension, and its rows and columns reach into
//! the padding or not. A class is worked out once, when it first occurs; the event loop only counts how often.

mod lanes;
mod ports;
mod walk;

use std::collections::HashMap;

use cyclonest_arch::{Accelerator, Accesses, Counts, Mapping, Reduction};
use cyclonest_workloads::{Dim, DimMap, Tensor, TensorMap};

use super::lines::AxisSpec;
use ports::Ports;

/// A loop inside the PE level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InnerLoop {
    pub(crate) level: usize,
    pub(crate) dim: Dim,
    pub(crate) trips: u64,
    /// Distance in `dim` of two iterations.
    pub(crate) stride: u64,
    pub(crate) spatial: bool,
}

/// All bursts of the same shape.
#[derive(Debug, Clone)]
pub(crate) struct Class {
    pub(crate) cycles: u64,
    pub(crate) macs: u64,
    /// Size of the step's transfer of an operand that bypasses the PE level (rule 6).
    pub(crate) streams: TensorMap<u64>,
    /// Accesses at the PE level and inside it, summed over the instances in the PE.
    accesses: Vec<TensorMap<Accesses>>,
    /// Bursts so far.
    pub(crate) times: u64,
}

/// Accesses of a PE: in all its instances of a level, and in the one with all coordinates 0.
#[derive(Debug, Clone)]
struct Tally {
    all: Vec<TensorMap<Accesses>>,
    first: Vec<TensorMap<Accesses>>,
    /// Reads of the first instance that accumulate.
    accumulate: u64,
    streams: TensorMap<u64>,
}

/// Position of a tile on one axis, as far as bursts differ by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LineKey {
    windows: u64,
    taps: u64,
    first_real: u64,
    end_real: u64,
}

/// Classes of tile positions on one axis.
#[derive(Debug)]
struct LineClasses {
    axis: AxisSpec,
    window_tile: u64,
    tap_tile: u64,
    tap_tiles: u64,
    table: Vec<u16>,
    count: usize,
}

impl LineClasses {
    fn new(axis: &AxisSpec, window_tile: u64, tap_tile: u64) -> Self {
        let mut names: HashMap<LineKey, u16> = HashMap::new();
        let mut table = Vec::new();
        for w in (0..axis.windows).step_by(window_tile as usize) {
            for t in (0..axis.taps).step_by(tap_tile as usize) {
                let windows = window_tile.min(axis.windows - w);
                let taps = tap_tile.min(axis.taps - t);
                let base = w * axis.stride + t * axis.dilation;
                let span = (windows - 1) * axis.stride + (taps - 1) * axis.dilation + 1;
                let relative = |line: u64| line.saturating_sub(base).min(span);
                let key = LineKey {
                    windows,
                    taps,
                    first_real: relative(axis.real.start),
                    end_real: relative(axis.real.end),
                };
                let next = names.len() as u16;
                table.push(*names.entry(key).or_insert(next));
            }
        }
        let tap_tiles = axis.taps.div_ceil(tap_tile);
        LineClasses {
            axis: axis.clone(),
            window_tile,
            tap_tile,
            tap_tiles,
            table,
            count: names.len(),
        }
    }

    #[inline]
    fn at(&self, window: u64, tap: u64) -> usize {
        self.table[(window / self.window_tile * self.tap_tiles + tap / self.tap_tile) as usize] as usize
    }
}

/// The bursts of a mapping.
#[derive(Debug)]
pub(crate) struct Bursts {
    bounds: DimMap<u64>,
    tile: DimMap<u64>,
    pe_level: usize,
    loops: Vec<InnerLoop>,
    rows: LineClasses,
    columns: LineClasses,
    /// Per tensor: levels from the PE level inwards that keep it.
    keepers: TensorMap<Vec<usize>>,
    /// Per tensor and network at or inside the PE level: does it multicast (reduce) the tensor?
    together: TensorMap<Vec<bool>>,
    ports: Ports,
    interval: u64,
    /// Class by position, worked out on demand.
    index: Vec<Option<u32>>,
    pub(crate) classes: Vec<Class>,
}

impl Bursts {
    pub(crate) fn new(
        bounds: &DimMap<u64>,
        loops: Vec<InnerLoop>,
        axes: (&AxisSpec, &AxisSpec),
        arch: &Accelerator,
        mapping: &Mapping,
    ) -> Self {
        let pe_level = arch.event_level();
        let tile = DimMap::from_fn(|d| loops.iter().filter(|l| l.dim == d).map(|l| l.trips).product());
        let rows = LineClasses::new(axes.0, tile[Dim::P], tile[Dim::R]);
        let columns = LineClasses::new(axes.1, tile[Dim::Q], tile[Dim::S]);
        let together = TensorMap::from_fn(|tensor| {
            let network = |k: usize| match &arch.levels[k].below {
                None => true,
                Some(n) if tensor == Tensor::Outputs => n.reduction != Reduction::None,
                Some(n) => n.multicast.contains(tensor),
            };
            (pe_level..arch.levels.len()).map(network).collect()
        });
        Bursts {
            bounds: *bounds,
            tile,
            pe_level,
            loops,
            index: vec![None; 32 * rows.count * columns.count],
            rows,
            columns,
            keepers: TensorMap::from_fn(|t| {
                (pe_level..mapping.levels.len())
                    .filter(|&k| mapping.levels[k].keeps.contains(t))
                    .collect()
            }),
            together,
            ports: Ports::new(arch, mapping),
            interval: arch.compute.interval,
            classes: Vec::new(),
        }
    }

    /// The class of the step whose tile starts at `low`. `continuing`: its outputs do not start at zero.
    #[inline]
    pub(crate) fn class_at(&mut self, low: &DimMap<u64>, continuing: bool) -> u32 {
        let mut position = usize::from(continuing);
        for d in [Dim::N, Dim::G, Dim::K, Dim::C] {
            position = position * 2 + usize::from(low[d] + self.tile[d] > self.bounds[d]);
        }
        position = position * self.rows.count + self.rows.at(low[Dim::P], low[Dim::R]);
        position = position * self.columns.count + self.columns.at(low[Dim::Q], low[Dim::S]);
        match self.index[position] {
            Some(class) => class,
            None => {
                let class = self.work_out(low, continuing);
                self.classes.push(class);
                let name = self.classes.len() as u32 - 1;
                self.index[position] = Some(name);
                name
            }
        }
    }

    /// Adds the accesses of all bursts so far to `counts`.
    pub(crate) fn reduce_into(&self, counts: &mut Counts) {
        for class in &self.classes {
            counts.macs += class.macs * class.times;
            for (level, accesses) in counts.levels[self.pe_level..].iter_mut().zip(&class.accesses) {
                for (tensor, a) in accesses.iter() {
                    let total = &mut level.tensors[tensor];
                    total.reads += a.reads * class.times;
                    total.fills += a.fills * class.times;
                    total.updates += a.updates * class.times;
                    total.drains += a.drains * class.times;
                    total.read_modify_writes += a.read_modify_writes * class.times;
                }
            }
        }
    }

    fn work_out(&self, low: &DimMap<u64>, continuing: bool) -> Class {
        let extent = DimMap::from_fn(|d| self.tile[d].min(self.bounds[d] - low[d]));
        let levels = self.together[Tensor::Weights].len();
        let mut tally = Tally {
            all: vec![TensorMap::default(); levels],
            first: vec![TensorMap::default(); levels],
            accumulate: 0,
            streams: TensorMap::default(),
        };
        for tensor in [Tensor::Weights, Tensor::Inputs] {
            self.operand(tensor, low, &extent, &mut tally);
        }
        self.outputs(low, &extent, continuing, &mut tally);
        let trips: u64 = Dim::ALL.iter().map(|&d| self.trips_of_lane_0(d, extent[d])).product();
        Class {
            cycles: (trips * self.interval).max(self.ports.cycles(&tally)),
            macs: extent.0.iter().product(),
            streams: tally.streams,
            accesses: tally.all,
            times: 0,
        }
    }

    /// Reads along the chain of an operand: the stream or the PE level, the levels inside, the lanes.
    fn operand(&self, tensor: Tensor, low: &DimMap<u64>, extent: &DimMap<u64>, tally: &mut Tally) {
        let inner: Vec<usize> = self.keepers[tensor]
            .iter()
            .copied()
            .filter(|&k| k > self.pe_level)
            .collect();
        let at_pe = self.keepers[tensor].first() == Some(&self.pe_level);
        let mut from = self.pe_level;
        let mut is_stream = !at_pe;
        for &to in &inner {
            let walked = self.walk_operand(tensor, from, to, low, extent);
            let (t, f) = (to - self.pe_level, from - self.pe_level);
            tally.all[t][tensor].fills += walked.all.fills;
            tally.first[t][tensor].fills += walked.first.fills;
            if is_stream {
                tally.streams[tensor] = walked.all.reads;
            } else {
                tally.all[f][tensor].reads += walked.all.reads;
                tally.first[f][tensor].reads += walked.first.reads;
            }
            (from, is_stream) = (to, false);
        }
        let all = self.lane_accesses(tensor, from, low, extent, false);
        if is_stream {
            tally.streams[tensor] = all;
        } else {
            let f = from - self.pe_level;
            tally.all[f][tensor].reads += all;
            tally.first[f][tensor].reads += self.lane_accesses(tensor, from, low, extent, true);
        }
    }

    /// Updates by the lanes, and what the levels inside send to and fetch from each other.
    fn outputs(&self, low: &DimMap<u64>, extent: &DimMap<u64>, continuing: bool, tally: &mut Tally) {
        let tensor = Tensor::Outputs;
        let Some(&innermost) = self.keepers[tensor].last() else {
            return;
        };
        let last = innermost - self.pe_level;
        let updates = self.lane_accesses(tensor, innermost, low, extent, false);
        let first_updates = self.lane_accesses(tensor, innermost, low, extent, true);
        tally.all[last][tensor].updates += updates;
        tally.first[last][tensor].updates += first_updates;
        let (at_zero, first_at_zero) = if innermost == self.pe_level {
            let elements = if continuing {
                0
            } else {
                Dim::ALL
                    .iter()
                    .filter(|&&d| tensor.is_relevant(d))
                    .map(|&d| extent[d])
                    .product()
            };
            (elements, elements)
        } else {
            self.walk_outputs(extent, continuing, tally)
        };
        tally.all[last][tensor].reads += updates - at_zero;
        tally.first[last][tensor].reads += first_updates - first_at_zero;
        tally.accumulate = first_updates - first_at_zero;
    }
}
