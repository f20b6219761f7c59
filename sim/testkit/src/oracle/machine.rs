//! Ports and channels: what a transfer occupies on its way (rules 11 and 12).

use std::collections::BTreeMap;

use cyclonest_arch::{NetworkKind, Ports, Reduction, Refresh, Width};
use cyclonest_workloads::Tensor;

use super::nest::{Nest, Setting};
use super::tally::occupancy;

/// A port of a bank or a channel of a network.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Resource {
    level: usize,
    instance: Setting,
    kind: &'static str,
    bank: usize,
    tensor: Option<Tensor>,
}

/// Where a stage of a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Port(usize),
    Network(usize),
}

/// One hop: resources that are reserved together, each with its occupancy.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    pub place: Place,
    pub resources: Vec<(usize, u64)>,
    /// Cycles from the start to the next stage.
    pub latency: u64,
}

#[derive(Debug, Default)]
pub(super) struct Machine {
    index: BTreeMap<Resource, usize>,
    /// State of each resource: the cycle from which it is free.
    pub free: Vec<u64>,
    /// Occupied cycles so far.
    pub busy: Vec<u64>,
    now: u64,
}

impl Machine {
    fn resource(&mut self, key: Resource, refresh: Option<Refresh>) -> usize {
        let next = self.free.len();
        let index = *self.index.entry(key).or_insert(next);
        if index == next {
            // It was idle up to here, but for its refreshes (rule 28).
            let last = refresh.map_or(0, |r| self.now / r.every * r.every);
            self.free.push(if last > 0 {
                last + refresh.map_or(0, |r| r.takes)
            } else {
                0
            });
            self.busy.push(0);
        }
        index
    }

    /// A cycle begins: refreshes that are due take their ports when these are free (rule 28).
    pub(super) fn begin_cycle(&mut self, nest: &Nest<'_>, now: u64) {
        self.now = now;
        for (key, &i) in &self.index {
            if let Some(refresh) = nest.arch.levels[key.level].refresh
                && key.kind.ends_with("port")
                && now > 0
                && now.is_multiple_of(refresh.every)
            {
                self.free[i] = self.free[i].max(now) + refresh.takes;
            }
        }
    }

    /// The busiest instance of every resource, by name.
    pub(super) fn occupancy(&self, nest: &Nest<'_>) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (key, &i) in &self.index {
            let level = &nest.arch.levels[key.level].name;
            let mut name = format!("{level}.{}", key.kind);
            if key.kind.ends_with("port") && nest.arch.levels[key.level].banks.len() > 1 {
                name += &format!("[{}]", key.bank);
            }
            if let Some(tensor) = key.tensor {
                name += &format!(".{tensor}");
            }
            let entry: &mut u64 = all.entry(name).or_default();
            *entry = self.busy[i].max(*entry);
        }
        all
    }

    /// Reserves the resources of a stage that the head reaches at `now`; start and occupancy.
    pub(super) fn reserve(&mut self, stage: &Stage, now: u64) -> (u64, u64) {
        let start = stage.resources.iter().map(|&(r, _)| self.free[r]).fold(now, u64::max);
        let mut longest = 0;
        for &(r, cycles) in &stage.resources {
            // Read and write of one transfer on the same port follow each other.
            self.free[r] = self.free[r].max(start) + cycles;
            self.busy[r] += cycles;
            longest = longest.max(self.free[r] - start);
        }
        (start, longest)
    }

    /// The port of a bank, if it is ever the limit, and how long it takes.
    pub(super) fn port(
        &mut self,
        nest: &Nest<'_>,
        (level, instance): (usize, &[u64]),
        tensor: Tensor,
        write: bool,
        (elements, bits): (u64, u64),
    ) -> Option<(usize, u64)> {
        let banks = &nest.arch.levels[level];
        let bank = banks.bank_index(tensor)?;
        let (kind, own) = match banks.banks[bank].ports {
            Ports::Ideal => return None,
            Ports::Shared { .. } => ("port", None),
            Ports::ReadWrite { .. } => (if write { "write port" } else { "read port" }, None),
            Ports::PerTensor(_) => (if write { "write port" } else { "read port" }, Some(tensor)),
        };
        let width = if write {
            banks.banks[bank].write_width(tensor)
        } else {
            banks.banks[bank].read_width(tensor)
        };
        let key = Resource {
            level,
            instance: instance.to_vec(),
            kind,
            bank,
            tensor: own,
        };
        let refresh = banks.refresh;
        Some((self.resource(key, refresh), occupancy(width, elements, bits)))
    }

    /// The channel below an instance of `level`, how long it takes and its latency, in cycles of the machine.
    pub(super) fn channel(
        &mut self,
        nest: &Nest<'_>,
        (level, instance): (usize, &[u64]),
        tensor: Tensor,
        down: bool,
        (elements, bits): (u64, u64),
    ) -> ((usize, u64), u64) {
        let channels = nest.arch.channels(level, down);
        let per_tensor = channels.is_some_and(|c| c.per_tensor());
        let (width, latency) = channels
            .and_then(|c| c.link(tensor))
            .map_or((Width::Unlimited, 1), |link| (link.width, link.latency));
        let network = nest.arch.levels[level].below.as_ref();
        let kind = match network.map(|n| n.kind) {
            Some(NetworkKind::Bus(_)) => "bus",
            _ if down => "down",
            _ => "up",
        };
        let ratio = network
            .and_then(|n| n.clock)
            .map_or(1.0, |c| nest.arch.clock.mhz() / c.mhz());
        let scale = |cycles: u64| (cycles as f64 * ratio).ceil() as u64;
        let key = Resource {
            level,
            instance: instance.to_vec(),
            kind,
            bank: 0,
            tensor: per_tensor.then_some(tensor),
        };
        (
            (self.resource(key, None), scale(occupancy(width, elements, bits))),
            scale(latency),
        )
    }
}

/// What `n` partial sums that become one add to the latency of a network (rule 19).
pub(super) fn reduction_latency(reduction: Reduction, n: u64) -> u64 {
    match reduction {
        Reduction::None => 0,
        Reduction::Tree { stage } => {
            let mut stages = 0;
            while (1 << stages) < n {
                stages += 1;
            }
            stages * stage
        }
        Reduction::Chain { hop } => n.saturating_sub(1) * hop,
    }
}
