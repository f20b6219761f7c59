//! The energy of a result by level and tensor.

use cyclonest_arch::Accelerator;
use cyclonest_workloads::Tensor;

use super::LayerReport;

/// A part of the energy of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EnergyPart {
    /// A level, the network below one, or the MACs.
    pub(crate) part: String,
    pub(crate) tensor: Option<Tensor>,
    pub(crate) pj: f64,
}

/// The energy of a layer by level and tensor, from its counts and the energies of the machine.
///
/// The parts add up to the energy that `simulate` wrote, or the machine is another one.
pub(crate) fn energy(arch: &Accelerator, layer: &LayerReport) -> Result<Vec<EnergyPart>, String> {
    let mut parts = Vec::new();
    for result in &layer.levels {
        let Some(level) = arch.levels.iter().find(|level| level.name == result.name) else {
            return Err(format!("accelerator {} has no level {}", arch.name, result.name));
        };
        for tensor in Tensor::ALL {
            if let Some(bank) = level.bank(tensor) {
                let a = &result.tensors[tensor];
                let pj =
                    (a.reads + a.drains) as f64 * bank.energy.read + (a.fills + a.updates) as f64 * bank.energy.write;
                parts.push((level.name.clone(), Some(tensor), pj));
            }
        }
        if let (Some(network), Some(traffic)) = (&level.below, &result.network) {
            for tensor in Tensor::ALL {
                let pj = traffic[tensor].bit_hops as f64 * network.energy_per_bit_hop;
                parts.push((format!("network below {}", level.name), Some(tensor), pj));
            }
        }
    }
    let macs = layer.macs as f64 * arch.compute.energy_per_mac;
    parts.push(("MACs".to_string(), None, macs));
    let sum: f64 = parts.iter().map(|(_, _, pj)| pj).sum();
    if (sum - layer.energy_pj).abs() > 1e-6 * layer.energy_pj.abs().max(1.0) {
        return Err(format!(
            "layer {}: the energies of {} give {sum:.0} pJ, the result says {:.0}; is it another version of the machine?",
            layer.name, arch.name, layer.energy_pj
        ));
    }
    Ok(parts
        .into_iter()
        .filter(|(_, _, pj)| *pj > 0.0)
        .map(|(part, tensor, pj)| EnergyPart { part, tensor, pj })
        .collect())
}
