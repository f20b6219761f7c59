//! CoSA, Figs. 3 and 4: what the order of the loops alone changes, and what the spatial loops alone change.

use cyclonest_plots::{BarOptions, BarRow, Scale, Style, bars};
use cyclonest_scheduler::Request;
use cyclonest_validation::observe::{Variant, permutations, spatial, spread};
use cyclonest_workloads::{Dim, DimMap, Problem};

use super::super::experiment::Results;
use super::super::lab::{Lab, accelerator};

/// Bars that the figure has room for.
const SHOWN: usize = 12;

fn layer(kernel: u64, outputs: u64, channels: u64, filters: u64) -> Problem {
    let bounds = DimMap::from_fn(|dim| match dim {
        Dim::R | Dim::S => kernel,
        Dim::P | Dim::Q => outputs,
        Dim::C => channels,
        Dim::K => filters,
        _ => 1,
    });
    Problem::new(bounds)
}

/// Name of a layer, the layer, and who maps it.
type Case = (&'static str, Problem, &'static str);

/// Judges every variant of each layer's mapping; draws some of each, evenly spread over their ranks.
fn observe(
    cases: [Case; 2],
    what: &str,
    paper: &str,
    variants: fn(&Problem, &cyclonest_arch::Accelerator, &cyclonest_arch::Mapping) -> Result<Vec<Variant>, String>,
) -> Result<Results, String> {
    let arch = accelerator("simba")?;
    let mut results = Results::default();
    let mut rows = Vec::new();
    for (name, problem, scheduler) in cases {
        let mapper = cyclonest_scheduler::by_name(scheduler).ok_or("no such scheduler")?;
        // A mapping that random search finds quickly leaves something to choose; good ones do not.
        let request = Request {
            budget: (scheduler == "random").then_some(40),
            ..Request::new(&problem, &arch)
        };
        let mapped = mapper.schedule(&request).map_err(|error| error.to_string())?;
        let all = variants(&problem, &arch, &mapped.mapping)?;
        let slowest = all.iter().map(|v| v.cycles).max().ok_or("there is no variant")? as f64;
        let count = all.len();
        rows.extend((0..count.min(SHOWN)).map(|n| {
            let rank = n * (count - 1) / (SHOWN.min(count) - 1).max(1);
            BarRow {
                group: format!("#{}", rank + 1),
                series: name.to_string(),
                value: slowest / all[rank].cycles as f64,
            }
        }));
        results.found(
            format!("slowest ÷ fastest {what}, {name} on simba"),
            paper,
            format!(
                "{:.2}× over {count} variants of one mapping by `{scheduler}` (simulated)",
                spread(&all).unwrap_or(1.0)
            ),
        );
    }
    let options = BarOptions {
        y_label: "speed-up over the slowest [×]".to_string(),
        x_label: "rank".to_string(),
        scale: Scale::Linear,
        geomean: false,
        reference: Some(1.0),
    };
    results.figure("", bars(&rows, &options, &Style::default()))?;
    Ok(results)
}

pub(super) fn fig3(_: &Lab) -> Result<Results, String> {
    let cases = [
        ("3×3, 14×14, 256 to 256", layer(3, 14, 256, 256), "greedy"),
        ("1×1, 16×16, 256 to 1024", layer(1, 16, 256, 1024), "greedy"),
    ];
    observe(cases, "order of loops", "up to 1.7×", permutations)
}

pub(super) fn fig4(_: &Lab) -> Result<Results, String> {
    let cases = [
        ("3×3, 8×8, 32 to 1024", layer(3, 8, 32, 1024), "random"),
        ("1×1, 16×16, 256 to 1024", layer(1, 16, 256, 1024), "random"),
    ];
    observe(cases, "choice of spatial loops", "up to 4.3×", spatial)
}
