//! A position in the temporal loops outside a level: its steps (rule 1).

use cyclonest_workloads::{Dim, DimMap};

/// A temporal loop with more than one trip.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TemporalLoop {
    pub(crate) level: usize,
    pub(crate) dim: Dim,
    pub(crate) trips: u64,
    /// Distance in `dim` of two iterations: the product of all loops of `dim` further in.
    pub(crate) stride: u64,
    /// Distance in step rank of two iterations.
    pub(crate) weight: u64,
}

/// The temporal loops of all levels outside one level, outermost first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steps {
    pub(crate) loops: Vec<TemporalLoop>,
}

impl Steps {
    /// The loops up to the last one that is relevant; the others never change what is looked at.
    pub(crate) fn truncated(&self, relevant: impl Fn(Dim) -> bool) -> Steps {
        let kept = self
            .loops
            .iter()
            .rposition(|l| relevant(l.dim))
            .map_or(0, |last| last + 1);
        Steps {
            loops: self.loops[..kept].to_vec(),
        }
    }

    /// Indices of the outermost `loops` loops at a rank.
    pub(crate) fn indices_of(&self, mut rank: u64, loops: usize, indices: &mut Vec<u64>) {
        indices.clear();
        for l in &self.loops[..loops.min(self.loops.len())] {
            indices.push(rank / l.weight);
            rank %= l.weight;
        }
    }

    /// Where the tile of an instance that starts at `base` starts at the step of this rank.
    pub(crate) fn low_at(&self, mut rank: u64, base: &DimMap<u64>) -> DimMap<u64> {
        let mut low = *base;
        for l in &self.loops {
            low[l.dim] += rank / l.weight * l.stride;
            rank %= l.weight;
        }
        low
    }

    /// Rank of a setting of the outermost loops, with the others at 0.
    pub(crate) fn rank_of(&self, indices: &[u64]) -> u64 {
        self.loops.iter().zip(indices).fold(0, |rank: u64, (l, index)| {
            rank.wrapping_add(l.weight.wrapping_mul(*index))
        })
    }

    /// The largest offset below `bound` that the loops of `dim` reach.
    pub(crate) fn last_offset(&self, dim: Dim, bound: u64) -> u64 {
        self.loops.iter().filter(|l| l.dim == dim).fold(0, |offset, l| {
            offset + ((bound - 1 - offset) / l.stride).min(l.trips - 1) * l.stride
        })
    }
}

/// One setting of [`Steps`], and the lowest index of every dimension there.
#[derive(Debug, Clone)]
pub(crate) struct Cursor {
    pub(crate) indices: Vec<u64>,
    pub(crate) low: DimMap<u64>,
    /// Number of the step among all settings, existing or not.
    pub(crate) rank: u64,
    pub(crate) finished: bool,
    /// Outermost loop that the last advance changed; 0 at the start.
    pub(crate) changed: usize,
}

impl Cursor {
    /// The first step of an instance whose tile starts at `base`; finished at once if that is past the bounds.
    pub(crate) fn new(steps: &Steps, base: DimMap<u64>, bounds: &DimMap<u64>) -> Self {
        let finished = Dim::ALL.iter().any(|&d| base[d] >= bounds[d]);
        Cursor {
            indices: vec![0; steps.loops.len()],
            low: base,
            rank: 0,
            finished,
            changed: 0,
        }
    }

    /// Moves to the next existing step. An index past the bound ends its loop: all further ones are past it too.
    #[inline]
    pub(crate) fn advance(&mut self, steps: &Steps, bounds: &DimMap<u64>) {
        for j in (0..steps.loops.len()).rev() {
            let l = &steps.loops[j];
            let index = self.indices[j] + 1;
            let low = self.low[l.dim] + l.stride;
            if index < l.trips && low < bounds[l.dim] {
                self.indices[j] = index;
                self.low[l.dim] = low;
                self.rank += l.weight;
                self.changed = j;
                return;
            }
            self.low[l.dim] -= self.indices[j] * l.stride;
            self.rank -= self.indices[j] * l.weight;
            self.indices[j] = 0;
        }
        self.finished = true;
    }

    /// Recomputes what follows from the indices, after they were moved.
    pub(crate) fn refresh(&mut self, steps: &Steps, base: &DimMap<u64>) {
        self.low = *base;
        self.rank = 0;
        for (l, index) in steps.loops.iter().zip(&self.indices) {
            self.low[l.dim] += index * l.stride;
            self.rank += index * l.weight;
        }
    }

    /// Where the tile starts if only the outermost `loops` loops are looked at.
    pub(crate) fn outer_low(&self, steps: &Steps, base: &DimMap<u64>, loops: usize, dim: Dim) -> u64 {
        let outer = steps.loops[..loops].iter().zip(&self.indices);
        outer
            .filter(|(l, _)| l.dim == dim)
            .fold(base[dim], |low, (l, index)| low + l.stride * index)
    }

    /// Rank among the steps of a level further out, whose loops are the first `outer.loops.len()` ones.
    pub(crate) fn prefix_rank(&self, outer: &Steps) -> u64 {
        outer.loops.iter().zip(&self.indices).map(|(l, i)| l.weight * i).sum()
    }
}
