//! The convolution by its definition, in double precision.

use crate::{ConvShape, Error};

/// Output (NCHW) of `shape` for `input` (NCHW) and `weights` {G·K, C, R, S}, accumulated in f64. Slow and obvious: for tests.
///
/// # Errors
/// An invalid shape, or a slice of the wrong length.
pub fn reference(shape: &ConvShape, input: &[f32], weights: &[f32]) -> Result<Vec<f64>, Error> {
    shape.check()?;
    let (height, width) = (shape.height, shape.width);
    let input_len = shape.batch * shape.channels * height * width;
    for (what, found, expected) in [
        ("input", input.len(), input_len),
        ("weights", weights.len(), shape.weights_len()),
    ] {
        if found != expected {
            return Err(Error::Length { what, found, expected });
        }
    }
    let (p, q) = shape.output();
    let (c_per, k_per) = (shape.group_channels(), shape.group_filters());
    let mut output = vec![0.0f64; shape.batch * shape.filters * p * q];
    for (plane, out) in output.chunks_exact_mut(p * q).enumerate() {
        let (n, k) = (plane / shape.filters, plane % shape.filters);
        let g = k / k_per;
        for c in 0..c_per {
            let image = &input[(n * shape.channels + g * c_per + c) * height * width..][..height * width];
            for r in 0..shape.kernel.0 {
                for s in 0..shape.kernel.1 {
                    let weight = f64::from(weights[((k * c_per + c) * shape.kernel.0 + r) * shape.kernel.1 + s]);
                    for y in 0..p {
                        let Some(row) = (y * shape.stride.0 + r * shape.dilation.0)
                            .checked_sub(shape.padding.top)
                            .filter(|row| *row < height)
                        else {
                            continue;
                        };
                        for x in 0..q {
                            let column = (x * shape.stride.1 + s * shape.dilation.1).checked_sub(shape.padding.left);
                            if let Some(column) = column.filter(|column| *column < width) {
                                out[y * q + x] += weight * f64::from(image[row * width + column]);
                            }
                        }
                    }
                }
            }
        }
    }
    Ok(output)
}

/// The error that rounding may leave in an output computed in f32 by any order of summation that keeps partial sums of
/// normal size: 4·√(C·R·S)·2⁻²⁴ of the largest output.
#[must_use]
pub fn error_bound(shape: &ConvShape, largest: f64) -> f64 {
    4.0 * ((shape.group_channels() * shape.taps()) as f64).sqrt() * 2f64.powi(-24) * largest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_padded_box_filter_counts_its_neighbours() {
        let shape = ConvShape::new(1, 3, 3, 1, 3).with_padding(1);
        let output = reference(&shape, &[1.0; 9], &[1.0; 9]).unwrap();
        assert_eq!(output, [4.0, 6.0, 4.0, 6.0, 9.0, 6.0, 4.0, 6.0, 4.0]);
    }

    #[test]
    fn groups_see_their_own_channels() {
        let shape = ConvShape::new(2, 1, 1, 2, 1).with_groups(2);
        assert_eq!(reference(&shape, &[2.0, 3.0], &[5.0, 7.0]).unwrap(), [10.0, 21.0]);
    }
}
