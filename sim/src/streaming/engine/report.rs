//! What the columns hold after the run, and who is to blame if it has not ended.

use cyclonest_arch::streaming::pipeline::Pipeline;
use specs::prelude::*;

use super::{Machine, Ran, Stream, Wiring};
use crate::streaming::outcome::{FrameTimes, LinkReport, Options, PipelineError, PipelineOutcome, StageReport};
use crate::streaming::stage::{State, Waits};

/// Collects what the columns hold after the run.
pub(super) fn report(
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
