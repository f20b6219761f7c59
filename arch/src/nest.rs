//! A mapping as the familiar loop nest.

use std::fmt::Write as _;

use cyclonest_workloads::{Problem, Tensor};

use crate::Mapping;

impl Mapping {
    /// The loop nest in text: per level its name, the tensors kept there, with the elements of their largest tile if
    /// `problem` is given (strides decide what an input tile is), then its `for` and `spatial_for` loops; the MAC
    /// innermost.
    ///
    /// ```
    /// # use cyclonest_arch::Mapping;
    /// let mapping = Mapping::from_ron(r#"(
    ///     bounds: { K: 8, C: 4 },
    ///     levels: [
    ///         (level: "DRAM", temporal: [(K, 4)], keeps: [Weights, Inputs, Outputs]),
    ///         (level: "PE", temporal: [(C, 4)], spatial: [(K, 2, X)], keeps: [Outputs]),
    ///     ],
    /// )"#).unwrap();
    /// assert_eq!(mapping.nest(None), "\
    /// DRAM: Weights, Inputs, Outputs
    /// for K in 0..4
    ///   PE: Outputs
    ///   for C in 0..4
    ///     spatial_for K in 0..2 over X
    ///       mac
    /// ");
    /// ```
    #[must_use]
    pub fn nest(&self, problem: Option<&Problem>) -> String {
        let mut out = String::new();
        let mut depth = 0;
        let mut line = |depth: usize, text: &str| {
            let _ = writeln!(out, "{}{text}", "  ".repeat(depth));
        };
        for (index, level) in self.levels.iter().enumerate() {
            let kept: Vec<String> = level
                .keeps
                .iter()
                .map(|tensor: Tensor| match problem {
                    Some(problem) => format!("{tensor} {}", self.tile_elements(problem, index, tensor)),
                    None => tensor.to_string(),
                })
                .collect();
            line(
                depth,
                format!("{}: {}", level.level, kept.join(", ")).trim_end_matches(": "),
            );
            for l in &level.temporal {
                line(depth, &format!("for {} in 0..{}", l.0, l.1));
                depth += 1;
            }
            for s in &level.spatial {
                line(depth, &format!("spatial_for {} in 0..{} over {:?}", s.0, s.1, s.2));
                depth += 1;
            }
        }
        line(depth, "mac");
        out
    }
}
