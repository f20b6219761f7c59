//! `exact`: element-exact counts for any mapping, and latency from the occupancy of every port and network.
//!
//! **Counts** are those of the simulator, to the element, without going through the steps. The settings of the
//! loops outside a level are mixed-radix numbers per dimension, of which those below the bound exist; residencies,
//! multicast groups and reduction streams are counted per dimension and multiplied ([`nest`], [`classes`]). Only
//! the overlaps of input tiles couple dimensions; there one pass over a block of steps per equivalence class of its
//! surroundings is needed ([`walk`]). Imperfect factors, strides larger than the kernel, dilation, padding, diagonal
//! sharing of P×R, halo reuse, bypass and mixed multicast degrees are all within.
//!
//! **Latency** comes in two forms:
//!
//! - *rehearsed* ([`rehearsal`]), what the model says: the loop nest is gone through with the first and the last PE
//!   only, and loops whose iterations repeat are skipped;
//! - *closed* ([`latency`]), what searches ask (`exact:quick`): the largest of compute, ports and channels per loop,
//!   the waits that single slots and partial sums expose, first fill and last drain.
//!
//! Known faults, of the latencies only. Rehearsed: PEs between the first and the last are taken to drift apart no
//! further than these; which of several drains is a read-modify-write (rule 19) is not followed, all take the mean
//! share of the read port; spatial factors that a bound clips are spread evenly over the steps; a loop whose waits do
//! not repeat is averaged over the iterations that were gone through. Closed: all PEs are taken to run in step; a
//! transfer is taken not to queue behind those of other tensors except at the start and where the resource is the
//! bottleneck; tile sizes are averaged where edges are clipped, so bursts and transfers of uneven length hide each
//! other too well.
//!
//! Inputs that the PE level bypasses and a level inside it keeps are counted step by step ([`stepped`]), and refused
//! with an error if there are more than ten million iterations.

mod axis;
mod bound;
mod burst;
mod classes;
mod flow;
mod groups;
mod hardware;
mod joined;
mod latency;
mod nest;
mod rehearsal;
mod rows;
mod stepped;
mod tally;
mod traffic;
mod walk;
mod window;

use cyclonest_arch::{Accelerator, Counts, Mapping};
use cyclonest_workloads::Problem;

pub use self::bound::lower_bound;
use self::hardware::{Hardware, keeps};
use self::latency::{Latency, Parts, Timing};
use self::nest::Nest;
use self::tally::Tally;
use self::traffic::Traffic;
use super::{CostError, CostModel, Estimate};

/// Evaluates one mapping after the other and keeps its memory: no allocation once it has seen mappings of the kind.
#[derive(Debug, Clone, Default)]
pub struct Evaluator {
    nest: Nest,
    hardware: Hardware,
    traffic: Traffic,
    tally: Tally,
    timing: Timing,
    latency: Latency,
    parts: Parts,
    rehearsal: rehearsal::Rehearsal,
}

impl Evaluator {
    /// An evaluator that has not seen a mapping yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Evaluates `mapping`; the results are then read from the evaluator. Capacities and mesh sizes are not checked.
    ///
    /// # Errors
    /// If the mapping does not have the machine's levels or its loops do not cover the problem.
    pub fn evaluate(&mut self, problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<(), CostError> {
        self.nest.set(problem, arch, mapping)?;
        self.hardware.set(arch);
        self.tally.clear(arch.levels.len());
        self.traffic
            .count(&self.nest, problem, mapping, &self.hardware, &mut self.tally)?;
        burst::count(&self.nest, problem, &self.hardware, &mut self.tally);
        self.timing.set(arch);
        self.parts = self.latency.estimate(
            &self.nest,
            &self.timing,
            &self.hardware,
            &self.traffic.flows,
            &self.tally,
        );
        Ok(())
    }

    /// Rehearsed latency of `mapping` \[cycles\]; its counts are not needed. Bursts of one PE that are gone through before
    /// loops are skipped: `bursts`; more are slower and, where loops do not repeat exactly, more accurate.
    ///
    /// # Errors
    /// If the mapping does not have the machine's levels, its loops do not cover the problem, or it has more loops than
    /// the model takes.
    pub fn rehearse(
        &mut self,
        problem: &Problem,
        arch: &Accelerator,
        mapping: &Mapping,
        bursts: usize,
    ) -> Result<f64, CostError> {
        self.nest.set(problem, arch, mapping)?;
        self.hardware.set(arch);
        self.timing.set(arch);
        let keeps = keeps(mapping);
        self.rehearsal
            .run(&self.nest, problem, &keeps, &self.hardware, &self.timing, bursts)
    }

    /// Latency of the last mapping in closed form \[cycles\].
    #[must_use]
    pub fn cycles(&self) -> f64 {
        self.parts.cycles
    }

    /// The counts of the last mapping, which was evaluated on `arch`.
    #[must_use]
    pub fn counts(&self, arch: &Accelerator) -> Counts {
        self.tally.to_counts(arch)
    }

    /// Named parts of the last latency in closed form \[cycles\]: `compute` (bursts alone), `steady` (bursts, waits and the busiest
    /// resource), `first fill`, `last drain`, and `busiest` with the name of that resource.
    #[must_use]
    pub fn parts(&self, arch: &Accelerator) -> Vec<(String, f64)> {
        let parts = &self.parts;
        let mut named = vec![
            ("compute".to_owned(), parts.compute),
            ("steady".to_owned(), parts.steady),
            ("first fill".to_owned(), parts.first_fill),
            ("last drain".to_owned(), parts.last_drain),
        ];
        if parts.busiest > 0.0 {
            let name = latency::resource_name(arch, parts.busiest_at);
            named.push((format!("busiest: {name}"), parts.busiest));
        }
        named
    }
}

/// Bursts that [`Exact`] goes through at least where a mapping has as many.
pub const BURSTS: usize = 512;

/// The model: counts, and the rehearsed latency.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exact;

/// The same counts, and the latency in closed form: what searches ask many times.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quick;

thread_local! {
    static EVALUATOR: std::cell::RefCell<Evaluator> = std::cell::RefCell::default();
}

fn evaluate(problem: &Problem, arch: &Accelerator, mapping: &Mapping, rehearsed: bool) -> Result<Estimate, CostError> {
    EVALUATOR.with_borrow_mut(|evaluator| {
        evaluator.evaluate(problem, arch, mapping)?;
        let counts = evaluator.counts(arch);
        let closed = evaluator.cycles();
        let parts = evaluator.parts(arch);
        let cycles = match rehearsed {
            // No schedule is shorter than its busiest port or channel is taken (here on the mean over steps). The rehearsal loses sight of drains that
            // pile up where its loops do not repeat.
            true => evaluator
                .rehearse(problem, arch, mapping, BURSTS)?
                .max(evaluator.parts.busiest),
            false => closed,
        };
        Ok(Estimate {
            cycles,
            energy_pj: counts.energy_pj(arch),
            counts: Some(counts),
            parts,
        })
    })
}

impl CostModel for Exact {
    fn name(&self) -> &str {
        "exact"
    }

    fn evaluate(&self, problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Estimate, CostError> {
        evaluate(problem, arch, mapping, true)
    }
}

impl CostModel for Quick {
    fn name(&self) -> &str {
        "exact:quick"
    }

    fn evaluate(&self, problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Estimate, CostError> {
        evaluate(problem, arch, mapping, false)
    }
}
