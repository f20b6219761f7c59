//! A good solution before the program is solved: local search over single prime factors under the program's own
//! objective. Branch and bound then begins with a solution to prune by, and always has one to return.

use cyclonest_workloads::{Dim, DimMap};

use super::form::{CLASSES, Form, Slot, order};
use super::measure::measure;
use super::terms::Inventory;
use super::weights::Weights;
use crate::Objective;
use crate::space::{Point, Space};

/// Improvement below which a step is none.
const LEAST: f64 = 1e-9;

/// The local optimum that steepest descent reaches from everything at the outermost level.
pub(super) fn start(
    space: &Space<'_>,
    form: &Form<'_>,
    inventory: &Inventory,
    weights: &Weights,
    objective: Objective,
    bounds: &DimMap<u64>,
) -> Option<Point> {
    let value = |point: &Point| measure(space, inventory, weights, objective, point);
    let mut point = space.origin();
    point.trips[0] = *bounds;
    if !form.admits(&point) {
        return None;
    }
    let mut best = value(&point);
    loop {
        let mut better: Option<(f64, Point)> = None;
        for moved in neighbours(space, form, &point) {
            if !form.admits(&moved) {
                continue;
            }
            let found = value(&moved);
            if found < better.as_ref().map_or(best - LEAST, |b| b.0) {
                better = Some((found, moved));
            }
        }
        match better {
            Some((found, moved)) => (best, point) = (found, moved),
            None => return Some(canonical(space, point)),
        }
    }
}

/// The same point as the program writes it: of equal axes, X has more on it.
fn canonical(space: &Space<'_>, mut point: Point) -> Point {
    for (fan, [x, y]) in point.fan.iter_mut().zip(&space.meshes) {
        let used = |axis: usize| fan[axis].0.iter().product::<u64>();
        if x.extent == y.extent && x.allowed == y.allowed && used(1) > used(0) {
            fan.swap(0, 1);
        }
    }
    point
}

/// One factor in another slot; two factors of a dimension moved together; another class innermost.
fn neighbours(space: &Space<'_>, form: &Form<'_>, point: &Point) -> Vec<Point> {
    let mut all = Vec::new();
    for factor in &form.factors {
        for &(from, _) in &factor.counts {
            if !at(point, from, factor.dim).is_multiple_of(factor.prime) {
                continue;
            }
            for &(to, _) in factor.counts.iter().filter(|(to, _)| *to != from) {
                let mut moved = point.clone();
                let mut left = at(point, from, factor.dim);
                // Once, and all of them.
                let mut steps = 0;
                while left.is_multiple_of(factor.prime) && left > 1 {
                    left /= factor.prime;
                    set(&mut moved, from, factor.dim, left);
                    let there = at(&moved, to, factor.dim);
                    set(&mut moved, to, factor.dim, there * factor.prime);
                    steps += 1;
                    if steps == 1 || !left.is_multiple_of(factor.prime) {
                        all.push(moved.clone());
                    }
                }
            }
        }
    }
    for level in 0..space.arch.levels.len() {
        for class in 0..CLASSES.len() {
            let order = order(class);
            if order != point.order[level] {
                let mut moved = point.clone();
                moved.order[level] = order;
                all.push(moved);
            }
        }
    }
    // Inside a burst, reductions stand innermost where there are any (rule 7).
    for moved in &mut all {
        for level in space.event..space.sums_at(&space.holds) {
            let reduces = moved.trips[level]
                .iter()
                .any(|(dim, &trips)| trips > 1 && dim.is_reduction());
            if reduces {
                moved.order[level] = order(2);
            }
        }
    }
    all
}

fn at(point: &Point, slot: Slot, dim: Dim) -> u64 {
    match slot {
        Slot::Temporal(level) => point.trips[level][dim],
        Slot::Spatial(level, axis) => point.fan[level][axis][dim],
    }
}

fn set(point: &mut Point, slot: Slot, dim: Dim, trips: u64) {
    match slot {
        Slot::Temporal(level) => point.trips[level][dim] = trips,
        Slot::Spatial(level, axis) => point.fan[level][axis][dim] = trips,
    }
}
