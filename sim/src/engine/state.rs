//! Every component's state relative to now (rule 27).
//!
//! No `..` here: a new field must be given its place, as state, position, counter, or as something that never changes.

use cyclonest_workloads::{Dim, Tensor};

use super::components::{
    Cargo, DrainStream, Feed, Group, Need, Pe, Record, Resource, Sequencer, Store, Transfer, Visit,
};
use super::stall::{Blame, Timeline};
use crate::plan::cursor::Cursor;
use crate::relative::{Key, RelativeState, Shift};

type Counters<'a> = &'a mut dyn FnMut(&mut u64);

const REDUCTION: [Dim; 3] = [Dim::C, Dim::R, Dim::S];

impl RelativeState for Resource {
    const NAME: &'static str = "Resource";

    fn write(&self, key: &mut Key<'_>) {
        let Resource { free, busy: _ } = self;
        key.ahead(*free);
    }

    fn shift(&mut self, _: &mut Shift<'_>) {}

    fn counters(&mut self, visit: Counters<'_>) {
        visit(&mut self.busy);
    }
}

impl RelativeState for Timeline {
    const NAME: &'static str = "Timeline";

    fn write(&self, key: &mut Key<'_>) {
        let Timeline(reasons) = self;
        for &(end, reason) in reasons {
            if end > key.settled {
                key.about(end);
                key.word(Blame::code(reason));
            }
        }
        key.word(u64::MAX);
    }

    fn shift(&mut self, _: &mut Shift<'_>) {}

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Record {
    const NAME: &'static str = "Record";

    fn write(&self, key: &mut Key<'_>) {
        let Record {
            first_step,
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
        // When it begins, and from when on it is not used, only matters as long as it lies ahead of whoever uses it.
        if key.not_begun == 0 {
            key.rank(*first_step);
        }
        if key.not_begun <= 1 && *unused_from != u64::MAX {
            key.rank(*unused_from);
        }
        timeline.add_to(key);
    }

    fn shift(&mut self, shift: &mut Shift<'_>) {
        shift.rank(&mut self.first_step);
        if self.unused_from != u64::MAX {
            shift.rank(&mut self.unused_from);
        }
    }

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Store {
    const NAME: &'static str = "Store";

    fn write(&self, key: &mut Key<'_>) {
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
        let not_begun = key.not_begun;
        for (ordinal, record) in (*first..).zip(records) {
            key.not_begun = not_begun.saturating_sub(ordinal);
            record.add_to(key);
        }
    }

    fn shift(&mut self, shift: &mut Shift<'_>) {
        self.records.iter_mut().for_each(|record| record.shift(shift));
    }

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Cursor {
    const NAME: &'static str = "Cursor";

    fn write(&self, key: &mut Key<'_>) {
        let Cursor {
            indices,
            low: _,     // follows from the indices, as
            rank: _,    // does this
            changed: _, // a sequencer asks for it and writes it itself
            finished,
        } = self;
        key.flag(*finished);
        if !finished {
            key.indices(indices);
        }
    }

    fn shift(&mut self, shift: &mut Shift<'_>) {
        if !self.finished {
            shift.indices(&mut self.indices);
        }
    }

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Group {
    const NAME: &'static str = "Group";

    fn write(&self, key: &mut Key<'_>) {
        let Group {
            step,
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
        if !launched {
            key.rank(*step);
        }
    }

    fn shift(&mut self, shift: &mut Shift<'_>) {
        shift.rank(&mut self.step);
    }

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Visit {
    const NAME: &'static str = "Visit";

    fn write(&self, key: &mut Key<'_>) {
        let Visit {
            step,
            parent,
            tile,
            member,
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
        key.rank(*step);
        key.word(u64::from(*member));
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

    fn shift(&mut self, shift: &mut Shift<'_>) {
        shift.rank(&mut self.step);
    }

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Feed {
    const NAME: &'static str = "Feed";

    fn write(&self, key: &mut Key<'_>) {
        let Feed {
            store: _,
            base: _,
            cursor,
            path: _,
            class: _,
            first_of_reduction: _,
            has_tiles: _,
            started,
            tile,
            begun,
            group,
            parent,
            idle,
            reduced,
        } = self;
        cursor.add_to(key);
        key.flag(*started);
        key.flag(*idle);
        key.flag(*reduced);
        // No tile follows a child's last one, so nobody compares it any more.
        if *started && !cursor.finished {
            key.rank(*begun);
            key.word(tile.elements);
            key.word(tile.depth);
        }
        // Only outputs remember these; a visit that is over is of no interest.
        key.ordinal_if_there(*group, key.group_first);
        key.ordinal(key.parent_ordinal, *parent);
    }

    fn shift(&mut self, shift: &mut Shift<'_>) {
        self.cursor.shift(shift);
        shift.rank(&mut self.begun);
    }

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Sequencer {
    const NAME: &'static str = "Sequencer";

    fn write(&self, key: &mut Key<'_>) {
        let Sequencer {
            tensor,
            flow: _,
            parent_level: _,
            level,
            parent: _,
            halo: _,
            steps,
            outer_loops,
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
        } = self;
        (key.level, key.loops) = (*level, steps.loops.len());
        cursor.add_to(key);
        key.flag(*started);
        key.flag(cursor.changed < *outer_loops);
        key.ordinal_if_there(*parent_ordinal, key.parent_first);
        key.flag(self.revisits(parent_reduction));
        let outputs = *tensor == Tensor::Outputs;
        (key.group_first, key.parent_ordinal) = if outputs {
            (*first, *parent_ordinal)
        } else {
            (u64::MAX, 0)
        };
        for feed in feeds {
            feed.add_to(key);
        }
        key.group_first = *first;
        key.word(groups.len() as u64);
        groups.iter().for_each(|group| group.add_to(key));
        key.word(visits.len() as u64);
        visits.iter().for_each(|visit| visit.add_to(key));
    }

    fn shift(&mut self, shift: &mut Shift<'_>) {
        (shift.level, shift.loops) = (self.level, self.steps.loops.len());
        let revisits = self.revisits(&self.parent_reduction);
        self.cursor.shift(shift);
        self.cursor.refresh(&self.steps, &self.base);
        for feed in &mut self.feeds {
            feed.shift(shift);
            feed.cursor.refresh(&self.steps, &feed.base);
        }
        self.groups.iter_mut().for_each(|group| group.shift(shift));
        self.visits.iter_mut().for_each(|visit| visit.shift(shift));
        self.parent_reduction = if revisits {
            [u64::MAX; 3]
        } else {
            self.outer_reduction()
        };
    }

    fn counters(&mut self, _: Counters<'_>) {}
}

impl Sequencer {
    /// Where C, R and S of the parent's tile start at the next step.
    fn outer_reduction(&self) -> [u64; 3] {
        REDUCTION.map(|d| self.cursor.outer_low(&self.steps, &self.base, self.outer_loops, d))
    }

    /// The parent's residency, if it goes on, has moved along a loop over C, R or S since it began: further in, every
    /// tile was drained into it before. It never moves back there, because it ends when an output index moves.
    fn revisits(&self, parent_reduction: &[u64; 3]) -> bool {
        self.outer_reduction() != *parent_reduction
    }
}

impl RelativeState for Pe {
    const NAME: &'static str = "Pe";

    fn write(&self, key: &mut Key<'_>) {
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
            finished_at: _,
            finished_for: _,
        } = self;
        cursor.add_to(key);
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

    fn shift(&mut self, shift: &mut Shift<'_>) {
        self.cursor.shift(shift);
    }

    fn counters(&mut self, visit: Counters<'_>) {
        visit(&mut self.busy);
        visit(&mut self.stalled);
        visit(&mut self.finished_for);
    }
}

impl RelativeState for Transfer {
    const NAME: &'static str = "Transfer";

    fn write(&self, key: &mut Key<'_>) {
        let Transfer {
            cargo,
            number: _,
            step: _, // nothing depends on it
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

    fn shift(&mut self, shift: &mut Shift<'_>) {
        shift.rank(&mut self.step);
    }

    fn counters(&mut self, _: Counters<'_>) {}
}

impl RelativeState for Blame {
    const NAME: &'static str = "Blame";

    fn write(&self, _: &mut Key<'_>) {}

    fn shift(&mut self, _: &mut Shift<'_>) {}

    fn counters(&mut self, visit: Counters<'_>) {
        self.cycles.iter_mut().for_each(visit);
    }
}
