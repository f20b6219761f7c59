//! The states of a directive and the cases of a level.

use super::levels::{Level, Map, PerVar};

/// Where a directive is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// At its first window.
    Init,
    /// At a full window after that.
    Steady,
    /// At the end of the dimension.
    Edge,
}

/// A directive's position with what follows from it.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    pub(super) position: Position,
    pub(super) occurrences: i64,
    /// The first window covers the dimension.
    pub(super) unrolled: bool,
    /// The window is cut off.
    pub(super) edge: bool,
    /// The last active instance has a smaller window than the others.
    pub(super) partial: bool,
}

impl State {
    pub(super) fn is_init(&self) -> bool {
        self.position == Position::Init
    }
}

/// The states of `map` over a dimension of size `dim`.
pub(super) fn states(map: &Map, clusters: i64, dim: i64) -> Vec<State> {
    let covered = if map.spatial {
        map.size + map.offset * (clusters - 1)
    } else {
        map.size
    };
    let init_edge = dim < covered;
    let mut states = Vec::with_capacity(3);
    states.push(State {
        position: Position::Init,
        occurrences: 1,
        unrolled: dim <= covered,
        edge: init_edge,
        partial: map.spatial && init_edge,
    });
    let moves = (dim - map.size) / map.offset;
    let (steady, edge, partial) = if map.spatial {
        let stride = map.offset * clusters;
        let steady = (moves + 1) / clusters - 1;
        let edge = dim > covered && (steady + 1) * stride + covered > dim && steady * stride + covered != dim;
        let rest = dim - (steady + 1) * stride;
        let active = if rest < map.size {
            1
        } else {
            (rest - map.size) / map.offset + 1
        };
        (steady, edge, (active - 1) * map.offset + map.size < rest)
    } else {
        (moves, moves * map.offset + map.size < dim, false)
    };
    let after = |position, occurrences, partial| State {
        position,
        occurrences,
        unrolled: false,
        edge: position == Position::Edge,
        partial,
    };
    if covered < dim && steady > 0 {
        states.push(after(Position::Steady, steady, false));
    }
    if !init_edge && edge {
        states.push(after(Position::Edge, 1, partial));
    }
    states
}

/// The cases of a level, in the order of the original: the outer directives change one case earlier than an
/// odometer would change them. The order matters for what is kept of the last case only.
pub(super) struct Cases {
    states: Vec<Vec<State>>,
    /// How many cases one state of each directive lasts.
    lasts: Vec<usize>,
    count: usize,
    /// For each directive the one whose state counts: the last of its dimension.
    deciding: Option<Vec<usize>>,
}

impl Cases {
    pub(super) fn new(level: &Level, dims: &PerVar) -> Self {
        let states: Vec<Vec<State>> = level
            .maps
            .iter()
            .map(|map| states(map, level.clusters, dims[map.var as usize]))
            .collect();
        let mut lasts = vec![1; states.len()];
        let mut count = 1;
        for (last, states) in lasts.iter_mut().zip(&states).rev() {
            *last = count;
            count *= states.len();
        }
        let last_of = |map: &Map| level.maps.iter().rposition(|m| m.var == map.var).unwrap_or(0);
        Cases {
            states,
            lasts,
            count,
            deciding: level.twice.then(|| level.maps.iter().map(last_of).collect()),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Writes the states of case `i`, one per directive, and returns its occurrences.
    pub(super) fn fill(&self, i: usize, case: &mut Vec<State>) -> Option<i64> {
        case.clear();
        let mut occurrences = 1i64;
        for (states, last) in self.states.iter().zip(&self.lasts) {
            let state = states[i.div_ceil(*last) % states.len()];
            occurrences = occurrences.checked_mul(state.occurrences)?;
            case.push(state);
        }
        if let Some(deciding) = &self.deciding {
            for (i, &last) in deciding.iter().enumerate() {
                case[i] = case[last];
            }
        }
        Some(occurrences)
    }
}
