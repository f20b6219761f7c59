//! A node at pixel granularity: a reader per input with a bounded line buffer, and an engine that fires once per
//! output pixel.

use std::collections::VecDeque;
use std::sync::Arc;

use cyclonest_arch::streaming::pipeline;

use super::{Io, Step, Waits, Wake};
use crate::streaming::values::Kernel;

/// Windows of one frame, by firing.
#[derive(Debug, Clone)]
struct Windows {
    /// Pixels of the frame that must have arrived.
    need: Vec<u32>,
    /// First pixel of the frame that is still in use.
    keep: Vec<u32>,
}

/// One input.
#[derive(Debug, Clone, Default)]
struct Reader {
    /// Pixels taken since the start.
    arrived: u64,
    /// The reader is busy until then: the pixel taken last is complete in the cycle before.
    free: u64,
    /// Pixels held, oldest first, where values are simulated; the first has index `base`.
    pixels: VecDeque<Arc<[i64]>>,
    base: u64,
}

/// One output.
#[derive(Debug, Clone, Default)]
pub(in crate::streaming) struct Writer {
    /// Pixels that the FIFO holds, besides the engine's output register.
    depth: u64,
    /// Pixels that wait, the one on offer included.
    queued: u64,
    /// Largest number of slots in use.
    pub(in crate::streaming) high: u64,
    values: VecDeque<Arc<[i64]>>,
}

/// State.
#[derive(Debug, Clone)]
pub(in crate::streaming) struct Layer {
    shape: pipeline::Layer,
    windows: Windows,
    readers: Vec<Reader>,
    pub(in crate::streaming) writers: Vec<Writer>,
    /// Firings started since the start.
    started: u64,
    /// The firing in progress ends then.
    ends: Option<u64>,
    /// Cycles in which the engine fired.
    pub(in crate::streaming) busy: u64,
    /// Cycle of the first firing.
    pub(in crate::streaming) first_firing: Option<u64>,
    waits: Waits,
    result: Option<Arc<[i64]>>,
    pub(in crate::streaming) kernel: Option<Kernel>,
}

impl Layer {
    pub(super) fn new(shape: pipeline::Layer, inputs: usize, depths: &[u64]) -> Result<Self, String> {
        let windows = windows(&shape);
        let held = windows
            .need
            .iter()
            .zip(&windows.keep)
            .map(|(n, k)| u64::from(n.saturating_sub(*k)))
            .max()
            .unwrap_or(0);
        if held > shape.buffer {
            return Err(format!(
                "a window spans {held} pixels, the line buffer holds {}",
                shape.buffer
            ));
        }
        Ok(Self {
            shape,
            windows,
            readers: vec![Reader::default(); inputs],
            writers: depths
                .iter()
                .map(|&depth| Writer {
                    depth,
                    ..Writer::default()
                })
                .collect(),
            started: 0,
            ends: None,
            busy: 0,
            first_firing: None,
            waits: Waits::Input(0),
            result: None,
            kernel: None,
        })
    }

    const fn firings(&self) -> u64 {
        self.shape.output.0 * self.shape.output.1
    }

    const fn pixels(&self) -> u64 {
        self.shape.input.0 * self.shape.input.1
    }

    /// Pixels that must have arrived before firing j.
    fn need(&self, j: u64) -> u64 {
        let n = self.firings();
        j / n * self.pixels() + u64::from(self.windows.need[(j % n) as usize])
    }

    /// First pixel that firing j or a later one uses.
    fn keep(&self, j: u64) -> u64 {
        let n = self.firings();
        j / n * self.pixels() + u64::from(self.windows.keep[(j % n) as usize])
    }

    /// Pixels that a firing may use: a window needs complete pixels, a node without one computes along as their words
    /// arrive.
    fn usable(&self, input: usize, now: u64) -> u64 {
        let reader = &self.readers[input];
        let incomplete = self.shape.kernel != (1, 1) && reader.free > now + 1;
        reader.arrived - u64::from(incomplete)
    }

    /// Cycles of reading pixel p.
    const fn read_duration(&self, p: u64) -> u64 {
        let n = self.pixels();
        let at = p % n;
        (at + 1) * self.shape.read_cycles / n - at * self.shape.read_cycles / n
    }

    /// Cycles of firing j.
    const fn duration(&self, j: u64) -> u64 {
        let n = self.firings();
        let at = j % n;
        (at + 1) * self.shape.cycles / n - at * self.shape.cycles / n
    }
}

/// Need and keep of every firing of a frame, clipped to the map.
fn windows(shape: &pipeline::Layer) -> Windows {
    let (rows, columns) = shape.input;
    let [top, left, ..] = shape.pads;
    let mut need = Vec::new();
    let mut keep = Vec::new();
    for y in 0..shape.output.0 {
        for x in 0..shape.output.1 {
            let last_row = (y * shape.stride.0 + shape.kernel.0).saturating_sub(top).min(rows);
            let last_column = if shape.whole_rows {
                columns
            } else {
                (x * shape.stride.1 + shape.kernel.1).saturating_sub(left).min(columns)
            };
            // A window among the zeros uses no pixel: what it keeps is up to the windows after it.
            let outside = last_row == 0
                || last_column == 0
                || y * shape.stride.0 >= top + rows
                || x * shape.stride.1 >= left + columns;
            let first_row = (y * shape.stride.0).saturating_sub(top);
            // Line buffers let go of whole rows.
            let first_column = if shape.kernel == (1, 1) {
                (x * shape.stride.1).saturating_sub(left)
            } else {
                0
            };
            need.push(if outside {
                0
            } else {
                ((last_row - 1) * columns + last_column) as u32
            });
            keep.push(if outside {
                (rows * columns) as u32
            } else {
                (first_row * columns + first_column) as u32
            });
        }
    }
    // A later window may begin further left or, clipped, higher up.
    for j in (1..keep.len()).rev() {
        keep[j - 1] = keep[j - 1].min(keep[j]);
    }
    for j in 1..need.len() {
        need[j] = need[j].max(need[j - 1]);
    }
    Windows { need, keep }
}

impl Step for Layer {
    fn step(&mut self, io: &mut Io<'_>) -> Wake {
        let now = io.now;
        for o in 0..self.writers.len() {
            if io.is_taken(o) {
                self.writers[o].queued -= 1;
                self.writers[o].values.pop_front();
            }
        }
        if self.ends == Some(now) {
            self.ends = None;
            for writer in &mut self.writers {
                writer.queued += 1;
                if let Some(result) = &self.result {
                    writer.values.push_back(result.clone());
                }
            }
        }
        // The window of a firing in progress is still in use.
        let using = if self.ends.is_some() {
            self.started - 1
        } else {
            self.started
        };
        let mut wake: Option<u64> = None;
        let limit = self.keep(using) + self.shape.buffer;
        for i in 0..self.readers.len() {
            if io.is_valid(i) && self.readers[i].arrived < limit {
                if self.readers[i].free > now {
                    let at = self.readers[i].free;
                    wake = Some(wake.map_or(at, |w| w.min(at)));
                } else {
                    if self.kernel.is_some() {
                        let value = io.links[io.inputs[i]]
                            .value
                            .clone()
                            .expect("values are simulated everywhere");
                        self.readers[i].pixels.push_back(value);
                    }
                    io.take(i);
                    self.readers[i].free = now + self.read_duration(self.readers[i].arrived);
                    self.readers[i].arrived += 1;
                }
            }
        }
        if self.ends.is_none() {
            let need = self.need(self.started);
            let missing = (0..self.readers.len()).position(|i| self.usable(i, now) < need);
            let full = self.writers.iter().position(|w| w.queued > w.depth);
            match (missing, full) {
                (Some(i), _) => {
                    self.waits = Waits::Input(i);
                    if self.readers[i].arrived >= need {
                        let complete = self.readers[i].free - 1;
                        wake = Some(wake.map_or(complete, |w| w.min(complete)));
                    }
                }
                (None, Some(o)) => self.waits = Waits::Output(o),
                (None, None) => {
                    let duration = self.duration(self.started);
                    self.fire();
                    self.first_firing.get_or_insert(now);
                    self.busy += duration;
                    self.started += 1;
                    self.ends = Some(now + duration.max(1));
                    for writer in &mut self.writers {
                        writer.high = writer.high.max(writer.queued + 1);
                    }
                }
            }
        }
        for o in 0..self.writers.len() {
            let out = io.outputs[o];
            io.links[out].value = self.writers[o].values.front().cloned();
            io.offer(o, self.writers[o].queued > 0);
        }
        if let Some(ends) = self.ends {
            wake = Some(wake.map_or(ends, |w| w.min(ends)));
        }
        // Room for more pixels may open when the firing that has just started lets go of older ones.
        wake.map_or(Wake::Idle, Wake::At)
    }

    fn key(&self, now: u64, key: &mut Vec<u64>) {
        let pixels = self.pixels();
        let frame = self.started / self.firings();
        key.push(self.started % self.firings());
        key.push(self.ends.map_or(u64::MAX, |e| e - now));
        // A stride may leave the frame's last pixels unread when the next frame is due: the difference may be negative.
        for reader in &self.readers {
            key.extend([
                reader.arrived.wrapping_sub(frame * pixels),
                reader.free.saturating_sub(now),
            ]);
        }
        key.extend(self.writers.iter().map(|w| w.queued));
    }

    fn shift(&mut self, frames: u64, cycles: u64) {
        self.started += frames * self.firings();
        if let Some(ends) = &mut self.ends {
            *ends += cycles;
        }
        for reader in &mut self.readers {
            reader.arrived += frames * self.shape.input.0 * self.shape.input.1;
            reader.free += cycles;
        }
    }

    fn waits(&self) -> Waits {
        self.waits
    }
}

impl Layer {
    /// Computes the pixel of the firing that starts, from the pixels that the line buffers hold.
    fn fire(&mut self) {
        let Some(kernel) = &self.kernel else { return };
        let firing = self.started % self.firings();
        let frame_base = self.started / self.firings() * self.pixels();
        let keep = self.keep(self.started);
        for reader in &mut self.readers {
            // What no window uses any more is overwritten.
            while reader.base < keep && !reader.pixels.is_empty() {
                reader.pixels.pop_front();
                reader.base += 1;
            }
        }
        let (y, x) = (firing / self.shape.output.1, firing % self.shape.output.1);
        let shape = &self.shape;
        let readers = &self.readers;
        let pixel = |input: usize, row: i64, column: i64| -> Option<&[i64]> {
            let (row, column) = (u64::try_from(row).ok()?, u64::try_from(column).ok()?);
            if row >= shape.input.0 || column >= shape.input.1 {
                return None;
            }
            let index = frame_base + row * shape.input.1 + column;
            let reader = &readers[input];
            let held = index
                .checked_sub(reader.base)
                .and_then(|at| reader.pixels.get(at as usize));
            Some(held.expect("a window's pixels are in the line buffer"))
        };
        let origin = (
            (y * shape.stride.0) as i64 - shape.pads[0] as i64,
            (x * shape.stride.1) as i64 - shape.pads[1] as i64,
        );
        self.result = Some(
            kernel
                .fire(origin, shape.kernel, shape.input, readers.len(), &pixel)
                .into(),
        );
    }
}
