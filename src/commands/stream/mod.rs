//! `stream`: a network as a pipeline on an FPGA.

mod export;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use comfy_table::{Table, presets};
use cyclonest_arch::streaming::{
    Backend, Coefficients, Design, Evaluation, Front, Graph, Objective, Platform, backend, backends, evaluate,
};
use cyclonest_scheduler::streaming::{Brute, Budget, Found, Space, optimiser, optimisers};
use cyclonest_sim::streaming::{
    DEFAULT_DEPTH, DesignOutcome, Ends, PipelineError, partition_pipeline, resolve_deadlock, simulate_design,
    size_fifos,
};

use crate::cli::Ending;
use crate::faults::Faults;
use crate::inputs;
use crate::output::Destination;
use crate::report;

/// Map a network onto an FPGA as a pipeline of hardware nodes, and simulate the pipeline.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A bundled network, a RON file, or an ONNX file.
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "design")]
    network: Option<String>,
    /// A bundled platform, or a RON file.
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "design")]
    platform: Option<String>,
    /// The tool flow: fpgaconvnet, finn or hls4ml.
    #[arg(long, value_name = "NAME", required_unless_present = "design")]
    backend: Option<String>,
    /// How foldings and cuts are found: exact, rule, anneal or brute.
    #[arg(long, value_name = "NAME", default_value = "exact", conflicts_with = "design")]
    optimiser: String,
    /// What is minimised: the time of one frame, or of a batch with the reconfigurations between its partitions.
    #[arg(long, value_enum, default_value = "latency", conflicts_with = "design")]
    objective: Goal,
    /// Frames of a batch.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    batch: u64,
    /// Seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Designs that anneal and brute may judge.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    budget: u64,
    /// A design that was written with -o, instead of an optimiser. A network or platform that is a file must be
    /// given as well.
    #[arg(long, value_name = "FILE")]
    design: Option<PathBuf>,
    /// Coefficients of look-up tables and flip-flops (RON) for fpgaconvnet; the built-in ones are our own estimate.
    #[arg(long, value_name = "FILE")]
    coefficients: Option<PathBuf>,
    /// Simulate the pipeline cycle by cycle.
    #[arg(long)]
    simulate: bool,
    /// Find the smallest FIFO depths that keep the interval; they become part of the design.
    #[arg(long)]
    size_fifos: bool,
    /// Depth of every FIFO where none is sized [pixels].
    #[arg(long, value_name = "N", conflicts_with = "size_fifos")]
    fifo_depth: Option<u64>,
    /// Write the file that the backend's tool reads (folding configuration, partitions, reuse factors).
    #[arg(long, value_name = "BACKEND")]
    export: Option<String>,
    /// Write the design (RON), or with --export the tool's file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Goal {
    Latency,
    Throughput,
}

/// Everything that a design belongs to.
struct Context {
    graph: Graph,
    backend: Box<dyn Backend>,
    platform: Platform,
    coefficients: Coefficients,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Ending, Faults> {
    let destination = args
        .output
        .as_deref()
        .map(|path| Destination::prepare(Some(path)))
        .transpose()?;
    let given = args.design.as_deref().map(read_design).transpose()?;
    let context = context(args, given.as_ref())?;
    if let Some(name) = &args.export
        && name != context.backend.name()
    {
        return Err(Faults::one(format!(
            "--export {name}: the design is of backend {}; its foldings mean nothing to another tool",
            context.backend.name()
        )));
    }
    let mut text = String::new();
    let mut design = match given {
        Some(design) => check(&context, design)?,
        None => optimise(args, &context, &mut text)?,
    };
    let evaluation = evaluate(
        &design,
        &context.graph,
        context.backend.as_ref(),
        &context.platform,
        &context.coefficients,
    );
    show_design(&mut text, &context, &design, &evaluation);
    let mut ending = Ending::Complete;
    if let Some(depth) = args.fifo_depth {
        design.fifo_depths = vec![depth; context.graph.edges.len()];
    }
    if args.size_fifos {
        match size(&context, &mut design) {
            Ok(summary) => text.push_str(&summary),
            Err(error) => {
                let _ = writeln!(text, "\n{error}");
                ending = Ending::Incomplete;
            }
        }
    }
    if args.simulate && ending == Ending::Complete {
        let frames = design.objective.batch();
        let (graph, backend) = (&context.graph, context.backend.as_ref());
        match simulate_design(graph, backend, &design, &context.platform, frames) {
            Ok(outcome) => show_outcome(&mut text, &context, &design, &outcome),
            Err(error) => {
                show_error(&mut text, &context, &design, &error);
                ending = Ending::Incomplete;
            }
        }
    }
    let file = if args.export.is_some() {
        Some(export::export(&design, &context.graph, context.backend.as_ref()))
    } else if destination.is_some() {
        Some(cyclonest_arch::to_ron(&design))
    } else {
        None
    };
    match (destination, file) {
        (Some(destination), Some(file)) => {
            destination.write(&file)?;
            crate::output::print(&text)?;
        }
        (None, Some(file)) => crate::output::print(&file)?,
        _ => crate::output::print(&text)?,
    }
    Ok(ending)
}

fn read_design(path: &Path) -> Result<Design, Faults> {
    let text = inputs::read(path)?;
    cyclonest_arch::from_ron(&text).map_err(|diagnostic| inputs::placed(path, &text, &[diagnostic]))
}

/// Network, backend and platform, by option or by the design's names; all faults at once.
fn context(args: &Args, design: Option<&Design>) -> Result<Context, Faults> {
    let pick = |option: &Option<String>, named: fn(&Design) -> &String| {
        option
            .clone()
            .or_else(|| design.map(|d| named(d).clone()))
            .unwrap_or_default()
    };
    let mut faults = None;
    let network = Faults::collect(&mut faults, inputs::network(&pick(&args.network, |d| &d.network), None));
    let platform = Faults::collect(&mut faults, platform(&pick(&args.platform, |d| &d.platform)));
    let flow = Faults::collect(&mut faults, flow(&pick(&args.backend, |d| &d.backend)));
    let coefficients = Faults::collect(&mut faults, coefficients(args.coefficients.as_deref()));
    if optimiser(&args.optimiser).is_none() {
        let known: Vec<String> = optimisers().iter().map(|o| o.name().to_owned()).collect();
        let unknown = Faults::unknown("optimiser", &args.optimiser, &known);
        Faults::collect::<()>(&mut faults, Err(unknown));
    }
    let (Some(network), Some(platform), Some(backend), Some(coefficients)) = (network, platform, flow, coefficients)
    else {
        return Err(faults.expect("something is missing because of a fault"));
    };
    if let Some(faults) = faults {
        return Err(faults);
    }
    let fault = |error: cyclonest_arch::streaming::FrontError| Faults::one(error.to_string());
    let front = Front::from_network(&network.network).map_err(fault)?;
    let graph = backend.graph(&front).map_err(fault)?;
    Ok(Context {
        graph,
        backend,
        platform,
        coefficients,
    })
}

fn platform(given: &str) -> Result<Platform, Faults> {
    match Platform::named(given) {
        Ok(platform) => Ok(platform),
        Err(_) if inputs::is_path(given) => {
            let path = Path::new(given);
            let text = inputs::read(path)?;
            cyclonest_arch::from_ron(&text).map_err(|diagnostic| inputs::placed(path, &text, &[diagnostic]))
        }
        Err(_) => {
            let known: Vec<String> = Platform::bundled().into_iter().map(|p| p.name).collect();
            Err(Faults::unknown("platform", given, &known))
        }
    }
}

fn flow(name: &str) -> Result<Box<dyn Backend>, Faults> {
    backend(name).ok_or_else(|| {
        let known: Vec<String> = backends().iter().map(|b| b.name().to_owned()).collect();
        Faults::unknown("backend", name, &known)
    })
}

fn coefficients(path: Option<&Path>) -> Result<Coefficients, Faults> {
    path.map_or_else(|| Ok(Coefficients::default()), read_coefficients)
}

/// Coefficients from a RON file.
pub(super) fn read_coefficients(path: &Path) -> Result<Coefficients, Faults> {
    let text = inputs::read(path)?;
    cyclonest_arch::from_ron(&text).map_err(|diagnostic| inputs::placed(path, &text, &[diagnostic]))
}

/// The design, if it is one of this graph and breaks no constraint.
fn check(context: &Context, design: Design) -> Result<Design, Faults> {
    let violations = design.check(
        &context.graph,
        context.backend.as_ref(),
        &context.platform,
        &context.coefficients,
    );
    if violations.is_empty() {
        Ok(design)
    } else {
        Err(violations.iter().map(ToString::to_string).collect())
    }
}

fn optimise(args: &Args, context: &Context, text: &mut String) -> Result<Design, Faults> {
    let space = Space::new(
        &context.graph,
        context.backend.as_ref(),
        &context.platform,
        &context.coefficients,
    );
    let objective = match args.objective {
        Goal::Latency => Objective::Latency,
        Goal::Throughput => Objective::Throughput { batch: args.batch },
    };
    let chosen = optimiser(&args.optimiser).expect("checked");
    if chosen.name() == "brute" {
        let count = Brute::count(&space, context.backend.as_ref(), objective, args.budget);
        let _ = writeln!(
            text,
            "space: {:.3e} designs, {:.3e} after the intra match, {:.3e} after the inter match\n\
             judged {}{}, {} feasible, {:.2e} per second: {:.3e} s for the whole space",
            count.space.full,
            count.space.intra,
            count.space.inter,
            count.judged,
            if count.complete { " (all)" } else { "" },
            count.feasible,
            count.per_second,
            count.whole_space_s
        );
    }
    let budget = Budget {
        evaluations: args.budget,
        seed: args.seed,
    };
    let found = chosen
        .optimise(&space, objective, budget)
        .map_err(|error| Faults::one(error.to_string()))?;
    let _ = writeln!(text, "{}: {}", chosen.name(), describe(&found));
    Ok(found.design)
}

fn describe(found: &Found) -> String {
    let proof = if found.is_proven() {
        "proven optimal".to_owned()
    } else if found.bound_us > 0.0 {
        format!("not proven: no design is faster than {:.2} µs", found.bound_us)
    } else {
        "no bound".to_owned()
    };
    format!("{:.2} µs, {proof}, {} evaluations", found.time_us, found.evaluations)
}

fn show_design(text: &mut String, context: &Context, design: &Design, evaluation: &Evaluation) {
    let _ = writeln!(
        text,
        "{} on {} by {}, {}: {:.2} µs, {:.1} frames/s",
        design.network,
        context.platform.name,
        context.backend.name(),
        match design.objective {
            Objective::Latency => "latency".to_owned(),
            Objective::Throughput { batch } => format!("batch {batch}"),
        },
        evaluation.time_us,
        evaluation.frames_per_second
    );
    if context.backend.name() == "fpgaconvnet" {
        let _ = writeln!(text, "look-up tables and flip-flops: {}", context.coefficients.source);
    }
    let mut table = table([
        "partition",
        "nodes",
        "cycles",
        "slowest",
        "DSP",
        "BRAM",
        "LUT",
        "FF",
        "Mbit/s",
    ]);
    for (index, partition) in evaluation.partitions.iter().enumerate() {
        let (first, last) = partition.nodes;
        let r = partition.resources;
        table.add_row([
            index.to_string(),
            format!("{}–{}", context.graph.nodes[first].name, context.graph.nodes[last].name),
            partition.interval.to_string(),
            partition.slowest.clone(),
            r.dsp.to_string(),
            r.bram.to_string(),
            r.lut.to_string(),
            r.ff.to_string(),
            format!("{:.1}", partition.bandwidth_mbps),
        ]);
    }
    let _ = writeln!(text, "{}", report::render(&table));
    let mut nodes = self::table(["node", "kind", "cin×cout×k", "cycles"]);
    for (node, (name, folding)) in context.graph.nodes.iter().zip(&design.foldings) {
        nodes.add_row([
            name.clone(),
            format!("{:?}", node.kind),
            folding.to_string(),
            context.backend.latency(node, *folding).to_string(),
        ]);
    }
    let _ = writeln!(text, "{}", report::render(&nodes));
}

/// Sizes the FIFOs of every partition.
fn size(context: &Context, design: &mut Design) -> Result<String, PipelineError> {
    let (graph, backend) = (&context.graph, context.backend.as_ref());
    let mut text = String::from("\nFIFO depths that keep the interval\n");
    let mut depths = vec![DEFAULT_DEPTH; graph.edges.len()];
    let mut table = table(["from", "to", "depth"]);
    for nodes in design.partitions() {
        let pipeline = partition_pipeline(graph, backend, design, nodes, Ends::Memory(&context.platform));
        let sizing = size_fifos(&pipeline, 8)?;
        // The pipeline's links are the input, the graph's edges inside the partition, and the output.
        let inside = (0..graph.edges.len()).filter(|&e| graph.edges[e].from >= nodes.0 && graph.edges[e].to <= nodes.1);
        for (edge, depth) in inside.zip(&sizing.depths[1..]) {
            depths[edge] = *depth;
            let (from, to) = (graph.edges[edge].from, graph.edges[edge].to);
            table.add_row([
                graph.nodes[from].name.clone(),
                graph.nodes[to].name.clone(),
                depth.to_string(),
            ]);
        }
    }
    design.fifo_depths = depths;
    let _ = writeln!(text, "{}", report::render(&table));
    Ok(text)
}

fn show_outcome(text: &mut String, context: &Context, design: &Design, outcome: &DesignOutcome) {
    let _ = writeln!(
        text,
        "\nsimulated: {:.2} µs = {:.2} µs executing + {:.2} µs reconfiguring, {:.1} frames/s",
        outcome.time_us, outcome.execution_us, outcome.reconfiguration_us, outcome.frames_per_second
    );
    let _ = design;
    for (index, partition) in outcome.partitions.iter().enumerate() {
        let run = &partition.outcome;
        #[allow(clippy::cast_precision_loss)]
        let ratio = run.first_frame as f64 / partition.model.max(1) as f64;
        let _ = writeln!(
            text,
            "partition {index}: {} frames in {} cycles; first frame {} ({ratio:.2} × the slowest node), interval {:.1} \
             (slowest node {})",
            run.frames,
            run.cycles,
            run.first_frame,
            run.interval(),
            partition.model
        );
        if let Some((frames, cycles, times)) = run.skipped {
            let _ = writeln!(
                text,
                "  the state recurs after {frames} frames and {cycles} cycles: skipped {times} times"
            );
        }
        let mut stages = table(["node", "first firing", "busy", "waits for input", "waits for room"]);
        for stage in &run.stages {
            stages.add_row([
                stage.name.clone(),
                stage.fill.to_string(),
                stage.busy.to_string(),
                stage.starved.to_string(),
                stage.blocked.to_string(),
            ]);
        }
        let _ = writeln!(text, "{}", report::render(&stages));
        let mut links = table(["from", "to", "pixels", "most held", "cycles full"]);
        for link in &run.links {
            links.add_row([
                link.from.clone(),
                link.to.clone(),
                link.transfers.to_string(),
                link.high_water.to_string(),
                link.blocked.to_string(),
            ]);
        }
        let _ = writeln!(text, "{}", report::render(&links));
    }
    let _ = context;
}

/// A deadlock, with what would resolve it.
fn show_error(text: &mut String, context: &Context, design: &Design, error: &PipelineError) {
    let _ = writeln!(text, "\n{error}");
    let PipelineError::Deadlock { full, .. } = error else {
        return;
    };
    let (graph, backend) = (&context.graph, context.backend.as_ref());
    for nodes in design.partitions() {
        let pipeline = partition_pipeline(graph, backend, design, nodes, Ends::Memory(&context.platform));
        if full.iter().any(|&l| l >= pipeline.links.len()) {
            continue;
        }
        if let Some(depths) = resolve_deadlock(&pipeline, full, 2) {
            for (link, depth) in depths {
                let link = pipeline.links[link];
                let _ = writeln!(
                    text,
                    "help: a depth of {depth} at the FIFO from `{}` to `{}` resolves it; --size-fifos finds the depths that \
                     keep the interval",
                    pipeline.stages[link.from].name, pipeline.stages[link.to].name
                );
            }
            return;
        }
    }
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table
}
