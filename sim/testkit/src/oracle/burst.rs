//! One burst: the temporal loops of E and of everything inside, trip by trip (rules 2, 14, 15; `inner.md`).

use std::collections::{BTreeMap, BTreeSet};

use cyclonest_arch::{Counts, Ports};
use cyclonest_workloads::{Tensor, TensorMap};

use super::nest::{Index, Nest, Setting, settings};
use super::tally::{at, occupancy};

/// What one burst does and how long it takes.
#[derive(Debug, Clone)]
pub(super) struct Burst {
    pub cycles: u64,
    /// Elements that a tensor which E bypasses streams in for this step.
    pub stream: TensorMap<u64>,
    pub counts: Counts,
}

/// One multiply-accumulate of a burst.
#[derive(Debug, Clone)]
pub(super) struct Mac {
    pub trip: usize,
    /// Coordinates of the lane, from the outermost level on.
    pub lane: Setting,
    pub index: Index,
}

/// Every MAC of the burst of `pe` at `step`, in order of trips.
pub(super) fn macs(nest: &Nest<'_>, pe: &[u64], step: &[u64]) -> Vec<Mac> {
    let lanes = settings(&nest.spatial[pe.len()..]);
    let mut macs = Vec::new();
    for (trip, inner) in settings(&nest.temporal[step.len()..]).into_iter().enumerate() {
        let steps = [step, &inner].concat();
        for lane in &lanes {
            let lane = [pe, lane].concat();
            if nest.exists(&steps, &lane) {
                let index = nest.lowest(&steps, &lane);
                macs.push(Mac { trip, lane, index });
            }
        }
    }
    macs
}

/// Elements and bits through one port of the PE's instance 0: (level, bank, tensor of a port of its own, write).
type Load = BTreeMap<(usize, usize, Option<Tensor>, bool), (u64, u64)>;

/// Output residencies inside the PE: (instance, steps) → (number, holds an earlier sum).
type Residencies = BTreeMap<(Setting, Setting), (usize, bool)>;

struct Walk<'n, 'a> {
    nest: &'n Nest<'a>,
    pe: &'n [u64],
    step: &'n [u64],
    macs: Vec<Mac>,
    counts: Counts,
    stream: TensorMap<u64>,
    load: Load,
    /// Elements that start at zero at the innermost level that keeps outputs, if that is inside E.
    at_zero: u64,
    /// What is left of them in an instance: updates that need no read.
    at_zero_of: BTreeMap<Setting, u64>,
}

/// Walks the burst of `pe` at `step`; `fresh` says that its outputs hold nothing yet.
pub(super) fn burst(nest: &Nest<'_>, pe: &[u64], step: &[u64], fresh: bool) -> Result<Burst, String> {
    let mut walk = Walk {
        nest,
        pe,
        step,
        macs: macs(nest, pe, step),
        counts: Counts::new(nest.arch),
        stream: TensorMap([0; 3]),
        load: Load::new(),
        at_zero: 0,
        at_zero_of: BTreeMap::new(),
    };
    walk.counts.macs = walk.macs.len() as u64;
    for tensor in [Tensor::Weights, Tensor::Inputs] {
        walk.operand(tensor);
    }
    walk.outputs(fresh)?;
    let trips: BTreeSet<usize> = walk.macs.iter().map(|m| m.trip).collect();
    let mut cycles = trips.len() as u64 * nest.arch.compute.interval;
    for (&(level, bank, tensor, write), &(elements, bits)) in &walk.load {
        let bank = &nest.arch.levels[level].banks[bank];
        let any = tensor.or_else(|| bank.holds.iter().next()).unwrap_or(Tensor::Weights);
        let occupied = match bank.ports {
            // Reads and updates follow each other, at the narrower width.
            Ports::Shared { read, write } => occupancy(read, elements, bits).max(occupancy(write, elements, bits)),
            _ if write => occupancy(bank.write_width(any), elements, bits),
            _ => occupancy(bank.read_width(any), elements, bits),
        };
        cycles = cycles.max(occupied);
    }
    Ok(Burst {
        cycles,
        stream: walk.stream,
        counts: walk.counts,
    })
}

impl Walk<'_, '_> {
    /// The levels of the chain: E first (kept or not), then the levels inside that keep `tensor`.
    fn chain(&self, tensor: Tensor) -> Vec<usize> {
        let e = self.nest.event;
        let inside = (e + 1..self.nest.levels).filter(|&c| self.nest.keeps(tensor, c));
        std::iter::once(e).chain(inside).collect()
    }

    fn bits(&self, tensor: Tensor) -> u64 {
        self.nest.arch.bits(tensor, true)
    }

    /// Coordinates of `full` inside the PE are all 0.
    fn is_instance_0(&self, full: &[u64]) -> bool {
        full[self.pe.len()..].iter().all(|&c| c == 0)
    }

    fn load(&mut self, level: usize, instance: &[u64], tensor: Tensor, write: bool, elements: u64) {
        if !self.is_instance_0(instance) {
            return;
        }
        let Some(bank) = self.nest.arch.levels[level].bank_index(tensor) else {
            return;
        };
        let own = match self.nest.arch.levels[level].banks[bank].ports {
            Ports::Ideal => return,
            Ports::PerTensor(_) => Some(tensor),
            Ports::Shared { .. } | Ports::ReadWrite { .. } => None,
        };
        let bits = self.bits(tensor);
        // A shared port has one sum for both directions.
        let write = write && !matches!(self.nest.arch.levels[level].banks[bank].ports, Ports::Shared { .. });
        let load = self.load.entry((level, bank, own, write)).or_default();
        load.0 += elements;
        load.1 += elements * bits;
    }

    /// Elements of an operand leave the link at `level`.
    fn read(&mut self, level: usize, instance: &[u64], tensor: Tensor, elements: u64) {
        if level == self.nest.event && !self.nest.keeps(tensor, level) {
            self.stream[tensor] += elements;
        } else {
            at(&mut self.counts, level, tensor).reads += elements;
            self.load(level, instance, tensor, false, elements);
        }
    }

    /// True if the network below `level` carries `tensor` once for several children.
    fn multicasts(&self, level: usize, tensor: Tensor) -> bool {
        self.nest.arch.levels[level]
            .below
            .as_ref()
            .is_some_and(|n| n.multicast.contains(tensor))
    }

    fn reduces(&self, level: usize) -> bool {
        super::reduces(self.nest, level)
    }

    /// Iterations of `level` with the instances that exist at each: (iteration, full steps, full coordinates).
    fn iterations(&self, level: usize) -> Vec<(Setting, Vec<Setting>)> {
        let nest = self.nest;
        let temporal = settings(&nest.temporal[self.step.len()..nest.temporal_before(level)]);
        let spatial = settings(&nest.spatial[self.pe.len()..nest.spatial_before(level)]);
        temporal
            .into_iter()
            .map(|t| {
                let steps = [self.step, &t].concat();
                let instances = spatial
                    .iter()
                    .map(|s| [self.pe, s].concat())
                    .filter(|full| nest.exists(&steps, full))
                    .collect();
                (steps, instances)
            })
            .collect()
    }

    fn operand(&mut self, tensor: Tensor) {
        let chain = self.chain(tensor);
        for link in chain.windows(2) {
            self.operand_fills(tensor, link[0], link[1]);
        }
        self.lanes_read(tensor, chain[chain.len() - 1]);
    }

    fn operand_fills(&mut self, tensor: Tensor, from: usize, to: usize) {
        let nest = self.nest;
        let mut last: BTreeMap<Setting, usize> = BTreeMap::new();
        for (steps, instances) in self.iterations(to) {
            // (instance of the link before, tile, coordinates that multicast does not join) → tile size
            let mut groups: BTreeMap<(Setting, usize, Setting), u64> = BTreeMap::new();
            for instance in instances {
                let tile = nest.tile(tensor, to, &steps, &instance);
                if last.insert(instance.clone(), tile.id()) == Some(tile.id()) || tile.is_empty() {
                    continue;
                }
                at(&mut self.counts, to, tensor).fills += tile.len();
                self.load(to, &instance, tensor, true, tile.len());
                let apart = nest.coordinates_where(from, to, &instance, |n| !self.multicasts(n, tensor));
                let source = instance[..nest.spatial_before(from)].to_vec();
                groups.insert((source, tile.id(), apart), tile.len());
            }
            for ((source, ..), elements) in groups {
                self.read(from, &source, tensor, elements);
            }
        }
    }

    /// For every trip: how many elements each instance of `level` exchanges with its lanes; what `apart` tells
    /// apart counts separately.
    fn per_trip(&self, tensor: Tensor, level: usize, apart: impl Fn(usize) -> bool) -> Vec<BTreeMap<Setting, u64>> {
        let nest = self.nest;
        let (source, innermost) = (nest.spatial_before(level), nest.levels - 1);
        let trips = self.macs.last().map_or(0, |m| m.trip + 1);
        let mut exchanged: Vec<BTreeSet<(Setting, u64, Setting)>> = vec![BTreeSet::new(); trips];
        for mac in &self.macs {
            if let Some(element) = nest.element(tensor, &mac.index) {
                let apart = nest.coordinates_where(level, innermost, &mac.lane, &apart);
                exchanged[mac.trip].insert((mac.lane[..source].to_vec(), element, apart));
            }
        }
        let count = |trip: BTreeSet<(Setting, u64, Setting)>| {
            let mut elements = BTreeMap::new();
            for (instance, ..) in trip {
                *elements.entry(instance).or_default() += 1;
            }
            elements
        };
        exchanged.into_iter().map(count).collect()
    }

    fn lanes_read(&mut self, tensor: Tensor, level: usize) {
        for trip in self.per_trip(tensor, level, |n| !self.multicasts(n, tensor)) {
            for (instance, elements) in trip {
                self.read(level, &instance, tensor, elements);
            }
        }
    }

    fn outputs(&mut self, fresh: bool) -> Result<(), String> {
        let o = Tensor::Outputs;
        let chain = self.chain(o);
        // Residencies of the link before: (instance, steps) → (number, holds an earlier sum).
        let mut outer: Residencies = BTreeMap::from([((self.pe.to_vec(), self.step.to_vec()), (0, !fresh))]);
        for link in chain.windows(2) {
            outer = self.output_residencies(link[0], link[1], &outer)?;
        }
        let innermost = chain[chain.len() - 1];
        let kept = self.nest.keeps(o, innermost);
        if !kept {
            self.lanes_do_not_come_back()?;
        }
        if innermost == self.nest.event && fresh {
            let tile = self.nest.tile(o, innermost, self.step, self.pe);
            self.at_zero_of.insert(self.pe.to_vec(), tile.len());
        }
        for trip in self.per_trip(o, innermost, |n| !self.reduces(n)) {
            for (instance, elements) in trip {
                if kept {
                    at(&mut self.counts, innermost, o).updates += elements;
                    at(&mut self.counts, innermost, o).reads += elements;
                    self.load(innermost, &instance, o, true, elements);
                    // Accumulation reads; what starts at zero is not read.
                    let zero = self.at_zero_of.entry(instance.clone()).or_default();
                    let unread = elements.min(*zero);
                    *zero -= unread;
                    self.load(innermost, &instance, o, false, elements - unread);
                }
            }
        }
        at(&mut self.counts, innermost, o).reads -= self.at_zero;
        Ok(())
    }

    /// Residencies of outputs at `to`, filled from and drained to `from`. Those of the innermost
    /// level note how many of their elements start at zero.
    fn output_residencies(&mut self, from: usize, to: usize, outer: &Residencies) -> Result<Residencies, String> {
        struct Open {
            tile: usize,
            parent: usize,
            number: usize,
            fetched: bool,
        }
        let (nest, o) = (self.nest, Tensor::Outputs);
        let innermost = self.chain(o).last() == Some(&to);
        let kept = nest.keeps(o, from);
        let (outer_steps, outer_coordinates) = (nest.temporal_before(from), nest.spatial_before(from));
        let mut residencies = BTreeMap::new();
        let mut open: BTreeMap<Setting, Open> = BTreeMap::new();
        let mut drained: BTreeSet<(usize, usize)> = BTreeSet::new();
        let mut next = 0;
        for (steps, instances) in self.iterations(to) {
            let mut starting = Vec::new();
            for instance in instances {
                let tile = nest.tile(o, to, &steps, &instance);
                let source = instance[..outer_coordinates].to_vec();
                let (parent, earlier) = outer[&(source.clone(), steps[..outer_steps].to_vec())];
                match open.get(&instance) {
                    Some(r) if (r.tile, r.parent) == (tile.id(), parent) => {
                        residencies.insert((instance, steps.clone()), (r.number, r.fetched));
                    }
                    ended => {
                        drained.extend(ended.map(|r| (r.parent, r.tile)));
                        starting.push((instance, source, tile, parent, earlier));
                    }
                }
            }
            // Visits that start here: streams by what no reduction joins.
            let mut visits: BTreeMap<(usize, usize), BTreeMap<Setting, (Setting, u64)>> = BTreeMap::new();
            for (instance, source, tile, parent, earlier) in starting {
                let revisit = drained.contains(&(parent, tile.id()));
                if revisit && !kept {
                    return Err(format!(
                        "an output is revisited inside the burst at level {to} (rule 7)"
                    ));
                }
                let fetched = (earlier || revisit) && nest.reduction_coordinates_are_zero(from, to, &instance);
                if fetched {
                    if kept {
                        at(&mut self.counts, from, o).reads += tile.len();
                        self.load(from, &source, o, false, tile.len());
                    }
                    at(&mut self.counts, to, o).fills += tile.len();
                    self.load(to, &instance, o, true, tile.len());
                } else if innermost {
                    self.at_zero += tile.len();
                    *self.at_zero_of.entry(instance.clone()).or_default() += tile.len();
                }
                at(&mut self.counts, to, o).drains += tile.len();
                self.load(to, &instance, o, false, tile.len());
                let apart = nest.coordinates_where(from, to, &instance, |n| !self.reduces(n));
                let streams = visits.entry((parent, tile.id())).or_default();
                streams.insert(apart, (source, tile.len()));
                residencies.insert((instance.clone(), steps.clone()), (next, fetched));
                open.insert(
                    instance,
                    Open {
                        tile: tile.id(),
                        parent,
                        number: next,
                        fetched,
                    },
                );
                next += 1;
            }
            for streams in visits.into_values() {
                for (i, (source, elements)) in streams.into_values().enumerate() {
                    if !kept {
                        continue;
                    }
                    at(&mut self.counts, from, o).updates += elements;
                    self.load(from, &source, o, true, elements);
                    if i > 0 {
                        at(&mut self.counts, from, o).reads += elements;
                        at(&mut self.counts, from, o).read_modify_writes += elements;
                        self.load(from, &source, o, false, elements);
                    }
                }
            }
        }
        Ok(residencies)
    }

    /// Rule 7: the accumulator of a lane cannot take up an output again.
    fn lanes_do_not_come_back(&self) -> Result<(), String> {
        let mut now: BTreeMap<&Setting, Option<u64>> = BTreeMap::new();
        let mut left = BTreeSet::new();
        for mac in &self.macs {
            let output = self.nest.element(Tensor::Outputs, &mac.index);
            let current = now.entry(&mac.lane).or_default();
            if *current != output {
                left.insert((&mac.lane, *current));
                if left.contains(&(&mac.lane, output)) {
                    return Err("an output is revisited inside the burst (rule 7)".into());
                }
                *current = output;
            }
        }
        Ok(())
    }
}
