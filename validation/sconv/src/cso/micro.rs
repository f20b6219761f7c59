//! Micro-kernels: an input tile times a filter tile.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::Isa;

/// What a micro-kernel multiplies.
pub(crate) struct MicroArgs {
    /// Taps times channels: the length of the sums.
    pub(crate) depth: usize,
    /// [depth][windows], rows `input_stride` apart.
    pub(crate) input: *const f32,
    pub(crate) input_stride: usize,
    /// [depth][Nf].
    pub(crate) filters: *const f32,
    /// [filter][window], rows `output_stride` apart.
    pub(crate) output: *mut f32,
    pub(crate) output_stride: usize,
    /// Windows that exist, at most Nwin.
    pub(crate) windows: usize,
    /// Filters that exist, at most Nf.
    pub(crate) filter_count: usize,
    /// Whether to add to the output.
    pub(crate) accumulate: bool,
}

/// A micro-kernel. Its contract: the pointers of the arguments reach `depth` rows of `windows` inputs, `depth` rows of Nf
/// filters and `filter_count` rows of `windows` outputs; the CPU has its instructions.
pub(crate) type MicroFn = unsafe fn(&MicroArgs);

/// The micro-kernel of an instruction set; its tile is [`super::micro_tile`].
pub(crate) fn kernel(isa: Isa) -> MicroFn {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2,
        _ => portable,
    }
}

/// 8 windows × 4 filters in plain Rust.
///
/// # Safety
/// See [`MicroFn`].
unsafe fn portable(args: &MicroArgs) {
    let mut sums = [[0.0f32; 8]; 4];
    let mut inputs = [0.0f32; 8];
    for row in 0..args.depth {
        for (lane, input) in inputs.iter_mut().enumerate().take(args.windows) {
            // SAFETY: lane < windows of an existing row.
            *input = unsafe { *args.input.add(row * args.input_stride + lane) };
        }
        for (f, sums) in sums.iter_mut().enumerate() {
            // SAFETY: filter tiles are 4 wide.
            let weight = unsafe { *args.filters.add(row * 4 + f) };
            for (sum, input) in sums.iter_mut().zip(&inputs) {
                *sum += weight * input;
            }
        }
    }
    for (f, sums) in sums.iter().enumerate().take(args.filter_count) {
        for (lane, sum) in sums.iter().enumerate().take(args.windows) {
            // SAFETY: f < filter_count and lane < windows.
            let output = unsafe { &mut *args.output.add(f * args.output_stride + lane) };
            *output = if args.accumulate { *output + sum } else { *sum };
        }
    }
}

/// 16 windows × 6 filters: 12 accumulators of 8 lanes.
///
/// # Safety
/// See [`MicroFn`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(args: &MicroArgs) {
    let full = args.windows == 16;
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let windows = args.windows as i32;
    let masks = [
        _mm256_cmpgt_epi32(_mm256_set1_epi32(windows), lanes),
        _mm256_cmpgt_epi32(_mm256_set1_epi32(windows - 8), lanes),
    ];
    let mut sums = [[_mm256_setzero_ps(); 2]; 6];
    for row in 0..args.depth {
        let source = args.input.wrapping_add(row * args.input_stride);
        let inputs = if full {
            // SAFETY: the row has 16 windows.
            unsafe { [_mm256_loadu_ps(source), _mm256_loadu_ps(source.add(8))] }
        } else {
            // SAFETY: the masks admit `windows` lanes; masked lanes are not read.
            unsafe {
                [
                    _mm256_maskload_ps(source, masks[0]),
                    _mm256_maskload_ps(source.wrapping_add(8), masks[1]),
                ]
            }
        };
        for (f, sums) in sums.iter_mut().enumerate() {
            // SAFETY: filter tiles are 6 wide.
            let weight = unsafe { _mm256_broadcast_ss(&*args.filters.add(row * 6 + f)) };
            sums[0] = _mm256_fmadd_ps(weight, inputs[0], sums[0]);
            sums[1] = _mm256_fmadd_ps(weight, inputs[1], sums[1]);
        }
    }
    for (f, sums) in sums.iter().enumerate().take(args.filter_count) {
        for (half, mask) in masks.iter().enumerate() {
            let target = args.output.wrapping_add(f * args.output_stride + half * 8);
            // SAFETY: the masks admit `windows` lanes of a row that exists; masked lanes are neither read nor written.
            unsafe {
                let before = if args.accumulate {
                    _mm256_maskload_ps(target, *mask)
                } else {
                    _mm256_setzero_ps()
                };
                _mm256_maskstore_ps(target, *mask, _mm256_add_ps(before, sums[half]));
            }
        }
    }
}

/// 16 windows × 24 filters as in the paper: 24 accumulators, one input register, broadcast filters.
///
/// # Safety
/// See [`MicroFn`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn avx512(args: &MicroArgs) {
    // SAFETY: as this function's.
    unsafe {
        match args.filter_count.div_ceil(8) {
            1 => avx512_columns::<8>(args),
            2 => avx512_columns::<16>(args),
            _ => avx512_columns::<24>(args),
        }
    }
}

/// The first `COLUMNS` filters of the tile.
///
/// # Safety
/// See [`MicroFn`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn avx512_columns<const COLUMNS: usize>(args: &MicroArgs) {
    let mask = (0xffff_u32 >> (16 - args.windows)) as u16;
    let mut sums = [_mm512_setzero_ps(); COLUMNS];
    let (mut source, mut filters) = (args.input, args.filters);
    for _ in 0..args.depth {
        // SAFETY: the mask admits the row's windows; masked lanes are not read.
        let inputs = unsafe { _mm512_maskz_loadu_ps(mask, source) };
        for (f, sum) in sums.iter_mut().enumerate() {
            // SAFETY: filter tiles are 24 wide.
            let weight = unsafe { _mm512_set1_ps(*filters.add(f)) };
            *sum = _mm512_fmadd_ps(inputs, weight, *sum);
        }
        source = source.wrapping_add(args.input_stride);
        filters = filters.wrapping_add(24);
    }
    for (f, sum) in sums.iter().enumerate() {
        if f < args.filter_count {
            let target = args.output.wrapping_add(f * args.output_stride);
            // SAFETY: the mask admits the windows of a row that exists; masked lanes are neither read nor written.
            unsafe {
                let before = if args.accumulate {
                    _mm512_maskz_loadu_ps(mask, target)
                } else {
                    _mm512_setzero_ps()
                };
                _mm512_mask_storeu_ps(target, mask, _mm512_add_ps(before, *sum));
            }
        }
    }
}
