//! What a mapping costs in log form: which tensor passes which port or channel, and in whose company.

use std::collections::BTreeMap;

use cyclonest_arch::{Accelerator, Channels, NetworkKind, Ports, Reduction, Width};
use cyclonest_workloads::{Tensor, TensorSet};

/// Cycles that a step of the PE level takes at least: requests, hops, pipeline.
const STEP: f64 = 16.0;

/// One tensor on one port or channel. Its occupancy is 2^`fixed` cycles × tile of the child × visits of the child ×
/// copies (spatial trips from level `from` to the child, those left out that share one pass).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Term {
    pub(crate) tensor: Tensor,
    /// Level that takes or gives the tile; the number of levels stands for the lanes.
    pub(crate) child: usize,
    /// Copies are counted from this level's spatial loops on; the child's own position for none.
    pub(crate) from: usize,
    /// log₂ of bits ÷ width, at final precision for outputs; `None` for what is never the limit.
    pub(crate) fixed: Option<f64>,
    /// Added where the child gives partial sums.
    pub(crate) partial: f64,
    /// Only there where the child gives partial sums: they are fetched again.
    pub(crate) fetch: bool,
    /// log₂ of the energy per element \[pJ\], for accesses of a bank.
    pub(crate) energy: Option<f64>,
}

/// Terms that share a port or a channel, by position.
pub(crate) type Group = Vec<usize>;

/// All terms of a machine whose levels keep `keeps`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Inventory {
    pub(crate) terms: Vec<Term>,
    /// Terms whose occupancies add up: those of one resource, and fills that single slots do not hide.
    pub(crate) groups: Vec<Group>,
    /// Terms of fills that compute does not overlap with (single slots at or outside E).
    pub(crate) exposed: Vec<usize>,
    /// log₂ of the cycles of a MAC.
    pub(crate) interval: f64,
    /// log₂ of the least cycles of a step.
    pub(crate) step: f64,
}

/// Kinds of resource of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Read,
    Write,
    Down,
    Up,
}

type Resource = (usize, Kind, Option<Tensor>, usize);

struct Collector<'a> {
    arch: &'a Accelerator,
    terms: Vec<Term>,
    resources: BTreeMap<Resource, Group>,
}

impl Inventory {
    /// The terms of `arch`.
    pub(crate) fn new(arch: &Accelerator, keeps: &[TensorSet]) -> Self {
        let mut collector = Collector {
            arch,
            terms: Vec::new(),
            resources: BTreeMap::new(),
        };
        let mut exposed = Vec::new();
        let lanes = arch.levels.len();
        for tensor in Tensor::ALL {
            let mut chain: Vec<usize> = (0..lanes).filter(|&l| keeps[l].contains(tensor)).collect();
            chain.push(lanes);
            for pair in chain.windows(2) {
                let fills = collector.pair(tensor, pair[0], pair[1]);
                let single = pair[1] <= arch.event_level()
                    && arch.levels[pair[1]]
                        .bank(tensor)
                        .is_some_and(|b| b.slots_of(tensor) == 1);
                if single {
                    exposed.extend(fills);
                }
            }
        }
        let groups = collector
            .resources
            .into_values()
            .filter(|group| group.len() > 1)
            .collect();
        Inventory {
            terms: collector.terms,
            groups,
            exposed,
            interval: (arch.compute.interval as f64).log2(),
            step: STEP.log2(),
        }
    }
}

impl Collector<'_> {
    /// The terms between two levels; returns those that fill the child.
    fn pair(&mut self, tensor: Tensor, parent: usize, child: usize) -> Vec<usize> {
        let lanes = self.arch.levels.len();
        let output = tensor == Tensor::Outputs;
        let bits = self.arch.bits(tensor, false);
        let mut fills = Vec::new();
        if output {
            let partial = self.arch.bits(tensor, true);
            if child == lanes {
                // Every MAC updates its sum.
                fills.extend(self.port(tensor, parent, Kind::Write, parent, child, (partial, partial), false));
                return Vec::new();
            }
            self.port(tensor, child, Kind::Read, child, child, (bits, partial), false);
            for level in parent..child.min(lanes - 1) {
                self.channel(tensor, level, Kind::Up, child, (bits, partial), false);
            }
            self.port(tensor, parent, Kind::Write, parent, child, (bits, partial), false);
            self.port(tensor, parent, Kind::Read, parent, child, (partial, partial), true);
            for level in parent..child.min(lanes - 1) {
                self.channel(tensor, level, Kind::Down, child, (partial, partial), true);
            }
            self.port(tensor, child, Kind::Write, child, child, (partial, partial), true);
            return Vec::new();
        }
        fills.extend(self.port(tensor, parent, Kind::Read, parent, child, (bits, bits), false));
        for level in parent..child.min(lanes - 1) {
            fills.extend(self.channel(tensor, level, Kind::Down, child, (bits, bits), false));
        }
        if child < lanes {
            fills.extend(self.port(tensor, child, Kind::Write, child, child, (bits, bits), false));
        }
        fills
    }

    #[allow(clippy::too_many_arguments)]
    fn port(
        &mut self,
        tensor: Tensor,
        level: usize,
        kind: Kind,
        from: usize,
        child: usize,
        (bits, partial): (u64, u64),
        fetch: bool,
    ) -> Option<usize> {
        let position = self.arch.levels[level].bank_index(tensor)?;
        let bank = &self.arch.levels[level].banks[position];
        let (width, energy) = match kind {
            Kind::Read => (bank.read_width(tensor), bank.energy.read),
            _ => (bank.write_width(tensor), bank.energy.write),
        };
        let resource = match bank.ports {
            Ports::Ideal | Ports::ReadWrite { .. } => (level, kind, None, position),
            Ports::Shared { .. } => (level, Kind::Read, None, position),
            Ports::PerTensor(_) => (level, kind, Some(tensor), position),
        };
        let energy = (energy > 0.0).then(|| energy.log2());
        self.push(
            resource,
            tensor,
            from,
            child,
            width,
            1.0,
            (bits, partial),
            fetch,
            energy,
        )
    }

    fn channel(
        &mut self,
        tensor: Tensor,
        level: usize,
        kind: Kind,
        child: usize,
        bits: (u64, u64),
        fetch: bool,
    ) -> Option<usize> {
        let network = self.arch.levels[level].below.as_ref()?;
        let channels: Channels = self.arch.channels(level, kind == Kind::Down)?;
        let width = channels.link(tensor)?.width;
        let slower = network.clock.map_or(1.0, |clock| self.arch.clock.mhz() / clock.mhz());
        let kind = match network.kind {
            NetworkKind::Bus(_) => Kind::Down,
            _ => kind,
        };
        let resource = (level, kind, channels.per_tensor().then_some(tensor), usize::MAX);
        self.push(resource, tensor, level, child, width, slower, bits, fetch, None)
    }

    #[allow(clippy::too_many_arguments)]
    fn push(
        &mut self,
        resource: Resource,
        tensor: Tensor,
        from: usize,
        child: usize,
        width: Width,
        slower: f64,
        (bits, partial): (u64, u64),
        fetch: bool,
        energy: Option<f64>,
    ) -> Option<usize> {
        let per_cycle = |bits: u64| match width {
            Width::Bits(w) => Some((bits as f64 / w as f64).log2()),
            Width::Bytes(w) => Some((bits as f64 / (8 * w) as f64).log2()),
            Width::Words(w) => Some(-(w as f64).log2()),
            Width::Unlimited => None,
        };
        let fixed = per_cycle(bits);
        if fixed.is_none() && energy.is_none() {
            return None;
        }
        self.terms.push(Term {
            tensor,
            child,
            from,
            fixed: fixed.map(|fixed| fixed + slower.log2()),
            partial: per_cycle(partial)
                .zip(fixed)
                .map_or(0.0, |(partial, fixed)| partial - fixed),
            fetch,
            energy,
        });
        let index = self.terms.len() - 1;
        if fixed.is_some() {
            self.resources.entry(resource).or_default().push(index);
        }
        Some(index)
    }
}

/// True if one pass below `level` serves children whose loops over dimensions without relevance differ.
pub(crate) fn shares(arch: &Accelerator, level: usize, tensor: Tensor) -> bool {
    if level + 1 == arch.levels.len() {
        return true;
    }
    arch.levels[level].below.as_ref().is_some_and(|network| match tensor {
        Tensor::Outputs => network.reduction != Reduction::None,
        _ => network.multicast.contains(tensor),
    })
}
