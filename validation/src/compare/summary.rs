//! Many layers in a few figures.

use std::collections::BTreeMap;

use cyclonest_scheduler::cost::CostModel;
use serde::{Deserialize, Serialize};

use super::{Agreement, LayerRow, Pair, RankRow};

/// Share of the time below which a layer belongs to [`Subset::Waiting`].
pub const FEW: f64 = 0.8;

/// Which layers a summary is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subset {
    /// All.
    All,
    /// Those that compute less than 80 % of the time, on which a count of MACs alone says little.
    Waiting,
}

/// One model over the layers of one machine, or of all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The model.
    pub model: String,
    /// The machine; `None` for all together.
    pub arch: Option<String>,
    /// Which layers.
    pub subset: Subset,
    /// Layers that were simulated.
    pub layers: usize,
    /// Of them, those that the model refuses; its statistics are about the others.
    pub refused: usize,
    /// Errors and correlations; every distinct layer counts once.
    pub agreement: Agreement,
    /// The layer of the largest absolute error.
    pub worst: Option<Worst>,
    /// How often each part of the latency was the largest difference to the simulation, the most frequent first.
    pub gaps: Vec<(String, usize)>,
    /// How often each reason to refuse occurred, the most frequent first.
    pub refusals: Vec<(String, usize)>,
}

/// The layer on which a model is worst.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    /// Machine.
    pub arch: String,
    /// Network.
    pub network: String,
    /// Layer.
    pub layer: String,
    /// Signed error.
    pub error: f64,
}

/// A summary per model, for every machine (in the order of the rows) and for all machines if there are several, of all
/// layers and of those that compute less than [`FEW`] of the time.
#[must_use]
pub fn summaries(rows: &[LayerRow], models: &[&dyn CostModel], seed: u64) -> Vec<Summary> {
    let mut machines: Vec<Option<&str>> = Vec::new();
    for row in rows {
        if !machines.contains(&Some(row.arch.as_str())) {
            machines.push(Some(&row.arch));
        }
    }
    if machines.len() > 1 {
        machines.push(None);
    }
    let mut all = Vec::new();
    for arch in machines {
        for subset in [Subset::All, Subset::Waiting] {
            let within = |row: &&LayerRow| {
                arch.is_none_or(|arch| arch == row.arch) && (subset == Subset::All || row.breakdown.computing < FEW)
            };
            let rows: Vec<&LayerRow> = rows.iter().filter(within).collect();
            if rows.is_empty() {
                continue;
            }
            for (index, model) in models.iter().enumerate() {
                all.push(summary(&rows, index, *model, (arch, subset), seed));
            }
        }
    }
    all
}

fn summary(
    rows: &[&LayerRow],
    index: usize,
    model: &dyn CostModel,
    (arch, subset): (Option<&str>, Subset),
    seed: u64,
) -> Summary {
    let mut pairs = Vec::new();
    let mut worst: Option<Worst> = None;
    let (mut gaps, mut refusals) = (BTreeMap::new(), BTreeMap::new());
    for row in rows {
        let verdict = &row.verdicts[index];
        if let Some(estimated) = verdict.estimate {
            let measured = row.cycles.max(1) as f64;
            pairs.push(Pair { measured, estimated });
        }
        if let Some(error) = verdict.error
            && worst.as_ref().is_none_or(|worst| error.abs() > worst.error.abs())
        {
            worst = Some(Worst {
                arch: row.arch.clone(),
                network: row.network.clone(),
                layer: row.layer.clone(),
                error,
            });
        }
        if let Some(gap) = &verdict.gap {
            *gaps.entry(gap.what.clone()).or_insert(0) += 1;
        }
        if let Some(reason) = &verdict.refused {
            *refusals.entry(reason.clone()).or_insert(0) += 1;
        }
    }
    Summary {
        model: model.name().to_owned(),
        arch: arch.map(str::to_owned),
        subset,
        layers: rows.len(),
        refused: rows.len() - pairs.len(),
        agreement: Agreement::of(&pairs, model.in_cycles(), seed),
        worst,
        gaps: by_frequency(gaps),
        refusals: by_frequency(refusals),
    }
}

fn by_frequency(counts: BTreeMap<String, usize>) -> Vec<(String, usize)> {
    let mut all: Vec<(String, usize)> = counts.into_iter().collect();
    // Stable: equally frequent ones stay in alphabetical order.
    all.sort_by_key(|entry| std::cmp::Reverse(entry.1));
    all
}

/// One model over the sampled mappings of several layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankSummary {
    /// The model.
    pub model: String,
    /// Layers with at least two mappings that the model judges.
    pub layers: usize,
    /// Mappings judged, and refused.
    pub judged: usize,
    /// Mappings that the model refuses.
    pub refused: usize,
    /// Mean over the layers of their mean absolute errors.
    pub mean_error: Option<f64>,
    /// Largest absolute error of any mapping.
    pub largest_error: Option<f64>,
    /// Mean τ over the layers.
    pub tau: Option<f64>,
    /// Smallest τ of a layer.
    pub lowest_tau: Option<f64>,
    /// Mean regret over the layers.
    pub regret: Option<f64>,
    /// Largest regret of a layer.
    pub largest_regret: Option<f64>,
}

/// A summary per model.
#[must_use]
pub fn rank_summaries(rows: &[RankRow]) -> Vec<RankSummary> {
    let models = rows.first().map_or(0, |row| row.verdicts.len());
    (0..models)
        .map(|index| {
            let verdicts = || rows.iter().map(|row| &row.verdicts[index]);
            let taus: Vec<f64> = verdicts().filter_map(|v| v.tau().map(|tau| tau.value)).collect();
            let regrets: Vec<f64> = verdicts().filter_map(|v| v.regret).collect();
            let errors: Vec<f64> = verdicts()
                .filter_map(|v| v.agreement.mean_error.map(|e| e.value))
                .collect();
            RankSummary {
                model: rows[0].verdicts[index].model.clone(),
                layers: taus.len(),
                judged: verdicts().map(|v| v.agreement.pairs).sum(),
                refused: verdicts().map(|v| v.refused).sum(),
                mean_error: mean(&errors),
                largest_error: verdicts().filter_map(|v| v.agreement.largest_error).reduce(f64::max),
                tau: mean(&taus),
                lowest_tau: taus.iter().copied().reduce(f64::min),
                regret: mean(&regrets),
                largest_regret: regrets.iter().copied().reduce(f64::max),
            }
        })
        .collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
