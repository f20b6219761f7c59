//! Element-exact counts: fills, fetches and drains of every tensor between the levels that keep it.

use cyclonest_arch::{Accelerator, Mapping, Reduction, Width};
use cyclonest_workloads::{Dim, Problem, Tensor, TensorSet};

use super::classes::{Chain, Class, Degree, NOWHERE, degrees, relevant};
use super::flow::Flow;
use super::nest::{Digit, MAX_LEVELS, Nest, Role, existing, suffixes};
use super::tally::{Tally, Way};
use super::walk::{Pattern, Route, Walk, What, odometer};
use super::window::AffineAxis;

/// Dimensions whose settings select equal or disjoint tiles of each tensor, by [`Tensor`].
const PLAIN: [&[Dim]; 3] = [
    &[Dim::G, Dim::K, Dim::C, Dim::R, Dim::S],
    &[Dim::N, Dim::G, Dim::C],
    &[Dim::N, Dim::G, Dim::K, Dim::P, Dim::Q],
];

/// Dimensions that a tensor does not depend on, by [`Tensor`].
const FREE: [&[Dim]; 3] = [&[Dim::N, Dim::P, Dim::Q], &[Dim::K], &[Dim::C, Dim::R, Dim::S]];

/// Position after all others: every loop is outside.
const EVERYWHERE: i32 = i32::MAX;

/// What the counting needs to know of the machine.
#[derive(Debug, Clone)]
pub(super) struct Hardware {
    /// The PE level.
    pub(super) event: usize,
    /// Per level: tensors of which one pass of the network below serves several children.
    multicast: [TensorSet; MAX_LEVELS],
    /// Per level: whether the network below adds partial sums.
    reduces: [bool; MAX_LEVELS],
    /// Per level: tensors whose overlaps are kept.
    halo: [TensorSet; MAX_LEVELS],
    /// Per level and tensor: width of the network below, towards the children and towards the parent.
    widths: [[(Option<Width>, Option<Width>); 3]; MAX_LEVELS],
    /// Bits of an element: partial and final.
    pub(super) bits: [(u64, u64); 3],
    /// Per level and tensor: widths of the read and the write port.
    ports: [[(Width, Width); 3]; MAX_LEVELS],
}

impl Default for Hardware {
    fn default() -> Self {
        Hardware {
            event: 0,
            multicast: [TensorSet::EMPTY; MAX_LEVELS],
            reduces: [false; MAX_LEVELS],
            halo: [TensorSet::EMPTY; MAX_LEVELS],
            widths: [[(None, None); 3]; MAX_LEVELS],
            bits: [(0, 0); 3],
            ports: [[(Width::Unlimited, Width::Unlimited); 3]; MAX_LEVELS],
        }
    }
}

impl Hardware {
    /// Reads the machine's switches and widths; `arch` has at most [`MAX_LEVELS`] levels.
    pub(super) fn set(&mut self, arch: &Accelerator) {
        self.event = arch.event_level();
        for (l, level) in arch.levels.iter().enumerate() {
            self.multicast[l] = level.below.as_ref().map_or(TensorSet::EMPTY, |n| n.multicast);
            self.reduces[l] = level.below.as_ref().is_some_and(|n| n.reduction != Reduction::None);
            self.halo[l] = level.banks.iter().flat_map(|b| b.halo.iter()).collect();
            let (down, up) = (arch.channels(l, true), arch.channels(l, false));
            for tensor in Tensor::ALL {
                let width = |c: Option<cyclonest_arch::Channels>| c.and_then(|c| c.link(tensor)).map(|l| l.width);
                self.widths[l][tensor as usize] = (width(down), width(up));
                self.ports[l][tensor as usize] = level.bank(tensor).map_or((Width::Unlimited, Width::Unlimited), |b| {
                    (b.read_width(tensor), b.write_width(tensor))
                });
            }
        }
        self.bits = Tensor::ALL.map(|t| (arch.bits(t, true), arch.bits(t, false)));
    }

    /// Widths of the read and the write port of `tensor` at `level`.
    pub(super) fn port(&self, level: usize, tensor: Tensor) -> (Width, Width) {
        self.ports[level][tensor as usize]
    }
}

/// Memory of the counting, reused from one mapping to the next.
#[derive(Debug, Clone, Default)]
pub(super) struct Traffic {
    classes: [Vec<Class>; 5],
    walk: Walk,
    blocks: Vec<(i32, u64, u64)>,
    /// The streams of the last mapping, by tensor and from the outside in.
    pub(super) flows: Vec<Flow>,
}

impl Traffic {
    /// Counts everything above the lanes into `tally`.
    pub(super) fn count(
        &mut self,
        nest: &Nest,
        problem: &Problem,
        mapping: &Mapping,
        hardware: &Hardware,
        tally: &mut Tally,
    ) {
        let axes = [
            AffineAxis::new(problem.stride.0, problem.dilation.0, &problem.real_rows()),
            AffineAxis::new(problem.stride.1, problem.dilation.1, &problem.real_columns()),
        ];
        self.flows.clear();
        for tensor in Tensor::ALL {
            let mut chain = [0; MAX_LEVELS];
            let mut len = 1;
            for level in 1..=hardware.event {
                let kept = mapping.levels[level].keeps.contains(tensor);
                if kept || level == hardware.event {
                    chain[len] = level;
                    len += 1;
                    let mut flow = Flow::new(tensor, chain[len - 2], level, !kept);
                    match tensor {
                        Tensor::Weights => self.weights(nest, hardware, &mut flow, tally),
                        Tensor::Inputs => self.inputs(nest, hardware, &mut flow, &axes, tally),
                        Tensor::Outputs => self.outputs(nest, hardware, &mut flow, &chain[..len], tally),
                    }
                    self.flows.push(flow);
                }
            }
        }
    }

    /// Sorts the strings of every plain dimension of the stream's tensor.
    fn classify(&mut self, nest: &Nest, stream: &Flow, chain: &[usize]) {
        self.classes.iter_mut().for_each(Vec::clear);
        for (&dim, classes) in PLAIN[stream.tensor as usize].iter().zip(&mut self.classes) {
            let mut outside = [0; MAX_LEVELS];
            for (o, &level) in outside.iter_mut().zip(chain) {
                *o = nest.outside(level, dim).len();
            }
            relevant(
                nest.outside(stream.child, dim),
                Chain {
                    outside: &outside[..chain.len()],
                },
                nest.extent(stream.child, dim),
                nest.last_extent(stream.child, dim),
                classes,
            );
        }
    }

    fn weights(&mut self, nest: &Nest, hardware: &Hardware, flow: &mut Flow, tally: &mut Tally) {
        self.classify(nest, flow, &[flow.child]);
        let mut most = 0;
        combine(&self.classes, |count, size, innermost| {
            let innermost = if flow.streamed { EVERYWHERE } else { innermost[0] };
            if count > most {
                (most, flow.innermost) = (count, innermost);
            }
            let outside = |d: &Digit| if d.position < innermost { Role::Free } else { Role::ZERO };
            let stream = *flow;
            spread(
                nest,
                hardware,
                &stream,
                &outside,
                &mut |what, members, trips, strings| {
                    deliver(flow, hardware, what, size * trips, members, count * strings, tally);
                },
            );
        });
    }

    fn inputs(&mut self, nest: &Nest, hardware: &Hardware, flow: &mut Flow, axes: &[AffineAxis; 2], tally: &mut Tally) {
        self.classify(nest, flow, &[flow.child]);
        // Residencies of a block depend only on its innermost loop: bring equal ones together.
        self.blocks.clear();
        let (blocks, mut most) = (&mut self.blocks, 0);
        combine(&self.classes, |count, size, innermost| {
            let innermost = if flow.streamed { EVERYWHERE } else { innermost[0] };
            if count > most {
                (most, flow.innermost) = (count, innermost);
            }
            match blocks.iter_mut().find(|b| b.0 == innermost && b.1 == size) {
                Some(block) => block.2 += count,
                None => blocks.push((innermost, size, count)),
            }
        });
        for dim in [Dim::P, Dim::Q, Dim::R, Dim::S] {
            for digit in nest
                .outside(flow.child, dim)
                .iter()
                .filter(|d| !d.spatial && d.bound > 0)
            {
                flow.innermost = flow.innermost.max(digit.position);
            }
        }
        let mut route = Route {
            parent: flow.parent,
            child: flow.child,
            multicast: [false; MAX_LEVELS],
            halo: hardware.halo[flow.child].contains(Tensor::Inputs),
            streamed: flow.streamed,
        };
        for (flag, multicast) in route.multicast.iter_mut().zip(&hardware.multicast) {
            *flag = multicast.contains(Tensor::Inputs);
        }
        for i in 0..self.blocks.len() {
            let innermost = self.blocks[i].0;
            if self.blocks[..i].iter().any(|b| b.0 == innermost) {
                continue;
            }
            let stream = *flow;
            for group in self.walk.groups(nest, &route, axes, innermost) {
                let role = |digit: &Digit| outside_or(digit, innermost, &group.pattern);
                for &(_, size, count) in self.blocks.iter().filter(|b| b.0 == innermost) {
                    spread(nest, hardware, &stream, &role, &mut |what, members, trips, strings| {
                        if group.what == What::Single || group.what == what {
                            let elements = group.elements * size * trips;
                            let transfers = count * strings * group.count;
                            deliver(flow, hardware, what, elements, members * group.degree, transfers, tally);
                        }
                    });
                }
            }
        }
    }

    fn outputs(&mut self, nest: &Nest, hardware: &Hardware, flow: &mut Flow, chain: &[usize], tally: &mut Tally) {
        self.classify(nest, flow, chain);
        let Flow { parent, child, .. } = *flow;
        let tensor = Tensor::Outputs;
        let reduction = FREE[tensor as usize];
        let (mut most, mut all, mut fetched) = (0, 0, 0);
        combine(&self.classes, |count, size, innermost| {
            let at_child = if flow.streamed {
                EVERYWHERE
            } else {
                innermost[chain.len() - 1]
            };
            if count > most {
                (most, flow.innermost) = (count, at_child);
            }
            let temporal = |d: &Digit| if d.position < at_child { Role::Free } else { Role::ZERO };
            // Every member drains each visit; siblings meet where the network adds, and one read-modify-write per
            // further stream is left at the parent (rule 19).
            let joins = |level: usize| level >= parent && hardware.reduces[level];
            let every = Groups {
                nest,
                dims: reduction,
                child,
                streamed: false,
                grouped: &|_| false,
                temporal: &temporal,
                last_visits_from: None,
            };
            let streams_of = Groups {
                grouped: &joins,
                ..every
            };
            let visits_of = Groups {
                grouped: &|level| level >= parent,
                ..every
            };
            let (drains, streams) = (count * every.total(), count * streams_of.total());
            let visits = count * visits_of.total();
            let first = count * first_visits(nest, chain, &innermost, child);
            let fetches = visits - first;
            let rmw = streams - visits;
            all += visits;
            fetched += fetches;
            // Partial sums, and the final values of each tile's last visit (rule 20).
            let last_visits_from = Some(parent);
            let (partial, exact) = hardware.bits[2];
            let last = |groups: Groups<'_>| {
                let last = Groups {
                    last_visits_from,
                    ..groups
                };
                if partial == exact { 0 } else { count * last.total() }
            };
            let (last_drains, last_streams) = (last(every), last(streams_of));
            let mixed = |width: Width, all: u64, last: u64| {
                width.cycles(size, partial) * (all - last) + width.cycles(size, exact) * last
            };
            let at_parent = hardware.port(parent, tensor);
            if !flow.streamed {
                let access = tally.at(child, tensor);
                access.drains += drains * size;
                access.fills += fetches * size;
                access.opened += (drains - fetches) * size;
                let at_child = hardware.port(child, tensor);
                flow.up.read += mixed(at_child.0, drains, last_drains);
                flow.down.write += at_child.1.cycles(size, partial) * fetches;
            }
            let access = tally.at(parent, tensor);
            access.reads += (fetches + rmw) * size;
            access.updates += streams * size;
            access.read_modify_writes += rmw * size;
            flow.transfers += fetches;
            flow.largest = flow.largest.max(size);
            flow.down.read += at_parent.0.cycles(size, partial) * fetches;
            flow.modify += at_parent.0.cycles(size, partial) * rmw;
            flow.up.write += mixed(at_parent.1, streams, last_streams);
            for level in parent..child {
                let (down, up) = hardware.widths[level][tensor as usize];
                flow.down.networks[level] += cycles(down, size, partial) * fetches;
                tally.pass(level, tensor, Way::Down, 1, size, partial, down, fetches);
                streams_of.passes(Some(level), &mut |degree, _, strings| {
                    flow.joined[level] = flow.joined[level].max(degree);
                    flow.up.networks[level] += cycles(up, size, partial) * count * strings;
                    tally.pass(level, tensor, Way::Up, degree, size, partial, up, count * strings);
                });
                if partial != exact {
                    let last = Groups {
                        last_visits_from,
                        ..streams_of
                    };
                    last.passes(Some(level), &mut |degree, _, strings| {
                        let passes = count * strings;
                        flow.up.networks[level] += cycles(up, size, exact) * passes;
                        flow.up.networks[level] -= cycles(up, size, partial) * passes;
                        tally.narrow(level, degree, size, (partial, exact), up, passes);
                    });
                }
            }
        });
        flow.fetched = fetched as f64 / (all as f64).max(1.0);
    }
}

/// Cycles that a transfer occupies a network whose width is `width`.
fn cycles(width: Option<Width>, elements: u64, bits: u64) -> u64 {
    width.map_or(0, |w| w.cycles(elements, bits))
}

/// Strings of the reduction dimensions at which an output tile is visited for the first time by a member that would
/// fetch it: nothing was drained into the parent's residency yet, nor into those of its ancestors up to the one
/// where the member's coordinates leave the corner (rule 17).
fn first_visits(nest: &Nest, chain: &[usize], innermost: &[i32; MAX_LEVELS], child: usize) -> u64 {
    let reduction = FREE[Tensor::Outputs as usize];
    let keepers = &chain[..chain.len() - 1];
    let mut sum = 0;
    for (i, &ancestor) in keepers.iter().enumerate() {
        // Coordinates at the networks below the ancestor are 0; in those between its parent and it, some is not.
        let inside = if i == 0 { NOWHERE } else { innermost[i] };
        let strings = |free_below: usize| -> u64 {
            let role = |d: &Digit| {
                let free = if d.spatial {
                    d.level < free_below
                } else {
                    d.position < inside
                };
                if free { Role::Free } else { Role::ZERO }
            };
            reduction
                .iter()
                .map(|&dim| existing(nest.outside(child, dim), role))
                .product()
        };
        sum += match i {
            0 => 1,
            _ => strings(ancestor) - strings(keepers[i - 1]),
        };
    }
    sum
}

fn outside_or(digit: &Digit, innermost: i32, pattern: &Pattern) -> Role {
    if digit.position < innermost {
        Role::Free
    } else {
        pattern.role(digit.position)
    }
}

/// Adds transfers of operands to the counts and cycles of what they touch.
fn deliver(
    flow: &mut Flow,
    hardware: &Hardware,
    what: What,
    elements: u64,
    members: u64,
    count: u64,
    tally: &mut Tally,
) {
    let tensor = flow.tensor;
    let bits = hardware.bits[tensor as usize].1;
    match what {
        What::Single => unreachable!("transfers are spread by what they touch"),
        What::Read => {
            tally.at(flow.parent, tensor).reads += elements * count;
            flow.down.read += hardware.port(flow.parent, tensor).0.cycles(elements, bits) * count;
            flow.transfers += count;
            flow.largest = flow.largest.max(elements);
        }
        What::Fill if flow.streamed => {}
        What::Fill => {
            tally.at(flow.child, tensor).fills += elements * count;
            flow.down.write += hardware.port(flow.child, tensor).1.cycles(elements, bits) * count;
        }
        What::Pass(level) => {
            let width = hardware.widths[level][tensor as usize].0;
            flow.down.networks[level] += cycles(width, elements, bits) * count;
            tally.pass(level, tensor, Way::Down, members, elements, bits, width, count);
        }
    }
}

/// Spreads one transfer over the dimensions that the tensor does not depend on: calls `send` with what is touched,
/// the members along these dimensions, the burst's trips along them (1 unless the child streams) and how often.
fn spread(
    nest: &Nest,
    hardware: &Hardware,
    stream: &Flow,
    temporal: &dyn Fn(&Digit) -> Role,
    send: &mut dyn FnMut(What, u64, u64, u64),
) {
    let Flow {
        tensor, parent, child, ..
    } = *stream;
    let grouped = |level: usize| level >= parent && hardware.multicast[level].contains(tensor);
    let groups = Groups {
        nest,
        dims: FREE[tensor as usize],
        child,
        streamed: stream.streamed,
        grouped: &grouped,
        temporal,
        last_visits_from: None,
    };
    Groups {
        grouped: &|_| false,
        ..groups
    }
    .passes(None, &mut |_, trips, count| send(What::Fill, 1, trips, count));
    groups.passes(None, &mut |_, trips, count| send(What::Read, 1, trips, count));
    for level in parent..child {
        groups.passes(Some(level), &mut |members, trips, count| {
            send(What::Pass(level), members, trips, count);
        });
    }
}

/// Groups of child instances along dimensions that a tensor does not depend on.
#[derive(Clone, Copy)]
struct Groups<'a> {
    nest: &'a Nest,
    dims: &'static [Dim],
    child: usize,
    /// True if what is sent depends on the burst's trips, so that members with fewer are a group of their own.
    streamed: bool,
    /// Networks, by the level above, that bring the members along the dimensions together.
    grouped: &'a dyn Fn(usize) -> bool,
    temporal: &'a dyn Fn(&Digit) -> Role,
    /// Only the last visit of each output tile, below parents at this level.
    last_visits_from: Option<usize>,
}

impl Groups<'_> {
    /// Calls `send` with the members, the trips and the number of passes through the network below `level`, or of
    /// groups (with one member each) if there is none.
    fn passes(&self, level: Option<usize>, send: &mut dyn FnMut(u64, u64, u64)) {
        let mut lists = [Along::default(); 3];
        for (&dim, list) in self.dims.iter().zip(&mut lists) {
            *list = self.along(dim, level);
            if list.len == 0 {
                return;
            }
        }
        if self.dims.len() == 1 {
            for a in lists[0].entries() {
                send(a.0.members, a.1, a.0.count);
            }
            return;
        }
        for a in lists[0].entries() {
            for b in lists[1].entries() {
                for c in lists[2].entries() {
                    send(
                        a.0.members * b.0.members * c.0.members,
                        a.1 * b.1 * c.1,
                        a.0.count * b.0.count * c.0.count,
                    );
                }
            }
        }
    }

    /// Number of groups.
    fn total(&self) -> u64 {
        let mut total = 0;
        self.passes(None, &mut |_, _, count| total += count);
        total
    }

    fn along(&self, dim: Dim, level: Option<usize>) -> Along {
        let mut list = Along::default();
        match self.last_visits_from {
            None => self.add_along(dim, level, &|d| (self.temporal)(d), &|_| Role::Free, &mut list),
            Some(parent) => self.last_along(dim, level, parent, &mut list),
        }
        list
    }

    /// A visit is a tile's last if it takes in the last temporal setting of the reduction, as the corner sees it.
    fn last_along(&self, dim: Dim, level: Option<usize>, parent: usize, list: &mut Along) {
        let digits = self.nest.outside(self.child, dim);
        let bound = self.nest.bounds[dim];
        let mut last = [0; super::nest::MAX_DIGITS];
        let mut reached = 0;
        for (digit, last) in digits.iter().zip(&mut last).filter(|(d, _)| !d.spatial) {
            *last = ((bound - 1 - reached) / digit.weight).min(digit.trips - 1);
            reached += *last * digit.weight;
        }
        let value = |digit: &Digit, of: &[u64]| {
            let at = digits.iter().position(|d| d.position == digit.position);
            at.map_or(0, |at| of[at])
        };
        let above = |d: &Digit| d.spatial && d.level < parent;
        odometer(digits, above, bound, &mut |base| {
            if base + reached >= bound {
                return;
            }
            let temporal = |d: &Digit| match (self.temporal)(d) {
                Role::Free => Role::Exactly(value(d, &last)),
                fixed => fixed,
            };
            // The settings of the digits above that add up to `base`.
            let fixed = |d: &Digit| {
                if d.level < parent {
                    Role::Exactly(base / d.weight % d.trips)
                } else {
                    Role::Free
                }
            };
            self.add_along(dim, level, &temporal, &fixed, list);
        });
    }

    fn add_along(
        &self,
        dim: Dim,
        level: Option<usize>,
        temporal: &dyn Fn(&Digit) -> Role,
        spatial: &dyn Fn(&Digit) -> Role,
        list: &mut Along,
    ) {
        let digits = self.nest.outside(self.child, dim);
        let inside = |l: usize| level.is_none_or(|level| l > level);
        let role = |d: &Digit| {
            if !d.spatial {
                temporal(d)
            } else if inside(d.level) && (self.grouped)(d.level) {
                Role::ZERO
            } else {
                spatial(d)
            }
        };
        let mut block = 0..0;
        if let Some(level) = level.filter(|&l| (self.grouped)(l)) {
            let here = |d: &Digit| d.spatial && d.level == level;
            if let Some(from) = digits.iter().position(here) {
                block = from..from + digits.iter().filter(|d| here(d)).count();
            }
        }
        let mut degree = [Degree::default(); 3];
        let len = degrees(digits, block.clone(), role, &mut degree);
        let trips = |d: &Digit| if d.spatial { Role::ZERO } else { Role::Free };
        let (full, last) = match self.streamed {
            true => suffixes(self.nest.inside(self.child, dim), trips),
            false => (1, 1),
        };
        for degree in &degree[..len] {
            list.add(*degree, full);
        }
        if full != last {
            // The string of the last tile leaves the group that it would be in.
            let bound = digits[block].iter().fold(0, |b, d| b * d.trips + d.bound);
            let others_follow = digits
                .iter()
                .any(|d| d.spatial && d.bound > 0 && inside(d.level) && (self.grouped)(d.level));
            if !others_follow {
                list.take_one(bound + 1, full);
                if bound > 0 {
                    list.add(
                        Degree {
                            members: bound,
                            count: 1,
                        },
                        full,
                    );
                }
            }
            list.add(Degree { members: 1, count: 1 }, last);
        }
    }
}

/// Group sizes and trips along one dimension.
#[derive(Debug, Clone, Copy, Default)]
struct Along {
    entries: [(Degree, u64); 5],
    len: usize,
}

impl Along {
    fn entries(&self) -> &[(Degree, u64)] {
        &self.entries[..self.len]
    }

    fn add(&mut self, degree: Degree, trips: u64) {
        let same = |e: &&mut (Degree, u64)| e.0.members == degree.members && e.1 == trips;
        match self.entries[..self.len].iter_mut().find(same) {
            Some(known) => known.0.count += degree.count,
            None => {
                self.entries[self.len] = (degree, trips);
                self.len += 1;
            }
        }
    }

    fn take_one(&mut self, members: u64, trips: u64) {
        let same = |e: &&mut (Degree, u64)| e.0.members == members && e.1 == trips;
        if let Some(known) = self.entries[..self.len].iter_mut().find(same) {
            known.0.count -= 1;
        }
    }
}

/// Calls `visit` for every combination of classes of the dimensions: how many, tile size, innermost effective loop.
fn combine(classes: &[Vec<Class>; 5], mut visit: impl FnMut(u64, u64, [i32; MAX_LEVELS])) {
    fn go(
        classes: &[Vec<Class>],
        count: u64,
        size: u64,
        innermost: [i32; MAX_LEVELS],
        visit: &mut dyn FnMut(u64, u64, [i32; MAX_LEVELS]),
    ) {
        match classes.split_first() {
            Some((first, rest)) if !first.is_empty() => {
                for class in first {
                    let mut joined = innermost;
                    for (j, c) in joined.iter_mut().zip(&class.innermost) {
                        *j = (*j).max(*c);
                    }
                    go(rest, count * class.count, size * class.extent, joined, visit);
                }
            }
            _ => visit(count, size, innermost),
        }
    }
    go(classes, 1, 1, [NOWHERE; MAX_LEVELS], &mut visit);
}
