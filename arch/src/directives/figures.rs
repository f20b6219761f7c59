//! The small dataflows with which the paper explains the notation: figure 5 (a one-dimensional convolution) and
//! figure 6 (row stationary on six PEs).

use super::{Directive, Layer, Operator, Var};

/// A small example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The letter in the figure, or the figure itself.
    pub label: &'static str,
    /// What the dataflow is called.
    pub title: &'static str,
    /// The layer with the dataflow.
    pub layer: Layer,
    /// PEs.
    pub pes: u64,
}

/// Figure 5: a convolution of 17 inputs with a filter of 6, in six dataflows on three PEs; six in the clustered one.
#[must_use]
pub fn one_dimensional() -> Vec<Example> {
    use Var::{S, XOut};
    let t = Directive::temporal;
    let s = Directive::spatial;
    let example = |label, title, pes, dataflow| Example {
        label,
        title,
        layer: Layer {
            name: "conv1d".to_owned(),
            operator: Operator::Conv,
            dims: [
                (Var::K, 1),
                (Var::C, 1),
                (Var::R, 1),
                (Var::S, 6),
                (Var::Y, 1),
                (Var::X, 17),
            ]
            .to_vec(),
            strides: Vec::new(),
            dataflow,
        },
        pes,
    };
    vec![
        example("5A", "output stationary", 3, vec![s(1, 1, XOut), t(1, 1, S)]),
        example("5B", "weight stationary", 3, vec![t(1, 1, S), s(1, 1, XOut)]),
        example(
            "5C",
            "collaborative output stationary",
            3,
            vec![t(1, 1, XOut), s(1, 1, S)],
        ),
        example(
            "5D",
            "collaborative weight stationary",
            3,
            vec![s(1, 1, S), t(1, 1, XOut)],
        ),
        example(
            "5E",
            "tiled collaborative weight stationary",
            3,
            vec![s(2, 2, S), t(1, 1, XOut)],
        ),
        example(
            "5F",
            "clustered: outputs over clusters, weights inside",
            6,
            vec![s(1, 1, XOut), t(3, 3, S), Directive::Cluster(3), s(1, 1, S)],
        ),
    ]
}

/// Figure 6: a row-stationary dataflow on two clusters of three PEs, for the layer of figure 1.
#[must_use]
pub fn row_stationary() -> Example {
    use Var::{C, K, N, R, S, X, Y};
    let t = Directive::temporal;
    let s = Directive::spatial;
    Example {
        label: "6",
        title: "row stationary",
        layer: Layer {
            name: "conv2d".to_owned(),
            operator: Operator::Conv,
            dims: [(N, 2), (K, 4), (C, 6), (R, 3), (S, 3), (Y, 8), (X, 8)].to_vec(),
            strides: Vec::new(),
            dataflow: vec![
                t(1, 1, N),
                t(3, 3, C),
                t(2, 2, K),
                s(3, 1, Y),
                t(3, 1, X),
                t(3, 3, R),
                t(3, 3, S),
                Directive::Cluster(3),
                s(1, 1, Y),
                s(1, 1, R),
                t(3, 3, S),
            ],
        },
        pes: 6,
    }
}
