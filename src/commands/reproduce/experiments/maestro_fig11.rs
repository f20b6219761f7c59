//! MAESTRO, Fig. 11: reuse and bandwidth of the dataflows on four kinds of layers.

use cyclonest_arch::directives::Style as Dataflow;
use cyclonest_plots::{BarOptions, BarRow, Scale, Style, Width, bars};
use cyclonest_scheduler::cost::maestro::evaluate;

use super::super::experiment::Results;
use super::super::lab::Lab;
use super::maestro_fig10::MACHINE;

/// Kind, network, layer.
const LAYERS: [(&str, &str, &str); 4] = [
    ("early", "resnet50", "conv1"),
    ("late", "vgg16", "conv5_3"),
    ("point-wise", "mobilenet_v2", "block2.expand"),
    ("depthwise", "mobilenet_v2", "block2.depthwise"),
];

pub(super) fn run(_: &Lab) -> Result<Results, String> {
    let mut results = Results::default();
    let mut inputs = Vec::new();
    let mut weights = Vec::new();
    let mut bandwidth = Vec::new();
    let mut reuse = std::collections::BTreeMap::new();
    for (kind, network, name) in LAYERS {
        let loaded = cyclonest_workloads::bundled::load(network).ok_or("bundled")?;
        let distinct = loaded.distinct();
        let layer = distinct
            .iter()
            .find(|layer| layer.names.iter().any(|n| n == name))
            .ok_or_else(|| format!("{network} has no layer `{name}`"))?;
        for style in Dataflow::ALL {
            let evaluated = style
                .layer(name, &layer.problem, MACHINE.pes)
                .map_err(|error| error.to_string())
                .and_then(|layer| evaluate(&layer, &MACHINE).map_err(|error| error.to_string()));
            let e = match evaluated {
                Ok(e) => e,
                Err(error) => {
                    results
                        .skipped
                        .push(format!("{} on the {kind} layer: {error}", style.name()));
                    continue;
                }
            };
            let uses = |tensor: usize| e.tensors[tensor].l1_read as f64 / e.tensors[tensor].l2_read.max(1) as f64;
            reuse.insert((kind, style.name()), (uses(0), uses(1)));
            for (rows, value) in [
                (&mut inputs, uses(0)),
                (&mut weights, uses(1)),
                (&mut bandwidth, e.average_bandwidth),
            ] {
                rows.push(BarRow {
                    group: kind.to_string(),
                    series: style.name().to_string(),
                    value,
                });
            }
        }
    }
    let style = Style {
        width: Width::Ieee2,
        ..Style::default()
    };
    let reused = |what: &str| BarOptions {
        y_label: format!("{what}: uses per fetch"),
        scale: Scale::Log,
        geomean: false,
        ..BarOptions::reuse()
    };
    results.figure("activations", bars(&inputs, &reused("activations"), &style))?;
    results.figure("filters", bars(&weights, &reused("filters"), &style))?;
    let options = BarOptions {
        y_label: "bandwidth needed [elements/cycle]".to_string(),
        x_label: String::new(),
        scale: Scale::Log,
        geomean: false,
        reference: None,
    };
    results.figure("bandwidth", bars(&bandwidth, &options, &style))?;
    let ratio = |kind: &'static str, of: fn(&(f64, f64)) -> f64| -> Option<f64> {
        Some(of(reuse.get(&(kind, "YR-P"))?) / of(reuse.get(&(kind, "KC-P"))?))
    };
    let told = |value: Option<f64>| value.map_or("not evaluated".to_string(), |v| format!("{v:.2} times"));
    for kind in ["early", "late", "point-wise", "depthwise"] {
        results.found(
            format!("{kind} layer, uses per fetch of YR-P over KC-P"),
            "no value at hand",
            format!(
                "activations {}, filters {}",
                told(ratio(kind, |r| r.0)),
                told(ratio(kind, |r| r.1))
            ),
        );
    }
    Ok(results)
}
