//! SAMO, Table V: designs against the unfolded start.

use cyclonest_arch::streaming::{Coefficients, Design, Folding, Objective, evaluate};
use cyclonest_plots::{BarOptions, BarRow, Scale, Style, Width, bars};
use cyclonest_scheduler::streaming::{Budget, Exact, OptimiseError};

use super::super::experiment::Results;
use super::super::lab::{Lab, Stage};
use crate::search::geomean;

const THROUGHPUT: Objective = Objective::Throughput { batch: 256 };

pub(super) fn run(lab: &Lab) -> Result<Results, String> {
    let (networks, platforms): (&[&str], &[&str]) = if lab.quick {
        (&["tfc", "lenet", "cnv"], &["zc706"])
    } else {
        (
            &[
                "simple",
                "tfc",
                "sfc",
                "lfc",
                "lenet",
                "mpcnn",
                "cnv",
                "vgg11",
                "mobilenet_v1_samo",
            ],
            &["zedboard", "zc706", "u250"],
        )
    };
    let mut results = Results::default();
    let mut all = [Vec::new(), Vec::new()];
    let (mut infeasible, mut cases) = (0, 0);
    for &platform in platforms {
        let mut rows = Vec::new();
        for &network in networks {
            for flow in ["fpgaconvnet", "finn", "hls4ml"] {
                cases += 1;
                let stage = Stage::new(network, flow, platform, Coefficients::estimate())?;
                for (index, (name, objective)) in [("latency", Objective::Latency), ("256 frames", THROUGHPUT)]
                    .into_iter()
                    .enumerate()
                {
                    let found = match stage.solve(&Exact::default(), objective, Budget::default()) {
                        Ok(found) => found,
                        Err(OptimiseError::Infeasible { .. }) => {
                            infeasible += 1 - index;
                            break;
                        }
                        Err(error) => return Err(format!("{network} {flow} {platform}: {error}")),
                    };
                    let gain = start_us(&stage, &found.design) / found.time_us;
                    all[index].push(gain);
                    rows.push(BarRow {
                        group: format!("{network} {flow}"),
                        series: name.to_string(),
                        value: gain,
                    });
                }
            }
        }
        let options = BarOptions {
            y_label: format!("speed-up over all ones, {platform} [×]"),
            x_label: String::new(),
            scale: Scale::Log,
            geomean: true,
            reference: Some(1.0),
        };
        let style = Style {
            width: Width::Ieee2,
            ..Style::default()
        };
        results.figure(platform, bars(&rows, &options, &style))?;
    }
    for (name, gains) in ["one frame", "256 frames"].iter().zip(&all) {
        let largest = gains.iter().copied().fold(0.0, f64::max);
        results.found(
            format!("gain over the unfolded design, {name}, geometric mean and largest"),
            "no value at hand",
            format!(
                "{:.0} and {largest:.0} times",
                geomean(gains.iter().copied()).unwrap_or(0.0)
            ),
        );
    }
    results.found(
        "cases without any design",
        "no value at hand",
        format!("{infeasible} of {cases}: the binding resource is named"),
    );
    Ok(results)
}

/// Time of the design with every folding 1 and the same cuts, within the resources or not \[µs\].
fn start_us(stage: &Stage, design: &Design) -> f64 {
    let ones = Design {
        foldings: stage
            .graph
            .nodes
            .iter()
            .map(|n| (n.name.clone(), Folding::ONE))
            .collect(),
        ..design.clone()
    };
    evaluate(
        &ones,
        &stage.graph,
        stage.flow.as_ref(),
        &stage.platform,
        &stage.coefficients,
    )
    .time_us
}
