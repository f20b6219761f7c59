//! The space that optimisers search: every node's foldings with what they cost, evaluated once.

use std::fmt;

use cyclonest_arch::streaming::{
    Backend, Coefficients, Design, Folding, Graph, NodeKind, Objective, Platform, Resources, Rules,
};

/// One folding of one node with its consequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The folding.
    pub folding: Folding,
    /// Cycles per frame.
    pub latency: u64,
    /// DSP, BRAM, LUT, FF.
    pub resources: [u64; 4],
}

/// A resource that runs out in every design.
#[derive(Debug, Clone, PartialEq)]
pub struct Shortage {
    /// The partition that cannot be made smaller: its first and last node.
    pub nodes: (String, String),
    /// What runs out: a resource, or the bandwidth.
    pub resource: &'static str,
    /// The least that the nodes need.
    pub needed: u64,
    /// What the platform has.
    pub available: u64,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            nodes: (first, last),
            resource,
            needed,
            available,
        } = self;
        let nodes = if first == last {
            format!("`{first}`")
        } else {
            format!("`{first}` to `{last}`")
        };
        write!(f, "{nodes} need at least {needed} {resource}, there are {available}")
    }
}

/// A graph on a platform, with every legal folding judged.
#[derive(Debug)]
pub struct Space<'a> {
    /// The HD-graph.
    pub graph: &'a Graph,
    /// The platform.
    pub platform: &'a Platform,
    /// Per node, its foldings in ascending order of the folding.
    pub choices: Vec<Vec<Choice>>,
    /// Resources of one configuration: DSP, BRAM, LUT, FF.
    pub capacity: [u64; 4],
    /// Clock \[MHz\].
    pub clock_mhz: f64,
    /// Bits of a word from and to memory.
    pub word_bits: u64,
    /// Nodes after which the pipeline may be cut, ascending.
    pub cuts: Vec<usize>,
    /// Per node, the nodes that it reads.
    pub writers: Vec<Vec<usize>>,
    /// Per node, the last node that reads it; its own index if none does.
    pub last_reader: Vec<usize>,
    rules: Vec<Rules>,
}

impl<'a> Space<'a> {
    /// Judges every folding of every node.
    #[must_use]
    pub fn new(graph: &'a Graph, backend: &dyn Backend, platform: &'a Platform, coefficients: &Coefficients) -> Self {
        let choices = graph
            .nodes
            .iter()
            .map(|node| {
                backend
                    .foldings(node, true)
                    .into_iter()
                    .map(|folding| Choice {
                        folding,
                        latency: backend.latency(node, folding),
                        resources: backend.resources(node, folding, coefficients).as_array(),
                    })
                    .collect()
            })
            .collect();
        let n = graph.nodes.len();
        let mut last_reader: Vec<usize> = (0..n).collect();
        let mut writers = vec![Vec::new(); n];
        for edge in &graph.edges {
            last_reader[edge.from] = last_reader[edge.from].max(edge.to);
            writers[edge.to].push(edge.from);
        }
        Self {
            graph,
            platform,
            choices,
            capacity: platform.resources.as_array(),
            clock_mhz: backend.clock_mhz(platform),
            word_bits: backend.word_bits(),
            cuts: (0..graph.cuts.len()).filter(|&i| graph.cuts[i]).collect(),
            writers,
            last_reader,
            rules: graph.nodes.iter().map(|node| backend.rules(node.kind)).collect(),
        }
    }

    /// Whether a reader with input folding `cin` fits behind node `from`.
    #[inline]
    #[must_use]
    pub fn matches(&self, from: usize, cout: u64, cin: u64) -> bool {
        self.rules[from].matches(cout, cin)
    }

    /// The least cycles per frame at which a partition keeps within the memory's bandwidth:
    /// (words in + words out) · word bits ÷ cycles · f ≤ bandwidth.
    #[must_use]
    pub fn bandwidth_floor(&self, first: usize, last: usize) -> u64 {
        #![allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let bits = self.bits(first, last) as f64;
        (bits * self.clock_mhz / (self.platform.bandwidth_gbps * 1000.0) - 1e-9)
            .ceil()
            .max(0.0) as u64
    }

    /// Time of a partition of that interval for `batch` frames \[µs\].
    #[must_use]
    pub fn execution_us(&self, interval: u64, batch: u64) -> f64 {
        #![allow(clippy::cast_precision_loss)]
        interval as f64 * batch as f64 / self.clock_mhz
    }

    /// First node of the segment that starts at `segment`; segments lie between neighbouring cuts.
    #[must_use]
    pub fn segments(&self) -> Vec<(usize, usize)> {
        let mut first = 0;
        let mut list = Vec::new();
        for &cut in &self.cuts {
            list.push((first, cut));
            first = cut + 1;
        }
        list.push((first, self.graph.nodes.len() - 1));
        list
    }

    /// A design of one choice per node.
    #[must_use]
    pub fn design(&self, picks: &[usize], cuts: Vec<usize>, objective: Objective) -> Design {
        Design {
            network: self.graph.network.clone(),
            backend: self.graph.backend.clone(),
            platform: self.platform.name.clone(),
            objective,
            foldings: self
                .graph
                .nodes
                .iter()
                .zip(picks)
                .enumerate()
                .map(|(n, (node, &pick))| (node.name.clone(), self.choices[n][pick].folding))
                .collect(),
            cuts,
            fifo_depths: Vec::new(),
        }
    }

    /// Time of a set of picks \[µs\], or `None` where a constraint is broken.
    #[must_use]
    pub fn judge(&self, picks: &[usize], cuts: &[usize], batch: u64) -> Option<f64> {
        let mut first = 0;
        let mut time = 0.0;
        let ends = cuts.iter().copied().chain([self.graph.nodes.len() - 1]);
        for (index, last) in ends.enumerate() {
            let mut sum = [0; 4];
            let mut interval = 0;
            for node in first..=last {
                let choice = &self.choices[node][picks[node]];
                interval = interval.max(choice.latency);
                for (total, part) in sum.iter_mut().zip(choice.resources) {
                    *total += part;
                }
                for &from in &self.writers[node] {
                    let cout = self.choices[from][picks[from]].folding.cout;
                    if from >= first && !self.matches(from, cout, choice.folding.cin) {
                        return None;
                    }
                }
            }
            if (0..4).any(|r| sum[r] > self.capacity[r]) || interval < self.bandwidth_floor(first, last) {
                return None;
            }
            time += self.execution_us(interval, batch);
            if index > 0 {
                time += self.platform.reconfiguration_us;
            }
            first = last + 1;
        }
        Some(time)
    }

    /// What runs out in a segment that cannot be cut further, with the least that would do: per resource, the
    /// smallest sum over its nodes on their own. Where every resource suffices by itself, the smallest sum over the
    /// foldings that keep within the other three; and the bandwidth that its slowest folding needs. Where all of these
    /// suffice, the resource that is shortest when all four are weighed together. Empty where that suffices too.
    #[must_use]
    pub fn shortages(&self) -> Vec<Shortage> {
        let alone = self.lacking(|first, last, r| Some(self.least(first, last, r)));
        if !alone.is_empty() {
            return alone;
        }
        let mut list = self.lacking(|first, last, r| {
            let least = |n: usize| {
                let others = self.choices[n]
                    .iter()
                    .filter(|c| (0..4).all(|o| o == r || c.resources[o] <= self.capacity[o]));
                others.map(|c| c.resources[r]).min()
            };
            (first..=last).map(least).sum()
        });
        for (first, last) in self.segments() {
            let slowest = (first..=last)
                .flat_map(|n| self.choices[n].iter().map(|c| c.latency))
                .max();
            let slowest = slowest.unwrap_or(0).max(1);
            if self.bandwidth_floor(first, last) > slowest {
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    clippy::cast_precision_loss
                )]
                let (needed, available) = (
                    (self.bits(first, last) as f64 * self.clock_mhz / slowest as f64).ceil() as u64,
                    (self.platform.bandwidth_gbps * 1000.0) as u64,
                );
                list.push(self.shortage(first, last, "Mbit/s of bandwidth", needed, available));
            }
        }
        if list.is_empty() {
            list = self.lacking_together();
        }
        list
    }

    /// The segments whose resources do not suffice together, with the resource of which the least more would do.
    fn lacking_together(&self) -> Vec<Shortage> {
        #![allow(clippy::cast_precision_loss)]
        let mut list = Vec::new();
        for (first, last) in self.segments() {
            let Some(needed) = super::partition::Partition::new(self, first, last).needed_together() else {
                continue;
            };
            let more = |r: usize| needed[r].map(|n| (n as f64 / self.capacity[r].max(1) as f64, r, n));
            if let Some((_, r, n)) = (0..4).filter_map(more).min_by(|a, b| a.0.total_cmp(&b.0)) {
                list.push(self.shortage(first, last, Resources::NAMES[r], n, self.capacity[r]));
            }
        }
        list
    }

    /// The segments and resources of which `least` is more than there is.
    fn lacking(&self, least: impl Fn(usize, usize, usize) -> Option<u64>) -> Vec<Shortage> {
        let mut list = Vec::new();
        for (first, last) in self.segments() {
            for (r, resource) in Resources::NAMES.into_iter().enumerate() {
                if let Some(needed) = least(first, last, r).filter(|&needed| needed > self.capacity[r]) {
                    list.push(self.shortage(first, last, resource, needed, self.capacity[r]));
                }
            }
        }
        list
    }

    fn shortage(&self, first: usize, last: usize, resource: &'static str, needed: u64, available: u64) -> Shortage {
        let name = |n: usize| self.graph.nodes[n].name.clone();
        Shortage {
            nodes: (name(first), name(last)),
            resource,
            needed,
            available,
        }
    }

    /// Bits per frame between a partition and the memory.
    fn bits(&self, first: usize, last: usize) -> u64 {
        (self.graph.nodes[first].size_in + self.graph.nodes[last].size_out) * self.word_bits
    }

    /// The least of one resource that a run of nodes needs.
    fn least(&self, first: usize, last: usize, resource: usize) -> u64 {
        super::partition::Partition::new(self, first, last).least(resource)
    }

    /// The kind of a node.
    #[must_use]
    pub fn kind(&self, node: usize) -> NodeKind {
        self.graph.nodes[node].kind
    }
}
