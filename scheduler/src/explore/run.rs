//! Chunks on several threads, with work stealing.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel;
use crossbeam::deque::{Steal, Stealer, Worker};

use super::kept::Kept;
use super::row::{Row, row};
use super::space::Space;
use super::sweep::{Sweeper, Swept, Tally};

/// Sweeps the chunks of `todo` and hands each result to `finished`, on this thread, in whatever order they are done,
/// with the time that it took. Ends early if `finished` breaks.
///
/// Every thread begins with a run of neighbouring chunks, which share analyses, and steals from the others when it is
/// done.
pub fn run(
    space: &Space,
    todo: &[u64],
    threads: NonZeroUsize,
    prune: bool,
    mut finished: impl FnMut(Swept, Duration) -> ControlFlow<()>,
) {
    let threads = threads.get().min(todo.len().max(1));
    let workers: Vec<Worker<u64>> = (0..threads).map(|_| Worker::new_fifo()).collect();
    for (worker, run) in workers.iter().zip(todo.chunks(todo.len().div_ceil(threads).max(1))) {
        run.iter().for_each(|&chunk| worker.push(chunk));
    }
    let stealers: Vec<Stealer<u64>> = workers.iter().map(Worker::stealer).collect();
    let stop = AtomicBool::new(false);
    // Bounded: results do not pile up behind a slow disk.
    let (done, results) = channel::bounded(4 * threads);
    let outcome = crossbeam::scope(|scope| {
        for worker in workers {
            let (done, stealers, stop) = (done.clone(), &stealers, &stop);
            scope.spawn(move |_| {
                let mut sweeper = Sweeper::new(space, prune);
                while let Some(chunk) = worker.pop().or_else(|| steal(&worker, stealers)) {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let start = Instant::now();
                    let swept = sweeper.chunk(chunk);
                    if done.send((swept, start.elapsed())).is_err() {
                        break;
                    }
                }
            });
        }
        drop(done);
        for (swept, took) in &results {
            if finished(swept, took).is_break() {
                stop.store(true, Ordering::Relaxed);
                break;
            }
        }
        // Whoever still sends is told that nobody listens.
        drop(results);
    });
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

/// Half of what another thread has left, and the first of it.
fn steal(worker: &Worker<u64>, stealers: &[Stealer<u64>]) -> Option<u64> {
    loop {
        let mut again = false;
        for stealer in stealers {
            match stealer.steal_batch_and_pop(worker) {
                Steal::Success(chunk) => return Some(chunk),
                Steal::Retry => again = true,
                Steal::Empty => {}
            }
        }
        if !again {
            return None;
        }
    }
}

/// What an exploration in memory found.
#[derive(Debug, Clone)]
pub struct Explored {
    /// What became of the designs.
    pub tally: Tally,
    /// The designs that were kept.
    pub kept: Kept,
    /// The first design that was refused, and why.
    pub refusal: Option<(u64, String)>,
    /// Time spent sweeping, summed over the threads.
    pub time: Duration,
}

/// Explores a space in memory.
#[must_use]
pub fn explore(space: &Space, threads: NonZeroUsize, prune: bool) -> Explored {
    let mut explored = Explored {
        tally: Tally::default(),
        kept: Kept::new(&space.plan),
        refusal: None,
        time: Duration::ZERO,
    };
    let todo: Vec<u64> = (0..space.chunks()).collect();
    run(space, &todo, threads, prune, |swept, took| {
        explored.add(&swept);
        explored.time += took;
        ControlFlow::Continue(())
    });
    explored
}

impl Explored {
    /// Adds a chunk.
    pub fn add(&mut self, swept: &Swept) {
        self.tally.add(&swept.tally);
        self.kept.merge(&swept.kept);
        if let Some(refusal) = &swept.refusal
            && self.refusal.as_ref().is_none_or(|known| refusal.0 < known.0)
        {
            self.refusal = Some(refusal.clone());
        }
    }

    /// The kept designs in full, by number: the best by each objective, then the front.
    ///
    /// # Errors
    /// If a design cannot be evaluated again, which would be a fault of the sweep.
    pub fn rows(&self, space: &Space) -> Result<Vec<Row>, String> {
        let mut numbers: Vec<u64> = self
            .kept
            .objectives()
            .flat_map(|o| self.kept.best(o))
            .map(|e| e.design)
            .collect();
        numbers.extend(self.kept.front().iter().map(|e| e.design));
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(|number| row(space, number)).collect()
    }
}
