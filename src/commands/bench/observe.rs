//! `bench permutations` and `bench spatial`: what the order of the loops alone, and the spatial loops alone, change.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use comfy_table::{CellAlignment, Table, presets};
use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_validation::observe::{self, Variant};
use cyclonest_workloads::{Dim, DimMap, Problem};
use serde::Serialize;

use crate::cli::Ending;
use crate::commands::simulate;
use crate::faults::Faults;
use crate::inputs;
use crate::output::Destination;
use crate::provenance::Provenance;
use crate::report::{render, thousands};
use crate::search::SearchArgs;

/// Simulate one layer under every order of the loops outside the PE level, tiles and spatial loops as they are.
///
/// Loops that the same tensors ignore stay together. CoSA's first observation.
#[derive(Debug, ClapArgs)]
pub(crate) struct PermutationArgs {
    #[command(flatten)]
    subject: Subject,
}

/// Simulate one layer under every choice of spatial loops over the PEs, as many PEs and the same tiles.
///
/// What a dimension gives up in space it gets in time at the same level. CoSA's second observation.
#[derive(Debug, ClapArgs)]
pub(crate) struct SpatialArgs {
    #[command(flatten)]
    subject: Subject,
}

/// A layer, a machine, and the mapping to begin with.
#[derive(Debug, ClapArgs)]
struct Subject {
    /// A bundled accelerator (`cyclonest list archs`) or a RON file.
    #[arg(long, value_name = "NAME|FILE")]
    arch: String,
    /// A bundled network (`cyclonest list networks`), a RON file or an ONNX file.
    #[arg(long, value_name = "NAME|FILE", requires = "layer")]
    network: Option<String>,
    /// The layer of the network.
    #[arg(long, value_name = "NAME", requires = "network")]
    layer: Option<String>,
    /// A layer by its bounds, instead of one of a network.
    #[arg(
        long,
        value_name = "K=64,C=32,…",
        conflicts_with = "network",
        required_unless_present = "network"
    )]
    shape: Option<String>,
    /// Maps the layer (`cyclonest list schedulers`).
    #[arg(long, value_name = "NAME", default_value = "milp")]
    scheduler: String,
    #[command(flatten)]
    search: SearchArgs,
    /// How the result is written.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Write the result to a file, which appears when it is complete [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The fastest and the slowest variants.
    Human,
    /// All variants with their mappings.
    Json,
}

/// Rows of the table at each end.
const ENDS: usize = 5;

#[derive(Debug, Serialize)]
struct Row {
    variant: String,
    cycles: u64,
    energy_pj: f64,
    mapping: Mapping,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    command: &'static str,
    version: &'static str,
    provenance: Provenance,
    arch: String,
    layer: String,
    scheduler: String,
    /// Largest cycles ÷ smallest.
    spread: Option<f64>,
    rows: Vec<Row>,
}

/// Runs `bench permutations`.
pub(crate) fn permutations(args: &PermutationArgs) -> Result<Ending, Faults> {
    args.subject.run("bench permutations", observe::permutations)
}

/// Runs `bench spatial`.
pub(crate) fn spatial(args: &SpatialArgs) -> Result<Ending, Faults> {
    args.subject.run("bench spatial", observe::spatial)
}

type Observe = fn(&Problem, &Accelerator, &Mapping) -> Result<Vec<Variant>, String>;

impl Subject {
    fn run(&self, command: &'static str, observe: Observe) -> Result<Ending, Faults> {
        let mut faults = None;
        let arch = Faults::collect(&mut faults, inputs::arch(&self.arch));
        let layer = Faults::collect(&mut faults, self.problem());
        let scheduler = Faults::collect(&mut faults, inputs::scheduler(&self.scheduler));
        let (Some(arch), Some((layer, problem)), Some(scheduler)) = (arch, layer, scheduler) else {
            return Err(faults.unwrap_or_else(|| Faults::one("nothing to map")));
        };
        let destination = Destination::prepare(self.output.as_deref())?;
        let found = scheduler
            .schedule(&self.search.request(&problem, &arch))
            .map_err(|error| Faults::one(error.to_string()))?;
        let variants = observe(&problem, &arch, &found.mapping).map_err(Faults::one)?;
        let report = Report {
            schema: 1,
            command,
            version: env!("CARGO_PKG_VERSION"),
            provenance: Provenance::of_this_run([self.arch.as_str()].into_iter().chain(self.network.as_deref())),
            arch: arch.name.clone(),
            layer,
            scheduler: scheduler.name().to_string(),
            spread: observe::spread(&variants),
            rows: variants
                .into_iter()
                .map(|variant| Row {
                    variant: variant.name,
                    cycles: variant.cycles,
                    energy_pj: variant.energy_pj,
                    mapping: variant.mapping,
                })
                .collect(),
        };
        destination.write(&match self.format {
            Format::Human => report.to_human(),
            Format::Json => serde_json::to_string_pretty(&report).map_err(|e| Faults::one(e.to_string()))? + "\n",
        })?;
        Ok(Ending::Complete)
    }

    /// The layer with its name.
    fn problem(&self) -> Result<(String, Problem), Faults> {
        if let Some(shape) = &self.shape {
            return Ok((shape.clone(), parse(shape)?));
        }
        let network = inputs::network(self.network.as_deref().unwrap_or_default(), None)?.network;
        let all = network.distinct();
        let selected = simulate::select(self.layer.as_slice(), &network, &all)?;
        let layer = selected.into_iter().next();
        layer.map_or_else(
            || Err(Faults::one("the network has no layers")),
            |layer| Ok((layer.name.clone(), layer.problem)),
        )
    }
}

/// Bounds as `K=64,C=32`; what is not named is 1.
fn parse(shape: &str) -> Result<Problem, Faults> {
    let mut bounds = DimMap::<u64>::ones();
    for part in shape.split(',') {
        let parsed = part.trim().split_once('=').and_then(|(name, bound)| {
            let dim = Dim::ALL.into_iter().find(|dim| dim.to_string() == name.trim())?;
            Some((dim, bound.trim().parse::<u64>().ok().filter(|&b| b > 0)?))
        });
        let Some((dim, bound)) = parsed else {
            return Err(Faults::one(format!(
                "--shape: `{part}` is no bound; N, G, K, C, P, Q, R or S = a positive number is expected"
            )));
        };
        bounds[dim] = bound;
    }
    Ok(Problem::new(bounds))
}

impl Report {
    fn to_human(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["variant", "cycles", "×", "energy [µJ]"]);
        let best = self.rows.first().map_or(1, |row| row.cycles);
        for (index, row) in self.rows.iter().enumerate() {
            if index >= ENDS && index + ENDS < self.rows.len() {
                continue;
            }
            table.add_row([
                row.variant.clone(),
                thousands(row.cycles),
                format!("{:.2}", row.cycles as f64 / best as f64),
                format!("{:.1}", row.energy_pj * 1e-6),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        format!(
            "{} on {}, mapped by {}: {} variants, the slowest takes {:.2} times the fastest\n{}",
            self.layer,
            self.arch,
            self.scheduler,
            self.rows.len(),
            self.spread.unwrap_or(1.0),
            render(&table)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_names_bounds() {
        let problem = parse("K=64, C=32,P=7").expect("bounds");
        assert_eq!(
            (problem.bounds[Dim::K], problem.bounds[Dim::P], problem.bounds[Dim::R]),
            (64, 7, 1)
        );
        for wrong in ["K64", "Z=3", "K=0", ""] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
