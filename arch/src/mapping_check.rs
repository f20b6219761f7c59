//! What makes a mapping valid for a problem and a machine.

use std::fmt;

use cyclonest_workloads::{Dim, Problem, Tensor, TensorSet};

use crate::tile::elements;
use crate::{Accelerator, Axis, Bank, Loop, Mapping};

/// A constraint that a mapping breaks, with what it needs and what there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MappingViolation {
    /// It has not one entry per storage level: made for another machine.
    LevelCount {
        /// Name of the machine.
        arch: String,
        /// Entries in the mapping.
        found: Vec<String>,
        /// Levels of the machine.
        expected: Vec<String>,
    },
    /// An entry names another level than the machine has there: made for another machine.
    LevelName {
        /// Position, 0 outermost.
        index: usize,
        /// Name of the machine.
        arch: String,
        /// Name in the mapping.
        found: String,
        /// Name in the machine.
        expected: String,
    },
    /// It was made for other bounds.
    Bound {
        /// The dimension.
        dim: Dim,
        /// Bound in the mapping.
        found: u64,
        /// Bound of the problem.
        expected: u64,
    },
    /// A loop that never runs.
    ZeroTrips {
        /// Where: position of the level, its name, `"temporal"` or `"spatial"`, position of the loop.
        place: LoopPlace,
        /// Its dimension.
        dim: Dim,
    },
    /// The trips of a dimension multiply to more than 64 bits.
    Overflow {
        /// The dimension.
        dim: Dim,
    },
    /// The trips of a dimension do not reach its bound.
    ShortProduct {
        /// The dimension.
        dim: Dim,
        /// Product of all its trips.
        product: u64,
        /// Bound of the problem.
        bound: u64,
    },
    /// Spatial loops need more children than the mesh has.
    Mesh {
        /// Position of the level whose loops fan out.
        index: usize,
        /// Its name.
        level: String,
        /// What they fan out into: the next level or `lanes`.
        into: String,
        /// The axis.
        axis: Axis,
        /// Product of the loops' trips.
        needed: u64,
        /// Extent of the mesh.
        available: u64,
    },
    /// A dimension is unrolled over an axis that does not allow it.
    Unrolled {
        /// Where the loop is.
        place: LoopPlace,
        /// Its dimension.
        dim: Dim,
        /// What it fans out into.
        into: String,
        /// The axis.
        axis: Axis,
        /// What the axis allows.
        allowed: Vec<Dim>,
    },
    /// A tensor is kept where no bank holds it.
    NotHeld {
        /// Position of the level.
        index: usize,
        /// Its name.
        level: String,
        /// The tensor.
        tensor: Tensor,
    },
    /// The outermost level is the tensors' home and keeps all three.
    HomeBypassed {
        /// Name of the outermost level.
        level: String,
        /// The tensor that is not kept there.
        tensor: Tensor,
    },
    /// slots × tile do not fit a bank.
    Capacity {
        /// Position of the level.
        index: usize,
        /// Its name.
        level: String,
        /// What each kept tensor takes.
        demands: Vec<Demand>,
        /// Sum of the demands.
        needed: u128,
        /// Physical capacity.
        available: u128,
        /// `"bytes"` or `"words"`.
        unit: &'static str,
    },
    /// An output is left and revisited inside a burst although nothing there keeps it (rule 7).
    Revisited {
        /// Where the reduction loop is.
        place: LoopPlace,
        /// The reduction dimension.
        reduction: Dim,
        /// The output dimension further in.
        inner: Dim,
        /// Level of the loop over `inner`.
        inner_level: String,
        /// First level at or inside E that keeps outputs, if any.
        kept_at: Option<String>,
    },
}

/// What one tensor takes in a bank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// The tensor.
    pub tensor: Tensor,
    /// Tiles side by side.
    pub slots: u64,
    /// Elements of the largest tile.
    pub tile: u64,
    /// Bits per element.
    pub bits: u64,
}

/// Place of a loop in a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopPlace {
    /// Position of the level, 0 outermost.
    pub index: usize,
    /// Its name.
    pub level: String,
    /// True for a spatial loop.
    pub spatial: bool,
    /// Position in the level's list.
    pub position: usize,
}

impl LoopPlace {
    fn path(&self) -> String {
        let list = if self.spatial { "spatial" } else { "temporal" };
        format!("levels[{}].{list}[{}]", self.index, self.position)
    }
}

impl MappingViolation {
    /// The offending value in the mapping's RON, such as `levels[1].temporal[0]`.
    #[must_use]
    pub fn path(&self) -> String {
        match self {
            MappingViolation::LevelCount { .. } => "levels".into(),
            MappingViolation::LevelName { index, .. } => format!("levels[{index}].level"),
            MappingViolation::Bound { dim, .. }
            | MappingViolation::Overflow { dim }
            | MappingViolation::ShortProduct { dim, .. } => format!("bounds.{dim}"),
            MappingViolation::ZeroTrips { place, .. }
            | MappingViolation::Unrolled { place, .. }
            | MappingViolation::Revisited { place, .. } => place.path(),
            MappingViolation::Mesh { index, .. } => format!("levels[{index}].spatial"),
            MappingViolation::NotHeld { index, .. } => format!("levels[{index}].keeps"),
            MappingViolation::HomeBypassed { .. } => "levels[0].keeps".into(),
            MappingViolation::Capacity { index, .. } => format!("levels[{index}].level"),
        }
    }
}

impl fmt::Display for MappingViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MappingViolation::LevelCount { arch, found, expected } => write!(
                f,
                "made for another machine: it has {} ({}), {arch} has {} ({})",
                counted(found.len()),
                found.join(", "),
                counted(expected.len()),
                expected.join(", ")
            ),
            MappingViolation::LevelName {
                index,
                arch,
                found,
                expected,
            } => write!(
                f,
                "made for another machine: level {index} is {found}, in {arch} it is {expected}"
            ),
            MappingViolation::Bound { dim, found, expected } => write!(
                f,
                "made for another layer: its bound of {dim} is {found}, the problem's is {expected}"
            ),
            MappingViolation::ZeroTrips { place, dim } => {
                write!(
                    f,
                    "{}: the loop over {dim} has 0 trips; at least 1 is expected",
                    place.level
                )
            }
            MappingViolation::Overflow { dim } => write!(f, "the trips of {dim} multiply to more than 64 bits"),
            MappingViolation::ShortProduct { dim, product, bound } => write!(
                f,
                "the loops over {dim} cover {product} of {bound} iterations; their trips must multiply to at least {bound}"
            ),
            MappingViolation::Mesh {
                level,
                into,
                axis,
                needed,
                available,
                ..
            } => write!(
                f,
                "{level}: the spatial loops along {axis:?} need {needed} {into}, there are {available}"
            ),
            MappingViolation::Unrolled {
                place,
                dim,
                into,
                axis,
                allowed,
            } => {
                let allowed: Vec<String> = allowed.iter().map(|d| d.to_string()).collect();
                write!(
                    f,
                    "{}: {dim} cannot be unrolled over {into} along {axis:?}, which allows {}",
                    place.level,
                    if allowed.is_empty() {
                        "nothing".into()
                    } else {
                        allowed.join(" ")
                    }
                )
            }
            MappingViolation::NotHeld { level, tensor, .. } => {
                write!(f, "{level}: keeps {tensor}, which no bank of {level} holds")
            }
            MappingViolation::HomeBypassed { level, tensor } => write!(
                f,
                "{level}: the outermost level must keep all three tensors; {tensor} is missing"
            ),
            MappingViolation::Capacity {
                level,
                demands,
                needed,
                available,
                unit,
                ..
            } => {
                write!(f, "{level}: needs {needed} {unit}, there are {available}: ")?;
                for (i, d) in demands.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    write!(f, "{comma}{} {} × {} elements", d.tensor, d.slots, d.tile)?;
                    if *unit == "bytes" {
                        write!(f, " of {} bit", d.bits)?;
                    }
                }
                Ok(())
            }
            MappingViolation::Revisited {
                place,
                reduction,
                inner,
                inner_level,
                kept_at,
            } => {
                let LoopPlace { level, .. } = place;
                write!(
                    f,
                    "{level}: the loop over {reduction} stands outside the loop over {inner} at {inner_level}, so Outputs \
                     are revisited inside a burst, "
                )?;
                match kept_at {
                    Some(kept) => write!(f, "but {kept} keeps only the tile inside them"),
                    None => write!(f, "but no level at or inside the PE level keeps them"),
                }
            }
        }
    }
}

fn counted(levels: usize) -> String {
    format!("{levels} level{}", if levels == 1 { "" } else { "s" })
}

impl Mapping {
    /// Every constraint that the mapping of `problem` on `arch` breaks; none for a valid mapping.
    ///
    /// `arch` itself must be sound ([`Accelerator::check`]). If the mapping was made for another machine, only
    /// that is reported.
    #[must_use]
    pub fn check(&self, problem: &Problem, arch: &Accelerator) -> Vec<MappingViolation> {
        let mut found = self.check_levels(arch);
        if !found.is_empty() {
            return found;
        }
        self.check_bounds(problem, &mut found);
        self.check_spatial(arch, &mut found);
        self.check_keeps(arch, &mut found);
        // Tiles are defined by sound trips only.
        let countable = |v: &MappingViolation| {
            !matches!(
                v,
                MappingViolation::ZeroTrips { .. } | MappingViolation::Bound { .. } | MappingViolation::Overflow { .. }
            )
        };
        if found.iter().all(countable) {
            self.check_capacity(problem, arch, &mut found);
            self.check_revisits(problem, arch, &mut found);
        }
        found
    }

    fn check_levels(&self, arch: &Accelerator) -> Vec<MappingViolation> {
        if self.levels.len() != arch.levels.len() {
            return vec![MappingViolation::LevelCount {
                arch: arch.name.clone(),
                found: self.levels.iter().map(|l| l.level.clone()).collect(),
                expected: arch.levels.iter().map(|l| l.name.clone()).collect(),
            }];
        }
        self.levels
            .iter()
            .zip(&arch.levels)
            .enumerate()
            .filter(|(_, (mine, theirs))| mine.level != theirs.name)
            .map(|(index, (mine, theirs))| MappingViolation::LevelName {
                index,
                arch: arch.name.clone(),
                found: mine.level.clone(),
                expected: theirs.name.clone(),
            })
            .collect()
    }

    fn check_bounds(&self, problem: &Problem, found: &mut Vec<MappingViolation>) {
        for (dim, &bound) in problem.bounds.iter() {
            if self.bounds[dim] != bound {
                found.push(MappingViolation::Bound {
                    dim,
                    found: self.bounds[dim],
                    expected: bound,
                });
            }
        }
        for (index, level) in self.levels.iter().enumerate() {
            let temporal = level.temporal.iter().map(|l| (l.0, l.1, false)).enumerate();
            let spatial = level.spatial.iter().map(|s| (s.0, s.1, true)).enumerate();
            for (position, (dim, trips, spatial)) in temporal.chain(spatial) {
                if trips == 0 {
                    let place = self.place(index, spatial, position);
                    found.push(MappingViolation::ZeroTrips { place, dim });
                }
            }
        }
        for (dim, &bound) in problem.bounds.iter() {
            let trips = self.levels.iter().flat_map(|level| {
                let temporal = level.temporal.iter().map(|l| (l.0, l.1));
                temporal.chain(level.spatial.iter().map(|s| (s.0, s.1)))
            });
            let product = trips
                .filter(|&(d, _)| d == dim)
                .try_fold(1_u64, |product, (_, trips)| product.checked_mul(trips));
            match product {
                None => found.push(MappingViolation::Overflow { dim }),
                // A product of 0 has its own message.
                Some(product) if product > 0 && product < bound => {
                    found.push(MappingViolation::ShortProduct { dim, product, bound });
                }
                Some(_) => {}
            }
        }
    }

    fn check_spatial(&self, arch: &Accelerator, found: &mut Vec<MappingViolation>) {
        for (index, level) in self.levels.iter().enumerate() {
            let child = arch.levels.get(index + 1);
            let into = child.map_or("lanes", |c| c.name.as_str());
            let mesh = arch.child_mesh(index);
            for (axis, available) in [(Axis::X, mesh.0), (Axis::Y, mesh.1)] {
                let needed = level
                    .spatial
                    .iter()
                    .filter(|s| s.2 == axis)
                    .fold(1_u64, |n, s| n.saturating_mul(s.1));
                if needed > available {
                    found.push(MappingViolation::Mesh {
                        index,
                        level: level.level.clone(),
                        into: into.into(),
                        axis,
                        needed,
                        available,
                    });
                }
            }
            let Some(allowed) = child.and_then(|c| c.spatial.as_ref()) else {
                continue;
            };
            for (position, s) in level.spatial.iter().enumerate() {
                let allowed = match s.2 {
                    Axis::X => &allowed.x,
                    Axis::Y => &allowed.y,
                };
                if s.1 > 1 && !allowed.contains(&s.0) {
                    found.push(MappingViolation::Unrolled {
                        place: self.place(index, true, position),
                        dim: s.0,
                        into: into.into(),
                        axis: s.2,
                        allowed: allowed.clone(),
                    });
                }
            }
        }
    }

    fn check_keeps(&self, arch: &Accelerator, found: &mut Vec<MappingViolation>) {
        for (index, (mine, level)) in self.levels.iter().zip(&arch.levels).enumerate() {
            for tensor in mine.keeps.iter().filter(|&t| level.bank(t).is_none()) {
                found.push(MappingViolation::NotHeld {
                    index,
                    level: level.name.clone(),
                    tensor,
                });
            }
        }
        if let Some(home) = self.levels.first() {
            for tensor in Tensor::ALL.into_iter().filter(|&t| !home.keeps.contains(t)) {
                found.push(MappingViolation::HomeBypassed {
                    level: home.level.clone(),
                    tensor,
                });
            }
        }
    }

    fn check_capacity(&self, problem: &Problem, arch: &Accelerator, found: &mut Vec<MappingViolation>) {
        for (index, (mine, level)) in self.levels.iter().zip(&arch.levels).enumerate() {
            let extents = self.tile_extents(problem, index);
            for bank in &level.banks {
                let demands = demands(arch, bank, mine.keeps, |t| elements(problem, &extents, t));
                if let Some((needed, available, unit)) = excess(bank, &demands) {
                    found.push(MappingViolation::Capacity {
                        index,
                        level: level.name.clone(),
                        demands,
                        needed,
                        available,
                        unit,
                    });
                }
            }
        }
    }

    /// Rule 7. The outermost level at or inside E that keeps Outputs is where they live during a burst; temporal
    /// loops of the burst outside that level's tile must finish an output before they go on to the next one.
    fn check_revisits(&self, problem: &Problem, arch: &Accelerator, found: &mut Vec<MappingViolation>) {
        let event = arch.event_level();
        let kept = (event..self.levels.len()).find(|&i| self.levels[i].keeps.contains(Tensor::Outputs));
        let end = kept.unwrap_or(self.levels.len());
        let mut reduction: Option<(LoopPlace, Dim)> = None;
        for index in event..end {
            for (position, &Loop(dim, _)) in self.levels[index].temporal.iter().enumerate() {
                if self.runs(problem, index, position) < 2 {
                    continue;
                }
                if dim.is_reduction() {
                    reduction.get_or_insert_with(|| (self.place(index, false, position), dim));
                } else if let Some((place, outer)) = &reduction {
                    found.push(MappingViolation::Revisited {
                        place: place.clone(),
                        reduction: *outer,
                        inner: dim,
                        inner_level: self.levels[index].level.clone(),
                        kept_at: kept.map(|i| self.levels[i].level.clone()),
                    });
                    return;
                }
            }
        }
    }

    /// Trips of a temporal loop that really run, clipped at the bound.
    fn runs(&self, problem: &Problem, index: usize, position: usize) -> u64 {
        let level = &self.levels[index];
        let Loop(dim, trips) = level.temporal[position];
        let inner = level.temporal[position + 1..].iter().map(|l| (l.0, l.1));
        let inside = inner
            .chain(level.spatial.iter().map(|s| (s.0, s.1)))
            .filter(|&(d, _)| d == dim)
            .map(|(_, trips)| trips)
            .product::<u64>();
        let further = if index + 1 < self.levels.len() {
            self.trips_within(index + 1, dim)
        } else {
            1
        };
        trips.min(problem.bounds[dim].div_ceil(inside * further))
    }

    fn place(&self, index: usize, spatial: bool, position: usize) -> LoopPlace {
        LoopPlace {
            index,
            level: self.levels[index].level.clone(),
            spatial,
            position,
        }
    }
}

/// What the tensors of `keeps` take in `bank`, with `tile` elements each. Outputs count at their partial
/// precision: a buffer holds sums until the last reduction step.
pub(crate) fn demands(arch: &Accelerator, bank: &Bank, keeps: TensorSet, tile: impl Fn(Tensor) -> u64) -> Vec<Demand> {
    bank.holds
        .iter()
        .filter(|&tensor| keeps.contains(tensor))
        .map(|tensor| Demand {
            tensor,
            slots: bank.slots_of(tensor),
            tile: tile(tensor),
            bits: arch.bits(tensor, tensor == Tensor::Outputs),
        })
        .collect()
}

/// Needed, available and their unit, if `demands` exceed the capacity of `bank`.
pub(crate) fn excess(bank: &Bank, demands: &[Demand]) -> Option<(u128, u128, &'static str)> {
    let elements = |d: &Demand| u128::from(d.slots).saturating_mul(u128::from(d.tile));
    if let Some(words) = bank.size.words() {
        let needed = demands.iter().map(elements).fold(0, u128::saturating_add);
        return (needed > u128::from(words)).then_some((needed, u128::from(words), "words"));
    }
    let bits = u128::from(bank.size.bits()?);
    let needed = demands
        .iter()
        .map(|d| elements(d).saturating_mul(u128::from(d.bits)))
        .fold(0, u128::saturating_add);
    (needed > bits).then_some((needed.div_ceil(8), bits / 8, "bytes"))
}
