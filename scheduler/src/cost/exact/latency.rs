//! Latency in closed form.
//!
//! The temporal loops outside the PE level are taken from the inside out. One iteration of a loop lasts as long as
//! its body, as long as the busiest port or channel needs for what moves in it, and, at each step of the loop, as
//! long as the PE waits for tiles that could not be fetched ahead (single slots, partial sums). First fill and last
//! drain are added.

use cyclonest_arch::{Accelerator, Ports, Reduction};
use cyclonest_workloads::{Dim, Tensor, TensorSet};

use super::flow::Flow;
use super::hardware::Hardware;
use super::nest::{Digit, MAX_LEVELS, Nest, Role, existing};
use super::tally::Tally;

/// Resources per level: read and write ports, channels down and up, by tensor or shared.
pub(super) const KINDS: usize = 12;
pub(super) const RESOURCES: usize = MAX_LEVELS * KINDS;

/// Latencies, slots and sharing of a machine.
#[derive(Debug, Clone)]
pub(super) struct Timing {
    /// Per level and tensor: latency of its ports.
    pub(super) latency: [[f64; 3]; MAX_LEVELS],
    /// Per level and tensor: tiles side by side.
    pub(super) slots: [[f64; 3]; MAX_LEVELS],
    /// Per level and tensor: elements that the FIFO in front of the slots takes.
    pub(super) fifo: [[u64; 3]; MAX_LEVELS],
    /// Per level and tensor: latency of the channel down and up.
    pub(super) hop: [[(f64, f64); 3]; MAX_LEVELS],
    /// Machine cycles per cycle of the network.
    pub(super) ratio: [f64; MAX_LEVELS],
    pub(super) reduction: [Reduction; MAX_LEVELS],
    pub(super) read: [[usize; 3]; MAX_LEVELS],
    pub(super) write: [[usize; 3]; MAX_LEVELS],
    pub(super) down: [[usize; 3]; MAX_LEVELS],
    pub(super) up: [[usize; 3]; MAX_LEVELS],
    pub(super) depth: f64,
    pub(super) interval: f64,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            latency: [[1.0; 3]; MAX_LEVELS],
            slots: [[1.0; 3]; MAX_LEVELS],
            fifo: [[0; 3]; MAX_LEVELS],
            hop: [[(1.0, 1.0); 3]; MAX_LEVELS],
            ratio: [1.0; MAX_LEVELS],
            reduction: [Reduction::None; MAX_LEVELS],
            read: [[0; 3]; MAX_LEVELS],
            write: [[0; 3]; MAX_LEVELS],
            down: [[0; 3]; MAX_LEVELS],
            up: [[0; 3]; MAX_LEVELS],
            depth: 0.0,
            interval: 1.0,
        }
    }
}

impl Timing {
    /// Reads the machine.
    pub(super) fn set(&mut self, arch: &Accelerator) {
        self.depth = arch.compute.depth as f64;
        self.interval = arch.compute.interval as f64;
        for (l, level) in arch.levels.iter().enumerate() {
            let network = level.below.as_ref();
            self.ratio[l] = network
                .and_then(|n| n.clock)
                .map_or(1.0, |clock| arch.clock.mhz() / clock.mhz());
            self.reduction[l] = network.map_or(Reduction::None, |n| n.reduction);
            let (down, up) = (arch.channels(l, true), arch.channels(l, false));
            let bus = network.is_some_and(|n| matches!(n.kind, cyclonest_arch::NetworkKind::Bus(_)));
            for tensor in Tensor::ALL {
                let t = tensor as usize;
                let base = l * KINDS;
                if let Some(bank) = level.bank(tensor) {
                    self.latency[l][t] = bank.latency as f64;
                    self.slots[l][t] = bank.slots_of(tensor) as f64;
                    self.fifo[l][t] = bank.fifo;
                    let first = Tensor::ALL.iter().position(|&o| bank.holds.contains(o)).unwrap_or(t);
                    let (read, write) = match bank.ports {
                        Ports::Shared { .. } => (first, first),
                        Ports::ReadWrite { .. } => (first, 3 + first),
                        Ports::Ideal | Ports::PerTensor(_) => (t, 3 + t),
                    };
                    self.read[l][t] = base + read;
                    self.write[l][t] = base + write;
                }
                let channel = |channels: Option<cyclonest_arch::Channels>| match channels {
                    Some(c) => (
                        if c.per_tensor() { t } else { 0 },
                        c.link(tensor).map_or(1.0, |link| link.latency as f64),
                    ),
                    None => (0, 1.0),
                };
                let (d, u) = (channel(down), channel(up));
                self.hop[l][t] = (d.1 * self.ratio[l], u.1 * self.ratio[l]);
                self.down[l][t] = base + 6 + d.0;
                self.up[l][t] = if bus { base + 6 + u.0 } else { base + 9 + u.0 };
            }
        }
    }
}

/// A temporal loop outside the PE level, as the instance in the corner sees it.
#[derive(Debug, Clone, Copy)]
struct Turn {
    position: i32,
    /// Mean trips, edge tiles included.
    trips: f64,
    /// Times that the loop's body runs in all.
    total: f64,
    /// Cycles of one run of the body; from when the loop is done on, with the waits between two runs.
    body: f64,
}

/// A stream in cycles of the busiest instances.
#[derive(Debug, Clone, Copy)]
struct Stream {
    tensor: usize,
    parent: usize,
    child: usize,
    /// The loops that change the tile are the first so many.
    turns: usize,
    rounds: f64,
    slots: f64,
    /// Fetches that a FIFO takes while the slots are full.
    waiting: f64,
    fetched: f64,
    /// Latency and longest stage of one round's transfers towards the children.
    down: (f64, f64),
    /// Likewise towards the parent.
    up: (f64, f64),
    /// Cycles of one round at the read port that is left first, down and up.
    leave: (f64, f64),
}

/// The parts of a latency \[cycles\].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Parts {
    pub(super) compute: f64,
    pub(super) first_fill: f64,
    pub(super) steady: f64,
    pub(super) last_drain: f64,
    /// Cycles of the busiest resource, and which.
    pub(super) busiest: f64,
    pub(super) busiest_at: usize,
    pub(super) cycles: f64,
}

/// Memory of the latency model, reused from one mapping to the next.
#[derive(Debug, Clone, Default)]
pub(super) struct Latency {
    turns: Vec<Turn>,
    streams: Vec<Stream>,
    /// Per stream: resources with the cycles for which one instance is occupied.
    uses: Vec<(usize, usize, f64)>,
    moving: Vec<f64>,
}

/// The name of a resource in reports: level, port or channel, tensors.
pub(super) fn resource_name(arch: &Accelerator, resource: usize) -> String {
    let level = &arch.levels[resource / KINDS];
    let tensor = Tensor::ALL[resource % 3];
    let shared = match level.bank(tensor).map(|b| b.ports) {
        Some(Ports::Shared { .. }) => "port",
        _ => "read port",
    };
    let kind = match resource % KINDS / 3 {
        0 => shared,
        1 => "write port",
        2 => "network down",
        _ => "network up",
    };
    let sharers = match resource % KINDS / 3 {
        0 | 1 => match level.bank(tensor) {
            Some(bank) if !matches!(bank.ports, Ports::PerTensor(_) | Ports::Ideal) => bank.holds,
            _ => [tensor].into_iter().collect(),
        },
        kind => match arch.channels(resource / KINDS, kind == 2) {
            Some(channels) if channels.per_tensor() => [tensor].into_iter().collect(),
            _ => TensorSet::ALL,
        },
    };
    let letters: String = sharers.iter().map(Tensor::letter).collect();
    format!("{} {kind} {letters}", level.name)
}

const CORNER: fn(&Digit) -> Role = |d| if d.spatial { Role::ZERO } else { Role::Free };

impl Latency {
    /// Estimates the latency of the mapping whose streams are `flows`.
    pub(super) fn estimate(
        &mut self,
        nest: &Nest,
        timing: &Timing,
        hardware: &Hardware,
        flows: &[Flow],
        tally: &Tally,
    ) -> Parts {
        let event = hardware.event;
        self.turns.clear();
        let mut bursts = 1.0;
        let mut trips = 1.0;
        for dim in Dim::ALL {
            let outside = nest.outside(event, dim);
            let mut known = 1.0;
            for (i, digit) in outside.iter().enumerate() {
                if !digit.spatial {
                    let strings = existing(&outside[..=i], CORNER) as f64;
                    self.turns.push(Turn {
                        position: digit.position,
                        trips: strings / known,
                        total: 1.0,
                        body: 0.0,
                    });
                    known = strings;
                }
            }
            let settings = existing(outside, CORNER) as f64;
            bursts *= settings;
            trips *= existing(nest.inside(0, dim), CORNER) as f64 / settings;
        }
        self.turns.sort_unstable_by_key(|t| t.position);
        let mut total = 1.0;
        for turn in &mut self.turns {
            total *= turn.trips;
            turn.total = total;
        }

        // Shares of the instances in the corner.
        let mut share = [1.0; MAX_LEVELS];
        for (level, share) in share.iter_mut().enumerate().take(nest.levels()) {
            for dim in Dim::ALL {
                let corner = |d: &Digit| {
                    if d.spatial && d.level < level {
                        Role::ZERO
                    } else {
                        Role::Free
                    }
                };
                *share *= existing(nest.inside(0, dim), corner) as f64 / nest.bounds[dim] as f64;
            }
        }

        // One burst (rule 14): trips, or what the lanes read and write through the ports of the PE level. Bursts that
        // open an output tile at zero read less.
        let per_burst = |count: u64| (count as f64 * share[event] / bursts).round() as u64;
        let updates = per_burst(tally.get(event, Tensor::Outputs).updates);
        let opened = flows
            .iter()
            .find(|f| f.tensor == Tensor::Outputs && f.child == event && tally.last(Tensor::Outputs) == Some(event))
            .map_or(0, |f| f.largest);
        let opening = match opened {
            0 => 0.0,
            opened => {
                (tally.get(event, Tensor::Outputs).opened as f64 / opened as f64 * share[event] / bursts).min(1.0)
            }
        };
        let levels = nest.levels();
        let length = |accumulated: Option<u64>| {
            let mut longest = trips * timing.interval;
            for level in event..levels {
                let mut port = [0.0; KINDS];
                let part = |count: u64| (count as f64 * share[level] / bursts).round() as u64;
                for tensor in Tensor::ALL {
                    let t = tensor as usize;
                    let access = tally.get(level, tensor);
                    let (read, write) = hardware.port(level, tensor);
                    let inside = |count: u64| if level > event { part(count) } else { 0 };
                    let bits = if tensor == Tensor::Outputs {
                        hardware.bits[t].0
                    } else {
                        hardware.bits[t].1
                    };
                    let reads = match accumulated {
                        Some(accumulated) if level == event && tensor == Tensor::Outputs => accumulated,
                        _ => part(access.reads),
                    };
                    let reads = reads + inside(access.drains);
                    let writes = part(access.updates) + inside(access.fills);
                    let writes = if level == event && tensor != Tensor::Outputs {
                        0
                    } else {
                        writes
                    };
                    port[timing.read[level][t] % KINDS] += read.cycles(reads, bits) as f64;
                    port[timing.write[level][t] % KINDS] += write.cycles(writes, bits) as f64;
                }
                longest = port.iter().fold(longest, |b, &p| b.max(p));
            }
            longest
        };
        let burst = match opened {
            0 => length(None),
            _ => length(Some(updates)) * (1.0 - opening) + length(Some(updates.saturating_sub(opened))) * opening,
        };

        self.streams.clear();
        self.uses.clear();
        for (i, flow) in flows.iter().enumerate() {
            self.stream(i, flow, timing, &share);
        }
        self.steady(timing, burst, bursts)
    }

    /// Takes in one stream.
    fn stream(&mut self, index: usize, flow: &Flow, timing: &Timing, share: &[f64; MAX_LEVELS]) {
        let t = flow.tensor as usize;
        let (p, c) = (flow.parent, flow.child);
        let turns = self
            .turns
            .iter()
            .take_while(|turn| turn.position <= flow.innermost)
            .count();
        let rounds = if turns == 0 { 1.0 } else { self.turns[turns - 1].total };
        let mut down = (timing.latency[p][t], 0.0_f64);
        let mut up = (timing.latency[c][t], 0.0_f64);
        let mut occupy = |resource: usize, cycles: f64, longest: &mut f64| {
            if cycles > 0.0 {
                *longest = longest.max(cycles / rounds);
                match self.uses.iter_mut().find(|u| u.0 == index && u.1 == resource) {
                    Some(known) => known.2 += cycles,
                    None => self.uses.push((index, resource, cycles)),
                }
            }
        };
        occupy(timing.read[p][t], flow.down.read as f64 * share[p], &mut down.1);
        occupy(timing.read[p][t], flow.modify as f64 * share[p], &mut up.1);
        for (l, &share) in share.iter().enumerate().take(c).skip(p) {
            let ratio = timing.ratio[l];
            down.0 += timing.hop[l][t].0;
            up.0 += timing.hop[l][t].1;
            occupy(
                timing.down[l][t],
                flow.down.networks[l] as f64 * share * ratio,
                &mut down.1,
            );
            occupy(timing.up[l][t], flow.up.networks[l] as f64 * share * ratio, &mut up.1);
            up.0 += flow.reduction_latency(l, &timing.reduction[l]);
        }
        if !flow.streamed {
            occupy(timing.write[c][t], flow.down.write as f64 * share[c], &mut down.1);
            occupy(timing.read[c][t], flow.up.read as f64 * share[c], &mut up.1);
        }
        occupy(timing.write[p][t], flow.up.write as f64 * share[p], &mut up.1);
        let slots = if flow.streamed { 2.0 } else { timing.slots[c][t] };
        // What a FIFO takes is requested ahead, and an output in it leaves its slot at once (rule 9).
        let outputs = flow.tensor == Tensor::Outputs;
        let usual = if outputs {
            flow.largest as f64
        } else {
            flow.elements as f64 / (flow.transfers as f64).max(1.0)
        };
        let waiting = if flow.streamed || usual == 0.0 {
            0.0
        } else {
            (timing.fifo[c][t] as f64 / usual).floor()
        };
        self.streams.push(Stream {
            tensor: t,
            parent: p,
            child: c,
            turns,
            rounds,
            slots: if outputs { slots } else { slots + waiting },
            waiting,
            fetched: flow.fetched,
            down,
            up,
            leave: (
                flow.down.read as f64 * share[p] / rounds,
                flow.up.read as f64 * share[c] / rounds,
            ),
        });
    }

    fn steady(&mut self, timing: &Timing, burst: f64, bursts: f64) -> Parts {
        self.moving.clear();
        self.moving.resize(RESOURCES, 0.0);
        let mut duration = burst;
        // The same without the limits of ports and channels.
        let mut unlimited = burst;
        let mut limit = None;
        for j in (0..self.turns.len()).rev() {
            self.turns[j].body = duration;
            let wait = self.exposed(timing, j);
            let turn = self.turns[j];
            for &(stream, resource, cycles) in &self.uses {
                if self.streams[stream].turns == j + 1 {
                    self.moving[resource] += cycles;
                }
            }
            let (resource, busiest) = largest(&self.moving);
            duration = duration * turn.trips + wait * (turn.trips - 1.0);
            unlimited = unlimited * turn.trips + wait * (turn.trips - 1.0);
            let moved = busiest / turn.total * turn.trips;
            if moved > duration {
                (limit, duration) = (Some(resource), moved);
            }
            self.turns[j].body = duration / turn.trips;
        }
        let first_fill = self.first_fill();
        let last_drain = timing.depth + self.drain();
        for &(stream, resource, cycles) in &self.uses {
            if self.streams[stream].turns == 0 {
                self.moving[resource] += cycles;
            }
        }
        // What the bottleneck moves first and last is part of first fill and last drain already.
        let mut first_and_last = (0.0, 0.0);
        if let Some(limit) = limit {
            for &(stream, resource, cycles) in &self.uses {
                let stream = &self.streams[stream];
                if resource == limit && stream.turns > 0 {
                    let part = match stream.tensor == Tensor::Outputs as usize {
                        true => &mut first_and_last.1,
                        false => &mut first_and_last.0,
                    };
                    *part += cycles / stream.rounds;
                }
            }
        }
        let counted_twice = f64::min(first_and_last.0, first_fill) + f64::min(first_and_last.1, last_drain);
        let (busiest_at, busiest) = largest(&self.moving);
        Parts {
            compute: burst * bursts,
            first_fill,
            steady: duration,
            last_drain,
            busiest,
            busiest_at,
            cycles: (first_fill + duration - counted_twice).max(self.backlog() + unlimited) + last_drain,
        }
    }

    /// Cycles of the body of the loop that ends a residency of `stream`; of everything if none does.
    fn residency(&self, stream: &Stream) -> f64 {
        match stream.turns {
            0 => f64::INFINITY,
            n => self.turns[n - 1].body,
        }
    }

    /// Cycles for which a PE waits when loop `j` moves on, beyond what was fetched ahead.
    fn exposed(&self, timing: &Timing, j: usize) -> f64 {
        let mut wait = 0.0_f64;
        for t in 0..3 {
            let chain = || self.streams.iter().filter(move |s| s.tensor == t && s.turns > j);
            if t == Tensor::Outputs as usize {
                wait = wait.max(self.outputs_exposed(timing, j));
                continue;
            }
            // (cycles, how many of this loop's waits shorten them)
            let mut arrival: Option<(f64, f64)> = None;
            for stream in chain() {
                let own = self.residency(stream);
                let freed = self.freed(stream);
                let ahead = stream.slots - 1.0;
                let mut ready = (freed - ahead * own, if stream.turns == j + 1 { ahead } else { 0.0 });
                if let Some(parent) = arrival
                    && parent.0 / (1.0 + parent.1) > ready.0 / (1.0 + ready.1)
                {
                    ready = parent;
                }
                let fill = stream.down.0 + self.contended(stream, j);
                arrival = Some((ready.0 + fill, ready.1));
            }
            if let Some((cycles, shared)) = arrival {
                wait = wait.max(cycles / (1.0 + shared));
            }
        }
        wait
    }

    /// Longest stage of a transfer, with what other tensors send over the same resource at the same turn.
    fn contended(&self, stream: &Stream, _j: usize) -> f64 {
        stream.down.1
    }

    /// When, relative to the end of the last burst that uses a tile, its slot is freed: at the end at the PE level,
    /// when the last transfer has left elsewhere (rule 9).
    fn freed(&self, stream: &Stream) -> f64 {
        let next = self
            .streams
            .iter()
            .find(|s| s.tensor == stream.tensor && s.parent == stream.child);
        match next {
            None => 0.0,
            Some(child) => {
                let own = self.residency(child).min(self.residency(stream));
                let used = self.freed(child);
                // At the latest when the last child tile has arrived, and that is before its first burst.
                (used - child.slots * own + child.leave.0).min(used - own)
            }
        }
    }

    fn outputs_exposed(&self, timing: &Timing, j: usize) -> f64 {
        let mut wait = 0.0_f64;
        let outputs = Tensor::Outputs as usize;
        let mut done = timing.depth;
        // From the PE outward: a slot is free once its drain has left.
        for stream in self.streams.iter().rev().filter(|s| s.tensor == outputs) {
            let left = done + if stream.waiting > 0.0 { 1.0 } else { stream.leave.1 };
            if stream.turns > j {
                let own = self.residency(stream);
                let ahead = stream.slots - 1.0;
                let coupled = |ahead: f64| 1.0 + if stream.turns == j + 1 { ahead } else { 0.0 };
                wait = wait.max((left - ahead * own) / coupled(ahead));
                // The fetch may wait in the FIFO while the slot is taken.
                let early = ahead + stream.waiting;
                let fetch = stream.down.0 + stream.down.1;
                wait = wait.max(stream.fetched * (left - early * own + fetch) / coupled(early));
            }
            done += stream.up.0 + stream.up.1;
        }
        wait
    }

    fn first_fill(&self) -> f64 {
        let mut latest = 0.0_f64;
        for t in 0..2 {
            let arrival: f64 = self
                .streams
                .iter()
                .filter(|s| s.tensor == t)
                .map(|s| s.down.0 + s.down.1)
                .sum();
            latest = latest.max(arrival);
        }
        latest
    }

    /// A first fill behind what other tensors fetch ahead. At the start all slots of what comes from the outermost
    /// level are requested at once; the first tile of a deeper stream for which no slot was free then queues behind
    /// them on the resources that they share.
    fn backlog(&self) -> f64 {
        let mut latest = 0.0_f64;
        for &(index, resource, cycles) in &self.uses {
            let stream = &self.streams[index];
            if stream.parent == 0 || stream.tensor == Tensor::Outputs as usize || stream.rounds <= stream.slots {
                continue;
            }
            let queue: f64 = self
                .uses
                .iter()
                .filter(|u| u.1 == resource)
                .map(|u| (&self.streams[u.0], u.2))
                .filter(|(s, _)| s.parent == 0 && s.tensor != stream.tensor && s.tensor != Tensor::Outputs as usize)
                .map(|(s, cycles)| cycles / s.rounds * s.slots.min(s.rounds))
                .sum();
            if queue == 0.0 {
                continue;
            }
            let own = cycles / stream.rounds;
            let onward: f64 = self
                .streams
                .iter()
                .filter(|s| s.tensor == stream.tensor && s.parent >= stream.child)
                .map(|s| s.down.0 + s.down.1)
                .sum();
            let ahead = stream.slots * self.residency(stream);
            latest = latest.max(queue + (stream.slots + 1.0) * own + stream.down.0 + onward - ahead);
        }
        latest
    }

    fn drain(&self) -> f64 {
        self.streams
            .iter()
            .filter(|s| s.tensor == Tensor::Outputs as usize)
            .map(|s| s.up.0 + s.up.1)
            .sum()
    }
}

/// The largest entry and its position.
fn largest(cycles: &[f64]) -> (usize, f64) {
    let entries = cycles.iter().copied().enumerate();
    entries.fold((0, 0.0), |best, (i, c)| if c > best.1 { (i, c) } else { best })
}

impl Flow {
    /// Cycles that the network below level `l` adds to a drain (rule 19).
    fn reduction_latency(&self, l: usize, reduction: &Reduction) -> f64 {
        let n = self.joined[l];
        match *reduction {
            Reduction::None => 0.0,
            Reduction::Tree { stage } => (64 - n.saturating_sub(1).leading_zeros()) as f64 * stage as f64,
            Reduction::Chain { hop } => n.saturating_sub(1) as f64 * hop as f64,
        }
    }
}
