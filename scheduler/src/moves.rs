//! Neighbours of a mapping: what descents and annealing step to.

use cyclonest_workloads::{Dim, Tensor};

use crate::space::{Point, Space};

/// A change of one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    /// Other temporal trips; what they give up goes to `to`, or to the outermost level.
    Trips {
        level: usize,
        dim: Dim,
        trips: u64,
        to: Option<usize>,
    },
    /// Two loops of a level change places.
    Swap { level: usize, a: usize, b: usize },
    /// Another spatial factor; what it gives up goes to the outermost level.
    Fan {
        level: usize,
        axis: usize,
        dim: Dim,
        trips: u64,
    },
    /// A spatial factor changes its dimension.
    Turn {
        level: usize,
        axis: usize,
        from: Dim,
        to: Dim,
    },
    /// A tensor is kept that bypassed the level, or the other way round.
    Keep { level: usize, tensor: Tensor },
}

/// Kinds of moves, in the order of [`moves`].
pub(crate) const KINDS: usize = 4;

/// All moves from `point`, by kind: tiling, permutation, spatial, bypass. Whether they fit is not tested.
pub(crate) fn moves(space: &Space<'_>, point: &Point) -> [Vec<Move>; KINDS] {
    [
        tilings(space, point),
        permutations(space, point),
        unrollings(space, point),
        bypasses(space, point),
    ]
}

/// `point` after `step`; products still reach the bounds.
pub(crate) fn apply(space: &Space<'_>, point: &Point, step: Move) -> Point {
    let mut moved = point.clone();
    match step {
        Move::Trips { level, dim, trips, to } => {
            if let Some(to) = to {
                let given = point.trips[level][dim].div_ceil(trips);
                moved.trips[to][dim] = moved.trips[to][dim].saturating_mul(given);
            }
            moved.trips[level][dim] = trips;
            space.settle(&mut moved, dim);
        }
        Move::Swap { level, a, b } => moved.order[level].swap(a, b),
        Move::Fan {
            level,
            axis,
            dim,
            trips,
        } => {
            moved.fan[level][axis][dim] = trips;
            space.settle(&mut moved, dim);
        }
        Move::Turn { level, axis, from, to } => {
            let fan = &mut moved.fan[level][axis];
            let factor = fan[from].min(space.problem.bounds[to]);
            fan[from] = 1;
            fan[to] = fan[to].saturating_mul(factor);
            space.settle(&mut moved, from);
            space.settle(&mut moved, to);
        }
        Move::Keep { level, tensor } => {
            let keeps = &mut moved.keeps[level];
            match keeps.contains(tensor) {
                true => keeps.remove(tensor),
                false => keeps.insert(tensor),
            }
        }
    }
    moved
}

/// Extent of `dim` inside the temporal loops of `level`.
fn inside(point: &Point, level: usize, dim: Dim) -> u64 {
    let fan = |l: usize| point.fan[l][0][dim] * point.fan[l][1][dim];
    (level + 1..point.trips.len()).fold(fan(level), |inside, l| {
        inside.saturating_mul(point.trips[l][dim]).saturating_mul(fan(l))
    })
}

/// The next smaller and larger number of trips that changes the number of outer ones, the double, the half, one, and
/// all.
fn trip_counts(left: u64, now: u64) -> Vec<u64> {
    let exact = |trips: u64| left.div_ceil(left.div_ceil(trips.clamp(1, left)));
    let outer = left.div_ceil(now);
    let mut counts = vec![
        1,
        left,
        exact(now.saturating_mul(2)),
        exact(now.div_ceil(2)),
        exact(now.div_ceil(3)),
        left.div_ceil(outer + 1),
    ];
    if outer > 1 {
        counts.push(left.div_ceil(outer - 1));
    }
    counts.sort_unstable();
    counts.dedup();
    counts.retain(|&count| count != now);
    counts
}

fn tilings(space: &Space<'_>, point: &Point) -> Vec<Move> {
    let mut moves = Vec::new();
    for level in (1..point.trips.len()).rev() {
        for dim in Dim::ALL {
            let left = space.problem.bounds[dim].div_ceil(inside(point, level, dim));
            let now = point.trips[level][dim];
            for trips in trip_counts(left, now) {
                moves.push(Move::Trips {
                    level,
                    dim,
                    trips,
                    to: None,
                });
                if trips < now {
                    let others = (1..point.trips.len()).filter(|&to| to != level);
                    moves.extend(others.map(|to| Move::Trips {
                        level,
                        dim,
                        trips,
                        to: Some(to),
                    }));
                }
            }
        }
    }
    moves
}

fn permutations(space: &Space<'_>, point: &Point) -> Vec<Move> {
    let mut moves = Vec::new();
    for level in 0..point.trips.len() {
        // Inside the burst only the levels between E and the lanes order what a lane rereads.
        if level > space.event && point.keeps[level].is_empty() {
            continue;
        }
        let runs: Vec<usize> = (0..8)
            .filter(|&i| point.trips[level][point.order[level][i]] > 1)
            .collect();
        for (i, &a) in runs.iter().enumerate() {
            moves.extend(runs[i + 1..].iter().map(|&b| Move::Swap { level, a, b }));
        }
    }
    moves
}

fn unrollings(space: &Space<'_>, point: &Point) -> Vec<Move> {
    let mut moves = Vec::new();
    for (level, axes) in space.meshes.iter().enumerate() {
        for (axis, mesh) in axes.iter().enumerate().filter(|(_, mesh)| mesh.extent > 1) {
            let fan = &point.fan[level][axis];
            let used: u64 = fan.0.iter().product();
            for &dim in &mesh.allowed {
                let now = fan[dim];
                let room = mesh.extent / (used / now);
                let most = room.min(space.problem.bounds[dim]);
                let mut counts = vec![1, most, now * 2, now.div_ceil(2), now + 1, now - 1];
                counts.sort_unstable();
                counts.dedup();
                let counts = counts
                    .into_iter()
                    .filter(|&trips| trips != now && (1..=most).contains(&trips));
                moves.extend(counts.map(|trips| Move::Fan {
                    level,
                    axis,
                    dim,
                    trips,
                }));
                if now > 1 {
                    let others = mesh
                        .allowed
                        .iter()
                        .filter(|&&to| to != dim && space.problem.bounds[to] > 1);
                    moves.extend(others.map(|&to| Move::Turn {
                        level,
                        axis,
                        from: dim,
                        to,
                    }));
                }
            }
        }
    }
    moves
}

fn bypasses(space: &Space<'_>, point: &Point) -> Vec<Move> {
    let levels = 1..point.keeps.len();
    levels
        .flat_map(|level| {
            space.holds[level]
                .iter()
                .map(move |tensor| Move::Keep { level, tensor })
        })
        .collect()
}
