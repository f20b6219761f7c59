//! The integers in the buffers (rule 25).

use std::collections::BTreeMap;

use cyclonest_workloads::{Dim, Problem, Tensor};

use super::burst::macs;
use super::nest::{Nest, Setting};
use super::plan::{Group, Plan, Residency, ResidencyId};

/// A valid element: its value and the number of its contributions (outputs).
pub(super) type Element = (i64, u64);

/// Valid elements by number; what is not in the map is not valid.
pub(super) type Contents = BTreeMap<u64, Element>;

/// The contents of every residency, and of the outermost level.
#[derive(Debug)]
pub(super) struct Values {
    seed: u64,
    residencies: Vec<Contents>,
    outermost: Contents,
    /// The first fault.
    pub fault: Option<String>,
}

/// Operand data: −8..=7, from a hash of seed, tensor and element.
pub(super) fn operand(seed: u64, tensor: Tensor, element: u64) -> i64 {
    let mut x =
        seed ^ (tensor as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ element.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 29)) & 15) as i64 - 8
}

impl Values {
    pub(super) fn new(plan: &Plan, seed: u64) -> Self {
        Values {
            seed,
            residencies: vec![Contents::new(); plan.residencies.len()],
            outermost: Contents::new(),
            fault: None,
        }
    }

    fn blame(&mut self, fault: impl FnOnce() -> String) {
        if self.fault.is_none() {
            self.fault = Some(fault());
        }
    }

    /// What a transfer picks up at its request. Sums are moved, operands copied; what is not there is left out.
    pub(super) fn pick_up(&mut self, plan: &Plan, group: &Group) -> Contents {
        let first = &plan.residencies[group.members[0]];
        if group.drain {
            let mut sum = Contents::new();
            for &m in &group.members {
                for (e, (value, contributions)) in std::mem::take(&mut self.residencies[m]) {
                    let into = sum.entry(e).or_default();
                    *into = (into.0 + value, into.1 + contributions);
                }
            }
            return sum;
        }
        let wanted = &first.new;
        let tensor = first.tensor;
        let mut picked = Contents::new();
        for &e in wanted.elements.iter() {
            let element = match (first.parent, tensor) {
                (None, Tensor::Outputs) => self.outermost.remove(&e),
                (None, _) => Some((operand(self.seed, tensor, e), 0)),
                (Some(parent), Tensor::Outputs) => self.residencies[parent].remove(&e),
                (Some(parent), _) => self.residencies[parent].get(&e).copied(),
            };
            picked.extend(element.map(|v| (e, v)));
        }
        picked
    }

    /// A fill or fetch arrives at one member.
    pub(super) fn fill(&mut self, plan: &Plan, id: ResidencyId, payload: &Contents) {
        let r = &plan.residencies[id];
        if r.new != r.tile {
            // The halo stays from the residency before.
            if let Some(before) = neighbour(plan, r, r.position.wrapping_sub(1)) {
                for &e in r.tile.elements.iter().filter(|&&e| !r.new.contains(e)) {
                    if let Some(&v) = self.residencies[before].get(&e) {
                        self.residencies[id].insert(e, v);
                    }
                }
            }
        }
        self.residencies[id].extend(payload);
    }

    /// Outputs start at zero.
    pub(super) fn open(&mut self, plan: &Plan, id: ResidencyId) {
        self.residencies[id] = plan.residencies[id]
            .tile
            .elements
            .iter()
            .map(|&e| (e, (0, 0)))
            .collect();
    }

    /// A drain is written to its parent: over what is there if it is the first of its visit, added otherwise.
    pub(super) fn write(&mut self, parent: Option<ResidencyId>, payload: &Contents, first: bool) {
        let into = match parent {
            Some(parent) => &mut self.residencies[parent],
            None => &mut self.outermost,
        };
        let mut missing = None;
        for (&e, &(value, contributions)) in payload {
            if first {
                into.insert(e, (value, contributions));
            } else if let Some(old) = into.get_mut(&e) {
                *old = (old.0 + value, old.1 + contributions);
            } else {
                missing = Some(e);
            }
        }
        if let Some(e) = missing {
            self.blame(|| format!("output {e} is added to where it was never written"));
        }
    }

    /// The slot of a residency is freed: only what the next one retains stays.
    pub(super) fn release(&mut self, plan: &Plan, id: ResidencyId, next_arrived: bool) {
        let r = &plan.residencies[id];
        let next = neighbour(plan, r, r.position + 1).map(|n| &plan.residencies[n]);
        match next {
            Some(next) if !next_arrived => {
                self.residencies[id].retain(|&e, _| next.tile.contains(e) && !next.new.contains(e));
            }
            _ => self.residencies[id].clear(),
        }
    }

    /// Multiplies and accumulates what is in the buffers of a PE.
    pub(super) fn compute(&mut self, nest: &Nest<'_>, pe: &[u64], step: &Setting, uses: [Option<ResidencyId>; 3]) {
        for mac in macs(nest, pe, step) {
            let [w, i] = [Tensor::Weights, Tensor::Inputs].map(|tensor| {
                let Some(e) = nest.element(tensor, &mac.index) else {
                    return 0;
                };
                let found = match uses[tensor as usize] {
                    None => None,
                    Some(r) => self.residencies[r].get(&e).map(|v| v.0),
                };
                found.unwrap_or_else(|| {
                    self.blame(|| format!("element {e} of {tensor} is not in PE {pe:?} at step {step:?}"));
                    0
                })
            });
            let Some(e) = nest.element(Tensor::Outputs, &mac.index) else {
                continue;
            };
            let sum = match uses[Tensor::Outputs as usize] {
                None => None,
                Some(r) => self.residencies[r].get_mut(&e),
            };
            match sum {
                Some(sum) => *sum = (sum.0 + w * i, sum.1 + 1),
                None => self.blame(|| format!("output {e} is not in PE {pe:?} at step {step:?}")),
            }
        }
    }

    /// Compares with a direct convolution; the first fault.
    pub(super) fn verdict(&mut self, nest: &Nest<'_>) -> Option<String> {
        let expected = convolution(nest, self.seed);
        for (e, value) in expected {
            let contributions = nest.problem.contributions();
            let found = self.outermost.get(&e).copied();
            if found != Some((value, contributions)) {
                self.blame(|| match found {
                    None => format!("output {e} never arrived"),
                    Some((v, c)) => {
                        format!("output {e} is {v} with {c} contributions, expected {value} with {contributions}")
                    }
                });
                break;
            }
        }
        self.fault.clone()
    }
}

fn neighbour(plan: &Plan, r: &Residency, position: usize) -> Option<ResidencyId> {
    plan.streams[r.stream].residencies.get(position).copied()
}

/// The direct convolution: O[n,g,k,p,q] = Σ W[g,k,c,r,s] · I[n,g,c,p·stride+r·dilation,q·stride+s·dilation].
fn convolution(nest: &Nest<'_>, seed: u64) -> BTreeMap<u64, i64> {
    let Problem { bounds, .. } = nest.problem;
    let mut sums = BTreeMap::new();
    let mut index = [0; 8];
    loop {
        let element = |t| nest.element(t, &index);
        if let (Some(w), Some(o)) = (element(Tensor::Weights), element(Tensor::Outputs)) {
            let input = element(Tensor::Inputs).map_or(0, |i| operand(seed, Tensor::Inputs, i));
            *sums.entry(o).or_default() += operand(seed, Tensor::Weights, w) * input;
        }
        // Odometer.
        let Some(d) = Dim::ALL.into_iter().rev().find(|&d| index[d as usize] + 1 < bounds[d]) else {
            return sums;
        };
        index[d as usize] += 1;
        index[d as usize + 1..].fill(0);
    }
}
