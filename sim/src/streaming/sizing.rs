//! Depths of FIFOs: the smallest that keep the interval, and those that resolve a deadlock.

use cyclonest_arch::streaming::pipeline::{Pipeline, StageKind};
use serde::{Deserialize, Serialize};

use super::engine::simulate;
use super::outcome::{Options, PipelineError};

/// Depths that were found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizing {
    /// Depth per link, in the pipeline's order.
    pub depths: Vec<u64>,
    /// Cycles between the first and the last frame: with unlimited FIFOs, and with these depths.
    pub cycles: (u64, u64),
    /// Pipelines simulated.
    pub simulations: u64,
}

/// Links whose writer has an output FIFO.
fn sized(pipeline: &Pipeline) -> Vec<usize> {
    (0..pipeline.links.len())
        .filter(|&l| matches!(pipeline.stages[pipeline.links[l].from].kind, StageKind::Layer(_)))
        .collect()
}

/// Pixels per frame that a link carries: no FIFO needs to hold more than two frames.
fn frame(pipeline: &Pipeline, link: usize) -> u64 {
    match pipeline.stages[pipeline.links[link].from].kind {
        StageKind::Layer(layer) => layer.output.0 * layer.output.1,
        _ => 1,
    }
}

/// The smallest depths at which the pipeline is as fast as with unlimited FIFOs: no single depth can be made smaller.
///
/// Depths are reduced one link after the other, in the pipeline's order, each by bisection; a smaller FIFO never makes
/// a pipeline faster, so bisection finds the smallest that keeps the interval given the others.
///
/// # Errors
/// If the pipeline deadlocks even with unlimited FIFOs.
pub fn size_fifos(pipeline: &Pipeline, frames: u64) -> Result<Sizing, PipelineError> {
    let options = Options {
        frames,
        fast_forward: true,
    };
    let mut trial = pipeline.clone();
    let links = sized(pipeline);
    for &link in &links {
        trial.links[link].depth = 2 * frame(pipeline, link);
    }
    let mut simulations = 1;
    let free = simulate(&trial, options)?;
    let target = free.interval.0;
    // What was never in use is not needed.
    for &link in &links {
        trial.links[link].depth = free.links[link].high_water.saturating_sub(1);
    }
    let mut keeps = |trial: &Pipeline| {
        simulations += 1;
        simulate(trial, options).is_ok_and(|o| o.interval.0 <= target)
    };
    for &link in &links {
        let (mut low, mut high) = (0, trial.links[link].depth);
        while low < high {
            let middle = low + (high - low) / 2;
            trial.links[link].depth = middle;
            if keeps(&trial) { high = middle } else { low = middle + 1 }
        }
        trial.links[link].depth = high;
    }
    let sized = simulate(&trial, options)?;
    Ok(Sizing {
        depths: trial.links.iter().map(|l| l.depth).collect(),
        cycles: (target, sized.interval.0),
        simulations: simulations + 1,
    })
}

/// The FIFOs whose depth must grow for the pipeline to run through, with the least depths that do, starting from the
/// full ones of the first deadlock and adding those of each further one; `None` if two frames do not suffice.
#[must_use]
pub fn resolve_deadlock(pipeline: &Pipeline, full: &[usize], frames: u64) -> Option<Vec<(usize, u64)>> {
    let options = Options {
        frames,
        fast_forward: true,
    };
    let run = |depths: &[(usize, u64)]| {
        let mut trial = pipeline.clone();
        for &(link, depth) in depths {
            trial.links[link].depth = depth;
        }
        simulate(&trial, options)
    };
    let mut depths: Vec<(usize, u64)> = Vec::new();
    let mut more = full.to_vec();
    loop {
        let known = depths.len();
        for &link in &more {
            if depths.iter().all(|d| d.0 != link) {
                depths.push((link, 2 * frame(pipeline, link)));
            }
        }
        if depths.len() == known {
            return None;
        }
        match run(&depths) {
            Ok(_) => break,
            Err(PipelineError::Deadlock { full, .. }) => more = full,
            Err(PipelineError::Stage { .. }) => return None,
        }
    }
    for i in 0..depths.len() {
        let (mut low, mut high) = (pipeline.links[depths[i].0].depth, depths[i].1);
        while low < high {
            let middle = low + (high - low) / 2;
            depths[i].1 = middle;
            if run(&depths).is_ok() {
                high = middle
            } else {
                low = middle + 1
            }
        }
        depths[i].1 = high;
    }
    Some(depths)
}
