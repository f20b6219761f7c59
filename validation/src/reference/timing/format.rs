//! The line format of the records, and its conversion to a problem, a machine and a mapping.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cyclonest_arch::{
    Accelerator, AccessEnergy, Axis, Bank, Capacity, Channels, Clock, Compute, Level, LevelMapping, Link, Loop,
    Mapping, Network, NetworkKind, Ports, Reduction, SpatialLoop, Width, Word,
};
use cyclonest_workloads::{Dim, DimMap, Padding, Pair, Problem, Tensor, TensorMap, TensorSet};
use serde::Deserialize;

use super::{Expected, Record};

#[derive(Deserialize)]
struct RawRecord {
    id: String,
    problem: RawProblem,
    machine: RawMachine,
    mapping: Vec<RawLevelMapping>,
    result: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProblem {
    bounds: DimMap<u64>,
    stride: (u64, u64),
    dilation: (u64, u64),
    padding: (u64, u64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMachine {
    levels: Vec<RawLevel>,
    networks: Vec<RawNetwork>,
    bits: RawBits,
    pipeline_depth: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLevel {
    read_bits: u64,
    write_bits: u64,
    latency: u64,
    slots: u64,
    bank: Sharing,
    port: RawPort,
    halo: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNetwork {
    width_bits: u64,
    latency: u64,
    multicast: bool,
    reduction: RawReduction,
    channel: Sharing,
    kind: RawKind,
    t_add: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBits {
    #[serde(rename = "W")]
    w: u64,
    #[serde(rename = "I")]
    i: u64,
    #[serde(rename = "O")]
    o: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLevelMapping {
    temporal: Vec<(Dim, u64)>,
    spatial: Vec<(Dim, u64)>,
    keeps: Vec<Letter>,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Sharing {
    Shared,
    PerTensor,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum RawPort {
    Shared,
    ReadWrite,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum RawReduction {
    None,
    Tree,
    Chain,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum RawKind {
    Pipe,
    Bus,
}

#[derive(Deserialize, Clone, Copy)]
enum Letter {
    W,
    I,
    O,
}

impl Letter {
    const fn tensor(self) -> Tensor {
        match self {
            Letter::W => Tensor::Weights,
            Letter::I => Tensor::Inputs,
            Letter::O => Tensor::Outputs,
        }
    }
}

/// Reads one line; the error is a column and a message.
pub(super) fn parse(line: &str) -> Result<Record, (usize, String)> {
    let raw: RawRecord = serde_json::from_str(line).map_err(|e| {
        let mut message = e.to_string();
        if let Some(at) = message.rfind(" at line ") {
            message.truncate(at);
        }
        (e.column().max(1), message)
    })?;
    convert(raw).map_err(|message| (1, message))
}

fn convert(raw: RawRecord) -> Result<Record, String> {
    let n = raw.machine.levels.len();
    let mut faults = String::new();
    if n == 0 {
        faults.push_str("no levels; ");
    }
    if raw.machine.networks.len() + 1 != n {
        let _ = write!(
            faults,
            "{} networks for {n} levels, one less than levels is expected; ",
            raw.machine.networks.len()
        );
    }
    if raw.mapping.len() != n {
        let _ = write!(
            faults,
            "{} levels in the mapping, {n} in the machine; ",
            raw.mapping.len()
        );
    }
    positive(&raw, &mut faults);
    if !faults.is_empty() {
        return Err(format!("record {}: {}", raw.id, faults.trim_end_matches("; ")));
    }
    let problem = Problem {
        bounds: raw.problem.bounds,
        stride: Pair(raw.problem.stride.0, raw.problem.stride.1),
        dilation: Pair(raw.problem.dilation.0, raw.problem.dilation.1),
        padding: Padding {
            top: raw.problem.padding.0,
            bottom: raw.problem.padding.0,
            left: raw.problem.padding.1,
            right: raw.problem.padding.1,
        },
    };
    Ok(Record {
        arch: accelerator(&raw),
        mapping: mapping(&raw),
        id: raw.id,
        problem,
        expected: raw.result,
    })
}

/// Notes everything that must be at least 1 and is not.
fn positive(raw: &RawRecord, faults: &mut String) {
    let mut check = |what: String, value: u64| {
        if value == 0 {
            let _ = write!(faults, "{what} is 0, at least 1 is expected; ");
        }
    };
    let p = &raw.problem;
    check("stride".into(), p.stride.0.min(p.stride.1));
    check("dilation".into(), p.dilation.0.min(p.dilation.1));
    for (i, l) in raw.machine.levels.iter().enumerate() {
        check(format!("read_bits of level {i}"), l.read_bits);
        check(format!("write_bits of level {i}"), l.write_bits);
        check(format!("latency of level {i}"), l.latency);
        check(format!("slots of level {i}"), l.slots);
    }
    for (i, l) in raw.machine.networks.iter().enumerate() {
        check(format!("width_bits of network {i}"), l.width_bits);
        check(format!("latency of network {i}"), l.latency);
    }
    for (i, l) in raw.mapping.iter().enumerate() {
        for &(dim, trips) in l.temporal.iter().chain(&l.spatial) {
            check(format!("a loop over {dim} at level {i}"), trips);
        }
    }
    let b = &raw.machine.bits;
    check("bits of W, I or O".into(), b.w.min(b.i).min(b.o));
}

fn accelerator(raw: &RawRecord) -> Accelerator {
    let fanout = |level: &RawLevelMapping| level.spatial.iter().map(|s| s.1).product::<u64>();
    let machine = &raw.machine;
    let levels = machine
        .levels
        .iter()
        .enumerate()
        .map(|(i, level)| Level {
            name: format!("L{i}"),
            mesh: (if i == 0 { 1 } else { fanout(&raw.mapping[i - 1]) }, 1),
            spatial: None,
            refresh: None,
            banks: banks(level),
            below: machine.networks.get(i).map(network),
        })
        .collect();
    let word = |bits| Word { bits, partial: None };
    Accelerator {
        name: raw.id.clone(),
        clock: Clock::MHz(1000.0),
        words: TensorMap([word(machine.bits.w), word(machine.bits.i), word(machine.bits.o)]),
        levels,
        event_level: None,
        compute: Compute {
            lanes: (raw.mapping.last().map_or(1, fanout), 1),
            depth: machine.pipeline_depth,
            interval: 1,
            energy_per_mac: 0.0,
        },
        sources: BTreeMap::new(),
    }
}

fn banks(level: &RawLevel) -> Vec<Bank> {
    let (read, write) = (Width::Bits(level.read_bits), Width::Bits(level.write_bits));
    let ports = match level.port {
        RawPort::Shared => Ports::Shared { read, write },
        RawPort::ReadWrite => Ports::ReadWrite { read, write },
    };
    let bank = |holds: TensorSet| Bank {
        holds,
        size: Capacity::Unbounded,
        slots: holds.iter().map(|t| (t, level.slots)).collect(),
        halo: if level.halo { holds } else { TensorSet::EMPTY },
        fifo: 0,
        ports,
        latency: level.latency,
        energy: AccessEnergy::default(),
    };
    match level.bank {
        Sharing::Shared => vec![bank(TensorSet::ALL)],
        Sharing::PerTensor => Tensor::ALL
            .into_iter()
            .map(|t| bank(TensorSet::from_iter([t])))
            .collect(),
    }
}

fn network(raw: &RawNetwork) -> Network {
    let link = Link {
        width: Width::Bits(raw.width_bits),
        latency: raw.latency,
    };
    let channels = match raw.channel {
        Sharing::Shared => Channels::OneForAll(link),
        Sharing::PerTensor => Channels::PerTensor(TensorMap([Some(link); 3])),
    };
    Network {
        kind: match raw.kind {
            RawKind::Pipe => NetworkKind::Pipe {
                down: channels,
                up: channels,
            },
            RawKind::Bus => NetworkKind::Bus(Channels::OneForAll(link)),
        },
        clock: None,
        multicast: if raw.multicast {
            TensorSet::ALL
        } else {
            TensorSet::EMPTY
        },
        reduction: match raw.reduction {
            RawReduction::None => Reduction::None,
            RawReduction::Tree => Reduction::Tree { stage: raw.t_add },
            RawReduction::Chain => Reduction::Chain { hop: raw.t_add },
        },
        energy_per_bit_hop: 0.0,
    }
}

fn mapping(raw: &RawRecord) -> Mapping {
    Mapping {
        bounds: raw.problem.bounds,
        levels: raw
            .mapping
            .iter()
            .enumerate()
            .map(|(i, level)| LevelMapping {
                level: format!("L{i}"),
                temporal: level.temporal.iter().map(|&(d, n)| Loop(d, n)).collect(),
                spatial: level.spatial.iter().map(|&(d, n)| SpatialLoop(d, n, Axis::X)).collect(),
                keeps: level.keeps.iter().map(|l| l.tensor()).collect(),
            })
            .collect(),
    }
}
