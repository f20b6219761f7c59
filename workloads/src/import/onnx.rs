//! ONNX files.
//!
//! The graph is walked once, in its order. Operators on constants are evaluated as far as they decide shapes; every
//! other operator becomes nodes of the network and passes through its shape inference. Weights count by their shape
//! alone, wherever they come from: initialisers, `Constant` nodes, or `ConstantOfShape`.
//!
//! ```no_run
//! use cyclonest_workloads::import::onnx::{self, Options};
//!
//! let bytes = std::fs::read("model.onnx").expect("readable");
//! let options = Options { input_shape: Some(vec![1, 3, 224, 224]) };
//! let (network, warnings) = onnx::import(&bytes, &options)?;
//! for warning in &warnings {
//!     eprintln!("warning: {warning}");
//! }
//! println!("{} multiply-accumulates", network.macs());
//! # Ok::<(), onnx::OnnxError>(())
//! ```

mod build;
mod convert;
mod evaluate;
mod moves;
mod node;
mod products;
mod proto;
#[cfg(test)]
mod tests;
mod values;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use prost::Message;

use crate::network::op::{Op, Opaque};
use crate::network::{Draft, Input, Network, NetworkError, NetworkErrors, assemble, show};
use build::Builder;
use convert::{MULTIPLYING, convert};
use evaluate::evaluate;
use node::Reader;
use values::{Constant, Value};

/// How a file is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Shape of the network's input, for files that leave sizes open. It applies to every input whose declared sizes
    /// it agrees with, and has to agree with one.
    pub input_shape: Option<Vec<u64>>,
}

/// Something about a file that its user should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// Operators that are not modelled, or whose shape depends on data, by name, with how many there are. Their
    /// multiplications, if they have any, are not counted.
    Unsupported(Vec<(String, u64)>),
    /// Nodes that stand behind unsupported ones, have no known shape and are left out.
    LeftOut(Vec<String>),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Unsupported(operators) => {
                let list: Vec<_> = operators
                    .iter()
                    .map(|(name, count)| format!("{name} ({count}×)"))
                    .collect();
                write!(f, "operators that are not modelled: {}", list.join(", "))
            }
            Warning::LeftOut(nodes) => write!(
                f,
                "{} node{} behind them left out, because their shape is not known: {}",
                nodes.len(),
                if nodes.len() == 1 { "" } else { "s" },
                nodes.join(", ")
            ),
        }
    }
}

/// Why a file is no network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnnxError {
    /// The file is damaged, or no ONNX file.
    Malformed {
        /// Where, in bytes from the start of the file; `None` if the framing is whole and only a value is wrong.
        byte: Option<usize>,
        /// What is wrong.
        message: String,
    },
    /// The graph cannot be read as a network: everything that is wrong with it.
    Graph(NetworkErrors),
}

impl fmt::Display for OnnxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OnnxError::Malformed {
                byte: Some(byte),
                message,
            } => write!(f, "byte {byte}: {message}"),
            OnnxError::Malformed { byte: None, message } => f.write_str(message),
            OnnxError::Graph(errors) => errors.fmt(f),
        }
    }
}

impl std::error::Error for OnnxError {}

/// Reads an ONNX model.
///
/// # Errors
/// [`OnnxError::Malformed`] for a file that is cut off or no ONNX file; [`OnnxError::Graph`] for open sizes without
/// [`Options::input_shape`], a multiplying operator whose input shape is not known, and shapes that do not fit.
pub fn import(bytes: &[u8], options: &Options) -> Result<(Network, Vec<Warning>), OnnxError> {
    let model = decode(bytes)?;
    let Some(graph) = &model.graph else {
        return Err(OnnxError::Malformed {
            byte: Some(bytes.len()),
            message: "the file ends without a graph; an ONNX model is expected".to_owned(),
        });
    };
    Importer::default().run(graph, options).map_err(OnnxError::Graph)
}

fn decode(bytes: &[u8]) -> Result<proto::Model, OnnxError> {
    proto::Model::decode(bytes).map_err(|error| match wire::fault(bytes) {
        Some((byte, message)) => OnnxError::Malformed {
            byte: Some(byte),
            message,
        },
        None => OnnxError::Malformed {
            byte: None,
            message: error.to_string(),
        },
    })
}

#[derive(Default)]
struct Importer {
    scope: BTreeMap<String, Value>,
    builder: Builder,
    inputs: Vec<Input>,
    faults: Vec<NetworkError>,
    unsupported: BTreeMap<String, u64>,
    left_out: Vec<String>,
}

impl Importer {
    fn run(mut self, graph: &proto::Graph, options: &Options) -> Result<(Network, Vec<Warning>), NetworkErrors> {
        for tensor in &graph.initializer {
            match Constant::read(tensor) {
                Ok(constant) => {
                    self.scope.insert(tensor.name.clone(), Value::Constant(constant));
                }
                Err(message) => self.fault(Some(&tensor.name), message),
            }
        }
        self.read_inputs(graph, options);
        if !self.faults.is_empty() {
            return Err(NetworkErrors::new(self.faults));
        }
        let declared: BTreeMap<&str, Vec<u64>> = graph
            .value_info
            .iter()
            .chain(&graph.output)
            .filter_map(|info| Some((info.name.as_str(), info.shape()?)))
            .collect();
        for node in &graph.node {
            self.read_node(node, &declared);
        }
        if !self.faults.is_empty() {
            return Err(NetworkErrors::new(self.faults));
        }

        let read: BTreeSet<&String> = self.builder.nodes.iter().flat_map(|node| &node.inputs).collect();
        let inputs = self
            .inputs
            .into_iter()
            .filter(|input| read.contains(&input.name))
            .collect();
        let network = assemble(
            Draft {
                name: if graph.name.is_empty() {
                    "onnx".to_owned()
                } else {
                    graph.name.clone()
                },
                inputs,
                nodes: self.builder.nodes,
            },
            &|_| None,
        )?;
        let mut warnings = Vec::new();
        if !self.unsupported.is_empty() {
            warnings.push(Warning::Unsupported(self.unsupported.into_iter().collect()));
        }
        if !self.left_out.is_empty() {
            warnings.push(Warning::LeftOut(self.left_out));
        }
        Ok((network, warnings))
    }

    fn fault(&mut self, node: Option<&str>, message: impl Into<String>) {
        self.faults.push(NetworkError {
            position: None,
            node: node.map(str::to_owned),
            message: message.into(),
        });
    }

    /// The graph's inputs that are neither initialisers nor computed by a node (exporters list both), and that a node
    /// reads.
    fn read_inputs(&mut self, graph: &proto::Graph, options: &Options) {
        let computed: BTreeSet<&String> = graph.node.iter().flat_map(|node| &node.output).collect();
        let read: BTreeSet<&String> = graph.node.iter().flat_map(|node| &node.input).collect();
        let real: Vec<&proto::ValueInfo> = graph
            .input
            .iter()
            .filter(|info| !self.scope.contains_key(&info.name))
            .filter(|info| !computed.contains(&info.name) && read.contains(&info.name))
            .collect();
        let mut applied = false;
        for info in &real {
            let axes = info.axes();
            let given = options
                .input_shape
                .as_ref()
                .filter(|shape| agrees(axes.as_deref(), shape));
            applied |= given.is_some();
            let Some(shape) = given.cloned().or_else(|| info.shape()) else {
                let declared = axes.map_or("no shape".to_owned(), |axes| declaration(&axes));
                let given = match &options.input_shape {
                    Some(shape) => format!("; the given shape {} does not fit it", show(shape)),
                    None => "; its shape has to be given".to_owned(),
                };
                self.fault(
                    Some(&info.name),
                    format!("the input is declared with {declared}{given}"),
                );
                continue;
            };
            let name = self.builder.unique(&info.name);
            self.inputs.push(Input {
                name: name.clone(),
                shape: shape.clone(),
            });
            self.scope.insert(info.name.clone(), Value::Tensor { name, shape });
        }
        if let (Some(shape), false, true) = (&options.input_shape, applied, self.faults.is_empty()) {
            let declared: Vec<_> = real
                .iter()
                .map(|info| format!("{:?} with {}", info.name, declaration(&info.axes().unwrap_or_default())))
                .collect();
            let message = format!(
                "the given shape {} fits no input; declared are {}",
                show(shape),
                declared.join(", ")
            );
            self.fault(None, message);
        }
    }

    fn read_node(&mut self, node: &proto::Node, declared: &BTreeMap<&str, Vec<u64>>) {
        let output = node.output.first().map_or("", String::as_str);
        let name = if self.builder.is_free(&node.name) {
            &node.name
        } else {
            output
        };
        let unknown: Vec<_> = node
            .input
            .iter()
            .filter(|input| !input.is_empty() && !self.scope.contains_key(*input))
            .collect();
        if let Some(unknown) = unknown.first() {
            let message = format!("{}: reads {unknown:?}, which no node before it writes", node.op_type);
            self.fault(Some(name), message);
            self.unknown_outputs(node);
            return;
        }
        match self.understand(node, name) {
            Ok(Some(values)) => {
                for (i, output) in node.output.iter().enumerate().filter(|(_, output)| !output.is_empty()) {
                    let value = values.get(i).cloned().unwrap_or_else(|| Value::Unknown {
                        because: Some(format!("{} (output {i})", node.op_type)),
                    });
                    self.scope.insert(output.clone(), value);
                }
            }
            Ok(None) => self.fall_back(node, name, declared),
            Err(message) => {
                self.fault(Some(name), format!("{}: {message}", node.op_type));
                self.unknown_outputs(node);
            }
        }
    }

    /// What the outputs of a node stand for; `None` if its operator or the shape of its inputs is not known.
    fn understand(&mut self, node: &proto::Node, name: &str) -> Result<Option<Vec<Value>>, String> {
        let reader = Reader::new(node, &self.scope);
        if !matches!(node.domain.as_str(), "" | "ai.onnx") {
            return Ok(None);
        }
        if let Some(constant) = evaluate(&reader)? {
            return Ok(Some(vec![Value::Constant(constant)]));
        }
        if reader.values().any(|(_, value)| matches!(value, Value::Unknown { .. })) {
            return Ok(None);
        }
        if reader.constants().is_none() {
            return convert(&reader, name, &mut self.builder);
        }
        // Weights that are computed from constants: only the shape of the result counts.
        let mut dry = Builder::dry();
        let values = convert(&reader, name, &mut dry)?;
        let constant = |value: Value| match value {
            Value::Tensor { shape, .. } => Value::Constant(Constant::opaque(shape)),
            other => other,
        };
        Ok(values.map(|values| values.into_iter().map(constant).collect()))
    }

    /// A node that is not understood: an opaque one if the file declares its output shapes; otherwise what it writes
    /// is unknown, which is an error as soon as multiplications depend on it.
    fn fall_back(&mut self, node: &proto::Node, name: &str, declared: &BTreeMap<&str, Vec<u64>>) {
        let reader = Reader::new(node, &self.scope);
        let cause = reader.values().find_map(|(input, value)| match value {
            Value::Unknown { because } => Some((input.to_owned(), because.clone())),
            _ => None,
        });
        if let (Some((input, because)), true) = (&cause, MULTIPLYING.contains(&node.op_type.as_str())) {
            if let Some(because) = because {
                let message = format!(
                    "{}: the shape of its input {input:?} is not known, because operator {because} is not supported",
                    node.op_type
                );
                self.fault(Some(name), message);
            }
            self.unknown_outputs(node);
            return;
        }
        if cause.is_none() {
            *self.unsupported.entry(node.op_type.clone()).or_default() += 1;
        }
        let because = cause.map_or_else(|| Some(node.op_type.clone()), |(_, because)| because);
        let outputs: Vec<_> = node.output.iter().filter(|output| !output.is_empty()).collect();
        let operands: Vec<_> = reader
            .values()
            .filter_map(|(_, value)| match value {
                Value::Tensor { name, shape } => Some(build::Operand {
                    name: name.clone(),
                    shape: shape.clone(),
                }),
                _ => None,
            })
            .collect();
        let operands: Vec<_> = operands.iter().collect();
        let mut all_known = true;
        for output in outputs {
            let shape = declared.get(output.as_str()).cloned();
            let added = shape.and_then(|shape| {
                let kind = node.op_type.clone();
                let name = if node.output.len() > 1 { output } else { name };
                self.builder
                    .add(name, Op::Opaque(Opaque { kind, shape }), &operands)
                    .ok()
            });
            all_known &= added.is_some();
            let value = added.map_or_else(
                || Value::Unknown {
                    because: because.clone(),
                },
                Value::from,
            );
            self.scope.insert(output.clone(), value);
        }
        if !all_known {
            self.left_out.push(name.to_owned());
        }
    }

    /// After a fault: what depends on the node is not reported again.
    fn unknown_outputs(&mut self, node: &proto::Node) {
        for output in &node.output {
            self.scope.insert(output.clone(), Value::Unknown { because: None });
        }
    }
}

/// True if a shape has the declared number of axes and the declared sizes.
fn agrees(axes: Option<&[Result<u64, String>]>, shape: &[u64]) -> bool {
    axes.is_none_or(|axes| {
        let mut pairs = axes.iter().zip(shape);
        axes.len() == shape.len() && pairs.all(|(axis, size)| axis.as_ref().map_or(true, |axis| axis == size))
    })
}

/// A declared shape, symbols included: `?×3×height×width`.
fn declaration(axes: &[Result<u64, String>]) -> String {
    let axis = |axis: &Result<u64, String>| axis.as_ref().map_or_else(Clone::clone, u64::to_string);
    match axes {
        [] => "no axes".to_owned(),
        _ => axes.iter().map(axis).collect::<Vec<_>>().join("×"),
    }
}
