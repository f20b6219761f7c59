//! What the layers of a pipeline compute, for runs that carry values.

/// The function of one layer at one output pixel, in integers. Weights are indexed output channel, input channel of
/// the group, row, column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kernel {
    /// Passes pixels on.
    Identity,
    /// max(0, x).
    Relu,
    /// Convolution.
    Conv {
        /// Weights.
        weights: Vec<i64>,
        /// Output channels.
        channels_out: usize,
        /// Channel groups.
        groups: usize,
    },
    /// Fully connected over the whole map, channels outermost.
    Fc {
        /// Weights: output, then channel, row, column.
        weights: Vec<i64>,
        /// Output channels.
        channels_out: usize,
    },
    /// Maximum of the window; what lies outside the map is left out.
    MaxPool,
    /// Sum of the window.
    SumPool,
    /// Sum of all inputs.
    Add,
    /// All inputs one after the other.
    Concat,
}

impl Kernel {
    /// The output pixel whose window begins at `origin` (row, column; may lie outside the map). `pixel(i, row, column)`
    /// is input i's pixel, `None` outside the map.
    pub(super) fn fire<'p>(
        &self,
        origin: (i64, i64),
        window: (u64, u64),
        map: (u64, u64),
        inputs: usize,
        pixel: &dyn Fn(usize, i64, i64) -> Option<&'p [i64]>,
    ) -> Vec<i64> {
        let taps = (0..window.0 as i64).flat_map(|r| (0..window.1 as i64).map(move |c| (r, c)));
        match self {
            Self::Identity => inside(pixel(0, origin.0, origin.1)).to_vec(),
            Self::Relu => inside(pixel(0, origin.0, origin.1))
                .iter()
                .map(|v| (*v).max(0))
                .collect(),
            Self::Add => (0..inputs)
                .map(|i| inside(pixel(i, origin.0, origin.1)).to_vec())
                .reduce(|a, b| a.iter().zip(&b).map(|(x, y)| x + y).collect())
                .unwrap_or_default(),
            Self::Concat => (0..inputs)
                .flat_map(|i| inside(pixel(i, origin.0, origin.1)).to_vec())
                .collect(),
            Self::MaxPool => taps
                .filter_map(|(r, c)| pixel(0, origin.0 + r, origin.1 + c))
                .map(<[i64]>::to_vec)
                .reduce(|a, b| a.iter().zip(&b).map(|(x, y)| *x.max(y)).collect())
                .unwrap_or_default(),
            Self::SumPool => taps
                .filter_map(|(r, c)| pixel(0, origin.0 + r, origin.1 + c))
                .map(<[i64]>::to_vec)
                .reduce(|a, b| a.iter().zip(&b).map(|(x, y)| x + y).collect())
                .unwrap_or_default(),
            Self::Conv {
                weights,
                channels_out,
                groups,
            } => {
                let mut out = vec![0; *channels_out];
                let per_group = channels_out / groups;
                let taps_per_channel = (window.0 * window.1) as usize;
                let channels_in = weights.len() / (channels_out * taps_per_channel);
                for (r, c) in taps {
                    let Some(values) = pixel(0, origin.0 + r, origin.1 + c) else {
                        continue;
                    };
                    let tap = (r as u64 * window.1 + c as u64) as usize;
                    for (k, sum) in out.iter_mut().enumerate() {
                        let first = k / per_group * channels_in;
                        for channel in 0..channels_in {
                            let weight = weights[(k * channels_in + channel) * taps_per_channel + tap];
                            *sum += weight * values[first + channel];
                        }
                    }
                }
                out
            }
            Self::Fc { weights, channels_out } => {
                let mut out = vec![0; *channels_out];
                let pixels = (map.0 * map.1) as usize;
                let inputs_per_output = weights.len() / channels_out;
                for row in 0..map.0 as i64 {
                    for column in 0..map.1 as i64 {
                        let values = inside(pixel(0, row, column));
                        let at = (row as u64 * map.1 + column as u64) as usize;
                        for (k, sum) in out.iter_mut().enumerate() {
                            for (channel, value) in values.iter().enumerate() {
                                *sum += weights[k * inputs_per_output + channel * pixels + at] * value;
                            }
                        }
                    }
                }
                out
            }
        }
    }
}

fn inside(pixel: Option<&[i64]>) -> &[i64] {
    pixel.expect("the pixel lies inside the map")
}
