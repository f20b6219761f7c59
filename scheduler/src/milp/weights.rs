//! What the objective of the program is made of.

use std::collections::BTreeMap;

use cyclonest_arch::{Accelerator, Diagnostic};
use cyclonest_workloads::{Tensor, TensorMap};
use serde::{Deserialize, Serialize};

/// Weights of the composite objective. Every part is a sum of log₂ of cycles, elements or trips.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Weights {
    /// Of the busiest resource: the largest occupancy of any lane, port or channel (cycles), or the largest energy of
    /// any access (pJ).
    pub bottleneck: f64,
    /// Of the temporal trips (CoSA's Comp).
    pub compute: f64,
    /// Of the traffic between every two levels that keep a tensor (CoSA's Traf).
    pub traffic: f64,
    /// Of the tiles kept on the chip, counted against the objective (CoSA's Util).
    pub utilization: f64,
    /// Of the distance |traffic − compute − [`offset`](Weights::offset)|, both weighted as above, from a schedule in which
    /// neither waits for the other (CoSA's balance of communication and compute).
    pub balance: f64,
    /// Weighted traffic less weighted compute of a balanced schedule.
    pub offset: f64,
    /// Factor of the traffic of each tensor.
    pub tensors: TensorMap<Option<f64>>,
    /// Factor of the traffic into a level, by its name.
    pub levels: BTreeMap<String, f64>,
}

impl Default for Weights {
    fn default() -> Self {
        Weights {
            bottleneck: 1.0,
            compute: 0.02,
            traffic: 0.02,
            utilization: 0.0,
            balance: 0.0,
            offset: 0.0,
            tensors: TensorMap::default(),
            levels: BTreeMap::new(),
        }
    }
}

impl Weights {
    /// Factor of the traffic of `tensor` into the level of that name.
    #[must_use]
    pub fn factor(&self, level: &str, tensor: Tensor) -> f64 {
        self.levels.get(level).copied().unwrap_or(1.0) * self.tensors[tensor].unwrap_or(1.0)
    }

    /// Everything that keeps these weights from being used on `arch`: numbers that are negative or none, levels that
    /// it does not have, and proportions under which the program would pay for traffic that no mapping has.
    #[must_use]
    pub fn check(&self, arch: &Accelerator) -> Vec<String> {
        let mut faults = Vec::new();
        let parts = [
            ("bottleneck", self.bottleneck),
            ("compute", self.compute),
            ("traffic", self.traffic),
            ("utilization", self.utilization),
            ("balance", self.balance),
        ];
        let named = parts.into_iter().map(|(name, weight)| (name.to_string(), weight));
        let tensors = self.tensors.iter();
        let tensors = tensors.filter_map(|(tensor, factor)| Some((format!("tensors.{tensor:?}"), (*factor)?)));
        let levels = self.levels.iter().map(|(name, &f)| (format!("levels.{name}"), f));
        for (name, weight) in named.chain(tensors).chain(levels) {
            if !(weight.is_finite() && weight >= 0.0) {
                faults.push(format!("{name}: {weight} is no weight; a number from 0 on is expected"));
            }
        }
        if !self.offset.is_finite() {
            faults.push(format!("offset: {} is no number", self.offset));
        }
        for name in self.levels.keys() {
            let known = || arch.levels.iter().map(|level| level.name.as_str());
            if known().all(|level| level != name) {
                let help = cyclonest_arch::nearest(name, known()).map_or_else(
                    || format!("its levels are {}", known().collect::<Vec<_>>().join(", ")),
                    |near| format!("did you mean `{near}`?"),
                );
                faults.push(format!("levels.{name}: {} has no such level; {help}", arch.name));
            }
        }
        if self.balance > 1.0 {
            faults.push(format!("balance: {} is more than 1", self.balance));
        }
        let least = (1..arch.levels.len())
            .filter(|&l| arch.levels[l].bank(Tensor::Inputs).is_some())
            .map(|l| self.traffic * self.factor(&arch.levels[l].name, Tensor::Inputs))
            .fold(f64::INFINITY, f64::min);
        if self.utilization > least {
            faults.push(format!(
                "utilization: {} is more than the least weight of input traffic, {least}",
                self.utilization
            ));
        }
        faults
    }

    /// Reads weights, `Weights(…)` in RON.
    ///
    /// # Errors
    /// The first syntax error, unknown name or wrong type.
    pub fn from_ron(text: &str) -> Result<Self, Diagnostic> {
        cyclonest_arch::from_ron(text)
    }

    /// Writes the weights as RON.
    #[must_use]
    pub fn to_ron(&self) -> String {
        cyclonest_arch::to_ron(self)
    }

    /// The bottleneck with more weight on keeping every lane busy.
    pub(crate) fn compute() -> Self {
        Weights {
            compute: 0.5,
            ..Weights::default()
        }
    }

    /// The bottleneck with more weight on moving little.
    pub(crate) fn traffic() -> Self {
        Weights {
            traffic: 0.2,
            ..Weights::default()
        }
    }

    /// The constants in CoSA's code: 10·Comp − 0.1·Util + 1·Traf, without a bottleneck.
    #[must_use]
    pub fn cosa() -> Self {
        Weights {
            bottleneck: 0.0,
            compute: 10.0,
            traffic: 1.0,
            utilization: 0.1,
            ..Weights::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simba() -> Accelerator {
        cyclonest_arch::bundled::load("simba").expect("bundled")
    }

    #[test]
    fn weights_survive_their_file() {
        let mut weights = Weights {
            offset: -2.5,
            balance: 0.5,
            ..Weights::default()
        };
        weights.levels.insert("GB".into(), 3.0);
        weights.tensors[Tensor::Outputs] = Some(0.25);
        assert_eq!(weights.check(&simba()), Vec::<String>::new());
        assert_eq!(Weights::from_ron(&weights.to_ron()), Ok(weights));
    }

    #[test]
    fn a_file_may_name_some_weights_only() {
        let some = Weights::from_ron("Weights(traffic: 0.5, tensors: { Inputs: 2.0 })").expect("read");
        assert_eq!((some.traffic, some.bottleneck), (0.5, 1.0));
        assert_eq!(some.factor("GB", Tensor::Inputs), 2.0);
    }

    #[test]
    fn what_is_wrong_is_said_all_at_once() {
        let weights = Weights {
            compute: -1.0,
            balance: 2.0,
            levels: BTreeMap::from([("GBB".to_string(), 1.0)]),
            ..Weights::default()
        };
        let faults = weights.check(&simba());
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(faults[1].contains("did you mean `GB`?"), "{faults:?}");
        let error = Weights::from_ron("Weights(\n  trafic: 1.0)").unwrap_err();
        assert_eq!(error.line, 2);
    }
}
