//! Convolution as a matrix product over copied windows (im2col).

use crate::ConvShape;

/// C = A·B for row-major matrices.
pub trait Gemm {
    /// C (m×n) = A (m×k) · B (k×n); sizes as (m, n, k).
    fn sgemm(&self, sizes: (usize, usize, usize), a: &[f32], b: &[f32], c: &mut [f32]);
}

/// The pure-Rust `matrixmultiply`, one thread.
#[derive(Debug, Clone, Copy)]
pub struct MatrixMultiply;

impl Gemm for MatrixMultiply {
    fn sgemm(&self, (m, n, k): (usize, usize, usize), a: &[f32], b: &[f32], c: &mut [f32]) {
        assert!(
            a.len() >= m * k && b.len() >= k * n && c.len() >= m * n,
            "matrices of the stated sizes"
        );
        let (n, k) = (n as isize, k as isize);
        // SAFETY: the matrices have the sizes that are passed, rows are contiguous, and C is not aliased.
        unsafe {
            matrixmultiply::sgemm(
                m,
                k as usize,
                n as usize,
                1.0,
                a.as_ptr(),
                k,
                1,
                b.as_ptr(),
                n,
                1,
                0.0,
                c.as_mut_ptr(),
                n,
                1,
            )
        }
    }
}

/// A convolution by im2col and a matrix product. Pointwise convolutions of stride 1 are multiplied without a copy.
#[derive(Debug)]
pub struct Im2col {
    shape: ConvShape,
    columns: Vec<f32>,
}

impl Im2col {
    /// Allocates the copy of one group's windows.
    #[must_use]
    pub fn new(shape: ConvShape) -> Self {
        let len = if shape.is_pointwise() {
            0
        } else {
            shape.group_channels() * shape.taps() * shape.windows()
        };
        Im2col {
            shape,
            columns: vec![0.0; len],
        }
    }

    /// Convolves NCHW `input` with `weights` {G·K, C, R, S} into NCHW `output`.
    ///
    /// # Panics
    /// On slices of the wrong length.
    pub fn run(&mut self, gemm: &dyn Gemm, input: &[f32], weights: &[f32], output: &mut [f32]) {
        let shape = self.shape;
        let depth = shape.group_channels() * shape.taps();
        let (k, windows) = (shape.group_filters(), shape.windows());
        let group_input = shape.group_channels() * shape.height * shape.width;
        for (index, output) in output.chunks_exact_mut(k * windows).enumerate() {
            let input = &input[index * group_input..][..group_input];
            let weights = &weights[index % shape.groups * k * depth..][..k * depth];
            if shape.is_pointwise() {
                gemm.sgemm((k, windows, depth), weights, input, output);
            } else {
                self.copy(input);
                gemm.sgemm((k, windows, depth), weights, &self.columns, output);
            }
        }
    }

    /// Row (c, r, s) of the columns is what tap (r, s) sees of channel c, window by window.
    fn copy(&mut self, input: &[f32]) {
        let shape = &self.shape;
        let (p, q) = shape.output();
        let (rows, taps) = shape.kernel;
        for (index, target) in self.columns.chunks_exact_mut(p * q).enumerate() {
            let (c, r, s) = (index / (rows * taps), index / taps % rows, index % taps);
            let image = &input[c * shape.height * shape.width..][..shape.height * shape.width];
            // Output columns whose input column is inside: lo..hi.
            let offset = s * shape.dilation.1;
            let lo = shape
                .padding
                .left
                .saturating_sub(offset)
                .div_ceil(shape.stride.1)
                .min(q);
            let hi = (shape.width + shape.padding.left)
                .saturating_sub(offset)
                .div_ceil(shape.stride.1)
                .clamp(lo, q);
            for (y, target) in target.chunks_exact_mut(q).enumerate() {
                let row = (y * shape.stride.0 + r * shape.dilation.0)
                    .checked_sub(shape.padding.top)
                    .filter(|row| *row < shape.height);
                let Some(row) = row.filter(|_| lo < hi) else {
                    target.fill(0.0);
                    continue;
                };
                target[..lo].fill(0.0);
                target[hi..].fill(0.0);
                let source =
                    &image[row * shape.width..][..shape.width][lo * shape.stride.1 + offset - shape.padding.left..];
                if shape.stride.1 == 1 {
                    target[lo..hi].copy_from_slice(&source[..hi - lo]);
                } else {
                    for (target, source) in target[lo..hi].iter_mut().zip(source.iter().step_by(shape.stride.1)) {
                        *target = *source;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{error_bound, reference};

    #[test]
    fn im2col_is_the_convolution() {
        let base = ConvShape::new(6, 9, 11, 10, 3);
        for shape in [
            base,
            base.with_padding(1),
            base.with_padding(2).with_stride(2),
            base.with_padding(3).with_dilation(2).with_groups(2),
            ConvShape::new(6, 9, 11, 10, 1),
            ConvShape::new(6, 9, 11, 10, 1).with_stride(3).with_padding(1),
        ] {
            let input: Vec<f32> = (0..6 * 99).map(|i| (i * 7 % 13) as f32 - 6.0).collect();
            let weights: Vec<f32> = (0..shape.weights_len()).map(|i| (i * 5 % 11) as f32 - 5.0).collect();
            let expected = reference(&shape, &input, &weights).unwrap();
            let largest = expected.iter().fold(0.0f64, |most, x| most.max(x.abs()));
            let mut output = vec![f32::NAN; expected.len()];
            Im2col::new(shape).run(&MatrixMultiply, &input, &weights, &mut output);
            for (found, expected) in output.iter().zip(&expected) {
                assert!((f64::from(*found) - expected).abs() <= error_bound(&shape, largest));
            }
        }
    }
}
