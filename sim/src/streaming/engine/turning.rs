//! The loop over cycles.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use super::recur::Seen;
use super::{Link, Machine, MemoryState, Options, Ran, Run, Wiring};
use crate::streaming::stage::{Io, Wake};

/// Stages to step, by position.
pub(super) struct Awake(pub(super) Vec<u64>);

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

/// The running loop.
pub(super) struct Turning<'t> {
    pub(super) wiring: &'t Wiring,
    pub(super) options: Options,
    pub(super) memory: MemoryState,
    pub(super) sink: usize,
    pub(super) pixels: Option<Vec<Arc<[i64]>>>,
    pub(super) machines: &'t mut [Machine],
    pub(super) links: &'t mut [Link],
    pub(super) now: u64,
    pub(super) awake: Awake,
    pub(super) next: Awake,
    pub(super) timers: BinaryHeap<Reverse<(u64, usize)>>,
    pub(super) steps: u64,
    pub(super) last_move: u64,
    /// The link out of the first source, its tokens per frame and those that have passed.
    pub(super) input: (usize, u64, u64),
    pub(super) input_ends: Vec<u64>,
    pub(super) values: Vec<Arc<[i64]>>,
    pub(super) seen: BTreeMap<Vec<u64>, Seen>,
    pub(super) frames_done: usize,
    pub(super) skipped: Option<(u64, u64, u64)>,
}

impl<'t> Turning<'t> {
    pub(super) fn new(
        run: &mut Run<'_>,
        wiring: &'t Wiring,
        machines: &'t mut [Machine],
        links: &'t mut [Link],
    ) -> Self {
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

    pub(super) fn run(&mut self) {
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

    pub(super) fn finish(self) -> Ran {
        Ran {
            last_move: self.last_move,
            steps: self.steps,
            skipped: self.skipped,
            values: self.values,
            input_ends: self.input_ends,
        }
    }
}
