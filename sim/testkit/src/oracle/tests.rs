//! The worked example of the timing contract: K2 C2 P4 R3, DRAM, a global buffer and two PEs.

use std::collections::BTreeMap;

use cyclonest_arch::{
    Accelerator, Bank, Capacity, Channels, Clock, Compute, Level, LevelMapping, Link, Loop, Mapping, Network,
    NetworkKind, Passes, PortPair, Ports, Reduction, SpatialLoop, Width, Word,
};
use cyclonest_workloads::{Dim, DimMap, Problem, Tensor, TensorMap, TensorSet};

use super::{Options, OracleOutcome, simulate};

struct Variant {
    slots: u64,
    multicast: bool,
    reduction: Reduction,
    split: Dim,
}

const DOUBLE: Variant = Variant {
    slots: 2,
    multicast: true,
    reduction: Reduction::None,
    split: Dim::K,
};

fn bank(holds: TensorSet, slots: u64, halo: TensorSet, ports: Ports, latency: u64) -> Bank {
    Bank {
        holds,
        size: Capacity::Unbounded,
        slots: holds.iter().map(|t| (t, slots)).collect(),
        halo,
        fifo: 0,
        ports,
        latency,
        energy: cyclonest_arch::AccessEnergy::default(),
    }
}

fn network(width: u64, v: &Variant) -> Network {
    let link = Channels::OneForAll(Link {
        width: Width::Bits(width),
        latency: 1,
    });
    Network {
        kind: NetworkKind::Pipe { down: link, up: link },
        clock: None,
        multicast: if v.multicast { TensorSet::ALL } else { TensorSet::EMPTY },
        reduction: v.reduction,
        energy_per_bit_hop: 0.0,
    }
}

fn worked(v: &Variant) -> OracleOutcome {
    use Tensor::{Inputs, Outputs};
    let w32 = Width::Bits(32);
    let io = TensorSet::from_iter([Inputs, Outputs]);
    let level = |name: &str, mesh, bank, below| Level {
        name: name.into(),
        mesh: (mesh, 1),
        spatial: None,
        refresh: None,
        banks: vec![bank],
        below,
    };
    let word = |bits| Word { bits, partial: None };
    let pair = Some(PortPair { read: w32, write: w32 });
    let arch = Accelerator {
        name: "worked".into(),
        clock: Clock::MHz(1000.0),
        words: TensorMap([word(8), word(8), word(16)]),
        levels: vec![
            level(
                "DRAM",
                1,
                bank(
                    TensorSet::ALL,
                    1,
                    TensorSet::EMPTY,
                    Ports::Shared { read: w32, write: w32 },
                    4,
                ),
                Some(network(32, v)),
            ),
            level(
                "GB",
                1,
                bank(
                    io,
                    v.slots,
                    TensorSet::from_iter([Inputs]),
                    Ports::ReadWrite { read: w32, write: w32 },
                    1,
                ),
                Some(network(16, v)),
            ),
            level(
                "PE",
                2,
                bank(
                    TensorSet::ALL,
                    v.slots,
                    TensorSet::EMPTY,
                    Ports::PerTensor(TensorMap([pair; 3])),
                    1,
                ),
                None,
            ),
        ],
        event_level: None,
        compute: Compute {
            lanes: (1, 1),
            depth: 1,
            interval: 1,
            energy_per_mac: 0.0,
        },
        sources: BTreeMap::new(),
    };
    let mut bounds = DimMap::ones();
    for (d, n) in [(Dim::K, 2), (Dim::C, 2), (Dim::P, 4), (Dim::R, 3)] {
        bounds[d] = n;
    }
    let other = if v.split == Dim::K { Dim::C } else { Dim::K };
    let at = |level: &str, temporal: &[Loop], spatial: &[SpatialLoop], keeps| LevelMapping {
        level: level.into(),
        temporal: temporal.to_vec(),
        spatial: spatial.to_vec(),
        keeps,
    };
    let mapping = Mapping {
        bounds,
        levels: vec![
            at("DRAM", &[Loop(Dim::P, 2)], &[], TensorSet::ALL),
            at(
                "GB",
                &[Loop(other, 2)],
                &[SpatialLoop(v.split, 2, cyclonest_arch::Axis::X)],
                io,
            ),
            at("PE", &[Loop(Dim::P, 2), Loop(Dim::R, 3)], &[], TensorSet::ALL),
        ],
    };
    let outcome = simulate(&Problem::new(bounds), &arch, &mapping, Options::default()).unwrap();
    assert_eq!(outcome.fault, None);
    assert_eq!(
        outcome.busy_cycles + outcome.stall_cycles.values().sum::<u64>(),
        2 * outcome.cycles
    );
    outcome
}

#[test]
fn double_slots_and_multicast_take_51_cycles() {
    let o = worked(&DOUBLE);
    assert_eq!(o.cycles, 51);
    assert_eq!(o.busy_cycles, 48);
    let a = |level: usize, tensor| o.counts.levels[level].tensors[tensor];
    assert_eq!((a(0, Tensor::Inputs).reads, a(0, Tensor::Weights).reads), (12, 24));
    assert_eq!((a(1, Tensor::Inputs).reads, a(1, Tensor::Inputs).fills), (16, 12));
    assert_eq!((a(2, Tensor::Inputs).fills, a(2, Tensor::Weights).fills), (32, 24));
    assert_eq!(
        (
            a(2, Tensor::Inputs).reads,
            a(2, Tensor::Weights).reads,
            a(2, Tensor::Outputs).reads
        ),
        (48, 48, 40)
    );
    assert_eq!((a(2, Tensor::Outputs).updates, a(1, Tensor::Outputs).updates), (48, 8));
    assert_eq!((a(2, Tensor::Outputs).drains, a(1, Tensor::Outputs).drains), (8, 8));
    let down = |tensor| o.counts.levels[1].network[tensor].down.clone();
    // 4 transfers of 4 words of 8 bits over 16 bits; 8 of 3.
    assert_eq!(
        down(Tensor::Inputs),
        BTreeMap::from([(2, Passes { elements: 16, words: 8 })])
    );
    assert_eq!(
        down(Tensor::Weights),
        BTreeMap::from([(
            1,
            Passes {
                elements: 24,
                words: 16
            }
        )])
    );
    assert_eq!(o.occupancy["DRAM.port"], 15);
    assert_eq!(o.occupancy["GB.down"], 24);
    assert_eq!(o.occupancy["GB.up"], 8);
    assert_eq!(o.occupancy["GB.write port"], 7);
}

#[test]
fn single_slots_take_74_cycles_with_and_without_multicast() {
    assert_eq!(worked(&Variant { slots: 1, ..DOUBLE }).cycles, 74);
    let unicast = Variant {
        slots: 1,
        multicast: false,
        ..DOUBLE
    };
    assert_eq!(worked(&unicast).cycles, 74);
}

#[test]
fn unicast_takes_55_cycles_and_twice_the_input_words() {
    let o = worked(&Variant {
        multicast: false,
        ..DOUBLE
    });
    assert_eq!(o.cycles, 55);
    let down = &o.counts.levels[1].network[Tensor::Inputs].down;
    assert_eq!(
        *down,
        BTreeMap::from([(
            1,
            Passes {
                elements: 32,
                words: 16
            }
        )])
    );
}

#[test]
fn partial_sums_meet_at_the_parent_in_a_tree_or_in_a_chain() {
    for (reduction, cycles, updates, modified) in [
        (Reduction::None, 51, 16, 8),
        (Reduction::Tree { stage: 1 }, 52, 8, 0),
        (Reduction::Chain { hop: 1 }, 52, 8, 0),
    ] {
        let o = worked(&Variant {
            reduction,
            split: Dim::C,
            ..DOUBLE
        });
        assert_eq!(o.cycles, cycles, "{reduction:?}");
        let outputs = o.counts.levels[1].tensors[Tensor::Outputs];
        assert_eq!(
            (outputs.updates, outputs.read_modify_writes),
            (updates, modified),
            "{reduction:?}"
        );
    }
}
