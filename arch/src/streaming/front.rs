//! The network as the streaming backends read it: layers in topological order, with shapes.

use serde::{Deserialize, Serialize};

/// A feature map: channels, rows, columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Map {
    /// Channels.
    pub c: u64,
    /// Rows.
    pub h: u64,
    /// Columns.
    pub w: u64,
}

impl Map {
    /// A map of that shape.
    #[must_use]
    pub const fn new(c: u64, h: u64, w: u64) -> Self {
        Self { c, h, w }
    }

    /// Elements.
    #[must_use]
    pub const fn size(self) -> u64 {
        self.c * self.h * self.w
    }

    /// Rows × columns.
    #[must_use]
    pub const fn pixels(self) -> u64 {
        self.h * self.w
    }
}

/// What a layer computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FrontOp {
    /// Convolution; depthwise where `groups` equals both channel counts.
    Conv,
    /// Fully connected; a map with several pixels is flattened first.
    Fc,
    /// Maximum over windows.
    MaxPool,
    /// Mean over windows; a global one has the kernel of the whole map.
    AvgPool,
    /// Rectifier that is not part of the layer before it.
    Relu,
    /// Element-wise sum of all inputs (a residual join).
    Add,
    /// Concatenation of all inputs along the channels.
    Concat,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontLayer {
    /// Unique name.
    pub name: String,
    /// What it computes.
    pub op: FrontOp,
    /// Layers that it reads, by index, all smaller than its own; empty for the network's input.
    pub inputs: Vec<usize>,
    /// Shape of an input (of each; for [`FrontOp::Concat`] of the result of concatenating them).
    pub input: Map,
    /// Shape of the output.
    pub output: Map,
    /// Window: rows, columns.
    pub kernel: (u64, u64),
    /// Step of the window: rows, columns.
    pub stride: (u64, u64),
    /// Zeros around the input: top, left, bottom, right.
    pub pads: [u64; 4],
    /// Channel groups.
    pub groups: u64,
    /// Whether a ReLU follows.
    pub relu: bool,
}

impl FrontLayer {
    /// Whether every channel is convolved by itself.
    #[must_use]
    pub fn is_depthwise(&self) -> bool {
        self.op == FrontOp::Conv && self.groups > 1 && self.groups == self.input.c && self.groups == self.output.c
    }

    /// The input with its padding.
    #[must_use]
    pub const fn padded(&self) -> Map {
        Map::new(
            self.input.c,
            self.input.h + self.pads[0] + self.pads[2],
            self.input.w + self.pads[1] + self.pads[3],
        )
    }

    /// Multiply-accumulates per frame.
    #[must_use]
    pub const fn macs(&self) -> u64 {
        match self.op {
            FrontOp::Conv => self.output.size() * (self.input.c / self.groups) * self.kernel.0 * self.kernel.1,
            FrontOp::Fc => self.input.size() * self.output.c,
            _ => 0,
        }
    }
}

/// A network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Front {
    /// Its name.
    pub name: String,
    /// Shape of its input.
    pub input: Map,
    /// Layers in topological order; the last one is the output.
    pub layers: Vec<FrontLayer>,
}

/// Why a network cannot become a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrontError {
    /// A layer contradicts itself or its inputs.
    #[error("layer `{layer}`: {message}")]
    Layer {
        /// Its name.
        layer: String,
        /// What is wrong: found and expected.
        message: String,
    },
    /// A backend has no node for it.
    #[error("backend {backend} has no node for layer `{layer}`: {message}")]
    Unsupported {
        /// The backend.
        backend: &'static str,
        /// The layer.
        layer: String,
        /// What about it.
        message: String,
    },
    /// Nothing to do.
    #[error("network `{0}` has no layers")]
    Empty(String),
}

impl Front {
    /// Checks shapes and order.
    ///
    /// # Errors
    /// The first layer that does not fit its inputs.
    pub fn check(&self) -> Result<(), FrontError> {
        if self.layers.is_empty() {
            return Err(FrontError::Empty(self.name.clone()));
        }
        for (index, layer) in self.layers.iter().enumerate() {
            let fail = |message: String| {
                Err(FrontError::Layer {
                    layer: layer.name.clone(),
                    message,
                })
            };
            let mut channels = 0;
            for &from in &layer.inputs {
                if from >= index {
                    return fail("reads a later layer".to_owned());
                }
                let found = self.layers[from].output;
                channels += found.c;
                let fits = match layer.op {
                    FrontOp::Concat => (found.h, found.w) == (layer.input.h, layer.input.w),
                    FrontOp::Fc => found.size() == layer.input.size(),
                    _ => found == layer.input,
                };
                if !fits {
                    return fail(format!(
                        "reads {}×{}×{} from `{}`, expected {}×{}×{}",
                        found.c, found.h, found.w, self.layers[from].name, layer.input.c, layer.input.h, layer.input.w
                    ));
                }
            }
            if layer.op == FrontOp::Concat && channels != layer.output.c {
                return fail(format!("concatenates {channels} channels, expected {}", layer.output.c));
            }
            if matches!(layer.op, FrontOp::Conv | FrontOp::MaxPool | FrontOp::AvgPool) {
                let padded = layer.padded();
                if padded.h < layer.kernel.0 || padded.w < layer.kernel.1 {
                    return fail("the window is larger than the padded input".to_owned());
                }
                let (h, w) = (
                    (padded.h - layer.kernel.0) / layer.stride.0 + 1,
                    (padded.w - layer.kernel.1) / layer.stride.1 + 1,
                );
                // A pool may round its shape up: the last window then reads past the edge.
                let ceil = (
                    (padded.h - layer.kernel.0).div_ceil(layer.stride.0) + 1,
                    (padded.w - layer.kernel.1).div_ceil(layer.stride.1) + 1,
                );
                let found = (layer.output.h, layer.output.w);
                if found != (h, w) && (layer.op == FrontOp::Conv || found != ceil) {
                    return fail(format!(
                        "has {}×{} output pixels, the window gives {h}×{w}",
                        found.0, found.1
                    ));
                }
            }
        }
        Ok(())
    }

    /// Layers that read layer `index`.
    #[must_use]
    pub fn readers(&self, index: usize) -> Vec<usize> {
        (0..self.layers.len())
            .filter(|&l| self.layers[l].inputs.contains(&index))
            .collect()
    }
}
