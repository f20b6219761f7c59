//! One burst: everything inside the PE level for one step, in closed form (rules 14 and 15).
//!
//! Trips, reads and updates factor over the dimensions. A dimension has at most two extents (a full tile and the
//! clipped last one); the rows and columns of the inputs depend on where the tile starts.

use cyclonest_workloads::{Dim, DimMap, Tensor, TensorMap};

use super::lines::AxisSpec;

/// A loop of one dimension inside the PE level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InnerLoop {
    pub(crate) trips: u64,
    pub(crate) spatial: bool,
}

/// What one burst does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Burst {
    /// Temporal trips of lane 0.
    pub(crate) trips: u64,
    /// Multiply-accumulates.
    pub(crate) macs: u64,
    /// Distinct elements across the lanes, summed over the trips: operand reads, output updates.
    pub(crate) accesses: TensorMap<u64>,
}

#[derive(Debug, Clone)]
struct DimShape {
    tile: u64,
    bound: u64,
    /// Temporal settings that exist for lane 0, for the full and the clipped tile.
    trips: [u64; 2],
}

impl DimShape {
    fn extent(&self, low: u64) -> u64 {
        self.tile.min(self.bound - low)
    }

    fn trips(&self, low: u64) -> u64 {
        self.trips[usize::from(low + self.tile > self.bound)]
    }
}

/// Σ over the temporal settings of a window and a tap dimension of the distinct real lines across the lanes.
#[derive(Debug, Clone)]
struct LineReads {
    table: Vec<u64>,
    window_tile: u64,
    tap_tile: u64,
    tap_tiles: u64,
}

impl LineReads {
    fn new(axis: &AxisSpec, window: &[InnerLoop], window_tile: u64, tap: &[InnerLoop], tap_tile: u64) -> Self {
        let tap_tiles = axis.taps.div_ceil(tap_tile);
        let window_groups = groups(window);
        let tap_groups = groups(tap);
        let mut table = Vec::new();
        for w in (0..axis.windows).step_by(window_tile as usize) {
            for t in (0..axis.taps).step_by(tap_tile as usize) {
                let mut sum = 0;
                for lanes in &window_groups {
                    for taps in &tap_groups {
                        let mut lines: Vec<u64> = lanes
                            .iter()
                            .map(|l| w + l)
                            .filter(|&l| l < axis.windows)
                            .flat_map(|l| taps.iter().map(move |k| (l, t + k)))
                            .filter(|&(_, k)| k < axis.taps)
                            .map(|(l, k)| l * axis.stride + k * axis.dilation)
                            .filter(|y| axis.real.contains(y))
                            .collect();
                        lines.sort_unstable();
                        lines.dedup();
                        sum += lines.len() as u64;
                    }
                }
                table.push(sum);
            }
        }
        LineReads {
            table,
            window_tile,
            tap_tile,
            tap_tiles,
        }
    }

    #[inline]
    fn at(&self, window: u64, tap: u64) -> u64 {
        self.table[(window / self.window_tile * self.tap_tiles + tap / self.tap_tile) as usize]
    }
}

/// Indices of a dimension by temporal setting: each group is what the lanes hold at the same time.
fn groups(loops: &[InnerLoop]) -> Vec<Vec<u64>> {
    let mut groups = vec![vec![0]];
    for l in loops {
        let scaled = |index: &u64, i: u64| index * l.trips + i;
        groups = if l.spatial {
            groups
                .iter()
                .map(|g| g.iter().flat_map(|x| (0..l.trips).map(move |i| scaled(x, i))).collect())
                .collect()
        } else {
            groups
                .iter()
                .flat_map(|g| (0..l.trips).map(|i| g.iter().map(|x| scaled(x, i)).collect()))
                .collect()
        };
    }
    groups
}

/// The closed form of every burst of a mapping.
#[derive(Debug, Clone)]
pub(crate) struct Bursts {
    dims: DimMap<DimShape>,
    rows: LineReads,
    columns: LineReads,
}

impl Bursts {
    /// From the loops of every dimension inside the PE level, outermost first.
    pub(crate) fn new(
        bounds: &DimMap<u64>,
        loops: &DimMap<Vec<InnerLoop>>,
        rows: &AxisSpec,
        columns: &AxisSpec,
    ) -> Self {
        let tile = |dim: Dim| loops[dim].iter().map(|l| l.trips).product::<u64>();
        let dims = DimMap::from_fn(|dim| {
            let lowest: Vec<u64> = groups(&loops[dim]).iter().map(|g| g[0]).collect();
            let existing = |extent: u64| lowest.iter().filter(|&&low| low < extent).count() as u64;
            let (tile, bound) = (tile(dim), bounds[dim]);
            let clipped = if bound % tile == 0 { tile } else { bound % tile };
            DimShape {
                tile,
                bound,
                trips: [existing(tile), existing(clipped)],
            }
        });
        let reads =
            |axis, window: Dim, tap: Dim| LineReads::new(axis, &loops[window], tile(window), &loops[tap], tile(tap));
        Bursts {
            rows: reads(rows, Dim::P, Dim::R),
            columns: reads(columns, Dim::Q, Dim::S),
            dims,
        }
    }

    /// The burst of the step whose tile starts at `low`.
    #[inline]
    pub(crate) fn at(&self, low: &DimMap<u64>) -> Burst {
        let extent = DimMap::from_fn(|d| self.dims[d].extent(low[d]));
        let trips = DimMap::from_fn(|d| self.dims[d].trips(low[d]));
        let product = |tensor: Tensor| {
            Dim::ALL
                .iter()
                .map(|&d| if tensor.is_relevant(d) { extent[d] } else { trips[d] })
                .product()
        };
        let inputs = extent[Dim::N]
            * extent[Dim::G]
            * extent[Dim::C]
            * trips[Dim::K]
            * self.rows.at(low[Dim::P], low[Dim::R])
            * self.columns.at(low[Dim::Q], low[Dim::S]);
        Burst {
            trips: trips.0.iter().product(),
            macs: extent.0.iter().product(),
            accesses: TensorMap([product(Tensor::Weights), inputs, product(Tensor::Outputs)]),
        }
    }
}
