//! Traffic of perfectly factorised nests in closed form.
//!
//! With perfect factors every tile of a level has the same shape, and between two steps it moves by a vector that
//! depends only on the loop that advances. Timeloop compares that vector with the one before: equal vectors keep
//! the overlap, a change of direction discards it. So the innermost non-trivial loop decides: its vector is `v`;
//! loop steps that also move by `v` (an irrelevant loop further out, or the same dimension split in two) cost what
//! `v` costs, all others a full tile.

use super::nest::{Block, DataSpace, Nest, NestLoop, Workload};
use super::traffic::{LevelTraffic, Record};

/// Traffic of every level, inner to outer. The nest must be perfect.
pub(super) fn traffic(workload: &Workload, nest: &Nest) -> Vec<LevelTraffic> {
    let mut extents = vec![1u64; workload.dims.len()];
    let mut levels = Vec::with_capacity(nest.blocks.len());
    for (level, block) in nest.blocks.iter().enumerate() {
        let child_extents = extents.clone();
        let outer_temporal: Vec<(u64, usize, u64)> = temporal_above(nest, level, &child_extents);
        let records = workload
            .tensors
            .iter()
            .map(|tensor| {
                let size = tensor.box_size(&child_extents);
                let delta = if level == 0 {
                    // A MAC has no memory: it reads at every step.
                    nest.temporal_steps()
                } else {
                    sequence_cost(tensor, &child_extents, size, &outer_temporal)
                };
                groups(tensor, block, &child_extents)
                    .into_iter()
                    .map(|(multicast, scatter, hops)| Record {
                        multicast,
                        scatter,
                        accesses: (scatter * delta) as f64,
                        hops,
                    })
                    .collect()
            })
            .collect();
        for l in block.spatial() {
            extents[l.dim] *= l.bound;
        }
        let sizes = |e: &[u64]| workload.tensors.iter().map(|t| t.box_size(e)).collect::<Vec<_>>();
        let spatial_tile = (block.fanout() > 1).then(|| sizes(&extents));
        for l in &block.temporal {
            extents[l.dim] *= l.bound;
        }
        levels.push(LevelTraffic {
            tile: sizes(&extents),
            spatial_tile,
            records,
            fanout: block.fanout(),
        });
    }
    levels
}

/// All temporal loops outside the tile of level `level − 1`, inner to outer: trips, dimension, and how far one
/// iteration moves along the dimension.
fn temporal_above(nest: &Nest, level: usize, child_extents: &[u64]) -> Vec<(u64, usize, u64)> {
    let mut reach = child_extents.to_vec();
    let mut loops = Vec::new();
    for block in &nest.blocks[level..] {
        for l in block.spatial() {
            reach[l.dim] *= l.bound;
        }
        for l in &block.temporal {
            if l.bound > 1 {
                loops.push((l.bound, l.dim, reach[l.dim]));
                reach[l.dim] *= l.bound;
            }
        }
    }
    loops
}

/// Elements delivered to one instance over the whole run.
fn sequence_cost(tensor: &DataSpace, extents: &[u64], size: u64, loops: &[(u64, usize, u64)]) -> u64 {
    let Some(&(trips, dim, distance)) = loops.first() else {
        return size;
    };
    let axes = &tensor.axes;
    let along = |dim: usize, distance: i64| -> Vec<i64> {
        let moved = |terms: &Vec<(usize, u64)>| {
            let coefficients = terms.iter().filter(|&&(d, _)| d == dim).map(|&(_, c)| c as i64);
            coefficients.sum::<i64>() * distance
        };
        axes.iter().map(moved).collect()
    };
    let v = along(dim, distance as i64);
    let widths: Vec<u64> = tensor.axis_extents(extents).collect();
    let cost_of_v = step_cost(&v, &widths, size);
    let steps_of = |i: usize| (loops[i].0 - 1) * loops[i + 1..].iter().map(|l| l.0).product::<u64>();
    let mut total = size + (trips - 1) * loops[1..].iter().map(|l| l.0).product::<u64>() * cost_of_v;
    // Moving back over everything that the loops inside have advanced.
    let mut back = along(dim, -((trips as i64 - 1) * distance as i64));
    for (i, &(trips, dim, distance)) in loops.iter().enumerate().skip(1) {
        let step = along(dim, distance as i64);
        let carry: Vec<i64> = back.iter().zip(&step).map(|(b, s)| b + s).collect();
        total += steps_of(i) * if carry == v { cost_of_v } else { size };
        for (b, s) in back.iter_mut().zip(&step) {
            *b -= (trips as i64 - 1) * s;
        }
    }
    total
}

/// New elements of a tile that moved by `v`: none if it did not move, the slice that it advanced if it moved along
/// one axis, all of it otherwise.
fn step_cost(v: &[i64], widths: &[u64], size: u64) -> u64 {
    let mut moved = v.iter().zip(widths).filter(|(v, _)| **v != 0);
    match (moved.next(), moved.next()) {
        (None, _) => 0,
        (Some((v, w)), None) => size / w * v.unsigned_abs().min(*w),
        _ => size,
    }
}

/// Children with equal tiles form a group: (members, groups with that many members, summed hops of those groups).
fn groups(tensor: &DataSpace, block: &Block, extents: &[u64]) -> Vec<(u64, u64, f64)> {
    if block.fanout() == 1 {
        return vec![(1, 1, 0.0)];
    }
    // A corner is one number: the axes in mixed radix, each as wide as the fan-out moves along it.
    let mut radix = 1u128;
    let mut steps: Vec<u128> = Vec::new();
    let moves: Vec<u64> = {
        let mut reach = extents.to_vec();
        let step = |l: &NestLoop| {
            let step = reach[l.dim];
            reach[l.dim] *= l.bound;
            step
        };
        block.spatial().map(step).collect()
    };
    steps.resize(moves.len(), 0);
    for terms in &tensor.axes {
        let mut span = 0u128;
        for ((l, step), moved) in block.spatial().zip(&moves).zip(&mut steps) {
            let along: u64 = terms.iter().filter(|t| t.0 == l.dim).map(|t| t.1 * step).sum();
            *moved += u128::from(along) * radix;
            span += u128::from(along) * u128::from(l.bound - 1);
        }
        radix *= span + 1;
    }
    let mut corners: Vec<(u128, u64)> = vec![(0, 0)];
    let mut count = 1;
    for (l, step) in block.spatial().zip(&steps) {
        let inner = corners.len();
        for i in 1..l.bound {
            for c in 0..inner {
                let (corner, id) = corners[c];
                corners.push((corner + step * u128::from(i), id + i * count));
            }
        }
        count *= l.bound;
    }
    corners.sort_unstable();
    let mesh = (block.fanout_x(), block.fanout() / block.fanout_x());
    let mut found: std::collections::BTreeMap<u64, (u64, f64)> = std::collections::BTreeMap::new();
    for group in corners.chunk_by(|a, b| a.0 == b.0) {
        let entry = found.entry(group.len() as u64).or_default();
        entry.0 += 1;
        entry.1 += hops(group.iter().map(|g| g.1), mesh);
    }
    found.into_iter().map(|(m, (n, h))| (m, n, h)).collect()
}

/// Hops of a multicast on an x×y mesh: injected at X = 0 in the middle of Y, along X to the farthest member, then
/// along Y to every member.
pub(super) fn hops(members: impl Iterator<Item = u64>, (x, y): (u64, u64)) -> f64 {
    let centre = (y as f64 - 1.0) / 2.0;
    let (mut farthest, mut vertical) = (0, 0.0);
    for id in members {
        farthest = farthest.max(id % x);
        vertical += ((id / x) as f64 - centre).abs();
    }
    farthest as f64 + vertical
}
