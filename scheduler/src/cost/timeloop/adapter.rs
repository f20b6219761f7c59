//! From problem, accelerator and mapping to Timeloop's terms.

use cyclonest_arch::{Accelerator, Axis, Bank, Capacity, Mapping, Ports, Width};
use cyclonest_workloads::{Dim, Problem, Tensor};

use super::nest::{Block, DataSpace, Dimension, Hardware, Macs, Memory, Nest, NestLoop, Port, Storage, Workload};
use super::{Evaluation, Variant, evaluate};
use crate::cost::{CostError, CostModel, Estimate};

/// The cost model `timeloop`.
#[derive(Debug, Clone, Copy, Default)]
pub struct TimeloopModel {
    /// How nests are analysed.
    pub variant: Variant,
}

impl TimeloopModel {
    /// Everything that the model says, in its own terms.
    ///
    /// # Errors
    /// If the mapping is invalid for the model.
    pub fn evaluation(
        &self,
        problem: &Problem,
        arch: &Accelerator,
        mapping: &Mapping,
    ) -> Result<Evaluation, CostError> {
        let workload = workload(problem);
        let nest = nest(problem, arch, mapping)?;
        evaluate(&workload, &hardware(arch), &nest, self.variant)
    }
}

impl CostModel for TimeloopModel {
    fn name(&self) -> &str {
        "timeloop"
    }

    fn evaluate(&self, problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Estimate, CostError> {
        let evaluation = self.evaluation(problem, arch, mapping)?;
        let mut energy = evaluation.computes as f64 * arch.compute.energy_per_mac;
        let outermost = arch.levels.len() - 1;
        for (l, stats) in evaluation.levels.iter().enumerate() {
            let level = &arch.levels[outermost - l];
            for tensor in Tensor::ALL {
                if let (Some(s), Some(bank)) = (&stats.tensors[tensor as usize], level.bank(tensor)) {
                    let written = (s.updates + s.fills) as f64 * bank.energy.write;
                    energy += (s.reads as f64 * bank.energy.read + written) * stats.instances as f64;
                }
            }
            if let Some(network) = &level.below {
                let stats = &evaluation.networks[l];
                for tensor in Tensor::ALL {
                    let bits = arch.bits(tensor, tensor == Tensor::Outputs) as f64;
                    let hops = stats.tensors[tensor as usize].element_hops * stats.instances as f64;
                    energy += hops * bits * network.energy_per_bit_hop;
                }
            }
        }
        let mut parts = vec![("compute".to_owned(), evaluation.compute_cycles as f64)];
        parts.extend(evaluation.levels.iter().map(|l| (l.name.clone(), l.cycles as f64)));
        Ok(Estimate {
            cycles: evaluation.cycles as f64,
            energy_pj: energy,
            counts: None,
            parts,
        })
    }
}

/// The loop nest of a problem in Timeloop's terms; padding is part of the input.
pub(super) fn workload(problem: &Problem) -> Workload {
    let d = |dim: Dim| vec![(dim as usize, 1)];
    let sliding = |w: Dim, stride, t: Dim, dilation| vec![(w as usize, stride), (t as usize, dilation)];
    let space = |tensor: Tensor, axes, read_write| DataSpace {
        name: tensor.to_string(),
        axes,
        read_write,
    };
    Workload {
        dims: Dim::ALL
            .iter()
            .map(|&dim| Dimension {
                name: dim.to_string(),
                bound: problem.bounds[dim],
            })
            .collect(),
        tensors: vec![
            space(
                Tensor::Weights,
                vec![d(Dim::G), d(Dim::K), d(Dim::C), d(Dim::R), d(Dim::S)],
                false,
            ),
            space(
                Tensor::Inputs,
                vec![
                    d(Dim::N),
                    d(Dim::G),
                    d(Dim::C),
                    sliding(Dim::P, problem.stride.0, Dim::R, problem.dilation.0),
                    sliding(Dim::Q, problem.stride.1, Dim::S, problem.dilation.1),
                ],
                false,
            ),
            space(
                Tensor::Outputs,
                vec![d(Dim::N), d(Dim::G), d(Dim::K), d(Dim::P), d(Dim::Q)],
                true,
            ),
        ],
    }
}

/// A machine in Timeloop's terms. Meshes multiply along each axis; a bank is a memory of its own.
pub(super) fn hardware(arch: &Accelerator) -> Hardware {
    let (mut x, mut instances) = (1, 1);
    let mut levels: Vec<Storage> = arch
        .levels
        .iter()
        .map(|level| {
            x *= level.mesh.0;
            instances *= level.fanout();
            Storage {
                name: level.name.clone(),
                instances,
                mesh_x: x,
                memories: level.banks.iter().filter_map(|bank| memory(arch, bank)).collect(),
                ports: level.banks.iter().flat_map(|bank| ports(arch, bank)).collect(),
                reduces: true,
            }
        })
        .collect();
    levels[0].reduces = false;
    levels.reverse();
    Hardware {
        macs: Macs {
            name: "lanes".to_owned(),
            instances: arch.lanes(),
            mesh_x: x * arch.compute.lanes.0,
        },
        levels,
    }
}

/// Bits of an element; the innermost levels hold partial sums.
fn bits(arch: &Accelerator, tensor: Tensor) -> u64 {
    arch.bits(tensor, tensor == Tensor::Outputs)
}

fn memory(arch: &Accelerator, bank: &Bank) -> Option<Memory> {
    let (capacity, in_words) = match bank.size {
        Capacity::Unbounded => return None,
        Capacity::Words(words) => (words, true),
        other => (other.bits().unwrap_or(u64::MAX), false),
    };
    let units = |tensor: Tensor| match (bank.holds.contains(tensor), in_words) {
        (false, _) => 0,
        (true, true) => bank.slots_of(tensor),
        (true, false) => bank.slots_of(tensor) * bits(arch, tensor),
    };
    Some(Memory {
        units: Tensor::ALL.map(units).to_vec(),
        capacity,
    })
}

/// Cycles of a port per element of `tensor`, for ports of width 1 per cycle.
fn cycles_per_element(arch: &Accelerator, width: Width, tensor: Tensor) -> f64 {
    match width {
        Width::Unlimited => 0.0,
        Width::Words(w) => 1.0 / w as f64,
        Width::Bits(w) => bits(arch, tensor) as f64 / w as f64,
        Width::Bytes(w) => bits(arch, tensor) as f64 / (8 * w) as f64,
    }
}

fn ports(arch: &Accelerator, bank: &Bank) -> Vec<Port> {
    let serves = |tensor: Tensor, only: Option<Tensor>| bank.holds.contains(tensor) && only.is_none_or(|o| o == tensor);
    let port = |read: bool, write: bool, only: Option<Tensor>| {
        let units = |active: bool, of: &dyn Fn(Tensor) -> Width| -> Vec<f64> {
            Tensor::ALL
                .map(|t| {
                    if active && serves(t, only) {
                        cycles_per_element(arch, of(t), t)
                    } else {
                        0.0
                    }
                })
                .to_vec()
        };
        Port {
            read_units: units(read, &|t| bank.read_width(t)),
            write_units: units(write, &|t| bank.write_width(t)),
            width: 1.0,
        }
    };
    match bank.ports {
        Ports::Ideal => Vec::new(),
        Ports::Shared { .. } => vec![port(true, true, None)],
        Ports::ReadWrite { .. } => vec![port(true, false, None), port(false, true, None)],
        Ports::PerTensor(_) => bank
            .holds
            .iter()
            .flat_map(|t| [port(true, false, Some(t)), port(false, true, Some(t))])
            .collect(),
    }
}

/// The mapping, level by level from the inside, with the last-iteration bounds that imperfect factors need:
/// with D the trips still to be made, r = ((D−1) mod f) + 1 and D ← ⌈D/f⌉, from the inside out.
///
/// # Errors
/// If the mapping has another number of levels than the machine.
pub(super) fn nest(problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Nest, CostError> {
    if mapping.levels.len() != arch.levels.len() {
        return Err(CostError::Invalid(format!(
            "the mapping has {} levels, {} has {}",
            mapping.levels.len(),
            arch.name,
            arch.levels.len()
        )));
    }
    let mut left = problem.bounds;
    let mut next = |dim: Dim, bound: u64| {
        let bound = bound.max(1);
        let last = (left[dim] - 1) % bound + 1;
        left[dim] = left[dim].div_ceil(bound);
        NestLoop {
            dim: dim as usize,
            bound,
            last,
        }
    };
    let mut blocks = Vec::with_capacity(mapping.levels.len());
    for level in mapping.levels.iter().rev() {
        // In Timeloop, loops along X sit inside those along Y.
        let mut along = |axis: Axis| -> Vec<NestLoop> {
            let loops = level.spatial.iter().rev().filter(|s| s.2 == axis);
            loops.map(|s| next(s.0, s.1)).collect()
        };
        let (spatial_x, spatial_y) = (along(Axis::X), along(Axis::Y));
        let temporal = level.temporal.iter().rev().map(|t| next(t.0, t.1)).collect();
        blocks.push(Block {
            temporal,
            spatial_x,
            spatial_y,
            keeps: Tensor::ALL.map(|t| level.keeps.contains(t)).to_vec(),
        });
    }
    Ok(Nest { blocks })
}
