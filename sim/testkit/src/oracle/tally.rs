//! Counting accesses and passes.

use std::collections::{BTreeMap, BTreeSet};

use cyclonest_arch::{Accesses, Counts, Passes, Width};
use cyclonest_workloads::Tensor;

use super::nest::{Nest, Setting};

/// ⌈size ÷ width⌉ of something that is `elements` large, `bits` in total.
pub(super) fn occupancy(width: Width, elements: u64, bits: u64) -> u64 {
    match width {
        Width::Words(w) => elements.div_ceil(w),
        Width::Bits(w) => bits.div_ceil(w),
        Width::Bytes(w) => bits.div_ceil(8 * w),
        Width::Unlimited => 0,
    }
}

/// Accesses of `tensor` at `level`.
pub(super) fn at(counts: &mut Counts, level: usize, tensor: Tensor) -> &mut Accesses {
    &mut counts.levels[level].tensors[tensor]
}

/// One pass of `elements` through the networks `networks`, to (or from) the instances `members`.
pub(super) fn pass(
    nest: &Nest<'_>,
    counts: &mut Counts,
    (tensor, down): (Tensor, bool),
    networks: std::ops::Range<usize>,
    members: &BTreeSet<Setting>,
    (elements, bits): (u64, u64),
) {
    for network in networks {
        let (upper, lower) = (nest.spatial_before(network), nest.spatial_before(network + 1));
        let mut children: BTreeMap<Setting, BTreeSet<(u64, u64)>> = BTreeMap::new();
        for member in members {
            children
                .entry(member[..upper].to_vec())
                .or_default()
                .insert(nest.mesh_position(network, &member[..lower]));
        }
        let channels = nest.arch.channels(network, down);
        let width = channels
            .and_then(|c| c.link(tensor))
            .map_or(Width::Unlimited, |l| l.width);
        let words = if width == Width::Unlimited {
            elements
        } else {
            occupancy(width, elements, bits)
        };
        let traffic = &mut counts.levels[network].network[tensor];
        for positions in children.values() {
            let direction = if down { &mut traffic.down } else { &mut traffic.up };
            let passes: &mut Passes = direction.entry(positions.len() as u64).or_default();
            passes.elements += elements;
            passes.words += words;
            traffic.bit_hops += bits * tree_links(positions);
        }
    }
}

/// Links of the X-then-Y tree from the corner (0,0): along row 0 to the furthest column, then up each column.
fn tree_links(positions: &BTreeSet<(u64, u64)>) -> u64 {
    let mut links = BTreeSet::new();
    for &(x, y) in positions {
        links.extend((0..x).map(|i| (i, 0, 'x')));
        links.extend((0..y).map(|j| (x, j, 'y')));
    }
    links.len() as u64
}

/// Adds `more` to `counts`.
pub(super) fn add(counts: &mut Counts, more: &Counts) {
    counts.macs += more.macs;
    for (level, m) in counts.levels.iter_mut().zip(&more.levels) {
        for tensor in Tensor::ALL {
            let (a, b) = (&mut level.tensors[tensor], &m.tensors[tensor]);
            a.reads += b.reads;
            a.fills += b.fills;
            a.updates += b.updates;
            a.drains += b.drains;
            a.read_modify_writes += b.read_modify_writes;
            let (a, b) = (&mut level.network[tensor], &m.network[tensor]);
            a.bit_hops += b.bit_hops;
            for (into, from) in [(&mut a.down, &b.down), (&mut a.up, &b.up)] {
                for (&degree, passes) in from {
                    let into: &mut Passes = into.entry(degree).or_default();
                    into.elements += passes.elements;
                    into.words += passes.words;
                }
            }
        }
    }
}
