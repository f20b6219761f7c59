//! What every scheduler owes its callers.

use std::num::NonZeroUsize;

use cyclonest_arch::bundled;
use cyclonest_scheduler::cost::exact::Exact;
use cyclonest_scheduler::{Objective, Request, ScheduleError, Scheduled, by_name};
use cyclonest_workloads::{DimMap, Problem, bundled as networks};

fn run(scheduler: &str, request: &Request<'_>) -> Result<Scheduled, ScheduleError> {
    by_name(scheduler).expect("registered").schedule(request)
}

fn small() -> Problem {
    Problem::new(DimMap([1, 1, 4, 4, 4, 2, 3, 1]))
}

const SEARCHING: [&str; 7] = [
    "milp",
    "milp:cosa",
    "anneal",
    "anneal:linear",
    "anneal:milp",
    "random",
    "hybrid:20",
];

#[test]
fn milp_maps_every_layer_shape_of_the_networks_onto_every_machine() {
    // The two CPUs have a scheduler of their own, `csa`; their deep hierarchies take the program long.
    for name in bundled::names().filter(|name| !["power10", "skylake_x"].contains(name)) {
        let arch = bundled::load(name).unwrap();
        for (network, every) in [("alexnet", 5), ("mobilenet_v2", 30), ("resnext50_32x4d", 30)] {
            for layer in networks::load(network)
                .unwrap()
                .distinct()
                .iter()
                .skip(1)
                .step_by(every)
            {
                let request = Request {
                    budget: Some(50),
                    ..Request::new(&layer.problem, &arch)
                };
                let found = run("milp", &request).unwrap_or_else(|e| panic!("{name}, {network} {}: {e}", layer.name));
                assert_eq!(found.mapping.check(&layer.problem, &arch), [], "{name}, {}", layer.name);
                let proof = found.proof.expect("a bound");
                assert!(proof.bound <= proof.objective + 1e-6, "{proof:?}");
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let arch = bundled::load("simba").unwrap();
    let layer = &networks::load("alexnet").unwrap().distinct()[2];
    for scheduler in SEARCHING {
        let with = |threads: usize| {
            let request = Request {
                budget: Some(400),
                seed: 3,
                threads: NonZeroUsize::new(threads).unwrap(),
                ..Request::new(&layer.problem, &arch)
            };
            run(scheduler, &request).unwrap_or_else(|e| panic!("{scheduler}: {e}"))
        };
        assert_eq!(with(1), with(3), "{scheduler}");
    }
}

#[test]
fn the_budget_is_kept() {
    let arch = bundled::load("simba").unwrap();
    let layer = &networks::load("alexnet").unwrap().distinct()[1];
    for (scheduler, spare) in [("anneal", 0), ("random", 0), ("hybrid:20", 0), ("milp", 210)] {
        let request = Request {
            budget: Some(120),
            ..Request::new(&layer.problem, &arch)
        };
        let found = run(scheduler, &request).unwrap();
        assert!(found.evaluations <= 120 + spare, "{scheduler}: {}", found.evaluations);
        assert!(found.valid <= found.tried, "{scheduler}");
    }
}

#[test]
fn nothing_beats_exhaustive_among_perfect_factors_and_searches_come_near_it() {
    let arch = bundled::load("small3").unwrap();
    let problem = small();
    for objective in [Objective::Cycles, Objective::Energy, Objective::Edp] {
        let request = Request {
            objective,
            ..Request::new(&problem, &arch)
        };
        let score = |found: &Scheduled| objective.score(found.estimate.as_ref().unwrap());
        let all = run("exhaustive", &request).unwrap();
        let best = score(&all);
        assert!(all.proof.unwrap().proven && all.valid > 1_000);
        assert!(score(&run("hybrid:50", &request).unwrap()) >= best);
        assert!(score(&run("random:naive", &request).unwrap()) >= best);
        let anneal = score(&run("anneal", &request).unwrap());
        assert!(anneal <= best * 1.02, "{objective:?}: {anneal} against {best}");
        let milp = score(&run("milp", &request).unwrap());
        assert!(milp <= best * 1.05, "{objective:?}: {milp} against {best}");
    }
}

#[test]
fn with_bypasses_the_optimum_is_no_worse() {
    let arch = bundled::load("small3").unwrap();
    let problem = Problem::new(DimMap([1, 1, 4, 2, 2, 1, 1, 1]));
    let request = Request::new(&problem, &arch);
    let score = |found: &Scheduled| request.objective.score(found.estimate.as_ref().unwrap());
    let keeping = run("exhaustive", &request).unwrap();
    let bypassing = run("exhaustive:bypass", &request).unwrap();
    assert!(score(&bypassing) <= score(&keeping) && bypassing.valid > keeping.valid);
}

#[test]
fn a_layer_too_large_to_enumerate_is_refused_with_its_size() {
    let arch = bundled::load("simba").unwrap();
    let layer = &networks::load("resnet50").unwrap().distinct()[0];
    let error = run("exhaustive", &Request::new(&layer.problem, &arch)).unwrap_err();
    assert!(error.to_string().contains("too many to enumerate"), "{error}");
}

#[test]
fn a_dataflow_style_maps_what_fits_its_machine() {
    let arch = bundled::load("small3").unwrap();
    let mut mapped = 0;
    for style in ["C-P", "X-P", "YX-P", "YR-P", "KC-P"] {
        match run(&format!("dataflow:{style}"), &Request::new(&small(), &arch)) {
            Ok(found) => {
                assert_eq!(found.mapping.check(&small(), &arch), [], "{style}");
                mapped += 1;
            }
            Err(error) => assert!(error.to_string().contains(style), "{error}"),
        }
    }
    assert!(mapped > 0);
}

#[cfg(unix)]
mod external {
    use std::time::Duration;

    use cyclonest_scheduler::{External, Scheduler as _};

    use super::*;

    fn answer(command: &str) -> Result<Scheduled, ScheduleError> {
        let arch = bundled::load("small3").unwrap();
        let scheduler = External::new(command).with_limit(Duration::from_millis(1500));
        scheduler.schedule(&Request::new(&small(), &arch))
    }

    #[test]
    fn a_program_s_mapping_is_taken() {
        let arch = bundled::load("small3").unwrap();
        let greedy = run("greedy", &Request::new(&small(), &arch)).unwrap().mapping;
        let json = serde_json::to_string(&greedy).unwrap();
        let found = answer(&format!("cat > /dev/null; echo '{json}'")).unwrap();
        assert_eq!(found.mapping, greedy);
        let wrapped = answer(&format!("echo '{{\"mapping\": {json}}}'")).unwrap();
        assert_eq!(wrapped.mapping, greedy);
    }

    #[test]
    fn crashes_hangs_and_nonsense_are_told_apart() {
        let message = |command: &str| answer(command).unwrap_err().to_string();
        let crash = message("echo sorry >&2; exit 3");
        assert!(crash.contains("failed") && crash.contains("sorry"), "{crash}");
        assert!(message("sleep 30").contains("gave no answer within 1.5s"));
        assert!(message("echo hello").contains("answered no mapping"));
        let wrong = message("echo '{\"bounds\": {\"K\": 4}, \"levels\": []}'");
        assert!(wrong.contains("invalid mapping"), "{wrong}");
    }
}

#[test]
fn with_a_referee_annealing_from_milp_is_never_slower_than_milp() {
    let arch = bundled::load("simba").unwrap();
    let referee = Exact;
    // 1×1 layers of ResNet-50, for which the oracle prefers other mappings than the referee.
    for bounds in [[1, 1, 64, 64, 56, 56, 1, 1], [1, 1, 256, 64, 56, 56, 1, 1]] {
        let problem = Problem::new(DimMap(bounds));
        let request = Request {
            referee: Some(&referee),
            ..Request::new(&problem, &arch)
        };
        let cycles = |scheduler| run(scheduler, &request).unwrap().refereed.unwrap().cycles;
        assert!(cycles("anneal:milp") <= cycles("milp"), "{bounds:?}");
    }
}
