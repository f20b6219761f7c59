//! The exploration against the obvious way: every design by itself.

use std::num::NonZeroUsize;

use cyclonest_arch::Technology;
use cyclonest_arch::directives::Style;
use cyclonest_scheduler::cost::maestro::{Machine, evaluate};
use cyclonest_scheduler::explore::{
    Axis, Entry, Kept, MappingChoice, Model, Objective, Pes, Plan, Size, Space, Values, explore, names, row, text,
};
use cyclonest_workloads::{Network, bundled};

fn network() -> Network {
    Network::from_ron(
        r#"Network(
            name: "small",
            inputs: {"image": [1, 6, 12, 12]},
            nodes: [
                (name: "a", op: Conv(out: 20, kernel: 3, pad: 1)),
                (name: "b", op: Conv(out: 8, kernel: 3, stride: 2)),
            ],
        )"#,
    )
    .unwrap_or_else(|errors| panic!("{errors}"))
}

fn plan() -> Plan {
    Plan {
        name: "test".to_owned(),
        network: "small".to_owned(),
        layers: Vec::new(),
        technology: "maestro_28nm".to_owned(),
        mappings: vec![
            MappingChoice::Style(Style::KCP),
            MappingChoice::Style(Style::YRP),
            MappingChoice::Adaptive,
        ],
        pes: Pes::Count(Values::List(vec![2, 9, 16, 40, 64])),
        l1: Size::Sizes(Values::List(vec![20, 60, 700])),
        l2: Size::Sizes(Values::Doubling { from: 512, to: 8192 }),
        noc_bandwidth: Values::Range {
            from: 1,
            to: 40,
            step: 13,
        },
        noc_latency: Values::List(vec![1, 4]),
        offchip_bandwidth: Values::List(vec![1, 64]),
        multicast: vec![true],
        reduction: vec![true],
        budget: Default::default(),
        objective: Objective::Throughput,
        front: vec![Axis::Cycles, Axis::Energy],
        model: Model::Maestro,
        keep: 7,
        verify: 0,
    }
}

fn space(plan: Plan, network: &Network) -> Space {
    assert_eq!(plan.check(), []);
    let technology = Technology::load(&plan.technology).expect("bundled");
    Space::new(plan, technology, network).expect("a space")
}

/// Every design by itself, budgets checked on its figures.
fn brute(space: &Space) -> (Kept, u64) {
    let mut kept = Kept::new(&space.plan);
    let mut within = 0;
    for number in 0..space.designs() {
        let Ok(row) = row(space, number) else { continue };
        let budget = &space.plan.budget;
        let area = space.technology.area(row.design.resources(row.l1, row.l2));
        if budget.area_mm2.is_some_and(|most| area > most * 1e6)
            || budget.power_mw.is_some_and(|most| row.power_mw > most)
        {
            continue;
        }
        within += 1;
        kept.offer(Entry {
            design: number,
            cycles: row.cycles,
            energy: row.energy,
            area,
        });
    }
    (kept, within)
}

fn threads(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).expect("positive")
}

#[test]
fn pruned_unpruned_and_each_by_itself_keep_the_same() {
    let network = network();
    let tight = cyclonest_scheduler::explore::Budget {
        area_mm2: Some(0.45),
        power_mw: Some(60.0),
    };
    let mut skipped = [0; 3];
    for objective in [
        Objective::Throughput,
        Objective::Energy,
        Objective::Edp,
        Objective::Pareto,
    ] {
        for (budget, needed) in [(tight, false), (Default::default(), false), (tight, true)] {
            let mut plan = plan();
            (plan.objective, plan.budget) = (objective, budget);
            if objective == Objective::Pareto {
                plan.front.push(Axis::Area);
            }
            if needed {
                (plan.l1, plan.l2) = (Size::AsNeeded, Size::AsNeeded);
            }
            let space = space(plan, &network);
            let (expected, within) = brute(&space);
            assert!(within > 50, "{within}");
            let pruned = explore(&space, threads(1), true);
            let all = explore(&space, threads(2), false);
            assert_eq!(pruned.kept.store(), expected.store(), "{objective:?}");
            assert_eq!(all.kept.store(), expected.store(), "{objective:?}");
            assert_eq!(all.tally.evaluated - all.tally.over_budget, within);
            for tally in [pruned.tally, all.tally] {
                let parts = tally.evaluated + tally.area + tally.power + tally.capacity + tally.bound + tally.refused;
                assert_eq!((tally.designs, parts), (space.designs(), space.designs()));
            }
            for (sum, n) in skipped.iter_mut().zip([
                pruned.tally.area + pruned.tally.power,
                pruned.tally.capacity,
                pruned.tally.bound,
            ]) {
                *sum += n;
            }
            assert_eq!(pruned.refusal, all.refusal);
        }
    }
    assert!(skipped.iter().all(|&n| n > 300), "{skipped:?}");
}

#[test]
fn exact_with_switches_is_pruned_without_loss() {
    let network = network();
    let mut plan = plan();
    plan.model = Model::Exact;
    plan.mappings = vec![MappingChoice::Style(Style::KCP), MappingChoice::Style(Style::XP)];
    plan.pes = Pes::Count(Values::List(vec![4, 8]));
    (plan.l1, plan.l2) = (Size::AsNeeded, Size::AsNeeded);
    plan.noc_bandwidth = Values::List(vec![1, 4, 16]);
    plan.offchip_bandwidth = Values::List(vec![64]);
    (plan.multicast, plan.reduction) = (vec![true, false], vec![true, false]);
    for (objective, model) in [
        (Objective::Throughput, Model::Exact),
        (Objective::Energy, Model::ExactQuick),
        (Objective::Pareto, Model::ExactQuick),
    ] {
        let plan = Plan {
            objective,
            model,
            ..plan.clone()
        };
        let space = space(plan, &network);
        let (expected, within) = brute(&space);
        assert_eq!(within, space.designs());
        assert_eq!(explore(&space, threads(2), true).kept.store(), expected.store());
    }
}

#[test]
fn schedulers_map_to_the_sizes_of_each_design() {
    let network = network();
    let mut plan = plan();
    plan.model = Model::Exact;
    plan.mappings = ["greedy", "dataflow:YR-P"]
        .map(|name| MappingChoice::Scheduler(name.to_owned()))
        .to_vec();
    plan.pes = Pes::Mesh(vec![(4, 2), (4, 4)]);
    plan.l1 = Size::Sizes(Values::List(vec![1, 200]));
    plan.l2 = Size::Sizes(Values::List(vec![4000]));
    plan.noc_bandwidth = Values::List(vec![2, 8]);
    plan.noc_latency = Values::List(vec![1]);
    let space = space(plan, &network);
    let (expected, within) = brute(&space);
    let explored = explore(&space, threads(2), true);
    assert_eq!(explored.kept.store(), expected.store());
    assert!(
        within > 0 && within < space.designs(),
        "{within}: an L1 of 1 element holds no tiles of a dataflow"
    );
    assert_eq!(explored.tally.refused, space.designs() - within);
}

/// The whole of MAESTRO's analysis for each design, not the part that depends on the network.
#[test]
fn figures_of_a_style_are_those_of_maestro() {
    let network = network();
    let mut plan = plan();
    plan.mappings.pop();
    (plan.l1, plan.l2) = (Size::AsNeeded, Size::AsNeeded);
    let space = space(plan, &network);
    let (mut compared, mut refused) = (0, 0);
    for number in (0..space.designs()).step_by(3) {
        let design = space.design(number);
        let machine = Machine {
            pes: design.pes(),
            noc_bandwidth: design.noc_bandwidth,
            noc_latency: design.noc_latency,
            offchip_bandwidth: design.offchip_bandwidth,
        };
        let style = [Style::KCP, Style::YRP][design.mapping];
        let mut sums = (0.0, 0.0, 0, 0);
        let mut failed = false;
        for layer in &space.layers {
            let directives = style.layer("l", &layer.problem, design.pes()).expect("no dilation");
            match evaluate(&directives, &machine) {
                Ok(e) => {
                    sums.0 += e.runtime as f64;
                    sums.1 += e.energy_macs();
                    sums.2 = sums.2.max(e.l1_required() as u64);
                    sums.3 = sums.3.max(e.l2_required() as u64);
                    if space.layers.len() == 1 {
                        let ours = space.technology.area(design.resources(sums.2, sums.3));
                        assert!((ours / e.area(&machine).total() - 1.0).abs() < 1e-9);
                    }
                }
                Err(_) => failed = true,
            }
        }
        match row(&space, number) {
            Ok(row) => {
                assert!(!failed);
                assert_eq!((row.cycles, row.l1, row.l2), (sums.0, sums.2, sums.3));
                assert!((row.energy / sums.1 - 1.0).abs() < 1e-12);
                compared += 1;
            }
            Err(_) => {
                assert!(failed);
                refused += 1;
            }
        }
    }
    assert!(compared > 30 && refused > 3, "{compared} {refused}");
}

#[test]
fn area_and_power_of_the_bundled_technology_are_those_of_the_model() {
    let technology = Technology::load("maestro_28nm").expect("bundled");
    let problem = &bundled::load("vgg16").expect("bundled").distinct()[5].problem;
    for pes in [1, 2, 3, 8, 64, 168, 700] {
        let Ok(layer) = Style::KCP.layer("l", problem, pes) else {
            panic!()
        };
        let machine = Machine {
            pes,
            noc_bandwidth: 7 * pes,
            noc_latency: 1,
            offchip_bandwidth: 9,
        };
        let e = evaluate(&layer, &machine).expect("evaluated");
        let resources = cyclonest_arch::Resources {
            pes,
            l1: e.l1_required() as u64,
            l2: e.l2_required() as u64,
            bandwidth: machine.noc_bandwidth,
        };
        assert!((technology.area(resources) / e.area(&machine).total() - 1.0).abs() < 1e-12);
        assert!((technology.power(resources) / e.power(&machine).total() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn every_number_is_another_design() {
    let network = network();
    let space = space(plan(), &network);
    let all: std::collections::BTreeSet<String> = (0..space.designs())
        .map(|n| {
            format!(
                "{:?}",
                cyclonest_scheduler::explore::Design {
                    number: 0,
                    ..space.design(n)
                }
            )
        })
        .collect();
    assert_eq!(all.len() as u64, space.designs());
    assert_eq!(space.designs(), 3 * 5 * 3 * 5 * 4 * 2 * 2);
    let chunks: Vec<_> = (0..space.chunks()).map(|c| space.chunk(c)).collect();
    assert_eq!(chunks.iter().map(|c| c.end - c.start).sum::<u64>(), space.designs());
    assert!(chunks.windows(2).all(|pair| pair[0].end == pair[1].start));
}

#[test]
fn bundled_plans_are_valid() {
    for name in names() {
        let text = text(name).expect("listed");
        let plan = Plan::from_ron(text).unwrap_or_else(|f| panic!("{}", cyclonest_arch::render(name, text, &f)));
        assert_eq!(plan.name, name);
        let network = bundled::load(&plan.network).expect("bundled");
        space(plan, &network);
    }
}

#[test]
fn every_fault_of_a_plan_is_reported_at_its_place() {
    let text = r#"Plan(
    name: "broken",
    network: "vgg16",
    mappings: [Scheduler("greedy"), Style("KC-P"), Style("KC-P")],
    pes: Count(List([4, 2])),
    l2: Sizes(Range(from: 1, to: 0, step: 0)),
    noc_bandwidth: Range(from: 1, to: 4000000000, step: 1),
    multicast: [],
    budget: (area_mm2: -1.0),
    objective: Energy,
    model: Exact,
    keep: 3,
    verify: 4,
)"#;
    let faults = Plan::from_ron(text).expect_err("broken");
    let found: Vec<String> = faults.iter().map(|f| format!("{}: {}", f.line, f.message)).collect();
    assert_eq!(
        found,
        [
            "1: `l1` is as needed, but a scheduler fits its mappings to the sizes; Sizes(…) is expected",
            "4: the same mapping stands before",
            "5: 2 after 4: ascending values are expected",
            "6: 0: a number from 1 to 4294967295 is expected",
            "6: 0 is less than the first value, 1",
            "6: a step of 0 never ends",
            "7: 4000000000 values; at most 1000000 are possible",
            "8: the list is empty",
            "9: -1: a positive number is expected",
            "13: 4 are to be simulated of 3 that are kept",
        ]
    );
}
