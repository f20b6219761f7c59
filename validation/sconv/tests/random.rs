//! Random shapes on every path of this machine, against the f64 reference, with guards around every slice.

use cyclonest_sconv::{
    ConvPlan, ConvShape, Family, Isa, Layout, Options, Padding, Stationary, error_bound, from_blocked, reference,
    to_blocked,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Elements before and after every slice that must neither influence the result nor change.
const GUARD: usize = 64;

/// A slice between guards: NaN around inputs, so that reading one shows in the output; a pattern around outputs.
struct Guarded {
    data: Vec<f32>,
    len: usize,
    guard: f32,
}

impl Guarded {
    fn new(values: &[f32], guard: f32) -> Self {
        let mut data = vec![guard; GUARD];
        data.extend_from_slice(values);
        data.resize(values.len() + 2 * GUARD, guard);
        Guarded {
            data,
            len: values.len(),
            guard,
        }
    }

    fn slice(&mut self) -> &mut [f32] {
        &mut self.data[GUARD..GUARD + self.len]
    }

    fn guards_hold(&self) -> bool {
        let same = |x: &f32| x.to_bits() == self.guard.to_bits();
        self.data[..GUARD].iter().all(same) && self.data[GUARD + self.len..].iter().all(same)
    }
}

fn random_shape(rng: &mut ChaCha8Rng) -> ConvShape {
    loop {
        let groups = if rng.random_bool(0.25) {
            rng.random_range(2..5)
        } else {
            1
        };
        let most = if groups == 1 { 90 } else { 20 };
        let pixel = rng.random_bool(0.1);
        let kernel = (rng.random_range(1..6), rng.random_range(1..6));
        let kernel = if rng.random_bool(0.3) { (1, 1) } else { kernel };
        let dilation = (rng.random_range(1..4), rng.random_range(1..4));
        let padding = if rng.random_bool(0.3) {
            Padding::default()
        } else {
            let mut pad = || rng.random_range(0..4);
            Padding {
                top: pad(),
                bottom: pad(),
                left: pad(),
                right: pad(),
            }
        };
        let extent =
            |taps: usize, dilation: usize, pads: usize| ((taps - 1) * dilation + 1).saturating_sub(pads).max(1);
        let (height, width) = if pixel {
            (
                extent(kernel.0, dilation.0, padding.top + padding.bottom),
                extent(kernel.1, dilation.1, padding.left + padding.right),
            )
        } else {
            (rng.random_range(1..24), rng.random_range(1..40))
        };
        let stride = if rng.random_bool(0.4) {
            (1, 1)
        } else {
            (rng.random_range(1..5), rng.random_range(1..5))
        };
        let shape = ConvShape {
            batch: rng.random_range(1..3),
            groups,
            channels: groups * rng.random_range(1..most),
            filters: groups * rng.random_range(1..most),
            height,
            width,
            kernel,
            stride,
            dilation,
            padding,
        };
        if shape.check().is_ok() && shape.macs() < 2_000_000 {
            return shape;
        }
    }
}

/// Every path that can run the shape here.
fn paths(shape: &ConvShape) -> Vec<Options> {
    let mut paths = Vec::new();
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        for stationary in [Stationary::Input, Stationary::Weight] {
            let base = Options {
                isa: Some(isa),
                family: Some(Family::Sconv),
                stationary: Some(stationary),
                ..Options::default()
            };
            paths.push(base);
            // Caches so small that every loop of the macro-kernel splits.
            let caches = cyclonest_sconv::Caches {
                l1: 4 << 10,
                l2: 16 << 10,
                l3: 48 << 10,
                ..cyclonest_sconv::Caches::default()
            };
            paths.push(Options {
                caches: Some(caches),
                ..base
            });
            if stationary == Stationary::Weight {
                paths.push(Options { threads: 2, ..base });
            }
            if isa == Isa::Avx512 {
                paths.push(Options {
                    vector_packing: false,
                    ..base
                });
            }
        }
    }
    if Isa::Avx512.available() {
        let small = cyclonest_sconv::Caches {
            l1: 4 << 10,
            l2: 16 << 10,
            ..cyclonest_sconv::Caches::default()
        };
        let families = [Some(Family::Direct), shape.is_pointwise().then_some(Family::Pointwise)];
        for family in families.into_iter().flatten() {
            for caches in [None, Some(small)] {
                for threads in [1, 3] {
                    paths.push(Options {
                        family: Some(family),
                        caches,
                        threads,
                        ..Options::default()
                    });
                }
            }
        }
        if shape.groups == 1 {
            for (input, output) in [
                (Layout::Nchw16c, Layout::Nchw16c),
                (Layout::Nchw, Layout::Nchw16c),
                (Layout::Nchw16c, Layout::Nchw),
            ] {
                for caches in [None, Some(small)] {
                    paths.push(Options {
                        family: Some(Family::Direct),
                        caches,
                        input,
                        output,
                        ..Options::default()
                    });
                }
            }
        }
    }
    paths.push(Options::default());
    paths
}

fn check(shape: ConvShape, rng: &mut ChaCha8Rng) {
    let mut values = |len: usize| (0..len).map(|_| rng.random_range(-1.0..1.0)).collect::<Vec<f32>>();
    let (input, weights) = (values(Layout::Nchw.input_len(&shape)), values(shape.weights_len()));
    let expected = reference(&shape, &input, &weights).unwrap();
    let largest = expected.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    let bound = error_bound(&shape, largest);
    for options in paths(&shape) {
        let mut plan = ConvPlan::new(shape, options).unwrap_or_else(|error| panic!("{shape:?} {options:?}: {error}"));
        let pixels = shape.height * shape.width;
        let mut image = Guarded::new(
            &if options.input == Layout::Nchw {
                input.clone()
            } else {
                to_blocked(&input, shape.channels, pixels)
            },
            f32::NAN,
        );
        let filters = plan.filters(&weights).unwrap();
        let mut output = Guarded::new(&vec![f32::NAN; plan.output_len()], -123.25);
        // Twice: buffers of the first run must not leak into the second.
        for _ in 0..2 {
            plan.run(image.slice(), &filters, output.slice()).unwrap();
        }
        assert!(
            image.guards_hold() && output.guards_hold(),
            "{shape:?} {options:?}: wrote outside its slice"
        );
        let found = if options.output == Layout::Nchw {
            output.slice().to_vec()
        } else {
            from_blocked(output.slice(), shape.filters, shape.windows())
        };
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let error = (f64::from(*found) - expected).abs();
            assert!(
                error <= bound,
                "{shape:?} {options:?}: output {index} is {found}, expected {expected} (error {error:e}, bound {bound:e})"
            );
        }
    }
}

/// 1,000 shapes; `CYCLONEST_CASES` sets another number.
#[test]
fn random_shapes_are_correct_on_every_path() {
    let cases = std::env::var("CYCLONEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(1000);
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    for _ in 0..cases {
        let shape = random_shape(&mut rng);
        check(shape, &mut rng);
    }
}

#[test]
fn a_single_pixel_of_everything() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    check(ConvShape::new(1, 1, 1, 1, 1), &mut rng);
    check(ConvShape::new(17, 1, 1, 33, 1), &mut rng);
    check(ConvShape::new(3, 1, 1, 5, 3).with_padding(1), &mut rng);
}

#[test]
fn windows_that_see_only_padding_are_zero() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    check(ConvShape::new(5, 2, 2, 20, 2).with_padding(5), &mut rng);
    check(ConvShape::new(5, 2, 3, 20, 1).with_padding(3).with_stride(2), &mut rng);
}

#[test]
fn depthwise_is_groups_of_one_channel() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    check(
        ConvShape::new(24, 9, 9, 24, 3).with_padding(1).with_groups(24),
        &mut rng,
    );
}
