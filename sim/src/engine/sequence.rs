//! Residencies, groups and visits, generated in step order as they are needed (rules 1, 3, 4, 5, 10, 17).

use cyclonest_workloads::{Dim, Tensor};

use super::Engine;
use super::components::{DrainStream, Flow, Group, Record, SequencerId, ShapeId, StoreId, Visit};
use super::values::blank;
use crate::Cycle;
use crate::observe::Observer;
use crate::plan::Tile;

/// What members of one transfer have in common (rule 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    class: u32,
    tile: Tile,
    overlap: Tile,
    new: u64,
}

/// Lists that a step fills, kept for their memory.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    groups: Vec<(Key, Vec<u32>)>,
    visits: Vec<(Tile, Vec<u32>)>,
    /// Members of a visit by their class.
    classes: Vec<(u32, Vec<u32>)>,
    /// Lists of streams of visits that are over.
    pub(super) streams: Vec<Vec<DrainStream>>,
    ended: Vec<usize>,
    fresh: Vec<StoreId>,
}

const REDUCTION: [Dim; 3] = [Dim::C, Dim::R, Dim::S];

impl<O: Observer> Engine<'_, O> {
    /// Generates until `store` knows its next residency, or there is none.
    pub(super) fn generate_for(&mut self, sequencer: SequencerId, store: StoreId) {
        while self.stores[store.at()].generated == self.stores[store.at()].requested
            && !self.has_no_more(sequencer, store)
        {
            self.generate_step(sequencer);
        }
    }

    /// True if no step is left at which a residency of `store` could begin. (Without this, a child at the edge
    /// of the problem, or one in the padding, would drag its siblings' residencies out of the whole rest of the nest.)
    fn has_no_more(&self, sequencer: SequencerId, store: StoreId) -> bool {
        let q = &self.sequencers[sequencer.at()];
        let feed = &q.feeds[self.stores[store.at()].child as usize];
        q.cursor.finished || feed.cursor.finished || !feed.has_tiles
    }

    /// Generates what begins at the sequencer's next step.
    pub(super) fn generate_step(&mut self, id: SequencerId) {
        let q = &self.sequencers[id.at()];
        if q.cursor.finished {
            return;
        }
        if !q.started || q.cursor.changed < q.outer_loops {
            self.follow_parent(id);
        }
        let fresh = if matches!(self.sequencers[id.at()].flow, Flow::Operand | Flow::Stream) {
            self.operands_begin(id)
        } else {
            self.outputs_begin(id)
        };
        let plan = &self.s.plan;
        let q = &mut self.sequencers[id.at()];
        q.cursor.advance(&q.steps, &plan.problem.bounds);
        let finished = q.cursor.finished;
        if finished {
            let (parent, ordinal) = (q.parent, q.parent_ordinal);
            if !matches!(q.flow, Flow::Operand | Flow::Stream) {
                for feed in 0..q.feeds.len() {
                    self.note_last(id, feed);
                }
            }
            self.close(parent, ordinal);
        }
        for &store in &fresh {
            if self.stores[store.at()].generated - 1 == self.stores[store.at()].requested {
                self.offer(store);
            }
        }
        self.s.scratch.fresh = fresh;
    }

    /// Finds the parent's residency at the sequencer's step.
    fn follow_parent(&mut self, id: SequencerId) {
        let q = &self.sequencers[id.at()];
        let (parent, level) = (q.parent, q.parent_level);
        let rank = q.cursor.prefix_rank(&self.s.plan.steps[level]);
        let mut ordinal = q.parent_ordinal;
        let mut moved = !q.started;
        while let Some(feeder) = self.stores[parent.at()].feeder {
            let store = &self.stores[parent.at()];
            if store.generated > ordinal + 1 {
                if store.record(ordinal + 1).first_step > rank {
                    break;
                }
                self.close(parent, ordinal);
                ordinal += 1;
                moved = true;
            } else {
                let feeder_cursor = &self.sequencers[feeder.at()].cursor;
                if feeder_cursor.finished || feeder_cursor.rank > rank {
                    break;
                }
                self.generate_step(feeder);
            }
        }
        let q = &mut self.sequencers[id.at()];
        q.started = true;
        q.parent_ordinal = ordinal;
        if moved {
            q.parent_reduction = REDUCTION.map(|d| q.cursor.low[d]);
        }
    }

    /// Operands whose residency begins at this step; the stores that got one.
    fn operands_begin(&mut self, id: SequencerId) -> Vec<StoreId> {
        let q = &mut self.sequencers[id.at()];
        let bounds = self.s.plan.problem.bounds;
        let (tensor, level, rank) = (q.tensor, q.level, q.cursor.rank);
        let at_pe = level == self.s.plan.pe_level;
        let (mut groups, mut used) = (std::mem::take(&mut self.s.scratch.groups), 0);
        let plan = &mut self.s.plan;
        for (i, feed) in q.feeds.iter_mut().enumerate() {
            if !feed.exists_at(rank) {
                continue;
            }
            let low = feed.cursor.low;
            feed.cursor.advance(&q.steps, &bounds);
            let tile = plan.tile_at(tensor, level, &low);
            let store = &mut self.stores[feed.store.at()];
            let (overlap, new) = if q.flow == Flow::Stream {
                let class = plan.bursts.class_at(&low, false);
                let size = plan.bursts.classes[class as usize].streams[tensor];
                (Tile::default(), if tile.elements == 0 { 0 } else { size })
            } else {
                if feed.started && tile.elements == 0 {
                    // The residency goes on, but nobody needs it here (rule 3).
                    if at_pe && !feed.idle {
                        feed.idle = true;
                        let last = store.generated - 1;
                        if last >= store.first {
                            store.record_mut(last).unused_from = rank;
                        }
                    }
                    continue;
                }
                if feed.started {
                    let overlap = if tile == feed.tile {
                        tile
                    } else {
                        plan.overlap(tensor, level, &tile, &feed.tile)
                    };
                    if overlap == tile {
                        if feed.idle {
                            feed.idle = false;
                            let last = store.generated - 1;
                            store.record_mut(last).unused_from = u64::MAX;
                        }
                        continue;
                    }
                    if q.halo {
                        (overlap, tile.elements - overlap.elements)
                    } else {
                        (Tile::default(), tile.elements)
                    }
                } else {
                    (Tile::default(), tile.elements)
                }
            };
            if new == 0 {
                continue;
            }
            feed.started = true;
            feed.idle = false;
            feed.tile = tile;
            feed.begun = rank;
            let key = Key {
                class: feed.class,
                tile,
                overlap,
                new,
            };
            let group = join(&mut groups, &mut used, key, i as u32);
            store.records.push_back(Record {
                first_step: rank,
                unused_from: u64::MAX,
                parent: q.parent_ordinal,
                new,
                group: q.first + q.groups.len() as u64 + group as u64,
                content: self.s.data.is_some().then(|| blank(plan, tensor, level, &low)),
                ..Record::default()
            });
            store.generated += 1;
        }
        let mut fresh = std::mem::take(&mut self.s.scratch.fresh);
        fresh.clear();
        for (slot, (key, members)) in groups[..used].iter().enumerate() {
            let shape = self.shape(id, members, true, slot);
            let q = &mut self.sequencers[id.at()];
            let parent = self.stores[q.parent.at()].record_mut(q.parent_ordinal);
            parent.outstanding += 1;
            parent.children += 1;
            q.groups.push_back(Group {
                step: rank,
                parent: q.parent_ordinal,
                elements: key.new,
                shape,
                ready: 0,
                requested: false,
                launched: false,
            });
            fresh.extend(members.iter().map(|&m| q.feeds[m as usize].store));
        }
        self.s.scratch.groups = groups;
        fresh
    }

    /// Outputs whose residency begins at this step; the stores that got one.
    fn outputs_begin(&mut self, id: SequencerId) -> Vec<StoreId> {
        let q = &self.sequencers[id.at()];
        let bounds = self.s.plan.problem.bounds;
        let (tensor, level, rank) = (q.tensor, q.level, q.cursor.rank);
        let every_step = q.flow.every_step();
        let parent_ordinal = q.parent_ordinal;
        let reduction = REDUCTION.map(|d| q.cursor.low[d]);
        let reduced = (0..3).all(|i| reduction[i] - q.base[REDUCTION[i]] == q.last_offsets[i]);
        let parent_fetched = q.parent_level > 0 && self.stores[q.parent.at()].record(parent_ordinal).fetched;
        let revisited = parent_fetched || reduction != q.parent_reduction;
        let (mut visits, mut used) = (std::mem::take(&mut self.s.scratch.visits), 0);
        let mut ended = std::mem::take(&mut self.s.scratch.ended);
        ended.clear();
        for i in 0..self.sequencers[id.at()].feeds.len() {
            let q = &mut self.sequencers[id.at()];
            let feed = &mut q.feeds[i];
            if !feed.exists_at(rank) {
                continue;
            }
            let low = feed.cursor.low;
            feed.cursor.advance(&q.steps, &bounds);
            let tile = self.s.plan.tile_at(tensor, level, &low);
            let begins = every_step || !feed.started || tile != feed.tile || parent_ordinal != feed.parent;
            if begins {
                if feed.started {
                    self.note_last(id, i);
                }
                let feed = &mut self.sequencers[id.at()].feeds[i];
                feed.started = true;
                feed.tile = tile;
                feed.begun = rank;
                feed.parent = parent_ordinal;
                join(&mut visits, &mut used, tile, i as u32);
            }
            let feed = &mut self.sequencers[id.at()].feeds[i];
            feed.reduced = reduced;
            if feed.cursor.finished {
                ended.push(i);
            }
        }
        let mut fresh = std::mem::take(&mut self.s.scratch.fresh);
        fresh.clear();
        for (slot, (tile, members)) in visits[..used].iter().enumerate() {
            self.begin_visit(id, slot, *tile, members, revisited, rank);
            fresh.extend(
                members
                    .iter()
                    .map(|&m| self.sequencers[id.at()].feeds[m as usize].store),
            );
        }
        // These have seen their last step.
        for &feed in &ended {
            self.note_last(id, feed);
        }
        (self.s.scratch.visits, self.s.scratch.ended) = (visits, ended);
        fresh
    }

    fn begin_visit(&mut self, id: SequencerId, slot: usize, tile: Tile, members: &[u32], revisited: bool, rank: u64) {
        let q = &self.sequencers[id.at()];
        let (parent, parent_ordinal) = (q.parent, q.parent_ordinal);
        let number = q.first + q.visits.len() as u64;
        let (mut classes, mut used) = (std::mem::take(&mut self.s.scratch.classes), 0);
        for &m in members {
            join(&mut classes, &mut used, q.feeds[m as usize].class, m);
        }
        let fetcher = members
            .iter()
            .copied()
            .find(|&m| revisited && q.feeds[m as usize].first_of_reduction);
        let latest = &mut self.s.caches[id.at()].latest;
        let previous = latest.replace(q, tile.corner, number);
        let previous = previous.map(|number| (number - q.first) as usize);
        debug_assert_eq!(
            previous,
            q.visits
                .iter()
                .rposition(|v| v.tile == tile && v.parent == parent_ordinal),
            "the latest visit of the tile"
        );
        let previous_pending = previous.is_some_and(|v| (q.visits[v].arrived as usize) < q.visits[v].streams.len());
        for (stream, (_, members)) in classes[..used].iter().enumerate() {
            for &m in members {
                let q = &mut self.sequencers[id.at()];
                let level = q.level;
                let feed = &mut q.feeds[m as usize];
                let low = || q.steps.low_at(rank, &feed.base);
                feed.group = number;
                let store = &mut self.stores[feed.store.at()];
                store.records.push_back(Record {
                    first_step: rank,
                    unused_from: u64::MAX,
                    parent: parent_ordinal,
                    new: tile.elements,
                    group: number,
                    stream: stream as u32,
                    fetched: fetcher == Some(m),
                    content: (self.s.data.is_some()).then(|| blank(&self.s.plan, Tensor::Outputs, level, &low())),
                    ..Record::default()
                });
                store.generated += 1;
            }
        }
        let fetch = fetcher.map(|m| {
            let shape = self.shape(id, &[m], true, m as usize);
            (self.sequencers[id.at()].feeds[m as usize].store, shape)
        });
        let mut streams = self.s.scratch.streams.pop().unwrap_or_default();
        streams.clear();
        for (i, (_, members)) in classes[..used].iter().enumerate() {
            streams.push(DrainStream {
                shape: self.shape(id, members, false, slot + i),
                done: 0,
                requested: false,
            });
        }
        self.s.scratch.classes = classes;
        let record = self.stores[parent.at()].record_mut(parent_ordinal);
        record.outstanding += streams.len() as u32;
        record.children += streams.len() as u64;
        let q = &mut self.sequencers[id.at()];
        if let Some(previous) = previous.filter(|_| previous_pending) {
            q.visits[previous].next = Some(number);
        }
        let member = members[0];
        q.visits.push_back(Visit {
            step: rank,
            member,
            parent: parent_ordinal,
            tile,
            fetch,
            fetch_queued: false,
            fetch_requested: false,
            fetch_ready: false,
            blocked: previous_pending,
            unblocked_at: Cycle(0),
            next: None,
            streams,
            arrived: 0,
            first_written: false,
            last: false,
        });
    }

    /// A child's residency is over: was it the last visit of its tile (rule 20)?
    fn note_last(&mut self, id: SequencerId, feed: usize) {
        let q = &mut self.sequencers[id.at()];
        let feed = &q.feeds[feed];
        if !feed.started || feed.group < q.first {
            return;
        }
        let (number, last) = (feed.group, feed.reduced);
        q.visit_mut(number).last |= last;
    }

    /// No further child transfer belongs to residency `ordinal` of `parent`.
    fn close(&mut self, parent: StoreId, ordinal: u64) {
        let store = &mut self.stores[parent.at()];
        if store.level == 0 || store.generated <= ordinal {
            return;
        }
        store.record_mut(ordinal).closed = true;
        self.settle_closed(parent, ordinal);
    }

    /// The shape of `members`, built once. `slot` says where the same members stood last time.
    fn shape(&mut self, id: SequencerId, members: &[u32], down: bool, slot: usize) -> ShapeId {
        let cache = &mut self.s.caches[id.at()];
        let recent = &cache.recent[usize::from(down)];
        if let Some((_, shape)) = recent.get(slot).filter(|(recent, _)| recent == members) {
            return *shape;
        }
        let key = (down, members.to_vec());
        let shape = match cache.shapes.get(&key) {
            Some(&shape) => shape,
            None => {
                let q = &self.sequencers[id.at()];
                let instance = self.stores[q.parent.at()].instance;
                let shape = self.s.wiring.shape(&self.s.plan, q, instance, members, down);
                self.s.shapes.push(shape);
                let shape = ShapeId(self.s.shapes.len() as u32 - 1);
                self.s.caches[id.at()].shapes.insert(key, shape);
                shape
            }
        };
        let recent = &mut self.s.caches[id.at()].recent[usize::from(down)];
        if slot < LONGEST_RECENT {
            if recent.len() <= slot {
                recent.resize(slot + 1, (Vec::new(), ShapeId(0)));
            }
            recent[slot].0.clear();
            recent[slot].0.extend_from_slice(members);
            recent[slot].1 = shape;
        }
        shape
    }
}

/// Groups of a step whose shape is remembered by their place; there are at most as many as children.
const LONGEST_RECENT: usize = 1 << 12;

/// Adds `member` to the group of `key`, reusing the member lists of earlier steps.
fn join<K: PartialEq>(groups: &mut Vec<(K, Vec<u32>)>, used: &mut usize, key: K, member: u32) -> usize {
    let at = match groups[..*used].iter().position(|(k, _)| *k == key) {
        Some(at) => at,
        None => {
            if groups.len() == *used {
                groups.push((key, Vec::new()));
            } else {
                groups[*used].0 = key;
                groups[*used].1.clear();
            }
            *used += 1;
            *used - 1
        }
    };
    groups[at].1.push(member);
    at
}
