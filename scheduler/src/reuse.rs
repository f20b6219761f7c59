//! Reuse analysis: which data a mapping reuses, where, thanks to which loop, and what hardware that takes.
//!
//! It restates tables 1 and 2 of the MAESTRO paper (Kwon et al., MICRO 2019) for the loop nest. Between a level that
//! keeps a tensor and the next one inside that does (or the lanes):
//!
//! - **Spatial** reuse is (instances × elements of one tile) ÷ elements of all their tiles together: over loops that
//!   the tensor does not depend on, and along the diagonal of rows and filter rows. Of an operand it is a
//!   *multicast* and takes fan-out in the network; of outputs it is a *reduction* and takes an adder tree or chain,
//!   without which the sums are read, added and written at the parent.
//! - **Temporal** reuse is the number of consecutive steps that a tile stays: the innermost run of loops that the
//!   tensor does not depend on; next to it, what a sliding window keeps of its inputs. It takes a buffer in which
//!   the tile is stationary; for outputs one that adds in place.

use std::fmt;

use comfy_table::{Table, presets};
use cyclonest_arch::{Accelerator, Mapping, Reduction, tile_elements};
use cyclonest_workloads::{Dim, DimMap, Problem, Tensor};
use serde::{Deserialize, Serialize};

/// Reuse of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reuse {
    /// Uses per element moved: 1 is none.
    pub factor: f64,
    /// The loops that cause it, as `K 4`.
    pub cause: Vec<String>,
    /// What hardware it takes; empty if there is no reuse.
    pub needs: String,
    /// What the machine has for it.
    pub has: String,
    /// True if the machine can make use of it.
    pub supported: bool,
}

/// Reuse of one tensor between two levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TensorReuse {
    /// The tensor.
    pub tensor: Tensor,
    /// The level that serves it.
    pub from: String,
    /// The next level inside that keeps it, or `lanes`.
    pub to: String,
    /// Over the instances.
    pub spatial: Reuse,
    /// Over time.
    pub temporal: Reuse,
}

/// The reuse of a mapping, tensor by tensor, outermost level first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReuseAnalysis {
    /// One line per tensor and pair of levels.
    pub lines: Vec<TensorReuse>,
}

/// Analyses the reuse of `mapping`.
#[must_use]
pub fn analyze(problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> ReuseAnalysis {
    let mut lines = Vec::new();
    for tensor in Tensor::ALL {
        let mut kept: Vec<usize> = (0..mapping.levels.len())
            .filter(|&l| mapping.levels[l].keeps.contains(tensor))
            .collect();
        kept.push(mapping.levels.len());
        for pair in kept.windows(2) {
            let between = Between {
                problem,
                arch,
                mapping,
                tensor,
                from: pair[0],
                to: pair[1],
            };
            lines.push(between.analyze());
        }
    }
    ReuseAnalysis { lines }
}

/// A tensor between the level `from` that serves it and the level `to` that keeps it next.
struct Between<'a> {
    problem: &'a Problem,
    arch: &'a Accelerator,
    mapping: &'a Mapping,
    tensor: Tensor,
    from: usize,
    to: usize,
}

impl Between<'_> {
    fn analyze(&self) -> TensorReuse {
        let name = |l: usize| {
            let level = self.mapping.levels.get(l);
            level.map_or_else(|| "lanes".to_owned(), |l| l.level.clone())
        };
        TensorReuse {
            tensor: self.tensor,
            from: name(self.from),
            to: name(self.to),
            spatial: self.spatial(),
            temporal: self.temporal(),
        }
    }

    /// Extents of the tile at `to`.
    fn tile(&self) -> DimMap<u64> {
        DimMap::from_fn(|d| {
            let trips = match self.mapping.levels.get(self.to) {
                Some(_) => self.mapping.trips_within(self.to, d),
                None => 1,
            };
            trips.min(self.problem.bounds[d])
        })
    }

    fn elements(&self, extents: &DimMap<u64>) -> f64 {
        tile_elements(self.problem, extents, self.tensor) as f64
    }

    /// True if `dim` and another spatial dimension slide over the same axis of the inputs.
    fn slides(&self, dim: Dim, others: &[(Dim, u64)]) -> bool {
        let partner = match dim {
            Dim::P => Dim::R,
            Dim::R => Dim::P,
            Dim::Q => Dim::S,
            Dim::S => Dim::Q,
            _ => return false,
        };
        self.tensor == Tensor::Inputs && others.iter().any(|o| o.0 == partner)
    }

    fn spatial(&self) -> Reuse {
        let tile = self.tile();
        let mut union = tile;
        let mut instances = 1;
        let mut loops: Vec<(Dim, u64)> = Vec::new();
        for level in (self.from..self.to.min(self.mapping.levels.len())).rev() {
            for s in self.mapping.levels[level].spatial.iter().rev() {
                // Instances beyond the bound do not exist.
                let runs = s.1.min(self.problem.bounds[s.0].div_ceil(union[s.0])).max(1);
                union[s.0] = (union[s.0] * runs).min(self.problem.bounds[s.0]);
                instances *= runs;
                if runs > 1 {
                    loops.push((s.0, runs));
                }
            }
        }
        let whole = self.elements(&union);
        let factor = if whole > 0.0 {
            (instances as f64 * self.elements(&tile) / whole).max(1.0)
        } else {
            1.0
        };
        let halo = self.tensor == Tensor::Inputs && loops.iter().any(|l| matches!(l.0, Dim::P | Dim::Q));
        let cause: Vec<String> = loops
            .iter()
            .rev()
            .filter(|l| {
                !self.tensor.is_relevant(l.0) || self.slides(l.0, &loops) || (halo && matches!(l.0, Dim::P | Dim::Q))
            })
            .map(|(dim, runs)| format!("{dim} {runs}"))
            .collect();
        if factor == 1.0 {
            return Reuse::none();
        }
        let networks = self.from..self.to.min(self.mapping.levels.len() - 1);
        let mut below = networks.filter_map(|l| self.arch.levels[l].below.as_ref());
        if self.tensor == Tensor::Outputs {
            let reductions: Vec<Reduction> = below.map(|n| n.reduction).filter(|r| *r != Reduction::None).collect();
            let (has, supported) = match reductions.first() {
                Some(Reduction::Tree { .. }) => ("adder tree", true),
                Some(Reduction::Chain { .. }) => ("adder chain", true),
                _ if self.to > self.mapping.levels.len() - 1 => ("lanes add before they write", true),
                _ => ("read-modify-write at the parent", false),
            };
            return Reuse::new(factor, cause, "reduction: adder tree or chain", has, supported);
        }
        let only_lanes = self.from + 1 >= self.mapping.levels.len();
        let multicast = only_lanes || below.any(|n| n.multicast.contains(self.tensor));
        let has = match (only_lanes, multicast) {
            (true, _) => "one port read for all lanes",
            (false, true) => "multicast",
            (false, false) => "unicast: read once per instance",
        };
        Reuse::new(factor, cause, "multicast: fan-out in the network", has, multicast)
    }

    fn temporal(&self) -> Reuse {
        let inner = self.to.min(self.mapping.levels.len());
        let mut reach = self.tile();
        let mut nest: Vec<(Dim, u64, u64)> = Vec::new();
        for level in (self.from..inner).rev() {
            for s in self.mapping.levels[level].spatial.iter().rev() {
                reach[s.0] = (reach[s.0] * s.1).min(self.problem.bounds[s.0]);
            }
            for t in self.mapping.levels[level].temporal.iter().rev() {
                let runs = t.1.min(self.problem.bounds[t.0].div_ceil(reach[t.0]));
                if runs > 1 {
                    nest.push((t.0, runs, reach[t.0]));
                }
                reach[t.0] = (reach[t.0] * t.1).min(self.problem.bounds[t.0]);
            }
        }
        let run: Vec<&(Dim, u64, u64)> = nest.iter().take_while(|l| !self.tensor.is_relevant(l.0)).collect();
        let mut factor: f64 = run.iter().map(|l| l.1 as f64).product();
        let mut cause: Vec<String> = run.iter().rev().map(|l| format!("{} {}", l.0, l.1)).collect();
        let mut window = false;
        if let (Tensor::Inputs, Some(&(dim, runs, step))) = (self.tensor, nest.first())
            && matches!(dim, Dim::P | Dim::Q | Dim::R | Dim::S)
        {
            let tile = self.tile();
            let mut two = tile;
            two[dim] = (two[dim] + step).min(self.problem.bounds[dim]);
            let (one, new) = (self.elements(&tile), self.elements(&two) - self.elements(&tile));
            // Only a window that advances by its own length slides: otherwise instances lie between.
            if step == tile[dim] && new < one {
                window = true;
                factor = runs as f64 * one / (one + (runs - 1) as f64 * new);
                cause = vec![format!("{dim} {runs} (sliding window)")];
            }
        }
        if factor == 1.0 {
            return Reuse::none();
        }
        let level = self.mapping.levels.get(self.to);
        let (needs, has, supported) = match (self.tensor, level) {
            (Tensor::Outputs, Some(l)) => (
                "reduction: buffer that adds in place",
                format!("{} accumulates", l.level),
                true,
            ),
            (Tensor::Outputs, None) => (
                "reduction: buffer that adds in place",
                "read-modify-write at every step".to_owned(),
                false,
            ),
            (_, None) => (
                "stationary register at the lanes",
                "read again at every step".to_owned(),
                false,
            ),
            (tensor, Some(l)) if window => {
                let halo = self.arch.levels[self.to]
                    .bank(tensor)
                    .is_some_and(|b| b.halo.contains(tensor));
                let has = if halo {
                    "keeps the halo"
                } else {
                    "fetches the window again"
                };
                ("buffer that keeps the halo", format!("{} {has}", l.level), halo)
            }
            (_, Some(l)) => ("stationary buffer", format!("{} keeps the tile", l.level), true),
        };
        Reuse::new(factor, cause, needs, &has, supported)
    }
}

impl Reuse {
    fn none() -> Self {
        Reuse::new(1.0, Vec::new(), "", "", true)
    }

    fn new(factor: f64, cause: Vec<String>, needs: &str, has: &str, supported: bool) -> Self {
        Reuse {
            factor,
            cause,
            needs: needs.to_owned(),
            has: has.to_owned(),
            supported,
        }
    }

    fn cells(&self) -> [String; 4] {
        if self.factor == 1.0 {
            return ["1".to_owned(), "-".to_owned(), "-".to_owned(), "-".to_owned()];
        }
        let mark = if self.supported { "" } else { "no: " };
        [
            format!("{:.4}", self.factor)
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned(),
            self.cause.join(", "),
            self.needs.clone(),
            format!("{mark}{}", self.has),
        ]
    }
}

impl fmt::Display for ReuseAnalysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["tensor", "between", "reuse", "factor", "loops", "needs", "machine has"]);
        for line in &self.lines {
            for (kind, reuse) in [("spatial", &line.spatial), ("temporal", &line.temporal)] {
                let [factor, cause, needs, has] = reuse.cells();
                let between = format!("{} → {}", line.from, line.to);
                table.add_row([
                    line.tensor.to_string(),
                    between,
                    kind.to_owned(),
                    factor,
                    cause,
                    needs,
                    has,
                ]);
            }
        }
        for row in table.lines() {
            writeln!(f, "{}", row.trim_end())?;
        }
        Ok(())
    }
}
