//! The best designs, simulated cycle by cycle.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam::channel;
use cyclonest_scheduler::explore::{Kept, Space, mapped};
use cyclonest_sim::{FastForward, Options, simulate};
use serde::{Deserialize, Serialize};

/// A design as simulated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Simulated {
    /// Its number.
    pub(crate) design: u64,
    /// What was measured; or why nothing was.
    pub(crate) outcome: Result<Measured, String>,
}

/// Figures of all layers of a design.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Latency \[cycles\].
    pub(crate) cycles: u64,
    /// Bits of the energy: reading a log does not round them.
    energy_bits: u64,
}

impl Measured {
    /// Energy, in the technology's unit.
    pub(crate) fn energy(self) -> f64 {
        f64::from_bits(self.energy_bits)
    }
}

/// The designs to be simulated, ascending: the first of each list of the best, and as many points of the front, evenly
/// spread over it.
pub(super) fn selection(space: &Space, kept: &Kept) -> Vec<u64> {
    let verify = space.plan.verify;
    let mut numbers: Vec<u64> = kept
        .objectives()
        .flat_map(|objective| kept.best(objective).iter().take(verify))
        .map(|entry| entry.design)
        .collect();
    let front = kept.front();
    let points = verify.min(front.len());
    // Both ends, and equal steps between them.
    numbers.extend((0..points).map(|i| front[i * (front.len() - 1) / (points - 1).max(1)].design));
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Simulates designs on several threads and hands each to `finished`, on this thread, in whatever order.
pub(super) fn simulate_all(
    space: &Space,
    designs: &[u64],
    threads: NonZeroUsize,
    mut finished: impl FnMut(Simulated) -> ControlFlow<()>,
) {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (done, results) = channel::bounded(threads.get());
    let outcome = crossbeam::scope(|scope| {
        for _ in 0..threads.get().min(designs.len()) {
            let (done, next, stop) = (done.clone(), &next, &stop);
            scope.spawn(move |_| {
                while let Some(&design) = designs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = simulate_design(space, design);
                    if stop.load(Ordering::Relaxed) || done.send(Simulated { design, outcome }).is_err() {
                        break;
                    }
                }
            });
        }
        drop(done);
        for simulated in &results {
            if finished(simulated).is_break() {
                stop.store(true, Ordering::Relaxed);
                break;
            }
        }
        drop(results);
    });
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

/// All layers of a design.
fn simulate_design(space: &Space, design: u64) -> Result<Measured, String> {
    let options = Options {
        fast_forward: FastForward::On,
        ..Options::default()
    };
    let (mut cycles, mut energy) = (0_u64, 0.0);
    for (layer, (_, mapped)) in space.layers.iter().zip(mapped(space, design)?) {
        let outcome = simulate(&mapped.problem, &mapped.arch, &mapped.mapping, options)
            .map_err(|error| format!("{}: {error}", layer.name))?;
        cycles += layer.count * outcome.cycles;
        energy += layer.count as f64 * outcome.counts.energy_pj(&mapped.arch);
    }
    Ok(Measured {
        cycles,
        energy_bits: energy.to_bits(),
    })
}
