//! Leaves a component out of the key of the fast-forward, to see whether the tests notice.
//!
//! Everything that is written into a key is written by a component of a name, and every condition of an edge has a
//! name. Without the feature `mutate` nothing of this is left in the code.

#[cfg(feature = "mutate")]
pub use on::{COMPONENTS, omit, record, recorded};
#[cfg(feature = "mutate")]
pub(crate) use on::{check_events, enter, is_waived, key_ends, writes};

#[cfg(feature = "mutate")]
mod on {
    use std::cell::RefCell;
    use std::collections::HashMap;

    /// What can be left out: the words that a component itself writes into the key (not those of what it contains),
    /// and conditions under which an edge may be taken.
    pub const COMPONENTS: [&str; 21] = [
        "Crossing",
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
        "Openable",
        "Places",
        "Trips",
        "First of reduction",
        "Bounds",
        "Lines",
        "Catching up",
        "Refresh",
    ];

    const N: usize = COMPONENTS.len();

    #[derive(Default)]
    struct Mutation {
        omitted: Option<usize>,
        most_events: u64,
        recording: bool,
        /// Who writes.
        writer: usize,
        /// Hashes of the key being written: of all of it, and of the words of each component.
        all: u64,
        parts: [u64; N],
        /// Per component: the hashes of every key without it and of the whole of it.
        keys: [HashMap<u64, u64>; N],
        matters: [bool; N],
    }

    thread_local! {
        static MUTATION: RefCell<Mutation> = RefCell::default();
    }

    fn index(name: &str) -> usize {
        COMPONENTS.iter().position(|c| *c == name).expect("a component's name")
    }

    fn mix(hash: u64, word: u64) -> u64 {
        let mixed = (hash.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ (mixed >> 29)
    }

    /// From now on, simulations of this thread leave out the component of this name, if any, and panic if they go
    /// through more than this many events: without a component they may never end.
    pub fn omit(name: Option<&str>, most_events: u64) {
        MUTATION.with_borrow_mut(|m| {
            (m.omitted, m.most_events) = (name.map(index), most_events);
        });
    }

    /// Simulations of this thread note from now on which components matter.
    pub fn record() {
        MUTATION.with_borrow_mut(|m| {
            *m = Mutation {
                recording: true,
                ..Mutation::default()
            };
        });
    }

    /// For every component, whether it can have mattered since: without its words, two different keys would have been
    /// equal, or a condition has forbidden something. If not, the simulation would have been the same without it.
    #[must_use]
    pub fn recorded() -> [bool; N] {
        MUTATION.with_borrow_mut(|m| {
            m.recording = false;
            m.matters
        })
    }

    pub(crate) fn enter(name: &str) -> &'static str {
        MUTATION.with_borrow_mut(|m| COMPONENTS[std::mem::replace(&mut m.writer, index(name))])
    }

    pub(crate) fn writes(word: u64) -> bool {
        MUTATION.with_borrow_mut(|m| {
            if m.recording {
                m.all = mix(m.all, word);
                m.parts[m.writer] = mix(m.parts[m.writer], !word);
            }
            m.omitted != Some(m.writer)
        })
    }

    pub(crate) fn key_ends() {
        MUTATION.with_borrow_mut(|m| {
            if !m.recording {
                return;
            }
            for (component, keys) in m.keys.iter_mut().enumerate() {
                let mut others = m.parts;
                others[component] = 0;
                let without = others.iter().fold(0, |hash, &part| mix(hash, part));
                m.matters[component] |= *keys.entry(without).or_insert(m.all) != m.all;
            }
            (m.all, m.parts) = (0, [0; N]);
        });
    }

    pub(crate) fn is_waived(name: &str) -> bool {
        MUTATION.with_borrow_mut(|m| {
            let component = index(name);
            m.matters[component] |= m.recording;
            m.omitted == Some(component)
        })
    }

    pub(crate) fn check_events(events: u64) {
        let most = MUTATION.with_borrow(|m| m.most_events);
        assert!(most == 0 || events <= most, "{events} events");
    }
}

/// From here on, the words of the key are this component's; returns whose they were.
#[cfg(not(feature = "mutate"))]
#[inline]
pub(crate) const fn enter(_: &str) -> &'static str {
    ""
}

/// True if a word of the key is written.
#[cfg(not(feature = "mutate"))]
#[inline]
pub(crate) const fn writes(_: u64) -> bool {
    true
}

/// A key is complete.
#[cfg(not(feature = "mutate"))]
#[inline]
pub(crate) const fn key_ends() {}

/// True if a condition does not count; to be asked last, where it alone forbids something.
#[cfg(not(feature = "mutate"))]
#[inline]
pub(crate) const fn is_waived(_: &str) -> bool {
    false
}

/// Panics if there are more events than allowed.
#[cfg(not(feature = "mutate"))]
#[inline]
pub(crate) const fn check_events(_: u64) {}
