//! Packing of filters and of input tiles.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::ConvShape;

/// Packs weights {G·K, C, R, S} into tiles [G][⌈K/nf⌉][C·R·S][nf], zeros past the last filter.
pub(crate) fn pack_filters(shape: &ConvShape, weights: &[f32], nf: usize, packed: &mut [f32]) {
    let depth = shape.group_channels() * shape.taps();
    let tiles = shape.group_filters().div_ceil(nf);
    for (index, tile) in packed.chunks_exact_mut(depth * nf).enumerate() {
        let (g, k0) = (index / tiles, index % tiles * nf);
        for lane in 0..nf.min(shape.group_filters() - k0) {
            let filter = &weights[(g * shape.group_filters() + k0 + lane) * depth..][..depth];
            for (row, weight) in filter.iter().enumerate() {
                tile[row * nf + lane] = *weight;
            }
        }
    }
}

/// An input tile to pack.
pub(crate) struct Request<'a> {
    pub(crate) shape: &'a ConvShape,
    /// First channel's plane.
    pub(crate) input: *const f32,
    pub(crate) channels: usize,
    /// First window, in row-major order over the output.
    pub(crate) window: usize,
    /// Windows that exist.
    pub(crate) windows: usize,
    /// Windows of a full tile: the row length of `packed`.
    pub(crate) lanes: usize,
    /// [channels·R·S][lanes].
    pub(crate) packed: *mut f32,
}

/// Windows of a tile that lie in one output row.
#[derive(Clone, Copy)]
struct Segment {
    lane: usize,
    len: usize,
    p: usize,
    q: usize,
}

impl Request<'_> {
    fn segments(&self) -> impl Iterator<Item = Segment> {
        let (_, columns) = self.shape.output();
        let (first, end) = (self.window, self.window + self.windows);
        let mut window = first;
        std::iter::from_fn(move || {
            (window < end).then(|| {
                let (p, q) = (window / columns, window % columns);
                let len = (columns - q).min(end - window);
                let segment = Segment {
                    lane: window - first,
                    len,
                    p,
                    q,
                };
                window += len;
                segment
            })
        })
    }
}

/// Packs a tile: with vectors (shifted registers for stride 1, even lanes for stride 2) when asked to and possible, else
/// element by element.
///
/// # Safety
/// `input` points to `channels` planes of the shape, `packed` to channels·R·S·lanes elements that nobody else uses, the
/// windows exist. With `vectors` the CPU has AVX-512F and `lanes` is 16.
pub(crate) unsafe fn pack_input(request: &Request<'_>, vectors: bool) {
    #[cfg(target_arch = "x86_64")]
    {
        let ConvShape {
            kernel,
            stride,
            dilation,
            ..
        } = *request.shape;
        let reach = (kernel.1 - 1) * dilation.1;
        if vectors && stride.1 == 1 && reach <= 16 {
            // SAFETY: as this function's; the shift stays within two registers.
            return unsafe { shifted(request) };
        }
        if vectors && stride.1 == 2 {
            // SAFETY: as this function's.
            return unsafe { halved(request) };
        }
    }
    let _ = vectors;
    // SAFETY: as this function's.
    unsafe { scalar(request) }
}

/// # Safety
/// As [`pack_input`].
unsafe fn scalar(request: &Request<'_>) {
    let shape = request.shape;
    let (height, width) = (shape.height as isize, shape.width as isize);
    let (top, left) = (shape.padding.top as isize, shape.padding.left as isize);
    let (rows, columns) = shape.kernel;
    for segment in request.segments() {
        for c in 0..request.channels {
            for r in 0..rows {
                let y = (segment.p * shape.stride.0 + r * shape.dilation.0) as isize - top;
                let inside = (0..height).contains(&y);
                for s in 0..columns {
                    let target = request
                        .packed
                        .wrapping_add(((c * rows + r) * columns + s) * request.lanes + segment.lane);
                    for i in 0..segment.len {
                        let x = ((segment.q + i) * shape.stride.1 + s * shape.dilation.1) as isize - left;
                        let value = if inside && (0..width).contains(&x) {
                            let offset = (c * shape.height + y as usize) * shape.width + x as usize;
                            // SAFETY: y and x are within plane c, which the caller gives.
                            unsafe { *request.input.add(offset) }
                        } else {
                            0.0
                        };
                        // SAFETY: the row ((c·R+r)·S+s) and lane + i < lanes lie within the tile.
                        unsafe { *target.add(i) = value }
                    }
                }
            }
        }
    }
}

/// Bits lo..hi of 16, both clamped.
#[cfg(target_arch = "x86_64")]
fn span(lo: isize, hi: isize) -> u16 {
    let (lo, hi) = (lo.clamp(0, 16) as u32, hi.clamp(0, 16) as u32);
    if lo >= hi {
        0
    } else {
        (((1u32 << hi) - 1) & !((1u32 << lo) - 1)) as u16
    }
}

/// Vector-based packing for horizontal stride 1: the columns under a row of 16 windows are loaded once into two registers; each tap
/// is a shift of the pair. Columns outside the input are masked to zero, which is the padding.
///
/// # Safety
/// As [`pack_input`] with `vectors`, and (S−1)·dilation ≤ 16.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn shifted(request: &Request<'_>) {
    let shape = request.shape;
    let (rows, taps) = shape.kernel;
    let width = shape.width as isize;
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for segment in request.segments() {
        let keep = span(segment.lane as isize, (segment.lane + segment.len) as isize);
        // Column of lane 0 for tap 0; lanes outside the segment may point anywhere and are masked.
        let first = segment.q as isize - segment.lane as isize - shape.padding.left as isize;
        let (low, high) = (span(-first, width - first), span(-first - 16, width - first - 16));
        for r in 0..rows {
            let y = (segment.p * shape.stride.0 + r * shape.dilation.0) as isize - shape.padding.top as isize;
            let inside = (0..shape.height as isize).contains(&y);
            for c in 0..request.channels {
                let source = request
                    .input
                    .wrapping_offset((c * shape.height) as isize * width + y * width + first);
                let (low, high) = if inside { (low, high) } else { (0, 0) };
                // SAFETY: the masks admit columns 0..width of row y of plane c only; masked lanes are not read.
                let (a, b) = unsafe {
                    (
                        _mm512_maskz_loadu_ps(low, source),
                        _mm512_maskz_loadu_ps(high, source.wrapping_add(16)),
                    )
                };
                let target = request.packed.wrapping_add((c * rows + r) * taps * 16);
                for s in 0..taps {
                    let shift = _mm512_add_epi32(lanes, _mm512_set1_epi32((s * shape.dilation.1) as i32));
                    // Index 32 would wrap to 0: only lane 15 at a reach of 17 or more, which is excluded.
                    let tap = _mm512_permutex2var_ps(a, shift, b);
                    // SAFETY: row (c·R+r)·S+s of the tile has 16 lanes.
                    unsafe { _mm512_mask_storeu_ps(target.add(s * 16), keep, tap) }
                }
            }
        }
    }
}

/// The same for horizontal stride 2: every tap takes the even lanes of two registers.
///
/// # Safety
/// As [`pack_input`] with `vectors`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn halved(request: &Request<'_>) {
    let shape = request.shape;
    let (rows, taps) = shape.kernel;
    let width = shape.width as isize;
    let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    for segment in request.segments() {
        let keep = span(segment.lane as isize, (segment.lane + segment.len) as isize);
        for s in 0..taps {
            let first = 2 * (segment.q as isize - segment.lane as isize) + (s * shape.dilation.1) as isize
                - shape.padding.left as isize;
            let (low, high) = (span(-first, width - first), span(-first - 16, width - first - 16));
            for r in 0..rows {
                let y = (segment.p * shape.stride.0 + r * shape.dilation.0) as isize - shape.padding.top as isize;
                let (low, high) = if (0..shape.height as isize).contains(&y) {
                    (low, high)
                } else {
                    (0, 0)
                };
                for c in 0..request.channels {
                    let source = request
                        .input
                        .wrapping_offset((c * shape.height) as isize * width + y * width + first);
                    // SAFETY: the masks admit columns 0..width of row y of plane c only; masked lanes are not read.
                    let (a, b) = unsafe {
                        (
                            _mm512_maskz_loadu_ps(low, source),
                            _mm512_maskz_loadu_ps(high, source.wrapping_add(16)),
                        )
                    };
                    let target = request.packed.wrapping_add(((c * rows + r) * taps + s) * 16);
                    // SAFETY: row (c·R+r)·S+s of the tile has 16 lanes.
                    unsafe { _mm512_mask_storeu_ps(target, keep, _mm512_permutex2var_ps(a, even, b)) }
                }
            }
        }
    }
}
