//! `simulate --trace`: what happened when, as a trace that Perfetto and chrome://tracing show.
//!
//! Events are written as they come and nothing of them is kept, so that memory does not grow with the run. The format is
//! described in `docs/output.md`.

mod geometry;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use cyclonest_arch::{Accelerator, Mapping, Ports};
use cyclonest_sim::{
    Buffer, Observer, Outcome, Skipped, StageInfo, StageKind, StallReason, TransferInfo, TransferKind,
};
use cyclonest_workloads::Tensor;
use serde_json::{Value, json};

use crate::report::reason_name;
use geometry::{Geometry, Link};

/// Members of a transfer that are named; of more, the number stands in the event.
const NAMED: usize = 16;

/// Process of the marks of what was skipped.
const MARKS: u64 = 0;

/// The cycles that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl std::str::FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(':');
        let number = |text: &str| text.parse::<u64>().ok();
        match parts.map(|(from, to)| (number(from), number(to))) {
            Some((Some(from), Some(to))) if from < to => Ok(Window { from, to }),
            Some((Some(from), Some(to))) => Err(format!("{from} is not before {to}")),
            _ => Err("expected FROM:TO in cycles, as 1000:2000".to_string()),
        }
    }
}

/// A transfer under way.
#[derive(Debug)]
struct Moving {
    number: u64,
    kind: TransferKind,
    tensor: Tensor,
    tile: String,
    level: usize,
    elements: u64,
    bits: u64,
    members: Vec<u32>,
}

/// Writes a trace while a layer is simulated.
#[derive(Debug)]
pub(crate) struct Trace<'a, W: Write> {
    out: W,
    /// The first failure to write; nothing is written after it.
    failure: Option<io::Error>,
    arch: &'a Accelerator,
    geometry: Geometry,
    window: Option<Window>,
    first: bool,
    transfers: u64,
    moving: BTreeMap<u64, Moving>,
    /// Tracks that have their names: process, thread.
    named: BTreeMap<(u64, u64), ()>,
    /// Computing cycles per PE, of what was simulated.
    computing: BTreeMap<u32, u64>,
    /// Bits per level, tensor, direction and link, of what was simulated.
    traffic: BTreeMap<(usize, Tensor, bool, Link), u64>,
    skipped_cycles: u64,
    /// Longest time from the arrival of a transfer at a port or network until the next one was let in.
    longest_stage: u64,
}

impl<'a, W: Write> Trace<'a, W> {
    /// Begins a trace.
    pub(crate) fn begin(mut out: W, arch: &'a Accelerator, mapping: &Mapping, window: Option<Window>) -> Self {
        let failure = out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n").err();
        let mut trace = Trace {
            out,
            failure,
            arch,
            geometry: Geometry::new(arch, mapping),
            window,
            first: true,
            transfers: 0,
            moving: BTreeMap::new(),
            named: BTreeMap::new(),
            computing: BTreeMap::new(),
            traffic: BTreeMap::new(),
            skipped_cycles: 0,
            longest_stage: 0,
        };
        for (level, data) in arch.levels.iter().enumerate().take(arch.event_level() + 1) {
            trace.process(level_process(level), &data.name);
            if level < arch.event_level() {
                trace.process(network_process(level), &format!("network below {}", data.name));
            }
        }
        trace.process(pe_process(arch), "PEs: computing and waiting");
        trace
    }

    /// Ends the trace with what the whole run measured. `about` describes the run.
    ///
    /// # Errors
    /// The first failure to write.
    pub(crate) fn end(mut self, about: Value, outcome: &Outcome) -> io::Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let pe_level = self.arch.event_level();
        let mut pes = Vec::new();
        let mut mapped = BTreeSet::new();
        for pe in 0..self.geometry.instances(pe_level) {
            let (x, y) = self.geometry.place(pe_level, pe);
            let computing = self.computing.get(&pe).copied().unwrap_or(0);
            mapped.insert((x, y));
            pes.push(json!({"pe": pe, "x": x, "y": y, "computing_cycles": computing}));
        }
        // PEs that the mapping leaves without work have a place and no number.
        let (columns, rows) = self.geometry.extent(pe_level);
        let places = (0..rows).flat_map(|y| (0..columns).map(move |x| (x, y)));
        let idle = places.filter(|place| !mapped.contains(place));
        pes.extend(idle.map(|(x, y)| json!({"pe": null, "x": x, "y": y, "computing_cycles": 0})));
        let links: Vec<Value> = self
            .traffic
            .iter()
            .map(|((level, tensor, down, (from, to)), bits)| {
                // Towards the parent, a link is passed the other way.
                let (from, to) = if *down { (from, to) } else { (to, from) };
                json!({
                    "network_below": self.arch.levels[*level].name, "tensor": tensor.to_string(),
                    "from_x": from.0, "from_y": from.1, "to_x": to.0, "to_y": to.1, "bits": bits,
                })
            })
            .collect();
        let other = json!({
            "about": about,
            "time": "1 us of the trace is 1 cycle",
            "window": self.window.map(|w| json!([w.from, w.to])),
            "cycles": outcome.cycles,
            "skipped_cycles": self.skipped_cycles,
            "pes": pes,
            "links": links,
        });
        write!(self.out, "\n],\n\"otherData\":{other}}}\n")?;
        self.out.flush()
    }

    fn event(&mut self, event: &Value) {
        if self.failure.is_some() {
            return;
        }
        let comma = if std::mem::take(&mut self.first) { "" } else { ",\n" };
        self.failure = write!(self.out, "{comma}{event}").err();
    }

    fn process(&mut self, pid: u64, name: &str) {
        self.event(&json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}));
        self.event(&json!({"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}));
    }

    /// Names a track when it is first used.
    fn track(&mut self, pid: u64, tid: u64, name: impl FnOnce() -> String) {
        if self.named.insert((pid, tid), ()).is_none() {
            self.event(&json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name()}}));
        }
    }

    /// True if the interval touches the window.
    fn shown(&self, from: u64, to: u64) -> bool {
        self.window.is_none_or(|w| from < w.to && to.max(from + 1) > w.from)
    }

    fn pe(&mut self, pe: u32, from: u64, to: u64, name: &str, what: &str) {
        let pid = pe_process(self.arch);
        let (x, y) = self.geometry.place(self.arch.event_level(), pe);
        self.track(pid, u64::from(pe), || format!("PE {pe} at ({x}, {y})"));
        self.event(&json!({
            "ph": "X", "name": name, "cat": what, "pid": pid, "tid": pe, "ts": from, "dur": to - from,
        }));
    }
}

/// Processes of the trace: a level and the network below it stand together.
fn level_process(level: usize) -> u64 {
    1 + 2 * level as u64
}

fn network_process(level: usize) -> u64 {
    2 + 2 * level as u64
}

fn pe_process(arch: &Accelerator) -> u64 {
    2 + 2 * arch.event_level() as u64
}

/// Tracks of an instance: what share a port or channel share a track.
const TRACKS: u64 = 8;

impl<W: Write> Observer for Trace<'_, W> {
    fn requested(&mut self, _: u64, t: &TransferInfo<'_>) {
        let moving = Moving {
            number: self.transfers,
            kind: t.kind,
            tensor: t.tensor,
            tile: self.geometry.tile(t.tensor, t.level, t.step),
            level: t.level,
            elements: t.elements,
            bits: t.bits,
            members: t.members.to_vec(),
        };
        self.transfers += 1;
        self.moving.insert(t.transfer, moving);
    }

    fn stage(&mut self, transfer: u64, stage: &StageInfo<'_>) {
        self.longest_stage = self.longest_stage.max(stage.end - stage.reached);
        let Some(moving) = self.moving.get(&transfer) else {
            return;
        };
        let network = matches!(stage.kind, StageKind::Down | StageKind::Up);
        if network {
            let down = stage.kind == StageKind::Down;
            let bits = moving.elements * moving.bits;
            for link in self
                .geometry
                .links(stage.level, moving.level, &moving.members)
                .into_values()
                .flatten()
            {
                *self
                    .traffic
                    .entry((stage.level, moving.tensor, down, link))
                    .or_default() += bits;
            }
        }
        if !self.shown(stage.start, stage.end) {
            return;
        }
        let moving = &self.moving[&transfer];
        let kind = match moving.kind {
            TransferKind::Fill => "fill",
            TransferKind::Fetch => "fetch",
            TransferKind::Drain => "drain",
        };
        let name = match moving.tile.is_empty() {
            true => format!("{} {kind}", moving.tensor),
            false => format!("{} {kind} {}", moving.tensor, moving.tile),
        };
        let mut args = json!({
            "transfer": moving.number, "kind": kind, "tensor": moving.tensor.to_string(), "tile": moving.tile,
            "elements": moving.elements, "bits": moving.elements * moving.bits,
            "children": moving.members.len(), "waited_cycles": stage.start - stage.reached,
        });
        if moving.members.len() <= NAMED {
            args["to"] = json!(moving.members);
        }
        let tensor = moving.tensor;
        let level = &self.arch.levels[stage.level];
        let (lane, what) = lane(self.arch, stage);
        let level_name = level.name.clone();
        let pid = if network {
            network_process(stage.level)
        } else {
            level_process(stage.level)
        };
        for &instance in stage.instances {
            let tid = u64::from(instance) * TRACKS + lane;
            self.track(pid, tid, || format!("{level_name} {instance} {what}"));
            self.event(&json!({
                "ph": "X", "name": name, "cat": tensor.to_string(), "pid": pid, "tid": tid,
                "ts": stage.start, "dur": stage.end - stage.start, "args": args,
            }));
        }
    }

    fn arrived(&mut self, _: u64, transfer: u64) {
        self.moving.remove(&transfer);
    }

    fn burst(&mut self, pe: u32, from: u64, to: u64) {
        *self.computing.entry(pe).or_default() += to - from;
        if self.shown(from, to) {
            self.pe(pe, from, to, "compute", "compute");
        }
    }

    fn stalled(&mut self, pe: u32, from: u64, to: u64, reason: StallReason) {
        if self.shown(from, to) {
            let name = reason_name(reason, self.arch);
            self.pe(pe, from, to, &name, "stall");
        }
    }

    fn occupancy(&mut self, at: u64, buffer: Buffer, slots: u64) {
        if self.shown(at, at) {
            let level = &self.arch.levels[buffer.level];
            let capacity = match self.geometry.keeps(buffer.level, buffer.tensor) {
                true => level.bank(buffer.tensor).map_or(1, |bank| bank.slots_of(buffer.tensor)),
                // Rules 6 and 7: what bypasses a level passes an implicit store.
                false => 2,
            };
            let name = format!(
                "{} {} {} slots of {capacity}",
                level.name, buffer.instance, buffer.tensor
            );
            let pid = level_process(buffer.level);
            self.event(&json!({"ph": "C", "name": name, "pid": pid, "ts": at, "args": {"taken": slots}}));
        }
    }

    fn skipped(&mut self, stretch: Skipped) {
        self.skipped_cycles += stretch.to - stretch.from;
        if self.shown(stretch.from, stretch.to) {
            if self.named.insert((MARKS, 0), ()).is_none() {
                self.process(MARKS, "skipped");
            }
            let name = format!("repeats {} times", stretch.times);
            self.event(&json!({
                "ph": "X", "name": name, "cat": "skipped", "pid": MARKS, "tid": 0,
                "ts": stretch.from, "dur": stretch.to - stretch.from,
                "args": {"like_cycle": stretch.like, "period_cycles": stretch.period, "times": stretch.times},
            }));
        }
    }

    fn skip_until(&self, now: u64) -> u64 {
        match self.window {
            // A stage is told once, when its transfer reaches it: none of those in the window may begin in what is
            // skipped. What is skipped repeats what was told, so no stage in it is longer.
            Some(window) if now < window.to => window.from.saturating_sub(self.longest_stage),
            _ => u64::MAX,
        }
    }
}

/// Which of an instance's tracks a stage is on, and what the track is called.
fn lane(arch: &Accelerator, stage: &StageInfo<'_>) -> (u64, String) {
    let tensor = stage.tensor;
    let level = &arch.levels[stage.level];
    if matches!(stage.kind, StageKind::Down | StageKind::Up) {
        let down = stage.kind == StageKind::Down;
        let bus = level
            .below
            .as_ref()
            .is_some_and(|n| matches!(n.kind, cyclonest_arch::NetworkKind::Bus(_)));
        let own = arch.channels(stage.level, down).is_some_and(|c| c.per_tensor());
        let direction = match (bus, down) {
            (true, _) => "bus",
            (false, true) => "down",
            (false, false) => "up",
        };
        let base = if bus || down { 0 } else { 4 };
        return match own {
            true => (base + 1 + tensor as u64, format!("{direction} {tensor}")),
            false => (base, direction.to_string()),
        };
    }
    let bank = level.bank_index(tensor).unwrap_or(0);
    let (own, shared) = match level.bank(tensor).map(|bank| bank.ports) {
        Some(Ports::PerTensor(_)) => (true, false),
        Some(Ports::Shared { .. }) => (false, true),
        _ => (false, false),
    };
    // A port is numbered by the first tensor that uses it: a tensor is in one bank.
    let held = |bank: &cyclonest_arch::Bank| bank.holds.iter().map(|t| t as u64).min();
    let slot = match own {
        true => tensor as u64,
        false => level.bank(tensor).and_then(held).unwrap_or(0),
    };
    let (base, direction) = match (shared, stage.kind == StageKind::Read) {
        (true, _) => (0, "port"),
        (false, true) => (0, "read port"),
        (false, false) => (4, "write port"),
    };
    match own {
        true => (base + slot, format!("{tensor} {direction}")),
        false => (base + slot, format!("bank {bank} {direction}")),
    }
}
