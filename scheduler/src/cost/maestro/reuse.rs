//! How much moves in one case: the reuse analysis.

use super::MaestroError;
use super::cases::{Position, State};
use super::levels::{Level, Problem, Tensor};
use cyclonest_arch::directives::Var;

/// Which instance is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pe {
    /// The first of the level.
    pub(super) first: bool,
    /// The last, with a window that is cut off.
    pub(super) partial: bool,
}

const FIRST: Pe = Pe {
    first: true,
    partial: false,
};
const OTHER: Pe = Pe {
    first: false,
    partial: false,
};
const FIRST_PARTIAL: Pe = Pe {
    first: true,
    partial: true,
};
const LAST_PARTIAL: Pe = Pe {
    first: false,
    partial: true,
};

/// What is counted of an instance's outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    /// Outputs that the instances before it do not have.
    Outputs,
    /// Partial sums of such outputs.
    Sums,
    /// Partial sums of all its outputs.
    AllSums,
}

/// One case of one level.
pub(super) struct Case<'a> {
    pub(super) problem: &'a Problem,
    pub(super) index: usize,
    pub(super) level: &'a Level,
    pub(super) states: &'a [State],
}

/// How a tensor is spread over the instances.
struct Spread {
    spatial: bool,
    edge: bool,
    partial: bool,
}

impl Case<'_> {
    pub(super) fn is_all_init(&self) -> bool {
        self.states.iter().all(State::is_init)
    }

    fn state(&self, var: Var) -> &State {
        &self.states[self.level.place[var as usize]]
    }

    fn spread(&self, tensor: &Tensor) -> Spread {
        let mut spread = Spread {
            spatial: false,
            edge: false,
            partial: false,
        };
        for &var in &tensor.vars {
            let place = self.level.place[var as usize];
            if self.level.maps[place].spatial {
                spread.spatial = true;
                spread.partial = self.states[place].partial;
                spread.edge |= self.states[place].edge;
            }
        }
        spread
    }

    /// Sums `volume` over the instances of a spread tensor: the first, the full ones, the partial one.
    fn over_instances(&self, spread: &Spread, mut volume: impl FnMut(Pe) -> Result<i64, MaestroError>) -> Sum {
        let (all, edge) = (self.level.clusters, self.level.edge_clusters);
        if !spread.spatial {
            return volume(FIRST);
        }
        if !spread.edge {
            return Ok(volume(FIRST)? + (all - 1) * volume(OTHER)?);
        }
        let mut sum = volume(if edge == 1 && spread.partial {
            FIRST_PARTIAL
        } else {
            FIRST
        })?;
        if edge > 1 {
            let partial = i64::from(spread.partial);
            sum += (edge - partial - 1).max(0) * volume(OTHER)?;
            if spread.partial {
                sum += volume(LAST_PARTIAL)?;
            }
        }
        Ok(sum)
    }

    /// Elements of an input that enter the level.
    pub(super) fn ingress(&self, tensor: &Tensor) -> Sum {
        self.over_instances(&self.spread(tensor), |pe| self.pe_ingress(tensor, pe))
    }

    /// Elements of the output that leave the level.
    pub(super) fn egress(&self) -> Sum {
        let output = &self.problem.output;
        self.over_instances(&self.spread(output), |pe| Ok(self.pe_egress(pe, Count::Outputs)))
    }

    /// The tile of one instance.
    fn pe_mapped(&self, tensor: &Tensor, pe: Pe) -> i64 {
        let (level, mut volume) = (self.level, 1);
        for (map, state) in level.maps.iter().zip(self.states) {
            if !tensor.vars.contains(&map.var) {
                continue;
            }
            let (full, edge) = (level.mapped[map.var as usize], level.mapped_edge[map.var as usize]);
            volume *= match (map.spatial, state.edge) {
                (_, false) => full,
                (false, true) => edge,
                (true, true) if level.edge_clusters == 1 => {
                    if pe.first || pe.partial {
                        edge
                    } else {
                        1
                    }
                }
                (true, true) => {
                    if pe.partial {
                        edge
                    } else {
                        full
                    }
                }
            };
        }
        volume
    }

    /// What one instance has to load in this case.
    fn pe_ingress(&self, tensor: &Tensor, pe: Pe) -> Sum {
        let level = self.level;
        let Some(changing) = self.states.iter().rposition(|s| !s.is_init()) else {
            return Ok(self.pe_mapped(tensor, pe));
        };
        let coupled = |i: usize| tensor.vars.contains(&level.maps[i].var);
        // A coupled loop further in starts again: nothing of the previous tile is left.
        let restarts = (changing + 1..self.states.len())
            .any(|i| coupled(i) && self.states[i].is_init() && !self.states[i].unrolled);
        if !coupled(changing) {
            return Ok(0);
        }
        let mut volume = 1;
        for (i, (map, state)) in level.maps.iter().zip(self.states).enumerate() {
            if !coupled(i) {
                continue;
            }
            let v = map.var as usize;
            let mapped = if pe.partial {
                level.mapped_edge[v]
            } else {
                level.mapped[v]
            };
            let unique = if pe.partial {
                level.unique_edge[v]
            } else {
                level.unique[v]
            };
            volume *= match (map.spatial, state.position) {
                (false, Position::Init) => {
                    if state.edge {
                        level.mapped_edge[v]
                    } else {
                        level.mapped[v]
                    }
                }
                (false, _) if i == changing && !restarts => {
                    if level.unique[v] == 0 {
                        return Err(MaestroError::StationaryAdvances {
                            level: self.index,
                            var: map.var,
                        });
                    }
                    level.unique[v].max(1)
                }
                (false, _) => level.mapped[v],
                (true, _) if pe.first => mapped,
                (true, Position::Init) => {
                    if i > changing {
                        unique
                    } else {
                        mapped
                    }
                }
                (true, _) => {
                    if i == changing && !restarts {
                        unique
                    } else {
                        mapped
                    }
                }
            };
        }
        Ok(volume)
    }

    /// Outputs of one instance, or its partial sums: outputs × reductions that it performs for each.
    fn pe_egress(&self, pe: Pe, count: Count) -> i64 {
        let (level, output) = (self.level, &self.problem.output);
        let mut volume = 1;
        if count != Count::Outputs {
            for (map, state) in level.maps.iter().zip(self.states) {
                if output.vars.contains(&map.var) {
                    continue;
                }
                let v = map.var as usize;
                volume *= match (map.spatial, state.edge) {
                    (false, true) => level.mapped_edge[v],
                    (false, false) => level.mapped[v],
                    (true, _) => self.spatial_extent(state, pe, v, v, level.mapped_edge[v]),
                };
            }
        }
        for &var in &output.vars {
            let (map, state) = (&level.maps[level.place[var as usize]], self.state(var));
            let own = var as usize;
            let v = match var {
                Var::X if self.problem.sliding => Var::XOut as usize,
                Var::Y if self.problem.sliding => Var::YOut as usize,
                _ => own,
            };
            volume *= if map.spatial {
                let cut = if count == Count::AllSums {
                    level.mapped_edge[v]
                } else {
                    level.unique_edge[v]
                };
                self.spatial_extent(state, pe, v, own, cut)
            } else if state.edge {
                level.mapped_edge[v]
            } else {
                level.mapped[v]
            };
        }
        volume
    }

    /// Extent of a spatial map of dimension `v` (`own` before the conversion to outputs) in one instance;
    /// `init_partial` is that of the last instance in a cut-off first step.
    fn spatial_extent(&self, state: &State, pe: Pe, v: usize, own: usize, init_partial: i64) -> i64 {
        let level = self.level;
        let single = level.edge_clusters == 1;
        let regular = || {
            if pe.first {
                level.mapped[v]
            } else if level.unique[v] != 0 {
                level.unique[v]
            } else {
                1
            }
        };
        match state.position {
            Position::Init if state.edge && pe.partial => {
                if single {
                    level.mapped_edge[v]
                } else {
                    init_partial
                }
            }
            Position::Init | Position::Steady => regular(),
            Position::Edge if single => {
                if pe.first || pe.partial {
                    level.mapped_edge[own]
                } else {
                    1
                }
            }
            Position::Edge => {
                if pe.partial {
                    level.unique_edge[v]
                } else {
                    regular()
                }
            }
        }
    }

    /// Partial sums on the critical path: those of the first instance.
    pub(super) fn critical_partial_sums(&self) -> i64 {
        let spread = self.spread(&self.problem.output);
        let alone = spread.spatial && spread.edge && self.level.edge_clusters == 1 && spread.partial;
        self.pe_egress(if alone { FIRST_PARTIAL } else { FIRST }, Count::Sums)
    }

    /// Partial sums of all instances: the MACs of this case.
    pub(super) fn partial_sums(&self) -> i64 {
        let level = self.level;
        let (mut edge, mut partial) = (false, false);
        for (_, state) in level.maps.iter().zip(self.states).filter(|(m, _)| m.spatial) {
            partial = state.partial;
            edge |= state.edge;
        }
        if !edge {
            return level.clusters * self.pe_egress(FIRST, Count::Sums);
        }
        let active = level.edge_clusters;
        let mut sum = self.pe_egress(if active == 1 && partial { FIRST_PARTIAL } else { FIRST }, Count::Sums);
        if active > 1 {
            sum += (active - i64::from(partial) - 1).max(0) * self.pe_egress(FIRST, Count::Sums);
            if partial {
                sum += self.pe_egress(LAST_PARTIAL, Count::AllSums);
            }
        }
        sum
    }

    /// The tile that one instance (the partial one with `partial`) hands to the level inside.
    pub(super) fn tile(&self, partial: bool) -> super::levels::PerVar {
        let level = self.level;
        let mut tile = [0; Var::ALL.len()];
        for (map, state) in level.maps.iter().zip(self.states).rev() {
            let v = map.var as usize;
            let cut = if map.spatial {
                state.edge && (level.edge_clusters == 1 || partial)
            } else {
                state.edge
            };
            tile[v] = if cut { level.mapped_edge[v] } else { level.mapped[v] };
        }
        tile
    }
}

type Sum = Result<i64, MaestroError>;
