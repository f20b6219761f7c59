//! Random small machines, layers and mappings, valid by construction or drawn again.

use std::collections::BTreeMap;

use cyclonest_arch::{
    Accelerator, AccessEnergy, Axis, Bank, Capacity, Channels, Clock, Compute, Level, LevelMapping, Link, Loop,
    Mapping, Network, NetworkKind, PortPair, Ports, Reduction, Refresh, SpatialLoop, Width, Word,
};
use cyclonest_workloads::{Dim, DimMap, Padding, Pair, Problem, Tensor, TensorMap, TensorSet};
use proptest::strategy::Strategy;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A layer, a machine and a schedule of the one on the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The layer.
    pub problem: Problem,
    /// The machine.
    pub arch: Accelerator,
    /// The schedule.
    pub mapping: Mapping,
}

/// How large cases are: the number of levels, bounds and loops grow with it.
pub const FULL_SIZE: u32 = 4;

/// The case of `seed`, always the same one, of full size.
#[must_use]
pub fn case(seed: u64) -> Case {
    case_of_size(seed, FULL_SIZE)
}

/// The case of `seed` with at most `size` + 1 levels and bounds up to `size` + 1.
#[must_use]
pub fn case_of_size(seed: u64, size: u32) -> Case {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    loop {
        if let Some(case) = attempt(&mut rng, size) {
            return case;
        }
    }
}

/// Cases for proptest; they shrink towards fewer levels and smaller bounds.
pub fn cases() -> impl Strategy<Value = Case> {
    use proptest::prelude::any;
    (any::<u64>(), 1..=FULL_SIZE).prop_map(|(seed, size)| case_of_size(seed, size))
}

/// True once in `n`.
fn once_in(rng: &mut ChaCha8Rng, n: u32) -> bool {
    rng.random_range(0..n) == 0
}

fn pick<T: Copy>(rng: &mut ChaCha8Rng, from: &[T]) -> T {
    *from.choose(rng).expect("a choice")
}

fn subset(rng: &mut ChaCha8Rng, of: TensorSet) -> TensorSet {
    of.iter().filter(|_| rng.random_bool(0.5)).collect()
}

fn attempt(rng: &mut ChaCha8Rng, size: u32) -> Option<Case> {
    let levels = rng.random_range(2..=(size as usize + 1).max(2));
    let event = if levels > 2 && once_in(rng, 4) {
        rng.random_range(1..levels - 1)
    } else {
        levels - 1
    };
    let problem = problem(rng, size)?;
    let mapping = mapping(rng, &problem, levels, event);
    let mut arch = accelerator(rng, &mapping, event);
    // From a generator of its own, so that the cases of a seed without refresh stay what they are.
    let mut own = ChaCha8Rng::seed_from_u64(rng.clone().random());
    if once_in(&mut own, 8) {
        let every = own.random_range(5..=200);
        arch.levels[own.random_range(0..event)].refresh = Some(Refresh {
            every,
            takes: own.random_range(1..=every / 3),
        });
    }
    let case = Case { problem, arch, mapping };
    (affordable(&case, event)
        && case.arch.check().is_empty()
        && case.mapping.check(&case.problem, &case.arch).is_empty())
    .then_some(case)
}

/// Few PEs and few steps: the oracle looks at everything in every cycle.
fn affordable(case: &Case, event: usize) -> bool {
    let trips = |levels: &[LevelMapping], spatial: bool| -> u64 {
        levels
            .iter()
            .map(|l| {
                if spatial {
                    l.spatial.iter().map(|s| s.1).product::<u64>()
                } else {
                    l.temporal.iter().map(|t| t.1).product()
                }
            })
            .product()
    };
    let pes = trips(&case.mapping.levels[..event], true);
    let steps = trips(&case.mapping.levels[..event], false);
    let lanes = trips(&case.mapping.levels[event..], true);
    let burst = trips(&case.mapping.levels[event..], false);
    pes <= 8 && steps * pes <= 400 && lanes <= 8 && steps * pes * burst * lanes <= 4_000
}

fn problem(rng: &mut ChaCha8Rng, size: u32) -> Option<Problem> {
    let mut bounds = DimMap::ones();
    let mut dims = Dim::ALL;
    dims.shuffle(rng);
    for &d in &dims[..rng.random_range(2..=5)] {
        bounds[d] = rng.random_range(2..=u64::from(size) + 1 + u64::from(matches!(d, Dim::P | Dim::Q)) * 2);
    }
    if once_in(rng, 2) {
        bounds[Dim::K] = bounds[Dim::K].max(2);
    }
    let macs: u64 = bounds.0.iter().product();
    if !(4..=400).contains(&macs) {
        return None;
    }
    let mut pair = |odds, most| {
        let plain = !once_in(rng, odds);
        if plain {
            Pair::ONE
        } else {
            Pair(rng.random_range(1..=most), rng.random_range(1..=most))
        }
    };
    let (stride, dilation) = (pair(2, 3), pair(2, 2));
    let mut problem = Problem {
        stride,
        dilation,
        ..Problem::new(bounds)
    };
    if once_in(rng, 2) {
        let up_to = |taps: u64, dilation: u64| ((taps - 1) * dilation).min(2);
        let (rows, columns) = (
            up_to(bounds[Dim::R], problem.dilation.0),
            up_to(bounds[Dim::S], problem.dilation.1),
        );
        problem.padding = Padding {
            top: rng.random_range(0..=rows),
            bottom: rng.random_range(0..=rows),
            left: rng.random_range(0..=columns),
            right: rng.random_range(0..=columns),
        };
    }
    let real =
        !problem.real_rows().is_empty() && !problem.real_columns().is_empty() && problem.touched(Tensor::Inputs) > 0;
    real.then_some(problem)
}

/// Cuts every bound into loops: trip counts whose product may exceed it.
fn mapping(rng: &mut ChaCha8Rng, problem: &Problem, levels: usize, event: usize) -> Mapping {
    let mut plan: Vec<(Vec<Loop>, Vec<SpatialLoop>)> = vec![(Vec::new(), Vec::new()); levels];
    for d in Dim::ALL {
        let mut left = problem.bounds[d];
        while left > 1 {
            let trips = rng.random_range(2..=left);
            // Steps of the event levels make the story; bursts need less.
            let level = if rng.random_bool(0.75) {
                rng.random_range(0..event)
            } else {
                rng.random_range(event..levels)
            };
            let fanout: u64 = plan[level].1.iter().map(|s| s.1).product();
            if rng.random_bool(0.3) && fanout * trips <= 4 {
                plan[level]
                    .1
                    .push(SpatialLoop(d, trips, pick(rng, &[Axis::X, Axis::Y])));
            } else {
                plan[level].0.push(Loop(d, trips));
            }
            left = left.div_ceil(trips);
        }
    }
    let levels = plan
        .into_iter()
        .enumerate()
        .map(|(i, (mut temporal, mut spatial))| {
            temporal.shuffle(rng);
            spatial.shuffle(rng);
            let keeps = if i == 0 {
                TensorSet::ALL
            } else {
                Tensor::ALL.into_iter().filter(|_| rng.random_bool(0.75)).collect()
            };
            LevelMapping {
                level: format!("L{i}"),
                temporal,
                spatial,
                keeps,
            }
        })
        .collect();
    Mapping {
        bounds: problem.bounds,
        levels,
    }
}

fn accelerator(rng: &mut ChaCha8Rng, mapping: &Mapping, event: usize) -> Accelerator {
    let n = mapping.levels.len();
    let mesh = |rng: &mut ChaCha8Rng, level: &LevelMapping| {
        let along = |axis| {
            level
                .spatial
                .iter()
                .filter(|s| s.2 == axis)
                .map(|s| s.1)
                .product::<u64>()
        };
        (along(Axis::X) + u64::from(once_in(rng, 12)), along(Axis::Y))
    };
    let mut levels = Vec::new();
    for i in 0..n {
        levels.push(Level {
            name: format!("L{i}"),
            mesh: (1, 1),
            spatial: None,
            refresh: None,
            banks: banks(rng),
            below: (i + 1 < n).then(|| network(rng)),
        });
    }
    for (level, above) in levels.iter_mut().skip(1).zip(&mapping.levels) {
        level.mesh = mesh(rng, above);
    }
    let lanes = mesh(rng, &mapping.levels[n - 1]);
    let (bits, partial) = pick(rng, &[(8, Some(24)), (16, Some(32)), (16, None), (24, None)]);
    let plain = |bits| Word { bits, partial: None };
    Accelerator {
        name: "random".into(),
        clock: Clock::MHz(1000.0),
        words: TensorMap([plain(pick(rng, &[8, 16])), plain(8), Word { bits, partial }]),
        levels,
        event_level: (event + 1 < n || once_in(rng, 2)).then(|| format!("L{event}")),
        compute: Compute {
            lanes,
            depth: rng.random_range(0..=5),
            interval: if once_in(rng, 6) { 2 } else { 1 },
            energy_per_mac: 0.5,
        },
        sources: BTreeMap::new(),
    }
}

/// One bank for all, one per tensor, or one for features and one for weights.
fn banks(rng: &mut ChaCha8Rng) -> Vec<Bank> {
    let one = |t| TensorSet::from_iter([t]);
    let held = match rng.random_range(0..3) {
        0 => vec![TensorSet::ALL],
        1 => Tensor::ALL.map(one).to_vec(),
        _ => vec![
            TensorSet::from_iter([Tensor::Inputs, Tensor::Outputs]),
            one(Tensor::Weights),
        ],
    };
    held.into_iter()
        .map(|holds| Bank {
            holds,
            size: Capacity::Unbounded,
            slots: holds.iter().map(|t| (t, pick(rng, &[1, 1, 2, 2, 3]))).collect(),
            halo: if rng.random_bool(0.6) {
                holds
            } else {
                subset(rng, holds)
            },
            fifo: if once_in(rng, 4) { rng.random_range(1..=8) } else { 0 },
            ports: ports(rng, holds),
            latency: rng.random_range(1..=4),
            energy: AccessEnergy { read: 1.5, write: 2.0 },
        })
        .collect()
}

fn width(rng: &mut ChaCha8Rng) -> Width {
    match rng.random_range(0..10) {
        0 => Width::Bytes(pick(rng, &[1, 2, 4])),
        _ => Width::Bits(pick(rng, &[8, 16, 16, 32, 64])),
    }
}

/// Two widths in the same unit.
fn widths(rng: &mut ChaCha8Rng) -> (Width, Width) {
    if once_in(rng, 10) {
        let mut words = || Width::Words(pick(rng, &[1, 2, 4]));
        (words(), words())
    } else {
        (width(rng), width(rng))
    }
}

fn ports(rng: &mut ChaCha8Rng, holds: TensorSet) -> Ports {
    let (read, write) = widths(rng);
    match rng.random_range(0..20) {
        0 => Ports::Ideal,
        1..=6 => Ports::Shared { read, write },
        7..=13 => Ports::ReadWrite { read, write },
        _ => Ports::PerTensor(TensorMap::from_fn(|t| {
            let (read, write) = widths(rng);
            holds.contains(t).then_some(PortPair { read, write })
        })),
    }
}

fn channels(rng: &mut ChaCha8Rng) -> Channels {
    let link = |rng: &mut ChaCha8Rng| Link {
        width: widths(rng).0,
        latency: rng.random_range(1..=4),
    };
    if rng.random_bool(0.5) {
        Channels::OneForAll(link(rng))
    } else {
        Channels::PerTensor(TensorMap::from_fn(|_| Some(link(rng))))
    }
}

fn network(rng: &mut ChaCha8Rng) -> Network {
    let kind = match rng.random_range(0..20) {
        0 => NetworkKind::HierarchicalBus { width: width(rng) },
        1 => NetworkKind::Crossbar { link: width(rng) },
        2 => NetworkKind::Mesh { link: width(rng) },
        3..=7 => NetworkKind::Bus(channels(rng)),
        _ => NetworkKind::Pipe {
            down: channels(rng),
            up: channels(rng),
        },
    };
    let clock = once_in(rng, 6).then(|| Clock::MHz(pick(rng, &[300.0, 500.0, 1500.0, 2000.0])));
    let reduction = match rng.random_range(0..3) {
        0 => Reduction::None,
        1 => Reduction::Tree {
            stage: rng.random_range(0..=3),
        },
        _ => Reduction::Chain {
            hop: rng.random_range(1..=3),
        },
    };
    Network {
        kind,
        clock,
        multicast: match rng.random_range(0..3) {
            0 => TensorSet::ALL,
            1 => TensorSet::EMPTY,
            _ => subset(rng, TensorSet::ALL),
        },
        reduction,
        energy_per_bit_hop: 0.1,
    }
}
