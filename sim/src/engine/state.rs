//! Every component's state relative to now (rule 27).
//!
//! No `..` here: a new field must be given its place, as state, position, counter, or as something that never changes.

use cyclonest_workloads::{Dim, Tensor};

use super::components::{
    Cargo, DrainStream, Feed, Group, Need, Pe, Record, Resource, Sequencer, Store, Transfer, Visit,
};
use super::stall::{Blame, Timeline};
use crate::plan::cursor::Cursor;
use crate::relative::{Key, RelativeState, Unit};

type Positions<'a> = &'a mut dyn FnMut(Unit, &mut u64);
type Counters<'a> = &'a mut dyn FnMut(&mut u64);

const REDUCTION: [Dim; 3] = [Dim::C, Dim::R, Dim::S];

impl RelativeState for Resource {
    fn write(&self, key: &mut Key) {
        let Resource { free, busy: _ } = self;
        key.ahead(*free);
    }

    fn positions(&mut self, _: Positions<'_>) {}

    fn counters(&mut self, visit: Counters<'_>) {
        visit(&mut self.busy);
    }
}

impl RelativeState for Timeline {
    fn write(&self, key: &mut Key) {
        let Timeline(reasons) = self;
        for &(end, reason) in reasons {
            if end > key.settled {
                key.about(end);
                key.word(Blame::code(reason));
            }
        }
        key.word(u64::MAX);
    }

    fn positions(&mut self, _: Positions<'_>) {}

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Record {
    fn write(&self, key: &mut Key) {
        let Record {
            level: _,
            first_step: _,
            unused_from,
            parent,
            new,
            group,
            stream,
            fetched,
            touched,
            closed,
            outstanding,
            children,
            left,
            resident,
            settled,
            released,
            content: _, // no fast-forward in a data check
            timeline,
        } = self;
        // A parent that is gone, or a group that has been launched, is of no interest any more.
        key.ordinal_if_there(*parent, key.parent_first);
        key.ordinal_if_there(*group, key.group_first);
        key.word(*new);
        key.word(u64::from(*stream));
        for flag in [
            *unused_from == u64::MAX,
            *fetched,
            *touched,
            *closed,
            *children > 0,
            *resident,
            *settled,
            *released,
        ] {
            key.flag(flag);
        }
        key.word(u64::from(*outstanding));
        key.ahead(*left);
        timeline.write(key);
    }

    fn positions(&mut self, visit: Positions<'_>) {
        visit(Unit::Rank(self.level), &mut self.first_step);
        visit(Unit::Rank(self.level), &mut self.unused_from);
    }

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Store {
    fn write(&self, key: &mut Key) {
        let Store {
            tensor,
            level: _,
            instance: _,
            feeder: _,
            child: _,
            feeds: _,
            pe,
            fifo: _,
            slots: _,
            free_slots,
            fifo_used,
            generated,
            requested,
            arrived,
            slotted,
            done,
            closing,
            offered,
            first,
            records,
            retained: _, // likewise
        } = self;
        key.word(*free_slots);
        key.word(*fifo_used);
        key.ordinal(*generated, *first);
        key.ordinal(*requested, *first);
        key.ordinal(*slotted, *first);
        // Outputs do not count arrivals, and only PEs count what is done.
        if *tensor == Tensor::Outputs {
            if pe.is_some() {
                key.ordinal(*done, *first);
            }
        } else {
            key.ordinal(*arrived, *first);
        }
        key.flag(*offered);
        key.word(closing.len() as u64);
        for ordinal in closing {
            key.ordinal(*ordinal, *first);
        }
        key.word(records.len() as u64);
        for record in records {
            record.write(key);
        }
    }

    fn positions(&mut self, visit: Positions<'_>) {
        self.records.iter_mut().for_each(|record| record.positions(visit));
    }

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Cursor {
    fn write(&self, key: &mut Key) {
        let Cursor {
            indices: _,
            low: _,
            rank: _,
            finished,
            changed,
        } = self;
        key.flag(*finished);
        key.word(*changed as u64);
    }

    fn positions(&mut self, visit: Positions<'_>) {
        // The start of a dimension and the rank follow from the indices.
        for (number, index) in self.indices.iter_mut().enumerate() {
            visit(Unit::Index(number), index);
        }
    }

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Group {
    fn write(&self, key: &mut Key) {
        let Group {
            level: _,
            step: _,
            parent,
            elements,
            shape,
            ready,
            requested,
            launched,
        } = self;
        key.ordinal(*parent, key.parent_first);
        key.word(*elements);
        key.word(u64::from(shape.0));
        key.word(u64::from(*ready));
        key.flag(*requested);
        key.flag(*launched);
    }

    fn positions(&mut self, visit: Positions<'_>) {
        visit(Unit::Rank(self.level), &mut self.step);
    }

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Visit {
    fn write(&self, key: &mut Key) {
        let Visit {
            level: _,
            step: _,
            parent,
            tile,
            low: _,
            fetch,
            fetch_queued,
            fetch_requested,
            fetch_ready,
            blocked,
            unblocked_at,
            next,
            streams,
            arrived,
            first_written,
            last,
        } = self;
        key.ordinal(*parent, key.parent_first);
        key.word(tile.elements);
        key.word(fetch.map_or(u64::MAX, |(store, _)| u64::from(store.0)));
        key.word(fetch.map_or(u64::MAX, |(_, shape)| u64::from(shape.0)));
        for flag in [
            *fetch_queued,
            *fetch_requested,
            *fetch_ready,
            *blocked,
            *first_written,
            *last,
        ] {
            key.flag(flag);
        }
        key.about(*unblocked_at);
        key.word(next.map_or(u64::MAX, |next| next - key.group_first));
        key.word(streams.len() as u64);
        for DrainStream { shape, done, requested } in streams {
            key.word(u64::from(shape.0));
            key.word(u64::from(*done));
            key.flag(*requested);
        }
        key.word(u64::from(*arrived));
    }

    fn positions(&mut self, visit: Positions<'_>) {
        visit(Unit::Rank(self.level), &mut self.step);
        for d in Dim::ALL {
            visit(Unit::Low(d), &mut self.low[d]);
        }
    }

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Feed {
    fn write(&self, key: &mut Key) {
        let Feed {
            store: _,
            base: _,
            cursor,
            path: _,
            class: _,
            first_of_reduction: _,
            started,
            tile,
            low: _,
            group,
            parent,
            idle,
            reduction: _,
        } = self;
        cursor.write(key);
        key.flag(*started);
        key.flag(*idle);
        key.word(tile.elements);
        key.word(tile.depth);
        // Only outputs remember these; a visit that is over is of no interest.
        key.ordinal_if_there(*group, key.group_first);
        key.ordinal(key.parent_ordinal, *parent);
    }

    fn positions(&mut self, visit: Positions<'_>) {
        self.cursor.positions(visit);
        for d in Dim::ALL {
            visit(Unit::Low(d), &mut self.low[d]);
        }
        for (d, low) in REDUCTION.into_iter().zip(&mut self.reduction) {
            visit(Unit::Low(d), low);
        }
    }

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Sequencer {
    fn write(&self, key: &mut Key) {
        let Sequencer {
            tensor,
            flow: _,
            parent_level: _,
            level: _,
            parent: _,
            halo: _,
            steps: _,
            outer_loops: _,
            base: _,
            last_offsets: _,
            cursor,
            started,
            parent_ordinal,
            parent_reduction,
            feeds,
            first,
            groups,
            visits,
            shapes: _, // caches
            recent: _,
        } = self;
        cursor.write(key);
        key.flag(*started);
        key.ordinal_if_there(*parent_ordinal, key.parent_first);
        // Is the next step a first visit?
        key.flag(
            REDUCTION
                .iter()
                .zip(parent_reduction)
                .all(|(&d, low)| cursor.low[d] == *low),
        );
        let outputs = *tensor == Tensor::Outputs;
        (key.group_first, key.parent_ordinal) = if outputs {
            (*first, *parent_ordinal)
        } else {
            (u64::MAX, 0)
        };
        for feed in feeds {
            feed.write(key);
        }
        key.group_first = *first;
        key.word(groups.len() as u64);
        groups.iter().for_each(|group| group.write(key));
        key.word(visits.len() as u64);
        visits.iter().for_each(|visit| visit.write(key));
    }

    fn positions(&mut self, visit: Positions<'_>) {
        self.cursor.positions(visit);
        for (d, low) in REDUCTION.into_iter().zip(&mut self.parent_reduction) {
            visit(Unit::Low(d), low);
        }
        self.feeds.iter_mut().for_each(|feed| feed.positions(visit));
        self.groups.iter_mut().for_each(|group| group.positions(visit));
        self.visits.iter_mut().for_each(|v| v.positions(visit));
    }

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Pe {
    fn write(&self, key: &mut Key) {
        let Pe {
            cursor,
            base: _,
            needs,
            computing,
            blame_from,
            last_burst_end,
            queued,
            busy: _,
            stalled: _,
            skipped: _,
        } = self;
        cursor.write(key);
        key.flag(*computing);
        key.flag(*queued);
        for (
            Need {
                store: _,
                next,
                used,
                held,
            },
            first,
        ) in needs.iter().zip(key.needs_first)
        {
            key.ordinal(*next, first);
            key.flag(*used);
            key.flag(*held);
        }
        // While it computes, the end of the burst will set these anew; a finished PE has no future.
        if !computing && !cursor.finished {
            key.about(*blame_from);
            key.word(last_burst_end.map_or(u64::MAX, |end| key.now.since(end)));
        }
    }

    fn positions(&mut self, visit: Positions<'_>) {
        self.cursor.positions(visit);
    }

    fn counters(&mut self, visit: Counters<'_>) {
        visit(&mut self.busy);
        visit(&mut self.stalled);
    }
}

impl RelativeState for Transfer {
    fn write(&self, key: &mut Key) {
        let Transfer {
            cargo,
            number: _,
            ordinal,
            sequencer,
            group,
            shape,
            elements,
            bits,
            stage,
            tail,
            hops,
        } = self;
        key.word(match cargo {
            Cargo::Fill => 0,
            Cargo::Fetch => 1,
            Cargo::Drain { stream } => 2 + u64::from(*stream),
        });
        if *cargo == Cargo::Fetch {
            key.ordinal(*ordinal, key.parent_first);
        }
        if *cargo != Cargo::Fill {
            key.ordinal(*group, key.group_first);
        }
        key.word(u64::from(sequencer.0));
        key.word(u64::from(shape.0));
        key.word(*elements);
        key.word(*bits);
        key.word(u64::from(*stage));
        key.ahead(*tail);
        for &(reached, started) in hops {
            key.about(reached);
            key.about(started);
        }
    }

    fn positions(&mut self, _: Positions<'_>) {}

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Blame {
    fn write(&self, _: &mut Key) {}

    fn positions(&mut self, _: Positions<'_>) {}

    fn counters(&mut self, visit: Counters<'_>) {
        self.cycles.iter_mut().for_each(visit);
    }
}
