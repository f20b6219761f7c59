//! The cycle loop: in every cycle completions, one sweep, burst starts (rule 13).

mod blame;
mod sweep;

use std::collections::BTreeMap;

use cyclonest_arch::Counts;
use cyclonest_workloads::Tensor;

use super::machine::{Machine, Stage};
use super::nest::Nest;
use super::plan::{Plan, ResidencyId};
use super::tally::{add, at};
use super::values::{Contents, Values};
use super::{Options, OracleError, OracleOutcome, Stall};

/// State of a residency.
#[derive(Debug, Clone, Default)]
struct State {
    /// Requested (a fill), opened or its fetch requested (outputs).
    requested: bool,
    /// Complete and in its slot.
    available: bool,
    /// Complete, but still in the FIFO.
    in_fifo: bool,
    arrived: bool,
    /// Transfers to children that have left the read port, or drains of children that have arrived.
    children: usize,
    /// All that adds to it is in.
    done: bool,
    freed: bool,
}

#[derive(Debug, Default)]
struct StreamState {
    next: usize,
    used: u64,
    /// Residencies that wait in front of the slots.
    fifo: Vec<ResidencyId>,
}

#[derive(Debug)]
struct Transfer {
    group: usize,
    stages: Vec<Stage>,
    /// Stages reached so far.
    reached: usize,
    /// Start of the stage reached last.
    start: u64,
    /// When the head reaches the next stage.
    head: u64,
    /// Order in which heads were sent on.
    order: u64,
    /// When the last word leaves the first stage.
    left: u64,
    left_done: bool,
    /// Latest arrival of the last word that the stages so far allow.
    tail: u64,
    arrived: bool,
    payload: Contents,
}

#[derive(Debug, Default)]
struct PeState {
    /// Step that is next or running.
    step: usize,
    /// End of the running burst.
    until: Option<u64>,
    /// End of the last burst.
    ended: u64,
    busy: u64,
    /// Stalled after the first burst and before the last.
    between: u64,
    stalls: BTreeMap<Stall, u64>,
}

struct Run<'n, 'a> {
    nest: &'n Nest<'a>,
    plan: &'n Plan,
    now: u64,
    machine: Machine,
    states: Vec<State>,
    streams: Vec<StreamState>,
    transfers: Vec<Transfer>,
    /// Transfer of each group, once requested.
    requested: Vec<Option<usize>>,
    /// Per visit: drains arrived, and whether one has reached the parent's write port.
    visits: Vec<(usize, bool)>,
    pes: Vec<PeState>,
    /// Outputs that are done at a cycle.
    finishing: Vec<(u64, ResidencyId)>,
    /// Slots that the sweep freed: they count from the next cycle on.
    freeing: Vec<ResidencyId>,
    counts: Counts,
    /// Elements of outputs that start at zero at E.
    at_zero: u64,
    values: Values,
    orders: u64,
    end: u64,
    options: Options,
    /// What happened, one line each.
    log: Vec<String>,
}

pub(super) fn run(nest: &Nest<'_>, plan: &Plan, options: Options) -> Result<OracleOutcome, OracleError> {
    let mut run = Run {
        nest,
        plan,
        now: 0,
        machine: Machine::default(),
        states: vec![State::default(); plan.residencies.len()],
        streams: plan.streams.iter().map(|_| StreamState::default()).collect(),
        transfers: Vec::new(),
        requested: vec![None; plan.groups.len()],
        visits: vec![(0, false); plan.visits.len()],
        pes: plan.pes.iter().map(|_| PeState::default()).collect(),
        finishing: Vec::new(),
        freeing: Vec::new(),
        counts: Counts::new(nest.arch),
        at_zero: 0,
        values: Values::new(plan, options.seed),
        orders: 0,
        end: 0,
        options,
        log: Vec::new(),
    };
    loop {
        run.machine.begin_cycle(run.nest, run.now);
        let mut moved = run.completions();
        if run.finished() {
            break;
        }
        moved |= run.sweep();
        moved |= run.bursts();
        if !moved && !run.pending() {
            return Err(OracleError::Deadlock {
                cycle: run.now,
                chain: run.chain(),
            });
        }
        run.stalls();
        run.now += 1;
    }
    Ok(run.outcome())
}

impl Run<'_, '_> {
    // ---- (a) completions ----

    fn completions(&mut self) -> bool {
        let now = self.now;
        let mut moved = false;
        for id in std::mem::take(&mut self.freeing) {
            self.free(id);
            moved = true;
        }
        let mut heads: Vec<usize> = (0..self.transfers.len())
            .filter(|&i| self.transfers[i].head == now && self.transfers[i].reached < self.transfers[i].stages.len())
            .collect();
        heads.sort_by_key(|&i| self.transfers[i].order);
        for i in heads {
            self.reach(i);
            moved = true;
        }
        for i in 0..self.transfers.len() {
            if !self.transfers[i].left_done && self.transfers[i].left <= now {
                self.transfers[i].left_done = true;
                self.leave(i);
                moved = true;
            }
        }
        for i in 0..self.transfers.len() {
            let t = &self.transfers[i];
            if !t.arrived && t.reached == t.stages.len() && t.tail <= now {
                self.arrive(i);
                moved = true;
            }
        }
        for pe in 0..self.pes.len() {
            if self.pes[pe].until == Some(now) {
                self.end_burst(pe);
                moved = true;
            }
        }
        let (due, later) = std::mem::take(&mut self.finishing)
            .into_iter()
            .partition(|f| f.0 <= now);
        self.finishing = later;
        let due: Vec<(u64, ResidencyId)> = due;
        for (_, id) in due {
            self.states[id].done = true;
            moved = true;
        }
        moved
    }

    /// The head of a transfer reaches its next stage and reserves it.
    fn reach(&mut self, i: usize) {
        let t = &mut self.transfers[i];
        let group = &self.plan.groups[t.group];
        let last = t.reached + 1 == t.stages.len();
        if group.drain && last {
            let first = &self.plan.residencies[group.members[0]];
            let visit = &mut self.visits[first.visit];
            let is_first = !std::mem::replace(&mut visit.1, true);
            let (p, o) = (group.to, Tensor::Outputs);
            if !is_first {
                at(&mut self.counts, p, o).reads += group.size;
                at(&mut self.counts, p, o).read_modify_writes += group.size;
                let instance = &first.instance[..self.nest.spatial_before(p)];
                let size = (group.size, group.size * self.nest.arch.bits(o, !group.finals));
                let read = self.machine.port(self.nest, (p, instance), o, false, size);
                t.stages[t.reached].resources.extend(read);
            }
            self.values.write(first.parent, &t.payload, is_first);
        }
        let t = &mut self.transfers[i];
        let stage = &t.stages[t.reached];
        let (start, occupied) = self.machine.reserve(stage, self.now);
        let remaining: u64 = t.stages[t.reached..].iter().map(|s| s.latency).sum();
        t.tail = t.tail.max(start + occupied + remaining);
        t.start = start;
        t.head = start + stage.latency;
        if t.reached == 0 {
            t.left = start + occupied;
        }
        t.reached += 1;
        self.orders += 1;
        t.order = self.orders;
    }

    /// The last word of a transfer has left its first stage.
    fn leave(&mut self, i: usize) {
        let group = &self.plan.groups[self.transfers[i].group];
        if group.drain {
            for &m in &group.members {
                self.free(m);
            }
        } else if group.tensor != Tensor::Outputs
            && let Some(parent) = self.plan.residencies[group.members[0]].parent
        {
            self.states[parent].children += group.members.len();
            if self.states[parent].children == self.plan.residencies[parent].children.len() {
                self.free(parent);
            }
        }
    }

    fn arrive(&mut self, i: usize) {
        let t = &mut self.transfers[i];
        t.arrived = true;
        let payload = std::mem::take(&mut t.payload);
        let group = &self.plan.groups[t.group];
        if group.drain {
            let visit = self.plan.residencies[group.members[0]].visit;
            self.visits[visit].0 += 1;
            match self.plan.residencies[group.members[0]].parent {
                None => self.end = self.now,
                Some(parent) => {
                    self.states[parent].children += 1;
                    let expected: usize = self
                        .plan
                        .visits
                        .iter()
                        .filter(|v| self.plan.residencies[v.members[0]].parent == Some(parent))
                        .map(|v| v.drains.len())
                        .sum();
                    self.states[parent].done = self.states[parent].children == expected;
                }
            }
            return;
        }
        for &m in &group.members {
            self.values.fill(self.plan, m, &payload);
            self.states[m].arrived = true;
            self.states[m].available = !self.states[m].in_fifo;
        }
    }

    /// A slot is freed; what waits in the FIFO moves in, in no time (rule 9).
    fn free(&mut self, id: ResidencyId) {
        if std::mem::replace(&mut self.states[id].freed, true) {
            return;
        }
        let r = &self.plan.residencies[id];
        let next = self.plan.streams[r.stream].residencies.get(r.position + 1);
        let next_arrived = next.is_some_and(|&n| self.states[n].arrived);
        if r.tensor != Tensor::Outputs {
            self.values.release(self.plan, id, next_arrived);
        }
        let stream = &mut self.streams[r.stream];
        if stream.fifo.is_empty() {
            stream.used -= 1;
        } else {
            let moves = stream.fifo.remove(0);
            self.states[moves].in_fifo = false;
            self.states[moves].available = self.states[moves].arrived;
        }
    }

    fn end_burst(&mut self, pe: usize) {
        let plan = self.plan;
        let state = &mut self.pes[pe];
        let step = &plan.pes[pe].steps[state.step];
        state.until = None;
        state.ended = self.now;
        state.step += 1;
        let next = state.step;
        for id in step.uses.0.into_iter().flatten() {
            let r = &plan.residencies[id];
            // An empty tile needs no operand: the last step that uses it counts.
            let rest = &plan.pes[pe].steps[next..];
            if rest.iter().any(|s| s.uses[r.tensor] == Some(id)) {
                continue;
            }
            if r.tensor == Tensor::Outputs {
                self.finishing.push((self.now + self.nest.arch.compute.depth, id));
            } else {
                self.free(id);
            }
        }
    }

    // ---- (c) burst starts ----

    fn bursts(&mut self) -> bool {
        let mut moved = false;
        for pe in 0..self.pes.len() {
            let (instance, steps) = (&self.plan.pes[pe].instance, &self.plan.pes[pe].steps);
            let Some(step) = steps.get(self.pes[pe].step) else {
                continue;
            };
            if self.pes[pe].until.is_some() || self.missing(pe).is_some() {
                continue;
            }
            self.log.push(format!(
                "{} burst {:?} {:?} to {}",
                self.now,
                instance,
                step.step,
                self.now + step.burst.cycles
            ));
            self.pes[pe].until = Some(self.now + step.burst.cycles);
            add(&mut self.counts, &step.burst.counts);
            self.values.compute(self.nest, instance, &step.step, step.uses.0);
            moved = true;
        }
        moved
    }

    // ---- the end ----

    fn finished(&self) -> bool {
        let drained = self
            .plan
            .groups
            .iter()
            .zip(&self.requested)
            .all(|(group, requested)| !group.drain || requested.is_some_and(|t| self.transfers[t].arrived));
        let computed = self
            .pes
            .iter()
            .zip(&self.plan.pes)
            .all(|(state, pe)| state.step == pe.steps.len());
        drained && computed
    }

    /// Something will happen in a later cycle without a sweep.
    fn pending(&self) -> bool {
        !self.finishing.is_empty()
            || !self.freeing.is_empty()
            || self.pes.iter().any(|p| p.until.is_some())
            || self.transfers.iter().any(|t| !t.arrived || !t.left_done)
    }

    fn outcome(mut self) -> OracleOutcome {
        let cycles = self.end;
        let pes = self.nest.arch.instances(self.nest.event);
        let mut stalls: BTreeMap<Stall, u64> = BTreeMap::new();
        for pe in &self.pes {
            for (&reason, &n) in &pe.stalls {
                *stalls.entry(reason).or_default() += n;
            }
        }
        let unused = (pes - self.pes.len() as u64) * cycles;
        if unused > 0 {
            *stalls.entry(Stall::Unmapped).or_default() += unused;
        }
        at(&mut self.counts, self.nest.event, Tensor::Outputs).reads -= self.at_zero;
        let verdict = self.values.verdict(self.nest);
        let depth = self.nest.arch.compute.depth;
        let bursts = self
            .plan
            .pes
            .iter()
            .flat_map(|pe| &pe.steps)
            .map(|s| s.burst.cycles + depth)
            .sum::<u64>();
        let hops = self
            .transfers
            .iter()
            .flat_map(|t| &t.stages)
            .map(|s| s.latency)
            .sum::<u64>();
        let sum_of_parts = bursts + hops + self.machine.busy.iter().sum::<u64>();
        OracleOutcome {
            residencies: self.plan.streams.iter().map(|s| s.residencies.len()).collect(),
            stalled_between_bursts: self.pes.iter().map(|p| p.between).sum(),
            sum_of_parts,
            cycles,
            pes,
            busy_cycles: self.pes.iter().map(|p| p.busy).sum(),
            stall_cycles: stalls,
            occupancy: self.machine.occupancy(self.nest),
            counts: self.counts,
            fault: verdict,
            transfers: self.transfers.len() as u64,
            log: self.log,
        }
    }
}
