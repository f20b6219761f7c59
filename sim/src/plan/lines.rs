//! The input rows (or columns) that tiles of one level touch.
//!
//! A tile of inputs is rows × columns × a box. Rows are the real ones among `p·stride + r·dilation` for the tile's
//! p and r, so they depend on where the tile starts in P and R, and need not be contiguous.

use std::collections::HashMap;
use std::ops::Range;

/// Name of a set of lines; 0 is the empty set.
pub(crate) type LineSet = u32;

/// The sets of lines of one axis at one level.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    sets: Vec<Vec<u32>>,
    names: HashMap<Vec<u32>, LineSet>,
    /// Set by start of the tile in windows and taps, in units of the tile.
    table: Vec<LineSet>,
    window_tile: u64,
    tap_tile: u64,
    tap_tiles: u64,
    /// Per set: intersections that were asked for.
    meets: Vec<Vec<(LineSet, LineSet)>>,
}

/// One axis of the convolution: windows (P or Q) and taps (R or S).
#[derive(Debug, Clone)]
pub(crate) struct AxisSpec {
    pub(crate) windows: u64,
    pub(crate) taps: u64,
    pub(crate) stride: u64,
    pub(crate) dilation: u64,
    pub(crate) real: Range<u64>,
}

impl AxisSpec {
    /// Distinct real lines of `windows` × `taps`, sorted.
    pub(crate) fn lines(&self, windows: impl Iterator<Item = u64> + Clone, taps: Range<u64>) -> Vec<u32> {
        let mut lines: Vec<u32> = taps
            .flat_map(|t| windows.clone().map(move |w| (w, t)))
            .map(|(w, t)| w * self.stride + t * self.dilation)
            .filter(|y| self.real.contains(y))
            .map(|y| u32::try_from(y).expect("extent checked against u32 when the plan is built"))
            .collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }
}

impl AxisSpec {
    /// How many real lines `windows` × `taps` touch, both given relative to a tile's start.
    pub(crate) fn distinct(&self, windows: &[u64], window_low: u64, taps: &[u64], tap_low: u64) -> u64 {
        let mut lines: Vec<u64> = windows
            .iter()
            .flat_map(|w| {
                taps.iter()
                    .map(move |t| (w + window_low) * self.stride + (t + tap_low) * self.dilation)
            })
            .filter(|y| self.real.contains(y))
            .collect();
        lines.sort_unstable();
        lines.dedup();
        lines.len() as u64
    }
}

impl Lines {
    /// Sets of all tiles of `window_tile` × `tap_tile`.
    pub(crate) fn new(axis: &AxisSpec, window_tile: u64, tap_tile: u64) -> Self {
        let tap_tiles = axis.taps.div_ceil(tap_tile);
        let mut lines = Lines {
            sets: Vec::new(),
            names: HashMap::new(),
            table: Vec::new(),
            window_tile,
            tap_tile,
            tap_tiles,
            meets: Vec::new(),
        };
        lines.name(Vec::new());
        for w in (0..axis.windows).step_by(window_tile as usize) {
            for t in (0..axis.taps).step_by(tap_tile as usize) {
                let windows = w..(w + window_tile).min(axis.windows);
                let set = axis.lines(windows, t..(t + tap_tile).min(axis.taps));
                let name = lines.name(set);
                lines.table.push(name);
            }
        }
        lines
    }

    fn name(&mut self, set: Vec<u32>) -> LineSet {
        if let Some(&name) = self.names.get(&set) {
            return name;
        }
        let name = self.sets.len() as LineSet;
        self.names.insert(set.clone(), name);
        self.sets.push(set);
        self.meets.push(Vec::new());
        name
    }

    /// The set of the tile that starts at window `window` and tap `tap`.
    #[inline]
    pub(crate) fn at(&self, window: u64, tap: u64) -> LineSet {
        self.table[(window / self.window_tile * self.tap_tiles + tap / self.tap_tile) as usize]
    }

    /// Lines of a set.
    #[inline]
    pub(crate) fn len(&self, set: LineSet) -> u64 {
        self.sets[set as usize].len() as u64
    }

    /// The lines of a set, sorted.
    pub(crate) fn members(&self, set: LineSet) -> &[u32] {
        &self.sets[set as usize]
    }

    /// The intersection of two sets.
    pub(crate) fn meet(&mut self, a: LineSet, b: LineSet) -> LineSet {
        if a == b {
            return a;
        }
        if let Some(&(_, meet)) = self.meets[a as usize].iter().find(|(other, _)| *other == b) {
            return meet;
        }
        let (left, right) = (&self.sets[a as usize], &self.sets[b as usize]);
        let common = left
            .iter()
            .copied()
            .filter(|line| right.binary_search(line).is_ok())
            .collect();
        let meet = self.name(common);
        self.meets[a as usize].push((b, meet));
        meet
    }
}
