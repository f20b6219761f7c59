//! The cost model `cosa`: the objective of CoSA (Huang et al., ISCA 2021) on any mapping.
//!
//! CoSA schedules by a mixed-integer program whose objective is linear in the logarithms of the loop factors:
//!
//! `10 · compute − 0.1 · utilisation + 1 · traffic`
//!
//! - **compute**: log₂ of the product of all temporal loops.
//! - **utilisation**: Σ over on-chip levels and tensors kept there of log₂ of the tile.
//! - **traffic**: Σ over tensors of log₂ of the tile sent over the network below the global level, of that level's
//!   spatial loops, of its temporal loops from the innermost one that the tensor depends on outwards, and of the
//!   temporal loops of the levels outside it.
//!
//! The global level is the one whose network fans out first, seen from outside. The original works on a fixed set of
//! levels, applies the stride per prime factor and ignores the filter's halo; with [`Tiles::Factors`] tiles are
//! products of loop factors, as its linear program sums them, with [`Tiles::Elements`] real tiles, stride and halo
//! included.
//!
//! # Known faults
//!
//! The weights are constants of the code, although the paper derives them from micro-benchmarks. Nothing in the
//! objective knows bandwidths, latencies or stalls; equal objectives are common and differ by a quarter in cycles.

use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_workloads::{Problem, Tensor};

use super::{CostError, CostModel, Estimate};

/// Weights of the objective's three parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// Of compute.
    pub compute: f64,
    /// Of utilisation, which is subtracted.
    pub utilisation: f64,
    /// Of traffic.
    pub traffic: f64,
}

impl Weights {
    /// Those of the original's code.
    pub const ORIGINAL: Weights = Weights {
        compute: 10.0,
        utilisation: 0.1,
        traffic: 1.0,
    };
}

impl Default for Weights {
    fn default() -> Self {
        Weights::ORIGINAL
    }
}

/// What the size of a tile is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tiles {
    /// Its elements, with halo and stride, clipped at the bound.
    #[default]
    Elements,
    /// The product of its loop factors: of inputs those of N, G, C, P and Q.
    Factors,
}

/// The cost model `cosa`.
#[derive(Debug, Clone, Copy, Default)]
pub struct CosaModel {
    /// Weights of the parts.
    pub weights: Weights,
    /// How tiles are measured.
    pub tiles: Tiles,
}

/// The objective and its parts, in powers of two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CosaObjective {
    /// log₂ of the temporal iterations.
    pub compute: f64,
    /// Σ log₂ of on-chip tiles.
    pub utilisation: f64,
    /// Σ log₂ of the network's traffic.
    pub traffic: f64,
    /// The weighted sum, to be minimised.
    pub objective: f64,
}

impl CosaModel {
    /// The objective of `mapping`, whether it is valid or not.
    #[must_use]
    pub fn objective(&self, problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> CosaObjective {
        let levels = &mapping.levels;
        let log = |trips: u64| (trips.max(1) as f64).log2();
        let temporal = |l: usize| levels[l].temporal.iter().map(|t| log(t.1)).sum::<f64>();
        let compute: f64 = (0..levels.len()).map(temporal).sum();
        let size = |l: usize, tensor| self.tile(problem, mapping, l, tensor);
        let utilisation: f64 = (1..levels.len())
            .flat_map(|l| levels[l].keeps.iter().map(move |t| (l, t)))
            .map(|(l, t)| size(l, t))
            .sum();
        let last = levels.len() - 1;
        let global = (0..levels.len())
            .find(|&l| arch.child_mesh(l).0 * arch.child_mesh(l).1 > 1)
            .unwrap_or(last);
        let outside: f64 = (0..global).map(temporal).sum();
        let spatial: f64 = levels[global].spatial.iter().map(|s| log(s.1)).sum();
        let traffic = Tensor::ALL
            .into_iter()
            .map(|tensor| {
                let sent = if global < last { size(global + 1, tensor) } else { 0.0 };
                let loops = &levels[global].temporal;
                let innermost = loops.iter().rposition(|t| t.1 > 1 && tensor.is_relevant(t.0));
                let repeated: f64 = innermost.map_or(0.0, |i| loops[..=i].iter().map(|t| log(t.1)).sum());
                sent + spatial + repeated + outside
            })
            .sum();
        let w = &self.weights;
        CosaObjective {
            compute,
            utilisation,
            traffic,
            objective: w.compute * compute - w.utilisation * utilisation + w.traffic * traffic,
        }
    }

    /// log₂ of the tile of `tensor` at level `l`.
    fn tile(&self, problem: &Problem, mapping: &Mapping, l: usize, tensor: Tensor) -> f64 {
        match self.tiles {
            Tiles::Elements => (mapping.tile_elements(problem, l, tensor).max(1) as f64).log2(),
            Tiles::Factors => cyclonest_workloads::Dim::ALL
                .into_iter()
                .filter(|&d| tensor.is_relevant(d))
                // Rows and columns of the filter slide over inputs that the outputs' loops already count.
                .filter(|d| {
                    tensor != Tensor::Inputs || !matches!(d, cyclonest_workloads::Dim::R | cyclonest_workloads::Dim::S)
                })
                .map(|d| (mapping.trips_within(l, d).max(1) as f64).log2())
                .sum(),
        }
    }
}

impl CostModel for CosaModel {
    fn name(&self) -> &str {
        "cosa"
    }

    fn in_cycles(&self) -> bool {
        false
    }

    /// `cycles` is 2^(objective ÷ weight of compute): it orders mappings as the objective does, in the unit of its
    /// heaviest part. The model says nothing of energy; it is 0.
    fn evaluate(&self, problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Estimate, CostError> {
        let violations = mapping.check(problem, arch);
        if !violations.is_empty() {
            let all: Vec<String> = violations.iter().map(ToString::to_string).collect();
            return Err(CostError::Invalid(all.join("; ")));
        }
        let o = self.objective(problem, arch, mapping);
        Ok(Estimate {
            cycles: (o.objective / self.weights.compute).exp2(),
            energy_pj: 0.0,
            counts: None,
            parts: vec![
                ("compute".to_owned(), o.compute),
                ("utilisation".to_owned(), o.utilisation),
                ("traffic".to_owned(), o.traffic),
                ("objective".to_owned(), o.objective),
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclonest_arch::{Axis, Loop, SpatialLoop, bundled};
    use cyclonest_workloads::{Dim, DimMap, TensorSet};

    /// K4 C2 P16 on a machine with 2×2 PEs, everything a power of two, so that the logarithms can be counted.
    fn example() -> (Problem, Accelerator, Mapping) {
        let arch = bundled::load("small3").unwrap();
        let mut bounds = DimMap::ones();
        (bounds[Dim::K], bounds[Dim::C], bounds[Dim::P]) = (4, 2, 16);
        let problem = Problem::new(bounds);
        let level = |l: usize, temporal: Vec<Loop>, spatial: Vec<SpatialLoop>| cyclonest_arch::LevelMapping {
            level: arch.levels[l].name.clone(),
            temporal,
            spatial,
            keeps: TensorSet::ALL,
        };
        let levels = vec![
            level(0, vec![Loop(Dim::P, 2)], vec![]),
            level(
                1,
                vec![Loop(Dim::P, 4), Loop(Dim::K, 2)],
                vec![SpatialLoop(Dim::K, 2, Axis::X), SpatialLoop(Dim::C, 2, Axis::Y)],
            ),
            level(2, vec![Loop(Dim::P, 2)], vec![]),
        ];
        (problem, arch.clone(), Mapping { bounds, levels })
    }

    #[test]
    fn parts_are_sums_of_logarithms() {
        let (problem, arch, mapping) = example();
        for tiles in [Tiles::Elements, Tiles::Factors] {
            let model = CosaModel {
                tiles,
                ..CosaModel::default()
            };
            let o = model.objective(&problem, &arch, &mapping);
            // Temporal: P 2·4·2, K 2.
            assert_eq!(o.compute, 5.0);
            // Buffer: W 4·2, I 2·8, O 4·8; PE: W 1, I 2, O 2.
            assert_eq!(o.utilisation, (3.0 + 4.0 + 5.0) + (0.0 + 1.0 + 1.0));
            // Tiles 0+1+1; spatial 4 each; repeats W from K out 8, I from P out 4, O 8; DRAM 2 each.
            assert_eq!(o.traffic, 2.0 + 3.0 * 2.0 + (3.0 + 2.0 + 3.0) + 3.0);
            assert_eq!(o.objective, 10.0 * 5.0 - 0.1 * 14.0 + 19.0);
        }
    }

    #[test]
    fn the_estimate_orders_as_the_objective() {
        let (problem, arch, mapping) = example();
        let mut worse = mapping.clone();
        worse.levels[1].temporal.reverse();
        let cycles = |m: &Mapping| CosaModel::default().evaluate(&problem, &arch, m).unwrap().cycles;
        let objective = |m: &Mapping| CosaModel::default().objective(&problem, &arch, m).objective;
        assert_eq!(
            cycles(&mapping) < cycles(&worse),
            objective(&mapping) < objective(&worse)
        );
        assert!(objective(&mapping) != objective(&worse));
    }
}
