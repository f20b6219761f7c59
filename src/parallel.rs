//! Independent jobs on several threads; the results do not depend on how many.

use std::num::NonZeroUsize;

use crossbeam::channel;

/// Runs `work` on every job, those of the largest `weight` first, and returns the results in the order of the
/// jobs. `finished` is called on this thread after each.
pub(crate) fn map<J: Sync, R: Send>(
    jobs: &[J],
    threads: NonZeroUsize,
    weight: impl Fn(&J) -> u64,
    work: impl Fn(&J) -> R + Sync,
    mut finished: impl FnMut(&J),
) -> Vec<R> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(weight(&jobs[i])));
    let (queue, waiting) = channel::unbounded();
    for index in order {
        // The receiver lives until the end of this function.
        let _ = queue.send(index);
    }
    drop(queue);

    let (done, results) = channel::unbounded();
    let mut slots: Vec<Option<R>> = jobs.iter().map(|_| None).collect();
    let outcome = crossbeam::scope(|scope| {
        for _ in 0..threads.get().min(jobs.len()) {
            let (waiting, done, work) = (waiting.clone(), done.clone(), &work);
            scope.spawn(move |_| {
                for index in waiting {
                    let _ = done.send((index, work(&jobs[index])));
                }
            });
        }
        drop(done);
        for (index, result) in results {
            slots[index] = Some(result);
            finished(&jobs[index]);
        }
    });
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
    slots.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs_for_any_number_of_threads() {
        let jobs: Vec<u64> = (0..50).map(|i| i * 7 % 50).collect();
        let expected: Vec<u64> = jobs.iter().map(|j| j * j).collect();
        for threads in [1, 2, 3, 64] {
            let mut count = 0;
            let results = map(
                &jobs,
                NonZeroUsize::new(threads).unwrap(),
                |&j| j,
                |&j| j * j,
                |_| count += 1,
            );
            assert_eq!(results, expected);
            assert_eq!(count, jobs.len());
        }
    }

    #[test]
    fn the_largest_job_starts_first() {
        let started = std::sync::Mutex::new(Vec::new());
        map(
            &[3_u64, 9, 1, 5],
            NonZeroUsize::MIN,
            |&j| j,
            |&j| started.lock().unwrap().push(j),
            |_| {},
        );
        assert_eq!(started.into_inner().unwrap(), [9, 5, 3, 1]);
    }

    #[test]
    fn no_jobs_give_no_results() {
        let none: Vec<u64> = map(&[], NonZeroUsize::MIN, |&j: &u64| j, |&j| j, |_| {});
        assert!(none.is_empty());
    }
}
