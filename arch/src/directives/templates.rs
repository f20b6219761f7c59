//! The five dataflow styles of the paper's table 3, for any layer and number of PEs.
//!
//! Layers are described with their padding. A depthwise layer has no K; where the style is parallel over K, it is
//! then parallel over C. Windows of the height and width of the filter are written `(R, 1)`; MAESTRO applies the
//! stride itself.

use cyclonest_workloads::{Dim, Problem};
use serde::{Deserialize, Serialize};

use super::{Directive, Layer, Operator, Var};

/// A dataflow style, named after its parallel dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Style {
    /// Parallel over input channels; nothing is reused over time ("no local reuse").
    #[serde(rename = "C-P")]
    CP,
    /// Parallel over columns; weights are stationary.
    #[serde(rename = "X-P")]
    XP,
    /// Parallel over rows and columns; outputs are stationary (ShiDianNao).
    #[serde(rename = "YX-P")]
    YXP,
    /// Parallel over rows, and over filter rows inside a cluster: row stationary (Eyeriss).
    #[serde(rename = "YR-P")]
    YRP,
    /// Parallel over output channels, and over input channels inside a cluster: weight stationary (NVDLA).
    #[serde(rename = "KC-P")]
    KCP,
}

impl Style {
    /// All five.
    pub const ALL: [Style; 5] = [Style::CP, Style::XP, Style::YXP, Style::YRP, Style::KCP];

    /// Its name, as `--dataflow` takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Style::CP => "C-P",
            Style::XP => "X-P",
            Style::YXP => "YX-P",
            Style::YRP => "YR-P",
            Style::KCP => "KC-P",
        }
    }

    /// The style with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Style> {
        Style::ALL.into_iter().find(|s| s.name() == name)
    }

    /// The layer `problem` in this style on `pes` PEs. Clusters are made smaller where there are fewer PEs.
    ///
    /// # Errors
    /// If the layer is dilated, which the notation cannot say.
    pub fn layer(self, name: &str, problem: &Problem, pes: u64) -> Result<Layer, Undescribable> {
        let mut layer = describe(name, problem)?;
        layer.dataflow = self.directives(&layer, pes);
        Ok(layer)
    }

    /// The directives of this style for a layer.
    #[must_use]
    pub fn directives(self, layer: &Layer, pes: u64) -> Vec<Directive> {
        let size = |var| layer.size(var).unwrap_or(1);
        let (r, s) = (size(Var::R), size(Var::S));
        let (rows, columns) = (Directive::temporal(r, 1, Var::Y), Directive::temporal(s, 1, Var::X));
        let filter = [Directive::temporal(r, r, Var::R), Directive::temporal(s, s, Var::S)];
        let one = |var| Directive::temporal(1, 1, var);
        let depthwise = layer.operator == Operator::DepthwiseConv;
        let mut list = Vec::new();
        if layer.operator == Operator::GroupedConv {
            list.push(one(Var::G));
        }
        // An output channel at a time, where there are any.
        let k = (!depthwise).then(|| one(Var::K));
        match self {
            Style::CP => {
                list.extend(k);
                list.extend([rows, columns]);
                list.extend(filter);
                list.push(Directive::spatial(1, 1, Var::C));
            }
            Style::XP => {
                list.extend(k);
                list.extend([one(Var::C), rows, Directive::spatial(s, 1, Var::X)]);
                list.extend(filter);
            }
            Style::YXP => {
                // Eight columns of outputs at a time, however far their inputs are apart; all if there are fewer.
                let stride = layer.stride(Var::X);
                let columns = (size(Var::X).saturating_sub(s) / stride + 1).min(8);
                let cluster = pes.clamp(1, columns);
                list.extend(k);
                list.extend([one(Var::C), Directive::spatial(r, 1, Var::Y)]);
                let window = (cluster - 1) * stride + s;
                list.push(Directive::temporal(window, cluster * stride, Var::X));
                list.extend(filter);
                list.push(Directive::Cluster(cluster));
                list.extend([Directive::spatial(s, 1, Var::X), Directive::temporal(s, s, Var::S)]);
            }
            Style::YRP => {
                list.extend([Directive::spatial(1, 1, Var::YOut), one(Var::XOut), one(Var::C)]);
                if !depthwise {
                    list.push(Directive::temporal(16, 16, Var::K));
                }
                list.extend(filter);
                list.push(Directive::Cluster(r));
                list.extend([Directive::spatial(1, 1, Var::Y), Directive::spatial(1, 1, Var::R)]);
                list.push(Directive::temporal(s, s, Var::S));
            }
            Style::KCP if depthwise => {
                list.extend([Directive::spatial(1, 1, Var::C), rows, columns]);
                list.extend(filter);
            }
            Style::KCP => {
                let cluster = pes.clamp(1, 64);
                list.extend([
                    Directive::spatial(1, 1, Var::K),
                    Directive::temporal(cluster, cluster, Var::C),
                ]);
                list.extend(filter);
                list.extend([
                    rows,
                    columns,
                    Directive::Cluster(cluster),
                    Directive::spatial(1, 1, Var::C),
                ]);
                list.extend([rows, columns]);
                list.extend(filter);
            }
        }
        list
    }
}

/// The notation has no word for dilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the layer has dilation {rows}×{columns}; the directives have no word for dilation")]
pub struct Undescribable {
    /// Dilation of rows.
    pub rows: u64,
    /// Dilation of columns.
    pub columns: u64,
}

/// `problem` as a layer without a dataflow; the input with its padding.
///
/// # Errors
/// If the layer is dilated.
pub fn describe(name: &str, problem: &Problem) -> Result<Layer, Undescribable> {
    let b = &problem.bounds;
    let (rows, columns) = (problem.dilation.0, problem.dilation.1);
    if (rows > 1 && b[Dim::R] > 1) || (columns > 1 && b[Dim::S] > 1) {
        return Err(Undescribable { rows, columns });
    }
    let depthwise = b[Dim::G] > 1 && b[Dim::K] == 1 && b[Dim::C] == 1;
    let extent = problem.padded_extent();
    let mut dims = Vec::new();
    if b[Dim::N] > 1 {
        dims.push((Var::N, b[Dim::N]));
    }
    if b[Dim::G] > 1 && !depthwise {
        dims.push((Var::G, b[Dim::G]));
    }
    let channels = if depthwise { b[Dim::G] } else { b[Dim::C] };
    dims.extend([
        (Var::K, b[Dim::K]),
        (Var::C, channels),
        (Var::R, b[Dim::R]),
        (Var::S, b[Dim::S]),
    ]);
    dims.extend([(Var::Y, extent.0), (Var::X, extent.1)]);
    let strides = [(Var::Y, problem.stride.0), (Var::X, problem.stride.1)];
    Ok(Layer {
        name: name.to_owned(),
        operator: match (depthwise, b[Dim::G] > 1) {
            (true, _) => Operator::DepthwiseConv,
            (false, true) => Operator::GroupedConv,
            (false, false) => Operator::Conv,
        },
        dims,
        strides: strides.into_iter().filter(|s| s.1 > 1).collect(),
        dataflow: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::parse;
    use cyclonest_workloads::DimMap;

    /// The dataflows as MAESTRO ships them for a 3×3 layer.
    #[test]
    fn styles_are_those_that_maestro_ships() {
        let text = |style: Style| {
            let mut bounds = DimMap::ones();
            for (dim, n) in [
                (Dim::K, 256),
                (Dim::C, 192),
                (Dim::P, 13),
                (Dim::Q, 13),
                (Dim::R, 3),
                (Dim::S, 3),
            ] {
                bounds[dim] = n;
            }
            let layer = style.layer("CONV5", &Problem::new(bounds), 256).unwrap();
            layer
                .dataflow
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let shipped = "Network n { Layer CONV5 { Type: CONV Dimensions { K 256, C 192, R 3, S 3, Y 15, X 15 } Dataflow { \
             SpatialMap(1,1) K; TemporalMap(64,64) C; TemporalMap(Sz(R),Sz(R)) R; TemporalMap(Sz(S),Sz(S)) S; \
             TemporalMap(Sz(R),1) Y; TemporalMap(Sz(S),1) X; Cluster(64,P); SpatialMap(1,1) C; \
             TemporalMap(Sz(R),1) Y; TemporalMap(Sz(S),1) X; TemporalMap(Sz(R),Sz(R)) R; \
             TemporalMap(Sz(S),Sz(S)) S; } } }";
        let network = parse(shipped).unwrap();
        let printed: Vec<String> = network.layers[0].dataflow.iter().map(ToString::to_string).collect();
        assert_eq!(text(Style::KCP), printed.join(" "));
        assert_eq!(
            text(Style::YRP),
            "SpatialMap(1,1) Y'; TemporalMap(1,1) X'; TemporalMap(1,1) C; TemporalMap(16,16) K; TemporalMap(3,3) R; \
             TemporalMap(3,3) S; Cluster(3,P); SpatialMap(1,1) Y; SpatialMap(1,1) R; TemporalMap(3,3) S;"
        );
        assert_eq!(
            text(Style::YXP),
            "TemporalMap(1,1) K; TemporalMap(1,1) C; SpatialMap(3,1) Y; TemporalMap(10,8) X; TemporalMap(3,3) R; \
             TemporalMap(3,3) S; Cluster(8,P); SpatialMap(3,1) X; TemporalMap(3,3) S;"
        );
    }
}
