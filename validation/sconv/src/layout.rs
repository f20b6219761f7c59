//! How activations lie in memory.

use serde::{Deserialize, Serialize};

use crate::ConvShape;

/// Channels of one block of [`Layout::Nchw16c`].
pub const BLOCK: usize = 16;

/// Layout of an activation tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Layout {
    /// Image, channel, row, column.
    #[default]
    Nchw,
    /// Image, block of 16 channels, row, column, channel in the block. Channels past the last are padding: ignored in
    /// inputs, written as zero in outputs. One group only.
    Nchw16c,
}

impl Layout {
    /// Elements of a tensor with `channels` channels of `pixels` elements per image.
    #[must_use]
    pub fn len(self, batch: usize, channels: usize, pixels: usize) -> usize {
        match self {
            Layout::Nchw => batch * channels * pixels,
            Layout::Nchw16c => batch * channels.next_multiple_of(BLOCK) * pixels,
        }
    }

    /// Elements of the input of `shape` in this layout.
    #[must_use]
    pub fn input_len(self, shape: &ConvShape) -> usize {
        self.len(shape.batch, shape.channels, shape.height * shape.width)
    }

    /// Elements of the output of `shape` in this layout.
    #[must_use]
    pub fn output_len(self, shape: &ConvShape) -> usize {
        self.len(shape.batch, shape.filters, shape.windows())
    }
}

/// `nchw` with `channels` channels of `pixels` elements, as [`Layout::Nchw16c`].
///
/// # Panics
/// When the length is no multiple of `channels`·`pixels`.
#[must_use]
pub fn to_blocked(nchw: &[f32], channels: usize, pixels: usize) -> Vec<f32> {
    assert_eq!(nchw.len() % (channels * pixels), 0, "whole images");
    let batch = nchw.len() / (channels * pixels);
    let padded = channels.next_multiple_of(BLOCK);
    let mut blocked = vec![0.0; batch * padded * pixels];
    for (row, values) in nchw.chunks_exact(pixels).enumerate() {
        let (n, c) = (row / channels, row % channels);
        let base = (n * padded + c / BLOCK * BLOCK) * pixels + c % BLOCK;
        for (x, value) in values.iter().enumerate() {
            blocked[base + x * BLOCK] = *value;
        }
    }
    blocked
}

/// The inverse of [`to_blocked`].
///
/// # Panics
/// When the length is no multiple of the padded channels times `pixels`.
#[must_use]
pub fn from_blocked(blocked: &[f32], channels: usize, pixels: usize) -> Vec<f32> {
    let padded = channels.next_multiple_of(BLOCK);
    assert_eq!(blocked.len() % (padded * pixels), 0, "whole images");
    let batch = blocked.len() / (padded * pixels);
    let mut nchw = vec![0.0; batch * channels * pixels];
    for (row, values) in nchw.chunks_exact_mut(pixels).enumerate() {
        let (n, c) = (row / channels, row % channels);
        let base = (n * padded + c / BLOCK * BLOCK) * pixels + c % BLOCK;
        for (x, value) in values.iter_mut().enumerate() {
            *value = blocked[base + x * BLOCK];
        }
    }
    nchw
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocking_and_back_is_the_identity() {
        let nchw: Vec<f32> = (0..2 * 19 * 6).map(|i| i as f32).collect();
        let blocked = to_blocked(&nchw, 19, 6);
        assert_eq!(blocked.len(), 2 * 32 * 6);
        assert_eq!(blocked[16 * 2 + 3], nchw[3 * 6 + 2]);
        assert_eq!(from_blocked(&blocked, 19, 6), nchw);
    }
}
