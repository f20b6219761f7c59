//! Stacked bars: energy by level and tensor, PE-cycles by what the PEs do.

use cyclonest_arch::Accelerator;
use cyclonest_plots::StackRow;

use super::{Args, Source, chosen, machine, of_each};
use crate::faults::Faults;
use crate::report::{self, LayerReport};

/// The name of a layer's bar, with that of its result where there are several.
fn bar(layer: &LayerReport, label: Option<&str>) -> String {
    label.map_or_else(|| layer.name.clone(), |label| format!("{} {label}", layer.name))
}

/// Energy by level and tensor, a bar per layer; layers that the network has several times count as often.
pub(in crate::commands::plot) fn energy(args: &Args, sources: &[Source]) -> Result<Vec<StackRow>, Faults> {
    of_each(sources, |result, label| {
        let arch = machine(args.arch.as_deref(), result)?;
        let mut rows = Vec::new();
        for layer in chosen(args, result)? {
            rows.extend(energy_rows(&arch, layer, &bar(layer, label)).map_err(Faults::one)?);
        }
        Ok(rows)
    })
}

/// The parts of a layer's energy.
pub(crate) fn energy_rows(arch: &Accelerator, layer: &LayerReport, bar: &str) -> Result<Vec<StackRow>, String> {
    let parts = report::energy(arch, layer)?;
    Ok(parts
        .into_iter()
        .map(|part| StackRow {
            bar: bar.to_string(),
            part: part.part,
            detail: part.tensor.map(|t| t.to_string()),
            value: part.pj * layer.count as f64,
        })
        .collect())
}

/// PE-cycles by what the PEs do.
pub(in crate::commands::plot) fn cycles(args: &Args, sources: &[Source]) -> Result<Vec<StackRow>, Faults> {
    of_each(sources, |result, label| {
        let layers = chosen(args, result)?.into_iter();
        Ok(layers.flat_map(|layer| cycle_rows(layer, &bar(layer, label))).collect())
    })
}

/// The PE-cycles of a layer.
pub(crate) fn cycle_rows(layer: &LayerReport, bar: &str) -> Vec<StackRow> {
    let part = |part: &str, cycles: u64| StackRow {
        bar: bar.to_string(),
        part: part.to_string(),
        detail: None,
        value: cycles as f64 * layer.count as f64,
    };
    let mut rows = vec![part("computing", layer.busy_cycles)];
    let waiting = layer.stall_cycles.iter().filter(|(_, cycles)| **cycles > 0);
    rows.extend(waiting.map(|(reason, cycles)| part(reason, *cycles)));
    rows
}
