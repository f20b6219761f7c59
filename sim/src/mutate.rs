//! Leaves a component out of the key of the fast-forward, to see whether the tests notice.

use std::cell::RefCell;

/// What can be left out: a component of the key, the places that a stretch goes through, the time of refreshes.
pub const COMPONENTS: [&str; 14] = [
    "Resource",
    "Timeline",
    "Record",
    "Store",
    "Cursor",
    "Group",
    "Visit",
    "Feed",
    "Sequencer",
    "Pe",
    "Transfer",
    "Event",
    "Places",
    "Refresh",
];

thread_local! {
    static OMITTED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on simulations of this thread leave out the component of this name, or nothing.
pub fn omit(name: Option<&str>) {
    OMITTED.set(name.map(str::to_string));
}

pub(crate) fn is_omitted(name: &str) -> bool {
    OMITTED.with_borrow(|omitted| omitted.as_deref() == Some(name))
}
