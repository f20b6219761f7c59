//! The smallest use: one layer of ResNet-50, planned, run and checked against the definition.
//!
//! `cargo run --release -p cyclonest-sconv --example layer`

use cyclonest_sconv::{ConvPlan, ConvShape, Error, Options, error_bound, reference};

fn main() -> Result<(), Error> {
    let shape = ConvShape::new(256, 14, 14, 256, 3).with_padding(1);
    let mut plan = ConvPlan::new(shape, Options::default())?;
    let best = plan.analysis().best();
    println!(
        "{} kernels on {}; CSA: {:?} stationary, Nc {}, K2 {}, K3 {}",
        plan.family(),
        plan.isa(),
        best.stationary,
        best.nc,
        best.k2,
        best.k3
    );

    let input: Vec<f32> = (0..plan.input_len()).map(|i| (i % 17) as f32 / 8.0 - 1.0).collect();
    let weights: Vec<f32> = (0..shape.weights_len()).map(|i| (i % 23) as f32 / 11.0 - 1.0).collect();
    let filters = plan.filters(&weights)?;
    let mut output = vec![0.0; plan.output_len()];
    plan.run(&input, &filters, &mut output)?;

    let expected = reference(&shape, &input, &weights)?;
    let largest = expected.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    let error = output.iter().zip(&expected).fold(0.0f64, |most, (found, value)| {
        most.max((f64::from(*found) - value).abs())
    });
    println!("largest error {error:.2e}, bound {:.2e}", error_bound(&shape, largest));
    Ok(())
}
