//! Descent under the oracle: to the first better neighbour, until there is none or the evaluations are spent.

use rand::SeedableRng;
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
