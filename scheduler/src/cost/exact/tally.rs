//! Counts in memory that is reused from one mapping to the next.

use cyclonest_arch::{Accelerator, Counts, Width};
use cyclonest_workloads::Tensor;

/// Direction on a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Towards the children.
    Down,
    /// Towards the parent.
    Up,
}

/// Accesses of a tensor at a level \[elements\].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Access {
    pub(super) reads: u64,
    pub(super) fills: u64,
    pub(super) updates: u64,
    pub(super) drains: u64,
    pub(super) read_modify_writes: u64,
    /// Elements of outputs that start at zero instead of being fetched.
    pub(super) opened: u64,
}

#[derive(Debug, Clone, Copy)]
struct Pass {
    level: usize,
    tensor: Tensor,
    way: Way,
    degree: u64,
    elements: u64,
    words: u64,
}

/// Every count of one mapped layer.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) macs: u64,
    levels: Vec<[Access; 3]>,
    /// Per tensor: the innermost level of its chain, and whether it stores the tensor.
    last: [(usize, bool); 3],
    passes: Vec<Pass>,
    /// Per level and tensor: bits × links.
    hops: Vec<[u64; 3]>,
}

impl Tally {
    /// Empties the tally for a machine of `levels` levels.
    pub(super) fn clear(&mut self, levels: usize) {
        self.macs = 0;
        self.levels.clear();
        self.levels.resize(levels, [Access::default(); 3]);
        self.passes.clear();
        self.hops.clear();
        self.hops.resize(levels, [0; 3]);
    }

    /// The accesses of `tensor` at `level`.
    pub(super) fn at(&mut self, level: usize, tensor: Tensor) -> &mut Access {
        &mut self.levels[level][tensor as usize]
    }

    /// Notes that the lanes take `tensor` from `level`, which stores it or streams it in.
    pub(super) fn set_last(&mut self, tensor: Tensor, level: usize, stored: bool) {
        self.last[tensor as usize] = (level, stored);
    }

    /// The level that the lanes take `tensor` from; `None` if it is streamed in.
    pub(super) fn last(&self, tensor: Tensor) -> Option<usize> {
        let (level, stored) = self.last[tensor as usize];
        stored.then_some(level)
    }

    /// The accesses of `tensor` at `level`, to read.
    pub(super) fn get(&self, level: usize, tensor: Tensor) -> &Access {
        &self.levels[level][tensor as usize]
    }

    /// Adds bits × links on the network below `level`.
    pub(super) fn hop(&mut self, level: usize, tensor: Tensor, bits: u64) {
        self.hops[level][tensor as usize] += bits;
    }

    /// Replaces bits × links by others.
    pub(super) fn unhop(&mut self, level: usize, tensor: Tensor, old: u64, new: u64) {
        let hops = &mut self.hops[level][tensor as usize];
        *hops = *hops + new - old;
    }

    /// Adds `count` passes of `elements` elements each through the network below `level`.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn pass(
        &mut self,
        level: usize,
        tensor: Tensor,
        way: Way,
        degree: u64,
        elements: u64,
        bits: u64,
        width: Option<Width>,
        count: u64,
    ) {
        if count == 0 {
            return;
        }
        let words = match width {
            None | Some(Width::Unlimited) => elements,
            Some(width) => width.cycles(elements, bits),
        };
        let pass = Pass {
            level,
            tensor,
            way,
            degree,
            elements: elements * count,
            words: words * count,
        };
        let same = |p: &&mut Pass| p.level == level && p.tensor == tensor && p.way == way && p.degree == degree;
        match self.passes.iter_mut().rev().find(same) {
            Some(known) => {
                known.elements += pass.elements;
                known.words += pass.words;
            }
            None => self.passes.push(pass),
        }
    }

    /// Turns `count` passes of outputs towards the parent, already added as partial sums, into final values: `bits` are
    /// those of both.
    pub(super) fn narrow(
        &mut self,
        level: usize,
        degree: u64,
        elements: u64,
        bits: (u64, u64),
        width: Option<Width>,
        count: u64,
    ) {
        let Some(width) = width.filter(|&w| w != Width::Unlimited) else {
            return;
        };
        let same =
            |p: &&mut Pass| p.level == level && p.tensor == Tensor::Outputs && p.way == Way::Up && p.degree == degree;
        if let Some(known) = self.passes.iter_mut().find(same) {
            known.words += width.cycles(elements, bits.1) * count;
            known.words -= width.cycles(elements, bits.0) * count;
        }
    }

    /// The counts as plain data.
    pub(super) fn to_counts(&self, arch: &Accelerator) -> Counts {
        let mut counts = Counts::new(arch);
        counts.macs = self.macs;
        for (level, from) in counts.levels.iter_mut().zip(&self.levels) {
            for tensor in Tensor::ALL {
                let a = &from[tensor as usize];
                let to = &mut level.tensors[tensor];
                to.reads = a.reads;
                to.fills = a.fills;
                to.updates = a.updates;
                to.drains = a.drains;
                to.read_modify_writes = a.read_modify_writes;
            }
        }
        for (level, hops) in counts.levels.iter_mut().zip(&self.hops) {
            for tensor in Tensor::ALL {
                level.network[tensor].bit_hops = hops[tensor as usize];
            }
        }
        for pass in &self.passes {
            let traffic = &mut counts.levels[pass.level].network[pass.tensor];
            let by_degree = match pass.way {
                Way::Down => &mut traffic.down,
                Way::Up => &mut traffic.up,
            };
            let passes = by_degree.entry(pass.degree).or_default();
            passes.elements += pass.elements;
            passes.words += pass.words;
        }
        counts
    }
}
