//! Look-up tables and flip-flops of the backends that publish no formula for them.
//!
//! A node's count is a linear form over named features of the node and its folding; a RON file gives the
//! coefficients, so that whoever has measured or licensed ones can use them. The built-in ones are **our own
//! estimate**: they count registers and adders of a plausible implementation and have not been fitted to any tool.
//! [`Coefficients::calibrate`] fits them to observed rows by least squares of the relative error.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::graph::{Folding, Node, NodeKind};

/// Features of one kind of node with their coefficients.
type Form = BTreeMap<String, f64>;

/// Coefficients of look-up tables and flip-flops by kind of node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coefficients {
    /// Where they come from.
    pub source: String,
    /// Look-up tables.
    pub lut: BTreeMap<NodeKind, Form>,
    /// Flip-flops.
    pub ff: BTreeMap<NodeKind, Form>,
}

/// One observed node, for calibration.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The node.
    pub node: Node,
    /// Its folding.
    pub folding: Folding,
    /// Look-up tables counted.
    pub lut: f64,
    /// Flip-flops counted.
    pub ff: f64,
}

/// The features of a node: products of its unrolling with the logarithms of what its counters and buffers hold.
///
/// `instances` = cin·cout are the multiply-accumulate chains; a chain exists per input and output stream; `partial`
/// marks nodes that see their input channels in several turns and so hold partial sums.
fn features(node: &Node, folding: Folding) -> Vec<(&'static str, f64)> {
    #![allow(clippy::cast_precision_loss)]
    let lg = |n: f64| if n > 1.0 { n.log2() } else { 0.0 };
    let (cin, cout) = (folding.cin as f64, folding.cout as f64);
    let instances = cin * cout;
    match node.kind {
        NodeKind::Conv | NodeKind::Fc => {
            let fc = node.kind == NodeKind::Fc;
            let inputs = if fc { node.size_in } else { node.channels_in } as f64;
            let turns_in = lg(inputs / cin);
            let turns_out = lg(node.channels_out as f64 / cout);
            let partial = if inputs > cin { 1.0 } else { 0.0 };
            let tree = if folding.cin > 1 { 1.0 } else { 0.0 };
            let mut list = vec![
                ("one", 1.0),
                ("cout", cout),
                ("cin", cin),
                ("tree_cin", tree * cin),
                ("tree_cout", tree * cout),
                ("tree_instances", tree * instances),
                ("instances", instances),
                ("instances_turns_out", instances * turns_out),
                ("instances_turns_in", instances * turns_in),
                ("partial_instances", partial * instances),
                ("cin_turns_in", cin * turns_in),
                ("tree_cin_turns_in", tree * cin * turns_in),
                ("cout_turns_out", cout * turns_out),
            ];
            let pixels = if fc { node.input.pixels() } else { node.output.pixels() } as f64;
            let positions = node.positions() as f64;
            let window = if positions > 1.0 { 1.0 } else { 0.0 };
            let width = (node.input.w + node.pads[1] + node.pads[3]) as f64;
            let row = lg(width * node.channels_in as f64 / cin);
            list.extend([
                ("instances_pixels", instances * lg(pixels)),
                ("partial_instances_pixels", partial * instances * lg(pixels)),
                ("cin_pixels", cin * lg(pixels)),
                ("tree_cin_pixels", tree * cin * lg(pixels)),
                ("cout_pixels", cout * lg(pixels)),
            ]);
            if !fc {
                list.extend([
                    ("window_instances", window * instances),
                    ("window_cin", window * cin),
                    ("window_cin_positions", window * cin * positions),
                    ("window_cin_row", window * cin * row),
                    ("window_cin_rows", window * cin * (node.kernel.0 - 1) as f64 * row),
                    (
                        "window_cin_taps",
                        window
                            * cin
                            * (node.kernel.0 * (node.kernel.1 - 1)) as f64
                            * lg(node.channels_in as f64 / cin + 1.0),
                    ),
                    ("window_cin_map", window * cin * lg(node.input.size() as f64 / cin)),
                ]);
            }
            list
        }
        NodeKind::Pool => vec![
            ("one", 1.0),
            ("cin", cin),
            ("cin_positions", cin * node.positions() as f64),
        ],
        _ => vec![("one", 1.0), ("cin", cin)],
    }
}

impl Default for Coefficients {
    fn default() -> Self {
        Self::estimate()
    }
}

impl Coefficients {
    /// Our own estimate (assumed): 16-bit data, one DSP per multiplier with a 16-bit accumulator and its control in
    /// fabric, a counter bit per turn, a register per window tap.
    #[must_use]
    pub fn estimate() -> Self {
        let form = |pairs: &[(&str, f64)]| pairs.iter().map(|&(n, v)| (n.to_owned(), v)).collect::<Form>();
        let matrix_lut = form(&[
            ("one", 200.0),
            ("cin", 100.0),
            ("cout", 60.0),
            ("instances", 40.0),
            ("instances_turns_out", 20.0),
            ("partial_instances", 40.0),
            ("window_cin_positions", 20.0),
        ]);
        let matrix_ff = form(&[
            ("one", 300.0),
            ("cin", 120.0),
            ("cout", 80.0),
            ("instances", 64.0),
            ("instances_turns_out", 20.0),
            ("partial_instances", 48.0),
            ("window_cin_positions", 32.0),
        ]);
        let pool_lut = form(&[("one", 100.0), ("cin", 50.0), ("cin_positions", 24.0)]);
        let pool_ff = form(&[("one", 150.0), ("cin", 80.0), ("cin_positions", 32.0)]);
        let stream_lut = form(&[("cin", 16.0)]);
        let stream_ff = form(&[("cin", 16.0)]);
        let table = |matrix: &Form, pool: &Form, stream: &Form| {
            BTreeMap::from([
                (NodeKind::Conv, matrix.clone()),
                (NodeKind::Fc, matrix.clone()),
                (NodeKind::Pool, pool.clone()),
                (NodeKind::Fork, stream.clone()),
                (NodeKind::Add, stream.clone()),
                (NodeKind::Concat, stream.clone()),
            ])
        };
        Self {
            source: "own estimate, assumed; not fitted to any tool".to_owned(),
            lut: table(&matrix_lut, &pool_lut, &stream_lut),
            ff: table(&matrix_ff, &pool_ff, &stream_ff),
        }
    }

    /// Reads coefficients from RON.
    ///
    /// # Errors
    /// If the text is not a coefficient file; the message carries line and column.
    pub fn from_ron(text: &str) -> Result<Self, String> {
        ron::from_str(text).map_err(|e| e.to_string())
    }

    /// Look-up tables and flip-flops of a node, rounded to whole ones; a kind without coefficients costs none.
    #[must_use]
    pub fn count(&self, node: &Node, folding: Folding) -> (u64, u64) {
        let features = features(node, folding);
        let total = |table: &BTreeMap<NodeKind, Form>| {
            let Some(form) = table.get(&node.kind) else { return 0 };
            let sum: f64 = features
                .iter()
                .filter_map(|(name, value)| form.get(*name).map(|c| c * value))
                .sum();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let count = sum.round().max(0.0) as u64;
            count
        };
        (total(&self.lut), total(&self.ff))
    }

    /// Coefficients fitted to observed nodes: per kind, least squares of the relative error; what has no
    /// observation keeps the estimate.
    #[must_use]
    pub fn calibrate(observations: &[Observation]) -> Self {
        let mut fitted = Self::estimate();
        fitted.source = format!("fitted to {} observed nodes", observations.len());
        let kinds: std::collections::BTreeSet<NodeKind> = observations.iter().map(|o| o.node.kind).collect();
        for kind in kinds {
            let rows: Vec<&Observation> = observations.iter().filter(|o| o.node.kind == kind).collect();
            fitted.lut.insert(kind, fit(&rows, |o| o.lut));
            fitted.ff.insert(kind, fit(&rows, |o| o.ff));
        }
        fitted
    }
}

/// Ridge-regularised normal equations of the relative error; the ridge only breaks ties of collinear features.
fn fit(rows: &[&Observation], target: impl Fn(&Observation) -> f64) -> Form {
    let features: Vec<Vec<(&'static str, f64)>> = rows.iter().map(|o| features(&o.node, o.folding)).collect();
    let names: Vec<&'static str> = features[0].iter().map(|f| f.0).collect();
    let n = names.len();
    let mut matrix = vec![vec![0.0; n + 1]; n];
    for (row, list) in rows.iter().zip(&features) {
        let y = target(row);
        let weight = if y > 0.0 { 1.0 / y } else { 1.0 };
        for i in 0..n {
            for j in 0..n {
                matrix[i][j] += list[i].1 * list[j].1 * weight * weight;
            }
            matrix[i][n] += list[i].1 * y * weight * weight;
        }
    }
    let solution = solve(matrix);
    names
        .iter()
        .zip(solution)
        .map(|(name, c)| ((*name).to_owned(), c))
        .collect()
}

/// Gauss–Jordan with diagonal scaling; a feature that never occurs gets 0.
fn solve(mut m: Vec<Vec<f64>>) -> Vec<f64> {
    let n = m.len();
    let scale: Vec<f64> = (0..n)
        .map(|i| if m[i][i] > 0.0 { m[i][i].sqrt() } else { 1.0 })
        .collect();
    for i in 0..n {
        for j in 0..n {
            m[i][j] /= scale[i] * scale[j];
        }
        m[i][n] /= scale[i];
        m[i][i] += 1e-11;
    }
    for i in 0..n {
        let pivot = (i..n)
            .max_by(|&a, &b| m[a][i].abs().total_cmp(&m[b][i].abs()))
            .unwrap_or(i);
        m.swap(i, pivot);
        let row = m[i].clone();
        for (k, other) in m.iter_mut().enumerate() {
            if k != i && row[i] != 0.0 {
                let factor = other[i] / row[i];
                for (cell, value) in other.iter_mut().zip(&row).skip(i) {
                    *cell -= factor * value;
                }
            }
        }
    }
    (0..n)
        .map(|i| {
            if m[i][i] == 0.0 {
                0.0
            } else {
                m[i][n] / m[i][i] / scale[i]
            }
        })
        .collect()
}
