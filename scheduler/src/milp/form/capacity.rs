//! What fits: heights of input tiles, tiles, and banks with the ways to share them.

use cyclonest_workloads::{Dim, DimMap, Tensor};

use super::{BIG, EPSILON, Factor, Form, Formulation, fixed, halo, log, reach};
use crate::milp::program::{Linear, Var};
use crate::space::{Point, primes};

/// Ways to share a bank: one part of the capacity per tensor, largest demands first tried.
const HALVES: [[f64; 2]; 5] = [[0.5, 0.5], [0.25, 0.75], [0.75, 0.25], [0.125, 0.875], [0.875, 0.125]];
const THIRDS: [[f64; 3]; 4] = [
    [0.3333, 0.3333, 0.3333],
    [0.5, 0.25, 0.25],
    [0.25, 0.5, 0.25],
    [0.25, 0.25, 0.5],
];

/// A bank and the ways to share it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shared {
    pub(super) level: usize,
    pub(super) kept: Vec<Tensor>,
    /// log₂ of the elements of each tensor's tile, per way.
    pub(super) rooms: Vec<Vec<f64>>,
    /// 1 for the way that is taken.
    pub(super) chosen: Vec<Var>,
}

impl Form<'_> {
    pub(super) fn input_heights(&mut self, formulation: &Formulation<'_>) {
        let problem = self.space.problem;
        let axes = [
            (Dim::P, Dim::R, problem.stride.0, problem.dilation.0),
            (Dim::Q, Dim::S, problem.stride.1, problem.dilation.1),
        ];
        self.planes = axes.map(|(windows, taps, stride, dilation)| {
            let (p, r) = (formulation.bounds[windows], formulation.bounds[taps]);
            halo::planes(&divisors(p), &divisors(r), stride, dilation, formulation.slack)
        });
        for level in 0..self.space.arch.levels.len() {
            if !self.space.holds[level].contains(Tensor::Inputs) {
                continue;
            }
            let heights = [0, 1].map(|axis| {
                let (windows, taps, ..) = axes[axis];
                let height = |plane: &halo::Plane| {
                    let mut height = fixed(plane.constant);
                    height.add(plane.windows, &self.inside(level, |d| d == windows));
                    height.add(plane.taps, &self.inside(level, |d| d == taps));
                    height
                };
                let heights: Vec<Linear> = self.planes[axis].iter().map(height).collect();
                if let [height] = &heights[..] {
                    return height.clone();
                }
                let mut variable = Linear::default();
                variable.plus(1.0, self.program.real(0.0, BIG));
                for above in heights {
                    self.program.at_most(above, &variable);
                }
                variable
            });
            self.heights[level] = Some(heights);
        }
    }

    /// log₂ of the elements of a tile; 0 at the lanes.
    pub(super) fn tile(&self, tensor: Tensor, level: usize) -> Linear {
        if level == self.space.arch.levels.len() {
            return Linear::default();
        }
        let Tensor::Inputs = tensor else {
            return self.inside(level, |dim| tensor.is_relevant(dim));
        };
        let mut tile = self.inside(level, |dim| matches!(dim, Dim::N | Dim::G | Dim::C));
        for height in self.heights[level].iter().flatten() {
            tile.add(1.0, height);
        }
        tile
    }

    /// Tiles fit their banks, in one of the ways to share each.
    pub(super) fn capacities(&mut self) {
        let arch = self.space.arch;
        for level in 1..arch.levels.len() {
            for bank in &arch.levels[level].banks {
                let words = bank.size.words();
                let Some(size) = words.or(bank.size.bits()) else {
                    continue;
                };
                let kept: Vec<Tensor> = bank
                    .holds
                    .iter()
                    .filter(|&t| self.space.holds[level].contains(t))
                    .collect();
                // log₂ of the elements of one tile if the tensor had the bank for itself.
                let alone = |tensor: Tensor| {
                    let unit = match words {
                        Some(_) => 1,
                        None => arch.bits(tensor, tensor == Tensor::Outputs),
                    };
                    log(size) - log(bank.slots_of(tensor) * unit)
                };
                let splits: Vec<Vec<f64>> = match kept.len() {
                    0 => continue,
                    1 => vec![vec![1.0]],
                    2 => HALVES.iter().map(|s| s.to_vec()).collect(),
                    _ => THIRDS.iter().map(|s| s.to_vec()).collect(),
                };
                let possible: Vec<Vec<f64>> = splits
                    .into_iter()
                    .map(|split| {
                        kept.iter()
                            .zip(split)
                            .map(|(&t, part)| self.rounded(t, alone(t) + part.log2()))
                            .collect::<Vec<f64>>()
                    })
                    .filter(|rooms| rooms.iter().all(|&room| room >= 0.0))
                    .collect();
                let chosen: Vec<Var> = possible.iter().map(|_| self.program.integer(1)).collect();
                let mut one = Linear::default();
                chosen.iter().for_each(|&var| {
                    one.plus(1.0, var);
                });
                self.program.equal(one, 1.0);
                for (position, &tensor) in kept.iter().enumerate() {
                    let mut room = fixed(EPSILON);
                    for (rooms, &var) in possible.iter().zip(&chosen) {
                        room.plus(rooms[position], var);
                    }
                    self.program.at_most(self.tile(tensor, level), &room);
                }
                self.banks.push(Shared {
                    level,
                    kept,
                    rooms: possible,
                    chosen,
                });
            }
        }
    }

    /// `room` (log₂ of elements) rounded down to what the tile of `tensor` can be, where it is a product of factors.
    fn rounded(&self, tensor: Tensor, room: f64) -> f64 {
        if tensor == Tensor::Inputs || room < 0.0 {
            return room;
        }
        let most = (room.exp2() * (1.0 + EPSILON)).floor() as u64;
        let relevant = |f: &&Factor| tensor.is_relevant(f.dim);
        room.min(log(reach(most, self.factors.iter().filter(relevant))))
    }

    /// True if the program admits `point`: meshes, rule 7, and some way to share every bank.
    pub(crate) fn admits(&self, point: &Point) -> bool {
        self.space.meshes_hold(point) && self.space.finishes_outputs(point) && self.shares_of(point).is_some()
    }

    /// For every shared or split bank the first way to share it that holds the tiles of `point`.
    pub(super) fn shares_of(&self, point: &Point) -> Option<Vec<usize>> {
        let mut extents = vec![DimMap::ones(); point.trips.len() + 1];
        for level in (0..point.trips.len()).rev() {
            extents[level] = DimMap::from_fn(|dim| {
                let own = point.trips[level][dim] * point.fan[level][0][dim] * point.fan[level][1][dim];
                u64::saturating_mul(extents[level + 1][dim], own)
            });
        }
        let tile = |tensor: Tensor, level: usize| {
            let e = &extents[level];
            let height = |axis: usize, windows: Dim, taps: Dim| {
                let planes = self.planes[axis].iter().map(|plane| plane.at(e[windows], e[taps]));
                planes.fold(f64::NEG_INFINITY, f64::max)
            };
            match tensor {
                Tensor::Inputs => {
                    let plain = log(e[Dim::N]) + log(e[Dim::G]) + log(e[Dim::C]);
                    plain + height(0, Dim::P, Dim::R) + height(1, Dim::Q, Dim::S)
                }
                _ => e
                    .iter()
                    .filter(|&(dim, _)| tensor.is_relevant(dim))
                    .map(|(_, &e)| log(e))
                    .sum(),
            }
        };
        let holds = |bank: &Shared, rooms: &Vec<f64>| {
            let kept = bank.kept.iter().zip(rooms);
            kept.into_iter()
                .all(|(&tensor, room)| tile(tensor, bank.level) <= room + EPSILON)
        };
        self.banks
            .iter()
            .map(|bank| bank.rooms.iter().position(|rooms| holds(bank, rooms)))
            .collect()
    }
}

/// Divisors in ascending order.
fn divisors(n: u64) -> Vec<u64> {
    let mut divisors = vec![1];
    for prime in primes(n) {
        let larger: Vec<u64> = divisors.iter().map(|d| d * prime).collect();
        divisors.extend(larger);
        divisors.sort_unstable();
        divisors.dedup();
    }
    divisors
}
