//! Weights of the program's composite objective, from micro-benchmarks run in the simulator.
//!
//! CoSA weighs compute against traffic by micro-benchmarks of the machine (Huang et al., ISCA 2021, section III-D). Here
//! they are small layers of three kinds: those that compute much per element (*compute*), those that touch every weight
//! once (*memory*), and those whose operands and sums go to and from many PEs (*communication*). Each is mapped in many
//! ways, good and bad ones, and simulated. Every part of the objective is a logarithm, so are the cycles, and the weights
//! are those of the least squares
//!
//! > log₂ cycles ≈ a + bottleneck · B + compute · C + traffic · Σ levels · tensors · T
//!
//! with no weight below zero: first over the levels, then over the tensors, in turns. Half of the mappings are held out;
//! how well the objective ranks them says what the weights are worth, beside the default weights and CoSA's constants.
//!
//! Utilisation gets no weight: a full buffer saves no cycle by itself, and what it saves is in the traffic. The offset of
//! the balance form is the mean of weighted traffic less weighted compute over the mappings in which compute and the
//! busiest port or channel take the same time to within a factor of √2; the balance itself stays off until asked for.

use cyclonest_arch::Accelerator;
use cyclonest_scheduler::cost::CostModel;
use cyclonest_scheduler::{Objective, Request, Terms, Weights, by_name};
use cyclonest_workloads::{DimMap, Problem, Tensor, TensorMap};

use crate::oracle::Simulated;

/// What a micro-benchmark stresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Many multiplications per element.
    Compute,
    /// Every weight is used once or a few times.
    Memory,
    /// Operands and sums of many PEs.
    Communication,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 3] = [Kind::Compute, Kind::Memory, Kind::Communication];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Compute => "compute",
            Kind::Memory => "memory",
            Kind::Communication => "communication",
        }
    }
}

/// The layers, bounds N G K C P Q R S.
const LAYERS: [(Kind, [u64; 8]); 6] = [
    (Kind::Compute, [1, 1, 32, 32, 14, 14, 3, 3]),
    (Kind::Compute, [1, 1, 16, 16, 28, 28, 3, 3]),
    (Kind::Memory, [1, 1, 256, 512, 1, 1, 1, 1]),
    (Kind::Memory, [4, 1, 512, 128, 1, 1, 1, 1]),
    (Kind::Communication, [1, 1, 128, 128, 7, 7, 1, 1]),
    (Kind::Communication, [1, 1, 64, 64, 14, 14, 1, 1]),
];

/// One simulated mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// What its layer stresses.
    pub kind: Kind,
    /// The parts of the objective.
    pub terms: Terms,
    /// log₂ of the simulated cycles.
    pub cycles: f64,
    /// Held out of the fit.
    pub held_out: bool,
}

/// Weights and what they are worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The weights.
    pub weights: Weights,
    /// The samples.
    pub samples: Vec<Sample>,
}

impl Calibration {
    /// Rank correlation (Spearman) of the objective under `weights` with the simulated cycles, over the held-out samples
    /// of one kind or of all.
    #[must_use]
    pub fn rank(&self, arch: &Accelerator, weights: &Weights, kind: Option<Kind>) -> f64 {
        let held: Vec<&Sample> = self
            .samples
            .iter()
            .filter(|s| s.held_out && kind.is_none_or(|kind| kind == s.kind))
            .collect();
        let objective: Vec<f64> = held.iter().map(|s| s.terms.objective(arch, weights)).collect();
        let cycles: Vec<f64> = held.iter().map(|s| s.cycles).collect();
        correlation(&ranks(&objective), &ranks(&cycles))
    }
}

/// A micro-benchmark: one mapping of one small layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MicroBenchmark {
    /// What its layer stresses.
    pub kind: Kind,
    /// The layer.
    pub problem: Problem,
    /// Number of the mapping.
    pub index: u64,
}

/// The micro-benchmarks: every layer in `mappings` ways.
#[must_use]
pub fn micro_benchmarks(mappings: u64) -> Vec<MicroBenchmark> {
    let all = LAYERS.into_iter().flat_map(|(kind, bounds)| {
        (0..mappings).map(move |index| MicroBenchmark {
            kind,
            problem: Problem::new(DimMap(bounds)),
            index,
        })
    });
    all.collect()
}

/// Maps and simulates one micro-benchmark; `None` if the machine cannot run it. Every second mapping is a random one,
/// every other one the best of 16; of both, every second pair is held out of the fit.
#[must_use]
pub fn run(arch: &Accelerator, benchmark: &MicroBenchmark, seed: u64) -> Option<Sample> {
    let MicroBenchmark { kind, problem, index } = benchmark;
    let request = Request {
        budget: Some(if index % 2 == 0 { 1 } else { 16 }),
        seed: seed.wrapping_mul(1_000_003).wrapping_add(*index),
        ..Request::new(problem, arch)
    };
    let found = by_name("random")?.schedule(&request).ok()?;
    let simulated = Simulated.evaluate(problem, arch, &found.mapping).ok()?;
    Some(Sample {
        kind: *kind,
        terms: Terms::new(problem, arch, &found.mapping, Objective::Cycles),
        cycles: simulated.cycles.log2(),
        held_out: index / 2 % 2 == 1,
    })
}

/// The weights of the least squares.
///
/// # Errors
/// If there are fewer than 20 samples.
pub fn fit(arch: &Accelerator, samples: Vec<Sample>) -> Result<Calibration, String> {
    if samples.len() < 20 {
        return Err(format!(
            "only {} micro-benchmarks ran on {}; 20 are needed",
            samples.len(),
            arch.name
        ));
    }
    Ok(Calibration {
        weights: weights(arch, &samples),
        samples,
    })
}

/// Turns between levels and tensors.
const TURNS: usize = 4;

fn weights(arch: &Accelerator, samples: &[Sample]) -> Weights {
    let train: Vec<&Sample> = samples.iter().filter(|s| !s.held_out).collect();
    let cycles: Vec<f64> = train.iter().map(|s| s.cycles).collect();
    let inner = arch.levels.len() - 1;
    let mut levels = vec![1.0; inner];
    let mut tensors = [1.0; 3];
    let (mut bottleneck, mut compute) = (1.0, 0.0);
    for turn in 0..TURNS {
        // Columns: bottleneck, compute, then one per level (per tensor): its traffic, as the others weigh it.
        let by_level = turn % 2 == 0;
        let rows: Vec<Vec<f64>> = train
            .iter()
            .map(|sample| {
                let mut row = vec![sample.terms.bottleneck, sample.terms.compute];
                row.resize(2 + if by_level { inner } else { 3 }, 0.0);
                for &(level, tensor, part) in &sample.terms.traffic {
                    match by_level {
                        true => row[2 + level - 1] += part * tensors[tensor as usize],
                        false => row[2 + tensor as usize] += part * levels[level - 1],
                    }
                }
                row
            })
            .collect();
        let found = least_squares(&rows, &cycles);
        (bottleneck, compute) = (found[0], found[1]);
        match by_level {
            true => levels.copy_from_slice(&found[2..]),
            false => tensors.copy_from_slice(&found[2..]),
        }
        // The product of both counts; the tensors' largest factor is 1.
        let most = tensors.iter().copied().fold(0.0, f64::max);
        if most > 0.0 {
            tensors.iter_mut().for_each(|t| *t /= most);
            levels.iter_mut().for_each(|l| *l *= most);
        }
    }
    let traffic = levels.iter().copied().fold(0.0, f64::max);
    let mut weights = Weights {
        bottleneck: rounded(bottleneck),
        compute: rounded(compute),
        traffic: rounded(traffic),
        utilization: 0.0,
        tensors: TensorMap::from_fn(|tensor: Tensor| Some(rounded(tensors[tensor as usize]))),
        levels: arch.levels[1..]
            .iter()
            .zip(&levels)
            .map(|(level, &l)| {
                (
                    level.name.clone(),
                    rounded(if traffic > 0.0 { l / traffic } else { 1.0 }),
                )
            })
            .collect(),
        ..Weights::default()
    };
    let apart = |sample: &Sample| {
        let traffic = sample.terms.traffic.iter();
        let traffic: f64 = traffic
            .map(|&(level, tensor, part)| part * weights.traffic * weights.factor(&arch.levels[level].name, tensor))
            .sum();
        traffic - weights.compute * sample.terms.compute
    };
    let balanced: Vec<f64> = samples
        .iter()
        .filter(|s| (s.terms.transfers - s.terms.compute - (arch.compute.interval as f64).log2()).abs() < 0.5)
        .map(apart)
        .collect();
    if !balanced.is_empty() {
        weights.offset = rounded(balanced.iter().sum::<f64>() / balanced.len() as f64);
    }
    weights
}

/// Four decimals: more would say more than the micro-benchmarks do.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Least squares with an intercept and coefficients from 0 on, by coordinate descent on the centred columns.
fn least_squares(rows: &[Vec<f64>], values: &[f64]) -> Vec<f64> {
    let count = rows.len() as f64;
    let columns = rows[0].len();
    let mean = |of: &dyn Fn(usize) -> f64| (0..rows.len()).map(of).sum::<f64>() / count;
    let means: Vec<f64> = (0..columns).map(|c| mean(&|i| rows[i][c])).collect();
    let centre = mean(&|i| values[i]);
    let gram: Vec<Vec<f64>> = (0..columns)
        .map(|a| {
            let with = |b: usize| rows.iter().map(|r| (r[a] - means[a]) * (r[b] - means[b])).sum();
            (0..columns).map(with).collect()
        })
        .collect();
    let aim: Vec<f64> = (0..columns)
        .map(|c| {
            let pairs = rows.iter().zip(values);
            pairs.map(|(r, v)| (r[c] - means[c]) * (v - centre)).sum()
        })
        .collect();
    let mut found = vec![0.0_f64; columns];
    for _ in 0..20_000 {
        let mut moved = 0.0_f64;
        for c in 0..columns {
            if gram[c][c] < 1e-9 {
                continue;
            }
            let others: f64 = (0..columns).filter(|&o| o != c).map(|o| gram[c][o] * found[o]).sum();
            let next = ((aim[c] - others) / gram[c][c]).max(0.0);
            moved = moved.max((next - found[c]).abs());
            found[c] = next;
        }
        if moved < 1e-9 {
            break;
        }
    }
    found
}

/// Ranks from 0, ties sharing their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let mut to = from;
        while to + 1 < order.len() && values[order[to + 1]] == values[order[from]] {
            to += 1;
        }
        for &index in &order[from..=to] {
            ranks[index] = (from + to) as f64 / 2.0;
        }
        from = to + 1;
    }
    ranks
}

/// Pearson's correlation; 0 where one side does not vary.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len().max(1) as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let products =
        |x: &[f64], mx: f64, y: &[f64], my: f64| -> f64 { x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum() };
    let scale = (products(a, mean_a, a, mean_a) * products(b, mean_b, b, mean_b)).sqrt();
    if scale == 0.0 {
        0.0
    } else {
        products(a, mean_a, b, mean_b) / scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_squares_finds_what_made_the_values_and_stays_at_or_above_zero() {
        let rows: Vec<Vec<f64>> = (0..40_u32)
            .map(|i| vec![f64::from(i % 7), f64::from(i % 5), f64::from(i % 3)])
            .collect();
        let values: Vec<f64> = rows.iter().map(|r| 3.0 + 2.0 * r[0] + 0.5 * r[1]).collect();
        let found = least_squares(&rows, &values);
        assert!(
            (found[0] - 2.0).abs() < 1e-6 && (found[1] - 0.5).abs() < 1e-6 && found[2].abs() < 1e-6,
            "{found:?}"
        );
        let falling: Vec<f64> = rows.iter().map(|r| 2.0 * r[0] - r[1]).collect();
        assert_eq!(least_squares(&rows, &falling)[1], 0.0);
    }

    #[test]
    fn ranks_correlate_whatever_the_scale() {
        let values = [1.0, 5.0, 2.0, 2.0, 9.0];
        assert_eq!(ranks(&values), [0.0, 3.0, 1.5, 1.5, 4.0]);
        let powers: Vec<f64> = values.iter().map(|v| f64::exp2(*v)).collect();
        assert!((correlation(&ranks(&values), &ranks(&powers)) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn calibrated_weights_rank_unseen_mappings_better_than_constants() {
        let arch = cyclonest_arch::bundled::load("small3").expect("bundled");
        let run = || {
            let all = micro_benchmarks(8);
            fit(&arch, all.iter().filter_map(|b| super::run(&arch, b, 1)).collect()).expect("calibrated")
        };
        let calibration = run();
        assert_eq!(calibration.weights.check(&arch), Vec::<String>::new());
        assert!(calibration.weights.bottleneck + calibration.weights.compute > 0.0);
        let own = calibration.rank(&arch, &calibration.weights, None);
        let cosa = calibration.rank(&arch, &Weights::cosa(), None);
        assert!(own > 0.8 && own > cosa, "{own} against {cosa}");
        assert_eq!(calibration, run(), "the same on every run");
    }
}
