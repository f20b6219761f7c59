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

/// Components that say the same in other words: without either alone, the other tells all keys apart; without both, not.
const PAIRS: [[&str; 2]; 2] = [["Store", "Group"], ["Openable", "Store"]];

/// Components of which one is left out at least that is in none of the pairs, and pairs.
fn mutants() -> Vec<Vec<&'static str>> {
    let alone = COMPONENTS.iter().map(|&component| vec![component]);
    alone.chain(PAIRS.iter().map(|pair| pair.to_vec())).collect()
}

/// What is known of a mutant.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// Cases in which it can have mattered, as far as they were looked at.
    mattered: u64,
    caught: Option<Caught>,
}

/// How a mutant was noticed.
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

/// How it shows that these components are left out, if it does.
fn shows(case: &Case, full: &Outcome, components: &[&str]) -> Option<&'static str> {
    omit(components, full.events * 4 + 1_000);
    let outcome = catch_unwind(AssertUnwindSafe(|| fast(case)));
    omit(&[], u64::MAX);
    match outcome {
        Err(_) => Some("panics or does not end"),
        Ok(Err(_)) => Some("deadlock"),
        Ok(Ok(outcome)) => (without_skip_report(&outcome) != *full).then_some("another outcome"),
    }
}

/// Looks at every mutant that can matter in this case and that no case before it has caught.
fn look_at(seed: u64, case: &Case, mutants: &[Vec<&'static str>], found: &Mutex<Vec<Found>>) {
    record(mutants);
    fast(case).expect("a valid case");
    let matter = recorded();
    let mut full = None;
    for (i, components) in mutants.iter().enumerate() {
        let earlier = found.lock().expect("not poisoned")[i].caught;
        if !matter[i] || earlier.is_some_and(|earlier| earlier.seed < seed) {
            continue;
        }
        let full = full.get_or_insert_with(|| {
            simulate(&case.problem, &case.arch, &case.mapping, Options::default()).expect("a valid case")
        });
        let shows = shows(case, full, components);
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
    let mutants = mutants();
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let found = Mutex::new(vec![Found::default(); mutants.len()]);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(2);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (mutants, found) = (&mutants, &found);
            scope.spawn(move || {
                for (seed, case) in cases(seeds().skip(thread).step_by(threads)) {
                    look_at(seed, &case, mutants, found);
                }
            });
        }
    });
    set_hook(hook);
    let found = found.into_inner().expect("not poisoned");
    let mut missed = Vec::new();
    for (components, Found { mattered, caught }) in mutants.iter().zip(&found) {
        let name = components.join(" and ");
        match caught {
            Some(Caught { seed, how }) => println!("without {name:<20} caught at seed {seed:>5}: {how}"),
            None if *mattered == 0 && PAIRS.iter().any(|pair| pair.contains(&components[0])) => {
                println!("without {name:<20} no two keys become equal");
            }
            None => {
                println!("without {name:<20} NOT CAUGHT; can matter in {mattered} cases");
                missed.push(name);
            }
        }
    }
    println!(
        "{} of {} are noticed or told by others",
        mutants.len() - missed.len(),
        mutants.len()
    );
    assert!(missed.is_empty(), "nothing notices: {missed:?}");
}
