//! From [window][filter] to [filter][window] in registers.

use std::arch::x86_64::*;

/// Writes `windows` rows of 16 filters as `filters` rows of windows, `stride` elements apart.
///
/// # Safety
/// `source` reaches `windows`·16 elements, `target` `filters` rows of `windows` elements; filters ≤ 16; the CPU has
/// AVX-512F.
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn transpose(source: *const f32, windows: usize, target: *mut f32, stride: usize, filters: usize) {
    for window in (0..windows).step_by(16) {
        let count = (windows - window).min(16);
        let mut rows = [_mm512_setzero_ps(); 16];
        for (i, row) in rows.iter_mut().enumerate() {
            if i < count {
                // SAFETY: window + i is below `windows`.
                *row = unsafe { _mm512_loadu_ps(source.add((window + i) * 16)) };
            }
        }
        let columns = square(rows);
        let mask = (0xffff_u32 >> (16 - count)) as u16;
        for (k, column) in columns.iter().enumerate() {
            if k < filters {
                // SAFETY: row k exists, and the mask admits windows that exist.
                unsafe { _mm512_mask_storeu_ps(target.wrapping_add(k * stride + window), mask, *column) }
            }
        }
    }
}

/// The transpose of a 16×16 matrix: pairs, quads, then 128-bit lanes twice.
#[target_feature(enable = "avx512f")]
#[inline]
fn square(r: [__m512; 16]) -> [__m512; 16] {
    let zero = _mm512_setzero_ps();
    let mut quads = [zero; 16];
    for i in 0..4 {
        let (a, b, c, d) = (r[4 * i], r[4 * i + 1], r[4 * i + 2], r[4 * i + 3]);
        let (ab, ab_high) = (
            _mm512_castps_pd(_mm512_unpacklo_ps(a, b)),
            _mm512_castps_pd(_mm512_unpackhi_ps(a, b)),
        );
        let (cd, cd_high) = (
            _mm512_castps_pd(_mm512_unpacklo_ps(c, d)),
            _mm512_castps_pd(_mm512_unpackhi_ps(c, d)),
        );
        // quads[4i + j], 128-bit lane l: rows 4i..4i+4 of column 4l + j.
        quads[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd));
        quads[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd));
        quads[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_high, cd_high));
        quads[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_high, cd_high));
    }
    let mut columns = [zero; 16];
    for j in 0..4 {
        let (a, b, c, d) = (quads[j], quads[4 + j], quads[8 + j], quads[12 + j]);
        // Lanes (0, 2) and (1, 3) of both operands.
        let (ab_even, ab_odd) = (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
        let (cd_even, cd_odd) = (_mm512_shuffle_f32x4::<0x88>(c, d), _mm512_shuffle_f32x4::<0xdd>(c, d));
        columns[j] = _mm512_shuffle_f32x4::<0x88>(ab_even, cd_even);
        columns[8 + j] = _mm512_shuffle_f32x4::<0xdd>(ab_even, cd_even);
        columns[4 + j] = _mm512_shuffle_f32x4::<0x88>(ab_odd, cd_odd);
        columns[12 + j] = _mm512_shuffle_f32x4::<0xdd>(ab_odd, cd_odd);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_window_and_filter_lands_in_its_place() {
        if !crate::Isa::Avx512.available() {
            return;
        }
        for (windows, filters) in [(16, 16), (1, 1), (7, 16), (37, 9)] {
            let source: Vec<f32> = (0..windows * 16).map(|i| i as f32).collect();
            let stride = windows + 3;
            let mut target = vec![-1.0; filters * stride];
            // SAFETY: AVX-512 is available; the buffers have the sizes asked for.
            unsafe { transpose(source.as_ptr(), windows, target.as_mut_ptr(), stride, filters) };
            for (k, row) in target.chunks_exact(stride).enumerate() {
                for (w, value) in row.iter().enumerate() {
                    assert_eq!(*value, if w < windows { (w * 16 + k) as f32 } else { -1.0 });
                }
            }
        }
    }
}
