//! Leaves every component out of the key of the fast-forward in turn; the cases of `fast_forward.rs` are to notice.
//!
//! Every case is simulated once with the whole key, which shows what can matter in it: without whose words two different
//! keys would be equal, and which conditions of edges forbid anything. Without the others, the same would happen; so only
//! the former are left out, one by one.
//!
//! ```text
//! scripts/mutate_key.sh
//! ```

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Mutex;

use common::{cases, seeds, without_skip_report};
use cyclonest_sim::mutate::{COMPONENTS, omit, record, recorded};
use cyclonest_sim::{FastForward, Options, Outcome, SimError, simulate};
use cyclonest_testkit::generate::Case;

/// Components that can be left out alone in every case, because the other words tell the same keys apart, and the
/// condition that never forbids anything alone. `docs/performance.md` says why they stay.
const TOLD_BY_OTHERS: [&str; 4] = ["Store", "Group", "Openable", "Catching up"];

/// What is known of a component.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// Cases in which it can have mattered, as far as they were looked at.
    mattered: u64,
    caught: Option<Caught>,
}

/// How the omission was noticed.
#[derive(Debug, Clone, Copy)]
struct Caught {
    seed: u64,
    how: &'static str,
}

/// Simulates with the fast-forward looking at every crossing.
fn fast(case: &Case) -> Result<Outcome, SimError> {
    let options = Options {
        fast_forward: FastForward::Eager,
        ..Options::default()
    };
    simulate(&case.problem, &case.arch, &case.mapping, options)
}

/// How it shows that `component` is left out, if it does.
fn shows(case: &Case, full: &Outcome, component: &str) -> Option<&'static str> {
    omit(Some(component), full.events * 4 + 1_000);
    let outcome = catch_unwind(AssertUnwindSafe(|| fast(case)));
    omit(None, u64::MAX);
    match outcome {
        Err(_) => Some("panics or does not end"),
        Ok(Err(_)) => Some("deadlock"),
        Ok(Ok(outcome)) => (without_skip_report(&outcome) != *full).then_some("another outcome"),
    }
}

/// Leaves out every component that can matter in this case and that no case before it has caught.
fn look_at(seed: u64, case: &Case, found: &Mutex<[Found; COMPONENTS.len()]>) {
    record();
    fast(case).expect("a valid case");
    let matter = recorded();
    let mut full = None;
    for (i, component) in COMPONENTS.into_iter().enumerate() {
        let earlier = found.lock().expect("not poisoned")[i].caught;
        if !matter[i] || earlier.is_some_and(|earlier| earlier.seed < seed) {
            continue;
        }
        let full = full.get_or_insert_with(|| {
            simulate(&case.problem, &case.arch, &case.mapping, Options::default()).expect("a valid case")
        });
        let shows = shows(case, full, component);
        let found = &mut found.lock().expect("not poisoned")[i];
        found.mattered += 1;
        if let Some(how) = shows
            && found.caught.is_none_or(|other| seed < other.seed)
        {
            found.caught = Some(Caught { seed, how });
        }
    }
}

#[test]
fn leaving_out_any_component_is_noticed() {
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let found = Mutex::new([Found::default(); COMPONENTS.len()]);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(2);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let found = &found;
            scope.spawn(move || {
                for (seed, case) in cases(seeds().skip(thread).step_by(threads)) {
                    look_at(seed, &case, found);
                }
            });
        }
    });
    set_hook(hook);
    let found = found.into_inner().expect("not poisoned");
    let (mut noticed, mut told, mut wrong) = (0, 0, Vec::new());
    for (component, Found { mattered, caught }) in COMPONENTS.into_iter().zip(&found) {
        let expected = !TOLD_BY_OTHERS.contains(&component);
        match caught {
            Some(Caught { seed, how }) => {
                println!("without {component:<20} caught at seed {seed:>5}: {how}");
                noticed += 1;
            }
            None if *mattered == 0 && !expected => {
                println!("without {component:<20} the same, in every case: others tell it");
                told += 1;
            }
            None => println!("without {component:<20} NOT CAUGHT; can matter in {mattered} cases"),
        }
        if expected != caught.is_some() {
            wrong.push(component);
        }
    }
    println!("{noticed} of {} caught, {told} told by others", COMPONENTS.len());
    assert!(wrong.is_empty(), "not as it should be: {wrong:?}");
}
