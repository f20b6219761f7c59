//! The shape of a convolution.

use serde::{Deserialize, Serialize};

use crate::Error;

/// Zeros around the input, in rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Padding {
    /// Rows above.
    pub top: usize,
    /// Rows below.
    pub bottom: usize,
    /// Columns left.
    pub left: usize,
    /// Columns right.
    pub right: usize,
}

impl Padding {
    /// The same padding on all four sides.
    #[must_use]
    pub fn all(pad: usize) -> Self {
        Padding {
            top: pad,
            bottom: pad,
            left: pad,
            right: pad,
        }
    }
}

/// A 2-D convolution: sizes in elements. Pairs are (rows, columns).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ConvShape {
    /// Images, N.
    pub batch: usize,
    /// Groups, G: filter group g sees channel group g only.
    pub groups: usize,
    /// Input channels of all groups, G·C.
    pub channels: usize,
    /// Filters of all groups, G·K.
    pub filters: usize,
    /// Input rows.
    pub height: usize,
    /// Input columns.
    pub width: usize,
    /// Filter taps (R, S).
    pub kernel: (usize, usize),
    /// Steps of the window.
    pub stride: (usize, usize),
    /// Distance between neighbouring taps.
    pub dilation: (usize, usize),
    /// Zeros around the input.
    pub padding: Padding,
}

impl ConvShape {
    /// One image, one group, `channels`×`height`×`width` in, `filters` square kernels of `kernel` taps a side, stride 1, no padding.
    #[must_use]
    pub fn new(channels: usize, height: usize, width: usize, filters: usize, kernel: usize) -> Self {
        ConvShape {
            batch: 1,
            groups: 1,
            channels,
            filters,
            height,
            width,
            kernel: (kernel, kernel),
            stride: (1, 1),
            dilation: (1, 1),
            padding: Padding::default(),
        }
    }

    /// The same with another stride on both axes.
    #[must_use]
    pub fn with_stride(self, stride: usize) -> Self {
        ConvShape {
            stride: (stride, stride),
            ..self
        }
    }

    /// The same with another padding on all sides.
    #[must_use]
    pub fn with_padding(self, pad: usize) -> Self {
        ConvShape {
            padding: Padding::all(pad),
            ..self
        }
    }

    /// The same with another dilation on both axes.
    #[must_use]
    pub fn with_dilation(self, dilation: usize) -> Self {
        ConvShape {
            dilation: (dilation, dilation),
            ..self
        }
    }

    /// The same in another number of groups.
    #[must_use]
    pub fn with_groups(self, groups: usize) -> Self {
        ConvShape { groups, ..self }
    }

    /// The first thing that is wrong with the shape.
    ///
    /// # Errors
    /// A zero size, groups that do not divide, a kernel larger than the padded input, or tensors too large to address.
    pub fn check(&self) -> Result<(), Error> {
        let positive = [
            ("the batch", self.batch),
            ("the number of groups", self.groups),
            ("the number of channels", self.channels),
            ("the number of filters", self.filters),
            ("the height", self.height),
            ("the width", self.width),
            ("the kernel's height", self.kernel.0),
            ("the kernel's width", self.kernel.1),
            ("the vertical stride", self.stride.0),
            ("the horizontal stride", self.stride.1),
            ("the vertical dilation", self.dilation.0),
            ("the horizontal dilation", self.dilation.1),
        ];
        if let Some((what, _)) = positive.into_iter().find(|(_, size)| *size == 0) {
            return Err(Error::Zero { what });
        }
        for (what, count) in [("channels", self.channels), ("filters", self.filters)] {
            if count % self.groups != 0 {
                return Err(Error::Groups {
                    what,
                    count,
                    groups: self.groups,
                });
            }
        }
        let span = |taps: usize, dilation: usize| (taps - 1).checked_mul(dilation).and_then(|n| n.checked_add(1));
        let axes = [
            (
                "rows",
                self.kernel.0,
                self.dilation.0,
                self.height,
                self.padding.top,
                self.padding.bottom,
            ),
            (
                "columns",
                self.kernel.1,
                self.dilation.1,
                self.width,
                self.padding.left,
                self.padding.right,
            ),
        ];
        for (axis, taps, dilation, extent, before, after) in axes {
            let input = extent.checked_add(before).and_then(|n| n.checked_add(after));
            let (Some(kernel), Some(input)) = (span(taps, dilation), input) else {
                return Err(Error::TooLarge { what: "padded input" });
            };
            if kernel > input {
                return Err(Error::KernelTooLarge { axis, kernel, input });
            }
        }
        // Blocked layouts round channels up to 16, packed filters round K up: leave room for both. Offsets are
        // computed as isize, and the padded input must be within reach of them.
        let limit = isize::MAX as usize / 4096;
        let product = |sizes: &[usize]| sizes.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
        let (p, q) = self.output();
        let (rows, columns) = (
            self.padding.top + self.height + self.padding.bottom,
            self.padding.left + self.width + self.padding.right,
        );
        for (what, sizes) in [
            ("input", &[self.batch, self.channels, rows, columns][..]),
            (
                "filters",
                &[self.filters, self.channels / self.groups, self.kernel.0, self.kernel.1],
            ),
            ("output", &[self.batch, self.filters, p, q]),
        ] {
            if product(sizes).is_none_or(|n| n > limit) {
                return Err(Error::TooLarge { what });
            }
        }
        Ok(())
    }

    /// Output rows and columns (P, Q) of a checked shape.
    #[must_use]
    pub fn output(&self) -> (usize, usize) {
        let extent = |size: usize, pad: usize, taps: usize, dilation: usize, stride: usize| {
            (size + pad - (taps - 1) * dilation - 1) / stride + 1
        };
        (
            extent(
                self.height,
                self.padding.top + self.padding.bottom,
                self.kernel.0,
                self.dilation.0,
                self.stride.0,
            ),
            extent(
                self.width,
                self.padding.left + self.padding.right,
                self.kernel.1,
                self.dilation.1,
                self.stride.1,
            ),
        )
    }

    /// Output elements of one filter and image, P·Q.
    #[must_use]
    pub fn windows(&self) -> usize {
        let (p, q) = self.output();
        p * q
    }

    /// Filter taps, R·S.
    #[must_use]
    pub fn taps(&self) -> usize {
        self.kernel.0 * self.kernel.1
    }

    /// Channels of one group, C.
    #[must_use]
    pub fn group_channels(&self) -> usize {
        self.channels / self.groups
    }

    /// Filters of one group, K.
    #[must_use]
    pub fn group_filters(&self) -> usize {
        self.filters / self.groups
    }

    /// Multiply-accumulates, those on padding included: N·G·K·C·R·S·P·Q.
    #[must_use]
    pub fn macs(&self) -> u64 {
        self.batch as u64
            * self.filters as u64
            * self.group_channels() as u64
            * self.taps() as u64
            * self.windows() as u64
    }

    /// Elements of the weights {G·K, C, R, S}.
    #[must_use]
    pub fn weights_len(&self) -> usize {
        self.filters * self.group_channels() * self.taps()
    }

    /// Whether a window is one input element and windows are contiguous in memory: 1×1, stride 1, no padding.
    #[must_use]
    pub fn is_pointwise(&self) -> bool {
        self.kernel == (1, 1) && self.stride == (1, 1) && self.padding == Padding::default()
    }
}
