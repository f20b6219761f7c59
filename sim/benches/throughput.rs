//! Events per second of the engine, on a full layer of ResNet-50 with every counter on and nothing skipped.
//!
//! The engine runs as a specs system over component storages. Beside it, in the same run, the same handlers run over
//! plain vectors of structs: the ratio is what the entity component system costs. `docs/performance.md` has figures.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use cyclonest_arch::{Accelerator, Mapping, bundled};
use cyclonest_sim::bench::{Plain, Prepared};
use cyclonest_sim::{Options, Outcome};
use cyclonest_workloads::Problem;
use serde::Deserialize;

/// A mapped layer.
#[derive(Deserialize)]
struct Layer {
    name: String,
    machine: String,
    problem: Problem,
    mapping: Mapping,
}

/// A layer and its machine.
struct Case {
    layer: Layer,
    arch: Accelerator,
}

impl Case {
    fn all() -> Vec<Self> {
        let layers: Vec<Layer> = ron::from_str(include_str!("layers.ron")).expect("layers");
        let on = |layer: Layer| Case {
            arch: bundled::load(&layer.machine).expect("bundled"),
            layer,
        };
        layers.into_iter().map(on).collect()
    }

    fn prepare(&self) -> Prepared {
        let Layer { problem, mapping, .. } = &self.layer;
        Prepared::new(problem, &self.arch, mapping, Options::default()).expect("valid")
    }

    fn plain(&self) -> Plain {
        self.prepare().into_plain()
    }
}

/// Time that this thread has had a processor, which does not count what other programs take from it; where the system
/// does not tell, the time that has passed.
fn processor_time(since: Instant) -> Duration {
    let on_cpu = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = on_cpu.and_then(|line| line.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

/// Time of the event loop and of reducing the counters; building the machine is not part of it.
fn timed<T>(prepared: T, run: impl FnOnce(T) -> Outcome) -> (Duration, Outcome) {
    let since = Instant::now();
    let before = processor_time(since);
    let outcome = run(prepared);
    (processor_time(since).saturating_sub(before), outcome)
}

/// Runs both in turn and prints events and transfers per second of each, and the median of the ratios.
fn compare(_: &mut Criterion) {
    for case in Case::all() {
        compare_on(&case);
    }
}

fn compare_on(case: &Case) {
    const LEAST_ROUNDS: usize = 5;
    const EVENTS: u64 = 4_000_000;
    let events = case.prepare().run(&case.arch).expect("runs").events;
    let rounds = LEAST_ROUNDS.max((EVENTS / events) as usize) | 1;
    let (mut world, mut plain, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut counted = None;
    for round in 0..rounds {
        let mut times = [Duration::ZERO; 2];
        // Neither is always the first to find the caches cold.
        for which in [round % 2, 1 - round % 2] {
            let (time, outcome) = if which == 0 {
                timed(case.prepare(), |p| p.run(&case.arch).expect("runs"))
            } else {
                timed(case.plain(), |p| p.run(&case.arch).expect("runs"))
            };
            times[which] = time;
            let before = counted.get_or_insert_with(|| outcome.clone());
            assert_eq!(*before, outcome, "both do the same work");
        }
        world.push(times[0].as_secs_f64());
        plain.push(times[1].as_secs_f64());
        ratios.push(times[1].as_secs_f64() / times[0].as_secs_f64());
    }
    let outcome = counted.expect("ran");
    let median = |mut v: Vec<f64>| {
        v.sort_by(f64::total_cmp);
        v[v.len() / 2]
    };
    println!(
        "{} on {}: {} events, {} transfers, {} cycles",
        case.layer.name, case.layer.machine, outcome.events, outcome.transfers, outcome.cycles
    );
    for (name, times) in [("engine", world), ("plain structs", plain)] {
        let (best, middle) = (times.iter().copied().fold(f64::MAX, f64::min), median(times));
        println!(
            "  {name}: median {:.2} M events/s, {:.2} M transfers/s; best {:.2} M events/s",
            outcome.events as f64 / middle / 1e6,
            outcome.transfers as f64 / middle / 1e6,
            outcome.events as f64 / best / 1e6,
        );
    }
    println!(
        "  engine ÷ plain structs, median of {rounds} pairs: {:.3}",
        median(ratios)
    );
}

fn throughput(c: &mut Criterion) {
    let case = Case::all().swap_remove(0);
    let events = case.prepare().run(&case.arch).expect("runs").events;
    let mut group = c.benchmark_group("simba layer4.0.conv2, events");
    group.throughput(Throughput::Elements(events));
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    group.bench_function("engine", |b| {
        b.iter_batched(
            || case.prepare(),
            |p| black_box(p.run(&case.arch).expect("runs")),
            BatchSize::LargeInput,
        );
    });
    group.bench_function("plain structs", |b| {
        b.iter_batched(
            || case.plain(),
            |p| black_box(p.run(&case.arch).expect("runs")),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, compare, throughput);
criterion_main!(benches);
