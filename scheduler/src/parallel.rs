//! Independent searches on several threads; the results do not depend on how many.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam::channel;

/// `work` on every job; results in the order of the jobs.
pub(crate) fn map<J: Sync, R: Send>(jobs: &[J], threads: NonZeroUsize, work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    if threads.get() == 1 || jobs.len() < 2 {
        return jobs.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let (done, results) = channel::unbounded();
    let outcome = crossbeam::scope(|scope| {
        for _ in 0..threads.get().min(jobs.len()) {
            let (done, next, work) = (done.clone(), &next, &work);
            scope.spawn(move |_| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { break };
                    let _ = done.send((index, work(job)));
                }
            });
        }
    });
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
    drop(done);
    let mut all: Vec<(usize, R)> = results.into_iter().collect();
    all.sort_by_key(|&(index, _)| index);
    all.into_iter().map(|(_, result)| result).collect()
}
