//! Networks in RON.

use std::fmt;

use ron::extensions::Extensions;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::{NetworkError, NetworkErrors, nearest};
use super::locate::positions;
use super::op::{Arity, Op};
use super::validate::Subject;
use super::{Draft, DraftNode, Input, Network, assemble};

/// The network as it stands in the text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "Network")]
struct NetworkText {
    name: String,
    #[serde(with = "named_shapes")]
    inputs: Vec<(String, Vec<u64>)>,
    nodes: Vec<NodeText>,
}

/// A node as it stands in the text. Without `inputs` it reads the node in front of it, or the network's first input.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "Node")]
struct NodeText {
    name: String,
    op: Op,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<String>,
}

fn options() -> ron::Options {
    // `Conv(out: 64)` instead of `Conv((out: 64))`.
    ron::Options::default().with_default_extension(Extensions::UNWRAP_VARIANT_NEWTYPES)
}

impl Network {
    /// Reads a network from RON.
    ///
    /// ```
    /// use cyclonest_workloads::Network;
    ///
    /// let network = Network::from_ron(r#"Network(
    ///     name: "small",
    ///     inputs: { "image": [1, 3, 8, 8] },
    ///     nodes: [
    ///         (name: "conv", op: Conv(out: 4, kernel: 3, pad: 1)), // reads what stands before it
    ///         (name: "relu", op: Relu),
    ///         (name: "sum", op: Add, inputs: ["conv", "relu"]),
    ///     ],
    /// )"#)?;
    /// assert_eq!(network.shape("sum"), Some(&[1, 4, 8, 8][..]));
    /// assert_eq!(network.macs(), 4 * 8 * 8 * 3 * 3 * 3);
    /// # Ok::<(), cyclonest_workloads::NetworkErrors>(())
    /// ```
    ///
    /// # Errors
    /// Text that is no RON or no network (the first such fault), or else everything that is wrong with the network:
    /// unknown and repeated names, circles, zeros, shapes that do not fit, counts beyond 64 bits.
    pub fn from_ron(text: &str) -> Result<Network, NetworkErrors> {
        let parsed: NetworkText = options()
            .from_str(text)
            .map_err(|error| NetworkErrors::new(vec![syntax_error(&error, text)]))?;
        let positions = positions(text);
        let locate = |subject| match subject {
            Subject::Network => Some(positions.start),
            Subject::Input(i) => positions.inputs.get(i).copied(),
            Subject::Node(i) => positions.nodes.get(i).copied(),
        };
        assemble(draft(parsed), &locate)
    }

    /// Writes the network as RON, one node per line; [`from_ron`](Network::from_ron) reads it again.
    ///
    /// # Errors
    /// None that a valid network could cause; the serialiser's own are handed on.
    pub fn to_ron(&self) -> Result<String, ron::Error> {
        let text = NetworkText {
            name: self.name.clone(),
            inputs: self
                .inputs
                .iter()
                .map(|input| (input.name.clone(), input.shape.clone()))
                .collect(),
            nodes: self
                .nodes
                .iter()
                .map(|node| NodeText {
                    name: node.name.clone(),
                    op: node.op.clone(),
                    inputs: node.inputs.clone(),
                })
                .collect(),
        };
        let pretty = ron::ser::PrettyConfig::new().depth_limit(2).struct_names(false);
        options().to_string_pretty(&text, pretty).map(|text| text + "\n")
    }
}

fn draft(text: NetworkText) -> Draft {
    let inputs: Vec<Input> = text
        .inputs
        .into_iter()
        .map(|(name, shape)| Input { name, shape })
        .collect();
    let mut previous = inputs.first().map(|input| input.name.clone());
    let nodes = text
        .nodes
        .into_iter()
        .map(|node| {
            let mut inputs = node.inputs;
            if inputs.is_empty() && node.op.arity() != Arity::Exactly(0) {
                inputs.extend(previous.clone());
            }
            previous = Some(node.name.clone());
            DraftNode {
                name: node.name,
                op: node.op,
                inputs,
            }
        })
        .collect();
    Draft {
        name: text.name,
        inputs,
        nodes,
    }
}

fn syntax_error(error: &ron::error::SpannedError, text: &str) -> NetworkError {
    let start = error.span.start;
    NetworkError {
        position: Some((start.line, start.col)),
        node: None,
        message: match &error.code {
            ron::Error::NoSuchEnumVariant { expected, found, .. } => {
                format!("there is no operator `{found}`{}", instead(found, expected))
            }
            ron::Error::NoSuchStructField { expected, found, outer } => {
                let owner = outer.as_ref().map_or(String::new(), |outer| format!(" in `{outer}`"));
                format!("there is no field `{found}`{owner}{}", instead(found, expected))
            }
            ron::Error::MissingStructField { field, outer } => {
                let owner = outer.as_ref().map_or(String::new(), |outer| format!(" of `{outer}`"));
                format!("the field `{field}`{owner} is missing")
            }
            ron::Error::IntegerOutOfBounds => format!(
                "found {}; an integer from 0 to {} is expected",
                number_at(text, start.line, start.col),
                u64::MAX
            ),
            other => other.to_string(),
        },
    }
}

/// What may have been meant: the nearest name, or all of them.
fn instead(found: &str, expected: &[&str]) -> String {
    match nearest(found, expected.iter().copied()) {
        Some(near) => format!("; the nearest name is `{near}`"),
        None => format!("; expected is one of {}", expected.join(", ")),
    }
}

/// The number around a place in the text.
fn number_at(text: &str, line: usize, column: usize) -> String {
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '+' | '_' | '.');
    let before: Vec<char> = line.chars().take(column.saturating_sub(1)).collect();
    let start = before.iter().rev().take_while(|&&c| part(c)).count();
    line.chars()
        .skip(before.len() - start)
        .take_while(|&c| part(c))
        .collect()
}

/// A map from names to shapes that keeps its order and its repetitions.
mod named_shapes {
    use super::*;

    pub(super) fn serialize<S: Serializer>(shapes: &[(String, Vec<u64>)], serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(shapes.len()))?;
        for (name, shape) in shapes {
            map.serialize_entry(name, shape)?;
        }
        map.end()
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, Vec<u64>)>, D::Error> {
        struct Shapes;
        impl<'de> Visitor<'de> for Shapes {
            type Value = Vec<(String, Vec<u64>)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a map from names to shapes")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut shapes = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    shapes.push(entry);
                }
                Ok(shapes)
            }
        }
        deserializer.deserialize_map(Shapes)
    }
}
