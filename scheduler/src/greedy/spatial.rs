//! Which dimensions are unrolled over which meshes.

use cyclonest_arch::{Accelerator, Axis, SpatialLoop};
use cyclonest_workloads::{Dim, DimMap, Problem};

use super::state::{Unrolled, meshes};

/// Ways to fill one axis that are followed further.
const PER_AXIS: usize = 5;
/// Ways to fill the machine that are followed further, after each mesh.
const IN_ALL: usize = 32;

/// Dimensions from the first choice to the last where utilisation is the same: output channels share inputs and
/// never meet partial sums; input channels share sums; groups share nothing, filter taps are few.
const PREFERENCE: [Dim; 8] = [Dim::K, Dim::C, Dim::P, Dim::Q, Dim::N, Dim::G, Dim::R, Dim::S];

/// A way to unroll the problem over all meshes.
#[derive(Debug, Clone)]
struct Way {
    /// Spatial loops per level, in the order of the levels.
    loops: Vec<Unrolled>,
    /// Iterations of each dimension that are left to the temporal loops.
    left: DimMap<u64>,
    /// Share of the instances that work, in the mean.
    used: f64,
    /// Rank of its dimensions; smaller is better.
    rank: usize,
}

/// Ways to unroll `problem`, from the inside out, the best used first; the last one unrolls nothing.
pub(super) fn ways(problem: &Problem, arch: &Accelerator) -> Vec<Vec<Unrolled>> {
    let nothing = vec![Unrolled::new(); arch.levels.len()];
    let mut ways = vec![Way {
        loops: nothing.clone(),
        left: problem.bounds,
        used: 1.0,
        rank: 0,
    }];
    for (level, axes) in meshes(arch).iter().enumerate().rev() {
        for (axis, extent, allowed) in axes {
            if *extent == 1 {
                continue;
            }
            let grown = ways.iter().flat_map(|way| {
                fills(&way.left, *extent, allowed)
                    .into_iter()
                    .map(move |fill| way.with(level, *axis, &fill))
            });
            let mut grown: Vec<Way> = grown.collect();
            // The sort is stable: ties keep the order of generation.
            grown.sort_by(|a, b| b.used.total_cmp(&a.used).then(a.rank.cmp(&b.rank)));
            grown.dedup_by(|a, b| a.left == b.left && same_dims(&a.loops[level], &b.loops[level]));
            grown.truncate(IN_ALL);
            ways = grown;
        }
    }
    let mut all: Vec<Vec<Unrolled>> = ways.into_iter().map(|way| way.loops).collect();
    if !all.contains(&nothing) {
        all.push(nothing);
    }
    all
}

/// True if both unroll the same dimensions by the same factors, whatever the axis.
fn same_dims(a: &Unrolled, b: &Unrolled) -> bool {
    let sorted = |loops: &Unrolled| {
        let mut pairs: Vec<(Dim, u64)> = loops.iter().map(|s| (s.0, s.1)).collect();
        pairs.sort_unstable();
        pairs
    };
    sorted(a) == sorted(b)
}

impl Way {
    fn with(&self, level: usize, axis: Axis, fill: &Fill) -> Way {
        let mut way = self.clone();
        for &(dim, factor) in &fill.factors {
            way.loops[level].push(SpatialLoop(dim, factor, axis));
            way.left[dim] = way.left[dim].div_ceil(factor);
        }
        way.used *= fill.used;
        way.rank += fill.rank;
        way
    }
}

/// A way to fill one axis.
#[derive(Debug, Clone)]
struct Fill {
    factors: Vec<(Dim, u64)>,
    used: f64,
    rank: usize,
}

/// The best ways to fill an axis of `extent` with up to three of the `allowed` dimensions.
fn fills(left: &DimMap<u64>, extent: u64, allowed: &[Dim]) -> Vec<Fill> {
    let dims: Vec<Dim> = PREFERENCE
        .into_iter()
        .filter(|d| allowed.contains(d) && left[*d] > 1)
        .collect();
    let mut fills = vec![Fill {
        factors: Vec::new(),
        used: 1.0 / extent as f64,
        rank: 0,
    }];
    for (i, &a) in dims.iter().enumerate() {
        fills.push(best(left, extent, &[a]));
        for (j, &b) in dims.iter().enumerate().skip(i + 1) {
            fills.push(best(left, extent, &[a, b]));
            for &c in dims.iter().skip(j + 1).filter(|_| dims.len() <= 4) {
                fills.push(best(left, extent, &[a, b, c]));
            }
        }
    }
    fills.sort_by(|a, b| {
        b.used
            .total_cmp(&a.used)
            .then(a.factors.len().cmp(&b.factors.len()))
            .then(a.rank.cmp(&b.rank))
    });
    fills.dedup_by(|a, b| a.factors == b.factors);
    fills.truncate(PER_AXIS);
    fills
}

/// The factors of `dims` that use most of an axis of `extent`; where several do, the ones that leave the least.
fn best(left: &DimMap<u64>, extent: u64, dims: &[Dim]) -> Fill {
    let rank_of = |dim: Dim| PREFERENCE.iter().position(|&p| p == dim).unwrap_or(0);
    let mut best = Fill {
        factors: Vec::new(),
        used: 0.0,
        rank: dims.iter().map(|&d| rank_of(d)).sum(),
    };
    let mut factors = vec![1_u64; dims.len()];
    search(left, extent, dims, 0, &mut factors, &mut |factors| {
        let used: f64 = dims
            .iter()
            .zip(factors)
            .map(|(&dim, &f)| left[dim] as f64 / left[dim].div_ceil(f) as f64)
            .product::<f64>()
            / extent as f64;
        if used > best.used + 1e-12 {
            best.used = used;
            best.factors = dims.iter().copied().zip(factors.iter().copied()).collect();
            best.factors.retain(|f| f.1 > 1);
        }
    });
    best
}

/// Calls `visit` for all factors of `dims` whose product fits `extent`, larger first factors first.
fn search(
    left: &DimMap<u64>,
    extent: u64,
    dims: &[Dim],
    at: usize,
    factors: &mut Vec<u64>,
    visit: &mut impl FnMut(&[u64]),
) {
    if at == dims.len() {
        visit(factors);
        return;
    }
    let bound = left[dims[at]];
    let mut factor = bound.min(extent);
    while factor >= 1 {
        // Only factors that no smaller one with the same number of trips can replace.
        factor = bound.div_ceil(bound.div_ceil(factor));
        factors[at] = factor;
        search(left, extent / factor, dims, at + 1, factors, visit);
        factor -= 1;
    }
    factors[at] = 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(pairs: &[(Dim, u64)]) -> DimMap<u64> {
        let mut left = DimMap::ones();
        pairs.iter().for_each(|&(dim, n)| left[dim] = n);
        left
    }

    #[test]
    fn an_axis_is_filled_with_what_divides_it_best() {
        let fills = fills(&left(&[(Dim::K, 13), (Dim::C, 64)]), 16, &Dim::ALL);
        assert_eq!(fills[0].factors, [(Dim::C, 16)]);
        assert!((fills[0].used - 1.0).abs() < 1e-9);
    }

    #[test]
    fn two_small_dimensions_share_an_axis() {
        let fills = fills(&left(&[(Dim::R, 3), (Dim::C, 4)]), 12, &[Dim::R, Dim::C]);
        assert_eq!(fills[0].factors, [(Dim::C, 4), (Dim::R, 3)]);
    }

    #[test]
    fn only_allowed_dimensions_are_unrolled() {
        let fills = fills(&left(&[(Dim::R, 3), (Dim::K, 64)]), 12, &[Dim::R]);
        assert!(fills.iter().all(|f| f.factors.iter().all(|&(d, _)| d == Dim::R)));
    }
}
