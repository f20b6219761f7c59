//! Element-exact counts: fills, fetches and drains of every tensor between the levels that keep it.

use cyclonest_arch::{Mapping, Width};
use cyclonest_workloads::{Dim, Problem, Tensor};

use super::burst::{Burst, Clipped};
use super::classes::{Chain, Class, NOWHERE, Span, relevant};
use super::flow::Flow;
use super::groups::{Groups, levels_from};
use super::hardware::{FREE, Hardware, PLAIN, keeps};
use super::joined::{EVERYWHERE, Joined, Links, combine};
use super::nest::{Digit, MAX_LEVELS, Nest, Role, existing};
use super::stepped::Stepped;
use super::tally::{Tally, Way};
use super::walk::{Pattern, Route, Walk, What};
use super::window::AffineAxis;
use crate::cost::CostError;

/// Memory of the counting, reused from one mapping to the next.
#[derive(Debug, Clone, Default)]
pub(super) struct Traffic {
    classes: [Vec<Class>; 5],
    walk: Walk,
    blocks: Vec<Joined>,
    scratch: [Vec<Class>; 5],
    parts: Vec<(What, u64, u8, Span)>,
    /// The streams of the last mapping, by tensor and from the outside in.
    pub(super) flows: Vec<Flow>,
}

impl Traffic {
    /// Counts everything above the lanes into `tally`.
    ///
    /// # Errors
    /// If the PE level bypasses the inputs, a level inside keeps them, and there are too many iterations to count.
    pub(super) fn count(
        &mut self,
        nest: &Nest,
        problem: &Problem,
        mapping: &Mapping,
        hardware: &Hardware,
        tally: &mut Tally,
    ) -> Result<(), CostError> {
        let axes = [
            AffineAxis::new(problem.stride.0, problem.dilation.0, &problem.real_rows()),
            AffineAxis::new(problem.stride.1, problem.dilation.1, &problem.real_columns()),
        ];
        self.flows.clear();
        for tensor in Tensor::ALL {
            let keeps = |level: usize| mapping.levels[level].keeps.contains(tensor);
            let mut links = Links::default();
            links.push(0, 0);
            for level in 1..=hardware.event {
                if keeps(level) || level == hardware.event {
                    let mut flow = Flow::new(tensor, links.last(), level, !keeps(level));
                    // What streams through the PE level ends no later than its step.
                    links.push(level, if flow.streamed { nest.start(level) } else { 0 });
                    self.stream(nest, mapping, hardware, &mut flow, &links, &axes, tally)?;
                    self.flows.push(flow);
                }
            }
            for level in hardware.event + 1..nest.levels() {
                if keeps(level) {
                    let parent = links.last();
                    let mut flow = Flow::inside(tensor, parent, level, keeps(parent));
                    links.push(level, nest.start(hardware.event));
                    self.stream(nest, mapping, hardware, &mut flow, &links, &axes, tally)?;
                }
            }
            tally.set_last(tensor, links.last(), keeps(links.last()));
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn stream(
        &mut self,
        nest: &Nest,
        mapping: &Mapping,
        hardware: &Hardware,
        flow: &mut Flow,
        links: &Links,
        axes: &[AffineAxis; 2],
        tally: &mut Tally,
    ) -> Result<(), CostError> {
        match flow.tensor {
            Tensor::Weights => self.weights(nest, mapping, hardware, flow, links, tally),
            Tensor::Inputs => return self.inputs(nest, mapping, hardware, flow, links, axes, tally),
            Tensor::Outputs => self.outputs(nest, hardware, flow, links, tally),
        }
        Ok(())
    }

    /// Sorts the strings of every plain dimension of the stream's tensor.
    fn classify(&mut self, nest: &Nest, flow: &Flow, links: &Links) {
        self.classes.iter_mut().for_each(Vec::clear);
        for (&dim, classes) in PLAIN[flow.tensor as usize].iter().zip(&mut self.classes) {
            let mut outside = [0; MAX_LEVELS];
            for (o, &level) in outside.iter_mut().zip(links.levels()) {
                *o = nest.outside(level, dim).len();
            }
            relevant(
                nest.outside(flow.child, dim),
                Chain {
                    outside: &outside[..links.len],
                    floor: &links.floors[..links.len],
                },
                nest.extent(flow.child, dim),
                nest.last_extent(flow.child, dim),
                classes,
            );
        }
    }

    fn weights(
        &mut self,
        nest: &Nest,
        mapping: &Mapping,
        hardware: &Hardware,
        flow: &mut Flow,
        links: &Links,
        tally: &mut Tally,
    ) {
        self.classify(nest, flow, &links.only_last());
        let plain = PLAIN[Tensor::Weights as usize];
        let burst = Burst::new(nest, &keeps(mapping), hardware, Tensor::Weights);
        let scratch = &mut self.scratch;
        let mut most = 0;
        combine(&self.classes, |joined| {
            let &Joined { count, size, last, .. } = joined;
            let innermost = if flow.streamed { EVERYWHERE } else { joined.innermost[0] };
            if count > most {
                (most, flow.innermost) = (count, innermost);
            }
            let outside = |d: &Digit| if d.position < innermost { Role::Free } else { Role::ZERO };
            let stream = *flow;
            let clipped = Clipped::of(plain, last);
            let mut sizes = [size; 8];
            let mut split = [false; 3];
            if flow.streamed {
                // What the PE takes in per step, if it has the last tile along some of N, P and Q.
                for (mask, size) in sizes.iter_mut().enumerate() {
                    *size = burst.weights(clipped.with(FREE[0], mask as u8), scratch);
                }
                split = [1, 2, 4].map(|mask| sizes[mask] != sizes[0]);
            }
            spread(
                nest,
                hardware,
                &stream,
                &outside,
                split,
                &mut |what, members, mask, span| {
                    let span = joined.span(what).times(span);
                    deliver(flow, hardware, what, sizes[mask as usize], members, span, tally);
                },
            );
        });
    }

    #[allow(clippy::too_many_arguments)]
    fn inputs(
        &mut self,
        nest: &Nest,
        mapping: &Mapping,
        hardware: &Hardware,
        flow: &mut Flow,
        links: &Links,
        axes: &[AffineAxis; 2],
        tally: &mut Tally,
    ) -> Result<(), CostError> {
        let kept_inside = (flow.child + 1..nest.levels()).find(|&l| mapping.levels[l].keeps.contains(Tensor::Inputs));
        if flow.streamed
            && let Some(next) = kept_inside
        {
            flow.innermost = EVERYWHERE;
            let stepped = Stepped {
                nest,
                hardware,
                axes,
                parent: flow.parent,
                next,
            };
            return stepped.transfers(&mut |what, elements, members, span| {
                deliver(flow, hardware, what, elements, members, span, tally);
            });
        }
        self.classify(nest, flow, &links.only_last());
        // Residencies of a block depend only on its innermost loop: bring equal ones together.
        self.blocks.clear();
        let (blocks, mut most) = (&mut self.blocks, 0);
        combine(&self.classes, |joined| {
            let mut joined = *joined;
            if flow.streamed {
                joined.innermost[0] = EVERYWHERE;
            }
            let innermost = joined.innermost[0];
            if joined.count > most {
                (most, flow.innermost) = (joined.count, innermost);
            }
            let same = |b: &&mut Joined| b.innermost[0] == innermost && b.size == joined.size;
            match blocks.iter_mut().find(same) {
                Some(block) => {
                    block.count += joined.count;
                    for (at, more) in block.at.iter_mut().zip(&joined.at) {
                        *at = (at.0 + more.0, at.1 + more.1);
                    }
                }
                None => blocks.push(joined),
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
            halo: !flow.inside && hardware.halo[flow.child].contains(Tensor::Inputs),
            streamed: flow.streamed,
            inside: flow.inside,
        };
        for (flag, multicast) in route.multicast.iter_mut().zip(&hardware.multicast) {
            *flag = multicast.contains(Tensor::Inputs);
        }
        let burst = Burst::new(nest, &keeps(mapping), hardware, Tensor::Inputs);
        // Trips over K of a full and of the last tile.
        let trips = match flow.streamed {
            true => [false, true].map(|last| burst.settings(Dim::K, last)),
            false => [1, 1],
        };
        let split = [trips[0] != trips[1], false, false];
        for i in 0..self.blocks.len() {
            let innermost = self.blocks[i].innermost[0];
            if self.blocks[..i].iter().any(|b| b.innermost[0] == innermost) {
                continue;
            }
            let stream = *flow;
            // Groups with the same setting of the loops over K spread over K alike.
            let mut spread_for = None;
            let parts = &mut self.parts;
            for group in self.walk.groups(nest, &route, axes, innermost, &|d| burst.apart(d))? {
                if spread_for != Some(group.pattern) {
                    spread_for = Some(group.pattern);
                    parts.clear();
                    let role = |digit: &Digit| outside_or(digit, innermost, &group.pattern);
                    spread(
                        nest,
                        hardware,
                        &stream,
                        &role,
                        split,
                        &mut |what, members, mask, span| {
                            parts.push((what, members, mask, span));
                        },
                    );
                }
                for block in self.blocks.iter().filter(|b| b.innermost[0] == innermost) {
                    for &(what, members, mask, span) in parts.iter() {
                        if group.what == What::Single || group.what == what {
                            let elements = group.elements * block.size * trips[mask as usize];
                            let span = block.span(what).times(group.span).times(span);
                            deliver(flow, hardware, what, elements, members * group.degree, span, tally);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn outputs(&mut self, nest: &Nest, hardware: &Hardware, flow: &mut Flow, links: &Links, tally: &mut Tally) {
        self.classify(nest, flow, links);
        let chain = links.levels();
        let Flow { parent, child, .. } = *flow;
        let tensor = Tensor::Outputs;
        let reduction = FREE[tensor as usize];
        let (mut most, mut all, mut fetched) = (0, 0, 0);
        combine(&self.classes, |joined| {
            let &Joined {
                count, size, innermost, ..
            } = joined;
            let at_child = if flow.streamed {
                EVERYWHERE
            } else {
                innermost[chain.len() - 1]
            };
            if count > most {
                (most, flow.innermost) = (count, at_child);
            }
            let temporal = |d: &Digit| if d.position < at_child { Role::Free } else { Role::ZERO };
            // Without a loop over the reduction outside, every tile is visited once: nothing is fetched, all is final.
            let loops = |dim: &Dim| nest.outside(child, *dim).iter();
            let once = !reduction
                .iter()
                .flat_map(loops)
                .any(|d| !d.spatial && d.position < at_child);
            // Every member drains each visit; siblings meet where the network adds, and one read-modify-write per
            // further stream is left at the parent (rule 19).
            let joins = levels_from(parent, |level| hardware.reduces[level]);
            let every = Groups {
                nest,
                dims: reduction,
                child,
                split: [false; 3],
                grouped: 0,
                temporal: &temporal,
                last_visits_from: None,
            };
            let streams_of = Groups {
                grouped: joins,
                ..every
            };
            let visits_of = Groups {
                grouped: levels_from(parent, |_| true),
                ..every
            };
            let (drains, streams) = (count * every.total(), count * streams_of.total());
            let visits = count * visits_of.total();
            let first = match once {
                true => visits,
                false => count * first_visits(nest, chain, &innermost, child),
            };
            let fetches = visits - first;
            let rmw = streams - visits;
            all += visits;
            fetched += fetches;
            // Partial sums, and the final values of each tile's last visit (rule 20).
            let last_visits_from = Some(parent);
            let (partial, exact) = hardware.bits[2];
            let drained = if once { exact } else { partial };
            let last = |groups: Groups<'_>| {
                let last = Groups {
                    last_visits_from,
                    ..groups
                };
                if drained == exact || flow.inside {
                    0
                } else {
                    count * last.total()
                }
            };
            let (last_drains, last_streams) = (last(every), last(streams_of));
            let mixed = |width: Width, all: u64, last: u64| {
                width.cycles(size, drained) * (all - last) + width.cycles(size, exact) * last
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
            if flow.stored {
                let access = tally.at(parent, tensor);
                access.reads += (fetches + rmw) * size;
                access.updates += streams * size;
                access.read_modify_writes += rmw * size;
            }
            if flow.inside {
                return;
            }
            flow.transfers += fetches;
            flow.largest = flow.largest.max(size);
            flow.down.read += at_parent.0.cycles(size, partial) * fetches;
            flow.modify += at_parent.0.cycles(size, partial) * rmw;
            flow.up.write += mixed(at_parent.1, streams, last_streams);
            for level in parent..child {
                let (down, up) = hardware.widths[level][tensor as usize];
                flow.down.networks[level] += cycles(down, size, partial) * fetches;
                tally.pass(level, tensor, Way::Down, 1, size, partial, down, fetches);
                let at = joined.span(What::Pass(level));
                // Only members in the corner of the reduction fetch.
                let fetched = Span::singles(fetches / count, (0, 0));
                tally.hop(level, tensor, at.times(fetched).links() * size * partial);
                streams_of.passes(Some(level), &mut |degree, _, span| {
                    let strings = span.count;
                    tally.hop(level, tensor, at.times(span).links() * size * drained);
                    flow.joined[level] = flow.joined[level].max(degree);
                    flow.up.networks[level] += cycles(up, size, drained) * count * strings;
                    tally.pass(level, tensor, Way::Up, degree, size, drained, up, count * strings);
                });
                if drained != exact {
                    let last = Groups {
                        last_visits_from,
                        ..streams_of
                    };
                    last.passes(Some(level), &mut |degree, _, span| {
                        let links = at.times(span).links() * size;
                        tally.unhop(level, tensor, links * partial, links * exact);
                        let passes = count * span.count;
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
    span: Span,
    tally: &mut Tally,
) {
    let count = span.count;
    let tensor = flow.tensor;
    let bits = hardware.bits[tensor as usize].1;
    if flow.inside {
        match what {
            What::Read if flow.stored => tally.at(flow.parent, tensor).reads += elements * count,
            What::Fill => tally.at(flow.child, tensor).fills += elements * count,
            _ => {}
        }
        return;
    }
    match what {
        What::Single => unreachable!("transfers are spread by what they touch"),
        What::Read => {
            tally.at(flow.parent, tensor).reads += elements * count;
            flow.down.read += hardware.port(flow.parent, tensor).0.cycles(elements, bits) * count;
            flow.transfers += count;
            flow.elements += elements * count;
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
            tally.hop(level, tensor, span.links() * elements * bits);
        }
    }
}

/// Spreads one transfer over the dimensions that the tensor does not depend on: calls `send` with what is touched,
/// the members along these dimensions, along which of them they have the last tile (told apart where `split` says
/// so), and how often.
fn spread(
    nest: &Nest,
    hardware: &Hardware,
    stream: &Flow,
    temporal: &dyn Fn(&Digit) -> Role,
    split: [bool; 3],
    send: &mut dyn FnMut(What, u64, u8, Span),
) {
    let Flow {
        tensor, parent, child, ..
    } = *stream;
    let grouped = levels_from(parent, |level| hardware.multicast[level].contains(tensor));
    let groups = Groups {
        nest,
        dims: FREE[tensor as usize],
        child,
        split,
        grouped,
        temporal,
        last_visits_from: None,
    };
    let every = Groups { grouped: 0, ..groups };
    every.passes(None, &mut |_, mask, span| send(What::Fill, 1, mask, span));
    groups.passes(None, &mut |_, mask, span| send(What::Read, 1, mask, span));
    if stream.inside {
        return;
    }
    for level in parent..child {
        groups.passes(Some(level), &mut |members, mask, span| {
            send(What::Pass(level), members, mask, span);
        });
    }
}
