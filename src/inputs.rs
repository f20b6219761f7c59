//! Machines, networks and mappings by name or from files.

use std::path::Path;

use cyclonest_arch::{Accelerator, Diagnostic, Mapping, Mappings};
use cyclonest_scheduler::{Scheduler, Weights};
use cyclonest_validation::Csa;
use cyclonest_workloads::Network;
use cyclonest_workloads::import::onnx::{self, OnnxError};

use crate::faults::Faults;

/// Kinds of RON file, by the name in front of their first parenthesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Accelerator,
    Network,
    Mapping,
    Mappings,
    Plan,
    Technology,
}

/// The names in front of the first parenthesis.
const KINDS: [(&str, Kind); 6] = [
    ("Accelerator", Kind::Accelerator),
    ("Network", Kind::Network),
    ("Mapping", Kind::Mapping),
    ("Mappings", Kind::Mappings),
    ("Plan", Kind::Plan),
    ("Technology", Kind::Technology),
];

impl Kind {
    /// What `text` says it is.
    pub(crate) fn of(path: &Path, text: &str) -> Result<Self, Faults> {
        let expected = "Accelerator(…), Network(…), Mapping(…), Mappings(…), Plan(…) or Technology(…) is expected";
        let (found, line, column) = first_word(text);
        match KINDS.iter().find(|(name, _)| *name == found) {
            Some(&(_, kind)) => Ok(kind),
            None => {
                let found = match found {
                    "" if text.trim().is_empty() => "the file is empty".to_string(),
                    "" => "it does not start with a name".to_string(),
                    word => format!("found `{word}`"),
                };
                Err(placed(
                    path,
                    text,
                    &[Diagnostic {
                        line,
                        column,
                        message: format!("not a file of this project: {found}; {expected}"),
                        help: cyclonest_arch::nearest(first_word(text).0, KINDS.map(|(name, _)| name))
                            .map(|name| format!("did you mean `{name}`?")),
                    }],
                ))
            }
        }
    }
}

/// The first word after comments and attributes, with its line and column.
fn first_word(text: &str) -> (&str, usize, usize) {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let skipped = if rest.starts_with("//") || rest.starts_with("#!") {
            rest.find('\n').map(|end| end + 1)
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|end| end + 2)
        } else {
            break;
        };
        rest = &rest[skipped.unwrap_or(rest.len())..];
    }
    let before = &text[..text.len() - rest.len()];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
    let end = rest
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(rest.len());
    (&rest[..end], line, column)
}

/// Faults at their places in a file.
pub(crate) fn placed(path: &Path, text: &str, diagnostics: &[Diagnostic]) -> Faults {
    let file = path.display().to_string();
    diagnostics
        .iter()
        .map(|diagnostic| cyclonest_arch::render(&file, text, std::slice::from_ref(diagnostic)))
        .collect()
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, Faults> {
    let bytes = read_bytes(path)?;
    String::from_utf8(bytes).map_err(|error| {
        let (line, column) = place_of(&error);
        Faults::one(format!("{}:{line}:{column}: not a text in UTF-8", path.display()))
    })
}

/// Line and column of the first byte that is not UTF-8.
fn place_of(error: &std::string::FromUtf8Error) -> (usize, usize) {
    let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let line = valid.iter().filter(|&&b| b == b'\n').count() + 1;
    let start = valid.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
    (line, String::from_utf8_lossy(&valid[start..]).chars().count() + 1)
}

/// The bytes of a file.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, Faults> {
    std::fs::read(path).map_err(|error| Faults::one(format!("{}: cannot be read: {error}", path.display())))
}

/// True if `given` is meant as a file: it has a folder or an extension, or a file of that name exists.
pub(crate) fn is_path(given: &str) -> bool {
    let path = Path::new(given);
    path.components().count() > 1 || path.extension().is_some() || path.is_file()
}

/// Names of the bundled machines.
pub(crate) fn arch_names() -> Vec<String> {
    cyclonest_arch::bundled::names().map(String::from).collect()
}

/// Names of the bundled networks.
pub(crate) fn network_names() -> Vec<String> {
    cyclonest_workloads::bundled::names()
        .iter()
        .map(|name| name.to_string())
        .collect()
}

/// The machine `given`: a bundled one by its name, or a file.
pub(crate) fn arch(given: &str) -> Result<Accelerator, Faults> {
    if let Some(arch) = cyclonest_arch::bundled::load(given) {
        return Ok(arch);
    }
    if !is_path(given) {
        return Err(Faults::unknown("accelerator", given, &arch_names()));
    }
    let path = Path::new(given);
    arch_from(path, &read(path)?)
}

/// The machine in `text`, which `path` contains.
pub(crate) fn arch_from(path: &Path, text: &str) -> Result<Accelerator, Faults> {
    Accelerator::from_ron(text).map_err(|faults| placed(path, text, &faults))
}

/// The scheduler of that name.
pub(crate) fn scheduler(name: &str) -> Result<Box<dyn Scheduler>, Faults> {
    if name == Csa.name() {
        return Ok(Box::new(Csa));
    }
    cyclonest_scheduler::by_name(name).ok_or_else(|| Faults::unknown("scheduler", name, &scheduler_names()))
}

/// Names of the schedulers: those of the scheduler crate, and `csa`, which needs the native code's analysis.
pub(crate) fn scheduler_names() -> Vec<String> {
    cyclonest_scheduler::names().chain([Csa.name().to_string()]).collect()
}

/// The scheduler of that name, with the weights in a file if it is one that takes weights.
pub(crate) fn scheduler_with(name: &str, weights: Option<&Weights>) -> Result<Box<dyn Scheduler>, Faults> {
    match weights.and_then(|weights| cyclonest_scheduler::with_weights(name, weights)) {
        Some(scheduler) => Ok(scheduler),
        None => scheduler(name),
    }
}

/// The weights in a file, which must be some for `arch` and for one of the `schedulers`.
pub(crate) fn weights(path: &Path, arch: &Accelerator, schedulers: &[&str]) -> Result<Weights, Faults> {
    let text = read(path)?;
    let weights = Weights::from_ron(&text).map_err(|fault| placed(path, &text, &[fault]))?;
    let mut faults = weights.check(arch);
    if schedulers
        .iter()
        .all(|name| cyclonest_scheduler::with_weights(name, &weights).is_none())
    {
        faults.push("weights are for the schedulers milp and anneal:milp".into());
    }
    match faults.is_empty() {
        true => Ok(weights),
        false => Err(faults
            .into_iter()
            .map(|fault| format!("{}: {fault}", path.display()))
            .collect()),
    }
}

/// A network with what its description says of its origin and variant.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) network: Network,
    pub(crate) about: String,
}

/// The network `given`: a bundled one by its name, or a file.
pub(crate) fn network(given: &str, shape: Option<&InputShape>) -> Result<Described, Faults> {
    let bundled = cyclonest_workloads::bundled::load(given).zip(cyclonest_workloads::bundled::text(given));
    if bundled.is_none() && !is_path(given) {
        return Err(Faults::unknown("network", given, &network_names()));
    }
    let path = Path::new(given);
    if bundled.is_none() && is_onnx(path) {
        return onnx(path, shape);
    }
    if shape.is_some() {
        return Err(Faults::one(format!(
            "{given}: --input-shape is for ONNX files; this network has its shapes"
        )));
    }
    if let Some((network, text)) = bundled {
        let about = about(text);
        return Ok(Described { network, about });
    }
    let text = read(path)?;
    Ok(Described {
        network: network_from(path, &text)?,
        about: about(&text),
    })
}

/// Shape of the input of an ONNX network, as `1x3x224x224`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputShape(Vec<u64>);

impl std::str::FromStr for InputShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size = |size: &str| size.parse().ok().filter(|&n: &u64| n > 0);
        let sizes: Option<Vec<u64>> = text.split('x').map(size).collect();
        sizes
            .map(InputShape)
            .ok_or_else(|| "sizes of at least 1 are expected, such as 1x3x224x224".to_string())
    }
}

/// True if `path` is named like an ONNX file.
pub(crate) fn is_onnx(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"))
}

/// The network in the ONNX file at `path`. What of it is not modelled is said on standard error.
pub(crate) fn onnx(path: &Path, shape: Option<&InputShape>) -> Result<Described, Faults> {
    let options = onnx::Options {
        input_shape: shape.map(|shape| shape.0.clone()),
    };
    let fault = |message: String| format!("{}: {message}", path.display());
    let (network, warnings) = onnx::import(&read_bytes(path)?, &options).map_err(|error| match error {
        OnnxError::Graph(errors) => errors
            .into_iter()
            .map(|error| fault(error.to_string()))
            .collect::<Faults>(),
        error => Faults::one(fault(error.to_string())),
    })?;
    for warning in warnings {
        eprintln!("warning: {}", fault(warning.to_string()));
    }
    Ok(Described {
        network,
        about: format!("ONNX: {}", path.file_name().unwrap_or_default().to_string_lossy()),
    })
}

/// The network in `text`, which `path` contains.
pub(crate) fn network_from(path: &Path, text: &str) -> Result<Network, Faults> {
    Network::from_ron(text).map_err(|errors| {
        errors
            .into_iter()
            .map(|error| {
                let message = match &error.node {
                    Some(node) => format!("{node}: {}", error.message),
                    None => error.message.clone(),
                };
                let (line, column) = error.position.unwrap_or((1, 1));
                let diagnostic = Diagnostic {
                    line,
                    column,
                    message,
                    help: None,
                };
                cyclonest_arch::render(&path.display().to_string(), text, &[diagnostic])
            })
            .collect()
    })
}

/// The comment that a description starts with: its source and variant.
pub(crate) fn about(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix("//"))
        .map(str::trim)
        .collect();
    lines.join("\n").trim().to_string()
}

/// The file of mappings at `path` with its text. A file with a single mapping is one for the only layer that
/// `layers` selects.
pub(crate) fn mappings(path: &Path) -> Result<(MappingFile, String), Faults> {
    let text = read(path)?;
    let file = match Kind::of(path, &text)? {
        Kind::Mapping => Mapping::from_ron(&text).map(MappingFile::One),
        Kind::Mappings => Mappings::from_ron(&text).map(MappingFile::Many),
        other @ (Kind::Accelerator | Kind::Network | Kind::Plan | Kind::Technology) => {
            let found = format!(
                "{}: found {other:?}(…); Mapping(…) or Mappings(…) is expected",
                path.display()
            );
            return Err(Faults::one(found));
        }
    };
    match file {
        Ok(file) => Ok((file, text)),
        Err(faults) => Err(placed(path, &text, &faults)),
    }
}

/// A file with mappings.
#[derive(Debug, Clone)]
pub(crate) enum MappingFile {
    /// One, that does not say for which layer.
    One(Mapping),
    /// By the names of their layers.
    Many(Mappings),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_found_behind_comments_and_attributes() {
        let text = "// a\n/* b\n */ #![enable(implicit_some)]\n  Mapping(bounds: {})";
        assert_eq!(first_word(text), ("Mapping", 4, 3));
        assert_eq!(first_word(""), ("", 1, 1));
        assert_eq!(first_word("/* open"), ("", 1, 8));
        assert_eq!(first_word("(name: 1)"), ("", 1, 1));
    }

    #[test]
    fn an_input_shape_is_positive_sizes_and_crosses() {
        assert_eq!("1x3x224x224".parse(), Ok(InputShape(vec![1, 3, 224, 224])));
        for wrong in ["", "1x", "0x3", "1,3", "-1x3", "1x3xN"] {
            assert!(wrong.parse::<InputShape>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_told_from_paths() {
        assert!(!is_path("simba"));
        assert!(is_path("simba.ron"));
        assert!(is_path("machines/simba"));
    }
}
