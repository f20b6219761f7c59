//! Records of SAMO (AlexMontgomerie/samo, c562238): node tables, what its optimisers found, proven optima.
//!
//! One JSON object per line, of three kinds:
//!
//! - a **node** (`node`): backend, network, node, folding `cin`, `cout`, `kf`, and its `latency`, `DSP`, `BRAM`
//!   (`LUT` and `FF` are compared for FINN, whose formulas are published);
//! - an **optimiser's run** (`optimiser`): every node of its result and of its best design is compared like a node;
//! - an **optimum** (`optimum_us` or `total_us` without `optimiser`): the exact optimiser must reach that time, prove
//!   it, and judge the record's own foldings feasible.
//!
//! Look-up tables and flip-flops of fpgaConvNet come from coefficients of the caller's; without any, they are fitted
//! to the node records of the given files, or else to the observations that come with this crate.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;

use cyclonest_arch::streaming::{
    Backend, Coefficients, Design, Folding, Front, Graph, Node, NodeKind, Objective, Observation, Platform, Violation,
    backend,
};
use cyclonest_scheduler::streaming::{Budget, Exact, Optimiser, Space};
use serde_json::Value;

/// Observed look-up tables and flip-flops of fpgaConvNet nodes, for calibration.
const OBSERVATIONS: &str = include_str!("../../data/fpgaconvnet_nodes.jsonl");

/// How many records agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Records without a difference.
    pub passed: usize,
    /// Records with a difference, or that could not be read.
    pub failed: usize,
    /// Node records that differ where the original is known to differ from its own formulas; in neither of the others.
    pub excepted: usize,
}

/// Compares every record of every file and ends with `N passed, N failed`.
///
/// # Errors
/// If a file cannot be read or `out` cannot be written.
pub fn run(paths: &[PathBuf], coefficients: Option<Coefficients>, out: &mut dyn Write) -> std::io::Result<Report> {
    let mut lines = Vec::new();
    for path in paths {
        let named = |e: std::io::Error| std::io::Error::new(e.kind(), format!("{}: {e}", path.display()));
        let file = std::fs::File::open(path).map_err(named)?;
        for (index, line) in BufReader::new(file).lines().enumerate() {
            let line = line.map_err(named)?;
            if !line.trim().is_empty() {
                lines.push((format!("{}:{}", path.display(), index + 1), line));
            }
        }
    }
    let mut graphs = Graphs::default();
    let records: Vec<(String, Result<Value, String>)> = lines
        .into_iter()
        .map(|(place, line)| (place, serde_json::from_str(&line).map_err(|e| e.to_string())))
        .collect();
    let coefficients = match coefficients {
        Some(given) => given,
        None => calibrate(&records, &mut graphs),
    };
    writeln!(
        out,
        "fpgaConvNet look-up tables and flip-flops: {}",
        coefficients.source
    )?;
    let mut report = Report::default();
    let mut exceptions: BTreeMap<String, usize> = BTreeMap::new();
    for (place, record) in &records {
        let outcome = match record {
            Ok(value) => judge(value, &mut graphs, &coefficients),
            Err(message) => Outcome::Failed(vec![message.clone()]),
        };
        match outcome {
            Outcome::Passed(note) => {
                report.passed += 1;
                if let Some(note) = note {
                    writeln!(out, "{place}: {note}")?;
                }
            }
            Outcome::Excepted(reason) => {
                report.excepted += 1;
                *exceptions.entry(reason).or_default() += 1;
            }
            Outcome::Failed(differences) => {
                report.failed += 1;
                writeln!(out, "{place}:")?;
                for difference in differences {
                    writeln!(out, "  {difference}")?;
                }
            }
        }
    }
    for (reason, count) in exceptions {
        writeln!(out, "{count} excepted: {reason}")?;
    }
    writeln!(out, "{} passed, {} failed", report.passed, report.failed)?;
    Ok(report)
}

/// Coefficients of fpgaConvNet fitted to the observations that come with this crate.
#[must_use]
pub fn bundled_coefficients() -> Coefficients {
    calibrate(&[], &mut Graphs::default())
}

/// Coefficients fitted to the fpgaConvNet nodes among the records, or to the bundled observations.
fn calibrate(records: &[(String, Result<Value, String>)], graphs: &mut Graphs) -> Coefficients {
    let mut observations = Vec::new();
    for value in records.iter().filter_map(|(_, r)| r.as_ref().ok()) {
        observe(value, graphs, &mut observations);
    }
    let kinds: BTreeSet<NodeKind> = observations.iter().map(|o: &Observation| o.node.kind).collect();
    // Too few to determine a form: the bundled ones are there for that.
    let enough = observations.len() >= 100 && kinds.contains(&NodeKind::Conv) && kinds.contains(&NodeKind::Fc);
    if !enough {
        for line in OBSERVATIONS.lines().filter(|l| !l.starts_with("//")) {
            let value = serde_json::from_str(line).expect("bundled observations are well-formed, see the tests");
            observe(&value, graphs, &mut observations);
        }
    }
    Coefficients::calibrate(&observations)
}

/// Adds the fpgaConvNet nodes of a record that follow its formulas.
fn observe(value: &Value, graphs: &mut Graphs, list: &mut Vec<Observation>) {
    if text(value, "backend") != "fpgaconvnet" {
        return;
    }
    let network = text(value, "network");
    for row in node_rows(value) {
        let Ok((_, node)) = graphs.node("fpgaconvnet", &network, &row.name) else {
            continue;
        };
        let regular = exception(&node, &network).is_none();
        let matters = matches!(node.kind, NodeKind::Conv | NodeKind::Fc | NodeKind::Pool);
        if let (Some(lut), Some(ff), true) = (row.lut, row.ff, regular && matters) {
            list.push(Observation {
                node,
                folding: row.folding,
                lut,
                ff,
            });
        }
    }
}

/// What became of a record.
enum Outcome {
    Passed(Option<String>),
    Excepted(String),
    Failed(Vec<String>),
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// A node with its folding and what was counted.
struct NodeRow {
    name: String,
    folding: Folding,
    latency: f64,
    dsp: Option<f64>,
    bram: Option<f64>,
    lut: Option<f64>,
    ff: Option<f64>,
}

/// The nodes of a record: the record itself, or those of an optimiser's result and best design.
fn node_rows(value: &Value) -> Vec<NodeRow> {
    let number = |v: &Value| v.as_f64();
    if value["node"].is_string() {
        return vec![NodeRow {
            name: text(value, "node"),
            folding: Folding {
                cin: value["cin"].as_u64().unwrap_or(0),
                cout: value["cout"].as_u64().unwrap_or(0),
                k: value["kf"].as_u64().unwrap_or(0),
            },
            latency: value["latency"].as_f64().unwrap_or(f64::NAN),
            dsp: number(&value["DSP"]),
            bram: number(&value["BRAM"]),
            lut: number(&value["LUT"]),
            ff: number(&value["FF"]),
        }];
    }
    let mut rows = Vec::new();
    for design in [&value["result"], &value["best"]] {
        for partition in design["partitions"].as_array().into_iter().flatten() {
            for node in partition["nodes"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|n| n.is_object())
            {
                rows.push(NodeRow {
                    name: text(node, "name"),
                    folding: Folding {
                        cin: node["cin"].as_u64().unwrap_or(0),
                        cout: node["cout"].as_u64().unwrap_or(0),
                        k: node["k"].as_u64().unwrap_or(0),
                    },
                    latency: node["latency_cycles"].as_f64().unwrap_or(f64::NAN),
                    dsp: number(&node["resource"]["DSP"]),
                    bram: number(&node["resource"]["BRAM"]),
                    lut: number(&node["resource"]["LUT"]),
                    ff: number(&node["resource"]["FF"]),
                });
            }
        }
    }
    rows
}

/// The bundled network that a record's name stands for. The records call their variant of MobileNet `mobilenetv1`.
fn bundled_name(recorded: &str) -> &str {
    if recorded == "mobilenetv1" {
        "mobilenet_v1_samo"
    } else {
        recorded
    }
}

/// Graphs by backend and network, built once.
#[derive(Default)]
struct Graphs {
    built: BTreeMap<(String, String), Result<Graph, String>>,
}

impl Graphs {
    fn graph(&mut self, backend_name: &str, network: &str) -> Result<&Graph, String> {
        let key = (backend_name.to_owned(), network.to_owned());
        let built = self.built.entry(key).or_insert_with(|| {
            let backend = backend(backend_name).ok_or_else(|| format!("unknown backend `{backend_name}`"))?;
            let bundled = cyclonest_workloads::bundled::load(bundled_name(network))
                .ok_or_else(|| format!("network `{network}` is not bundled"))?;
            let front = Front::from_network(&bundled).map_err(|e| e.to_string())?;
            backend.graph(&front).map_err(|e| e.to_string())
        });
        built.as_ref().map_err(Clone::clone)
    }

    fn node(&mut self, backend_name: &str, network: &str, name: &str) -> Result<(Box<dyn Backend>, Node), String> {
        let graph = self.graph(backend_name, network)?;
        let index = graph
            .find(name)
            .ok_or_else(|| format!("the graph of `{network}` has no node `{name}`"))?;
        let node = graph.nodes[index].clone();
        Ok((backend(backend_name).ok_or("unknown backend")?, node))
    }
}

/// Why the original differs from its own formulas on a node, if it does.
fn exception(node: &Node, _network: &str) -> Option<&'static str> {
    match node.kind {
        NodeKind::Conv if node.groups > 1 => Some(
            "fpgaConvNet depthwise: the original computes on the padded map (rows·columns of the padded input ÷ \
             stride²) and holds its weights and windows elsewhere",
        ),
        NodeKind::Conv if node.stride != (1, 1) => {
            Some("fpgaConvNet stride 2: the original reads these layers as stride 1 on a map padded on all sides")
        }
        NodeKind::Pool if node.input.pixels() > 1 && node.output.pixels() == 1 => {
            Some("fpgaConvNet global pooling: the original reads it as a 2×2 window with stride 2")
        }
        _ => None,
    }
}

fn compare_nodes(value: &Value, graphs: &mut Graphs, coefficients: &Coefficients) -> Outcome {
    let (backend_name, network) = (text(value, "backend"), text(value, "network"));
    let mut differences = Vec::new();
    let mut reason = None;
    // An optimiser's run reports latencies of the whole batch, but for HLS4ML, where the original forgets it.
    let batch = value["batch"].as_u64().unwrap_or(1);
    let scale = if backend_name == "hls4ml" { 1 } else { batch };
    for row in node_rows(value) {
        let (backend, node) = match graphs.node(&backend_name, &network, &row.name) {
            Ok(found) => found,
            Err(message) => return Outcome::Failed(vec![message]),
        };
        let channels = (value["channels_in"].as_u64(), value["channels_out"].as_u64());
        if backend_name == "fpgaconvnet" && node.kind == NodeKind::Relu {
            // Some records name a rectifier of another depth: its own sizes are what it was counted with.
            if let Some(size) = value["size_in"].as_u64().filter(|&s| s != node.size_in) {
                let latency = size.div_ceil(row.folding.cin);
                #[allow(clippy::cast_precision_loss)]
                if (latency as f64 - row.latency).abs() < 1e-6 * row.latency {
                    continue;
                }
            }
        }
        let mut found = Vec::new();
        if let (Some(cin), Some(cout)) = channels
            && (cin, cout) != (node.channels_in, node.channels_out)
        {
            found.push(format!(
                "channels {cin} → {cout}, ours {} → {}",
                node.channels_in, node.channels_out
            ));
        }
        let latency = backend.latency(&node, row.folding);
        let resources = backend.resources(&node, row.folding, coefficients);
        #[allow(clippy::cast_precision_loss)]
        let mut check = |what: &str, expected: Option<f64>, got: u64| {
            if let Some(expected) = expected
                && (expected - got as f64).abs() > 1e-9 * expected.abs().max(1.0)
            {
                found.push(format!("{what} expected {expected}, got {got}"));
            }
        };
        check("latency", Some(row.latency), latency * scale);
        check("DSP", row.dsp, resources.dsp);
        check("BRAM", row.bram, resources.bram);
        if backend_name == "finn" {
            check("LUT", row.lut, resources.lut);
        }
        if found.is_empty() {
            continue;
        }
        match (backend_name.as_str(), exception(&node, &network)) {
            ("fpgaconvnet", Some(known)) => reason = Some(known),
            _ => differences.push(format!(
                "{backend_name} {network} {} {}: {}",
                row.name,
                row.folding,
                found.join(", ")
            )),
        }
    }
    match (differences.is_empty(), reason) {
        (false, _) => Outcome::Failed(differences),
        (true, Some(reason)) => Outcome::Excepted(reason.to_owned()),
        (true, None) => Outcome::Passed(None),
    }
}

fn judge(value: &Value, graphs: &mut Graphs, coefficients: &Coefficients) -> Outcome {
    if value["node"].is_string() || value["optimiser"].is_string() {
        return compare_nodes(value, graphs, coefficients);
    }
    let expected = value["total_us"].as_f64().or_else(|| value["optimum_us"].as_f64());
    match expected {
        Some(expected) => optimum(value, expected, graphs, coefficients),
        None => Outcome::Failed(vec!["neither a node nor an optimiser's run nor an optimum".to_owned()]),
    }
}

/// The exact optimiser against a proven optimum.
fn optimum(value: &Value, expected: f64, graphs: &mut Graphs, coefficients: &Coefficients) -> Outcome {
    let (backend_name, network, platform) = (text(value, "backend"), text(value, "network"), text(value, "platform"));
    let label = format!(
        "{backend_name} {network} {platform} {} {}",
        text(value, "objective"),
        value["batch"]
    );
    match solve_optimum(value, &backend_name, graphs, &network, &platform, coefficients) {
        Err(message) => Outcome::Failed(vec![format!("{label}: {message}")]),
        Ok((time, proven, seconds, remark)) => {
            let same = (time - expected).abs() <= 1e-9 * expected;
            let note = format!("{label}: {time:.2} µs in {seconds:.2} s{remark}");
            if same && proven {
                Outcome::Passed(Some(note))
            } else {
                let proof = if proven { "proven" } else { "not proven" };
                Outcome::Failed(vec![format!("{note}, {proof}; expected {expected:.2} µs")])
            }
        }
    }
}

/// Time, whether it is proven, seconds spent, and a remark.
fn solve_optimum(
    value: &Value,
    backend_name: &str,
    graphs: &mut Graphs,
    network: &str,
    platform: &str,
    coefficients: &Coefficients,
) -> Result<(f64, bool, f64, String), String> {
    let flow = backend(backend_name).ok_or_else(|| format!("unknown backend `{backend_name}`"))?;
    let mut platform = Platform::named(platform).map_err(|e| e.to_string())?;
    let mut graph = graphs.graph(backend_name, network)?.clone();
    if value["single_partition"].as_bool() == Some(true) {
        graph.cuts.fill(false);
    }
    let batch = value["batch"].as_u64().unwrap_or(1);
    let throughput = text(value, "objective") == "throughput";
    let objective = if throughput {
        Objective::Throughput { batch }
    } else {
        Objective::Latency
    };
    let mut remark = String::new();
    if let Some(theirs) = design_of(value, &graph, objective, &platform.name) {
        let broken = theirs.check(&graph, flow.as_ref(), &platform, coefficients);
        if let Some(violation) = broken.iter().find(|v| !matches!(v, Violation::Bandwidth { .. })) {
            return Err(format!("the record's own design breaks a constraint here: {violation}"));
        }
        if let Some(violation) = broken.first() {
            // The original multiplies latencies by the batch before it divides the traffic by them.
            let space = Space::new(&graph, flow.as_ref(), &platform, coefficients);
            let ours = Exact::default()
                .optimise(&space, objective, Budget::default())
                .map_err(|e| e.to_string())?;
            #[allow(clippy::cast_precision_loss)]
            let relaxed = platform.bandwidth_gbps * batch as f64;
            remark = format!(
                " with the original's bandwidth check, which is lax by the batch: {violation}; within the bandwidth the \
                 optimum is {:.2} µs",
                ours.time_us
            );
            platform.bandwidth_gbps = relaxed;
        }
    }
    let space = Space::new(&graph, flow.as_ref(), &platform, coefficients);
    let start = std::time::Instant::now();
    let found = Exact::default()
        .optimise(&space, objective, Budget::default())
        .map_err(|e| e.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    let violations = found.design.check(&graph, flow.as_ref(), &platform, coefficients);
    if let Some(violation) = violations.first() {
        return Err(format!("the design that was found breaks a constraint: {violation}"));
    }
    Ok((found.time_us, found.is_proven(), seconds, remark))
}

/// The design that an optimum's record describes.
fn design_of(value: &Value, graph: &Graph, objective: Objective, platform: &str) -> Option<Design> {
    let triple = |v: &Value| {
        let part = |i: usize| v[i].as_u64();
        Some(Folding {
            cin: part(0)?,
            cout: part(1)?,
            k: part(2)?,
        })
    };
    let mut foldings = Vec::new();
    let mut cuts = Vec::new();
    if let Some(partitions) = value["partitions"].as_array() {
        for partition in partitions {
            let names = partition["nodes"].as_array()?;
            for (name, folding) in names.iter().zip(partition["foldings"].as_array()?) {
                foldings.push((name.as_str()?.to_owned(), triple(folding)?));
            }
            cuts.push(foldings.len() - 1);
        }
        cuts.pop();
    } else {
        let map = value["foldings"].as_object()?;
        for node in &graph.nodes {
            foldings.push((node.name.clone(), triple(map.get(&node.name)?)?));
        }
    }
    Some(Design {
        network: graph.network.clone(),
        backend: graph.backend.clone(),
        platform: platform.to_owned(),
        objective,
        foldings,
        cuts,
        fifo_depths: Vec::new(),
    })
}
