//! What a random case exercises, so that a set of cases can prove what it covers.

use std::collections::BTreeMap;

use cyclonest_arch::{Channels, NetworkKind, Ports, Reduction};
use cyclonest_workloads::{Dim, Tensor};

use crate::generate::Case;

/// Every feature that a case may have, by name.
pub const FEATURES: [&str; 42] = [
    "imperfect factor",
    "stride over kernel",
    "dilation",
    "padding",
    "asymmetric padding",
    "groups",
    "2 levels",
    "3 levels",
    "4 levels",
    "5 levels",
    "PE level not innermost",
    "weights bypass the PE level",
    "inputs bypass the PE level",
    "outputs bypass the PE level",
    "weights bypass a level",
    "inputs bypass a level",
    "outputs bypass a level",
    "all tensors kept at an inner level",
    "multicast of weights",
    "multicast of inputs",
    "no multicast of weights",
    "no multicast of inputs",
    "reduction none",
    "reduction tree",
    "reduction chain",
    "one slot",
    "two slots",
    "three slots",
    "fifo",
    "halo",
    "no halo",
    "pipe",
    "bus",
    "preset",
    "shared channel",
    "channel per tensor",
    "shared port",
    "port per tensor",
    "network clock",
    "two precisions",
    "spatial loops at several levels",
    "unmapped PEs",
];

/// The names, of [`FEATURES`], of what `case` exercises.
#[must_use]
pub fn features(case: &Case) -> Vec<&'static str> {
    let (p, a, m) = (&case.problem, &case.arch, &case.mapping);
    let event = a.event_level();
    let kernel = |taps: u64, dilation: u64| (taps - 1) * dilation + 1;
    let b = &p.bounds;
    let over = b[Dim::P] > 1 && p.stride.0 > kernel(b[Dim::R], p.dilation.0)
        || b[Dim::Q] > 1 && p.stride.1 > kernel(b[Dim::S], p.dilation.1);
    let dilated = b[Dim::R] > 1 && p.dilation.0 > 1 || b[Dim::S] > 1 && p.dilation.1 > 1;
    let pad = &p.padding;
    let bypass =
        |t: Tensor, at_event: bool| (1..=event).any(|l| (l == event) == at_event && !m.levels[l].keeps.contains(t));
    // Networks that fan out and levels that matter: those of the event levels.
    let networks: Vec<_> = (0..event)
        .filter_map(|l| a.levels[l].below.as_ref().map(|n| (l, n)))
        .collect();
    let fans =
        |l: usize, irrelevant: &dyn Fn(Dim) -> bool| m.levels[l].spatial.iter().any(|s| s.1 > 1 && irrelevant(s.0));
    let multicasts = |t: Tensor, on: bool| {
        networks
            .iter()
            .any(|(l, n)| fans(*l, &|d| !t.is_relevant(d)) && n.multicast.contains(t) == on)
    };
    let reduces = |f: fn(Reduction) -> bool| {
        networks
            .iter()
            .any(|(l, n)| fans(*l, &Dim::is_reduction) && f(n.reduction))
    };
    let kept = (1..=event).flat_map(|l| {
        m.levels[l]
            .keeps
            .iter()
            .filter_map(move |t| a.levels[l].bank(t).map(|bank| (t, bank)))
    });
    let kept: Vec<_> = kept.collect();
    let slots = |n: u64| kept.iter().any(|(t, bank)| bank.slots_of(*t) == n);
    let halo = |on: bool| {
        kept.iter()
            .any(|(t, bank)| *t == Tensor::Inputs && bank.halo.contains(*t) == on)
    };
    let kind = |f: fn(&NetworkKind) -> bool| networks.iter().any(|(_, n)| f(&n.kind));
    let per_tensor = |want: bool| {
        networks.iter().any(|(l, _)| {
            [true, false].iter().any(|&down| {
                a.channels(*l, down)
                    .is_some_and(|c| matches!(c, Channels::PerTensor(_)) == want)
            })
        })
    };
    let ports = |f: fn(&Ports) -> bool| {
        a.levels[..=event]
            .iter()
            .flat_map(|l| &l.banks)
            .any(|bank| f(&bank.ports))
    };
    let word = a.words[Tensor::Outputs];
    let mapped: u64 = m.levels[..event].iter().flat_map(|l| &l.spatial).map(|s| s.1).product();
    let spread = m.levels[..event]
        .iter()
        .filter(|l| l.spatial.iter().any(|s| s.1 > 1))
        .count();
    let imperfect = Dim::ALL.into_iter().any(|d| m.trips_within(0, d) != b[d]);
    let has = [
        imperfect,
        over,
        dilated,
        *pad != cyclonest_workloads::Padding::default(),
        pad.top != pad.bottom || pad.left != pad.right,
        b[Dim::G] > 1,
        a.levels.len() == 2,
        a.levels.len() == 3,
        a.levels.len() == 4,
        a.levels.len() == 5,
        event + 1 < a.levels.len(),
        bypass(Tensor::Weights, true),
        bypass(Tensor::Inputs, true),
        bypass(Tensor::Outputs, true),
        bypass(Tensor::Weights, false),
        bypass(Tensor::Inputs, false),
        bypass(Tensor::Outputs, false),
        (1..=event).any(|l| m.levels[l].keeps == cyclonest_workloads::TensorSet::ALL),
        multicasts(Tensor::Weights, true),
        multicasts(Tensor::Inputs, true),
        multicasts(Tensor::Weights, false),
        multicasts(Tensor::Inputs, false),
        reduces(|r| r == Reduction::None),
        reduces(|r| matches!(r, Reduction::Tree { .. })),
        reduces(|r| matches!(r, Reduction::Chain { .. })),
        slots(1),
        slots(2),
        slots(3),
        kept.iter().any(|(_, bank)| bank.fifo > 0),
        halo(true),
        halo(false),
        kind(|k| matches!(k, NetworkKind::Pipe { .. })),
        kind(|k| matches!(k, NetworkKind::Bus(_))),
        kind(|k| {
            matches!(
                k,
                NetworkKind::HierarchicalBus { .. } | NetworkKind::Crossbar { .. } | NetworkKind::Mesh { .. }
            )
        }),
        per_tensor(false),
        per_tensor(true),
        ports(|p| matches!(p, Ports::Shared { .. })),
        ports(|p| matches!(p, Ports::PerTensor(_))),
        networks.iter().any(|(_, n)| n.clock.is_some()),
        word.partial.is_some_and(|partial| partial != word.bits),
        spread > 1,
        mapped < a.instances(event),
    ];
    FEATURES
        .into_iter()
        .zip(has)
        .filter(|(_, has)| *has)
        .map(|(name, _)| name)
        .collect()
}

/// How many of `cases` have each feature; every feature is listed.
#[must_use]
pub fn coverage<'a>(cases: impl IntoIterator<Item = &'a Case>) -> BTreeMap<&'static str, usize> {
    let mut counts: BTreeMap<&'static str, usize> = FEATURES.into_iter().map(|f| (f, 0)).collect();
    for case in cases {
        for feature in features(case) {
            *counts.entry(feature).or_default() += 1;
        }
    }
    counts
}
