//! One layer, every kernel and baseline that this machine has, interleaved.
//!
//! `cargo run --release -p cyclonest-sconv --features baselines --example compare -- C H W K R STRIDE PAD [ROUNDS]`
//! Libraries: CYCLONEST_OPENBLAS, CYCLONEST_ONEDNN.

use std::{error::Error, path::PathBuf};

use cyclonest_sconv::{
    ConvPlan, ConvShape, Family, Isa, Layout, Options,
    baselines::{DnnLayout, Im2col, MatrixMultiply, OneDnn, OpenBlas},
    probe::{clock, fma_rate, thread_time},
    to_blocked,
};

type Contender = (String, Box<dyn FnMut()>);

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<usize> = std::env::args()
        .skip(1)
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let [c, h, w, k, r, stride, pad, rest @ ..] = &numbers[..] else {
        return Err("C H W K R STRIDE PAD [ROUNDS]".into());
    };
    let rounds = rest.first().copied().unwrap_or(9);
    let shape = ConvShape::new(*c, *h, *w, *k, *r)
        .with_stride(*stride)
        .with_padding(*pad);
    shape.check()?;
    let mut seed = 1u32;
    let mut values = |len: usize| -> Vec<f32> {
        (0..len)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 8) as f32 / 8_388_608.0 - 1.0
            })
            .collect()
    };
    let (input, weights) = (values(Layout::Nchw.input_len(&shape)), values(shape.weights_len()));
    let mut contenders: Vec<Contender> = Vec::new();
    for family in [Family::Sconv, Family::Direct, Family::Pointwise] {
        for layout in [Layout::Nchw, Layout::Nchw16c] {
            let options = Options {
                family: Some(family),
                input: layout,
                output: layout,
                ..Options::default()
            };
            let Ok(mut plan) = ConvPlan::new(shape, options) else {
                continue;
            };
            let filters = plan.filters(&weights)?;
            let input = if layout == Layout::Nchw {
                input.clone()
            } else {
                to_blocked(&input, shape.channels, shape.height * shape.width)
            };
            let mut output = vec![0.0; plan.output_len()];
            let name = format!("{family} {layout:?}");
            contenders.push((
                name,
                Box::new(move || plan.run(&input, &filters, &mut output).expect("checked lengths")),
            ));
        }
    }
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    match OpenBlas::load(path("CYCLONEST_OPENBLAS").as_deref()) {
        Err(error) => println!("{error}"),
        Ok(blas) => {
            println!("OpenBLAS {} ({})", blas.core(), blas.config());
            let (mut im2col, input, weights, mut output) = (
                Im2col::new(shape),
                input.clone(),
                weights.clone(),
                vec![0.0; Layout::Nchw.output_len(&shape)],
            );
            contenders.push((
                "im2col + OpenBLAS".to_string(),
                Box::new(move || im2col.run(&blas, &input, &weights, &mut output)),
            ));
        }
    }
    match OneDnn::load(path("CYCLONEST_ONEDNN").as_deref()) {
        Err(error) => println!("{error}"),
        Ok(dnn) => {
            println!("oneDNN {}", dnn.version());
            for layout in [DnnLayout::Nchw, DnnLayout::Blocked] {
                let mut conv = dnn.conv(&shape, layout, &input, &weights)?;
                contenders.push((
                    format!("oneDNN {layout:?} {}", conv.implementation()),
                    Box::new(move || conv.run().expect("ran before")),
                ));
            }
            let mut conv = dnn.conv(&shape, DnnLayout::Blocked, &input, &weights)?;
            contenders.push((
                "oneDNN Blocked with reorders".to_string(),
                Box::new(move || {
                    conv.reorder_in()
                        .and_then(|()| conv.run())
                        .and_then(|()| conv.reorder_out())
                        .expect("ran before")
                }),
            ));
        }
    }
    let (mut im2col, mut output) = (Im2col::new(shape), vec![0.0; Layout::Nchw.output_len(&shape)]);
    contenders.push((
        "im2col + matrixmultiply".to_string(),
        Box::new(move || im2col.run(&MatrixMultiply, &input, &weights, &mut output)),
    ));

    let isa = Isa::detect();
    let mut samples = vec![Vec::new(); contenders.len()];
    let repeats = ((2e7 / (shape.macs() as f64 / 16.0)).ceil() as usize).clamp(1, 2000);
    for round in 0..=rounds {
        for ((_, run), samples) in contenders.iter_mut().zip(&mut samples) {
            let before = (clock(20_000), fma_rate(isa, 30_000));
            let started = thread_time();
            for _ in 0..repeats {
                run();
            }
            let seconds = (thread_time() - started).as_secs_f64() / repeats as f64;
            let after = (clock(20_000), fma_rate(isa, 30_000));
            let hertz = (before.0 + after.0) / 2.0;
            let gate = (before.1 / before.0).min(after.1 / after.0);
            if round > 0 {
                samples.push((seconds * hertz, gate));
            }
        }
    }
    for ((name, _), samples) in contenders.iter().zip(&mut samples) {
        samples.sort_by(|a, b| a.0.total_cmp(&b.0));
        let cycles = samples[samples.len() / 2].0;
        let gate = samples.iter().map(|sample| sample.1).fold(0.0, f64::max);
        println!(
            "{name:40} {:12.0} cycles (best {:12.0}) {:5.1} macs/cycle; fma loop at best {gate:.2}, worst {:.2}",
            cycles,
            samples[0].0,
            shape.macs() as f64 / cycles,
            samples.iter().map(|sample| sample.1).fold(f64::MAX, f64::min),
        );
    }
    Ok(())
}
