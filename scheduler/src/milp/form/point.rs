//! Between points and solutions of the program.

use cyclonest_workloads::{Dim, DimMap};

use super::{CLASSES, Form, Slot};
use crate::milp::measure::leaves_sums;
use crate::milp::program::Var;
use crate::space::Point;

impl Form<'_> {
    /// The point that a solution stands for.
    pub(crate) fn point(&self, values: &[f64]) -> Point {
        let mut point = self.space.origin();
        point.trips[0] = DimMap::ones();
        for factor in &self.factors {
            for &(slot, var) in &factor.counts {
                let trips = factor.prime.pow(values[var].round() as u32);
                match slot {
                    Slot::Temporal(level) => point.trips[level][factor.dim] *= trips,
                    Slot::Spatial(level, axis) => point.fan[level][axis][factor.dim] *= trips,
                }
            }
        }
        for (level, orders) in self.orders.iter().enumerate() {
            let innermost = orders.iter().position(|&var| values[var] > 0.5).unwrap_or(2);
            point.order[level] = order(innermost);
        }
        Dim::ALL.iter().for_each(|&dim| self.space.settle(&mut point, dim));
        point
    }

    /// Values of all integers of the program for `point`; `None` if it does not admit it.
    pub(crate) fn integers(&self, point: &Point) -> Option<Vec<(Var, f64)>> {
        let mut values = Vec::new();
        for factor in &self.factors {
            for &(slot, var) in &factor.counts {
                let mut trips = match slot {
                    Slot::Temporal(level) => point.trips[level][factor.dim],
                    Slot::Spatial(level, axis) => point.fan[level][axis][factor.dim],
                };
                let mut count = 0;
                while trips.is_multiple_of(factor.prime) {
                    trips /= factor.prime;
                    count += 1;
                }
                values.push((var, f64::from(count)));
            }
        }
        for ((orders, order), trips) in self.orders.iter().zip(&point.order).zip(&point.trips) {
            // The class of the innermost loop that there is: absent ones further in stand in nobody's way.
            let last = order.iter().rev().find(|&&dim| trips[dim] > 1);
            let class = last.and_then(|dim| CLASSES.iter().position(|class| class.contains(dim)));
            let innermost = class.unwrap_or(2);
            let chosen = orders.iter().enumerate();
            values.extend(chosen.map(|(class, &var)| (var, f64::from(u8::from(class == innermost)))));
        }
        for (&(tensor, level), &var) in &self.changes {
            let changes = point.trips[level]
                .iter()
                .any(|(dim, &trips)| trips > 1 && !CLASSES[tensor as usize].contains(&dim));
            values.push((var, f64::from(u8::from(changes))));
        }
        for (&child, &var) in &self.partial {
            let reducing = leaves_sums(self.space, point, child);
            values.push((var, f64::from(u8::from(reducing))));
        }
        for (bank, chosen) in self.banks.iter().zip(self.shares_of(point)?) {
            let ways = bank.chosen.iter().enumerate();
            values.extend(ways.map(|(way, &var)| (var, f64::from(u8::from(way == chosen)))));
        }
        Some(values)
    }
}

/// The loops with class `innermost` innermost and G outermost.
pub(crate) fn order(innermost: usize) -> [Dim; 8] {
    let mut order = [Dim::G; 8];
    let classes = [1, 0, 2]
        .into_iter()
        .filter(|&class| class != innermost)
        .chain([innermost]);
    let dims = classes.flat_map(|class| CLASSES[class].iter().copied());
    order[1..].iter_mut().zip(dims).for_each(|(place, dim)| *place = dim);
    order
}
