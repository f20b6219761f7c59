//! Evaluations per second of the model `exact`, with its latency in closed form and rehearsed: a 3×3 layer of ResNet-18
//! on simba without its weight registers (five levels), and on simba (six levels) under mappings with different tilings.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use cyclonest_arch::{Accelerator, Axis, LevelMapping, Loop, Mapping, SpatialLoop, bundled};
use cyclonest_scheduler::cost::exact::{BURSTS, Evaluator};
use cyclonest_workloads::{Dim, DimMap, Padding, Problem};

/// ResNet-18, conv4 3×3: 256 to 256 channels on 14×14, padding 1.
fn layer() -> Problem {
    let mut problem = Problem::new(DimMap([1, 1, 256, 256, 14, 14, 3, 3]));
    problem.padding = Padding {
        top: 1,
        bottom: 1,
        left: 1,
        right: 1,
    };
    problem
}

/// simba without the level of its weight registers: the lanes take weights from the weight buffers.
fn five_levels() -> Accelerator {
    let mut arch = bundled::load("simba").expect("bundled");
    arch.levels.pop();
    if let Some(last) = arch.levels.last_mut() {
        last.below = None;
    }
    arch.compute.lanes = (8, 1);
    arch
}

type Row<'a> = (&'a [(Dim, u64)], &'a [(Dim, u64, Axis)]);

fn mapping(arch: &Accelerator, problem: &Problem, rows: &[Row<'_>]) -> Mapping {
    let levels = arch
        .levels
        .iter()
        .zip(rows)
        .map(|(level, (temporal, spatial))| LevelMapping {
            level: level.name.clone(),
            temporal: temporal.iter().map(|&(d, n)| Loop(d, n)).collect(),
            spatial: spatial.iter().map(|&(d, n, axis)| SpatialLoop(d, n, axis)).collect(),
            keeps: level.banks.iter().flat_map(|b| b.holds.iter()).collect(),
        });
    Mapping {
        bounds: problem.bounds,
        levels: levels.collect(),
    }
}

fn evaluations(c: &mut Criterion) {
    use Axis::{X, Y};
    use Dim::{C, K, P, Q, R, S};
    let arch = bundled::load("simba").expect("bundled");
    let problem = layer();
    let mappings = [
        // Weights stay, rows stream.
        mapping(
            &arch,
            &problem,
            &[
                (&[(K, 4), (P, 7)], &[]),
                (&[], &[(C, 4, X), (C, 4, Y)]),
                (&[], &[(K, 8, X)]),
                (&[(K, 8), (C, 2)], &[]),
                (&[(R, 3), (S, 3)], &[(C, 8, X)]),
                (&[(P, 2), (Q, 14)], &[]),
            ],
        ),
        // Outputs stay, input channels stream; columns split imperfectly.
        mapping(
            &arch,
            &problem,
            &[
                (&[(K, 8), (Q, 3)], &[]),
                (&[(C, 4), (P, 7)], &[(K, 4, X), (C, 4, Y)]),
                (&[(C, 2), (Q, 5)], &[(K, 8, X)]),
                (&[(R, 3)], &[]),
                (&[(S, 3)], &[(C, 8, X)]),
                (&[(P, 2)], &[]),
            ],
        ),
        // Rows over the PEs: the halo is shared by multicast.
        mapping(
            &arch,
            &problem,
            &[
                (&[(K, 16), (C, 8)], &[]),
                (&[], &[(P, 4, X), (C, 4, Y)]),
                (&[(P, 2), (K, 2)], &[(K, 8, X)]),
                (&[(R, 3), (P, 2)], &[]),
                (&[(S, 3)], &[(C, 8, X)]),
                (&[(Q, 14)], &[]),
            ],
        ),
    ];
    let five = five_levels();
    let mapping_of_five = mapping(
        &five,
        &problem,
        &[
            (&[(K, 4), (P, 7)], &[]),
            (&[], &[(C, 4, X), (C, 4, Y)]),
            (&[], &[(K, 8, X)]),
            (&[(K, 8), (C, 2), (R, 3), (S, 3)], &[]),
            (&[(P, 2), (Q, 14)], &[(C, 8, X)]),
        ],
    );
    let mut group = c.benchmark_group("exact");
    group.throughput(Throughput::Elements(1));
    let mut evaluator = Evaluator::new();
    group.bench_function("five levels", |b| {
        b.iter(|| {
            evaluator
                .evaluate(&problem, &five, black_box(&mapping_of_five))
                .expect("valid");
            evaluator.cycles()
        });
    });
    group.bench_function("five levels, rehearsed", |b| {
        b.iter(|| {
            evaluator
                .rehearse(&problem, &five, black_box(&mapping_of_five), BURSTS)
                .expect("valid")
        });
    });
    for (i, mapping) in mappings.iter().enumerate() {
        let mut evaluator = Evaluator::new();
        group.bench_function(format!("simba mapping {i}"), |b| {
            b.iter(|| {
                evaluator.evaluate(&problem, &arch, black_box(mapping)).expect("valid");
                evaluator.cycles()
            });
        });
    }
    let mut evaluator = Evaluator::new();
    let mut next = 0;
    group.bench_function("simba, mappings in turn", |b| {
        b.iter(|| {
            next = (next + 1) % mappings.len();
            evaluator
                .evaluate(&problem, &arch, black_box(&mappings[next]))
                .expect("valid");
            evaluator.cycles()
        });
    });
    group.finish();
}

criterion_group!(benches, evaluations);
criterion_main!(benches);
