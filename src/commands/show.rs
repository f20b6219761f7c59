//! `show`: a description for the eye.

use std::path::Path;

use clap::Args as ClapArgs;
use comfy_table::{CellAlignment, Table, presets};
use cyclonest_workloads::{Dim, Network, Pair, Problem};

use crate::cli::Ending;
use crate::faults::Faults;
use crate::inputs::{self, InputShape, Kind, MappingFile};
use crate::{diagram, output, report};

/// Draw an accelerator, print a mapping as its loop nest, or list the layers of a network.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A bundled accelerator or network by its name, or a file.
    #[arg(value_name = "NAME|FILE")]
    what: String,
    /// Of a file of mappings, only these layers.
    #[arg(long = "layer", value_name = "NAME")]
    layers: Vec<String>,
    /// Shape of the input of an ONNX file that leaves sizes open.
    #[arg(long, value_name = "1x3x224x224")]
    input_shape: Option<InputShape>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    output::print(&describe(args)?)?;
    Ok(Ending::Complete)
}

fn describe(args: &Args) -> Result<String, Faults> {
    let given = &args.what;
    if let Some(arch) = cyclonest_arch::bundled::load(given) {
        return Ok(diagram::draw(&arch));
    }
    if cyclonest_workloads::bundled::names().contains(&given.as_str()) {
        return Ok(layers(&inputs::network(given, args.input_shape.as_ref())?.network));
    }
    if !inputs::is_path(given) {
        let known: Vec<String> = inputs::arch_names()
            .into_iter()
            .chain(inputs::network_names())
            .collect();
        return Err(Faults::unknown("accelerator, network or file", given, &known));
    }
    let path = Path::new(given);
    if inputs::is_onnx(path) {
        return Ok(layers(&inputs::onnx(path, args.input_shape.as_ref())?.network));
    }
    let text = inputs::read(path)?;
    match Kind::of(path, &text)? {
        Kind::Accelerator => Ok(diagram::draw(&inputs::arch_from(path, &text)?)),
        Kind::Network => Ok(layers(&inputs::network_from(path, &text)?)),
        Kind::Mapping | Kind::Mappings => nests(path, &args.layers),
        other @ (Kind::Plan | Kind::Technology) => Err(Faults::one(format!(
            "{}: found {other:?}(…), which has no picture; an accelerator, a network or mappings are expected",
            path.display()
        ))),
    }
}

fn nests(path: &Path, wanted: &[String]) -> Result<String, Faults> {
    let many = match inputs::mappings(path)?.0 {
        MappingFile::One(mapping) => return Ok(format!("{}\n", mapping.nest(None).trim_end())),
        MappingFile::Many(many) => many,
    };
    let known: Vec<String> = many.layers.keys().cloned().collect();
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(name)) {
        return Err(Faults::unknown("layer", unknown, &known));
    }
    let mut out = String::new();
    for (name, mapping) in &many.layers {
        if wanted.is_empty() || wanted.contains(name) {
            out.push_str(&format!("{name}\n{}\n\n", mapping.nest(None).trim_end()));
        }
    }
    Ok(format!("{}\n", out.trim_end()))
}

fn layers(network: &Network) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["layer", "count", "bounds", "stride", "dilation", "MACs"]);
    if let Some(column) = table.column_mut(5) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for layer in network.distinct() {
        table.add_row([
            layer.name.clone(),
            layer.count.to_string(),
            bounds(&layer.problem),
            pair(layer.problem.stride),
            pair(layer.problem.dilation),
            report::thousands(layer.problem.macs()),
        ]);
    }
    format!(
        "{}: {}, {} MACs\n{}",
        network.name(),
        report::counted(network.nodes().len() as u64, "node"),
        report::thousands(network.macs()),
        report::render(&table)
    )
}

/// The bounds that are not 1: `K64 C64 P56`.
fn bounds(problem: &Problem) -> String {
    let mut named: Vec<String> = problem
        .bounds
        .iter()
        .filter(|(_, bound)| **bound > 1)
        .map(|(dim, bound): (Dim, &u64)| format!("{dim}{bound}"))
        .collect();
    if named.is_empty() {
        named.push("1".into());
    }
    named.join(" ")
}

fn pair(pair: Pair) -> String {
    match pair {
        Pair(y, x) if y == x => y.to_string(),
        Pair(y, x) => format!("{y}×{x}"),
    }
}
