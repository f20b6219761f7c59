//! The kernels of the direct family: up to four vectors of 16 filters times a few windows of an output row.

use std::arch::x86_64::*;

/// One tile: windows of an output row times 16·blocks filters, over some channels.
pub(crate) struct TileArgs {
    /// Tap (first row, 0) of window 0 in the first channel; outside the input where that tap is padding.
    pub(crate) input: *const f32,
    /// Filters of the first channel and row.
    pub(crate) filters: *const f32,
    pub(crate) channels: usize,
    /// Channels that are `channel_stride` apart, before the next run of them starts `run_stride` after the last.
    pub(crate) run: usize,
    pub(crate) channel_stride: usize,
    pub(crate) run_stride: usize,
    /// Filter rows that meet the input.
    pub(crate) rows: usize,
    pub(crate) row_stride: usize,
    pub(crate) taps: usize,
    pub(crate) tap_stride: usize,
    /// Elements between neighbouring windows.
    pub(crate) window_stride: usize,
    /// Elements of filters of one channel that belong to rows outside the input.
    pub(crate) skip: usize,
    /// For each tap, a bit for every window whose column is inside the input.
    pub(crate) masks: *const u16,
    /// What to fetch while computing, one line per tap: filters of the next block. May point anywhere.
    pub(crate) filters_ahead: *const f32,
    /// The same for inputs, one line per channel, `ahead_stride` elements apart within a run of channels.
    pub(crate) input_ahead: *const f32,
    pub(crate) ahead_stride: usize,
    /// [block][window][16], blocks `block_stride` apart.
    pub(crate) output: *mut f32,
    pub(crate) block_stride: usize,
    /// Whether to add to the output.
    pub(crate) accumulate: bool,
}

/// A kernel for a number of blocks and windows. Its contract: the filters, inputs (without taps that `masks` exclude) and
/// outputs that the arguments describe exist, and the CPU has AVX-512F.
pub(crate) type TileFn = unsafe fn(&TileArgs);

/// Most windows of a tile with so many blocks of filters: 28 accumulators at most, except for one block.
pub(crate) const MOST_WINDOWS: [usize; 5] = [0, 14, 14, 9, 7];

/// What a kernel is specialised for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// One tap, neighbouring windows in neighbouring elements: pointwise on NCHW.
    Pointwise,
    /// One tap, windows 16 elements apart: pointwise on nChw16c.
    PointwiseBlocked,
    /// Stride 1 on NCHW.
    Unit,
    /// Stride 2 on NCHW.
    Two,
    /// Stride 1 on nChw16c.
    Blocked,
    /// Anything else.
    Any,
}

/// The kernel for `blocks`×16 filters and `windows` windows; `edge` if some tap of some window is outside the input.
pub(crate) fn kernel(access: Access, blocks: usize, windows: usize, edge: bool) -> TileFn {
    match (access, edge) {
        (Access::Pointwise, _) => table::<1, true, false>(blocks, windows),
        (Access::PointwiseBlocked, _) => table::<16, true, false>(blocks, windows),
        (Access::Unit, false) => table::<1, false, false>(blocks, windows),
        (Access::Unit, true) => table::<1, false, true>(blocks, windows),
        (Access::Two, false) => table::<2, false, false>(blocks, windows),
        (Access::Two, true) => table::<2, false, true>(blocks, windows),
        (Access::Blocked, false) => table::<16, false, false>(blocks, windows),
        (Access::Blocked, true) => table::<16, false, true>(blocks, windows),
        (Access::Any, _) => table::<0, false, true>(blocks, windows),
    }
}

fn table<const STEP: usize, const SINGLE: bool, const EDGE: bool>(blocks: usize, windows: usize) -> TileFn {
    macro_rules! pick {
        ($($b:literal: $($w:literal)*;)*) => {
            match (blocks, windows) {
                $($(($b, $w) => tile::<$b, $w, STEP, SINGLE, EDGE>,)*)*
                _ => unreachable!("tiles have 1 to 4 blocks and at most MOST_WINDOWS windows"),
            }
        };
    }
    pick! {
        1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14;
        2: 1 2 3 4 5 6 7 8 9 10 11 12 13 14;
        3: 1 2 3 4 5 6 7 8 9;
        4: 1 2 3 4 5 6 7;
    }
}

/// `B` blocks of filters times `W` windows, `STEP` elements apart (0: as the arguments say). `SINGLE`: one row and one tap.
///
/// # Safety
/// See [`TileFn`].
#[target_feature(enable = "avx512f")]
unsafe fn tile<const B: usize, const W: usize, const STEP: usize, const SINGLE: bool, const EDGE: bool>(
    args: &TileArgs,
) {
    let step = if STEP == 0 { args.window_stride } else { STEP };
    let mut sums = [[_mm512_setzero_ps(); B]; W];
    if args.accumulate {
        for (w, sums) in sums.iter_mut().enumerate() {
            for (b, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the output has W windows of B blocks.
                *sum = unsafe { _mm512_loadu_ps(args.output.add(b * args.block_stride + w * 16)) };
            }
        }
    }
    let mut filters = args.filters;
    let mut run_start = args.input;
    let (mut filters_ahead, mut run_ahead) = (args.filters_ahead, args.input_ahead);
    let mut left = args.channels;
    while left > 0 {
        let count = left.min(args.run);
        let mut plane = run_start;
        let mut ahead = run_ahead;
        for _ in 0..count {
            fetch(ahead);
            ahead = ahead.wrapping_add(args.ahead_stride);
            if SINGLE {
                fetch(filters_ahead);
                filters_ahead = filters_ahead.wrapping_add(16);
                // SAFETY: one tap of W windows in this channel, and B blocks of filters.
                unsafe { tap::<B, W, false>(&mut sums, filters, plane, step, 0) };
                filters = filters.wrapping_add(B * 16);
            } else {
                let mut row = plane;
                for _ in 0..args.rows {
                    let mut column = row;
                    for s in 0..args.taps {
                        let mask = if EDGE {
                            // SAFETY: one mask per tap.
                            unsafe { *args.masks.add(s) }
                        } else {
                            0
                        };
                        // SAFETY: the tap of every window that the mask admits is inside the input.
                        unsafe { tap::<B, W, EDGE>(&mut sums, filters, column, step, mask) };
                        fetch(filters_ahead);
                        filters_ahead = filters_ahead.wrapping_add(16);
                        filters = filters.wrapping_add(B * 16);
                        column = column.wrapping_add(args.tap_stride);
                    }
                    row = row.wrapping_add(args.row_stride);
                }
                filters = filters.wrapping_add(args.skip);
            }
            plane = plane.wrapping_add(args.channel_stride);
        }
        run_start = run_start.wrapping_add(args.run_stride);
        run_ahead = run_ahead.wrapping_add(args.run_stride);
        left -= count;
    }
    for (w, sums) in sums.iter().enumerate() {
        for (b, sum) in sums.iter().enumerate() {
            // SAFETY: the output has W windows of B blocks.
            unsafe { _mm512_storeu_ps(args.output.add(b * args.block_stride + w * 16), *sum) }
        }
    }
}

/// One tap: B vectors of filters times the windows that `mask` admits (all, if not `EDGE`).
///
/// # Safety
/// `filters` has B·16 elements; `column + w·step` is inside the input for every admitted window w.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn tap<const B: usize, const W: usize, const EDGE: bool>(
    sums: &mut [[__m512; B]; W],
    filters: *const f32,
    column: *const f32,
    step: usize,
    mask: u16,
) {
    let mut lanes = [_mm512_setzero_ps(); B];
    for (b, lanes) in lanes.iter_mut().enumerate() {
        // SAFETY: B vectors of filters.
        *lanes = unsafe { _mm512_loadu_ps(filters.add(b * 16)) };
    }
    for (w, sums) in sums.iter_mut().enumerate() {
        if !EDGE || mask >> w & 1 == 1 {
            // SAFETY: the window's tap is inside the input.
            let window = unsafe { _mm512_set1_ps(*column.wrapping_add(w * step)) };
            for (b, sum) in sums.iter_mut().enumerate() {
                *sum = _mm512_fmadd_ps(lanes[b], window, *sum);
            }
        }
    }
}

/// Asks for a line in L2.
#[inline(always)]
fn fetch(address: *const f32) {
    // SAFETY: a prefetch may have any address; it reads nothing that can be observed.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
}
