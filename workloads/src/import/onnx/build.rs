//! The network under construction.

use std::collections::BTreeMap;

use super::values::Value;
use crate::network::op::Op;
use crate::network::{DraftNode, Shape, attribute_faults, infer};

/// Collects nodes and gives out names.
#[derive(Debug, Clone, Default)]
pub(super) struct Builder {
    pub(super) nodes: Vec<DraftNode>,
    /// Every name that is taken.
    names: BTreeMap<String, u64>,
    /// The node that holds a constant, by the constant's name in the file.
    constants: BTreeMap<String, String>,
    /// Only shapes are wanted: no node is added.
    dry: bool,
}

/// What a node reads.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    pub(super) name: String,
    pub(super) shape: Shape,
}

impl From<Operand> for Value {
    fn from(operand: Operand) -> Self {
        Value::Tensor {
            name: operand.name,
            shape: operand.shape,
        }
    }
}

impl Builder {
    /// A builder that infers shapes and adds nothing.
    pub(super) fn dry() -> Self {
        Builder {
            dry: true,
            ..Builder::default()
        }
    }

    /// A name that nothing else has: `wanted`, or `wanted#2`, `wanted#3`, …
    pub(super) fn unique(&mut self, wanted: &str) -> String {
        if self.dry {
            return wanted.to_owned();
        }
        let mut name = wanted.to_owned();
        while let Some(uses) = self.names.get_mut(&name) {
            *uses += 1;
            name = format!("{wanted}#{uses}");
        }
        self.names.insert(name.clone(), 1);
        name
    }

    /// The name if nothing else has it yet.
    pub(super) fn is_free(&self, name: &str) -> bool {
        !name.is_empty() && !self.names.contains_key(name)
    }

    /// Adds a node.
    pub(super) fn add(&mut self, name: &str, op: Op, inputs: &[&Operand]) -> Result<Operand, String> {
        if let Some(fault) = attribute_faults(&op).into_iter().next() {
            return Err(fault);
        }
        let shapes: Vec<&[u64]> = inputs.iter().map(|input| &input.shape[..]).collect();
        if let Some(empty) = shapes.iter().find(|shape| shape.contains(&0)) {
            return Err(format!("reads an empty tensor, {}", crate::network::show(empty)));
        }
        let shape = infer(&op, &shapes)?;
        let name = self.unique(name);
        if !self.dry {
            self.nodes.push(DraftNode {
                name: name.clone(),
                op,
                inputs: inputs.iter().map(|input| input.name.clone()).collect(),
            });
        }
        Ok(Operand { name, shape })
    }

    /// A value as an operand; a constant gets a node of its own at its first use.
    pub(super) fn operand(&mut self, name: &str, value: &Value) -> Result<Operand, String> {
        match value {
            Value::Tensor { name, shape } => Ok(Operand {
                name: name.clone(),
                shape: shape.clone(),
            }),
            Value::Constant(constant) => {
                if let Some(node) = self.constants.get(name) {
                    return Ok(Operand {
                        name: node.clone(),
                        shape: constant.shape.clone(),
                    });
                }
                let operand = self.add(name, Op::Constant(constant.shape.clone()), &[])?;
                if !self.dry {
                    self.constants.insert(name.to_owned(), operand.name.clone());
                }
                Ok(operand)
            }
            // The importer looks for unknown inputs before it gets here.
            Value::Unknown { .. } => Err(format!("the shape of its input {name:?} is not known")),
        }
    }
}
