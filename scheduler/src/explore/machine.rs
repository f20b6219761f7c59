//! A design as an accelerator that can be estimated by `exact` and simulated.

use cyclonest_arch::directives::{Lowered, Style, lower};
use cyclonest_arch::{
    Accelerator, AccessEnergy, Bank, Capacity, Channels, Clock, Compute, Level, Link, Mapping, Network, NetworkKind,
    Ports, Reduction, Technology, Width, Word, tile_elements,
};
use cyclonest_workloads::{DimMap, Problem, Tensor, TensorMap, TensorSet};

use super::space::Design;

/// A layer on a design: everything that is needed to simulate it.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// The loop nest; with a style its input includes the padding.
    pub problem: Problem,
    /// The machine.
    pub arch: Accelerator,
    /// The mapping.
    pub mapping: Mapping,
    /// L1 that the mapping needs in one PE, double-buffered \[elements\].
    pub l1: u64,
    /// L2 that the tiles of all PEs at one time need, double-buffered \[elements\].
    pub l2: u64,
}

/// `problem` in `style` on `pes` PEs: the machine is that which MAESTRO imagines ([`Lowered::machine`]), with all
/// switches on and one element per cycle; [`configure`] gives it those of a design.
///
/// # Errors
/// If the style cannot express the layer, or the loop nest cannot express the style.
pub(super) fn styled(style: Style, problem: &Problem, pes: u64, technology: &Technology) -> Result<Mapped, String> {
    let layer = style.layer("layer", problem, pes).map_err(|e| e.to_string())?;
    let lowered: Lowered = lower(&layer, pes).map_err(|e| e.to_string())?;
    let (mut arch, mapping) = lowered.machine(1, 1).map_err(|e| e.to_string())?;
    let energy = &technology.energy;
    let last = arch.levels.len() - 1;
    arch.levels[0].banks[0].energy = both(energy.l2);
    arch.levels[last].banks[0].energy = both(energy.l1);
    arch.compute.energy_per_mac = energy.mac;
    let problem = lowered.problem;
    let sum = |extents: &DimMap<u64>| -> u64 {
        Tensor::ALL
            .map(|t| 2 * tile_elements(&problem, extents, t))
            .iter()
            .sum()
    };
    let inner = mapping.tile_extents(&problem, last);
    let mut all = inner;
    for level in &mapping.levels[..last] {
        for spatial in &level.spatial {
            all[spatial.0] = (all[spatial.0] * spatial.1).min(problem.bounds[spatial.0]);
        }
    }
    Ok(Mapped {
        l1: sum(&inner),
        l2: sum(&all),
        problem,
        arch,
        mapping,
    })
}

/// Gives a machine of [`styled`] the network of `design`.
pub(super) fn configure(arch: &mut Accelerator, design: &Design) {
    let link = Link {
        width: Width::Words(design.noc_bandwidth),
        latency: design.noc_latency,
    };
    for network in arch.levels.iter_mut().filter_map(|level| level.below.as_mut()) {
        network.kind = NetworkKind::Pipe {
            down: Channels::OneForAll(link),
            up: Channels::OneForAll(link),
        };
        network.multicast = if design.multicast {
            TensorSet::ALL
        } else {
            TensorSet::EMPTY
        };
        network.reduction = if design.reduction {
            Reduction::Tree { stage: 0 }
        } else {
            Reduction::None
        };
    }
}

/// The machine that schedulers map to: memory, L2 and a mesh of PEs with an L1 and one lane each. Buffers are
/// double-buffered and shared by the tensors.
pub(super) fn scheduled(design: &Design, l1: u64, l2: u64, technology: &Technology) -> Accelerator {
    let energy = &technology.energy;
    let bank = |size, slots: u64, ports, energy| Bank {
        holds: TensorSet::ALL,
        size,
        slots: Tensor::ALL.map(|t| (t, slots)).into_iter().collect(),
        halo: [Tensor::Inputs].into_iter().collect(),
        fifo: 0,
        ports,
        latency: 1,
        energy: both(energy),
    };
    let network = |width, latency| Network {
        kind: NetworkKind::Pipe {
            down: Channels::OneForAll(Link { width, latency }),
            up: Channels::OneForAll(Link { width, latency }),
        },
        clock: None,
        multicast: TensorSet::EMPTY,
        reduction: Reduction::None,
        energy_per_bit_hop: 0.0,
    };
    let outside = Width::Words(design.offchip_bandwidth);
    let port = Ports::Shared {
        read: outside,
        write: outside,
    };
    let mut noc = network(Width::Words(design.noc_bandwidth), design.noc_latency);
    if design.multicast {
        noc.multicast = TensorSet::ALL;
    }
    if design.reduction {
        noc.reduction = Reduction::Tree { stage: 0 };
    }
    let level = |name: &str, mesh, bank, below| Level {
        name: name.to_owned(),
        mesh,
        spatial: None,
        refresh: None,
        banks: vec![bank],
        below,
    };
    Accelerator {
        name: format!("design {}", design.number),
        clock: Clock::MHz(1000.0),
        words: TensorMap::from_fn(|_| Word { bits: 8, partial: None }),
        levels: vec![
            level(
                "DRAM",
                (1, 1),
                bank(Capacity::Unbounded, 1, port, energy.dram),
                Some(network(outside, 1)),
            ),
            level(
                "L2",
                (1, 1),
                bank(Capacity::Words(l2), 2, Ports::Ideal, energy.l2),
                Some(noc),
            ),
            level(
                "L1",
                design.mesh,
                bank(Capacity::Words(l1), 2, Ports::Ideal, energy.l1),
                None,
            ),
        ],
        event_level: Some("L1".to_owned()),
        compute: Compute {
            lanes: (1, 1),
            depth: 0,
            interval: 1,
            energy_per_mac: energy.mac,
        },
        sources: std::collections::BTreeMap::new(),
    }
}

const fn both(energy: f64) -> AccessEnergy {
    AccessEnergy {
        read: energy,
        write: energy,
    }
}
