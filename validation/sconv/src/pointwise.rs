//! Pointwise convolution with windows in lanes.
//!
//! In NCHW the windows of a channel are contiguous, so a vector of 16 windows is loaded where it lies, filters are
//! broadcast, and 16 windows of a filter are stored as they are: no packing and no transposition. A panel of 48 windows
//! times a block of channels stays in L1 while all filters stream past it, eight at a time.

use std::arch::x86_64::*;

use crate::{
    Caches, ConvShape,
    plan::{Clock, Executor, Job},
    scratch::Aligned,
};

/// Filters of a tile.
const FILTERS: usize = 8;
/// Vectors of windows of a tile.
const VECTORS: usize = 3;
/// Windows of a panel.
const PANEL: usize = 16 * VECTORS;

#[derive(Debug, Clone)]
pub(crate) struct Pointwise {
    shape: ConvShape,
    /// Channels of a block.
    channels: usize,
}

impl Pointwise {
    pub(crate) fn new(shape: ConvShape, caches: &Caches) -> Self {
        // Half of L1 for the panel; blocks of equal size.
        let most = (caches.l1 / 2 / (PANEL * size_of::<f32>())).max(1);
        let blocks = shape.group_channels().div_ceil(most);
        Pointwise {
            shape,
            channels: shape.group_channels().div_ceil(blocks),
        }
    }

    fn filter_tiles(&self) -> usize {
        self.shape.group_filters().div_ceil(FILTERS)
    }
}

impl Executor for Pointwise {
    /// Panels of windows.
    fn units(&self) -> usize {
        self.shape.windows().div_ceil(PANEL)
    }

    fn filters_len(&self) -> usize {
        self.shape.groups * self.filter_tiles() * self.shape.group_channels() * FILTERS
    }

    /// [G][⌈K/8⌉][C][8].
    fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        crate::cso::pack_filters(&self.shape, weights, FILTERS, packed);
    }

    fn scratch_len(&self) -> usize {
        0
    }

    unsafe fn run(&self, job: &Job, _: &mut Aligned, _: &mut Clock) {
        let (windows, all) = (self.shape.windows(), self.shape.group_channels());
        for panel in job.units.clone() {
            let window = panel * PANEL;
            let count = PANEL.min(windows - window);
            for c0 in (0..all).step_by(self.channels) {
                for tile in 0..self.filter_tiles() {
                    let k = tile * FILTERS;
                    let args = Args {
                        channels: self.channels.min(all - c0),
                        input: job.input.wrapping_add(c0 * windows + window),
                        filters: job.filters.wrapping_add((tile * all + c0) * FILTERS),
                        output: job.output.wrapping_add(k * windows + window),
                        stride: windows,
                        filter_count: FILTERS.min(self.shape.group_filters() - k),
                        last: (0xffff_u32 >> ((16 - count % 16) % 16)) as u16,
                        accumulate: c0 > 0,
                    };
                    // SAFETY: the panel's windows and the tile's filters are clipped at the shape's bounds; the plan
                    // requires AVX-512.
                    unsafe {
                        match count.div_ceil(16) {
                            1 => multiply::<1>(&args),
                            2 => multiply::<2>(&args),
                            _ => multiply::<VECTORS>(&args),
                        }
                    }
                }
            }
        }
    }
}

struct Args {
    channels: usize,
    input: *const f32,
    filters: *const f32,
    output: *mut f32,
    /// Elements between channels of the input and between filters of the output: P·Q.
    stride: usize,
    filter_count: usize,
    /// Windows of the last vector that exist.
    last: u16,
    accumulate: bool,
}

/// `V` vectors of windows times eight filters.
///
/// # Safety
/// The pointers reach `channels` rows of V vectors (the last under its mask) of inputs, `channels` rows of eight filters and
/// `filter_count` rows of outputs; the CPU has AVX-512F.
#[target_feature(enable = "avx512f")]
unsafe fn multiply<const V: usize>(args: &Args) {
    let mut masks = [0xffff_u16; V];
    masks[V - 1] = args.last;
    let mut sums = [[_mm512_setzero_ps(); V]; FILTERS];
    if args.accumulate {
        for (f, sums) in sums.iter_mut().enumerate() {
            if f < args.filter_count {
                let row = args.output.wrapping_add(f * args.stride);
                for (v, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: the row exists, and the mask admits windows that exist.
                    *sum = unsafe { _mm512_maskz_loadu_ps(masks[v], row.wrapping_add(v * 16)) };
                }
            }
        }
    }
    let (mut row, mut filters) = (args.input, args.filters);
    for _ in 0..args.channels {
        let mut inputs = [_mm512_setzero_ps(); V];
        for (v, input) in inputs.iter_mut().enumerate() {
            // SAFETY: the row exists, and the mask admits windows that exist.
            *input = unsafe { _mm512_maskz_loadu_ps(masks[v], row.wrapping_add(v * 16)) };
        }
        for (f, sums) in sums.iter_mut().enumerate() {
            // SAFETY: filter tiles are 8 wide.
            let weight = unsafe { _mm512_set1_ps(*filters.add(f)) };
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = _mm512_fmadd_ps(inputs[v], weight, *sum);
            }
        }
        row = row.wrapping_add(args.stride);
        filters = filters.wrapping_add(FILTERS);
    }
    for (f, sums) in sums.iter().enumerate() {
        if f < args.filter_count {
            let row = args.output.wrapping_add(f * args.stride);
            for (v, sum) in sums.iter().enumerate() {
                // SAFETY: the row exists, and the mask admits windows that exist.
                unsafe { _mm512_mask_storeu_ps(row.wrapping_add(v * 16), masks[v], *sum) }
            }
        }
    }
}
