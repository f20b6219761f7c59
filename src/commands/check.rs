//! `check`: what a file is, and every fault in it.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use cyclonest_arch::{Accelerator, Technology};
use cyclonest_workloads::Network;

use crate::assign::Given;
use crate::cli::Ending;
use crate::explore;
use crate::faults::Faults;
use crate::inputs::{self, InputShape, Kind, MappingFile};
use crate::output;
use crate::report::counted;

/// Say what files are and list every fault in them.
///
/// Accelerators, networks, mappings, plans and technologies in RON, and networks in ONNX. A file of mappings is checked against the accelerator and the network
/// that it names. Exit code 2 if a file has a fault.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Files to check.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Check mappings against this accelerator instead of the one that they name.
    #[arg(long, value_name = "NAME|FILE")]
    arch: Option<String>,
    /// Check mappings against this network instead of the one that they name.
    #[arg(long, value_name = "NAME|FILE")]
    network: Option<String>,
    /// Shape of the input of an ONNX file that leaves sizes open.
    #[arg(long, value_name = "1x3x224x224")]
    input_shape: Option<InputShape>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let mut faults = None;
    let mut out = String::new();
    for file in &args.files {
        if let Some(what) = Faults::collect(&mut faults, check(file, args)) {
            out.push_str(&format!("{}: {what}\n", file.display()));
        }
    }
    output::print(&out)?;
    faults.map_or(Ok(Ending::Complete), Err)
}

fn check(path: &Path, args: &Args) -> Result<String, Faults> {
    if inputs::is_onnx(path) {
        return Ok(describe_network(
            &inputs::onnx(path, args.input_shape.as_ref())?.network,
        ));
    }
    let text = inputs::read(path)?;
    match Kind::of(path, &text)? {
        Kind::Accelerator => Ok(describe_arch(&inputs::arch_from(path, &text)?)),
        Kind::Network => Ok(describe_network(&inputs::network_from(path, &text)?)),
        Kind::Mapping | Kind::Mappings => check_mappings(path, args),
        Kind::Plan => {
            let space = explore::load_from(path, &text)?;
            Ok(format!(
                "plan {}: {} on {} of {}",
                space.plan.name,
                counted(space.designs(), "design"),
                counted(space.layers.len() as u64, "layer"),
                space.plan.network
            ))
        }
        Kind::Technology => Technology::from_ron(&text)
            .map(|technology| format!("technology {}", technology.name))
            .map_err(|faults| inputs::placed(path, &text, &faults)),
    }
}

fn describe_arch(arch: &Accelerator) -> String {
    format!(
        "accelerator {}: {}, {}, {}",
        arch.name,
        counted(arch.levels.len() as u64, "level"),
        counted(arch.instances(arch.event_level()), "PE"),
        counted(arch.lanes(), "lane")
    )
}

fn describe_network(network: &Network) -> String {
    let distinct = network.distinct();
    format!(
        "network {}: {}, {} of {}, {}",
        network.name(),
        counted(network.nodes().len() as u64, "node"),
        counted(distinct.iter().map(|layer| layer.count).sum(), "layer"),
        counted(distinct.len() as u64, "shape"),
        counted(network.macs(), "MAC")
    )
}

fn check_mappings(path: &Path, args: &Args) -> Result<String, Faults> {
    let (file, text) = inputs::mappings(path)?;
    let many = match &file {
        MappingFile::One(mapping) => {
            return Ok(format!(
                "mapping of {}; it names no layer to be checked against",
                counted(mapping.levels.len() as u64, "level")
            ));
        }
        MappingFile::Many(many) => many,
    };
    let mut faults = None;
    let arch = Faults::collect(
        &mut faults,
        named(path, "accelerator", &args.arch, &many.arch, inputs::arch),
    );
    let network = Faults::collect(
        &mut faults,
        named(path, "network", &args.network, &many.network, |name| {
            inputs::network(name, None)
        }),
    );
    let (Some(arch), Some(network)) = (arch, network) else {
        return Err(faults.unwrap_or_else(|| Faults::one("nothing to check against")));
    };
    let layers = network.network.distinct();
    let given = Given {
        path,
        text: &text,
        file: &file,
    };
    given.assign(&arch, &layers, &layers)?;
    Ok(format!(
        "mappings of {} of {} on {}",
        counted(many.layers.len() as u64, "layer"),
        network.network.name(),
        arch.name
    ))
}

/// What a file of mappings is checked against: the option if given, otherwise what the file names.
fn named<T>(
    path: &Path,
    what: &str,
    option: &Option<String>,
    in_file: &str,
    load: fn(&str) -> Result<T, Faults>,
) -> Result<T, Faults> {
    match option.as_deref().unwrap_or(in_file) {
        "" => Err(Faults::one(format!(
            "{}: names no {what}; give it with an option",
            path.display()
        ))),
        name => load(name),
    }
}
