//! Refresh of memories (rule 28): the only thing that happens at absolute times.
//!
//! A port is looked at only when something reserves it. So its refreshes are caught up with then, all that were due
//! since: nothing is an event.

use cyclonest_arch::Refresh;

use super::Engine;
use super::components::ResourceId;
use crate::observe::Observer;

/// The refreshed ports of a machine.
#[derive(Debug)]
pub(crate) struct Refreshes {
    /// Per resource, if it is refreshed: how, and the simulated time up to which that has been done.
    pub(super) ports: Vec<Option<(Refresh, u64)>>,
    /// The distinct intervals.
    pub(super) intervals: Vec<u64>,
}

impl Refreshes {
    /// Nothing if no port is refreshed.
    pub(super) fn new(ports: Vec<Option<Refresh>>) -> Option<Self> {
        let mut intervals: Vec<u64> = ports.iter().flatten().map(|r| r.every).collect();
        intervals.sort_unstable();
        intervals.dedup();
        (!intervals.is_empty()).then(|| Refreshes {
            ports: ports.into_iter().map(|r| r.map(|r| (r, 0))).collect(),
            intervals,
        })
    }
}

impl<O: Observer> Engine<'_, O> {
    /// A port takes the time of its refreshes up to now.
    pub(super) fn catch_up(&mut self, id: ResourceId) {
        let (now, offset) = (self.s.now, self.s.offset);
        let Some(refreshes) = &mut self.s.refreshes else { return };
        let Some((Refresh { every, takes }, done)) = &mut refreshes.ports[id.at()] else {
            return;
        };
        let until = now.0.wrapping_add(offset);
        // In internal time; nothing that is due after `done` lies before its beginning.
        let next = ((*done / *every + 1) * *every).wrapping_sub(offset);
        *done = until;
        let free = &mut self.resources[id.at()].free;
        let mut due = next;
        while due <= now.0 {
            if free.0 <= due {
                // It was idle at each of them: only the last one matters.
                due += (now.0 - due) / *every * *every;
                free.0 = due;
            }
            free.0 += *takes;
            due += *every;
        }
    }

    /// All ports do.
    pub(super) fn catch_up_all(&mut self) {
        if self.s.refreshes.is_some() {
            for id in 0..self.resources.len() as u32 {
                self.catch_up(ResourceId(id));
            }
        }
    }
}
