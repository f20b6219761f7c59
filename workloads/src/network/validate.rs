//! From a list of nodes to a valid network: names, order, shapes, lowering, totals.

use std::collections::{BTreeMap, BTreeSet};

use super::error::{NetworkError, NetworkErrors, nearest};
use super::infer::{attribute_faults, elements, infer, show};
use super::lower::lower;
use super::op::{Arity, Op};
use super::{Input, LayerWork, Network, Node};
use crate::{Dim, Problem, Tensor};

/// A network that nobody has looked at yet.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) name: String,
    pub(crate) inputs: Vec<Input>,
    pub(crate) nodes: Vec<DraftNode>,
}

/// A node without a shape.
#[derive(Debug, Clone)]
pub(crate) struct DraftNode {
    pub(crate) name: String,
    pub(crate) op: Op,
    pub(crate) inputs: Vec<String>,
}

/// What a fault is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Network,
    Input(usize),
    Node(usize),
}

struct Faults<'a> {
    found: Vec<NetworkError>,
    draft: &'a Draft,
    locate: &'a dyn Fn(Subject) -> Option<(usize, usize)>,
}

impl Faults<'_> {
    fn add(&mut self, subject: Subject, message: impl Into<String>) {
        self.found.push(NetworkError {
            position: (self.locate)(subject),
            node: match subject {
                Subject::Network => None,
                Subject::Input(i) => Some(self.draft.inputs[i].name.clone()),
                Subject::Node(i) => Some(self.draft.nodes[i].name.clone()),
            },
            message: message.into(),
        });
    }
}

/// Checks a draft and completes it, or returns everything that is wrong with it. `locate` finds the place in the
/// text.
pub(crate) fn assemble(
    draft: Draft,
    locate: &dyn Fn(Subject) -> Option<(usize, usize)>,
) -> Result<Network, NetworkErrors> {
    let mut faults = Faults {
        found: Vec::new(),
        draft: &draft,
        locate,
    };
    let sources = resolve(&draft, &mut faults);
    let order = sort(&draft, &sources, &mut faults);
    let shapes = shapes(&draft, &sources, &order, &mut faults);
    let layers = layers(&draft, &sources, &order, &shapes, &mut faults);
    let macs = total(&layers, &mut faults);
    if !faults.found.is_empty() {
        return Err(NetworkErrors::new(faults.found));
    }

    let mut nodes: Vec<_> = draft.nodes.into_iter().zip(shapes).map(Some).collect();
    let nodes = order
        .into_iter()
        .filter_map(|i| nodes[i].take())
        .map(|(node, shape)| Node {
            name: node.name,
            op: node.op,
            inputs: node.inputs,
            shape: shape.unwrap_or_default(),
        })
        .collect();
    Ok(Network {
        name: draft.name,
        inputs: draft.inputs,
        nodes,
        layers,
        macs,
    })
}

/// Where a node's input comes from.
#[derive(Debug, Clone, Copy)]
enum Source {
    Input(usize),
    Node(usize),
}

/// Checks names and finds what every node reads; `None` where a name is unknown.
fn resolve(draft: &Draft, faults: &mut Faults<'_>) -> Vec<Vec<Option<Source>>> {
    if draft.nodes.is_empty() {
        faults.add(Subject::Network, "the network has no nodes; at least one is expected");
    }
    let mut known: BTreeMap<&str, Source> = BTreeMap::new();
    for (i, input) in draft.inputs.iter().enumerate() {
        if known.insert(&input.name, Source::Input(i)).is_some() {
            faults.add(Subject::Input(i), "the name is used twice");
        }
        if input.shape.contains(&0) {
            let message = format!("the shape {} has a 0; at least 1 is expected", show(&input.shape));
            faults.add(Subject::Input(i), message);
        } else if let Err(message) = elements(&input.shape) {
            faults.add(Subject::Input(i), message);
        }
    }
    for (i, node) in draft.nodes.iter().enumerate() {
        if known.contains_key(node.name.as_str()) {
            faults.add(Subject::Node(i), "the name is used twice");
        } else {
            known.insert(&node.name, Source::Node(i));
        }
    }
    draft
        .nodes
        .iter()
        .enumerate()
        .map(|(i, node)| {
            node.inputs
                .iter()
                .map(|name| {
                    let source = known.get(name.as_str()).copied();
                    if source.is_none() {
                        let others = known.keys().copied().filter(|&other| other != node.name);
                        let hint = nearest(name, others)
                            .map_or_else(String::new, |near| format!("; the nearest name is {near:?}"));
                        faults.add(
                            Subject::Node(i),
                            format!("reads {name:?}, which is no node or input{hint}"),
                        );
                    }
                    source
                })
                .collect()
        })
        .collect()
}

/// The nodes, each after what it reads, otherwise in the order of the draft. Nodes on a cycle, or behind one, are
/// missing.
fn sort(draft: &Draft, sources: &[Vec<Option<Source>>], faults: &mut Faults<'_>) -> Vec<usize> {
    let feeding = |i: usize| {
        sources[i].iter().filter_map(|source| match source {
            Some(Source::Node(from)) => Some(*from),
            _ => None,
        })
    };
    let mut waiting = vec![0; draft.nodes.len()];
    let mut readers = vec![Vec::new(); draft.nodes.len()];
    for (i, waiting) in waiting.iter_mut().enumerate() {
        for from in feeding(i) {
            *waiting += 1;
            readers[from].push(i);
        }
    }
    let mut ready: BTreeSet<usize> = (0..waiting.len()).filter(|&i| waiting[i] == 0).collect();
    let mut order = Vec::with_capacity(draft.nodes.len());
    while let Some(i) = ready.pop_first() {
        order.push(i);
        for &reader in &readers[i] {
            waiting[reader] -= 1;
            if waiting[reader] == 0 {
                ready.insert(reader);
            }
        }
    }

    // Walking back from any node that is left must end up on a cycle, or on a node of an earlier walk.
    let mut walked = BTreeSet::new();
    for start in (0..waiting.len()).filter(|&i| waiting[i] > 0) {
        let mut walk = Vec::new();
        let mut at = start;
        while walked.insert(at) {
            walk.push(at);
            at = feeding(at).find(|&from| waiting[from] > 0).unwrap_or(at);
        }
        let Some(entry) = walk.iter().position(|&i| i == at) else {
            continue;
        };
        let mut cycle = walk.split_off(entry);
        let first = (0..cycle.len()).min_by_key(|&i| cycle[i]).unwrap_or(0);
        cycle.rotate_left(first);
        let names = cycle
            .iter()
            .chain(&cycle[..1])
            .map(|&i| format!("{:?}", draft.nodes[i].name));
        faults.add(
            Subject::Node(cycle[0]),
            format!(
                "the nodes read each other in a circle: {}",
                names.collect::<Vec<_>>().join(" reads ")
            ),
        );
    }
    order
}

/// The output shape of every node, by its index in the draft; `None` where something is wrong with the node or with
/// what it reads.
fn shapes(
    draft: &Draft,
    sources: &[Vec<Option<Source>>],
    order: &[usize],
    faults: &mut Faults<'_>,
) -> Vec<Option<Vec<u64>>> {
    let mut shapes = vec![None; draft.nodes.len()];
    for (i, node) in draft.nodes.iter().enumerate() {
        for message in attribute_faults(&node.op) {
            faults.add(Subject::Node(i), message);
        }
        let arity: Arity = node.op.arity();
        if !arity.admits(node.inputs.len()) {
            let message = format!(
                "{} takes {arity} input{}, but has {}",
                node.op.kind(),
                if arity == Arity::Exactly(1) { "" } else { "s" },
                node.inputs.len()
            );
            faults.add(Subject::Node(i), message);
        }
    }
    for &i in order {
        let node = &draft.nodes[i];
        let usable = node.op.arity().admits(node.inputs.len()) && attribute_faults(&node.op).is_empty();
        let Some(inputs) = operands(draft, &sources[i], &shapes).filter(|_| usable) else {
            continue;
        };
        match infer(&node.op, &inputs) {
            Ok(shape) => shapes[i] = Some(shape),
            Err(message) => faults.add(Subject::Node(i), format!("{}: {message}", node.op.kind())),
        }
    }
    shapes
}

/// The shapes of a node's inputs, if all are known and have no zero.
fn operands<'a>(
    draft: &'a Draft,
    sources: &[Option<Source>],
    shapes: &'a [Option<Vec<u64>>],
) -> Option<Vec<&'a [u64]>> {
    sources
        .iter()
        .map(|source| {
            let shape = match (*source)? {
                Source::Input(i) => &draft.inputs[i].shape,
                Source::Node(i) => shapes[i].as_ref()?,
            };
            Some(&shape[..]).filter(|shape| !shape.contains(&0))
        })
        .collect()
}

fn layers(
    draft: &Draft,
    sources: &[Vec<Option<Source>>],
    order: &[usize],
    shapes: &[Option<Vec<u64>>],
    faults: &mut Faults<'_>,
) -> Vec<LayerWork> {
    let mut layers = Vec::new();
    for &i in order {
        let node = &draft.nodes[i];
        let (Some(inputs), Some(output)) = (operands(draft, &sources[i], shapes), &shapes[i]) else {
            continue;
        };
        match lower(&node.op, &inputs, output) {
            Ok(parts) => {
                for (suffix, problem, repeats) in parts {
                    if let Err(message) = countable(&problem, repeats) {
                        faults.add(Subject::Node(i), message);
                    } else {
                        layers.push(LayerWork {
                            name: format!("{}{suffix}", node.name),
                            problem,
                            repeats,
                        });
                    }
                }
            }
            Err(message) => faults.add(Subject::Node(i), format!("{}: {message}", node.op.kind())),
        }
    }
    layers
}

/// Checks that every count that others derive from the problem fits 64 bits.
fn countable(problem: &Problem, repeats: u64) -> Result<(), String> {
    let b = &problem.bounds;
    let fits = |factors: &[u64]| elements(factors).is_ok();
    if !fits(&b.0) || !fits(&[b.0.iter().product(), repeats]) {
        let product = b.0.iter().chain([&repeats]).filter(|&&n| n > 1).map(u64::to_string);
        return Err(format!(
            "{} multiply-accumulates do not fit 64 bits",
            product.collect::<Vec<_>>().join("·")
        ));
    }
    let span = |windows: u64, stride: u64, taps: u64, dilation: u64| {
        let first = (windows - 1).checked_mul(stride)?;
        first.checked_add((taps - 1).checked_mul(dilation)?)?.checked_add(1)
    };
    let rows = span(b[Dim::P], problem.stride.0, b[Dim::R], problem.dilation.0);
    let columns = span(b[Dim::Q], problem.stride.1, b[Dim::S], problem.dilation.1);
    match (rows, columns) {
        (Some(rows), Some(columns)) if fits(&[b[Dim::N], b[Dim::G], b[Dim::C], rows, columns]) => Ok(()),
        _ => Err(format!(
            "the number of elements of {} does not fit 64 bits",
            Tensor::Inputs
        )),
    }
}

fn total(layers: &[LayerWork], faults: &mut Faults<'_>) -> u64 {
    let sum = layers.iter().try_fold(0_u64, |sum, layer| {
        sum.checked_add(layer.problem.macs() * layer.repeats)
    });
    if sum.is_none() {
        faults.add(
            Subject::Network,
            "the multiply-accumulates of all nodes together do not fit 64 bits",
        );
    }
    sum.unwrap_or_default()
}
