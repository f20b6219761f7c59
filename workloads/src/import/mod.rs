//! Networks from other formats.

pub mod onnx;
