//! Streaming architectures: every layer of a network is a hardware node on an FPGA, and the nodes form a pipeline.
//!
//! - [`Front`] is the network as the backends read it: layers in topological order with shapes;
//! - a [`Backend`] turns it into a hardware-description [`Graph`] (the HD-graph of Montgomerie-Corcoran et al.,
//!   "SAMO: Optimised Mapping of Convolutional Neural Networks to Streaming Architectures", FPL 2022): nodes with
//!   input-channel, output-channel and kernel folding, edges, and places where the pipeline may be cut;
//! - a [`Design`] is a folding per node and the cuts; [`Design::check`] and [`evaluate`] judge it;
//! - a [`Platform`] says what there is to spend;
//! - a [`Pipeline`] is what the simulation reads: stages with their timing, channels with their depth.

mod backend;
mod coefficients;
mod design;
mod front;
mod graph;
mod lowering;
pub mod pipeline;
mod platform;
mod resources;

pub use backend::{Backend, Fold, Rules, backend, backends, finn::Finn, fpgaconvnet::FpgaConvNet, hls4ml::Hls4ml};
pub use coefficients::{Coefficients, Observation};
pub use design::{Design, Evaluation, Objective, PartitionEvaluation, Violation, evaluate};
pub use front::{Front, FrontError, FrontLayer, FrontOp, Map};
pub use graph::{Edge, Folding, Graph, Node, NodeKind};
pub use pipeline::Pipeline;
pub use platform::{Platform, PlatformError};
pub use resources::Resources;
