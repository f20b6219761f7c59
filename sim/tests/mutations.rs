//! Leaves every component out of the key of the fast-forward in turn; the random cases of `fast_forward.rs` are to notice.
//!
//! ```text
//! scripts/mutate_key.sh
//! ```

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

use common::{stretched, without_skip_report};
use cyclonest_sim::mutate::{COMPONENTS, omit};
use cyclonest_sim::{FastForward, Options, simulate};

/// The seeds of `fast_forward.rs`; `CYCLONEST_CASES` asks for fewer.
fn seeds() -> u64 {
    let given = std::env::var("CYCLONEST_CASES").ok().and_then(|n| n.parse().ok());
    given.unwrap_or(10_000)
}

/// The first seed at which the outcome is another one, or no outcome, when `component` is left out.
fn caught_at(component: &str) -> Option<(u64, &'static str)> {
    (0..seeds()).find_map(|seed| {
        let case = stretched(seed)?;
        let run = |fast_forward, omitted| {
            omit(omitted);
            let options = Options {
                fast_forward,
                ..Options::default()
            };
            simulate(&case.problem, &case.arch, &case.mapping, options)
        };
        let full = run(FastForward::Off, None).expect("a valid case");
        let fast = catch_unwind(AssertUnwindSafe(|| run(FastForward::Eager, Some(component))));
        match fast {
            Err(_) => Some((seed, "panics")),
            Ok(Err(_)) => Some((seed, "deadlock")),
            Ok(Ok(outcome)) => (without_skip_report(&outcome) != full).then_some((seed, "another outcome")),
        }
    })
}

#[test]
fn leaving_out_any_component_is_noticed() {
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for component in COMPONENTS {
        match caught_at(component) {
            Some((seed, how)) => println!("without {component:<10} caught at seed {seed}: {how}"),
            None => {
                println!("without {component:<10} NOT CAUGHT in {} seeds", seeds());
                missed.push(component);
            }
        }
    }
    set_hook(hook);
    println!("{} of {} caught", COMPONENTS.len() - missed.len(), COMPONENTS.len());
    assert!(missed.is_empty(), "not noticed: {missed:?}");
}
