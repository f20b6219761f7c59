//! What was learnt: machine states and the ways between them.

use std::collections::HashMap;

use super::super::refresh::Refreshes;
use super::At;
use super::alike::Places;
use super::snapshot::{Saved, Sites};
use crate::mutate::is_waived;
use crate::plan::Plan;
use crate::relative::Shift;

/// Memory that nodes and edges may take, in words; beyond it everything is forgotten.
const MOST_WORDS: usize = 12 << 20;

/// Edges of a node at most; the oldest make way.
const MOST_EDGES: usize = 16;

/// Names a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeId(usize);

/// A state of the machine relative to time and to the place of PE 0.
#[derive(Debug)]
pub(super) struct Node {
    /// Loop that PE 0 has crossed.
    pub(super) crossed: usize,
    key: Vec<u64>,
    /// Indices of PE 0 when it was saved.
    pub(super) here: Vec<u64>,
    pub(super) state: Saved,
    sites: Sites,
    pub(super) edges: Vec<Edge>,
}

/// A stretch between two nodes.
#[derive(Debug)]
pub(super) struct Edge {
    /// It leads to the next crossing (or one of the next) of this loop or of one further out.
    pub(super) level: usize,
    pub(super) target: NodeId,
    /// Where PE 0 was when it was seen.
    pub(super) from: Vec<u64>,
    pub(super) to: Vec<u64>,
    pub(super) places: Places,
    /// When it began.
    pub(super) seen_at: u64,
    pub(super) time: u64,
    /// By how much the counters grow.
    pub(super) counters: Vec<u64>,
}

impl Edge {
    /// How often it may be taken from `now` on, for the refreshes that come or do not come on the way.
    pub(super) fn refreshes_allow(&self, refreshes: Option<&Refreshes>, now: u64) -> u64 {
        let intervals = refreshes.map_or(&[][..], |r| &r.intervals);
        let allowed = |&every: &u64| {
            if !is_due(every, self.seen_at, self.seen_at + self.time) {
                // None was seen, so none may come.
                let next = (now / every + 1) * every;
                return (next - 1 - now) / self.time.max(1);
            }
            // The same were seen if they came at the same distance.
            match (now % every == self.seen_at % every, self.time.is_multiple_of(every)) {
                (false, _) => 0,
                (true, false) => 1,
                (true, true) => u64::MAX,
            }
        };
        let allowed = intervals.iter().map(allowed).min();
        allowed.filter(|_| !is_waived("Refresh")).unwrap_or(u64::MAX)
    }

    /// Moves on to its end, as often as is said.
    pub(super) fn take(&self, plan: &Plan, at: &mut At, times: u64) {
        let mut to = self.to.clone();
        Shift::new(&plan.steps, &self.from, &at.here).indices(&mut to);
        if times > 1 {
            // It comes back to the same node further along its loop.
            to[self.level] += (times - 1) * (self.to[self.level] - self.from[self.level]);
        }
        at.node = self.target;
        at.here = to;
        at.time += self.time * times;
        let grown = self.counters.iter().copied().chain(std::iter::repeat(0));
        at.counters = at.counters.iter().zip(grown).map(|(c, g)| c + g * times).collect();
    }
}

/// True if a refresh of this interval is due after `from`, up to `to`.
fn is_due(every: u64, from: u64, to: u64) -> bool {
    to / every > from / every
}

/// All nodes.
#[derive(Debug, Default)]
pub(super) struct Memo {
    nodes: Vec<Node>,
    by_hash: HashMap<u64, Vec<NodeId>>,
    words: usize,
}

impl Memo {
    pub(super) fn is_full(&self) -> bool {
        self.words > MOST_WORDS
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// The node of this state, whose [`hash`] is given. Equality decides, not the hash.
    pub(super) fn find(&self, hash: u64, key: &[u64]) -> Option<NodeId> {
        let candidates = self.by_hash.get(&hash)?;
        candidates.iter().copied().find(|&id| self.node(id).key == key)
    }

    pub(super) fn add(
        &mut self,
        crossed: usize,
        hash: u64,
        mut key: Vec<u64>,
        here: Vec<u64>,
        state: Saved,
        sites: Sites,
    ) -> NodeId {
        let id = NodeId(self.nodes.len());
        key.shrink_to_fit();
        // A state takes about as much as its key.
        self.words += 2 * key.len() + sites.len();
        self.by_hash.entry(hash).or_default().push(id);
        self.nodes.push(Node {
            crossed,
            key,
            here,
            state,
            sites,
            edges: Vec::new(),
        });
        id
    }

    /// Adds an edge.
    pub(super) fn connect(&mut self, from: NodeId, edge: Edge) {
        self.words += edge.counters.len() + edge.places.len();
        let edges = &mut self.nodes[from.0].edges;
        if edges.len() == MOST_EDGES {
            let oldest = edges.remove(0);
            self.words -= oldest.counters.len() + oldest.places.len();
        }
        edges.push(edge);
    }

    /// Where anything went between two crossings, looking at the loops up to `level`; none if that is too much.
    pub(super) fn places(&self, plan: &Plan, level: usize, from: &At, to: &At) -> Option<Places> {
        let (start, end) = (self.node(from.node), self.node(to.node));
        let mut places = Places::default();
        let shift_start = Shift::new(&plan.steps, &start.here, &from.here);
        let shift_end = Shift::new(&plan.steps, &end.here, &to.here);
        // Most children of one parent go the same way.
        let mut known: Vec<(&[u64], Option<&[u64]>)> = Vec::new();
        for (site, then) in start.sites.cursors().zip(end.sites.cursors()) {
            let Some(site) = site else { continue };
            let cut = site.len().min(level + 1);
            let pair = (&site[..cut], then.map(|then| &then[..cut]));
            if known.contains(&pair) {
                continue;
            }
            known.push(pair);
            let mut first = pair.0.to_vec();
            shift_start.indices(&mut first);
            let mut last = pair.1.map(<[u64]>::to_vec);
            if let Some(last) = &mut last {
                shift_end.indices(last);
            }
            if !places.sweep(plan, &first, last.as_deref(), &from.here) {
                return None;
            }
        }
        for mark in start.sites.marks() {
            let mut mark = mark[..mark.len().min(level + 1)].to_vec();
            shift_start.indices(&mut mark);
            if !places.add(&mark) {
                return None;
            }
        }
        places.complete();
        Some(places)
    }
}

/// A hash of a key, to find candidates. Four at a time, which do not wait for each other.
pub(super) fn hash(key: &[u64]) -> u64 {
    let mix = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ (mixed >> 29)
    };
    let (words, rest) = key.as_chunks::<4>();
    let mut hashes = [key.len() as u64, 1, 2, 3];
    for words in words {
        hashes
            .iter_mut()
            .zip(words)
            .for_each(|(hash, &word)| *hash = mix(*hash, word));
    }
    hashes.iter().chain(rest).fold(0, |hash, &word| mix(hash, word))
}
