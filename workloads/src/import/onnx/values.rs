//! Values that are known while importing: shapes, and the numbers of small constant tensors that decide shapes.

use super::proto::{self, data_type};
use crate::network::{Shape, elements};

/// Numbers of larger constants are not kept: they are weights, and decide no shape.
pub(super) const KEPT: u64 = 4096;

/// What a name of the graph stands for.
#[derive(Debug, Clone)]
pub(super) enum Value {
    /// The output of a node of the network, or one of its inputs.
    Tensor {
        /// The node or input.
        name: String,
        shape: Shape,
    },
    /// A constant.
    Constant(Constant),
    /// Nothing is known.
    Unknown {
        /// The operator that is to blame; `None` if a fault of it is reported already.
        because: Option<String>,
    },
}

impl Value {
    pub(super) fn shape(&self) -> Option<&[u64]> {
        match self {
            Value::Tensor { shape, .. } => Some(shape),
            Value::Constant(constant) => Some(&constant.shape),
            Value::Unknown { .. } => None,
        }
    }

    pub(super) const fn constant(&self) -> Option<&Constant> {
        match self {
            Value::Constant(constant) => Some(constant),
            _ => None,
        }
    }
}

/// A constant tensor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Constant {
    pub(super) shape: Shape,
    pub(super) numbers: Numbers,
}

/// The numbers of a constant, in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Numbers {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    /// Not kept or not known.
    Unknown,
}

impl Constant {
    pub(super) fn ints(shape: Shape, numbers: Vec<i64>) -> Self {
        Constant {
            shape,
            numbers: Numbers::Ints(numbers),
        }
    }

    /// A vector of integers.
    pub(super) fn vector(numbers: Vec<i64>) -> Self {
        Constant::ints(vec![numbers.len() as u64], numbers)
    }

    pub(super) const fn opaque(shape: Shape) -> Self {
        Constant {
            shape,
            numbers: Numbers::Unknown,
        }
    }

    /// The numbers, if they are known integers.
    pub(super) fn as_ints(&self) -> Option<&[i64]> {
        match &self.numbers {
            Numbers::Ints(ints) => Some(ints),
            _ => None,
        }
    }

    /// The numbers as floats, if they are known.
    pub(super) fn to_floats(&self) -> Option<Vec<f64>> {
        match &self.numbers {
            Numbers::Ints(ints) => Some(ints.iter().map(|&i| i as f64).collect()),
            Numbers::Floats(floats) => Some(floats.clone()),
            Numbers::Unknown => None,
        }
    }

    /// Reads a tensor of the file.
    pub(super) fn read(tensor: &proto::Tensor) -> Result<Self, String> {
        let shape = tensor
            .dims
            .iter()
            .map(|&size| u64::try_from(size))
            .collect::<Result<Shape, _>>()
            .map_err(|_| format!("tensor {:?} has a negative size", tensor.name))?;
        let count = elements(&shape)?;
        if count > KEPT {
            return Ok(Constant::opaque(shape));
        }
        let raw = &tensor.raw_data;
        let numbers = match tensor.data_type {
            data_type::INT64 if raw.is_empty() => Numbers::Ints(tensor.int64_data.clone()),
            data_type::INT64 => Numbers::Ints(raw.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b)).collect()),
            data_type::INT32 if raw.is_empty() => {
                Numbers::Ints(tensor.int32_data.iter().map(|&i| i64::from(i)).collect())
            }
            data_type::INT32 => Numbers::Ints(
                raw.as_chunks()
                    .0
                    .iter()
                    .map(|&b| i64::from(i32::from_le_bytes(b)))
                    .collect(),
            ),
            data_type::FLOAT if raw.is_empty() => {
                Numbers::Floats(tensor.float_data.iter().map(|&f| f64::from(f)).collect())
            }
            data_type::FLOAT => Numbers::Floats(
                raw.as_chunks()
                    .0
                    .iter()
                    .map(|&b| f64::from(f32::from_le_bytes(b)))
                    .collect(),
            ),
            _ => return Ok(Constant::opaque(shape)),
        };
        let found = match &numbers {
            Numbers::Ints(ints) => ints.len() as u64,
            Numbers::Floats(floats) => floats.len() as u64,
            Numbers::Unknown => count,
        };
        if found == count {
            Ok(Constant { shape, numbers })
        } else if found == 0 {
            // The numbers are in another file; the shape is what counts.
            Ok(Constant::opaque(shape))
        } else {
            Err(format!(
                "tensor {:?} declares {count} numbers and has {found}",
                tensor.name
            ))
        }
    }

    /// A tensor of one number; `None` for the numbers if they are too many to keep.
    pub(super) fn filled(shape: Shape, value: &Numbers) -> Self {
        let count = elements(&shape).ok().filter(|&count| count <= KEPT);
        let numbers = match (count, value) {
            (Some(count), Numbers::Ints(ints)) if ints.len() == 1 => Numbers::Ints(vec![ints[0]; count as usize]),
            (Some(count), Numbers::Floats(floats)) if floats.len() == 1 => {
                Numbers::Floats(vec![floats[0]; count as usize])
            }
            _ => Numbers::Unknown,
        };
        Constant { shape, numbers }
    }
}
