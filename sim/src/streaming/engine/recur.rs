//! Exact fast-forward: where the whole state recurs at the end of a frame, the frames in between repeat.

use std::cmp::Reverse;

use super::turning::Turning;

/// What is remembered of the end of a frame: cycle, frames done, counters.
pub(super) struct Seen {
    now: u64,
    done: u64,
    counters: Vec<u64>,
}

impl Turning<'_> {
    /// Every counter, in a fixed order.
    fn counters(&self) -> Vec<u64> {
        let mut list = Vec::with_capacity(self.links.len() * 2 + self.machines.len());
        for link in self.links.iter() {
            let open = if link.valid {
                (self.now + 1).saturating_sub(link.valid_since)
            } else {
                0
            };
            list.extend([link.transfers, link.valid_cycles + open]);
        }
        list.extend(self.machines.iter().map(|m| m.0.busy()));
        list
    }

    /// Compares the state at the end of a frame with earlier ones; where it recurs, moves it by as many periods as
    /// leave every source a frame to begin.
    pub(super) fn skip(&mut self, done: u64) {
        let now = self.now;
        let mut key = Vec::new();
        for machine in self.machines.iter() {
            machine.0.key(now, &mut key);
        }
        key.extend(self.links.iter().map(|link| u64::from(link.valid)));
        key.extend(&self.next.0);
        key.push(self.memory.free.saturating_sub(now * self.memory.ticks_per_cycle));
        let mut wishes: Vec<(u64, usize)> = self.timers.iter().map(|t| (t.0.0 - now, t.0.1)).collect();
        wishes.sort_unstable();
        key.extend(wishes.iter().flat_map(|&(at, position)| [at, position as u64]));
        let counters = self.counters();
        let Some(seen) = self.seen.get(&key) else {
            self.seen.insert(key, Seen { now, done, counters });
            return;
        };
        let period = (done - seen.done, now - seen.now);
        let left = self
            .machines
            .iter()
            .filter_map(|m| m.0.frames_left())
            .min()
            .unwrap_or(0);
        let times = left.saturating_sub(1) / period.0;
        if times == 0 {
            return;
        }
        let (frames, cycles) = (period.0 * times, period.1 * times);
        for (link, pair) in self
            .links
            .iter_mut()
            .zip(counters.chunks(2).zip(seen.counters.chunks(2)))
        {
            let (after, before) = pair;
            link.transfers += (after[0] - before[0]) * times;
            link.valid_cycles += (after[1] - before[1]) * times;
            link.last += cycles;
            if link.valid {
                link.valid_since += cycles;
            }
        }
        let at = self.links.len() * 2;
        for (machine, (after, before)) in self
            .machines
            .iter_mut()
            .zip(counters[at..].iter().zip(&seen.counters[at..]))
        {
            machine.0.shift(frames, cycles);
            machine.0.add_busy((after - before) * times);
        }
        let timers = std::mem::take(&mut self.timers).into_vec();
        self.timers.extend(
            timers
                .into_iter()
                .map(|Reverse((at, position))| Reverse((at + cycles, position))),
        );
        self.memory.free += cycles * self.memory.ticks_per_cycle;
        self.input.2 += frames * self.input.1;
        self.now += cycles;
        self.skipped = Some((period.0, period.1, times));
        self.seen.clear();
    }
}
