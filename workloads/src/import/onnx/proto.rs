//! The messages of `onnx.proto` (ONNX 1.x, <https://github.com/onnx/onnx/blob/main/onnx/onnx.proto>), with the fields
//! that the import reads; the others are skipped when decoding.

/// `ModelProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Model {
    #[prost(message, optional, tag = "7")]
    pub(super) graph: Option<Graph>,
    #[prost(message, repeated, tag = "8")]
    pub(super) opset_import: Vec<OperatorSet>,
}

/// `OperatorSetIdProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OperatorSet {
    #[prost(string, tag = "1")]
    pub(super) domain: String,
    #[prost(int64, tag = "2")]
    pub(super) version: i64,
}

/// `GraphProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Graph {
    #[prost(message, repeated, tag = "1")]
    pub(super) node: Vec<Node>,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) initializer: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    pub(super) input: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    pub(super) output: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "13")]
    pub(super) value_info: Vec<ValueInfo>,
}

/// `NodeProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Node {
    #[prost(string, repeated, tag = "1")]
    pub(super) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) output: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) name: String,
    #[prost(string, tag = "4")]
    pub(super) op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) attribute: Vec<Attribute>,
    #[prost(string, tag = "7")]
    pub(super) domain: String,
}

/// `AttributeProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(float, tag = "2")]
    pub(super) f: f32,
    #[prost(int64, tag = "3")]
    pub(super) i: i64,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) s: Vec<u8>,
    #[prost(message, optional, tag = "5")]
    pub(super) t: Option<Tensor>,
    #[prost(float, repeated, tag = "7")]
    pub(super) floats: Vec<f32>,
    #[prost(int64, repeated, tag = "8")]
    pub(super) ints: Vec<i64>,
}

/// `TensorProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    pub(super) dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub(super) data_type: i32,
    #[prost(float, repeated, tag = "4")]
    pub(super) float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    pub(super) int32_data: Vec<i32>,
    #[prost(int64, repeated, tag = "7")]
    pub(super) int64_data: Vec<i64>,
    #[prost(string, tag = "8")]
    pub(super) name: String,
    #[prost(bytes = "vec", tag = "9")]
    pub(super) raw_data: Vec<u8>,
}

/// `TensorProto.DataType`: the types whose values can decide a shape.
pub(super) mod data_type {
    pub(in super::super) const FLOAT: i32 = 1;
    pub(in super::super) const INT32: i32 = 6;
    pub(in super::super) const INT64: i32 = 7;
}

/// `ValueInfoProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ValueInfo {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) r#type: Option<Type>,
}

/// `TypeProto`, for tensors.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Type {
    #[prost(message, optional, tag = "1")]
    pub(super) tensor_type: Option<TensorType>,
}

/// `TypeProto.Tensor`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TensorType {
    #[prost(message, optional, tag = "2")]
    pub(super) shape: Option<TensorShape>,
}

/// `TensorShapeProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TensorShape {
    #[prost(message, repeated, tag = "1")]
    pub(super) dim: Vec<Dimension>,
}

/// `TensorShapeProto.Dimension`: a size, a symbol, or neither.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Dimension {
    #[prost(int64, optional, tag = "1")]
    pub(super) dim_value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(super) dim_param: Option<String>,
}

impl ValueInfo {
    /// The declared axes: a size, or the symbol in its place. `None` if the value is no tensor or has no shape.
    pub(super) fn axes(&self) -> Option<Vec<Result<u64, String>>> {
        let shape = self.r#type.as_ref()?.tensor_type.as_ref()?.shape.as_ref()?;
        let axis = |dim: &Dimension| match (dim.dim_value, &dim.dim_param) {
            (Some(size @ 1..), _) => Ok(size.unsigned_abs()),
            (_, Some(symbol)) if !symbol.is_empty() => Err(symbol.clone()),
            _ => Err("?".to_owned()),
        };
        Some(shape.dim.iter().map(axis).collect())
    }

    /// The declared shape, if every axis has a size.
    pub(super) fn shape(&self) -> Option<Vec<u64>> {
        self.axes()?.into_iter().collect::<Result<_, _>>().ok()
    }
}
