//! MAESTRO, Table 5: what multicast and reduction in the network are worth.

use cyclonest_arch::{Accelerator, Reduction};
use cyclonest_plots::{BarOptions, BarRow, Scale, Style, bars};
use cyclonest_sim::Options;
use cyclonest_workloads::TensorSet;

use super::super::experiment::Results;
use super::super::lab::{Lab, accelerator, judge};
use crate::search::geomean;

/// The machine with every network changed.
fn with(arch: &Accelerator, multicast: bool, reduction: bool) -> Accelerator {
    let mut changed = arch.clone();
    for level in &mut changed.levels {
        if let Some(network) = &mut level.below {
            if !multicast {
                network.multicast = TensorSet::EMPTY;
            }
            if !reduction {
                network.reduction = Reduction::None;
            }
        }
    }
    changed
}

pub(super) fn run(lab: &Lab) -> Result<Results, String> {
    let arch = accelerator("simba")?;
    let variants = [
        ("no multicast", with(&arch, false, true)),
        ("no reduction", with(&arch, true, false)),
        ("neither", with(&arch, false, false)),
    ];
    let mut rows = Vec::new();
    let mut energy: Vec<Vec<f64>> = vec![Vec::new(); variants.len()];
    let mut cycles: Vec<Vec<f64>> = vec![Vec::new(); variants.len()];
    for job in lab.layers(&["vgg16"]) {
        let Some(full) = judge(&job, &arch, "milp") else {
            continue;
        };
        for (index, (name, machine)) in variants.iter().enumerate() {
            // The same mapping: only the hardware changes.
            let outcome = cyclonest_sim::simulate(&job.problem, machine, &full.mapping, Options::default())
                .map_err(|error| error.to_string())?;
            let ratio = outcome.counts.energy_pj(machine) / full.energy_pj;
            energy[index].push(ratio);
            cycles[index].push(outcome.cycles as f64 / full.cycles as f64);
            rows.push(BarRow {
                group: job.layer.clone(),
                series: (*name).to_string(),
                value: ratio,
            });
        }
    }
    let mut results = Results::default();
    let options = BarOptions {
        y_label: "energy without the hardware [×]".to_string(),
        x_label: String::new(),
        scale: Scale::Linear,
        geomean: true,
        reference: Some(1.0),
    };
    results.figure("", bars(&rows, &options, &Style::default()))?;
    let mean = |values: &[f64]| geomean(values.iter().copied()).ok_or("no layer maps".to_string());
    for (index, (name, paper)) in [
        ("without multicast", "about 47 % more energy"),
        ("without reduction", "about 47 % more energy"),
        ("without either", "no value at hand"),
    ]
    .into_iter()
    .enumerate()
    {
        results.found(
            format!("VGG16 {name}"),
            paper,
            format!(
                "{:.0} % more energy, {:.2} times the cycles (simulated, same mappings)",
                (mean(&energy[index])? - 1.0) * 100.0,
                mean(&cycles[index])?
            ),
        );
    }
    Ok(results)
}
