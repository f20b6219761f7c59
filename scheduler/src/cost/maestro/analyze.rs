//! Delays, counts and requirements, level by level.

use cyclonest_arch::directives::Var;
use serde::{Deserialize, Serialize};

use super::cases::{Cases, State};
use super::levels::{PerVar, Problem, Tensor};
use super::reuse::Case;
use super::{Machine, MaestroError};

/// Accesses and requirements of one tensor \[elements\].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TensorCosts {
    /// Written to L2: inputs from outside, outputs from the array.
    pub l2_write: i64,
    /// Read from L2.
    pub l2_read: i64,
    /// Written to all L1s.
    pub l1_write: i64,
    /// Read from all L1s.
    pub l1_read: i64,
    /// L2 needed, double-buffered.
    pub l2_required: i64,
    /// L1 needed in one PE, double-buffered.
    pub l1_required: i64,
}

/// Smallest, largest and average delay over the cases of the outermost level \[cycles\]; the average is truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Delays {
    /// The smallest.
    pub min: i64,
    /// The largest.
    pub max: i64,
    /// The average.
    pub average: i64,
}

/// What MAESTRO says of a layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Latency \[cycles\].
    pub runtime: i64,
    /// MACs as counted from the partial sums of all cases.
    pub macs: i64,
    /// Costs of inputs, weights and outputs.
    pub tensors: [TensorCosts; 3],
    /// Largest traffic per cycle of computation \[elements\].
    pub peak_bandwidth: i64,
    /// Average of the same; not a number if no case is valid.
    pub average_bandwidth: f64,
    /// What the outside has to deliver per cycle \[elements\].
    pub offchip_bandwidth: i64,
    /// Delays of traffic in, traffic out, and computation.
    pub delays: [Delays; 3],
    /// PEs active on average.
    pub active_pes: f64,
    /// MACs per element of traffic in, in the last case.
    pub arithmetic_intensity: f64,
    /// Levels and tiles that were analysed, each occurrence counted.
    pub analyses: u64,
}

/// Counts of one level over one tile.
#[derive(Debug, Clone)]
struct LevelResult {
    runtime: i64,
    macs: i64,
    tensors: [TensorCosts; 3],
    peak: i64,
    average: f64,
    offchip: i64,
    delays: [(i64, i64, f64); 3],
    active: f64,
    intensity: f64,
    cases: i64,
    analyses: u64,
}

const OUTPUT: usize = 2;

struct Analysis<'a> {
    problem: &'a Problem,
    machine: &'a Machine,
    /// What is known of each level, by its tile.
    known: Vec<Vec<(PerVar, LevelResult)>>,
    /// L1 requirement of the first analysis that was completed: the innermost level, if it was reached.
    first: Option<[i64; 3]>,
}

pub(super) fn analyze(problem: &Problem, machine: &Machine) -> Result<Evaluation, MaestroError> {
    let mut analysis = Analysis {
        problem,
        machine,
        known: vec![Vec::new(); problem.levels.len()],
        first: None,
    };
    let top = analysis.level(0, &problem.dims)?;
    let first = analysis.first.unwrap_or_default();
    let mut tensors = top.tensors;
    for (tensor, required) in tensors.iter_mut().zip(first) {
        tensor.l1_required = required;
    }
    Ok(Evaluation {
        runtime: top.runtime,
        macs: top.macs,
        tensors,
        peak_bandwidth: top.peak,
        average_bandwidth: top.average / top.cases as f64,
        offchip_bandwidth: top.offchip,
        delays: top.delays.map(|(min, max, sum)| Delays {
            min,
            max,
            average: (sum / top.cases as f64) as i64,
        }),
        active_pes: top.active,
        arithmetic_intensity: top.intensity,
        analyses: top.analyses,
    })
}

impl Analysis<'_> {
    fn level(&mut self, l: usize, dims: &PerVar) -> Result<LevelResult, MaestroError> {
        if let Some((_, result)) = self.known[l].iter().find(|(tile, _)| tile == dims) {
            return Ok(result.clone());
        }
        let result = self.analyze(l, dims)?;
        self.known[l].push((*dims, result.clone()));
        Ok(result)
    }

    fn analyze(&mut self, l: usize, dims: &PerVar) -> Result<LevelResult, MaestroError> {
        let problem = self.problem;
        let level = &problem.levels[l];
        let cases = Cases::new(level, dims);
        let mut r = LevelResult {
            runtime: 0,
            macs: 0,
            tensors: [TensorCosts::default(); 3],
            peak: 0,
            average: 0.0,
            offchip: 0,
            delays: [(i64::MAX, i64::MIN, 0.0); 3],
            active: 0.0,
            intensity: 0.0,
            cases: 0,
            analyses: 1,
        };
        let mut states: Vec<State> = Vec::with_capacity(level.maps.len());
        let driver = level.maps.iter().position(|m| m.spatial).unwrap_or(0);
        let mut valid = false;
        for i in 0..cases.count() {
            let occurrences = cases
                .fill(i, &mut states)
                .ok_or(MaestroError::Overflow("the number of iterations"))?;
            let case = Case {
                problem,
                index: l,
                level,
                states: &states,
            };
            if !valid {
                self.requirements(&case, dims, &mut r)?;
            }
            let egress = case.egress()?;
            let sums = case.partial_sums();
            let output = &mut r.tensors[OUTPUT];
            output.l2_write += occurrences * egress;
            output.l1_write += occurrences * sums;
            output.l1_read += occurrences * sums;
            let critical = case.critical_partial_sums();
            if critical <= 0 {
                continue;
            }
            valid = true;
            let mut ingress = 0;
            for (t, tensor) in problem.inputs.iter().enumerate() {
                let traffic = case.ingress(tensor)?;
                ingress += traffic;
                r.tensors[t].l2_read += occurrences * traffic;
                r.tensors[t].l1_write = r.tensors[t].l2_read;
                r.tensors[t].l1_read += occurrences * sums;
            }
            r.intensity = sums as f64 / ingress as f64;
            let spatial = states[driver];
            let active = if spatial.edge {
                level.edge_clusters
            } else {
                level.clusters
            };
            let (mut compute, mut active_inside) = (0, 0.0);
            if l + 1 < problem.levels.len() {
                let mut inside = |partial: bool, instances: i64, me: &mut Self| -> Result<(), MaestroError> {
                    let result = me.level(l + 1, &case.tile(partial))?;
                    compute = compute.max(result.runtime);
                    active_inside += result.active * instances as f64;
                    r.analyses += result.analyses;
                    Ok(())
                };
                if spatial.edge && spatial.partial {
                    inside(true, 1, self)?;
                    if level.edge_clusters > 1 {
                        inside(false, level.edge_clusters - 1, self)?;
                    }
                } else {
                    inside(false, active, self)?;
                }
            } else {
                compute = critical;
            }
            let (delay_in, delay_out) = (self.transfer(ingress), self.transfer(egress));
            let mut delay = if case.is_all_init() {
                compute + delay_in
            } else {
                delay_out.max(compute).max(delay_in)
            };
            if l == 0 {
                let offchip = self.machine.offchip_bandwidth as i64;
                let (inwards, outwards) = (
                    r.tensors[0].l2_required + r.tensors[1].l2_required,
                    r.tensors[OUTPUT].l2_required,
                );
                delay = delay.max(inwards / offchip / 2).max(outwards / offchip / 2);
                if compute == 0 {
                    return Err(MaestroError::NothingComputed);
                }
                r.offchip = r.offchip.max(outwards / compute).max(inwards / compute) / 2;
            }
            r.runtime += occurrences * delay;
            r.macs += occurrences * sums;
            if active_inside == 0.0 {
                active_inside = active as f64;
            }
            r.active += active_inside * occurrences as f64;
            let compute = if compute == 0 { 1 } else { compute };
            let busiest = ingress.max(egress);
            r.peak = r.peak.max(busiest / compute);
            r.average += ((occurrences * busiest) / compute) as f64;
            for (delays, value) in r.delays.iter_mut().zip([delay_in, delay_out, compute]) {
                delays.0 = delays.0.min(value);
                delays.1 = delays.1.max(value);
                delays.2 += (occurrences * value) as f64;
            }
            r.cases += occurrences;
        }
        if r.cases != 0 {
            r.active /= r.cases as f64;
        }
        self.first.get_or_insert(r.tensors.map(|t| t.l1_required));
        Ok(r)
    }

    /// Cycles until the last of `volume` elements has arrived; with no latency and no elements, −1.
    fn transfer(&self, volume: i64) -> i64 {
        let bandwidth = self.machine.noc_bandwidth as i64;
        let sends = volume / bandwidth + i64::from(volume % bandwidth != 0);
        self.machine.noc_latency as i64 + sends - 1
    }

    /// Buffers that the first valid case needs. While the first cases are invalid, the requirement of inputs is
    /// added up, a fault of the original.
    fn requirements(&self, case: &Case<'_>, dims: &PerVar, r: &mut LevelResult) -> Result<(), MaestroError> {
        let level = case.level;
        let mapped = |tensor: &Tensor| -> i64 { tensor.vars.iter().map(|&v| level.mapped[v as usize]).product() };
        for (t, tensor) in self.problem.inputs.iter().enumerate() {
            let costs = &mut r.tensors[t];
            costs.l2_required += 2 * case.ingress(tensor)?;
            costs.l1_required += 2 * mapped(tensor);
            costs.l2_write = tensor.vars.iter().map(|&v| dims[v as usize]).product();
        }
        let output = &self.problem.output;
        let extent = |var: Var| match var {
            Var::X if self.problem.sliding => dims[Var::X as usize] - dims[Var::S as usize] + 1,
            Var::Y if self.problem.sliding => dims[Var::Y as usize] - dims[Var::R as usize] + 1,
            other => dims[other as usize],
        };
        let costs = &mut r.tensors[OUTPUT];
        costs.l2_required = 2 * case.egress()?;
        costs.l1_required = 2 * mapped(output);
        costs.l2_read = output.vars.iter().map(|&v| extent(v)).product();
        Ok(())
    }
}
