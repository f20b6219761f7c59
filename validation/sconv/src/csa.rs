//! Convolution slicing analysis (CSA): tile sizes and the stationary tensor, from the shape and the caches alone.
//!
//! After Ferrari et al., "Advancing Direct Convolution Using Convolution Slicing Optimization and ISA Extensions" (TACO
//! 2023). An input tile is `windows` output positions × the taps of Nc channels, a filter tile is `filters` filters × the
//! same. One input tile, one filter tile and their output tile share L1; K2 tiles of the streamed tensor share L2 with
//! one of the stationary tensor; K3 tiles of the stationary tensor share L3 with them.

use serde::{Deserialize, Serialize};

use crate::{Caches, ConvShape};

/// Bytes of an element.
const ELEMENT: usize = size_of::<f32>();

/// Output tile of one call of a micro-kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MicroTile {
    /// Output positions, Nwin.
    pub windows: usize,
    /// Filters, Nf.
    pub filters: usize,
}

/// Which tile stays in L1 while tiles of the other tensor stream past it from L2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Stationary {
    /// An input tile stays (IS).
    Input,
    /// A filter tile stays (WS).
    Weight,
}

/// Shares of L1, L2 and L3 that tiles may fill (α, β, γ of the paper).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fill {
    /// Of L1.
    pub alpha: f64,
    /// Of L2.
    pub beta: f64,
    /// Of L3.
    pub gamma: f64,
}

impl Default for Fill {
    fn default() -> Self {
        Fill::all(0.9)
    }
}

impl Fill {
    /// The same share of all three.
    #[must_use]
    pub fn all(share: f64) -> Self {
        Fill {
            alpha: share,
            beta: share,
            gamma: share,
        }
    }
}

/// Tile sizes for one stationary tensor, with their cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tiling {
    /// The tensor whose tile stays in L1.
    pub stationary: Stationary,
    /// Channels of a tile.
    pub nc: usize,
    /// Tiles of the streamed tensor that stay in L2.
    pub k2: usize,
    /// Tiles of the stationary tensor that stay in L3.
    pub k3: usize,
    /// Accesses served by L1, L2, L3 and memory; lines beyond L1.
    pub accesses: [f64; 4],
    /// Accesses × latency, cycles: only good for comparing two tilings.
    pub cost: f64,
}

/// What the analysis found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// The micro-kernel's tile that was assumed.
    pub micro: MicroTile,
    /// Best tiling with a stationary input tile.
    pub input: Tiling,
    /// Best tiling with a stationary filter tile.
    pub weight: Tiling,
}

impl Analysis {
    /// The cheaper of the two; weight-stationary on a tie.
    #[must_use]
    pub fn best(&self) -> Tiling {
        if self.input.cost < self.weight.cost {
            self.input
        } else {
            self.weight
        }
    }

    /// The tiling with this stationary tensor.
    #[must_use]
    pub fn with(&self, stationary: Stationary) -> Tiling {
        match stationary {
            Stationary::Input => self.input,
            Stationary::Weight => self.weight,
        }
    }
}

/// Tiles `shape` (one group of it) for `micro` on `caches`.
///
/// ```
/// use cyclonest_sconv::{csa, Caches, ConvShape, Fill, MicroTile};
/// let shape = ConvShape::new(256, 14, 14, 256, 3).with_padding(1);
/// let found = csa(&shape, MicroTile { windows: 16, filters: 24 }, &Caches::default(), Fill::default());
/// assert_eq!(found.best().nc, 16); // 9·16·(16 + 24)·4 + 16·24·4 = 24,576 bytes of 32 KiB; 32 channels would not fit
/// ```
#[must_use]
pub fn csa(shape: &ConvShape, micro: MicroTile, caches: &Caches, fill: Fill) -> Analysis {
    let output = micro.windows * micro.filters * ELEMENT;
    let input_tile = |nc: usize| micro.windows * shape.taps() * nc * ELEMENT;
    let filter_tile = |nc: usize| micro.filters * shape.taps() * nc * ELEMENT;
    let share = |part: f64, of: usize| (part * of as f64) as usize;
    let l1 = share(fill.alpha, caches.l1);
    let nc = halve(shape.group_channels(), |nc| {
        input_tile(nc) + filter_tile(nc) + output <= l1
    });
    let tiles = Tiles {
        input: input_tile(nc),
        filter: filter_tile(nc),
        output,
        inputs: shape.windows().div_ceil(micro.windows),
        filters: shape.group_filters().div_ceil(micro.filters),
        channels: shape.group_channels().div_ceil(nc),
    };
    let limits = [share(fill.beta, caches.l2), share(fill.gamma, caches.l3)];
    let input = tiles.tiling(Stationary::Input, nc, limits, shape, caches);
    let weight = tiles.tiling(Stationary::Weight, nc, limits, shape, caches);
    Analysis { micro, input, weight }
}

/// Bytes of the three tiles, and how many tiles there are.
struct Tiles {
    input: usize,
    filter: usize,
    output: usize,
    inputs: usize,
    filters: usize,
    channels: usize,
}

impl Tiles {
    fn tiling(
        &self,
        stationary: Stationary,
        nc: usize,
        [l2, l3]: [usize; 2],
        shape: &ConvShape,
        caches: &Caches,
    ) -> Tiling {
        // "stays" is the stationary tensor's tile, "streams" the other's.
        let (stays, stay_count, streams, stream_count) = match stationary {
            Stationary::Input => (self.input, self.inputs, self.filter, self.filters),
            Stationary::Weight => (self.filter, self.filters, self.input, self.inputs),
        };
        let k2 = halve(stream_count, |k2| stays + k2 * (streams + self.output) <= l2);
        let k3 = halve(stay_count, |k3| k3 * stays + k2 * streams + k2 * k3 * self.output <= l3);

        let line = caches.line as f64;
        let lines = |count: usize, bytes: usize| count as f64 * bytes as f64 / line;
        let (all_stay, all_stream) = (lines(stay_count, stays), lines(stream_count, streams));
        let channels = self.channels as f64;
        let stream_blocks = stream_count.div_ceil(k2) as f64 - 1.0;
        let stay_blocks = stay_count.div_ceil(k3) as f64 - 1.0;
        let mut memory =
            channels * (all_stay + all_stream) + channels * stream_blocks.min(1.0) * stay_blocks * all_stream;
        let mut third = channels * stream_blocks * all_stay;
        let mut second = channels * (stay_count as f64 - 1.0) * all_stream;
        // Outputs come back once per further channel tile; all of the slice lies between two visits.
        let outputs = shape.group_filters() * shape.windows() * ELEMENT;
        let reloads = (channels - 1.0) * outputs as f64 / line;
        let distance = outputs + self.inputs * self.input + self.filters * self.filter;
        if distance > caches.l3 {
            memory += reloads;
        } else if distance > caches.l2 {
            third += reloads;
        } else if distance > caches.l1 {
            second += reloads;
        }
        let macs = shape.macs() as f64 / (shape.batch * shape.groups) as f64;
        let first = (2.0 * macs - memory - third - second).max(0.0);
        let accesses = [first, second, third, memory];
        let cost = accesses
            .iter()
            .zip(caches.latency)
            .map(|(count, latency)| count * latency)
            .sum();
        Tiling {
            stationary,
            nc,
            k2,
            k3,
            accesses,
            cost,
        }
    }
}

/// `start` halved (rounding up) until it fits, at least 1.
fn halve(start: usize, fits: impl Fn(usize) -> bool) -> usize {
    let mut size = start;
    while size > 1 && !fits(size) {
        size = size.div_ceil(2);
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86: MicroTile = MicroTile {
        windows: 16,
        filters: 24,
    };

    fn resnet() -> ConvShape {
        ConvShape::new(256, 14, 14, 256, 3).with_padding(1)
    }

    #[test]
    fn tiles_fit_their_caches() {
        let caches = Caches::default();
        for shape in [
            resnet(),
            ConvShape::new(512, 28, 28, 512, 3).with_padding(1),
            ConvShape::new(2048, 7, 7, 512, 1),
        ] {
            let found = csa(&shape, X86, &caches, Fill::default());
            let (input, filter, output) = (
                16 * shape.taps() * found.input.nc * 4,
                24 * shape.taps() * found.input.nc * 4,
                16 * 24 * 4,
            );
            assert!((input + filter + output) as f64 <= 0.9 * caches.l1 as f64);
            let Tiling { k2, k3, .. } = found.weight;
            assert!((filter + k2 * (input + output)) as f64 <= 0.9 * caches.l2 as f64);
            assert!((k3 * filter + k2 * input + k2 * k3 * output) as f64 <= 0.9 * caches.l3 as f64);
            let Tiling { k2, k3, .. } = found.input;
            assert!((input + k2 * (filter + output)) as f64 <= 0.9 * caches.l2 as f64);
            assert!((k3 * input + k2 * filter + k2 * k3 * output) as f64 <= 0.9 * caches.l3 as f64);
        }
    }

    #[test]
    fn costs_by_hand() {
        // Nc 16: IN 9,216 B, FS 13,824 B, 13 input tiles, 11 filter tiles, 16 channel tiles; everything fits L2's share
        // for neither tensor to be split (K2·(tile + 1,536) ≤ 943,718), so no further block is counted.
        let found = csa(&resnet(), X86, &Caches::default(), Fill::default());
        let (input, filters) = (13.0 * 9216.0 / 64.0, 11.0 * 13824.0 / 64.0);
        assert_eq!(
            (found.weight.k2, found.weight.k3, found.input.k2, found.input.k3),
            (13, 11, 11, 13)
        );
        let reloads = 15.0 * (256.0 * 196.0 * 4.0) / 64.0;
        assert_eq!(found.weight.accesses[3], 16.0 * (input + filters));
        assert_eq!(found.weight.accesses[2], 0.0);
        assert_eq!(found.weight.accesses[1], 16.0 * 10.0 * input + reloads);
        assert_eq!(found.input.accesses[1], 16.0 * 12.0 * filters + reloads);
        assert_eq!(found.best().stationary, Stationary::Weight);
    }

    #[test]
    fn a_wide_kernel_in_filters_streams_the_inputs() {
        // The 16×24 kernel has the smaller input tile, so streaming inputs is cheaper; an 8×24 POWER-like kernel with
        // more windows than filters turns that round.
        let wide = csa(
            &resnet(),
            MicroTile {
                windows: 16,
                filters: 8,
            },
            &Caches::default(),
            Fill::default(),
        );
        assert_eq!(wide.best().stationary, Stationary::Input);
    }

    #[test]
    fn nothing_fits_a_cache_of_one_byte_and_the_tiles_are_still_positive() {
        let caches = Caches {
            l1: 1,
            l2: 1,
            l3: 1,
            ..Caches::default()
        };
        let found = csa(&resnet(), X86, &caches, Fill::default());
        assert_eq!((found.weight.nc, found.weight.k2, found.weight.k3), (1, 1, 1));
    }
}
