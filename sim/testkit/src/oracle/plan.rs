//! Residencies of every tensor, level and instance, enumerated step by step (rules 3 to 8, 10, 16 to 21).

use std::collections::{BTreeMap, BTreeSet};

use cyclonest_workloads::{Tensor, TensorMap};

use super::burst::{Burst, burst};
use super::nest::{Nest, Setting, Tile};

/// Position in [`Plan::residencies`].
pub(super) type ResidencyId = usize;

/// What an instance keeps over a run of steps.
#[derive(Debug)]
pub(super) struct Residency {
    pub tensor: Tensor,
    pub level: usize,
    /// Level that it is filled from or drained to.
    pub parent_level: usize,
    pub instance: Setting,
    pub stream: usize,
    /// Position in its stream.
    pub position: usize,
    pub first_step: Setting,
    pub last_step: Setting,
    pub tile: Tile,
    /// Elements that are not retained from the residency before (rule 5).
    pub new: Tile,
    /// Size of the transfer.
    pub size: u64,
    /// Residency of the parent level that the first step lies in; `None` if that is the outermost level.
    pub parent: Option<ResidencyId>,
    /// Residencies of children whose first step lies in this one.
    pub children: Vec<ResidencyId>,
    /// Transfer that fills (operands), fetches or drains (outputs) it.
    pub fill: Option<usize>,
    pub drain: Option<usize>,
    /// Outputs: the visit of the tile that it belongs to.
    pub visit: usize,
}

/// All residencies of one tensor at one instance, in step order (rule 8).
#[derive(Debug)]
pub(super) struct Stream {
    pub tensor: Tensor,
    pub level: usize,
    pub residencies: Vec<ResidencyId>,
    pub slots: u64,
    pub fifo: u64,
}

/// What one transfer serves (rules 10, 17, 19).
#[derive(Debug)]
pub(super) struct Group {
    pub drain: bool,
    pub tensor: Tensor,
    pub from: usize,
    pub to: usize,
    pub members: Vec<ResidencyId>,
    pub size: u64,
    /// The outputs are complete, so far as time goes (rule 20).
    pub finals: bool,
}

/// One time that the children of one parent residency hold one output tile.
#[derive(Debug, Default)]
pub(super) struct Visit {
    pub members: Vec<ResidencyId>,
    pub fetch: Option<usize>,
    pub drains: Vec<usize>,
    /// The visit before, of the same tile in the same parent residency.
    pub previous: Option<usize>,
}

/// A step of a PE.
#[derive(Debug)]
pub(super) struct Step {
    pub step: Setting,
    pub burst: Burst,
    /// Residency of each tensor; `None` if nothing is needed or everything is at hand (E is the outermost level).
    pub uses: TensorMap<Option<ResidencyId>>,
}

#[derive(Debug)]
pub(super) struct Pe {
    pub instance: Setting,
    pub steps: Vec<Step>,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub residencies: Vec<Residency>,
    pub streams: Vec<Stream>,
    pub groups: Vec<Group>,
    pub visits: Vec<Visit>,
    pub pes: Vec<Pe>,
}

/// A tile of outputs in a parent residency: (level, parent instance, parent residency, tile).
type Held = (usize, Setting, Option<ResidencyId>, usize);

/// (tensor, level, instance, step) → residency.
type Where = BTreeMap<(Tensor, usize, Setting, Setting), ResidencyId>;

impl Plan {
    pub(super) fn new(nest: &Nest<'_>) -> Result<Plan, String> {
        let mut plan = Plan::default();
        let mut at = Where::new();
        let none = BTreeMap::new();
        plan.enumerate(nest, Tensor::Outputs, &none, &mut at);
        plan.visits(nest);
        let mut bursts = BTreeMap::new();
        for instance in nest.instances(nest.event) {
            for step in nest.steps(nest.event, &instance) {
                let residency = at.get(&(Tensor::Outputs, nest.event, instance.clone(), step.clone()));
                let fresh = residency.is_none_or(|&r| {
                    let r = &plan.residencies[r];
                    r.first_step == step && r.fill.is_none()
                });
                let burst = burst(nest, &instance, &step, fresh)?;
                bursts.insert((instance.clone(), step), burst);
            }
        }
        plan.enumerate(nest, Tensor::Weights, &bursts, &mut at);
        plan.enumerate(nest, Tensor::Inputs, &bursts, &mut at);
        plan.fills(nest);
        for instance in nest.instances(nest.event) {
            let mut steps = Vec::new();
            for step in nest.steps(nest.event, &instance) {
                let burst = bursts.remove(&(instance.clone(), step.clone())).ok_or("no burst")?;
                let uses = TensorMap::from_fn(|t| {
                    let tile = nest.tile(t, nest.event, &step, &instance);
                    let r = at.get(&(t, nest.event, instance.clone(), step.clone())).copied();
                    if tile.is_empty() { None } else { r }
                });
                steps.push(Step { step, burst, uses });
            }
            plan.pes.push(Pe { instance, steps });
        }
        Ok(plan)
    }

    /// Levels between which `tensor` moves: the outermost, those that keep it, and E.
    fn stops(nest: &Nest<'_>, tensor: Tensor) -> Vec<usize> {
        (0..=nest.event)
            .filter(|&l| l == nest.event || nest.keeps(tensor, l))
            .collect()
    }

    fn enumerate(
        &mut self,
        nest: &Nest<'_>,
        tensor: Tensor,
        bursts: &BTreeMap<(Setting, Setting), Burst>,
        at: &mut Where,
    ) {
        for link in Self::stops(nest, tensor).windows(2) {
            for instance in nest.instances(link[1]) {
                self.runs(nest, tensor, (link[0], link[1]), &instance, bursts, at);
            }
        }
    }

    /// The residencies of one instance (rules 3 to 6).
    fn runs(
        &mut self,
        nest: &Nest<'_>,
        tensor: Tensor,
        (parent_level, level): (usize, usize),
        instance: &Setting,
        bursts: &BTreeMap<(Setting, Setting), Burst>,
        at: &mut Where,
    ) {
        let bypass = !nest.keeps(tensor, level);
        let bank = nest.arch.levels[level].bank(tensor);
        let halo = !bypass && tensor != Tensor::Outputs && bank.is_some_and(|b| b.halo.contains(tensor));
        let stream = self.streams.len();
        self.streams.push(Stream {
            tensor,
            level,
            residencies: Vec::new(),
            slots: match bypass {
                true => 2,
                false => bank.map_or(1, |b| b.slots_of(tensor)),
            },
            fifo: if bypass { 0 } else { bank.map_or(0, |b| b.fifo) },
        });
        let (parent_steps, parent_coordinates) =
            (nest.temporal_before(parent_level), nest.spatial_before(parent_level));
        let mut current: Option<ResidencyId> = None;
        for step in nest.steps(level, instance) {
            let tile = nest.tile(tensor, level, &step, instance);
            let above = (
                tensor,
                parent_level,
                instance[..parent_coordinates].to_vec(),
                step[..parent_steps].to_vec(),
            );
            let parent = at.get(&above).copied();
            let stays = current.is_some_and(|r| {
                let r = &self.residencies[r];
                let same_parent = tensor != Tensor::Outputs || r.parent == parent;
                tile.is_subset(&r.tile) && same_parent && (!bypass || tile.is_empty())
            });
            if !stays {
                if tile.is_empty() {
                    continue;
                }
                let new = match current {
                    Some(r) if halo => {
                        let old = &self.residencies[r].tile;
                        let new: BTreeSet<u64> = tile.elements.iter().copied().filter(|&e| !old.contains(e)).collect();
                        nest.set(tensor, new)
                    }
                    _ => tile.clone(),
                };
                let size = if bypass && tensor != Tensor::Outputs {
                    bursts[&(instance.clone(), step.clone())].stream[tensor]
                } else {
                    new.len()
                };
                let id = self.residencies.len();
                let position = self.streams[stream].residencies.len();
                self.streams[stream].residencies.push(id);
                if let Some(parent) = parent {
                    self.residencies[parent].children.push(id);
                }
                self.residencies.push(Residency {
                    tensor,
                    level,
                    parent_level,
                    instance: instance.clone(),
                    stream,
                    position,
                    first_step: step.clone(),
                    last_step: step.clone(),
                    tile,
                    new,
                    size,
                    parent,
                    children: Vec::new(),
                    fill: None,
                    drain: None,
                    visit: 0,
                });
                current = Some(id);
            }
            if let Some(r) = current {
                self.residencies[r].last_step = step.clone();
                at.insert((tensor, level, instance.clone(), step), r);
            }
        }
    }

    /// Visits, fetches and drains of outputs (rules 17, 19, 20).
    fn visits(&mut self, nest: &Nest<'_>) {
        // (level, parent instance, parent residency, tile, first step) → members; in this order visits of a tile
        // follow each other.
        let mut visits: BTreeMap<(Held, Setting), Vec<ResidencyId>> = BTreeMap::new();
        let mut last_step: BTreeMap<(usize, usize), Setting> = BTreeMap::new();
        for (id, r) in self.residencies.iter().enumerate() {
            let parent_instance = r.instance[..nest.spatial_before(r.parent_level)].to_vec();
            let key = ((r.level, parent_instance, r.parent, r.tile.id()), r.first_step.clone());
            visits.entry(key).or_default().push(id);
            let last = last_step.entry((r.level, r.tile.id())).or_default();
            *last = r.first_step.clone().max(last.clone());
        }
        let mut before: Option<(Held, usize)> = None;
        for (((level, instance, parent, tile), first_step), members) in visits {
            let number = self.visits.len();
            let of = (level, instance, parent, tile);
            let previous = before
                .take()
                .filter(|(tile_before, _)| *tile_before == of)
                .map(|(_, visit)| visit);
            before = Some((of, number));
            let mut visit = Visit {
                members: members.clone(),
                previous,
                ..Visit::default()
            };
            // Rule 20: no later step adds to these outputs.
            let finals = last_step[&(level, tile)] == first_step;
            let mut streams: BTreeMap<Setting, Vec<ResidencyId>> = BTreeMap::new();
            for id in members {
                let r = &self.residencies[id];
                let apart = nest.coordinates_where(r.parent_level, level, &r.instance, |n| !super::reduces(nest, n));
                streams.entry(apart).or_default().push(id);
                let parent_fetched = parent.is_some_and(|p| self.residencies[p].fill.is_some());
                let first = nest.reduction_coordinates_are_zero(r.parent_level, level, &r.instance);
                if first && (parent_fetched || previous.is_some()) {
                    visit.fetch = Some(self.groups.len());
                    let (from, size) = (r.parent_level, r.tile.len());
                    self.group(false, (from, level), vec![id], size, false);
                }
                self.residencies[id].visit = number;
            }
            for members in streams.into_values() {
                visit.drains.push(self.groups.len());
                let r = &self.residencies[members[0]];
                let (to, size) = (r.parent_level, r.tile.len());
                self.group(true, (level, to), members, size, finals);
            }
            self.visits.push(visit);
        }
    }

    fn group(&mut self, drain: bool, (from, to): (usize, usize), members: Vec<ResidencyId>, size: u64, finals: bool) {
        for &m in &members {
            let r = &mut self.residencies[m];
            *(if drain { &mut r.drain } else { &mut r.fill }) = Some(self.groups.len());
        }
        let tensor = self.residencies[members[0]].tensor;
        self.groups.push(Group {
            drain,
            tensor,
            from,
            to,
            members,
            size,
            finals,
        });
    }

    /// Fills of operands (rule 10).
    fn fills(&mut self, nest: &Nest<'_>) {
        type Key = (usize, usize, Setting, Setting, usize, usize, u64, Setting);
        let mut groups: BTreeMap<Key, Vec<ResidencyId>> = BTreeMap::new();
        for (id, r) in self.residencies.iter().enumerate() {
            if r.tensor == Tensor::Outputs {
                continue;
            }
            let apart = nest.coordinates_where(r.parent_level, r.level, &r.instance, |n| {
                !nest.arch.levels[n]
                    .below
                    .as_ref()
                    .is_some_and(|b| b.multicast.contains(r.tensor))
            });
            let parent = r.instance[..nest.spatial_before(r.parent_level)].to_vec();
            let key = (
                r.tensor as usize,
                r.level,
                parent,
                r.first_step.clone(),
                r.tile.id(),
                r.new.id(),
                r.size,
                apart,
            );
            groups.entry(key).or_default().push(id);
        }
        for members in groups.into_values() {
            let r = &self.residencies[members[0]];
            let (link, size) = ((r.parent_level, r.level), r.size);
            self.group(false, link, members, size, false);
        }
    }
}
