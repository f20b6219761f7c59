//! How well estimates agree with measurements: errors, correlations, and how sure they are.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use statrs::statistics::{Data, OrderStatistics, RankTieBreaker, Statistics};

/// Resamples behind every interval.
pub const RESAMPLES: usize = 1000;

/// A statistic with the interval in which it lies for 95 % of the bootstrap resamples (Efron's percentile interval).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Of the sample itself.
    pub value: f64,
    /// 2.5 % of the resamples are below.
    pub low: f64,
    /// 2.5 % of the resamples are above.
    pub high: f64,
}

/// One pair: what was measured and what a model said of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Measured; positive.
    pub measured: f64,
    /// Estimated.
    pub estimated: f64,
}

impl Pair {
    /// Signed relative error: +0.1 is 10 % too much.
    #[must_use]
    pub fn error(&self) -> f64 {
        (self.estimated - self.measured) / self.measured
    }
}

/// Agreement of estimates with measurements. A statistic that the sample does not define (fewer than two pairs, no
/// spread) is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Pairs.
    pub pairs: usize,
    /// Mean absolute relative error; `None` for estimates that are in no unit of the measurement.
    pub mean_error: Option<Interval>,
    /// Median absolute relative error.
    pub median_error: Option<f64>,
    /// Largest absolute relative error.
    pub largest_error: Option<f64>,
    /// Coefficient of determination, 1 − Σ(measured − estimated)² ÷ Σ(measured − mean)². Negative where the mean would
    /// be the better estimate.
    pub r2: Option<Interval>,
    /// Pearson's correlation.
    pub pearson: Option<Interval>,
    /// Spearman's rank correlation: Pearson's of the ranks, ties at their mean.
    pub spearman: Option<Interval>,
    /// Kendall's τ-b.
    pub kendall: Option<Interval>,
}

impl Agreement {
    /// Of `pairs`. Estimates that are no estimates of the measured quantity itself (`same_unit` is false) are judged by
    /// ranks alone. The same pairs and seed give the same intervals.
    #[must_use]
    pub fn of(pairs: &[Pair], same_unit: bool, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let resamples: Vec<Vec<Pair>> = (0..RESAMPLES)
            .map(|_| pairs.iter().map(|_| pairs[rng.random_range(0..pairs.len())]).collect())
            .collect();
        let interval = |statistic: fn(&[Pair]) -> Option<f64>| bootstrap(pairs, &resamples, statistic);
        let unit = |statistic: fn(&[Pair]) -> Option<f64>| if same_unit { interval(statistic) } else { None };
        let errors = || pairs.iter().map(|p| p.error().abs());
        let any = same_unit && !pairs.is_empty();
        Agreement {
            pairs: pairs.len(),
            mean_error: unit(mean_error),
            median_error: any.then(|| Data::new(errors().collect::<Vec<_>>()).median()),
            largest_error: any.then(|| errors().fold(0.0, f64::max)),
            r2: unit(r2),
            pearson: unit(|pairs| pearson(&measured(pairs), &estimated(pairs))),
            spearman: interval(spearman),
            kendall: interval(kendall),
        }
    }
}

fn bootstrap(pairs: &[Pair], resamples: &[Vec<Pair>], statistic: fn(&[Pair]) -> Option<f64>) -> Option<Interval> {
    let value = statistic(pairs)?;
    let defined: Vec<f64> = resamples.iter().filter_map(|resample| statistic(resample)).collect();
    if defined.is_empty() {
        return None;
    }
    let mut data = Data::new(defined);
    Some(Interval {
        value,
        low: data.quantile(0.025),
        high: data.quantile(0.975),
    })
}

fn measured(pairs: &[Pair]) -> Vec<f64> {
    pairs.iter().map(|p| p.measured).collect()
}

fn estimated(pairs: &[Pair]) -> Vec<f64> {
    pairs.iter().map(|p| p.estimated).collect()
}

fn mean_error(pairs: &[Pair]) -> Option<f64> {
    (!pairs.is_empty()).then(|| pairs.iter().map(|p| p.error().abs()).mean())
}

fn r2(pairs: &[Pair]) -> Option<f64> {
    let mean = measured(pairs).mean();
    let residual: f64 = pairs.iter().map(|p| (p.measured - p.estimated).powi(2)).sum();
    let spread: f64 = pairs.iter().map(|p| (p.measured - mean).powi(2)).sum();
    (spread > 0.0).then(|| 1.0 - residual / spread)
}

/// Pearson's correlation of two samples of the same length; `None` where one of them has no spread.
fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() < 2 {
        return None;
    }
    let spread = a.std_dev() * b.std_dev();
    (spread > 0.0).then(|| (a.covariance(b) / spread).clamp(-1.0, 1.0))
}

fn ranks(values: Vec<f64>) -> Vec<f64> {
    Data::new(values).ranks(RankTieBreaker::Average)
}

fn spearman(pairs: &[Pair]) -> Option<f64> {
    pearson(&ranks(measured(pairs)), &ranks(estimated(pairs)))
}

/// Kendall's τ-b, with ties, in O(n log n) (Knight, J. Am. Stat. Assoc. 61, 1966): sorted by the measured values, the
/// discordant pairs are the exchanges that a merge sort by the estimated ones makes.
fn kendall(pairs: &[Pair]) -> Option<f64> {
    let mut sorted = pairs.to_vec();
    sorted.sort_by(|a, b| {
        let first = a.measured.total_cmp(&b.measured);
        first.then(a.estimated.total_cmp(&b.estimated))
    });
    let all = choose_two(sorted.len());
    let tied_measured = tied(&sorted, |a, b| a.measured == b.measured);
    let tied_both = tied(&sorted, |a, b| a == b);
    let mut values = estimated(&sorted);
    let exchanges = sort_counting(&mut values);
    let tied_estimated = tied(&values, |a, b| a == b);
    let spread = ((all - tied_measured) as f64 * (all - tied_estimated) as f64).sqrt();
    if spread == 0.0 {
        return None;
    }
    // Concordant − discordant: all pairs but the tied ones, less twice the discordant.
    let surplus = (all + tied_both) as f64 - (tied_measured + tied_estimated) as f64 - 2.0 * exchanges as f64;
    Some(surplus / spread)
}

fn choose_two(n: usize) -> u64 {
    let n = n as u64;
    n * n.saturating_sub(1) / 2
}

/// Pairs within the runs of equal neighbours.
fn tied<T>(sorted: &[T], equal: impl Fn(&T, &T) -> bool) -> u64 {
    sorted
        .chunk_by(|a, b| equal(a, b))
        .map(|run| choose_two(run.len()))
        .sum()
}

/// Sorts `values` and counts the pairs that stood in the wrong order.
fn sort_counting(values: &mut [f64]) -> u64 {
    if values.len() < 2 {
        return 0;
    }
    let middle = values.len() / 2;
    let mut exchanges = sort_counting(&mut values[..middle]) + sort_counting(&mut values[middle..]);
    let (mut left, mut right) = (0, middle);
    let mut merged = Vec::with_capacity(values.len());
    while left < middle || right < values.len() {
        if right == values.len() || (left < middle && values[left] <= values[right]) {
            merged.push(values[left]);
            left += 1;
        } else {
            merged.push(values[right]);
            exchanges += (middle - left) as u64;
            right += 1;
        }
    }
    values.copy_from_slice(&merged);
    exchanges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(values: &[(f64, f64)]) -> Vec<Pair> {
        let pair = |&(measured, estimated): &(f64, f64)| Pair { measured, estimated };
        values.iter().map(pair).collect()
    }

    fn random(seed: u64, length: usize, values: u64) -> Vec<Pair> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut draw = || rng.random_range(1..=values) as f64;
        (0..length)
            .map(|_| Pair {
                measured: draw(),
                estimated: draw(),
            })
            .collect()
    }

    /// The definition: every pair of pairs.
    fn kendall_by_pairs(pairs: &[Pair]) -> Option<f64> {
        let (mut surplus, mut measured, mut estimated) = (0_i64, 0_i64, 0_i64);
        for (i, a) in pairs.iter().enumerate() {
            for b in &pairs[..i] {
                let sign = |x: f64| i64::from(x > 0.0) - i64::from(x < 0.0);
                let (m, e) = (sign(a.measured - b.measured), sign(a.estimated - b.estimated));
                surplus += m * e;
                measured += m * m;
                estimated += e * e;
            }
        }
        let spread = (measured as f64 * estimated as f64).sqrt();
        (spread > 0.0).then(|| surplus as f64 / spread)
    }

    #[test]
    fn kendall_is_that_of_all_pairs() {
        for seed in 0..200 {
            let sample = random(seed, seed as usize % 30, 2 + seed % 40);
            match (kendall(&sample), kendall_by_pairs(&sample)) {
                (None, None) => {}
                (Some(a), Some(b)) => assert!((a - b).abs() < 1e-12, "seed {seed}: {a} {b}"),
                other => panic!("seed {seed}: {other:?}"),
            }
        }
    }

    /// Worked out by hand: ranks 1 2 3 4 5 against 2 1 3 5 4, d² = 1 1 0 1 1.
    #[test]
    fn rank_correlations_of_a_small_sample() {
        let sample = pairs(&[(10.0, 20.0), (20.0, 10.0), (30.0, 33.0), (40.0, 90.0), (50.0, 70.0)]);
        assert!((spearman(&sample).unwrap() - (1.0 - 6.0 * 4.0 / (5.0 * 24.0))).abs() < 1e-12);
        assert!((kendall(&sample).unwrap() - (8.0 - 2.0) / 10.0).abs() < 1e-12);
    }

    #[test]
    fn errors_are_relative_to_what_was_measured() {
        let sample = pairs(&[(100.0, 110.0), (200.0, 150.0), (400.0, 400.0)]);
        let agreement = Agreement::of(&sample, true, 0);
        assert!((agreement.mean_error.unwrap().value - 0.35 / 3.0).abs() < 1e-12);
        assert_eq!(agreement.median_error, Some(0.1));
        assert_eq!(agreement.largest_error, Some(0.25));
        // Residuals 10² + 50² over spread (133⅓)² + (33⅓)² + (166⅔)².
        assert!((agreement.r2.unwrap().value - (1.0 - 2600.0 / (420_000.0 / 9.0))).abs() < 1e-9);
    }

    #[test]
    fn a_model_that_is_always_right_agrees_completely() {
        let sample: Vec<Pair> = random(1, 40, 1000)
            .iter()
            .map(|p| Pair {
                estimated: p.measured,
                ..*p
            })
            .collect();
        let agreement = Agreement::of(&sample, true, 3);
        for statistic in [agreement.r2, agreement.pearson, agreement.spearman, agreement.kendall] {
            let interval = statistic.unwrap();
            assert!((interval.value - 1.0).abs() < 1e-9 && (interval.low - 1.0).abs() < 1e-9);
        }
        assert_eq!(agreement.mean_error.unwrap().value, 0.0);
    }

    #[test]
    fn intervals_hold_the_value_and_depend_on_the_seed_only() {
        let sample: Vec<Pair> = random(7, 60, 50)
            .iter()
            .map(|p| Pair {
                measured: p.measured,
                estimated: p.measured + 0.5 * p.estimated,
            })
            .collect();
        let agreement = Agreement::of(&sample, true, 11);
        assert_eq!(agreement, Agreement::of(&sample, true, 11));
        assert_ne!(agreement, Agreement::of(&sample, true, 12));
        for interval in [agreement.mean_error, agreement.pearson, agreement.kendall].map(Option::unwrap) {
            assert!(
                interval.low < interval.value && interval.value < interval.high,
                "{interval:?}"
            );
        }
    }

    /// Of a normal mean of known spread, the interval is ±1.96 σ/√n.
    #[test]
    fn the_interval_of_a_mean_has_the_width_of_theory() {
        let sample: Vec<Pair> = random(5, 400, 1000)
            .iter()
            .map(|p| Pair {
                measured: 1000.0,
                estimated: 1000.0 + p.estimated,
            })
            .collect();
        let interval = Agreement::of(&sample, true, 0).mean_error.unwrap();
        let deviation = sample.iter().map(Pair::error).std_dev();
        let expected = 2.0 * 1.96 * deviation / 20.0;
        assert!(
            ((interval.high - interval.low) / expected - 1.0).abs() < 0.1,
            "{interval:?} {expected}"
        );
    }

    #[test]
    fn what_is_not_defined_is_none() {
        let none = Agreement::of(&[], true, 0);
        assert_eq!(
            (none.pairs, none.mean_error, none.kendall, none.r2),
            (0, None, None, None)
        );
        let one = Agreement::of(&pairs(&[(10.0, 11.0)]), true, 0);
        assert!(one.mean_error.is_some() && one.pearson.is_none() && one.kendall.is_none());
        let ranks_only = Agreement::of(&random(2, 20, 90), false, 0);
        assert!(ranks_only.mean_error.is_none() && ranks_only.r2.is_none() && ranks_only.kendall.is_some());
    }
}
