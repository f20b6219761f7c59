//! From a pipeline to its outcome: stages and streams become columns, one system runs them.

mod recur;
mod report;
mod turning;

use std::collections::BTreeMap;
use std::sync::Arc;

use cyclonest_arch::streaming::pipeline::{Pipeline, StageKind};
use specs::prelude::*;

use super::outcome::{Options, PipelineError, PipelineOutcome};
use super::stage::{Link, MemoryState, State};
use super::values::Kernel;
use report::report;
use turning::Turning;

/// A stage's state, as a component.
#[derive(Debug, Default)]
struct Machine(State);

impl Component for Machine {
    type Storage = DefaultVecStorage<Self>;
}

/// A link, as a component.
#[derive(Debug, Default)]
struct Stream(Link);

impl Component for Stream {
    type Storage = DefaultVecStorage<Self>;
}

/// Wiring: by position, readers before writers.
struct Wiring {
    inputs: Vec<Vec<usize>>,
    outputs: Vec<Vec<usize>>,
    /// Position of the link's writer and reader.
    ends: Vec<(usize, usize)>,
}

/// The system that runs the pipeline.
struct Run<'r> {
    wiring: &'r Wiring,
    options: Options,
    memory: MemoryState,
    /// Position of the sink that counts frames, and of the first source.
    sink: usize,
    source: usize,
    /// Pixels of all frames, where values are simulated.
    pixels: Option<Vec<Arc<[i64]>>>,
    result: Option<Ran>,
}

/// What the loop leaves.
struct Ran {
    last_move: u64,
    steps: u64,
    skipped: Option<(u64, u64, u64)>,
    values: Vec<Arc<[i64]>>,
    input_ends: Vec<u64>,
}

impl<'a> System<'a> for Run<'_> {
    type SystemData = (WriteStorage<'a, Machine>, WriteStorage<'a, Stream>);

    fn run(&mut self, (mut machines, mut streams): Self::SystemData) {
        // Links are moved out for the loop, so that stages see a plain slice.
        let streams = streams.as_mut_slice();
        let mut links: Vec<Link> = streams.iter_mut().map(|s| std::mem::take(&mut s.0)).collect();
        let wiring = self.wiring;
        let mut turning = Turning::new(self, wiring, machines.as_mut_slice(), &mut links);
        turning.run();
        let result = turning.finish();
        self.result = Some(result);
        for (stream, link) in streams.iter_mut().zip(links) {
            stream.0 = link;
        }
    }
}

/// Simulates a pipeline.
///
/// # Errors
/// If a stage is impossible or the pipeline deadlocks.
pub fn simulate(pipeline: &Pipeline, options: Options) -> Result<PipelineOutcome, PipelineError> {
    simulate_values(pipeline, options, &BTreeMap::new(), &[])
}

/// Simulates a pipeline of layers that compute: `kernels` by stage index, `frames` pixel by pixel. Frames are then not
/// skipped.
///
/// # Errors
/// As [`simulate`].
///
/// # Panics
/// If a firing reads a pixel that its line buffer does not hold: the windows of a stage would be wrong.
pub fn simulate_values(
    pipeline: &Pipeline,
    options: Options,
    kernels: &BTreeMap<usize, Kernel>,
    frames: &[Vec<Vec<i64>>],
) -> Result<PipelineOutcome, PipelineError> {
    let count = pipeline.stages.len();
    let position = |stage: usize| count - 1 - stage;
    if options.frames == 0 {
        return Err(PipelineError::Stage {
            stage: pipeline.stages.first().map_or_else(String::new, |s| s.name.clone()),
            message: "no frame to simulate".to_owned(),
        });
    }
    let mut wiring = Wiring {
        inputs: vec![Vec::new(); count],
        outputs: vec![Vec::new(); count],
        ends: Vec::with_capacity(pipeline.links.len()),
    };
    let stage_error = |stage: usize, message: String| PipelineError::Stage {
        stage: pipeline
            .stages
            .get(stage)
            .map_or_else(|| format!("number {stage}"), |s| s.name.clone()),
        message,
    };
    for (index, link) in pipeline.links.iter().enumerate() {
        if link.from >= link.to || link.to >= count {
            return Err(stage_error(link.from, "writers must stand before readers".to_owned()));
        }
        wiring.outputs[position(link.from)].push(index);
        wiring.inputs[position(link.to)].push(index);
        wiring.ends.push((position(link.from), position(link.to)));
    }
    let mut world = World::new();
    world.register::<Machine>();
    world.register::<Stream>();
    for at in 0..count {
        let index = count - 1 - at;
        let stage = &pipeline.stages[index];
        check_arity(&stage.kind, wiring.inputs[at].len(), wiring.outputs[at].len())
            .map_err(|message| stage_error(index, message))?;
        let depths: Vec<u64> = wiring.outputs[at].iter().map(|&l| pipeline.links[l].depth).collect();
        let mut state = State::new(&stage.kind, options.frames, wiring.inputs[at].len(), &depths)
            .map_err(|message| stage_error(index, message))?;
        if let (State::Layer(layer), Some(kernel)) = (&mut state, kernels.get(&index)) {
            layer.kernel = Some(kernel.clone());
        }
        let mut entity = world.create_entity().with(Machine(state));
        if at < pipeline.links.len() {
            entity = entity.with(Stream::default());
        }
        entity.build();
    }
    for _ in count..pipeline.links.len() {
        world.create_entity().with(Stream::default()).build();
    }
    let is_sink = |kind: &StageKind| matches!(kind, StageKind::Sink { .. } | StageKind::MemorySink { .. });
    let is_source = |kind: &StageKind| matches!(kind, StageKind::Source { .. } | StageKind::MemorySource { .. });
    let sink = pipeline.stages.iter().rposition(|s| is_sink(&s.kind));
    let source = pipeline.stages.iter().position(|s| is_source(&s.kind));
    let (Some(sink), Some(source)) = (sink, source) else {
        return Err(stage_error(0, "a pipeline needs a source and a sink".to_owned()));
    };
    let memory = pipeline.memory.map_or(
        MemoryState {
            ticks_per_cycle: 1,
            ..MemoryState::default()
        },
        |m| MemoryState {
            ticks_per_cycle: m.bits,
            ticks_per_bit: m.cycles,
            free: 0,
        },
    );
    let pixels = (!kernels.is_empty()).then(|| frames.iter().flatten().map(|p| Arc::from(p.as_slice())).collect());
    let mut run = Run {
        wiring: &wiring,
        options,
        memory,
        sink: position(sink),
        source: position(source),
        pixels,
        result: None,
    };
    run.run_now(&world);
    let ran = run.result.take().expect("the system has run");
    report(pipeline, options, &wiring, &world, ran, sink)
}

/// How many inputs and outputs a stage may have.
fn check_arity(kind: &StageKind, inputs: usize, outputs: usize) -> Result<(), String> {
    let fits = match kind {
        StageKind::Source { .. } | StageKind::MemorySource { .. } => inputs == 0 && outputs == 1,
        StageKind::Sink { .. } | StageKind::MemorySink { .. } => inputs == 1 && outputs == 0,
        StageKind::Layer(_) => inputs >= 1 && outputs >= 1,
        _ => inputs == 1 && outputs == 1,
    };
    if fits {
        Ok(())
    } else {
        Err(format!("cannot have {inputs} inputs and {outputs} outputs"))
    }
}
