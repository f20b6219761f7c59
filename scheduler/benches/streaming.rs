//! Design points per second: enumeration of FINN's LeNet.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use cyclonest_arch::streaming::{Coefficients, Front, Objective, Platform, backend};
use cyclonest_scheduler::streaming::{Brute, Budget, Optimiser, Space};

fn brute(c: &mut Criterion) {
    let network = cyclonest_workloads::bundled::load("lenet").expect("bundled");
    let front = Front::from_network(&network).expect("lowers");
    let flow = backend("finn").expect("known");
    let graph = flow.graph(&front).expect("builds");
    let platform = Platform::named("zc706").expect("bundled");
    let space = Space::new(&graph, flow.as_ref(), &platform, &Coefficients::estimate());
    let points = 1_000_000;
    let mut group = c.benchmark_group("streaming");
    group.throughput(Throughput::Elements(points)).sample_size(10);
    group.bench_function("brute", |b| {
        b.iter(|| {
            Brute
                .optimise(
                    &space,
                    Objective::Latency,
                    Budget {
                        evaluations: points,
                        seed: 0,
                    },
                )
                .expect("feasible")
        });
    });
    group.finish();
}

criterion_group!(benches, brute);
criterion_main!(benches);
