//! The reuse of the paper's small dataflows, and of machines that lack the hardware for it.

use cyclonest_arch::directives::{Style, figures, lower};
use cyclonest_arch::{Reduction, SpatialLoop};
use cyclonest_scheduler::reuse::{ReuseAnalysis, analyze};
use cyclonest_workloads::{Dim, DimMap, Problem, Tensor, TensorSet};

fn of(example: &figures::Example) -> ReuseAnalysis {
    let lowered = lower(&example.layer, example.pes).unwrap();
    let (arch, mapping) = lowered.machine(4, 1).unwrap();
    analyze(&lowered.problem, &arch, &mapping)
}

#[test]
fn figure_5() {
    let text: Vec<String> = figures::one_dimensional()
        .iter()
        .map(|e| {
            format!(
                "{} {}: {:?} on {} PEs\n{}",
                e.label,
                e.title,
                e.layer.dataflow.iter().map(ToString::to_string).collect::<Vec<_>>(),
                e.pes,
                of(e)
            )
        })
        .collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn figure_6() {
    let example = figures::row_stationary();
    insta::assert_snapshot!(format!("{}\n{}", example.layer, of(&example)));
}

#[test]
fn what_the_machine_lacks_is_said() {
    let mut bounds = DimMap::ones();
    (bounds[Dim::K], bounds[Dim::C], bounds[Dim::P]) = (4, 4, 8);
    let layer = Style::KCP.layer("conv", &Problem::new(bounds), 8).unwrap();
    let lowered = lower(&layer, 8).unwrap();
    let (mut arch, mapping) = lowered.machine(4, 1).unwrap();
    for level in &mut arch.levels {
        if let Some(network) = &mut level.below {
            network.multicast = TensorSet::EMPTY;
            network.reduction = Reduction::None;
        }
    }
    let analysis = analyze(&lowered.problem, &arch, &mapping);
    let missing: Vec<String> = analysis
        .lines
        .iter()
        .filter(|l| !l.spatial.supported)
        .map(|l| format!("{} {}: {}", l.tensor, l.spatial.cause.join(" "), l.spatial.has))
        .collect();
    assert_eq!(missing, ["Outputs C 4: read-modify-write at the parent"]);
}

/// Counted by hand: rows p + r of the inputs, for every PE, against the distinct ones.
#[test]
fn spatial_reuse_is_the_ratio_of_counted_elements() {
    for (p, r) in [(1, 3), (4, 1), (4, 3), (5, 5), (2, 7)] {
        let mut bounds = DimMap::ones();
        (bounds[Dim::P], bounds[Dim::R]) = (p, r);
        let layer = Style::YRP.layer("conv", &Problem::new(bounds), p * r).unwrap();
        let lowered = lower(&layer, p * r).unwrap();
        let (arch, mapping) = lowered.machine(4, 1).unwrap();
        let spatial: Vec<&SpatialLoop> = mapping.levels.iter().flat_map(|l| &l.spatial).collect();
        assert_eq!(spatial.iter().map(|s| s.1).product::<u64>(), p * r);
        let analysis = analyze(&lowered.problem, &arch, &mapping);
        let inputs = analysis.lines.iter().find(|l| l.tensor == Tensor::Inputs).unwrap();
        let rows: std::collections::BTreeSet<u64> = (0..p).flat_map(|p| (0..r).map(move |r| p + r)).collect();
        assert_eq!(inputs.spatial.factor, (p * r) as f64 / rows.len() as f64);
    }
}
