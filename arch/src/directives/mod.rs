//! The data-centric notation of MAESTRO (Kwon et al., MICRO 2019): a dataflow as a list of directives.
//!
//! `SpatialMap(size, offset) D` gives the instances of a level overlapping windows of dimension D, `TemporalMap`
//! moves one window over time, and `Cluster(n)` groups n instances into one: what follows describes the inside of a
//! group. A directive further up is a loop further out.
//!
//! [`lower()`] turns a dataflow into loops, [`raise()`] a mapping into directives; [`Style`] has the five dataflow styles of the paper for any layer and
//! number of PEs, and [`figures`] the small dataflows with which it explains the notation.

pub mod figures;
mod lower;
mod parse;
mod place;
mod raise;
mod templates;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use lower::{ClusterLoops, LowerError, Lowered, lower};
pub use parse::parse;
pub use raise::{RaiseError, Raised, raise};
pub use templates::{Style, Undescribable, describe};

/// A dimension in the notation. Inputs are indexed by rows Y and columns X of the *input*, outputs by Y' and X'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Var {
    /// Input channels; of a depthwise layer, its channels.
    C,
    /// Groups.
    G,
    /// Output channels; of a GEMM, the reduction dimension.
    K,
    /// Rows of a GEMM.
    M,
    /// Batch; of a GEMM, its columns.
    N,
    /// Filter rows.
    R,
    /// Filter columns.
    S,
    /// Input columns.
    X,
    /// Input rows.
    Y,
    /// Output columns, X'.
    #[serde(rename = "X'")]
    XOut,
    /// Output rows, Y'.
    #[serde(rename = "Y'")]
    YOut,
}

impl Var {
    /// Every dimension, in alphabetical order.
    pub const ALL: [Var; 11] = [
        Var::C,
        Var::G,
        Var::K,
        Var::M,
        Var::N,
        Var::R,
        Var::S,
        Var::X,
        Var::Y,
        Var::XOut,
        Var::YOut,
    ];

    /// Its name in the notation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Var::C => "C",
            Var::G => "G",
            Var::K => "K",
            Var::M => "M",
            Var::N => "N",
            Var::R => "R",
            Var::S => "S",
            Var::X => "X",
            Var::Y => "Y",
            Var::XOut => "X'",
            Var::YOut => "Y'",
        }
    }

    /// The dimension with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Var> {
        Var::ALL.into_iter().find(|v| v.name() == name)
    }
}

impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a layer computes, as far as the notation distinguishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Operator {
    /// Convolution: I{C,Y,X}, W{K,C,R,S}, O{K,Y,X}; a transposed convolution is treated as one.
    Conv,
    /// Depthwise convolution: I{C,Y,X}, W{C,R,S}, O{C,Y,X}.
    DepthwiseConv,
    /// Grouped convolution: G joins all three tensors.
    GroupedConv,
    /// Matrix product: I{M,K}, W{K,N}, O{M,N}.
    Gemm,
}

impl Operator {
    /// Its name in the notation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Operator::Conv => "CONV",
            Operator::DepthwiseConv => "DSCONV",
            Operator::GroupedConv => "NGCONV",
            Operator::Gemm => "GEMM",
        }
    }
}

/// One directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Directive {
    /// Consecutive instances get windows of `size`, each `offset` further.
    SpatialMap {
        /// Indices in one window.
        size: u64,
        /// From one window to the next.
        offset: u64,
        /// The dimension.
        var: Var,
    },
    /// Consecutive steps get windows of `size`, each `offset` further.
    TemporalMap {
        /// Indices in one window.
        size: u64,
        /// From one window to the next.
        offset: u64,
        /// The dimension.
        var: Var,
    },
    /// What follows describes the inside of groups of this many instances.
    Cluster(u64),
}

impl Directive {
    /// `SpatialMap(size, offset) var`.
    #[must_use]
    pub const fn spatial(size: u64, offset: u64, var: Var) -> Self {
        Directive::SpatialMap { size, offset, var }
    }

    /// `TemporalMap(size, offset) var`.
    #[must_use]
    pub const fn temporal(size: u64, offset: u64, var: Var) -> Self {
        Directive::TemporalMap { size, offset, var }
    }
}

impl fmt::Display for Directive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Directive::SpatialMap { size, offset, var } => write!(f, "SpatialMap({size},{offset}) {var};"),
            Directive::TemporalMap { size, offset, var } => write!(f, "TemporalMap({size},{offset}) {var};"),
            Directive::Cluster(n) => write!(f, "Cluster({n},P);"),
        }
    }
}

/// A layer with its dataflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Its name.
    pub name: String,
    /// What it computes.
    pub operator: Operator,
    /// Sizes, in the order of the text. Inputs are given with whatever padding the layer has.
    pub dims: Vec<(Var, u64)>,
    /// Strides other than 1.
    pub strides: Vec<(Var, u64)>,
    /// The directives, outermost first.
    pub dataflow: Vec<Directive>,
}

impl Layer {
    /// Size of `var`, if the layer has it.
    #[must_use]
    pub fn size(&self, var: Var) -> Option<u64> {
        self.dims.iter().find(|d| d.0 == var).map(|d| d.1)
    }

    /// Stride along `var`; 1 if none is given.
    #[must_use]
    pub fn stride(&self, var: Var) -> u64 {
        self.strides.iter().find(|s| s.0 == var).map_or(1, |s| s.1)
    }

    /// The directives level by level, without the `Cluster` directives, and the instances in one group of each
    /// level but the first.
    #[must_use]
    pub fn levels(&self) -> (Vec<Vec<Directive>>, Vec<u64>) {
        let (mut levels, mut sizes) = (vec![Vec::new()], Vec::new());
        for &directive in &self.dataflow {
            if let Directive::Cluster(n) = directive {
                sizes.push(n);
                levels.push(Vec::new());
            } else if let Some(level) = levels.last_mut() {
                level.push(directive);
            }
        }
        (levels, sizes)
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |of: &[(Var, u64)]| {
            let items: Vec<String> = of.iter().map(|(v, n)| format!("{v}: {n}")).collect();
            items.join(", ")
        };
        writeln!(f, "Layer {} {{", self.name)?;
        writeln!(f, "Type: {}", self.operator.name())?;
        if !self.strides.is_empty() {
            writeln!(f, "Stride {{ {} }}", list(&self.strides))?;
        }
        writeln!(f, "Dimensions {{ {} }}", list(&self.dims))?;
        writeln!(f, "Dataflow {{")?;
        for directive in &self.dataflow {
            writeln!(f, " {directive}")?;
        }
        write!(f, "}}\n}}")
    }
}

/// The layers of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Network {
    /// Its name; empty if none is given.
    pub name: String,
    /// Its layers.
    pub layers: Vec<Layer>,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Network {} {{", self.name)?;
        for layer in &self.layers {
            writeln!(f, "{layer}")?;
        }
        writeln!(f, "}}")
    }
}
