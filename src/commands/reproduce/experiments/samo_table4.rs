//! SAMO, Table IV: how large the spaces are, and how long enumerating them takes.

use cyclonest_arch::streaming::{Coefficients, Objective};
use cyclonest_plots::{SpaceRow, Style, Width, space};
use cyclonest_scheduler::streaming::{Brute, SpaceSize};

use super::super::experiment::Results;
use super::super::lab::{Lab, Stage};

pub(super) fn run(lab: &Lab) -> Result<Results, String> {
    let networks: &[&str] = if lab.quick {
        &["simple", "tfc", "lenet", "mpcnn"]
    } else {
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
        ]
    };
    let budget = if lab.quick { 300_000 } else { 3_000_000 };
    let mut rows = Vec::new();
    let (mut slowest, mut smallest, mut largest, mut longest) = (f64::INFINITY, f64::INFINITY, 0.0f64, 0.0f64);
    for &network in networks {
        for flow in ["fpgaconvnet", "finn", "hls4ml"] {
            let stage = Stage::new(network, flow, "zc706", Coefficients::estimate())?;
            let space = stage.space();
            let size = SpaceSize::of(&space, stage.flow.as_ref());
            let problem = format!("{network} {flow}");
            for (name, points) in [
                ("all", size.full),
                ("intra match", size.intra),
                ("and inter match", size.inter),
            ] {
                rows.push(SpaceRow {
                    problem: problem.clone(),
                    space: name.to_string(),
                    log10_size: points.log10(),
                });
            }
            smallest = smallest.min(size.inter / size.full);
            largest = largest.max(size.inter / size.full);
            let count = Brute::count(&space, stage.flow.as_ref(), Objective::Latency, budget);
            if count.judged >= budget {
                slowest = slowest.min(count.per_second);
                longest = longest.max(count.whole_space_s);
            }
        }
    }
    let mut results = Results::default();
    let style = Style {
        width: Width::Ieee2,
        ..Style::default()
    };
    results.figure("", space(&rows, &style))?;
    results.found(
        "design points judged per second by enumeration, slowest case",
        "4 to 75 (its code)",
        format!("{slowest:.0}"),
    );
    results.found(
        "share of the space that the matching constraints leave",
        "no value at hand",
        format!("{smallest:.1e} to {largest:.1e}"),
    );
    results.found(
        "time to enumerate the largest of these spaces at its rate",
        "no value at hand",
        format!("{:.1e} years", longest / (365.25 * 24.0 * 3600.0)),
    );
    Ok(results)
}
