//! Words on the networks, by multicast and reduction degree (rule 24).

use cyclonest_arch::{Counts, Passes};
use cyclonest_workloads::Tensor;

/// Passes through the networks, by multicast or reduction degree.
#[derive(Debug)]
pub(crate) struct TrafficCounters {
    /// Per level, tensor and direction (down, up): passes by degree.
    passes: Vec<[[Vec<Passes>; 2]; 3]>,
    bit_hops: Vec<[u64; 3]>,
}

impl TrafficCounters {
    /// `children`: how many children an instance has, per level with a network.
    pub(crate) fn new(levels: usize, children: impl Iterator<Item = usize>) -> Self {
        let mut passes: Vec<[[Vec<Passes>; 2]; 3]> = vec![Default::default(); levels];
        for (passes, children) in passes.iter_mut().zip(children) {
            let degrees = || vec![Passes::default(); children + 1];
            *passes = std::array::from_fn(|_| [degrees(), degrees()]);
        }
        TrafficCounters {
            passes,
            bit_hops: vec![[0; 3]; levels],
        }
    }

    /// Counts one transfer's passes at one level: (degree, links) of each network instance.
    #[allow(clippy::too_many_arguments)]
    #[inline]
    pub(crate) fn add(
        &mut self,
        level: usize,
        tensor: Tensor,
        up: bool,
        passes: &[(u64, u64)],
        elements: u64,
        words: u64,
        bits: u64,
    ) {
        let by_degree = &mut self.passes[level][tensor as usize][usize::from(up)];
        for &(degree, links) in passes {
            let passes = &mut by_degree[degree as usize];
            passes.elements += elements;
            passes.words += words;
            self.bit_hops[level][tensor as usize] += bits * links;
        }
    }

    /// Visits every counter.
    pub(super) fn counters(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        for by_degree in self.passes.iter_mut().flatten().flatten() {
            for passes in by_degree {
                visit(&mut passes.elements);
                visit(&mut passes.words);
            }
        }
        self.bit_hops.iter_mut().flatten().for_each(visit);
    }

    pub(super) fn reduce_into(&self, counts: &mut Counts) {
        for (level, (passes, bit_hops)) in counts.levels.iter_mut().zip(self.passes.iter().zip(&self.bit_hops)) {
            for tensor in Tensor::ALL {
                let traffic = &mut level.network[tensor];
                let used = |passes: &[Passes]| {
                    let degrees = passes.iter().enumerate().filter(|(_, p)| p.elements > 0);
                    degrees.map(|(degree, p)| (degree as u64, *p)).collect()
                };
                let [down, up] = &passes[tensor as usize];
                (traffic.down, traffic.up) = (used(down), used(up));
                traffic.bit_hops = bit_hops[tensor as usize];
            }
        }
    }
}
