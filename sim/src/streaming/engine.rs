//! The loop over cycles.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use cyclonest_arch::streaming::pipeline::{Pipeline, StageKind};
use serde::{Deserialize, Serialize};
use specs::prelude::*;

use super::stage::{Io, Link, MemoryState, State, Waits, Wake};
use super::values::Kernel;

/// What to simulate.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Frames.
    pub frames: u64,
    /// Skip frames exactly where the state recurs.
    pub fast_forward: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            frames: 8,
            fast_forward: true,
        }
    }
}

/// Why there is no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PipelineError {
    /// A stage cannot exist or a stream does not fit it.
    #[error("stage `{stage}`: {message}")]
    Stage {
        /// Its name.
        stage: String,
        /// What is wrong.
        message: String,
    },
    /// Work is left and nothing can move.
    #[error("deadlock at cycle {cycle}: {}", .chain.join(" → "))]
    Deadlock {
        /// When the last stage moved.
        cycle: u64,
        /// Who waits for whom, and for what; the last waits for the first if it is a cycle.
        chain: Vec<String>,
        /// The links, by index, whose FIFO is full in the chain.
        full: Vec<usize>,
    },
}

/// When frames pass a point.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FrameTimes {
    /// The cycle of each simulated frame's last token; skipped frames are left out.
    pub ends: Vec<u64>,
}

/// What a link did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Writer.
    pub from: String,
    /// Reader.
    pub to: String,
    /// Tokens passed.
    pub transfers: u64,
    /// Cycle of the first and of the last token.
    pub span: (u64, u64),
    /// Cycles in which a token was offered and not taken: the reader was not ready.
    pub blocked: u64,
    /// Cycles after the first token in which none was offered: the reader could starve.
    pub empty: u64,
    /// Largest number of tokens in the writer's output FIFO, its output register included; 0 where it has none.
    pub high_water: u64,
}

/// What a stage did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageReport {
    /// Its name.
    pub name: String,
    /// Cycles in which its engine fired (layers).
    pub busy: u64,
    /// Cycle of its first firing: how long the pipeline took to fill up to it (layers).
    pub fill: u64,
    /// Cycles between its first firing and the end in which it did not fire for want of input, as seen at its inputs.
    pub starved: u64,
    /// Cycles in which a result of its was not taken.
    pub blocked: u64,
}

/// What a pipeline did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineOutcome {
    /// Cycles until the last token has left.
    pub cycles: u64,
    /// Frames that have left.
    pub frames: u64,
    /// Frames leaving, at the sink that is last.
    pub out: FrameTimes,
    /// Frames entering, at the first source.
    pub input: FrameTimes,
    /// Cycles until the first frame's last token has left, counted from cycle 0.
    pub first_frame: u64,
    /// Cycles per frame between the first and the last frame, as a fraction: cycles, frames.
    pub interval: (u64, u64),
    /// Stages, in the pipeline's order.
    pub stages: Vec<StageReport>,
    /// Links, in the pipeline's order.
    pub links: Vec<LinkReport>,
    /// Frames and cycles of the recurrence that was skipped, and how often; `None` if none was.
    pub skipped: Option<(u64, u64, u64)>,
    /// Stages stepped.
    pub steps: u64,
    /// Output frames, pixel by pixel, where values were simulated.
    pub values: Vec<Vec<Vec<i64>>>,
}

impl PipelineOutcome {
    /// Cycles per frame between the first and the last frame; the first frame's time if there was only one.
    #[must_use]
    pub fn interval(&self) -> f64 {
        #![allow(clippy::cast_precision_loss)]
        if self.interval.1 == 0 {
            self.first_frame as f64
        } else {
            self.interval.0 as f64 / self.interval.1 as f64
        }
    }
}

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

/// Stages to step, by position.
struct Awake(Vec<u64>);

impl Awake {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn add(&mut self, position: usize) {
        self.0[position / 64] |= 1 << (position % 64);
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|w| *w == 0)
    }

    /// Takes the lowest position out.
    fn pop(&mut self) -> Option<usize> {
        for (i, word) in self.0.iter_mut().enumerate() {
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(i * 64 + bit);
            }
        }
        None
    }
}

/// What is remembered of the end of a frame: cycle, frames done, counters.
struct Seen {
    now: u64,
    done: u64,
    counters: Vec<u64>,
}

/// The running loop.
struct Turning<'t> {
    wiring: &'t Wiring,
    options: Options,
    memory: MemoryState,
    sink: usize,
    pixels: Option<Vec<Arc<[i64]>>>,
    machines: &'t mut [Machine],
    links: &'t mut [Link],
    now: u64,
    awake: Awake,
    next: Awake,
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    steps: u64,
    last_move: u64,
    /// The link out of the first source, its tokens per frame and those that have passed.
    input: (usize, u64, u64),
    input_ends: Vec<u64>,
    values: Vec<Arc<[i64]>>,
    seen: BTreeMap<Vec<u64>, Seen>,
    frames_done: usize,
    skipped: Option<(u64, u64, u64)>,
}

impl<'t> Turning<'t> {
    fn new(run: &mut Run<'_>, wiring: &'t Wiring, machines: &'t mut [Machine], links: &'t mut [Link]) -> Self {
        let count = machines.len();
        let mut next = Awake::new(count);
        for (position, machine) in machines.iter().enumerate() {
            next.add(position);
            if machine.0.offers_at_start() {
                links[wiring.outputs[position][0]].valid = true;
            }
        }
        let input = wiring.outputs[run.source][0];
        let pixels = run.pixels.take();
        if let Some(pixels) = &pixels {
            links[input].value = pixels.first().cloned();
        }
        Self {
            wiring,
            options: run.options,
            memory: run.memory,
            sink: run.sink,
            pixels,
            input: (input, machines[run.source].0.frame_tokens().unwrap_or(1), 0),
            machines,
            links,
            now: 0,
            awake: Awake::new(count),
            next,
            timers: BinaryHeap::new(),
            steps: 0,
            last_move: 0,
            input_ends: Vec::new(),
            values: Vec::new(),
            seen: BTreeMap::new(),
            frames_done: 0,
            skipped: None,
        }
    }

    fn run(&mut self) {
        self.cycle();
        loop {
            self.now = if self.next.is_empty() {
                let Some(&Reverse((at, _))) = self.timers.peek() else {
                    break;
                };
                at
            } else {
                self.now + 1
            };
            self.cycle();
            if self.options.fast_forward && self.skipped.is_none() && self.pixels.is_none() {
                let done = self.machines[self.sink].0.received().map_or(0, |r| r.1.len());
                if done > self.frames_done {
                    self.frames_done = done;
                    self.skip(done as u64);
                }
            }
        }
    }

    /// Steps every stage that is awake, readers before writers.
    fn cycle(&mut self) {
        std::mem::swap(&mut self.awake, &mut self.next);
        while let Some(&Reverse((at, position))) = self.timers.peek() {
            if at > self.now {
                break;
            }
            self.timers.pop();
            self.awake.add(position);
        }
        let (mut offered, mut accepted) = (Vec::new(), Vec::new());
        while let Some(position) = self.awake.pop() {
            self.steps += 1;
            let mut io = Io {
                now: self.now,
                links: self.links,
                inputs: &self.wiring.inputs[position],
                outputs: &self.wiring.outputs[position],
                memory: &mut self.memory,
                offered: &mut offered,
                accepted: &mut accepted,
            };
            match self.machines[position].0.step(&mut io) {
                Wake::Next => self.next.add(position),
                Wake::At(at) => self.timers.push(Reverse((at, position))),
                Wake::Idle => {}
            }
            for link in offered.drain(..) {
                self.next.add(self.wiring.ends[link].1);
            }
            for link in accepted.drain(..) {
                self.last_move = self.now;
                self.awake.add(self.wiring.ends[link].0);
                if link == self.input.0 {
                    self.input.2 += 1;
                    if self.input.2.is_multiple_of(self.input.1) {
                        self.input_ends.push(self.now);
                    }
                }
                if let Some(pixels) = &self.pixels {
                    if self.wiring.ends[link].1 == self.sink
                        && let Some(value) = &self.links[link].value
                    {
                        self.values.push(value.clone());
                    }
                    if link == self.input.0 {
                        self.links[link].value = pixels.get(self.input.2 as usize).cloned();
                    }
                }
            }
        }
    }

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
    fn skip(&mut self, done: u64) {
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

    fn finish(self) -> Ran {
        Ran {
            last_move: self.last_move,
            steps: self.steps,
            skipped: self.skipped,
            values: self.values,
            input_ends: self.input_ends,
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

/// Collects what the columns hold after the run.
fn report(
    pipeline: &Pipeline,
    options: Options,
    wiring: &Wiring,
    world: &World,
    ran: Ran,
    sink: usize,
) -> Result<PipelineOutcome, PipelineError> {
    let count = pipeline.stages.len();
    let (machines, streams) = (world.read_storage::<Machine>(), world.read_storage::<Stream>());
    let (machines, streams) = (machines.as_slice(), streams.as_slice());
    let state = |stage: usize| &machines[count - 1 - stage].0;
    let (tokens, ends) = state(sink).received().expect("the sink is a sink");
    let frames = tokens / state(sink).frame_tokens().unwrap_or(1);
    if frames < options.frames {
        let (chain, full) = blame(pipeline, wiring, machines, sink);
        return Err(PipelineError::Deadlock {
            cycle: ran.last_move,
            chain,
            full,
        });
    }
    let end = ran.last_move;
    let mut link_reports = Vec::new();
    for (index, link) in pipeline.links.iter().enumerate() {
        let stream = &streams[index].0;
        let valid = stream.valid_cycles + if stream.valid { end + 1 - stream.valid_since } else { 0 };
        let high_water = match state(link.from) {
            State::Layer(layer) => {
                let output = wiring.outputs[count - 1 - link.from].iter().position(|&l| l == index);
                output.map_or(0, |o| layer.writers[o].high)
            }
            State::Fifo(fifo) => fifo.high,
            _ => 0,
        };
        let first = stream.first.unwrap_or(0);
        link_reports.push(LinkReport {
            from: pipeline.stages[link.from].name.clone(),
            to: pipeline.stages[link.to].name.clone(),
            transfers: stream.transfers,
            span: (first, stream.last),
            blocked: valid - stream.transfers,
            empty: (end + 1).saturating_sub(first).saturating_sub(valid),
            high_water,
        });
    }
    let stages = (0..count)
        .map(|stage| {
            let at = count - 1 - stage;
            let sum = |links: &[usize], f: fn(&LinkReport) -> u64| links.iter().map(|&l| f(&link_reports[l])).sum();
            StageReport {
                name: pipeline.stages[stage].name.clone(),
                busy: state(stage).busy(),
                fill: state(stage).first_firing().unwrap_or(0),
                starved: sum(&wiring.inputs[at], |l| l.empty),
                blocked: sum(&wiring.outputs[at], |l| l.blocked),
            }
        })
        .collect();
    let first_frame = ends[0] + 1;
    let last = *ends.last().expect("a frame has left");
    let per_frame = pipeline_frame(state(sink));
    let values: Vec<Vec<i64>> = ran.values.iter().map(|v| v.to_vec()).collect();
    Ok(PipelineOutcome {
        cycles: last + 1,
        frames,
        first_frame,
        interval: (last - ends[0], frames - 1),
        out: FrameTimes { ends: ends.to_vec() },
        input: FrameTimes { ends: ran.input_ends },
        stages,
        links: link_reports,
        skipped: ran.skipped,
        steps: ran.steps,
        values: values.chunks(per_frame).map(<[_]>::to_vec).collect(),
    })
}

fn pipeline_frame(sink: &State) -> usize {
    usize::try_from(sink.frame_tokens().unwrap_or(1)).unwrap_or(1).max(1)
}

/// Follows who waits for whom from the sink until a stage is met again.
fn blame(pipeline: &Pipeline, wiring: &Wiring, machines: &[Machine], sink: usize) -> (Vec<String>, Vec<usize>) {
    let count = pipeline.stages.len();
    let name = |position: usize| pipeline.stages[count - 1 - position].name.as_str();
    let mut visited: Vec<usize> = Vec::new();
    let mut chain = Vec::new();
    let mut full: Vec<Option<usize>> = Vec::new();
    let mut at = count - 1 - sink;
    loop {
        if let Some(start) = visited.iter().position(|&v| v == at) {
            // Only the cycle is to blame.
            return (
                chain.split_off(start),
                full.split_off(start).into_iter().flatten().collect(),
            );
        }
        visited.push(at);
        match machines[at].0.waits() {
            Waits::Input(i) => {
                let writer = wiring.ends[wiring.inputs[at][i]].0;
                chain.push(format!("`{}` waits for a token of `{}`", name(at), name(writer)));
                full.push(None);
                at = writer;
            }
            Waits::Output(o) => {
                let link = wiring.outputs[at][o];
                let reader = wiring.ends[link].1;
                let depth = pipeline.links[link].depth;
                chain.push(format!(
                    "`{}` waits for room in the FIFO of depth {depth} before `{}`",
                    name(at),
                    name(reader)
                ));
                full.push(Some(link));
                at = reader;
            }
            Waits::Done => {
                chain.push(format!("`{}` has nothing left to do", name(at)));
                return (chain, full.into_iter().flatten().collect());
            }
        }
    }
}
