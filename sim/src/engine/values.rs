//! Real data (rule 25): integers travel with the transfers, PEs multiply what sits in their buffers, and the result
//! is held against a direct convolution.
//!
//! Every element has a state besides its value: an operand is there or not, an output knows how many products it
//! holds. Comparing values alone would miss much of what never arrived, because zeros hide it.

use cyclonest_workloads::{Dim, DimMap, Problem, Tensor};

use super::Engine;
use super::components::{Cargo, StoreId, TransferId};
use crate::observe::Observer;
use crate::plan::Plan;
use crate::{Fault, Values};

/// An element in a buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    value: i64,
    /// 1 for an operand that is there; products in an output.
    count: u64,
}

/// The elements of a tile: the coordinates on each of five axes, and a cell for each combination.
///
/// Axes are G K C R S for weights, N G C row column for inputs, N G K P Q for outputs.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    axes: [Vec<u32>; 5],
    cells: Vec<Cell>,
}

/// State of the data check.
#[derive(Debug)]
pub(crate) struct Data {
    seed: u64,
    /// Transfer that loses its data on the way, to test the check itself.
    drop: Option<u64>,
    launched: u64,
    fault: Option<String>,
    payloads: Vec<Option<Content>>,
}

impl Data {
    pub(crate) fn new(seed: u64, fault: Option<Fault>) -> Self {
        let drop = match fault {
            Some(Fault::DropData(number)) => Some(number),
            _ => None,
        };
        Data {
            seed,
            drop,
            launched: 0,
            fault: None,
            payloads: Vec::new(),
        }
    }

    fn fault(&mut self, what: impl FnOnce() -> String) {
        if self.fault.is_none() {
            self.fault = Some(what());
        }
    }
}

impl Content {
    fn new(axes: [Vec<u32>; 5]) -> Self {
        let cells = axes.iter().map(Vec::len).product();
        Content {
            axes,
            cells: vec![Cell::default(); cells],
        }
    }

    /// Where each coordinate of `other` lies here, per axis.
    fn positions(&self, other: &Content) -> [Vec<Option<usize>>; 5] {
        std::array::from_fn(|a| {
            other.axes[a]
                .iter()
                .map(|c| self.axes[a].binary_search(c).ok())
                .collect()
        })
    }

    fn index(&self, at: [usize; 5]) -> usize {
        at.iter()
            .zip(&self.axes)
            .fold(0, |index, (i, axis)| index * axis.len() + i)
    }

    /// Calls `f` with the number of each cell of `other`, and of the cell of the same element here, if there is one.
    fn meet(&self, other: &Content, mut f: impl FnMut(usize, Option<usize>)) {
        let positions = self.positions(other);
        let mut number = 0;
        for a in &positions[0] {
            for b in &positions[1] {
                for c in &positions[2] {
                    for d in &positions[3] {
                        for e in &positions[4] {
                            let here = match (a, b, c, d, e) {
                                (Some(a), Some(b), Some(c), Some(d), Some(e)) => Some(self.index([*a, *b, *c, *d, *e])),
                                _ => None,
                            };
                            f(number, here);
                            number += 1;
                        }
                    }
                }
            }
        }
    }
}

/// A small integer, zero now and then, from a seed and coordinates.
fn number(seed: u64, tensor: Tensor, at: [u32; 5]) -> i64 {
    let mut hash = seed ^ (tensor as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for c in at {
        hash = (hash ^ u64::from(c)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        hash ^= hash >> 32;
    }
    (hash % 9) as i64 - 4
}

/// Coordinates of the tile of `tensor` at `level` that starts at `low`.
fn axes(plan: &Plan, tensor: Tensor, level: usize, low: &DimMap<u64>) -> [Vec<u32>; 5] {
    let range = |d: Dim| (low[d] as u32..(low[d] + plan.extent(level, d, low)) as u32).collect::<Vec<u32>>();
    match tensor {
        Tensor::Weights => [Dim::G, Dim::K, Dim::C, Dim::R, Dim::S].map(range),
        Tensor::Outputs => [Dim::N, Dim::G, Dim::K, Dim::P, Dim::Q].map(range),
        Tensor::Inputs => {
            let rows = plan.rows[level].members(plan.rows[level].at(low[Dim::P], low[Dim::R]));
            let columns = plan.columns[level].members(plan.columns[level].at(low[Dim::Q], low[Dim::S]));
            [
                range(Dim::N),
                range(Dim::G),
                range(Dim::C),
                rows.to_vec(),
                columns.to_vec(),
            ]
        }
    }
}

/// The tile of a residency before anything has arrived.
pub(super) fn blank(plan: &Plan, tensor: Tensor, level: usize, low: &DimMap<u64>) -> Box<Content> {
    Box::new(Content::new(axes(plan, tensor, level, low)))
}

fn source(plan: &Plan, tensor: Tensor, seed: u64) -> Content {
    let mut content = Content::new(axes(plan, tensor, 0, &DimMap::default()));
    if tensor == Tensor::Outputs {
        return content;
    }
    let mut cells = Vec::with_capacity(content.cells.len());
    for &a in &content.axes[0] {
        for &b in &content.axes[1] {
            for &c in &content.axes[2] {
                for &d in &content.axes[3] {
                    for &e in &content.axes[4] {
                        cells.push(Cell {
                            value: number(seed, tensor, [a, b, c, d, e]),
                            count: 1,
                        });
                    }
                }
            }
        }
    }
    content.cells = cells;
    content
}

impl<O: Observer> Engine<'_, O> {
    /// Loads the tensors into the outermost level.
    pub(super) fn load_values(&mut self) {
        let Some(data) = &self.s.data else { return };
        for store in self.stores.iter_mut().filter(|s| s.level == 0) {
            store.record_mut(0).content = Some(Box::new(source(&self.s.plan, store.tensor, data.seed)));
        }
    }

    /// A transfer takes its data along.
    pub(super) fn load_transfer(&mut self, id: TransferId) {
        if self.s.data.is_none() {
            return;
        }
        let t = self.s.transfers[id.at()].clone();
        let parent = self.sequencers[t.sequencer.at()].parent;
        let members = self.s.shape(t.shape).stores.clone();
        let payload = match t.cargo {
            Cargo::Fill => {
                let q = &self.sequencers[t.sequencer.at()];
                let group = &q.groups[(t.group - q.first) as usize];
                let (parent_ordinal, halo) = (group.parent, q.halo);
                let member = &self.stores[members[0].at()];
                let ordinal = member.requested - 1;
                let mut payload = content_of(member.record(ordinal)).clone();
                let previous = if halo { previous_content(member, ordinal) } else { None };
                let mut kept = vec![false; payload.cells.len()];
                if let Some(previous) = previous {
                    previous.meet(&payload, |i, here| kept[i] = here.is_some());
                }
                let from = content_of(self.stores[parent.at()].record(parent_ordinal));
                let mut missing = false;
                let mut cells = std::mem::take(&mut payload.cells);
                from.meet(&payload, |i, here| {
                    if !kept[i] {
                        cells[i] = here.map_or(Cell::default(), |here| from.cells[here]);
                        missing |= cells[i].count != 1;
                    }
                });
                payload.cells = cells;
                if missing {
                    let (tensor, level) = (q.tensor, q.parent_level);
                    self.data()
                        .fault(|| format!("{tensor} read at L{level} before they were there"));
                }
                payload
            }
            Cargo::Fetch => {
                let q = &self.sequencers[t.sequencer.at()];
                let parent_ordinal = q.visit(t.group).parent;
                let mut payload = content_of(self.stores[members[0].at()].record(t.ordinal)).clone();
                let from = self.stores[parent.at()].record_mut(parent_ordinal);
                let from = from
                    .content
                    .as_mut()
                    .expect("every residency has content in a data check");
                let mut moved = vec![None; payload.cells.len()];
                from.meet(&payload, |i, here| moved[i] = here);
                for (cell, here) in payload.cells.iter_mut().zip(moved) {
                    // The sum moves: the parent keeps nothing of it.
                    *cell = here.map_or(Cell::default(), |here| std::mem::take(&mut from.cells[here]));
                }
                payload
            }
            Cargo::Drain { .. } => {
                let mut sum: Option<Content> = None;
                for member in members {
                    let store = &self.stores[member.at()];
                    let content = content_of(store.record(store.ordinal_of_visit(t.group)));
                    match &mut sum {
                        None => sum = Some(content.clone()),
                        Some(sum) => add(sum, content),
                    }
                }
                sum.expect("a drain has members")
            }
        };
        let data = self.data();
        let lost = data.drop == Some(data.launched);
        data.launched += 1;
        if data.payloads.len() <= id.at() {
            data.payloads.resize(id.at() + 1, None);
        }
        data.payloads[id.at()] = (!lost).then_some(payload);
    }

    fn data(&mut self) -> &mut Data {
        self.s.data.as_mut().expect("only called in a data check")
    }

    /// A fill or fetch delivers its data to residency `ordinal` of a store.
    pub(super) fn unload_into(&mut self, id: TransferId, store: StoreId, ordinal: u64) {
        if self.s.data.is_none() {
            return;
        }
        let t = &self.s.transfers[id.at()];
        let halo = self.sequencers[t.sequencer.at()].halo && t.cargo == Cargo::Fill;
        let mut content = content_of(self.stores[store.at()].record(ordinal)).clone();
        if let Some(payload) = &self.data().payloads[id.at()] {
            content.cells.copy_from_slice(&payload.cells);
        }
        if halo && let Some(previous) = previous_content(&self.stores[store.at()], ordinal) {
            let mut cells = std::mem::take(&mut content.cells);
            previous.meet(&content, |i, here| {
                if let Some(here) = here {
                    cells[i] = previous.cells[here];
                }
            });
            content.cells = cells;
        }
        **self.stores[store.at()]
            .record_mut(ordinal)
            .content
            .as_mut()
            .expect("checked above") = content;
    }

    /// A drain delivers its data to the parent's residency.
    pub(super) fn unload_drain(&mut self, id: TransferId, parent: StoreId, ordinal: u64) {
        if self.s.data.is_none() {
            return;
        }
        if let Some(payload) = self.data().payloads[id.at()].take() {
            let into = self.stores[parent.at()].record_mut(ordinal).content.as_mut();
            add(into.expect("every residency has content in a data check"), &payload);
        }
    }

    /// A residency gives its slot back: all its elements must have been there, and its successor may keep some.
    pub(super) fn retire_content(&mut self, store: StoreId, ordinal: u64) {
        if self.s.data.is_none() {
            return;
        }
        let s = &mut self.stores[store.at()];
        let content = s.record_mut(ordinal).content.take();
        let (tensor, level) = (s.tensor, s.level);
        if tensor == Tensor::Outputs {
            return;
        }
        let complete = content
            .as_ref()
            .is_some_and(|c| c.cells.iter().all(|cell| cell.count == 1));
        if s.retained.as_ref().is_none_or(|(o, _)| *o < ordinal) {
            s.retained = content.map(|c| (ordinal, c));
        }
        if !complete {
            self.data()
                .fault(|| format!("a tile of {tensor} at L{level} never arrived in full"));
        }
    }

    /// The lanes compute the step whose tile starts at `low`, from the current residencies of a PE's stores.
    pub(super) fn compute_values(
        &mut self,
        low: &DimMap<u64>,
        outputs: (StoreId, u64),
        weights: (StoreId, u64),
        inputs: Option<(StoreId, u64)>,
    ) {
        if self.s.data.is_none() {
            return;
        }
        let plan = &self.s.plan;
        let problem: &Problem = &plan.problem;
        let extent = DimMap::from_fn(|d| plan.extent(plan.pe_level, d, low));
        let w = content_of(self.stores[weights.0.at()].record(weights.1));
        let x = inputs.map(|(store, ordinal)| content_of(self.stores[store.at()].record(ordinal)));
        let mut out = content_of(self.stores[outputs.0.at()].record(outputs.1)).clone();
        let at = |content: &Content, axis: usize, c: u64| content.axes[axis].binary_search(&(c as u32)).ok();
        let (real_rows, real_columns) = (problem.real_rows(), problem.real_columns());
        let mut missing = None;
        for n in low[Dim::N]..low[Dim::N] + extent[Dim::N] {
            for g in low[Dim::G]..low[Dim::G] + extent[Dim::G] {
                for p in low[Dim::P]..low[Dim::P] + extent[Dim::P] {
                    for r in low[Dim::R]..low[Dim::R] + extent[Dim::R] {
                        let row = p * problem.stride.0 + r * problem.dilation.0;
                        let row_at = x.and_then(|x| at(x, 3, row));
                        for q in low[Dim::Q]..low[Dim::Q] + extent[Dim::Q] {
                            for s in low[Dim::S]..low[Dim::S] + extent[Dim::S] {
                                let column = q * problem.stride.1 + s * problem.dilation.1;
                                let padded = !real_rows.contains(&row) || !real_columns.contains(&column);
                                let column_at = x.and_then(|x| at(x, 4, column));
                                for c in low[Dim::C]..low[Dim::C] + extent[Dim::C] {
                                    let input = if padded {
                                        Some(0)
                                    } else {
                                        x.and_then(|x| {
                                            let cell = x.cells[x.index([
                                                at(x, 0, n)?,
                                                at(x, 1, g)?,
                                                at(x, 2, c)?,
                                                row_at?,
                                                column_at?,
                                            ])];
                                            (cell.count == 1).then_some(cell.value)
                                        })
                                    };
                                    for k in low[Dim::K]..low[Dim::K] + extent[Dim::K] {
                                        let weight = (|| {
                                            let cell = w.cells[w.index([
                                                at(w, 0, g)?,
                                                at(w, 1, k)?,
                                                at(w, 2, c)?,
                                                at(w, 3, r)?,
                                                at(w, 4, s)?,
                                            ])];
                                            (cell.count == 1).then_some(cell.value)
                                        })();
                                        let place = (|| {
                                            Some(out.index([
                                                at(&out, 0, n)?,
                                                at(&out, 1, g)?,
                                                at(&out, 2, k)?,
                                                at(&out, 3, p)?,
                                                at(&out, 4, q)?,
                                            ]))
                                        })();
                                        match (input, weight, place) {
                                            (Some(input), Some(weight), Some(place)) => {
                                                out.cells[place].value += input * weight;
                                                out.cells[place].count += 1;
                                            }
                                            (None, ..) => missing = missing.or(Some("an input")),
                                            (_, None, _) => missing = missing.or(Some("a weight")),
                                            _ => missing = missing.or(Some("an output")),
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        **self.stores[outputs.0.at()]
            .record_mut(outputs.1)
            .content
            .as_mut()
            .expect("cloned above") = out;
        if let Some(what) = missing {
            self.data().fault(|| format!("a PE computed without {what}"));
        }
    }

    /// Compares the outermost outputs with a direct convolution.
    pub(super) fn verdict(&mut self) -> Values {
        let Some(data) = &self.s.data else {
            return Values::NotChecked;
        };
        if let Some(fault) = &data.fault {
            return Values::Different(fault.clone());
        }
        let problem = &self.s.plan.problem;
        let outermost = |tensor| {
            let store = self.stores.iter().find(|s| s.level == 0 && s.tensor == tensor);
            content_of(store.expect("the outermost level keeps every tensor").record(0))
        };
        let (w, x, out) = (
            outermost(Tensor::Weights),
            outermost(Tensor::Inputs),
            outermost(Tensor::Outputs),
        );
        let expected_count = problem.contributions();
        let b = &problem.bounds;
        let mut number = 0;
        for n in 0..b[Dim::N] {
            for g in 0..b[Dim::G] {
                for k in 0..b[Dim::K] {
                    for p in 0..b[Dim::P] {
                        for q in 0..b[Dim::Q] {
                            let cell = out.cells[number];
                            number += 1;
                            let expected = direct(problem, w, x, [n, g, k, p, q]);
                            if cell.value != expected || cell.count != expected_count {
                                return Values::Different(format!(
                                    "output N{n} G{g} K{k} P{p} Q{q}: {} of {} products, expected {expected} of \
                                     {expected_count}",
                                    cell.value, cell.count
                                ));
                            }
                        }
                    }
                }
            }
        }
        Values::Equal
    }
}

/// One output of the direct convolution.
fn direct(problem: &Problem, w: &Content, x: &Content, [n, g, k, p, q]: [u64; 5]) -> i64 {
    let b = &problem.bounds;
    let mut sum = 0;
    for r in 0..b[Dim::R] {
        let row = (p * problem.stride.0 + r * problem.dilation.0) as u32;
        let Ok(row) = x.axes[3].binary_search(&row) else {
            continue;
        };
        for s in 0..b[Dim::S] {
            let column = (q * problem.stride.1 + s * problem.dilation.1) as u32;
            let Ok(column) = x.axes[4].binary_search(&column) else {
                continue;
            };
            for c in 0..b[Dim::C] {
                let input = x.cells[x.index([n as usize, g as usize, c as usize, row, column])].value;
                let weight = w.cells[w.index([g as usize, k as usize, c as usize, r as usize, s as usize])].value;
                sum += input * weight;
            }
        }
    }
    sum
}

fn content_of(record: &super::components::Record) -> &Content {
    record
        .content
        .as_ref()
        .expect("every residency has content in a data check")
}

/// Content of the residency before `ordinal`, in its slot or just out of it.
fn previous_content(store: &super::components::Store, ordinal: u64) -> Option<&Content> {
    let previous = ordinal.checked_sub(1)?;
    if previous >= store.first
        && let Some(content) = &store.record(previous).content
    {
        return Some(content);
    }
    store
        .retained
        .as_ref()
        .filter(|(o, _)| *o == previous)
        .map(|(_, content)| &**content)
}

/// Adds sums of the same tile.
fn add(into: &mut Content, other: &Content) {
    let mut places = vec![None; other.cells.len()];
    into.meet(other, |i, here| places[i] = here);
    for (cell, place) in other.cells.iter().zip(places) {
        if let Some(place) = place {
            into.cells[place].value += cell.value;
            into.cells[place].count += cell.count;
        }
    }
}
