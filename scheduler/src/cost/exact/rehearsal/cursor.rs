//! Positions in the temporal loops outside the PE level, as the PE in the corner counts them.

use cyclonest_workloads::{Dim, DimMap};

use super::super::nest::Nest;
use crate::cost::CostError;

/// Most temporal loops with more than one trip outside the PE level.
pub(super) const MAX_TURNS: usize = 48;

/// A temporal loop outside the PE level.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) dim: Dim,
    pub(super) trips: u32,
    /// Distance of two iterations in the index of the dimension.
    pub(super) weight: u64,
    pub(super) level: usize,
    position: i32,
}

/// The loops of a nest, outermost first.
pub(super) fn turns(nest: &Nest, event: usize, out: &mut Vec<Turn>) -> Result<(), CostError> {
    out.clear();
    for dim in Dim::ALL {
        for digit in nest.outside(event, dim) {
            if !digit.spatial && digit.weight < nest.bounds[dim] {
                out.push(Turn {
                    dim,
                    trips: digit.trips as u32,
                    weight: digit.weight,
                    level: digit.level,
                    position: digit.position,
                });
            }
        }
    }
    if out.len() > MAX_TURNS {
        return Err(CostError::NotExpressible(format!(
            "{} temporal loops outside the PE level, at most {MAX_TURNS} are expected",
            out.len()
        )));
    }
    out.sort_unstable_by_key(|t| t.position);
    Ok(())
}

/// A setting of the loops.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    pub(super) trip: [u32; MAX_TURNS],
    /// Lowest index of every dimension.
    pub(super) at: DimMap<u64>,
}

impl Cursor {
    /// The first setting.
    pub(super) const START: Cursor = Cursor {
        trip: [0; MAX_TURNS],
        at: DimMap([0; 8]),
    };

    /// Moves to the next existing setting of `turns`; returns which loop has moved on, the ones inside it begin anew.
    /// `None` after the last setting.
    #[inline]
    pub(super) fn advance(&mut self, turns: &[Turn], bounds: &DimMap<u64>) -> Option<usize> {
        for (k, turn) in turns.iter().enumerate().rev() {
            let at = &mut self.at[turn.dim];
            if self.trip[k] + 1 < turn.trips && *at + turn.weight < bounds[turn.dim] {
                self.trip[k] += 1;
                *at += turn.weight;
                return Some(k);
            }
            *at -= u64::from(self.trip[k]) * turn.weight;
            self.trip[k] = 0;
        }
        None
    }

    /// Trips of loop `k` from its current one on, this one included, while the loops inside it are at their first.
    pub(super) fn left(&self, k: usize, turns: &[Turn], bounds: &DimMap<u64>) -> u64 {
        let turn = &turns[k];
        let room = (bounds[turn.dim] - self.at[turn.dim]).div_ceil(turn.weight);
        u64::from(turn.trips - self.trip[k]).min(room)
    }

    /// Skips `trips` iterations of loop `k`.
    pub(super) fn skip(&mut self, k: usize, turns: &[Turn], trips: u32) {
        self.trip[k] += trips;
        self.at[turns[k].dim] += u64::from(trips) * turns[k].weight;
    }
}
