//! Evaluations per second of the compatible models.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use cyclonest_arch::directives::{Layer, Style, lower};
use cyclonest_scheduler::cost::CostModel;
use cyclonest_scheduler::cost::maestro::{Machine, evaluate};
use cyclonest_scheduler::cost::timeloop::TimeloopModel;
use cyclonest_workloads::bundled;

/// All layers of VGG16 in the style KC-P on 256 PEs; elements per second are layers per second.
fn maestro(c: &mut Criterion) {
    let network = bundled::load("vgg16").expect("bundled");
    let machine = Machine {
        pes: 256,
        noc_bandwidth: 32,
        noc_latency: 1,
        offchip_bandwidth: 50,
    };
    let layers: Vec<Layer> = network
        .layers()
        .iter()
        .map(|l| Style::KCP.layer(&l.name, &l.problem, machine.pes).expect("not dilated"))
        .collect();
    let mut group = c.benchmark_group("maestro");
    group.throughput(Throughput::Elements(layers.len() as u64));
    group.bench_function("vgg16 KC-P", |b| {
        b.iter(|| {
            for layer in &layers {
                black_box(evaluate(black_box(layer), &machine).expect("evaluates"));
            }
        });
    });
    group.finish();
}

/// The 3×3 layers of VGG16, lowered from KC-P; elements per second are evaluations per second.
fn timeloop(c: &mut Criterion) {
    let network = bundled::load("vgg16").expect("bundled");
    let cases: Vec<_> = network
        .layers()
        .iter()
        .filter(|l| l.name.starts_with("conv"))
        .map(|l| {
            let layer = Style::KCP.layer(&l.name, &l.problem, 256).expect("not dilated");
            let lowered = lower(&layer, 256).expect("KC-P is a loop nest");
            let (arch, mapping) = lowered.machine(32, 1).expect("fits its own machine");
            (lowered.problem, arch, mapping)
        })
        .collect();
    let model = TimeloopModel::default();
    let mut group = c.benchmark_group("timeloop");
    group.throughput(Throughput::Elements(cases.len() as u64));
    group.bench_function("vgg16 KC-P, lowered", |b| {
        b.iter(|| {
            for (problem, arch, mapping) in &cases {
                black_box(model.evaluate(problem, arch, black_box(mapping)).expect("valid"));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, maestro, timeloop);
criterion_main!(benches);
