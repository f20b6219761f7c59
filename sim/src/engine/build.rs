//! From a plan to a world: ports, channels, stores, sequencers and PEs as entities.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use cyclonest_arch::{Accelerator, Channels, Counts, Mapping, Network, NetworkKind, Ports, Reduction, Refresh};
use cyclonest_workloads::{Dim, Problem, Tensor, TensorMap};
use specs::{Builder, World, WorldExt};

use super::Shared;
use super::components::{
    Cache, Feed, Flow, Need, Pe, PeId, Record, Resource, ResourceId, Sequencer, SequencerId, Shape, Stage, Store,
    StoreId,
};
use super::recur::Recurrence;
use super::refresh::Refreshes;
use super::stall::Blame;
use super::traffic::TrafficCounters;
use super::values::Data;
use crate::observe::StageKind;
use crate::plan::cursor::Cursor;
use crate::plan::{Plan, Tile};
use crate::wheel::Wheel;
use crate::{Cycle, FastForward, Fault, Options, SimError};

/// Which resource serves what.
#[derive(Debug)]
pub(crate) struct Wiring {
    arch: Accelerator,
    /// Per level: number of resources per instance, and per tensor the offset of its read and write port.
    ports: Vec<PortLayout>,
    channels: Vec<ChannelLayout>,
    resources: u32,
    /// Per resource: its refresh, for ports that anything can wait for.
    refreshes: Vec<Option<Refresh>>,
}

#[derive(Debug, Clone)]
struct PortLayout {
    first: u32,
    per_instance: u32,
    read: TensorMap<u32>,
    write: TensorMap<u32>,
    names: Vec<String>,
}

#[derive(Debug, Clone)]
struct ChannelLayout {
    first: u32,
    per_instance: u32,
    down: TensorMap<u32>,
    up: TensorMap<u32>,
    down_channels: Channels,
    up_channels: Channels,
    clock: (u64, u64),
    names: Vec<String>,
}

fn khz(mhz: f64) -> u64 {
    (mhz * 1000.0).round() as u64
}

impl Wiring {
    fn new(arch: &Accelerator, plan: &Plan) -> Self {
        let mut next = 0;
        let mut ports = Vec::new();
        let mut channels = Vec::new();
        let mut refreshes: Vec<Option<Refresh>> = Vec::new();
        for c in 0..=plan.pe_level {
            let level = &arch.levels[c];
            let instances = plan.instances[c].len() as u32;
            let mut names = Vec::new();
            let mut refreshed = Vec::new();
            let (mut read, mut write) = (TensorMap([0; 3]), TensorMap([0; 3]));
            for (b, bank) in level.banks.iter().enumerate() {
                let mut port = |what: String| {
                    names.push(format!("{} bank {b} {what}", level.name));
                    refreshed.push(level.refresh.filter(|_| !matches!(bank.ports, Ports::Ideal)));
                    names.len() as u32 - 1
                };
                match bank.ports {
                    Ports::Shared { .. } => {
                        let shared = port("port".into());
                        bank.holds.iter().for_each(|t| (read[t], write[t]) = (shared, shared));
                    }
                    Ports::Ideal | Ports::ReadWrite { .. } => {
                        let (r, w) = (port("read port".into()), port("write port".into()));
                        bank.holds.iter().for_each(|t| (read[t], write[t]) = (r, w));
                    }
                    Ports::PerTensor(_) => {
                        for t in bank.holds.iter() {
                            read[t] = port(format!("{t} read port"));
                            write[t] = port(format!("{t} write port"));
                        }
                    }
                }
            }
            let per_instance = names.len() as u32;
            ports.push(PortLayout {
                first: next,
                per_instance,
                read,
                write,
                names,
            });
            next += per_instance * instances;
            (0..instances).for_each(|_| refreshes.extend_from_slice(&refreshed));

            if c == plan.pe_level {
                break;
            }
            let network = level
                .below
                .as_ref()
                .expect("checked: every level but the innermost has a network");
            let (down_channels, up_channels) = (
                arch.channels(c, true).expect("has a network"),
                arch.channels(c, false).expect("has a network"),
            );
            let mut names = Vec::new();
            let mut lay = |channels: &Channels, what: &str| {
                if channels.per_tensor() {
                    TensorMap::from_fn(|t| {
                        names.push(format!("{} network {what} {t}", level.name));
                        names.len() as u32 - 1
                    })
                } else {
                    names.push(format!("{} network {what}", level.name));
                    TensorMap([names.len() as u32 - 1; 3])
                }
            };
            let (down, up) = if matches!(network.kind, NetworkKind::Bus(_)) {
                let both = lay(&down_channels, "bus");
                (both, both)
            } else {
                (lay(&down_channels, "down"), lay(&up_channels, "up"))
            };
            let per_instance = names.len() as u32;
            let clock = network.clock.map_or((1, 1), |c| (khz(arch.clock.mhz()), khz(c.mhz())));
            channels.push(ChannelLayout {
                first: next,
                per_instance,
                down,
                up,
                down_channels,
                up_channels,
                clock,
                names,
            });
            next += per_instance * instances;
            refreshes.resize(next as usize, None);
        }
        Wiring {
            arch: arch.clone(),
            ports,
            channels,
            resources: next,
            refreshes,
        }
    }

    pub(crate) fn read_port(&self, level: usize, instance: u32, tensor: Tensor) -> ResourceId {
        let p = &self.ports[level];
        ResourceId(p.first + instance * p.per_instance + p.read[tensor])
    }

    pub(crate) fn write_port(&self, level: usize, instance: u32, tensor: Tensor) -> ResourceId {
        let p = &self.ports[level];
        ResourceId(p.first + instance * p.per_instance + p.write[tensor])
    }

    fn channel(&self, level: usize, instance: u32, tensor: Tensor, down: bool) -> ResourceId {
        let c = &self.channels[level];
        ResourceId(c.first + instance * c.per_instance + if down { c.down[tensor] } else { c.up[tensor] })
    }

    pub(crate) fn network(&self, level: usize) -> &Network {
        self.arch.levels[level]
            .below
            .as_ref()
            .expect("checked: every level but the innermost has a network")
    }

    pub(crate) fn read_width(&self, level: usize, tensor: Tensor) -> cyclonest_arch::Width {
        self.arch.levels[level]
            .bank(tensor)
            .expect("checked: a kept tensor has a bank")
            .read_width(tensor)
    }

    /// Stages of the MAC pipeline.
    pub(crate) fn depth(&self) -> u64 {
        self.arch.compute.depth
    }

    pub(crate) fn bits(&self, tensor: Tensor, partial: bool) -> u64 {
        self.arch.bits(tensor, partial)
    }

    /// Stage at the read (`reads`) or write ports of `stores` at `level`.
    fn port_stage(&self, level: usize, tensor: Tensor, instances: &[u32], reads: bool) -> Stage {
        let bank = self.arch.levels[level]
            .bank(tensor)
            .expect("checked: a kept tensor has a bank");
        let port = |&i: &u32| {
            if reads {
                self.read_port(level, i, tensor)
            } else {
                self.write_port(level, i, tensor)
            }
        };
        Stage {
            resources: instances.iter().map(port).collect(),
            instances: instances.to_vec(),
            width: if reads {
                bank.read_width(tensor)
            } else {
                bank.write_width(tensor)
            },
            clock: (1, 1),
            latency: if reads { bank.latency } else { 0 },
            remaining: 0,
            level,
            is_network: false,
            kind: if reads { StageKind::Read } else { StageKind::Write },
            passes: Vec::new(),
        }
    }

    /// Stage at the networks below `level`: per instance the children that the pass serves or reduces.
    fn network_stage(
        &self,
        plan: &Plan,
        level: usize,
        tensor: Tensor,
        passes: &BTreeMap<u32, Vec<u32>>,
        down: bool,
    ) -> Stage {
        let layout = &self.channels[level];
        let channels = if down {
            &layout.down_channels
        } else {
            &layout.up_channels
        };
        let link = channels
            .link(tensor)
            .expect("checked: a channel for every tensor that passes");
        let cost = |children: &Vec<u32>| {
            let mut height = BTreeMap::new();
            for &child in children {
                let position = &plan.children[level][child as usize];
                let y = height.entry(position.x).or_insert(0);
                *y = position.y.max(*y);
            }
            let across = height.keys().next_back().copied().unwrap_or(0);
            (children.len() as u64, across + height.values().sum::<u64>())
        };
        let passes_cost: Vec<(u64, u64)> = passes.values().map(cost).collect();
        let merged = passes_cost.iter().map(|&(degree, _)| degree).max().unwrap_or(1);
        let reduction = match self.network(level).reduction {
            _ if down || merged == 1 => 0,
            Reduction::None => 0,
            Reduction::Tree { stage } => u64::from(merged.next_power_of_two().trailing_zeros()) * stage,
            Reduction::Chain { hop } => (merged - 1) * hop,
        };
        let core = |cycles: u64| (cycles * layout.clock.0).div_ceil(layout.clock.1);
        Stage {
            resources: passes.keys().map(|&i| self.channel(level, i, tensor, down)).collect(),
            instances: passes.keys().copied().collect(),
            width: link.width,
            clock: layout.clock,
            latency: core(link.latency) + reduction,
            remaining: 0,
            level,
            is_network: true,
            kind: if down { StageKind::Down } else { StageKind::Up },
            passes: passes_cost,
        }
    }

    /// The path between a parent store and children that one transfer serves or reduces.
    pub(crate) fn shape(
        &self,
        plan: &Plan,
        sequencer: &Sequencer,
        parent_instance: u32,
        members: &[u32],
        down: bool,
    ) -> Shape {
        let (p, c, tensor) = (sequencer.parent_level, sequencer.level, sequencer.tensor);
        // Instances on the way, per member.
        let mut here: Vec<u32> = vec![parent_instance; members.len()];
        let mut networks = Vec::new();
        for k in p..c {
            let mut passes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            let fanout = plan.children[k].len() as u32;
            for (at, &member) in here.iter_mut().zip(members) {
                let child = sequencer.feeds[member as usize].path[k - p];
                let children = passes.entry(*at).or_default();
                if !children.contains(&child) {
                    children.push(child);
                }
                *at = *at * fanout + child;
            }
            networks.push(self.network_stage(plan, k, tensor, &passes, down));
        }
        let kept = !sequencer.flow.every_step();
        let outer = self.port_stage(p, tensor, &[parent_instance], down);
        let mut stages = Vec::new();
        if down {
            stages.push(outer);
            stages.extend(networks);
            if kept {
                stages.push(self.port_stage(c, tensor, &here, false));
            }
        } else {
            if kept {
                stages.push(self.port_stage(c, tensor, &here, true));
            }
            stages.extend(networks.into_iter().rev());
            stages.push(outer);
        }
        let mut remaining = 0;
        for stage in stages.iter_mut().rev() {
            remaining += stage.latency;
            stage.remaining = remaining;
        }
        Shape {
            stores: members.iter().map(|&m| sequencer.feeds[m as usize].store).collect(),
            stages,
        }
    }

    /// Busy cycles of the busiest instance of every port and channel.
    pub(crate) fn occupancy(&self, resources: &[Resource]) -> BTreeMap<String, u64> {
        let mut occupancy = BTreeMap::new();
        let mut add = |first: u32, names: &[String], end: u32| {
            for (i, resource) in resources[first as usize..end as usize].iter().enumerate() {
                let busiest = occupancy.entry(names[i % names.len()].clone()).or_insert(0);
                *busiest = resource.busy.max(*busiest);
            }
        };
        let mut starts: Vec<(u32, &[String])> = Vec::new();
        starts.extend(self.ports.iter().map(|p| (p.first, p.names.as_slice())));
        starts.extend(self.channels.iter().map(|c| (c.first, c.names.as_slice())));
        starts.sort_unstable_by_key(|s| s.0);
        for (i, &(first, names)) in starts.iter().enumerate() {
            let end = starts.get(i + 1).map_or(self.resources, |next| next.0);
            if !names.is_empty() {
                add(first, names, end);
            }
        }
        occupancy
    }
}

/// Builds the world of a mapped layer.
pub(crate) fn world(
    problem: &Problem,
    arch: &Accelerator,
    mapping: &Mapping,
    options: Options,
) -> Result<World, SimError> {
    let plan = Plan::new(problem, arch, mapping);
    let wiring = Wiring::new(arch, &plan);
    let mut world = World::new();
    world.register::<Resource>();
    world.register::<Store>();
    world.register::<Sequencer>();
    world.register::<Pe>();
    for _ in 0..wiring.resources {
        world.create_entity().with(Resource::default()).build();
    }
    let (stores, sequencers) = wire(&plan, &wiring, arch);
    let store_count = stores.len() as u64;
    let pes = processing_elements(&plan, &stores);
    for mut store in stores {
        if store.level == plan.pe_level {
            store.pe = Some(PeId(store.instance));
        }
        world.create_entity().with(store).build();
    }
    let caches = sequencers.iter().map(|_| Cache::default()).collect();
    for sequencer in sequencers {
        world.create_entity().with(sequencer).build();
    }
    for pe in pes {
        world.create_entity().with(pe).build();
    }
    let refreshes = Refreshes::new(wiring.refreshes.clone());
    let levels = arch.levels.len();
    let traffic = TrafficCounters::new(levels, plan.children.iter().map(Vec::len));
    let plan_loops = plan.steps[plan.pe_level].loops.len();
    world.insert(Some(Shared {
        plan,
        wiring,
        shapes: Vec::new(),
        caches,
        transfers: Vec::new(),
        idle_transfers: Vec::new(),
        wheel: Wheel::new(),
        now: Cycle(0),
        scratch: Default::default(),
        candidates: Vec::new(),
        openable: std::collections::BinaryHeap::new(),
        ready_pes: Vec::new(),
        recurrence: (options.fast_forward != FastForward::Off && !options.check_values && options.fault.is_none())
            .then(|| {
                Box::new(Recurrence::new(
                    plan_loops,
                    store_count,
                    options.fast_forward == FastForward::Eager,
                ))
            }),
        data: options.check_values.then(|| Data::new(options.seed, options.fault)),
        counts: Counts::new(arch),
        traffic,
        blame: Blame::new(levels),
        fill_blame: Blame::new(levels),
        values: crate::Values::NotChecked,
        deadlock: None,
        lose: match options.fault {
            Some(Fault::LoseTransfer(number)) => Some(number),
            _ => None,
        },
        offset: 0,
        refreshes,
        last_arrival: Cycle(0),
        events: 0,
        transfer_count: 0,
    }));
    Ok(world)
}

/// Slots of the implicit FIFO in front of a PE for a tensor that bypasses its level (rule 6).
const STREAM_SLOTS: u64 = 2;

fn wire(plan: &Plan, wiring: &Wiring, arch: &Accelerator) -> (Vec<Store>, Vec<Sequencer>) {
    let mut stores: Vec<Store> = Vec::new();
    let mut sequencers: Vec<Sequencer> = Vec::new();
    for tensor in Tensor::ALL {
        let mut chain = plan.keepers[tensor].clone();
        let bypassed = *chain.last().expect("checked: the outermost level keeps every tensor") != plan.pe_level;
        if bypassed {
            chain.push(plan.pe_level);
        }
        let mut first_of = Vec::new();
        for &c in &chain {
            let outermost = u64::from(c == 0);
            first_of.push(stores.len() as u32);
            let implicit = bypassed && c == plan.pe_level;
            let bank = arch.levels[c].bank(tensor).filter(|_| !implicit);
            for instance in 0..plan.instances[c].len() as u32 {
                stores.push(Store {
                    tensor,
                    level: c,
                    instance,
                    feeder: None,
                    child: 0,
                    feeds: None,
                    pe: None,
                    fifo: bank.map_or(0, |b| b.fifo),
                    slots: bank.map_or(STREAM_SLOTS, |b| b.slots_of(tensor)),
                    free_slots: bank.map_or(STREAM_SLOTS, |b| b.slots_of(tensor)),
                    fifo_used: 0,
                    generated: outermost,
                    requested: outermost,
                    arrived: outermost,
                    slotted: outermost,
                    done: 0,
                    closing: VecDeque::new(),
                    offered: false,
                    first: 0,
                    records: (0..outermost)
                        .map(|_| Record {
                            resident: true,
                            ..Record::default()
                        })
                        .collect(),
                    retained: None,
                });
            }
        }
        for (pair, levels) in chain.windows(2).enumerate() {
            let (p, c) = (levels[0], levels[1]);
            let implicit = bypassed && c == plan.pe_level;
            for parent in 0..plan.instances[p].len() as u32 {
                let id = SequencerId(sequencers.len() as u32);
                let sequencer = sequencer(
                    plan,
                    wiring,
                    arch,
                    tensor,
                    (p, c),
                    implicit,
                    parent,
                    (StoreId(first_of[pair] + parent), first_of[pair + 1]),
                );
                for (i, feed) in sequencer.feeds.iter().enumerate() {
                    let store = &mut stores[feed.store.at()];
                    (store.feeder, store.child) = (Some(id), i as u32);
                }
                stores[(first_of[pair] + parent) as usize].feeds = Some(id);
                sequencers.push(sequencer);
            }
        }
    }
    (stores, sequencers)
}

#[allow(clippy::too_many_arguments)]
fn sequencer(
    plan: &Plan,
    wiring: &Wiring,
    arch: &Accelerator,
    tensor: Tensor,
    (p, c): (usize, usize),
    implicit: bool,
    parent_instance: u32,
    (parent, first_child): (StoreId, u32),
) -> Sequencer {
    let bounds = &plan.problem.bounds;
    let flow = match (tensor, implicit) {
        (Tensor::Outputs, false) => Flow::Output,
        (Tensor::Outputs, true) => Flow::OutputStream,
        (_, false) => Flow::Operand,
        (_, true) => Flow::Stream,
    };
    let steps = if implicit {
        plan.steps[c].clone()
    } else {
        plan.steps[c].truncated(|d| tensor.is_relevant(d))
    };
    let outer_loops = steps.loops.iter().filter(|l| l.level < p).count();
    let base = plan.instances[p][parent_instance as usize].base;

    // Children of this parent at level c: contiguous, because instances are numbered along the path.
    let below: usize = (p..c).map(|k| plan.children[k].len()).product();
    let first_instance = parent_instance as usize * below;
    let mut classes: HashMap<Vec<u32>, u32> = HashMap::new();
    let feeds = (0..below)
        .map(|i| {
            let instance = &plan.instances[c][first_instance + i];
            let path: Arc<[u32]> = instance.path[p + 1..=c].into();
            // What a network cannot do together (multicast or reduce) makes children different.
            let key = (p..c)
                .filter(|&k| {
                    let network = wiring.network(k);
                    if tensor == Tensor::Outputs {
                        network.reduction == Reduction::None
                    } else {
                        !network.multicast.contains(tensor)
                    }
                })
                .map(|k| path[k - p])
                .collect();
            let count = classes.len() as u32;
            Feed {
                store: StoreId(first_child + (first_instance + i) as u32),
                base: instance.base,
                cursor: Cursor::new(&steps, instance.base, bounds),
                class: *classes.entry(key).or_insert(count),
                first_of_reduction: (p..c).all(|k| plan.children[k][path[k - p] as usize].first_of_reduction),
                has_tiles: tensor != Tensor::Inputs || plan.has_inputs(c, &steps, &instance.base),
                path,
                started: false,
                tile: Tile::default(),
                begun: 0,
                group: 0,
                parent: 0,
                idle: false,
                reduced: false,
            }
        })
        .collect();
    let halo = !implicit && arch.levels[c].bank(tensor).is_some_and(|b| b.halo.contains(tensor));
    let last = |d: Dim| steps.last_offset(d, bounds[d]);
    Sequencer {
        tensor,
        flow,
        parent_level: p,
        level: c,
        parent,
        halo,
        outer_loops,
        base,
        last_offsets: [last(Dim::C), last(Dim::R), last(Dim::S)],
        cursor: Cursor::new(&steps, base, bounds),
        steps: Arc::new(steps),
        started: false,
        parent_ordinal: 0,
        parent_reduction: [0; 3],
        feeds,
        first: 0,
        groups: VecDeque::new(),
        visits: VecDeque::new(),
    }
}

fn processing_elements(plan: &Plan, stores: &[Store]) -> Vec<Pe> {
    let order = [Tensor::Outputs, Tensor::Weights, Tensor::Inputs];
    let first = order.map(|t| {
        stores
            .iter()
            .position(|s| s.tensor == t && s.level == plan.pe_level)
            .expect("a store per tensor and PE") as u32
    });
    (0..plan.instances[plan.pe_level].len() as u32)
        .map(|i| Pe {
            cursor: Cursor::new(
                &plan.steps[plan.pe_level],
                plan.instances[plan.pe_level][i as usize].base,
                &plan.problem.bounds,
            ),
            needs: first.map(|f| Need {
                store: StoreId(f + i),
                next: 0,
                used: false,
                held: false,
            }),
            computing: false,
            blame_from: Cycle(0),
            last_burst_end: None,
            queued: false,
            busy: 0,
            stalled: 0,
            finished_at: 0,
            finished_for: 0,
            base: plan.instances[plan.pe_level][i as usize].base,
        })
        .collect()
}
