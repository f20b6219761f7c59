//! Direct convolution without packing: filters in lanes, windows broadcast from the input where it lies.
//!
//! Filters are cut into groups of up to four vectors of 16, an output row into tiles of up to 28 accumulators. For every
//! group: a strip of tiles small enough for its sums to stay in a cache; for every block of channels whose filters stay in
//! L2 (a quarter of it): all tiles of the strip. Filters of the next block and the next input row are fetched meanwhile. Filter rows and columns that meet only padding are skipped. Sums live as
//! [block][window][16]; that is the output layout nChw16c itself, and for NCHW a scratch that is transposed in registers
//! when the strip is done.

mod kernel;
mod transpose;

use kernel::{Access, MOST_WINDOWS, TileArgs, TileFn, kernel};
use transpose::transpose;

use crate::{
    Caches, ConvShape, Layout, Padding,
    layout::BLOCK,
    plan::{Clock, Executor, Job},
    scratch::Aligned,
};

/// A shape prepared for direct convolution.
#[derive(Debug)]
pub(crate) struct Direct {
    shape: ConvShape,
    input: Layout,
    output: Layout,
    groups: Vec<FilterGroup>,
    /// Tiles of an output row, left to right.
    tiles: Vec<Tile>,
    /// [tile][tap]: windows of the tile whose column is inside the input.
    masks: Vec<u16>,
    rows: Vec<Row>,
    /// Channels of a block.
    channels: usize,
    /// Tiles of a strip, over all rows.
    strip: usize,
    access: Access,
}

/// Filters that are computed together.
#[derive(Debug, Clone, Copy)]
struct FilterGroup {
    /// First block of 16 filters.
    first: usize,
    /// Blocks of 16.
    blocks: usize,
}

#[derive(Debug, Clone, Copy)]
struct Tile {
    /// First output column.
    q: usize,
    windows: usize,
    edge: bool,
}

/// Filter rows of an output row that meet the input.
#[derive(Debug, Clone, Copy)]
struct Row {
    first: usize,
    count: usize,
}

impl Direct {
    /// Plans a valid shape; one group if a layout is blocked.
    pub(crate) fn new(shape: ConvShape, input: Layout, output: Layout, caches: &Caches) -> Self {
        // The windows of a pointwise convolution are one long row.
        let shape = if shape.is_pointwise() {
            ConvShape {
                height: 1,
                width: shape.height * shape.width,
                ..shape
            }
        } else {
            shape
        };
        let blocks = shape.group_filters().div_ceil(BLOCK);
        let groups = even(blocks, 4)
            .map(|(first, blocks)| FilterGroup { first, blocks })
            .collect::<Vec<_>>();
        let widest = groups.iter().map(|group| group.blocks).max().unwrap_or(1);
        let (p, q) = shape.output();
        let mut tiles = Vec::new();
        let mut masks = Vec::new();
        for (q, windows) in even(q, MOST_WINDOWS[widest]) {
            let start = masks.len();
            masks.extend((0..shape.kernel.1).map(|s| column_mask(&shape, q, windows, s)));
            let edge = masks[start..]
                .iter()
                .any(|mask| *mask != ((1u32 << windows) - 1) as u16);
            tiles.push(Tile { q, windows, edge });
        }
        let rows = (0..p).map(|p| filter_rows(&shape, p)).collect();

        let per_channel = widest * BLOCK * shape.taps() * size_of::<f32>();
        let all = shape.group_channels();
        let most = (caches.l2 / 4 / per_channel).clamp(1, all);
        let mut channels = all.div_ceil(all.div_ceil(most));
        if input == Layout::Nchw16c && channels < all {
            channels = channels.next_multiple_of(BLOCK);
        }
        // Sums of a strip: L1's other half if they are visited once, else a quarter of L2.
        let budget = if channels >= all { caches.l1 / 2 } else { caches.l1 * 8 };
        let tile_bytes = MOST_WINDOWS[widest] * widest * BLOCK * size_of::<f32>();
        let strip = (budget / tile_bytes).max(1).min(p * tiles.len());
        let plain = |stride| input == Layout::Nchw && shape.stride.1 == stride;
        let access = if shape.kernel == (1, 1) && shape.padding == Padding::default() && plain(1) {
            Access::Pointwise
        } else if shape.kernel == (1, 1)
            && shape.padding == Padding::default()
            && input == Layout::Nchw16c
            && shape.stride.1 == 1
        {
            Access::PointwiseBlocked
        } else if plain(1) {
            Access::Unit
        } else if plain(2) {
            Access::Two
        } else if input == Layout::Nchw16c && shape.stride.1 == 1 {
            Access::Blocked
        } else {
            Access::Any
        };
        Direct {
            shape,
            input,
            output,
            groups,
            tiles,
            masks,
            rows,
            channels,
            strip,
            access,
        }
    }

    fn strips(&self) -> usize {
        (self.rows.len() * self.tiles.len()).div_ceil(self.strip)
    }

    /// First window of tile `index` (over all rows); the number of windows for the index past the last.
    fn window(&self, index: usize) -> usize {
        let (p, q) = self.shape.output();
        let row = index / self.tiles.len();
        if row >= p {
            p * q
        } else {
            row * q + self.tiles[index % self.tiles.len()].q
        }
    }

    /// Elements of a group's packed filters per block.
    fn block_len(&self) -> usize {
        self.shape.group_channels() * self.shape.taps() * BLOCK
    }

    /// One group of filters on one strip of tiles.
    ///
    /// # Safety
    /// As [`Executor::run`].
    unsafe fn strip(&self, job: &Job, group: FilterGroup, strip: usize, scratch: &mut Aligned) {
        let shape = &self.shape;
        let tiles = strip * self.strip..((strip + 1) * self.strip).min(self.rows.len() * self.tiles.len());
        let (first, end) = (self.window(tiles.start), self.window(tiles.end));
        let windows = shape.windows();
        let (sums, block_stride) = match self.output {
            Layout::Nchw => (scratch.as_mut_ptr(), (end - first) * BLOCK),
            Layout::Nchw16c => (
                job.output.wrapping_add((group.first * windows + first) * BLOCK),
                windows * BLOCK,
            ),
        };
        let plane = shape.height * shape.width;
        // Elements between columns, between channels of a run, and between runs.
        let (column, channel_stride, run, run_stride) = match self.input {
            Layout::Nchw => (1, plane, usize::MAX, 0),
            Layout::Nchw16c => (BLOCK, 1, BLOCK, plane * BLOCK),
        };
        let filters = job.filters.wrapping_add(group.first * self.block_len());
        let tap_len = group.blocks * BLOCK;
        let kernels = |tile: &Tile| kernel(self.access, group.blocks, tile.windows, tile.edge);
        // Few distinct kernels: look each up once per strip.
        let mut known: [Option<(usize, bool, TileFn)>; 4] = [None; 4];
        for c0 in (0..shape.group_channels()).step_by(self.channels) {
            // Blocks start at multiples of 16 in a blocked layout.
            let base = c0 * plane;
            for index in tiles.clone() {
                let (p, tile) = (index / self.tiles.len(), &self.tiles[index % self.tiles.len()]);
                let slot = known.iter().position(|known| {
                    known.is_none_or(|(windows, edge, _)| (windows, edge) == (tile.windows, tile.edge))
                });
                let run_tile = match slot {
                    Some(slot) => {
                        known[slot]
                            .get_or_insert_with(|| (tile.windows, tile.edge, kernels(tile)))
                            .2
                    }
                    None => kernels(tile),
                };
                let row = self.rows[p];
                let y = (p * shape.stride.0 + row.first * shape.dilation.0) as isize - shape.padding.top as isize;
                let x = (tile.q * shape.stride.1) as isize - shape.padding.left as isize;
                // The first tiles of a pass fetch the next block of filters, which follows this one in memory.
                let channels = self.channels.min(shape.group_channels() - c0);
                let block = channels * shape.taps() * tap_len;
                let part = (index - tiles.start).min(group.blocks - 1) * block / group.blocks;
                let (ahead, ahead_stride) = match self.input {
                    Layout::Nchw if shape.kernel.0 == 1 => (2 * tile.windows * shape.stride.1, plane),
                    Layout::Nchw => (row.count * shape.dilation.0 * shape.width, plane),
                    Layout::Nchw16c => (row.count * shape.dilation.0 * shape.width * BLOCK, BLOCK),
                };
                let window = index_window(p, tile.q, shape.output().1) - first;
                let input = job
                    .input
                    .wrapping_add(base)
                    .wrapping_offset((y * shape.width as isize + x) * column as isize);
                let args = TileArgs {
                    input,
                    filters: filters.wrapping_add((c0 * shape.taps() + row.first * shape.kernel.1) * tap_len),
                    channels,
                    run,
                    channel_stride,
                    run_stride,
                    rows: row.count,
                    row_stride: shape.dilation.0 * shape.width * column,
                    taps: shape.kernel.1,
                    tap_stride: shape.dilation.1 * column,
                    window_stride: shape.stride.1 * column,
                    skip: (shape.kernel.0 - row.count) * shape.kernel.1 * tap_len,
                    masks: self.masks[index % self.tiles.len() * shape.kernel.1..].as_ptr(),
                    filters_ahead: filters.wrapping_add(c0 * shape.taps() * tap_len + block + part),
                    input_ahead: input.wrapping_add(ahead),
                    ahead_stride,
                    output: sums.wrapping_add(window * BLOCK),
                    block_stride,
                    accumulate: c0 > 0,
                };
                // SAFETY: rows and masks keep every access inside the input, tiles are clipped at the output's bounds, the
                // sums have room for the strip, and the plan requires AVX-512.
                unsafe { run_tile(&args) };
            }
        }
        if self.output == Layout::Nchw {
            for b in 0..group.blocks {
                let k = (group.first + b) * BLOCK;
                let count = BLOCK.min(shape.group_filters() - k);
                let target = job.output.wrapping_add(k * windows + first);
                // SAFETY: the strip's sums of block b were all written above; the target rows are this group's.
                unsafe {
                    transpose(
                        sums.cast_const().wrapping_add(b * block_stride),
                        end - first,
                        target,
                        windows,
                        count,
                    )
                };
            }
        }
    }
}

fn index_window(p: usize, q: usize, columns: usize) -> usize {
    p * columns + q
}

impl Executor for Direct {
    fn units(&self) -> usize {
        self.groups.len() * self.strips()
    }

    fn filters_len(&self) -> usize {
        self.shape.groups * self.shape.group_filters().div_ceil(BLOCK) * self.block_len()
    }

    /// [G][filter group][C][R][S][blocks·16].
    fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        let depth = self.shape.group_channels() * self.shape.taps();
        let per_group = self.filters_len() / self.shape.groups;
        for (g, packed) in packed.chunks_exact_mut(per_group).enumerate() {
            for group in &self.groups {
                let width = group.blocks * BLOCK;
                let packed = &mut packed[group.first * self.block_len()..][..group.blocks * self.block_len()];
                let k0 = group.first * BLOCK;
                for lane in 0..width.min(self.shape.group_filters() - k0) {
                    let filter = &weights[(g * self.shape.group_filters() + k0 + lane) * depth..][..depth];
                    for (row, weight) in filter.iter().enumerate() {
                        packed[row * width + lane] = *weight;
                    }
                }
            }
        }
    }

    fn scratch_len(&self) -> usize {
        match self.output {
            Layout::Nchw16c => 0,
            Layout::Nchw => {
                let widest = self.groups.iter().map(|group| group.blocks).max().unwrap_or(1);
                self.strip * MOST_WINDOWS[widest] * widest * BLOCK
            }
        }
    }

    unsafe fn run(&self, job: &Job, scratch: &mut Aligned, _: &mut Clock) {
        debug_assert!(scratch.len() >= self.scratch_len());
        for unit in job.units.clone() {
            let (group, strip) = (self.groups[unit / self.strips()], unit % self.strips());
            // SAFETY: the same contract.
            unsafe { self.strip(job, group, strip, scratch) };
        }
    }
}

/// `total` cut into the fewest parts of at most `most`, of sizes that differ by at most one: (start, size), larger first.
fn even(total: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let parts = total.div_ceil(most);
    let (size, larger) = (total / parts, total % parts);
    (0..parts).map(move |part| (part * size + part.min(larger), size + usize::from(part < larger)))
}

/// The windows q..q+windows whose column for tap s is inside the input.
fn column_mask(shape: &ConvShape, q: usize, windows: usize, s: usize) -> u16 {
    (0..windows).fold(0, |mask, w| {
        let column = ((q + w) * shape.stride.1 + s * shape.dilation.1).checked_sub(shape.padding.left);
        mask | u16::from(column.is_some_and(|column| column < shape.width)) << w
    })
}

/// The filter rows of output row p that are inside the input.
fn filter_rows(shape: &ConvShape, p: usize) -> Row {
    let inside = |r: &usize| {
        (p * shape.stride.0 + r * shape.dilation.0)
            .checked_sub(shape.padding.top)
            .is_some_and(|y| y < shape.height)
    };
    let first = (0..shape.kernel.0).find(inside).unwrap_or(0);
    Row {
        first,
        count: (first..shape.kernel.0).take_while(inside).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_even_and_cover_everything() {
        assert_eq!(even(13, 7).collect::<Vec<_>>(), [(0, 7), (7, 6)]);
        assert_eq!(even(27, 7).collect::<Vec<_>>(), [(0, 7), (7, 7), (14, 7), (21, 6)]);
        assert_eq!(even(5, 7).collect::<Vec<_>>(), [(0, 5)]);
    }

    #[test]
    fn padded_rows_and_columns_are_left_out() {
        let shape = ConvShape::new(1, 7, 7, 16, 3).with_padding(1);
        let rows: Vec<_> = (0..7)
            .map(|p| filter_rows(&shape, p))
            .map(|row| (row.first, row.count))
            .collect();
        assert_eq!(rows, [(1, 2), (0, 3), (0, 3), (0, 3), (0, 3), (0, 3), (0, 2)]);
        assert_eq!(
            [0, 1, 2].map(|s| column_mask(&shape, 0, 7, s)),
            [0b111_1110, 0b111_1111, 0b011_1111]
        );
    }
}
