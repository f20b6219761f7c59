//! The tables of `docs/streaming.md`: optimisers, designs, model against simulation.
//!
//! `cargo run --release -p cyclonest-validation --example streaming_tables -- optimisers|fig2|designs [BACKEND]|hand-tuned|model`

use cyclonest_arch::streaming::{
    Backend, Coefficients, Design, Folding, Front, Graph, Objective, Platform, backend, evaluate,
};
use cyclonest_scheduler::streaming::{Anneal, Budget, Exact, Found, OptimiseError, Optimiser, Rule, Space};
use cyclonest_sim::streaming::{Ends, Options, partition_pipeline, simulate};
use cyclonest_validation::reference::samo;
use cyclonest_validation::tuned;

const SMALL: [&str; 9] = [
    "simple",
    "tfc",
    "sfc",
    "lfc",
    "lenet",
    "mpcnn",
    "cnv",
    "vgg11",
    "mobilenet_v1_samo",
];
const BACKENDS: [&str; 3] = ["fpgaconvnet", "finn", "hls4ml"];

fn main() {
    let table = std::env::args().nth(1).unwrap_or_default();
    match table.as_str() {
        "optimisers" => optimisers(),
        "fig2" => fig2(),
        "designs" => designs(std::env::args().nth(2).as_deref()),
        "hand-tuned" => hand_tuned(),
        "model" => model(),
        _ => eprintln!("one of optimisers, fig2, designs, hand-tuned, model is expected"),
    }
}

/// The graph of a bundled network, or why there is none.
fn graph(flow: &dyn Backend, network: &str) -> Result<Graph, String> {
    let bundled = cyclonest_workloads::bundled::load(network).ok_or("not bundled")?;
    let front = Front::from_network(&bundled).map_err(|e| e.to_string())?;
    flow.graph(&front).map_err(|e| e.to_string())
}

fn solve(
    space: &Space<'_>,
    objective: Objective,
    optimiser: &dyn Optimiser,
    budget: Budget,
) -> Result<Found, OptimiseError> {
    optimiser.optimise(space, objective, budget)
}

/// Rule and annealing against exact, over networks, backends, platforms and objectives.
fn optimisers() {
    let coefficients = samo::bundled_coefficients();
    println!("| network | backend | platform | objective | exact µs | proven | s | rule ÷ exact | anneal ÷ exact |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let (mut log, mut count, mut slowest) = (0.0, 0, 0.0f64);
    for network in SMALL {
        for name in BACKENDS {
            let flow = backend(name).expect("known");
            let Ok(graph) = graph(flow.as_ref(), network) else {
                continue;
            };
            for platform in ["zedboard", "zc706", "u250"] {
                let platform = Platform::named(platform).expect("bundled");
                let space = Space::new(&graph, flow.as_ref(), &platform, &coefficients);
                for objective in [Objective::Latency, Objective::Throughput { batch: 256 }] {
                    let budget = Budget {
                        evaluations: 20_000,
                        seed: 1,
                    };
                    let start = std::time::Instant::now();
                    let Ok(exact) = solve(&space, objective, &Exact::default(), budget) else {
                        continue;
                    };
                    let seconds = start.elapsed().as_secs_f64();
                    slowest = slowest.max(seconds);
                    let ratio = |found: Result<Found, OptimiseError>| found.map(|f| f.time_us / exact.time_us);
                    let rule = ratio(solve(&space, objective, &Rule, budget)).unwrap_or(f64::NAN);
                    let anneal = ratio(solve(&space, objective, &Anneal, budget));
                    log += rule.ln();
                    count += 1;
                    println!(
                        "| {network} | {name} | {} | {} | {:.2} | {} | {seconds:.2} | {rule:.3} | {} |",
                        platform.name,
                        if objective == Objective::Latency {
                            "latency"
                        } else {
                            "256 frames"
                        },
                        exact.time_us,
                        if exact.is_proven() { "yes" } else { "no" },
                        anneal.map_or("none found".to_owned(), |r| format!("{r:.3}")),
                    );
                }
            }
        }
    }
    println!(
        "\nrule ÷ exact: geometric mean {:.4} over {count} cases; slowest exact {slowest:.2} s",
        (log / f64::from(count)).exp()
    );
}

/// Fifty seeds of annealing against the rule at equal evaluations.
fn fig2() {
    let coefficients = samo::bundled_coefficients();
    println!(
        "| network | backend | exact µs | rule µs | evaluations | anneal best | median | worst | seeds as good as rule |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for network in ["cnv", "mobilenet_v1_samo"] {
        for (name, platform) in [("finn", "u250_1slr"), ("fpgaconvnet", "u250_1slr")] {
            let flow = backend(name).expect("known");
            let graph = graph(flow.as_ref(), network).expect("builds");
            let platform = Platform::named(platform).expect("bundled");
            let space = Space::new(&graph, flow.as_ref(), &platform, &coefficients);
            let budget = Budget::default();
            let Ok(exact) = solve(&space, Objective::Latency, &Exact::default(), budget) else {
                continue;
            };
            let rule = solve(&space, Objective::Latency, &Rule, budget).expect("feasible");
            let mut times: Vec<f64> = (0..50)
                .map(|seed| {
                    let budget = Budget {
                        evaluations: rule.evaluations,
                        seed,
                    };
                    solve(&space, Objective::Latency, &Anneal, budget).map_or(f64::INFINITY, |f| f.time_us)
                })
                .collect();
            times.sort_by(f64::total_cmp);
            let good = times.iter().filter(|&&t| t <= rule.time_us * (1.0 + 1e-9)).count();
            println!(
                "| {network} | {name} | {:.2} | {:.2} | {} | {:.2} | {:.2} | {:.2} | {good} of 50 |",
                exact.time_us, rule.time_us, rule.evaluations, times[0], times[25], times[49]
            );
        }
    }
}

fn all_ones(graph: &Graph, platform: &Platform, cuts: Vec<usize>, objective: Objective) -> Design {
    Design {
        network: graph.network.clone(),
        backend: graph.backend.clone(),
        platform: platform.name.clone(),
        objective,
        foldings: graph.nodes.iter().map(|n| (n.name.clone(), Folding::ONE)).collect(),
        cuts,
        fifo_depths: Vec::new(),
    }
}

/// What the designs of long graphs may cost; the bound is given where this does not suffice.
const CAPPED: Exact = Exact {
    limit: 20_000,
    work: 100_000_000,
};

/// Latency- and throughput-driven designs of every network, against the all-ones design; of one backend, or of all.
fn designs(only: Option<&str>) {
    let coefficients = Coefficients::estimate();
    println!(
        "| network | backend | platform | all ones µs | latency µs | gain | 256 frames/s, all ones | 256 frames/s | gain |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for &network in cyclonest_workloads::bundled::names() {
        for name in BACKENDS.into_iter().filter(|&name| only.is_none_or(|o| o == name)) {
            let flow = backend(name).expect("known");
            let graph = match graph(flow.as_ref(), network) {
                Ok(graph) => graph,
                Err(why) => {
                    println!("| {network} | {name} | all | {why} | | | | | |");
                    continue;
                }
            };
            for platform in ["zedboard", "zc706", "u250"] {
                let platform = Platform::named(platform).expect("bundled");
                let space = Space::new(&graph, flow.as_ref(), &platform, &coefficients);
                let throughput = Objective::Throughput { batch: 256 };
                let solved = (
                    solve(&space, Objective::Latency, &CAPPED, Budget::default()),
                    solve(&space, throughput, &CAPPED, Budget::default()),
                );
                let (latency, many) = match solved {
                    (Ok(latency), Ok(many)) => (latency, many),
                    (Err(error), _) | (_, Err(error)) => {
                        println!("| {network} | {name} | {} | {error} | | | | | |", platform.name);
                        continue;
                    }
                };
                // All ones, cut no more than it must be: at the cuts of the exact designs.
                let ones = |cuts: &[usize], objective| {
                    let design = all_ones(&graph, &platform, cuts.to_vec(), objective);
                    evaluate(&design, &graph, flow.as_ref(), &platform, &coefficients)
                };
                let (slow, slow_many) = (
                    ones(&latency.design.cuts, Objective::Latency),
                    ones(&many.design.cuts, throughput),
                );
                let rate = |time_us: f64| 256.0 / time_us * 1e6;
                // Where it is not proven: the bound, as a time or a rate.
                let bound = |f: &Found, value: f64| {
                    if f.is_proven() {
                        String::new()
                    } else {
                        format!(" (bound {value:.2})")
                    }
                };
                println!(
                    "| {network} | {name} | {} | {:.1} | {:.2}{} | {:.1} | {:.2} | {:.2}{} | {:.1} |",
                    platform.name,
                    slow.time_us,
                    latency.time_us,
                    bound(&latency, latency.bound_us),
                    slow.time_us / latency.time_us,
                    slow_many.frames_per_second,
                    rate(many.time_us),
                    bound(&many, rate(many.bound_us)),
                    slow_many.time_us / many.time_us
                );
            }
        }
    }
}

fn hand_tuned() {
    println!("\n| network | hand-tuned µs | exact, u250_1slr µs | exact, u250_4slr µs | all ones µs |");
    println!("|---|---|---|---|---|");
    let flow = backend("finn").expect("known");
    let coefficients = Coefficients::estimate();
    for tuned::Tuned {
        network,
        graph,
        design,
        cycles,
    } in tuned::designs()
    {
        let time = |name: &str| {
            let platform = Platform::named(name).expect("bundled");
            let space = Space::new(&graph, flow.as_ref(), &platform, &coefficients);
            solve(&space, Objective::Latency, &Exact::default(), Budget::default()).map_or(f64::NAN, |f| f.time_us)
        };
        let platform = Platform::named("u250_4slr").expect("bundled");
        let ours = evaluate(&design, &graph, flow.as_ref(), &platform, &coefficients);
        assert!(
            (ours.time_us - cycles / 200.0).abs() < 1e-6,
            "{} {}",
            ours.time_us,
            cycles / 200.0
        );
        let ones = all_ones(&graph, &platform, Vec::new(), Objective::Latency);
        let ones = evaluate(&ones, &graph, flow.as_ref(), &platform, &coefficients);
        println!(
            "| {network} | {:.2} | {:.2} | {:.2} | {:.1} |",
            ours.time_us,
            time("u250_1slr"),
            time("u250_4slr"),
            ones.time_us
        );
    }
}

/// The slowest-node model against the simulation, batch 1 to 65,536.
fn model() {
    println!(
        "| design | slowest node | first frame | ÷ slowest | interval | error at 1 | 16 | 256 | 4,096 | 65,536 | below 1 % from |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let coefficients = Coefficients::estimate();
    for tuned in tuned::designs() {
        row(
            &format!("{} finn, hand-tuned", tuned.network),
            &tuned.graph,
            &tuned.design,
        );
    }
    for network in ["tfc", "lenet"] {
        let flow = backend("finn").expect("known");
        let graph = graph(flow.as_ref(), network).expect("builds");
        let platform = Platform::named("zedboard").expect("bundled");
        row(
            &format!("{network} finn, all ones"),
            &graph,
            &all_ones(&graph, &platform, Vec::new(), Objective::Latency),
        );
    }
    for &network in cyclonest_workloads::bundled::names() {
        for name in BACKENDS {
            let flow = backend(name).expect("known");
            let Ok(graph) = graph(flow.as_ref(), network) else {
                continue;
            };
            let platform = Platform::named("u250").expect("bundled");
            let space = Space::new(&graph, flow.as_ref(), &platform, &coefficients);
            let Ok(found) = solve(&space, Objective::Latency, &Rule, Budget::default()) else {
                continue;
            };
            if found.design.cuts.is_empty() {
                row(&format!("{network} {name}, rule, u250"), &graph, &found.design);
            }
        }
    }
}

fn row(label: &str, graph: &Graph, design: &Design) {
    #![allow(clippy::cast_precision_loss)]
    let flow = backend(&graph.backend).expect("known");
    let nodes = (0, graph.nodes.len() - 1);
    let mut design = design.clone();
    // Deep FIFOs: what is measured is the pipeline, not its buffers.
    design.fifo_depths = vec![1 << 14; graph.edges.len()];
    let pipeline = partition_pipeline(graph, flow.as_ref(), &design, nodes, Ends::Unlimited);
    let outcome = match simulate(
        &pipeline,
        Options {
            frames: 8,
            fast_forward: true,
        },
    ) {
        Ok(outcome) => outcome,
        Err(error) => {
            println!("| {label} | {error} | | | | | | | | | |");
            return;
        }
    };
    let model = (0..graph.nodes.len())
        .map(|n| flow.latency(&graph.nodes[n], design.foldings[n].1))
        .max()
        .unwrap_or(0) as f64;
    let (first, interval) = (outcome.first_frame as f64, outcome.interval());
    let error = |batch: f64| {
        let simulated = first + (batch - 1.0) * interval;
        (model * batch - simulated).abs() / simulated
    };
    let below = (0..=40).map(|p| 2f64.powi(p)).find(|&b| error(b) < 0.01);
    let percent = |batch: f64| format!("{:.2} %", error(batch) * 100.0);
    println!(
        "| {label} | {model} | {first} | {:.2} | {interval} | {} | {} | {} | {} | {} | {} |",
        first / model,
        percent(1.0),
        percent(16.0),
        percent(256.0),
        percent(4096.0),
        percent(65536.0),
        below.map_or("never".to_owned(), |b| format!("{b}"))
    );
}
