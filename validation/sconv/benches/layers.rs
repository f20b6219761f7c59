//! A few layers by every family: `cargo bench -p cyclonest-sconv`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use cyclonest_sconv::{ConvPlan, ConvShape, Family, Options};

fn layers(criterion: &mut Criterion) {
    let layers = [
        ("resnet 64@56 3x3", ConvShape::new(64, 56, 56, 64, 3).with_padding(1)),
        ("resnet 256@14 3x3", ConvShape::new(256, 14, 14, 256, 3).with_padding(1)),
        ("resnet 512@7 3x3", ConvShape::new(512, 7, 7, 512, 3).with_padding(1)),
        ("resnet 1024@14 1x1", ConvShape::new(1024, 14, 14, 256, 1)),
        (
            "stem 7x7 stride 2",
            ConvShape::new(3, 224, 224, 64, 7).with_padding(3).with_stride(2),
        ),
    ];
    for (name, shape) in layers {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(shape.macs()));
        group
            .sample_size(20)
            .measurement_time(std::time::Duration::from_millis(500))
            .warm_up_time(std::time::Duration::from_millis(200));
        for family in [Family::Sconv, Family::Direct, Family::Pointwise] {
            let Ok(mut plan) = ConvPlan::new(
                shape,
                Options {
                    family: Some(family),
                    ..Options::default()
                },
            ) else {
                continue;
            };
            let Ok(filters) = plan.filters(&vec![0.5; shape.weights_len()]) else {
                continue;
            };
            let (input, mut output) = (vec![1.0; plan.input_len()], vec![0.0; plan.output_len()]);
            group.bench_function(family.to_string(), |bencher| {
                bencher.iter(|| {
                    plan.run(&input, &filters, &mut output)
                        .expect("slices of the plan's lengths")
                });
            });
        }
    }
}

criterion_group!(benches, layers);
criterion_main!(benches);
