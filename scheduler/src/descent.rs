//! Descent under the oracle: to the first better neighbour, until there is none or the evaluations are spent; and
//! iterated descent, which goes on from the best point with a few random steps away from it.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::judge::Judge;
use crate::moves::{Move, apply, moves};
use crate::random::shuffle;
use crate::space::{Point, Space};

/// Less than this relative improvement is none.
const IMPROVEMENT: f64 = 1e-6;

/// Goes down from `point` over the neighbours that `admitted` lets through, in an order drawn from `seed`, until the
/// judge has made `evaluations` evaluations in all.
pub(crate) fn descend(
    space: &Space<'_>,
    judge: &mut Judge<'_>,
    point: &mut Point,
    evaluations: u64,
    seed: u64,
    admitted: impl Fn(&Point) -> bool,
) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    judge.tried += 1;
    if !space.fits(point) {
        return;
    }
    judge.valid += 1;
    let Some(mut score) = judge.score(&space.mapping(point)) else {
        return;
    };
    loop {
        let mut steps: Vec<Move> = moves(space, point).into_iter().flatten().collect();
        shuffle(&mut steps, &mut rng);
        let mut better = None;
        for step in steps {
            if judge.evaluations >= evaluations {
                return;
            }
            let moved = apply(space, point, step);
            judge.tried += 1;
            if moved == *point || !space.fits(&moved) || !admitted(&moved) {
                continue;
            }
            judge.valid += 1;
            if let Some(found) = judge.score(&space.mapping(&moved))
                && found < score * (1.0 - IMPROVEMENT)
            {
                better = Some((found, moved));
                break;
            }
        }
        match better {
            Some((found, moved)) => (score, *point) = (found, moved),
            None => return,
        }
    }
}

/// Random steps away from the best point.
const KICKS: std::ops::RangeInclusive<usize> = 2..=4;
/// Share of the evaluations that the descents from the starting points may take together.
const FIRST: f64 = 0.5;

/// Descends from every one of `starts`, then again and again from near the best point, until the judge has made
/// `evaluations` evaluations in all.
pub(crate) fn iterate(space: &Space<'_>, judge: &mut Judge<'_>, starts: &[Point], evaluations: u64, seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(1);
    let before = judge.evaluations;
    let share = (evaluations.saturating_sub(before) as f64 * FIRST / starts.len().max(1) as f64) as u64;
    let mut best: Option<(f64, Point)> = None;
    let keep = |best: &mut Option<(f64, Point)>, judge: &mut Judge<'_>, point: Point| {
        let score = judge.score(&space.mapping(&point));
        if let Some(score) = score
            && best.as_ref().is_none_or(|b| score < b.0)
        {
            *best = Some((score, point));
        }
    };
    for (index, start) in starts.iter().enumerate() {
        let mut point = start.clone();
        judge.new_niche();
        let until = before + share * (index as u64 + 1);
        descend(space, judge, &mut point, until.min(evaluations), seed, |_| true);
        if judge.evaluations < evaluations && space.fits(&point) {
            keep(&mut best, judge, point);
        }
    }
    let mut idle = 0;
    while let Some((_, near)) = &best
        && judge.evaluations < evaluations
        && idle < 100
    {
        let mut point = near.clone();
        for _ in 0..rng.random_range(KICKS) {
            let steps: Vec<Move> = moves(space, &point).into_iter().flatten().collect();
            let moved = apply(space, &point, steps[rng.random_range(0..steps.len())]);
            if space.fits(&moved) {
                point = moved;
            }
        }
        if point == *near {
            idle += 1;
            continue;
        }
        idle = 0;
        judge.new_niche();
        let round = rng.random();
        descend(space, judge, &mut point, evaluations, round, |_| true);
        if judge.evaluations < evaluations {
            keep(&mut best, judge, point);
        }
    }
}
