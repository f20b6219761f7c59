//! Streams of a mapping with their paths: how long each stage of a transfer takes, and who shares it.

use cyclonest_arch::{Reduction, Width};
use cyclonest_workloads::{Dim, DimMap, Problem, Tensor};

use super::super::burst::{Burst, Clipped};
use super::super::classes::Class;
use super::super::latency::{KINDS, Timing};
use super::super::nest::{Digit, MAX_LEVELS, Nest, Role, existing as strings, last_obeys};
use super::super::traffic::{FREE, Hardware, PLAIN};
use super::super::window::AffineAxis;
use super::cursor::{Cursor, Turn};

/// Read port, networks, write port.
pub(super) const MAX_STAGES: usize = MAX_LEVELS + 2;

/// One stage of a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stage {
    pub(super) resource: usize,
    pub(super) level: usize,
    pub(super) width: Width,
    /// Machine cycles per cycle of the resource.
    pub(super) ratio: f64,
    /// From entering the stage to entering the next one.
    pub(super) latency: i64,
    /// From entering the stage to the end of the path.
    pub(super) onward: i64,
    /// Transfers that pass one instance of the resource for each one that a child gets.
    pub(super) passes: f64,
    /// True for a port of the children: each member of a group has its own.
    pub(super) own: bool,
    /// True if transfers reach the resource in another order than they were requested in.
    pub(super) meets: bool,
}

/// The way of a transfer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    stages: [Stage; MAX_STAGES],
    len: usize,
}

const NO_STAGE: Stage = Stage {
    resource: 0,
    level: 0,
    width: Width::Unlimited,
    ratio: 1.0,
    latency: 0,
    onward: 0,
    passes: 1.0,
    own: false,
    meets: false,
};

impl Path {
    const EMPTY: Path = Path {
        stages: [NO_STAGE; MAX_STAGES],
        len: 0,
    };

    fn push(&mut self, stage: Stage) {
        self.stages[self.len] = stage;
        self.len += 1;
    }

    fn finish(&mut self) {
        let mut onward = 0;
        for stage in self.stages[..self.len].iter_mut().rev() {
            onward += stage.latency;
            stage.onward = onward;
        }
    }

    pub(super) fn stages(&self) -> &[Stage] {
        &self.stages[..self.len]
    }
}

impl Stage {
    /// Cycles that one transfer occupies the stage.
    #[inline]
    pub(super) fn cycles(&self, elements: u64, bits: u64) -> i64 {
        let cycles = self.width.cycles(elements, bits);
        if self.ratio == 1.0 {
            cycles as i64
        } else {
            (cycles as f64 * self.ratio).ceil() as i64
        }
    }
}

/// One tensor between two neighbouring levels that keep it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    pub(super) tensor: Tensor,
    pub(super) parent: usize,
    pub(super) child: usize,
    /// True if the child does not keep the tensor (rules 6 and 7).
    pub(super) streamed: bool,
    /// The loops that change the child's tile are the first so many.
    pub(super) turns: usize,
    pub(super) slots: usize,
    pub(super) fifo: u64,
    pub(super) halo: bool,
    /// Fills and fetches.
    pub(super) down: Path,
    /// Drains.
    pub(super) up: Path,
    /// Transfers per parent instance for each one that a child gets or sends.
    pub(super) groups: (f64, f64),
    /// Read-modify-writes at the parent among `groups.1`.
    pub(super) modifying: f64,
    /// Bits of an element: partial and final.
    bits: (u64, u64),
    /// Elements that are moved in a streamed step with full tiles.
    full: f64,
    /// Extents of the child's tile.
    extent: DimMap<u64>,
    /// Without padding along an axis that is spread over the instances: the first one is not like the others there.
    axes: [AffineAxis; 2],
}

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
    burst: Work,
    pub(super) depth: i64,
    offsets: Vec<(usize, i64, bool)>,
    scratch: [Vec<Class>; 5],
}

/// The inside of a PE.
#[derive(Debug, Clone, Copy)]
struct Work {
    /// Extents of a PE's tile, and temporal trips over them.
    extent: DimMap<u64>,
    trips: DimMap<u64>,
    interval: f64,
    /// Cycles per trip of the busiest port, without the reads of sums.
    ports: f64,
    /// The port that sums are read through: cycles per trip of everything on it, sums included, and cycles per sum.
    sums: (f64, f64),
}

impl Default for Work {
    fn default() -> Self {
        Work {
            extent: DimMap::ones(),
            trips: DimMap::ones(),
            interval: 1.0,
            ports: 0.0,
            sums: (0.0, 0.0),
        }
    }
}

/// Iterations of a spatial loop that have work.
fn existing(nest: &Nest, dim: Dim, digit: &Digit) -> u64 {
    digit.trips.min(nest.bounds[dim].div_ceil(digit.weight))
}

/// Settings of the spatial loops of `level` over `dim` that have work, on the mean over the temporal settings of the
/// loops outside `child`, or inside the PE level over the first ones. With `sized`, a clipped tile counts as the part
/// that is left of it.
fn members(nest: &Nest, child: usize, level: usize, dim: Dim, sized: bool) -> f64 {
    let loops = || spatial(nest, level, dim);
    if level >= child {
        return loops().map(|d| existing(nest, dim, d)).product::<u64>() as f64;
    }
    let trips: u64 = loops().map(|d| d.trips).product();
    if trips == 1 {
        return 1.0;
    }
    let digits = nest.outside(child, dim);
    let extent = nest.extent(child, dim);
    let clipped = if sized { extent - nest.last_extent(child, dim) } else { 0 };
    let sum = |role: &dyn Fn(&Digit) -> Role| {
        let last = if last_obeys(digits, role) { clipped } else { 0 };
        (strings(digits, role) * extent - last) as f64
    };
    let all = sum(&|d| {
        if d.spatial && d.level != level { Role::ZERO } else { Role::Free }
    });
    all / sum(&|d| if d.spatial { Role::ZERO } else { Role::Free })
}

/// Product of [`members`] over all dimensions, those over which `tensor` is shared left out.
fn fan(nest: &Nest, child: usize, level: usize, axes: &[AffineAxis; 2], tensor: Tensor, shares: bool, all: bool) -> f64 {
    let loops = |dim| spatial(nest, level, dim);
    let free = FREE[tensor as usize];
    let along = |dim: Dim| members(nest, child, level, dim, all || !free.contains(&dim));
    let mut product = 1.0;
    let inputs = tensor == Tensor::Inputs;
    for dim in Dim::ALL {
        let axis = matches!(dim, Dim::P | Dim::Q | Dim::R | Dim::S);
        if !(shares && (free.contains(&dim) || inputs && axis)) {
            product *= along(dim);
        }
    }
    if shares && inputs {
        for (axis, (p, r)) in axes.iter().zip([(Dim::P, Dim::R), (Dim::Q, Dim::S)]) {
            let full = |dim| loops(dim).map(|d| existing(nest, dim, d)).product::<u64>();
            let (windows, taps) = (full(p), full(r));
            let distinct = sharing(windows, taps, step(loops(p)), step(loops(r)), axis);
            product *= along(p) * along(r) * distinct as f64 / (windows * taps) as f64;
        }
    }
    product
}

fn spatial(nest: &Nest, level: usize, dim: Dim) -> impl Iterator<Item = &Digit> {
    let inside = nest.inside(level, dim).iter();
    inside.take_while(move |d| d.level == level).filter(|d| d.spatial)
}

fn step<'a>(loops: impl Iterator<Item = &'a Digit>) -> u64 {
    loops.map(|d| d.weight).min().unwrap_or(1)
}

/// Distinct values of stride·w·i + dilation·v·j for i < `windows` and j < `taps`: what is left of their product when
/// points that differ by the smallest translation between equal values are counted once.
fn sharing(windows: u64, taps: u64, window: u64, tap: u64, axis: &AffineAxis) -> u64 {
    if windows == 1 || taps == 1 {
        return windows * taps;
    }
    let (mut a, mut b) = (window * axis.stride, tap * axis.dilation);
    let (x, y) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    let (x, y) = (x / a, y / a);
    windows * taps - windows.saturating_sub(y) * taps.saturating_sub(x)
}

impl Stream {
    /// Bits of an element, of a partial sum if `partial`.
    pub(super) fn bits(&self, partial: bool) -> u64 {
        if partial { self.bits.0 } else { self.bits.1 }
    }

    /// Elements of the tile at `at`; for inputs without regard to padding if they are streamed.
    #[inline]
    pub(super) fn elements(&self, at: &DimMap<u64>, bounds: &DimMap<u64>) -> u64 {
        if self.streamed && self.tensor != Tensor::Outputs {
            let mut elements = self.full;
            for dim in Dim::ALL {
                let left = bounds[dim] - at[dim];
                if left < self.extent[dim] {
                    elements *= left as f64 / self.extent[dim] as f64;
                }
            }
            return elements.round() as u64;
        }
        let extent = |dim: Dim| self.extent[dim].min(bounds[dim] - at[dim]);
        let plain: u64 = PLAIN[self.tensor as usize].iter().map(|&dim| extent(dim)).product();
        if self.tensor != Tensor::Inputs {
            return plain;
        }
        let rows = self.axes[0].rows(at[Dim::P], extent(Dim::P), at[Dim::R], extent(Dim::R));
        let columns = self.axes[1].rows(at[Dim::Q], extent(Dim::Q), at[Dim::S], extent(Dim::S));
        plain * rows.count * columns.count
    }

    /// Elements of the tile of inputs at `to` that are not part of the one at `from`.
    pub(super) fn fresh(
        &self,
        from: &DimMap<u64>,
        to: &DimMap<u64>,
        bounds: &DimMap<u64>,
    ) -> u64 {
        let plain = PLAIN[Tensor::Inputs as usize];
        let all = self.elements(to, bounds);
        if plain.iter().any(|&dim| from[dim] != to[dim]) {
            return all;
        }
        let extent = |at: &DimMap<u64>, dim: Dim| self.extent[dim].min(bounds[dim] - at[dim]);
        let mut common: u64 = plain.iter().map(|&dim| extent(to, dim)).product();
        for (axis, (p, r)) in self.axes.iter().zip([(Dim::P, Dim::R), (Dim::Q, Dim::S)]) {
            let rows = |at: &DimMap<u64>| axis.rows(at[p], extent(at, p), at[r], extent(at, r));
            common *= axis.common(&rows(from), &rows(to));
        }
        all - common
    }
}

impl Plan {
    /// Reads a mapping.
    pub(super) fn set(&mut self, nest: &Nest, problem: &Problem, keeps: &[[bool; 3]], hardware: &Hardware, timing: &Timing) {
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
            several |= Dim::ALL.iter().any(|&dim| spatial(nest, level, dim).any(|d| existing(nest, dim, d) > 1));
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
        self.burst = burst(nest, keeps, hardware, timing, &self.axes);
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
                    dims.map(|dim| members(nest, child, level, dim, !reduction)).product::<f64>()
                };
                let tiles = along(false);
                (tiles, tiles * if hardware.reduces[level] { 1.0 } else { along(true) })
            } else {
                (fan(nest, child, level, &self.axes, tensor, shares(level), streamed), 1.0)
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
                resource: if write { timing.write[level][t] } else { timing.read[level][t] },
                level,
                width: if write { written } else { read },
                ratio: 1.0,
                latency: if write { 0 } else { timing.latency[level][t] as i64 },
                onward: 0,
                passes,
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
                resource: if to_child { timing.down[level][t] } else { timing.up[level][t] },
                level,
                width: width.unwrap_or(Width::Unlimited),
                ratio: timing.ratio[level],
                latency: (if to_child { hop.0 } else { hop.1 }).ceil() as i64 + joined,
                onward: 0,
                passes,
                own: false,
                meets: false,
            }
        };
        down.push(port(parent, false, false, fills[parent]));
        for level in parent..child {
            down.push(network(level, true, fills[level]));
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
            up.push(port(parent, true, false, drains[parent]));
        }
        down.finish();
        up.finish();
        let mut extent = DimMap::from_fn(|dim| nest.extent(child, dim));
        let mut full = 0.0;
        if streamed && tensor == Tensor::Weights {
            // Along a dimension with a single tile, that one is the last.
            extent = DimMap::from_fn(|dim| extent[dim].min(nest.bounds[dim]));
            let single = Dim::ALL.iter().enumerate().filter(|(_, dim)| extent[**dim] == nest.bounds[**dim]);
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
            slots: if streamed { 2 } else { timing.slots[child][t] as usize },
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

    /// True if nothing passes `resource` but drains that have left their first stage.
    pub(super) fn drains_only(&self, resource: usize) -> bool {
        let on = |stages: &[Stage]| stages.iter().any(|s| s.resource == resource);
        let held = |s: &Stream| on(s.down.stages()) || on(&s.up.stages()[..s.up.len.min(1)]);
        !self.streams.iter().any(held)
    }

    /// Length of the burst at `cursor` (rule 14), of whose sums `opening` start at zero.
    #[inline]
    pub(super) fn burst(&self, cursor: &Cursor, opening: u64) -> i64 {
        let mut trips = 1.0;
        for dim in Dim::ALL {
            let (extent, full) = (self.burst.extent[dim], self.burst.trips[dim]);
            let left = self.bounds[dim] - cursor.at[dim];
            if left < extent {
                // The lanes stand inside the temporal loops: the last trip may use some of them only.
                trips *= left.div_ceil(extent / full) as f64;
            } else {
                trips *= full as f64;
            }
        }
        let sums = self.burst.sums.0 * trips - self.burst.sums.1 * opening as f64;
        let longest = (trips * self.burst.interval).max(trips * self.burst.ports).max(sums);
        longest.ceil() as i64
    }
}

/// Reads of `tensor` by the lanes or by the level `next` per temporal trip inside a PE: one for each that differs.
fn distinct(nest: &Nest, hardware: &Hardware, axes: &[AffineAxis; 2], tensor: Tensor, levels: std::ops::Range<usize>) -> f64 {
    let innermost = nest.levels() - 1;
    levels
        .map(|level| {
            if tensor == Tensor::Outputs {
                let joins = level == innermost || hardware.reduces[level];
                let along = |dim| members(nest, hardware.event, level, dim, false);
                let kept = |dim: &Dim| !(joins && dim.is_reduction());
                return Dim::ALL.into_iter().filter(kept).map(along).product();
            }
            let shares = level == innermost || hardware.multicast[level].contains(tensor);
            fan(nest, hardware.event, level, axes, tensor, shares, false)
        })
        .product()
}

/// Inputs that stream into a PE that bypasses them, in a step with full tiles (rule 6).
fn streamed_inputs(
    nest: &Nest,
    keeps: &[[bool; 3]],
    hardware: &Hardware,
    event: usize,
    axes: &[AffineAxis; 2],
) -> f64 {
    let levels = nest.levels();
    let tensor = Tensor::Inputs;
    let t = tensor as usize;
    let next = (event + 1..levels).find(|&level| keeps[level][t]).unwrap_or(levels);
    let mut elements = distinct(nest, hardware, axes, tensor, event..next);
    // Loops inside the innermost one that changes the tile of `next` do not fill it again.
    let mut innermost = -1;
    let temporal = |dim: Dim| {
        let outside = nest.outside(next, dim).len();
        let from = nest.outside(event, dim).len();
        nest.inside(0, dim)[from..outside].iter().filter(|d| !d.spatial)
    };
    for dim in Dim::ALL {
        if !FREE[t].contains(&dim) {
            innermost = temporal(dim).map(|d| d.position).fold(innermost, i32::max);
        }
    }
    for dim in Dim::ALL {
        let free = FREE[t].contains(&dim);
        for digit in temporal(dim) {
            if !free || next == levels || digit.position < innermost {
                elements *= existing(nest, dim, digit) as f64;
            }
        }
    }
    // The tile of `next`, or what one lane takes.
    let extent = |dim: Dim| if next < levels { nest.extent(next, dim) } else { 1 };
    for &dim in PLAIN[t] {
        elements *= extent(dim) as f64;
    }
    for (axis, (p, r)) in axes.iter().zip([(Dim::P, Dim::R), (Dim::Q, Dim::S)]) {
        let unpadded = AffineAxis {
            real_from: 0,
            real_to: u64::MAX,
            ..*axis
        };
        elements *= unpadded.rows(0, extent(p), 0, extent(r)).count as f64;
        elements *= real_share(axis, (nest.bounds[p], nest.bounds[r]));
    }
    elements
}

/// The share of all pairs of a window and a tap that touch a real row.
fn real_share(axis: &AffineAxis, bounds: (u64, u64)) -> f64 {
    let mut real = 0;
    for tap in 0..bounds.1 {
        let offset = tap * axis.dilation;
        let from = axis.real_from.saturating_sub(offset).div_ceil(axis.stride).min(bounds.0);
        let to = axis.real_to.saturating_sub(offset).div_ceil(axis.stride).min(bounds.0);
        real += to.saturating_sub(from);
    }
    real as f64 / (bounds.0 * bounds.1) as f64
}

/// What limits a burst (rule 14).
fn burst(nest: &Nest, keeps: &[[bool; 3]], hardware: &Hardware, timing: &Timing, axes: &[AffineAxis; 2]) -> Work {
    let (event, levels) = (hardware.event, nest.levels());
    let mut burst = Work {
        extent: DimMap::from_fn(|dim| nest.extent(event, dim)),
        trips: DimMap::from_fn(|dim| {
            let inside = nest.inside(event, dim).iter();
            inside.filter(|d| !d.spatial).map(|d| d.trips).product()
        }),
        interval: timing.interval,
        ..Work::default()
    };
    let _ = axes;
    for level in event..levels {
        // Cycles per trip, by port.
        let mut ports = [0.0; KINDS];
        let mut sums = None;
        for tensor in Tensor::ALL {
            let t = tensor as usize;
            if !keeps[level][t] {
                continue;
            }
            let last = !(level + 1..levels).any(|inner| keeps[inner][t]);
            if !last {
                // What moves between levels of a PE is at most what the lanes take.
                continue;
            }
            let (read, write) = hardware.port(level, tensor);
            let per_trip = distinct(nest, hardware, axes, tensor, level..levels);
            let outputs = tensor == Tensor::Outputs;
            let bits = if outputs { hardware.bits[t].0 } else { hardware.bits[t].1 };
            let cycles = |width: Width| per_trip * per_element(width, bits);
            ports[timing.read[level][t] % KINDS] += cycles(read);
            if outputs {
                ports[timing.write[level][t] % KINDS] += cycles(write);
                if timing.read[level][t] != timing.write[level][t] {
                    sums = Some((timing.read[level][t] % KINDS, per_element(read, bits)));
                }
            }
        }
        for (kind, &cycles) in ports.iter().enumerate() {
            match sums {
                Some((port, per_sum)) if port == kind => burst.sums = (cycles, per_sum),
                _ => burst.ports = burst.ports.max(cycles),
            }
        }
    }
    burst
}

/// Cycles per element, as a fraction.
fn per_element(width: Width, bits: u64) -> f64 {
    match width {
        Width::Bits(w) => bits as f64 / w as f64,
        Width::Bytes(w) => bits as f64 / (8 * w) as f64,
        Width::Words(w) => 1.0 / w as f64,
        Width::Unlimited => 0.0,
    }
}
