//! From problem, accelerator and mapping to MAESTRO's terms.

use cyclonest_arch::directives::raise;
use cyclonest_arch::{Accelerator, Mapping, Width};
use cyclonest_workloads::{Problem, Tensor};

use super::{Evaluation, Machine, evaluate};
use crate::cost::{CostError, CostModel, Estimate};

/// The cost model `maestro`.
#[derive(Debug, Clone, Copy, Default)]
pub struct MaestroModel;

impl MaestroModel {
    /// Everything that the model says, in its own terms. The machine has as many PEs as the mapping uses.
    ///
    /// # Errors
    /// If the mapping has no directives, or MAESTRO cannot evaluate them.
    pub fn evaluation(
        &self,
        problem: &Problem,
        arch: &Accelerator,
        mapping: &Mapping,
    ) -> Result<Evaluation, CostError> {
        let raised = raise("layer", problem, mapping).map_err(|e| CostError::NotExpressible(e.to_string()))?;
        let machine = machine(arch, raised.pes);
        let evaluation =
            evaluate(&raised.layer, &machine).map_err(|e| CostError::NotExpressible(format!("MAESTRO fails: {e}")))?;
        if evaluation.average_bandwidth.is_nan() || evaluation.runtime <= 0 {
            let reason = "MAESTRO finds no valid iteration and says 0 cycles";
            return Err(CostError::NotExpressible(reason.to_owned()));
        }
        Ok(evaluation)
    }
}

impl CostModel for MaestroModel {
    fn name(&self) -> &str {
        "maestro"
    }

    fn evaluate(&self, problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Estimate, CostError> {
        let evaluation = self.evaluation(problem, arch, mapping)?;
        let delays = evaluation.delays.map(|d| d.average as f64);
        Ok(Estimate {
            cycles: evaluation.runtime as f64,
            energy_pj: evaluation.energy_macs() * arch.compute.energy_per_mac,
            counts: None,
            parts: ["ingress delay", "egress delay", "compute delay"]
                .map(str::to_owned)
                .into_iter()
                .zip(delays)
                .collect(),
        })
    }
}

/// What MAESTRO can know of `arch`: the network below the level that fans out first, and the outermost level's read
/// port. Widths are in elements of the inputs.
#[must_use]
pub fn machine(arch: &Accelerator, pes: u64) -> Machine {
    let fan = (0..arch.levels.len()).find(|&l| arch.child_mesh(l).0 * arch.child_mesh(l).1 > 1);
    let link = fan
        .and_then(|l| arch.channels(l, true))
        .and_then(|c| c.link(Tensor::Inputs));
    let port = arch.levels[0]
        .bank(Tensor::Inputs)
        .map(|b| b.read_width(Tensor::Inputs));
    let bits = arch.bits(Tensor::Inputs, false).max(1);
    let elements = |width: Option<Width>| match width {
        Some(Width::Bits(w)) => (w / bits).max(1),
        Some(Width::Bytes(w)) => (8 * w / bits).max(1),
        Some(Width::Words(w)) => w.max(1),
        Some(Width::Unlimited) | None => u64::from(u32::MAX),
    };
    Machine {
        pes,
        noc_bandwidth: elements(link.map(|l| l.width)),
        noc_latency: link.map_or(1, |l| l.latency),
        offchip_bandwidth: elements(port),
    }
}
