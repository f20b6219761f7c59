//! Processor time with fast-forward and without, per layer, with the schedules given as a file.
//!
//! ```text
//! cargo bench -p cyclonest-sim --bench fast_forward [-- [--once] MAPPINGS.ron [LAYER]]
//! ```
//!
//! Without arguments: the distinct layers of ResNet-50 on simba, as `greedy` maps them. Both ways run in turn; a time
//! is that of building the machine, running it and reducing the counters. The outcomes must be equal. `--once` runs
//! every layer once each way, without batches: enough to see that they are.

use std::time::{Duration, Instant};

use cyclonest_arch::{Accelerator, Loop, Mapping, Mappings, bundled as machines};
use cyclonest_sim::{FastForward, Options, Outcome, simulate};
use cyclonest_workloads::{Dim, DistinctLayer, bundled as networks};

/// Time that this thread has had a processor; where the system does not tell, the time that has passed.
fn processor_time(since: Instant) -> Duration {
    let on_cpu = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = on_cpu.and_then(|line| line.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

/// Time of one of `times` runs: the system's clock of processor time is coarse.
fn timed(times: u32, run: impl Fn() -> Outcome) -> (f64, Outcome) {
    let since = Instant::now();
    let before = processor_time(since);
    let mut outcome = run();
    for _ in 1..times {
        outcome = run();
    }
    let time = processor_time(since).saturating_sub(before);
    (time.as_secs_f64() / f64::from(times), outcome)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The layer with more and more images, as one more loop of the outermost level: outside all others, or inside them.
fn batches(layer: &DistinctLayer, mapping: &Mapping, arch: &Accelerator) {
    println!("\n{} in batches, with fast-forward", layer.name);
    for inside in [false, true] {
        let mut single = 0.0;
        for images in [1, 16, 4_096, 131_072] {
            let (mut problem, mut mapping) = (layer.problem.clone(), mapping.clone());
            problem.bounds[Dim::N] = images;
            mapping.bounds[Dim::N] = images;
            let loops = &mut mapping.levels[0].temporal;
            if images > 1 {
                loops.insert(if inside { loops.len() } else { 0 }, Loop(Dim::N, images));
            }
            let options = Options {
                fast_forward: FastForward::On,
                ..Options::default()
            };
            let mut times = Vec::new();
            let mut outcome = None;
            for _ in 0..3 {
                let (time, o) = timed(1, || simulate(&problem, arch, &mapping, options).expect("valid"));
                times.push(time);
                outcome = Some(o);
            }
            let (time, outcome) = (median(&mut times), outcome.expect("ran"));
            if images == 1 {
                single = time;
            }
            println!(
                "  {} loop, batch {images:>6}: {:.2e} MACs, {:>15} cycles, {:>15} events, {:>9} simulated, {:>8.1} ms, {:.2} times batch 1",
                if inside { "innermost" } else { "outermost" },
                problem.macs() as f64,
                outcome.cycles,
                outcome.events,
                outcome.events - outcome.skipped_events,
                time * 1e3,
                time / single,
            );
        }
    }
}

fn main() {
    let once = std::env::args().any(|a| a == "--once");
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let text = arguments.first().map_or_else(
        || include_str!("resnet50_on_simba.ron").to_string(),
        |file| std::fs::read_to_string(file).expect("a file of mappings"),
    );
    let mappings: Mappings = ron::from_str(&text).expect("mappings");
    let arch = machines::load(&mappings.arch).expect("a bundled machine");
    let network = networks::load(&mappings.network).expect("a bundled network");
    println!(
        "{} on {}, milliseconds of processor time",
        mappings.network, mappings.arch
    );
    println!(
        "{:<24} {:>12} {:>12} {:>10} {:>10} {:>8}",
        "layer", "events", "simulated", "full", "fast", "ratio"
    );
    let (mut sums, mut worst) = ([0.0; 2], 0.0_f64);
    for distinct in network.distinct() {
        let name = &distinct.names[0];
        let Some(mapping) = mappings.layers.get(name) else {
            continue;
        };
        if arguments.get(1).is_some_and(|only| only != name) {
            continue;
        }
        let run = |fast_forward| {
            let options = Options {
                fast_forward,
                ..Options::default()
            };
            simulate(&distinct.problem, &arch, mapping, options).expect("valid")
        };
        let events = if once { 1 } else { run(FastForward::On).events };
        let times = if once {
            1
        } else {
            (400_000 / events).clamp(1, 100) as u32
        };
        let (mut full, mut fast, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        let mut outcomes = None;
        let begin = Instant::now();
        while full.is_empty()
            || !once && full.len() < 3
            || !once && (begin.elapsed() < Duration::from_millis(500) && full.len() < 101)
        {
            // Neither is always the first to find the caches cold.
            let (a, b) = if full.len() % 2 == 0 {
                let a = timed(times, || run(FastForward::Off));
                (a, timed(times, || run(FastForward::On)))
            } else {
                let b = timed(times, || run(FastForward::On));
                (timed(times, || run(FastForward::Off)), b)
            };
            full.push(a.0);
            fast.push(b.0);
            ratios.push(a.0 / b.0);
            outcomes = Some((a.1, b.1));
        }
        let (full_outcome, outcome) = outcomes.expect("ran");
        let plain = Outcome {
            skipped_cycles: 0,
            skipped_events: 0,
            ..outcome.clone()
        };
        assert_eq!(plain, full_outcome, "{name}: fast-forward changes the outcome");
        let (full, fast) = (median(&mut full), median(&mut fast));
        sums[0] += full;
        sums[1] += fast;
        let ratio = median(&mut ratios);
        if outcome.events < 100_000 {
            worst = worst.max(1.0 / ratio);
        }
        println!(
            "{name:<24} {:>12} {:>12} {:>10.2} {:>10.2} {ratio:>8.2}",
            outcome.events,
            outcome.events - outcome.skipped_events,
            full * 1e3,
            fast * 1e3,
        );
    }
    println!(
        "{:<50} {:>10.2} {:>10.2}",
        "sum of medians",
        sums[0] * 1e3,
        sums[1] * 1e3
    );
    println!("fast ÷ full of the layers below 100,000 events, at most: {worst:.3}");
    if once {
        return;
    }
    let largest = network
        .distinct()
        .into_iter()
        .filter(|l| mappings.layers.contains_key(&l.name));
    let only = |l: &DistinctLayer| arguments.get(1).is_none_or(|only| *only == l.name);
    if let Some(layer) = largest.filter(only).max_by_key(|l| l.problem.macs()) {
        batches(&layer, &mappings.layers[&layer.name], &arch);
    }
}
