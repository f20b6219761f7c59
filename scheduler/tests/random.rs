//! Random sampling: valid, repeatable, and mostly valid where it knows the constraints.

use cyclonest_arch::bundled;
use cyclonest_scheduler::{Request, ScheduleError, Scheduled, by_name};
use cyclonest_workloads::{DistinctLayer, bundled as networks};

fn layers(network: &str) -> Vec<DistinctLayer> {
    networks::load(network).unwrap().distinct()
}

fn run(scheduler: &str, request: &Request<'_>) -> Result<Scheduled, ScheduleError> {
    by_name(scheduler).unwrap().schedule(request)
}

#[test]
fn nine_of_ten_constraint_aware_samples_are_valid_on_every_machine() {
    for name in bundled::names() {
        let arch = bundled::load(name).unwrap();
        let (mut tried, mut valid) = (0, 0);
        for layer in layers("resnet50").iter().chain(&layers("mobilenet_v2")).step_by(5) {
            let request = Request {
                budget: Some(20),
                ..Request::new(&layer.problem, &arch)
            };
            let scheduled = run("random", &request).unwrap_or_else(|e| panic!("{name}, {}: {e}", layer.name));
            assert_eq!(
                scheduled.mapping.check(&layer.problem, &arch),
                [],
                "{name}, {}",
                layer.name
            );
            tried += scheduled.tried;
            valid += scheduled.valid;
        }
        assert!(valid * 10 >= tried * 9, "{name}: {valid} of {tried}");
    }
}

#[test]
fn few_naive_samples_are_valid_and_the_best_of_five_is_returned() {
    let arch = bundled::load("simba").unwrap();
    let (mut tried, mut valid) = (0, 0);
    for layer in layers("resnet50").iter().step_by(6) {
        let scheduled = run("random:naive", &Request::new(&layer.problem, &arch)).unwrap();
        assert_eq!(scheduled.mapping.check(&layer.problem, &arch), []);
        assert_eq!((scheduled.valid, scheduled.evaluations), (5, 5), "{}", layer.name);
        tried += scheduled.tried;
        valid += scheduled.valid;
    }
    assert!(valid * 20 < tried, "{valid} of {tried}");
}

#[test]
fn the_trace_falls_to_the_estimate_of_the_result() {
    let arch = bundled::load("eyeriss").unwrap();
    let problem = &layers("alexnet")[1].problem;
    let scheduled = run(
        "random",
        &Request {
            budget: Some(300),
            ..Request::new(problem, &arch)
        },
    )
    .unwrap();
    let trace = &scheduled.convergence;
    assert!(
        trace.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 > w[1].1),
        "{trace:?}"
    );
    assert_eq!(trace.last().unwrap().1, scheduled.estimate.unwrap().cycles);
    assert!(trace.last().unwrap().0 <= 300);
}

#[test]
fn a_seed_is_an_answer_and_another_seed_another() {
    let arch = bundled::load("simba").unwrap();
    let problem = &layers("resnet50")[2].problem;
    let with = |seed| {
        let request = Request {
            budget: Some(20),
            seed,
            ..Request::new(problem, &arch)
        };
        run("random", &request).unwrap()
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1).mapping, with(2).mapping);
}
