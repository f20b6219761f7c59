//! What a mapping under construction costs: occupancy of every port and channel in closed form.
//!
//! This is the scheduler's own compass, rough and fast (halves of edge tiles are averaged, nothing waits for
//! anything); whoever wants to know a mapping's cost asks a cost model or the simulator.

use cyclonest_arch::{Accelerator, Bank, Channels, NetworkKind, Ports, Reduction, Width};
use cyclonest_workloads::{Dim, Problem, Tensor};

use super::state::{State, dims_in};

/// Cycles that a step of the PE level costs beyond its occupancies: requests, hops, pipeline.
const STEP_OVERHEAD: f64 = 8.0;
/// Weight of the sum of all occupancies next to the largest one: it orders mappings with the same bottleneck.
const SUM_WEIGHT: f64 = 0.02;

/// What is lowered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// Occupancies: a machine that never starts and never stops. A smooth way down to good tiles.
    Steady,
    /// Occupancies and the first fills and last drains: small first tiles pay.
    Whole,
}

/// Cost of `state`; smaller is better.
pub(super) fn cost(problem: &Problem, arch: &Accelerator, state: &State, goal: Goal) -> f64 {
    let mut tally = Tally::new(problem, arch, state);
    tally.operand(Tensor::Weights);
    tally.operand(Tensor::Inputs);
    tally.outputs();
    let mut largest = tally.compute + tally.exposed;
    let mut sum = 0.0;
    for &cycles in &tally.occupied {
        largest = largest.max(cycles);
        sum += cycles;
    }
    if goal == Goal::Whole {
        largest += tally.ramp();
    }
    largest + SUM_WEIGHT * sum + STEP_OVERHEAD * tally.steps
}

/// Kinds of resource of one level, times three tensors.
#[derive(Clone, Copy)]
enum Resource {
    Read = 0,
    Write = 1,
    Down = 2,
    Up = 3,
}

struct Tally<'a> {
    problem: &'a Problem,
    arch: &'a Accelerator,
    state: &'a State,
    event: usize,
    /// Cycles per level × resource × tensor (a shared one counts under Weights).
    occupied: Vec<f64>,
    /// Busy cycles of the first lane.
    compute: f64,
    /// Cycles of fills that single slots do not hide.
    exposed: f64,
    /// Cycles from the start to the first tile of each tensor in place (of outputs: from the last one to its home).
    first: [f64; 3],
    /// Steps of the PE level.
    steps: f64,
}

impl<'a> Tally<'a> {
    fn new(problem: &'a Problem, arch: &'a Accelerator, state: &'a State) -> Self {
        let event = arch.event_level();
        let steps = state.trips[..event]
            .iter()
            .flat_map(|t| t.0)
            .map(|t| t as f64)
            .product();
        let compute = Dim::ALL
            .into_iter()
            .map(|dim| first_lane(problem, state, dim))
            .product::<f64>();
        Tally {
            problem,
            arch,
            state,
            event,
            occupied: vec![0.0; arch.levels.len() * 12],
            compute: compute * arch.compute.interval as f64,
            exposed: 0.0,
            first: [0.0; 3],
            steps,
        }
    }

    /// What nothing overlaps: the first operands on their way in, the last outputs on their way out.
    fn ramp(&self) -> f64 {
        let [weights, inputs, outputs] = self.first;
        weights.max(inputs) + outputs
    }

    /// Levels that keep `tensor`, outermost first.
    fn kept(&self, tensor: Tensor) -> impl Iterator<Item = usize> {
        let state = self.state;
        (0..state.keeps.len()).filter(move |&l| state.keeps[l].contains(tensor))
    }

    /// Mean elements of the tile of `level`, and how often an instance takes one in.
    fn visits(&self, level: usize, tensor: Tensor) -> f64 {
        let per_step = level > self.event && !self.state.keeps[self.event].contains(tensor);
        let mut skipping = true;
        let mut visits = 1.0;
        for l in (0..level).rev() {
            if per_step && l < self.event {
                skipping = false;
            }
            for dim in dims_in(self.state.order[l]).rev() {
                let trips = self.state.trips[l][dim];
                if trips == 1 || (skipping && !tensor.is_relevant(dim)) {
                    continue;
                }
                skipping = false;
                visits *= trips as f64;
            }
        }
        visits
    }

    /// Trips outside `level` that change the tensor's tile.
    fn distinct(&self, level: usize, tensor: Tensor) -> f64 {
        (0..level)
            .flat_map(|l| self.state.trips[l].iter())
            .filter(|&(dim, _)| tensor.is_relevant(dim))
            .map(|(_, &trips)| trips as f64)
            .product()
    }

    /// Mean elements of the tensor's tile at `level`.
    fn tile(&self, level: usize, tensor: Tensor) -> f64 {
        let extents = self.state.extents(self.problem, level);
        let mean = |dim: Dim| {
            let bound = self.problem.bounds[dim];
            bound as f64 / bound.div_ceil(extents[dim]) as f64
        };
        let product = |dims: &[Dim]| dims.iter().map(|&d| mean(d)).product::<f64>();
        match tensor {
            Tensor::Weights => product(&[Dim::G, Dim::K, Dim::C, Dim::R, Dim::S]),
            Tensor::Outputs => product(&[Dim::N, Dim::G, Dim::K, Dim::P, Dim::Q]),
            Tensor::Inputs => {
                let (stride, dilation) = (self.problem.stride, self.problem.dilation);
                let mut rows = touched(mean(Dim::P), mean(Dim::R), stride.0, dilation.0);
                let mut columns = touched(mean(Dim::Q), mean(Dim::S), stride.1, dilation.1);
                let keeps_halo = self.arch.levels[level]
                    .bank(tensor)
                    .is_some_and(|bank| bank.halo.contains(tensor));
                if keeps_halo {
                    // A sliding window brings in only what the previous one did not cover.
                    match self.loop_above(level, tensor) {
                        Some(Dim::P) => rows = rows.min(mean(Dim::P) * stride.0 as f64),
                        Some(Dim::Q) => columns = columns.min(mean(Dim::Q) * stride.1 as f64),
                        _ => {}
                    }
                }
                product(&[Dim::N, Dim::G, Dim::C]) * rows * columns
            }
        }
    }

    /// The innermost loop outside `level` that changes the tensor's tile.
    fn loop_above(&self, level: usize, tensor: Tensor) -> Option<Dim> {
        (0..level)
            .rev()
            .flat_map(|l| {
                let trips = &self.state.trips[l];
                dims_in(self.state.order[l]).rev().filter(move |&d| trips[d] > 1)
            })
            .find(|&dim| tensor.is_relevant(dim))
    }

    /// Copies that leave level `from` for one transfer into each of the instances of `to` below it; `shared`
    /// says at which levels one copy serves children that need the same.
    fn copies(&self, from: usize, to: usize, tensor: Tensor, shared: impl Fn(usize) -> bool) -> f64 {
        let lanes = self.arch.levels.len() - 1;
        let mut copies = 1.0;
        for level in from..to.min(lanes + 1) {
            for (dim, &fan) in self.state.fan[level].iter() {
                if fan > 1 && (tensor.is_relevant(dim) || !(level == lanes || shared(level))) {
                    copies *= fan.min(self.problem.bounds[dim]) as f64;
                }
            }
        }
        copies
    }

    fn operand(&mut self, tensor: Tensor) {
        let bits = self.arch.bits(tensor, false) as f64;
        let lanes = self.arch.levels.len();
        let chain: Vec<usize> = self.kept(tensor).chain([lanes]).collect();
        for pair in chain.windows(2) {
            let (parent, child) = (pair[0], pair[1]);
            let elements = if child == lanes {
                self.compute
            } else {
                self.tile(child, tensor) * self.visits(child, tensor)
            };
            let arch = self.arch;
            let multicast = move |l: usize| {
                arch.levels[l]
                    .below
                    .as_ref()
                    .is_some_and(|n| n.multicast.contains(tensor))
            };
            let sent = elements * self.copies(parent, child, tensor, multicast);
            let mut slowest = self.port(parent, tensor, Resource::Read, sent, bits);
            for level in parent..child.min(lanes - 1) {
                let passing = elements * self.copies(level, child, tensor, multicast);
                slowest = slowest.max(self.channel(level, tensor, Resource::Down, passing, bits));
            }
            if child < lanes {
                slowest = slowest.max(self.port(child, tensor, Resource::Write, elements, bits));
                self.expose(child, tensor, slowest);
            }
            if child <= self.event {
                self.first[tensor as usize] += slowest / self.visits(child, tensor);
            } else if parent < self.event {
                self.first[tensor as usize] += slowest / self.steps;
            }
        }
    }

    fn outputs(&mut self) {
        let tensor = Tensor::Outputs;
        let lanes = self.arch.levels.len();
        let mut chain: Vec<usize> = self.kept(tensor).collect();
        // Where nothing in the burst keeps outputs, the lanes hold one step's.
        let in_lanes = chain.last().is_none_or(|&l| l < self.event);
        if in_lanes {
            chain.push(self.event);
        }
        let arch = self.arch;
        let reduces = move |l: usize| {
            arch.levels[l]
                .below
                .as_ref()
                .is_some_and(|n| n.reduction != Reduction::None)
        };
        for pair in chain.windows(2) {
            let (parent, child) = (pair[0], pair[1]);
            let distinct = self.distinct(child, tensor);
            let visits = if in_lanes && child == self.event {
                self.steps
            } else {
                self.visits(child, tensor)
            };
            let tile = self.tile(child, tensor);
            let (drained, fetched) = (tile * visits, tile * (visits - distinct).max(0.0));
            let bits = self.arch.bits(tensor, fetched > 0.0) as f64;
            let merged = self.copies(parent, child, tensor, |_| true);
            let arriving = self.copies(parent, child, tensor, reduces);
            let mut slowest = self.port(parent, tensor, Resource::Write, drained * arriving, bits);
            let reread = fetched * merged + drained * (arriving - merged);
            self.port(parent, tensor, Resource::Read, reread, bits);
            for level in parent..child.min(lanes - 1) {
                let up = drained * self.copies(level, child, tensor, reduces);
                slowest = slowest.max(self.channel(level, tensor, Resource::Up, up, bits));
                let down = fetched * self.copies(level, child, tensor, |_| true);
                self.channel(level, tensor, Resource::Down, down, bits);
            }
            if parent < self.event {
                self.first[tensor as usize] += slowest / visits;
            }
            if !(in_lanes && child == self.event) {
                let out = self.port(child, tensor, Resource::Read, drained, bits);
                let back = self.port(child, tensor, Resource::Write, fetched, bits);
                self.expose(child, tensor, out + back);
            }
        }
        // Every cycle adds to the innermost level that keeps outputs.
        if let Some(&innermost) = chain.last()
            && !in_lanes
        {
            let bits = self.arch.bits(tensor, true) as f64;
            let updates = self.compute * self.copies(innermost, lanes, tensor, |_| true);
            self.port(innermost, tensor, Resource::Read, updates, bits);
            self.port(innermost, tensor, Resource::Write, updates, bits);
        }
    }

    /// Cycles of transfers of the PE level that nothing hides: one slot, and a tile that its FIFO does not take.
    fn expose(&mut self, level: usize, tensor: Tensor, cycles: f64) {
        if level != self.event {
            return;
        }
        let bank = self.bank(level, tensor);
        if bank.slots_of(tensor) == 1 && self.tile(level, tensor) > bank.fifo as f64 {
            self.exposed += cycles;
        }
    }

    fn bank(&self, level: usize, tensor: Tensor) -> &'a Bank {
        self.arch.levels[level]
            .bank(tensor)
            .expect("only held tensors are kept")
    }

    fn add(&mut self, level: usize, resource: Resource, slot: Tensor, cycles: f64) -> f64 {
        self.occupied[level * 12 + resource as usize * 3 + slot as usize] += cycles;
        cycles
    }

    /// Occupies a port of a bank; `Read` stands for both where they are one.
    fn port(&mut self, level: usize, tensor: Tensor, way: Resource, elements: f64, bits: f64) -> f64 {
        let bank = self.bank(level, tensor);
        let width = match way {
            Resource::Read => bank.read_width(tensor),
            _ => bank.write_width(tensor),
        };
        let cycles = occupancy(width, elements, bits);
        let first = bank.holds.iter().next().unwrap_or(tensor);
        match bank.ports {
            Ports::Ideal => 0.0,
            Ports::Shared { .. } => self.add(level, Resource::Read, first, cycles),
            Ports::ReadWrite { .. } => self.add(level, way, first, cycles),
            Ports::PerTensor(_) => self.add(level, way, tensor, cycles),
        }
    }

    /// Occupies a channel of the network below `level`; `Down` stands for both on a bus.
    fn channel(&mut self, level: usize, tensor: Tensor, way: Resource, elements: f64, bits: f64) -> f64 {
        let down = matches!(way, Resource::Down);
        let Some(channels) = self.arch.channels(level, down) else {
            return 0.0;
        };
        let Some(link) = channels.link(tensor) else {
            return 0.0;
        };
        let network = self.arch.levels[level].below.as_ref();
        let clock = network
            .and_then(|n| n.clock)
            .map_or(1.0, |clock| self.arch.clock.mhz() / clock.mhz());
        let cycles = occupancy(link.width, elements, bits) * clock;
        let way = match network.map(|n| n.kind) {
            Some(NetworkKind::Bus(_)) => Resource::Down,
            _ => way,
        };
        let slot = match channels {
            Channels::OneForAll(_) => Tensor::Weights,
            Channels::PerTensor(_) => tensor,
        };
        self.add(level, way, slot, cycles)
    }
}

fn occupancy(width: Width, elements: f64, bits: f64) -> f64 {
    match width {
        Width::Bits(w) => elements * bits / w as f64,
        Width::Bytes(w) => elements * bits / (8.0 * w as f64),
        Width::Words(w) => elements / w as f64,
        Width::Unlimited => 0.0,
    }
}

/// Distinct rows of `windows` × `taps`, for means.
fn touched(windows: f64, taps: f64, stride: u64, dilation: u64) -> f64 {
    let (stride, dilation) = (stride as f64, dilation as f64);
    let span = (windows - 1.0) * stride + (taps - 1.0) * dilation + 1.0;
    span.min(windows * taps)
}

/// Trips of `dim` that the first lane runs: spatial loops take their first coordinate, the last tile is clipped.
fn first_lane(problem: &Problem, state: &State, dim: Dim) -> f64 {
    // Loops from the inside out: (trips, temporal). `all` is what a complete tile so far costs the lane.
    let mut left = problem.bounds[dim];
    let mut levels = Vec::with_capacity(state.trips.len() * 2);
    let (mut tile, mut all) = (1_u64, 1_u64);
    for level in (0..state.trips.len()).rev() {
        for (trips, temporal) in [(state.fan[level][dim], false), (state.trips[level][dim], true)] {
            levels.push((tile, all, temporal));
            tile *= trips;
            if temporal {
                all *= trips;
            }
        }
    }
    let mut runs = 0;
    for (tile, all, temporal) in levels.into_iter().rev() {
        if temporal {
            runs += left / tile * all;
            left %= tile;
        } else {
            left = left.min(tile);
            if left == tile {
                runs += all;
                left = 0;
            }
        }
        if left == 0 {
            break;
        }
    }
    runs as f64
}
