//! What the rehearsal of a mapping needs to know: loops, streams with their paths, the work of a burst.

use cyclonest_arch::{Reduction, Width};
use cyclonest_workloads::{Dim, DimMap, Problem, Tensor};

use super::cursor::Turn;
use super::fan::{existing, fan, members, real_share, spatial, streamed_inputs};
use super::path::{Path, Stage, Stream};
use super::work::Work;
use super::{RECALLED, RING};
use crate::cost::exact::burst::{Burst, Clipped};
use crate::cost::exact::classes::Class;
use crate::cost::exact::hardware::{FREE, Hardware};
use crate::cost::exact::latency::Timing;
use crate::cost::exact::nest::{MAX_LEVELS, Nest};
use crate::cost::exact::window::AffineAxis;

/// Everything that the rehearsal needs to know of a mapping.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    pub(super) turns: Vec<Turn>,
    /// By tensor, from the outside in.
    pub(super) streams: Vec<Stream>,
    /// Per level: whether the mapping uses more than one instance.
    pub(super) several: [bool; MAX_LEVELS],
    pub(super) axes: [AffineAxis; 2],
    pub(super) bounds: DimMap<u64>,
    pub(super) work: Work,
    pub(super) depth: i64,
    offsets: Vec<(usize, i64, bool)>,
    scratch: [Vec<Class>; 5],
}

impl Plan {
    /// Reads a mapping.
    pub(super) fn set(
        &mut self,
        nest: &Nest,
        problem: &Problem,
        keeps: &[[bool; 3]],
        hardware: &Hardware,
        timing: &Timing,
    ) {
        let event = hardware.event;
        self.bounds = nest.bounds;
        self.depth = timing.depth as i64;
        self.axes = [
            AffineAxis::new(problem.stride.0, problem.dilation.0, &problem.real_rows()),
            AffineAxis::new(problem.stride.1, problem.dilation.1, &problem.real_columns()),
        ];
        let mut several = false;
        for level in 0..nest.levels() {
            self.several[level] = several;
            several |= Dim::ALL
                .iter()
                .any(|&dim| spatial(nest, level, dim).any(|d| existing(nest, dim, d) > 1));
        }
        self.streams.clear();
        for tensor in Tensor::ALL {
            let mut parent = 0;
            for level in 1..=event {
                if keeps[level][tensor as usize] || level == event {
                    let streamed = !keeps[level][tensor as usize];
                    self.stream(nest, keeps, hardware, timing, (tensor, parent, level, streamed));
                    parent = level;
                }
            }
        }
        self.meetings();
        self.work = Work::new(nest, keeps, hardware, timing, &self.axes);
    }

    #[allow(clippy::too_many_arguments)]
    fn stream(
        &mut self,
        nest: &Nest,
        keeps: &[[bool; 3]],
        hardware: &Hardware,
        timing: &Timing,
        (tensor, parent, child, streamed): (Tensor, usize, usize, bool),
    ) {
        let t = tensor as usize;
        let relevant = |turn: &Turn| turn.level < child && !FREE[t].contains(&turn.dim);
        let turns = match streamed {
            true => self.turns.len(),
            false => self.turns.iter().rposition(relevant).map_or(0, |k| k + 1),
        };
        // An output residency ends with its parent's (rule 4); operands change with their parent's anyway.
        let turns = self
            .streams
            .last()
            .filter(|s| s.tensor == tensor)
            .map_or(turns, |s| turns.max(s.turns));
        let outputs = tensor == Tensor::Outputs;
        let shares = |level: usize| hardware.multicast[level].contains(tensor);
        let mut down = Path::EMPTY;
        let mut up = Path::EMPTY;
        // Passes through the network below each level, and one instance of it.
        let (mut fills, mut drains, mut visits) = ([1.0; MAX_LEVELS + 1], [1.0; MAX_LEVELS + 1], 1.0_f64);
        for level in (parent..child).rev() {
            let (fill, drain) = if outputs {
                let along = |reduction: bool| {
                    let dims = Dim::ALL.into_iter().filter(|dim| dim.is_reduction() == reduction);
                    dims.map(|dim| members(nest, child, level, dim, !reduction))
                        .product::<f64>()
                };
                let tiles = along(false);
                (tiles, tiles * if hardware.reduces[level] { 1.0 } else { along(true) })
            } else {
                (
                    fan(nest, child, level, &self.axes, tensor, shares(level), streamed),
                    1.0,
                )
            };
            fills[level] = fills[level + 1] * fill;
            drains[level] = drains[level + 1] * drain;
            visits *= fill;
        }
        // Instances whose rows are padding get nothing.
        let (mut axes, mut real) = (self.axes, 1.0);
        if tensor == Tensor::Inputs {
            for (axis, (p, r)) in axes.iter_mut().zip([(Dim::P, Dim::R), (Dim::Q, Dim::S)]) {
                let spread = |dim| nest.outside(child, dim).iter().any(|d| d.spatial && d.trips > 1);
                if spread(p) || spread(r) {
                    real *= real_share(axis, (nest.bounds[p], nest.bounds[r]));
                    (axis.real_from, axis.real_to) = (0, u64::MAX);
                }
            }
            if !streamed {
                for fills in &mut fills[parent..child] {
                    *fills = (*fills * real).max(1.0);
                }
            }
        }
        let port = |level: usize, write: bool, own: bool, passes: f64| {
            let (read, written) = hardware.port(level, tensor);
            Stage {
                resource: if write {
                    timing.write[level][t]
                } else {
                    timing.read[level][t]
                },
                level,
                width: if write { written } else { read },
                ratio: 1.0,
                latency: if write { 0 } else { timing.latency[level][t] as i64 },
                onward: 0,
                passes,
                modify: None,
                own,
                meets: false,
            }
        };
        let network = |level: usize, to_child: bool, passes: f64| {
            let widths = hardware.widths[level][t];
            let width = if to_child { widths.0 } else { widths.1 };
            let hop = timing.hop[level][t];
            let joined = match (to_child, timing.reduction[level]) {
                (true, _) | (_, Reduction::None) => 0,
                (_, reduction) => {
                    let n: u64 = Dim::ALL
                        .into_iter()
                        .filter(|dim| dim.is_reduction())
                        .flat_map(|dim| spatial(nest, level, dim).map(move |d| existing(nest, dim, d)))
                        .product();
                    match reduction {
                        Reduction::Tree { stage } => i64::from(64 - (n - 1).leading_zeros()) * stage as i64,
                        Reduction::Chain { hop } => (n - 1) as i64 * hop as i64,
                        Reduction::None => 0,
                    }
                }
            };
            Stage {
                resource: if to_child {
                    timing.down[level][t]
                } else {
                    timing.up[level][t]
                },
                level,
                width: width.unwrap_or(Width::Unlimited),
                ratio: timing.ratio[level],
                latency: (if to_child { hop.0 } else { hop.1 }).ceil() as i64 + joined,
                onward: 0,
                passes,
                modify: None,
                own: false,
                meets: false,
            }
        };
        down.push(port(parent, false, false, fills[parent]));
        for (level, &fills) in fills.iter().enumerate().take(child).skip(parent) {
            down.push(network(level, true, fills));
        }
        if !streamed {
            down.push(port(child, true, true, 1.0));
        }
        if outputs {
            if !streamed {
                up.push(port(child, false, true, 1.0));
            }
            for level in (parent..child).rev() {
                up.push(network(level, false, drains[level]));
            }
            let modifying = 1.0 - visits.min(drains[parent]) / drains[parent];
            let mut last = port(parent, true, false, drains[parent]);
            if modifying > 0.0 {
                last.modify = Some((timing.read[parent][t], hardware.port(parent, tensor).0, modifying));
            }
            up.push(last);
        }
        down.finish();
        up.finish();
        let mut extent = DimMap::from_fn(|dim| nest.extent(child, dim));
        let mut full = 0.0;
        if streamed && tensor == Tensor::Weights {
            // Along a dimension with a single tile, that one is the last.
            extent = DimMap::from_fn(|dim| extent[dim].min(nest.bounds[dim]));
            let single = Dim::ALL
                .iter()
                .enumerate()
                .filter(|(_, dim)| extent[**dim] == nest.bounds[**dim]);
            let clipped = Clipped::of(&Dim::ALL, single.fold(0, |bits, (i, _)| bits | 1 << i));
            full = Burst::new(nest, keeps, hardware, tensor).weights(clipped, &mut self.scratch) as f64;
        } else if streamed && tensor == Tensor::Inputs {
            full = streamed_inputs(nest, keeps, hardware, child, &self.axes);
        }
        self.streams.push(Stream {
            tensor,
            parent,
            child,
            streamed,
            turns,
            slots: if streamed {
                2
            } else {
                (timing.slots[child][t] as usize).min(RING - 2)
            },
            fifo: if streamed { 0 } else { timing.fifo[child][t] },
            halo: !streamed && tensor == Tensor::Inputs && hardware.halo[child].contains(tensor),
            down,
            up,
            groups: (fills[parent], drains[parent]),
            modifying: drains[parent] - visits.min(drains[parent]),
            bits: match outputs {
                true => hardware.bits[t],
                false => (hardware.bits[t].1, hardware.bits[t].1),
            },
            full,
            extent,
            axes,
        });
    }

    /// Marks the stages at which transfers meet others that set out elsewhere.
    fn meetings(&mut self) {
        self.offsets.clear();
        let mut note = |path: &Path| {
            let mut offset = 0;
            for stage in path.stages() {
                if stage.width != Width::Unlimited {
                    match self.offsets.iter_mut().find(|o| o.0 == stage.resource) {
                        Some(known) => known.2 |= known.1 != offset,
                        None => self.offsets.push((stage.resource, offset, false)),
                    }
                }
                offset += stage.latency;
            }
        };
        for stream in &self.streams {
            note(&stream.down);
            note(&stream.up);
        }
        let offsets = &self.offsets;
        let mark = |path: &mut Path| {
            for stage in path.stages[..path.len].iter_mut().skip(1) {
                stage.meets = offsets.iter().any(|o| o.0 == stage.resource && o.2);
            }
        };
        for stream in &mut self.streams {
            mark(&mut stream.down);
            mark(&mut stream.up);
        }
    }

    /// The resources that transfers occupy.
    pub(super) fn resources(&self) -> impl Iterator<Item = usize> {
        self.offsets.iter().map(|o| o.0)
    }

    /// True if nothing passes `resource` but drains to the outermost level that have left their slots and that nobody
    /// waits for, once or more per iteration of loop `turn`.
    pub(super) fn piles_up(&self, resource: usize, turn: usize) -> bool {
        let on = |stages: &[Stage]| stages.iter().any(|s| s.resource == resource);
        // Fetches wait for the drains of the tile's previous visit, if that is not too long ago.
        let fetches_soon = |s: &Stream| {
            let own = &self.turns[..s.turns];
            own.iter().rposition(|t| t.dim.is_reduction()).is_some_and(|k| {
                let tiles: u64 = own[k + 1..].iter().map(|t| u64::from(t.trips)).product();
                tiles < RECALLED
            })
        };
        let waited_for = |s: &Stream| on(s.up.stages()) && (s.parent > 0 || fetches_soon(s));
        let held = |s: &Stream| on(s.down.stages()) || on(&s.up.stages()[..s.up.len.min(1)]);
        let within = |s: &Stream| s.turns > turn && on(s.up.stages());
        self.streams.iter().any(within) && !self.streams.iter().any(|s| held(s) || waited_for(s))
    }
}
