//! SAMO, Table VI: designs against foldings tuned by hand.

use cyclonest_arch::streaming::{Coefficients, Objective, Platform, evaluate};
use cyclonest_plots::{BarOptions, BarRow, Scale, Style, bars};
use cyclonest_scheduler::streaming::{Budget, Exact, Space};
use cyclonest_validation::tuned;

use super::super::experiment::Results;
use super::super::lab::Lab;

pub(super) fn run(_: &Lab) -> Result<Results, String> {
    let coefficients = Coefficients::estimate();
    let flow = cyclonest_arch::streaming::backend("finn").ok_or("no backend `finn`")?;
    let mut results = Results::default();
    let mut rows = Vec::new();
    for design in tuned::designs() {
        let own = Platform::named(&design.design.platform).map_err(|error| error.to_string())?;
        let tuned_us = evaluate(&design.design, &design.graph, flow.as_ref(), &own, &coefficients).time_us;
        for (platform, regions) in [("u250_1slr", "one region"), ("u250_4slr", "four regions")] {
            let platform = Platform::named(platform).map_err(|error| error.to_string())?;
            let space = Space::new(&design.graph, flow.as_ref(), &platform, &coefficients);
            let found = cyclonest_scheduler::streaming::Optimiser::optimise(
                &Exact::default(),
                &space,
                Objective::Latency,
                Budget::default(),
            )
            .map_err(|error| error.to_string())?;
            let gain = tuned_us / found.time_us;
            rows.push(BarRow {
                group: design.network.clone(),
                series: regions.to_string(),
                value: gain,
            });
            results.found(
                format!(
                    "{} by FINN, {regions}: speed-up over the hand-tuned foldings",
                    design.network
                ),
                "4 to 20 times",
                format!(
                    "{gain:.2} times{}",
                    if found.is_proven() { ", proven optimal" } else { "" }
                ),
            );
        }
    }
    let options = BarOptions {
        y_label: "speed-up over hand-tuned [×]".to_string(),
        x_label: String::new(),
        scale: Scale::Linear,
        geomean: false,
        reference: Some(1.0),
    };
    results.figure("", bars(&rows, &options, &Style::default()))?;
    Ok(results)
}
