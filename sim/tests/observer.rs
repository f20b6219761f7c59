//! What an observer is told adds up to the outcome.

use std::collections::BTreeMap;

use cyclonest_sim::{
    Buffer, FastForward, Observer, Options, Outcome, Skipped, StageInfo, StallReason, TransferInfo, simulate,
    simulate_observed,
};
use cyclonest_testkit::generate::{Case, case};

/// Sums of everything.
#[derive(Debug, Default)]
struct Sums {
    transfers: u64,
    under_way: BTreeMap<u64, u64>,
    last_arrival: u64,
    busy: u64,
    stalled: BTreeMap<StallReason, u64>,
    settled: BTreeMap<u32, u64>,
    occupied: BTreeMap<(u32, usize, u32), u64>,
    slots: BTreeMap<Buffer, u64>,
    skipped: Vec<Skipped>,
    window: Option<(u64, u64)>,
}

impl Observer for Sums {
    fn requested(&mut self, at: u64, transfer: &TransferInfo<'_>) {
        assert!(transfer.elements > 0 && !transfer.members.is_empty());
        assert!(
            self.under_way.insert(transfer.transfer, at).is_none(),
            "two transfers of one number"
        );
        self.transfers += 1;
    }

    fn stage(&mut self, transfer: u64, stage: &StageInfo<'_>) {
        assert!(self.under_way[&transfer] <= stage.reached && stage.reached <= stage.start && stage.start <= stage.end);
        for &instance in stage.instances {
            *self
                .occupied
                .entry((stage.kind as u32, stage.level, instance))
                .or_default() += stage.end - stage.start;
        }
    }

    fn arrived(&mut self, at: u64, transfer: u64) {
        self.under_way.remove(&transfer).expect("a transfer arrives once");
        self.last_arrival = at;
    }

    fn burst(&mut self, pe: u32, from: u64, to: u64) {
        self.busy += to - from;
        if self.skipped.is_empty() {
            assert_eq!(
                self.settled.insert(pe, to).unwrap_or(0),
                from,
                "PE {pe} neither waits nor computes"
            );
        }
    }

    fn stalled(&mut self, pe: u32, from: u64, to: u64, reason: StallReason) {
        *self.stalled.entry(reason).or_default() += to - from;
        if self.skipped.is_empty() {
            assert_eq!(
                self.settled.insert(pe, to).unwrap_or(0),
                from,
                "PE {pe} neither waits nor computes"
            );
        }
    }

    fn occupancy(&mut self, _: u64, buffer: Buffer, slots: u64) {
        let Some(before) = self.slots.insert(buffer, slots) else {
            return;
        };
        assert!(before.abs_diff(slots) <= 1, "{buffer:?} goes from {before} to {slots}");
    }

    fn skipped(&mut self, stretch: Skipped) {
        assert_eq!(stretch.to - stretch.from, stretch.period * stretch.times);
        if let Some((from, to)) = self.window {
            assert!(
                stretch.to <= from || stretch.from >= to,
                "{stretch:?} in the window {from}:{to}"
            );
        }
        self.skipped.push(stretch);
        // What is under way is told anew.
        self.under_way.clear();
        self.slots.clear();
    }

    fn skip_until(&self, now: u64) -> u64 {
        match self.window {
            Some((from, to)) if now < to => from,
            _ => u64::MAX,
        }
    }
}

fn observed(case: &Case, fast_forward: FastForward, sums: &mut Sums) -> Outcome {
    let options = Options {
        fast_forward,
        ..Options::default()
    };
    simulate_observed(&case.problem, &case.arch, &case.mapping, options, sums).expect("a valid case")
}

#[test]
fn what_is_told_adds_up_to_the_outcome() {
    for seed in 0..300 {
        let case = case(seed);
        let mut sums = Sums::default();
        let outcome = observed(&case, FastForward::Off, &mut sums);
        assert_eq!(
            outcome,
            simulate(&case.problem, &case.arch, &case.mapping, Options::default()).unwrap()
        );
        assert_eq!(sums.transfers, outcome.transfers, "seed {seed}");
        assert!(sums.under_way.is_empty(), "seed {seed}");
        assert_eq!(sums.last_arrival, outcome.cycles, "seed {seed}");
        assert_eq!(sums.busy, outcome.busy_cycles, "seed {seed}");
        let mut stalled = outcome.stall_cycles.clone();
        stalled
            .retain(|reason, cycles| *cycles > 0 && !matches!(reason, StallReason::Finished | StallReason::Unmapped));
        assert_eq!(sums.stalled, stalled, "seed {seed}");
        assert!(sums.slots.values().all(|&slots| slots == 0), "seed {seed}");
        let busiest = outcome.occupancy.values().sum::<u64>();
        assert!(sums.occupied.values().sum::<u64>() >= busiest, "seed {seed}");
    }
}

#[test]
fn nothing_is_skipped_in_the_window() {
    let mut skipping = 0;
    for seed in 0..300 {
        let mut case = case(seed);
        case.mapping.levels[0]
            .temporal
            .insert(0, cyclonest_arch::Loop(cyclonest_workloads::Dim::N, 20));
        case.problem.bounds[cyclonest_workloads::Dim::N] *= 20;
        case.mapping.bounds = case.problem.bounds;
        let full = simulate(&case.problem, &case.arch, &case.mapping, Options::default()).unwrap();
        let mut sums = Sums {
            window: Some((full.cycles / 3, full.cycles / 2)),
            ..Sums::default()
        };
        let outcome = observed(&case, FastForward::Eager, &mut sums);
        assert_eq!(outcome.cycles, full.cycles, "seed {seed}");
        let skipped: u64 = sums.skipped.iter().map(|s| s.to - s.from).sum();
        assert_eq!(skipped, outcome.skipped_cycles, "seed {seed}");
        skipping += u64::from(skipped > 0);
    }
    assert!(skipping > 100, "only {skipping} cases skipped something");
}
