//! Machines on which nothing waits for anything meet the closed form to the cycle.
//!
//! One PE with one lane; every tensor has ports and channels of its own, so no stream meets another; slots without
//! end, so nothing waits for room; no output is visited twice, so nothing waits for a partial sum; and no transfer
//! takes longer than the computing that it feeds. Then
//!
//! > cycles = first fill + bursts + pipeline depth + last drain
//!
//! A hop from one keeping level to the next takes the latencies of its stages plus the longest of their occupancies
//! (rule 11, with every stage free when the head gets there), hops follow one another (rule 8), and the first burst
//! waits for the slower of weights and inputs. Any later fill arrives in time: behind the first one of its hop, a
//! stream falls back by at most the longest occupancy of a transfer per residency, and the bursts of a residency are at
//! least as long. Any later drain finds its path free for the same reason.

use std::collections::BTreeMap;

use cyclonest_arch::{
    Accelerator, AccessEnergy, Bank, Capacity, Channels, Clock, Compute, Level, LevelMapping, Link, Loop, Mapping,
    Network, NetworkKind, PortPair, Ports, Reduction, Width, Word,
};
use cyclonest_sim::{Options, simulate};
use cyclonest_workloads::{Dim, DimMap, Pair, Problem, Tensor, TensorMap, TensorSet};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CASES: usize = 400;
const ENDLESS: u64 = 1 << 20;

struct Case {
    problem: Problem,
    arch: Accelerator,
    mapping: Mapping,
}

/// The loops of `levels` levels from the outermost in, as (dimension, trips, stride).
fn nest(case: &Case, levels: usize) -> Vec<(Dim, u64, u64)> {
    let all: Vec<Loop> = case.mapping.levels.iter().flat_map(|l| l.temporal.clone()).collect();
    let taken = case.mapping.levels[..levels].iter().map(|l| l.temporal.len()).sum();
    let stride = |at: usize| {
        let inside = all[at + 1..].iter().filter(|l| l.0 == all[at].0);
        inside.map(|l| l.1).product()
    };
    (0..taken).map(|at| (all[at].0, all[at].1, stride(at))).collect()
}

/// Lowest indices of every existing step of a level, in order.
fn steps(case: &Case, level: usize) -> Vec<DimMap<u64>> {
    let mut steps = vec![DimMap::<u64>::default()];
    for (dim, trips, stride) in nest(case, level) {
        let on = |low: &DimMap<u64>| {
            let low = *low;
            (0..trips).map(move |i| {
                let mut next = low;
                next[dim] += i * stride;
                next
            })
        };
        steps = steps.iter().flat_map(on).collect();
    }
    steps.retain(|low| Dim::ALL.iter().all(|&d| low[d] < case.problem.bounds[d]));
    steps
}

/// Extents of a level's tile at a step.
fn extents(case: &Case, level: usize, low: &DimMap<u64>) -> DimMap<u64> {
    let tile = |d| case.mapping.trips_within(level, d);
    DimMap::from_fn(|d| tile(d).min(case.problem.bounds[d] - low[d]))
}

/// Elements of a tensor's tile; input rows and columns counted one by one.
fn elements(case: &Case, tensor: Tensor, e: &DimMap<u64>) -> u64 {
    let lines = |windows: u64, taps: u64, stride: u64, dilation: u64| {
        let all = (0..windows).flat_map(|p| (0..taps).map(move |r| p * stride + r * dilation));
        all.collect::<std::collections::BTreeSet<_>>().len() as u64
    };
    let (s, d) = (case.problem.stride, case.problem.dilation);
    match tensor {
        Tensor::Weights => e[Dim::G] * e[Dim::K] * e[Dim::C] * e[Dim::R] * e[Dim::S],
        Tensor::Outputs => e[Dim::N] * e[Dim::G] * e[Dim::K] * e[Dim::P] * e[Dim::Q],
        Tensor::Inputs => {
            let rows = lines(e[Dim::P], e[Dim::R], s.0, d.0);
            let columns = lines(e[Dim::Q], e[Dim::S], s.1, d.1);
            e[Dim::N] * e[Dim::G] * e[Dim::C] * rows * columns
        }
    }
}

/// Levels that keep a tensor, outermost first, in pairs.
fn hops(case: &Case, tensor: Tensor) -> Vec<(usize, usize)> {
    let levels = case.mapping.levels.iter().enumerate();
    let keepers: Vec<usize> = levels
        .filter(|(_, l)| l.keeps.contains(tensor))
        .map(|(i, _)| i)
        .collect();
    keepers.windows(2).map(|w| (w[0], w[1])).collect()
}

/// Latency of a hop, and the longest occupancy of its stages for `elements`.
fn hop(case: &Case, tensor: Tensor, (p, c): (usize, usize), elements: u64) -> (u64, u64) {
    let down = tensor != Tensor::Outputs;
    let level = |l: usize| case.arch.levels[l].bank(tensor).unwrap();
    let (from, to) = if down { (p, c) } else { (c, p) };
    let mut latency = level(from).latency;
    let mut widths = vec![level(from).read_width(tensor), level(to).write_width(tensor)];
    for k in p..c {
        let link = case.arch.channels(k, down).unwrap().link(tensor).unwrap();
        latency += link.latency;
        widths.push(link.width);
    }
    let bits = case.arch.bits(tensor, false);
    let longest = widths.iter().map(|w| w.cycles(elements, bits)).max().unwrap();
    (latency, longest)
}

/// Cycles, if the case is free of contention; `None` if a transfer takes longer than the computing that it feeds.
fn closed_form(case: &Case) -> Option<u64> {
    let innermost = case.arch.levels.len() - 1;
    let burst =
        |low: &DimMap<u64>| extents(case, innermost, low).0.iter().product::<u64>() * case.arch.compute.interval;
    let bursts = steps(case, innermost);
    let total: u64 = bursts.iter().map(burst).sum();

    // The shortest computing of one step of each level.
    let shortest = |level: usize| {
        let mut of_step: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
        let tile = DimMap::from_fn(|d| case.mapping.trips_within(level, d));
        // Steps of a reduction or irrelevant loop count apart: the key is the tile's corner in all dimensions.
        for low in &bursts {
            let corner = Dim::ALL.iter().map(|&d| low[d] / tile[d]).collect();
            *of_step.entry(corner).or_default() += burst(low);
        }
        of_step.into_values().min().unwrap()
    };
    let first = DimMap::default();
    let mut start = 0;
    for tensor in [Tensor::Weights, Tensor::Inputs] {
        let mut arrival = 0;
        for pair in hops(case, tensor) {
            let tile = elements(case, tensor, &extents(case, pair.1, &first));
            let (latency, longest) = hop(case, tensor, pair, tile);
            if longest > shortest(pair.1) {
                return None;
            }
            arrival += latency + longest;
        }
        start = start.max(arrival);
    }
    let mut end = start + total + case.arch.compute.depth;
    let mut late = 0;
    for pair in hops(case, Tensor::Outputs).into_iter().rev() {
        let whole = elements(case, Tensor::Outputs, &extents(case, pair.1, &first));
        // The drains of an intermediate level start up to one inner drain apart from the computing.
        if hop(case, Tensor::Outputs, pair, whole).1 + late > shortest(pair.1) {
            return None;
        }
        late = hop(case, Tensor::Outputs, pair, whole).1;
        let last = steps(case, pair.1).pop().unwrap();
        let tile = elements(case, Tensor::Outputs, &extents(case, pair.1, &last));
        let (latency, longest) = hop(case, Tensor::Outputs, pair, tile);
        end += latency + longest;
    }
    Some(end)
}

fn attempt(rng: &mut ChaCha8Rng) -> Case {
    let mut bounds = DimMap::ones();
    let mut dims = Dim::ALL;
    dims.shuffle(rng);
    for &d in &dims[..rng.random_range(2..=5)] {
        bounds[d] = rng.random_range(2..=7);
    }
    let mut problem = Problem::new(bounds);
    problem.stride = Pair(rng.random_range(1..=3), rng.random_range(1..=2));
    problem.dilation = Pair(rng.random_range(1..=2), rng.random_range(1..=3));

    // Loops over outputs outside, loops of the reduction inside: no output is visited twice.
    let (mut outer, mut reduction, mut inside) = (Vec::new(), Vec::new(), Vec::new());
    for d in Dim::ALL {
        let mut left = bounds[d];
        while left > 1 {
            let trips = rng.random_range(2..=left);
            if rng.random_bool(0.5) {
                inside.push(Loop(d, trips));
            } else if d.is_reduction() {
                reduction.push(Loop(d, trips));
            } else {
                outer.push(Loop(d, trips));
            }
            left = left.div_ceil(trips);
        }
    }
    outer.shuffle(rng);
    reduction.shuffle(rng);
    inside.shuffle(rng);
    outer.extend(reduction);
    let levels = rng.random_range(2..=3);
    let middle = if levels == 3 {
        outer.split_off(rng.random_range(0..=outer.len()))
    } else {
        Vec::new()
    };
    let mut temporal = vec![outer];
    if levels == 3 {
        temporal.push(middle);
    }
    temporal.push(inside);
    let mapping = Mapping {
        bounds,
        levels: temporal
            .into_iter()
            .enumerate()
            .map(|(i, temporal)| LevelMapping {
                level: format!("L{i}"),
                temporal,
                spatial: Vec::new(),
                keeps: if i == 0 || i + 1 == levels {
                    TensorSet::ALL
                } else {
                    Tensor::ALL.into_iter().filter(|_| rng.random_bool(0.7)).collect()
                },
            })
            .collect(),
    };
    let arch = machine(rng, levels);
    Case { problem, arch, mapping }
}

fn machine(rng: &mut ChaCha8Rng, levels: usize) -> Accelerator {
    let bits = TensorMap([8u64, 16, 24]);
    let wide = |rng: &mut ChaCha8Rng, least: u64| Width::Bits(least * *[1, 2, 4, 64].choose(rng).unwrap());
    let levels = (0..levels)
        .map(|i| Level {
            name: format!("L{i}"),
            mesh: (1, 1),
            spatial: None,
            refresh: None,
            banks: vec![Bank {
                holds: TensorSet::ALL,
                size: Capacity::Unbounded,
                slots: Tensor::ALL.map(|t| (t, ENDLESS)).into_iter().collect(),
                halo: Tensor::ALL.into_iter().filter(|_| rng.random_bool(0.5)).collect(),
                fifo: 0,
                ports: Ports::PerTensor(TensorMap::from_fn(|t| {
                    // An element per cycle and direction: the lane is never slower than its operands.
                    let (read, write) = (wide(rng, bits[t]), wide(rng, bits[t]));
                    Some(PortPair { read, write })
                })),
                latency: rng.random_range(1..=9),
                energy: AccessEnergy::default(),
            }],
            below: (i + 1 < levels).then(|| {
                let mut channels = || {
                    Channels::PerTensor(TensorMap::from_fn(|t| {
                        Some(Link {
                            width: wide(rng, bits[t]),
                            latency: rng.random_range(1..=5),
                        })
                    }))
                };
                Network {
                    kind: NetworkKind::Pipe {
                        down: channels(),
                        up: channels(),
                    },
                    clock: None,
                    multicast: TensorSet::EMPTY,
                    reduction: Reduction::None,
                    energy_per_bit_hop: 0.0,
                }
            }),
        })
        .collect();
    Accelerator {
        name: "uncontended".into(),
        clock: Clock::MHz(1000.0),
        words: TensorMap(bits.0.map(|bits| Word { bits, partial: None })),
        levels,
        event_level: None,
        compute: Compute {
            lanes: (1, 1),
            depth: rng.random_range(0..=7),
            interval: rng.random_range(1..=2),
            energy_per_mac: 0.0,
        },
        sources: BTreeMap::new(),
    }
}

#[test]
fn without_contention_cycles_are_first_fill_plus_bursts_plus_last_drain() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut met, mut clipped, mut bypassing, mut middle, mut wide, mut long) = (0, 0, 0, 0, 0, 0);
    while met < CASES {
        let case = attempt(&mut rng);
        let Some(expected) = closed_form(&case) else { continue };
        assert!(case.arch.check().is_empty(), "{:?}", case.arch.check());
        if !case.mapping.check(&case.problem, &case.arch).is_empty() {
            continue;
        }
        let outcome = simulate(&case.problem, &case.arch, &case.mapping, Options::default()).unwrap();
        assert_eq!(
            outcome.cycles, expected,
            "{:?}\n{:?}\n{:?}",
            case.problem, case.mapping, case.arch
        );
        met += 1;
        let innermost = case.arch.levels.len() - 1;
        let whole = |d: &Dim| case.mapping.trips_within(0, *d) == case.problem.bounds[*d];
        clipped += usize::from(!Dim::ALL.iter().all(whole));
        middle += usize::from(innermost == 2);
        bypassing += usize::from(innermost == 2 && case.mapping.levels[1].keeps != TensorSet::ALL);
        wide += usize::from(outcome.occupancy.values().any(|&busy| busy > 2 * outcome.transfers));
        long += usize::from(steps(&case, innermost).len() >= 8);
    }
    // The cases are not all trivial ones.
    println!(
        "{met} cases: {clipped} clipped, {middle} with a middle level, {bypassing} bypassing it, {long} of 8 steps or more, {wide} with long transfers"
    );
    for (what, count) in [
        ("clipped", clipped),
        ("middle", middle),
        ("bypassing", bypassing),
        ("long", long),
    ] {
        assert!(count * 10 >= met, "{what}: {count} of {met}");
    }
}
