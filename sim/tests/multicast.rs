//! What taking away the multicast of weights costs: the table in `docs/timing.md`.
//!
//! The layers are convolutions of ResNet-50 with output rows and columns spread over 4×4 PEs, so that every PE
//! needs the same weights. The rows of the table must be what comes out.

use cyclonest_arch::{Accelerator, Mapping, Passes, bundled};
use cyclonest_sim::{Options, Outcome, simulate};
use cyclonest_workloads::{Problem, Tensor};

/// A layer on a machine, with and without multicast of weights.
struct Pair {
    multicast: Outcome,
    unicast: Outcome,
    /// Level above the network in question.
    level: usize,
}

fn run(name: &str, machine: &Accelerator, level: usize, problem: &str, mapping: &str) -> Pair {
    let problem: Problem = ron::from_str(problem).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mapping: Mapping = ron::from_str(mapping).unwrap_or_else(|e| panic!("{name}: {e}"));
    let run = |arch: &Accelerator| {
        assert!(arch.check().is_empty(), "{:?}", arch.check());
        simulate(&problem, arch, &mapping, Options::default()).unwrap_or_else(|e| panic!("{name}: {e}"))
    };
    let mut unicast = machine.clone();
    for network in unicast.levels.iter_mut().filter_map(|l| l.below.as_mut()) {
        network.multicast = network.multicast.iter().filter(|&t| t != Tensor::Weights).collect();
    }
    let pair = Pair {
        multicast: run(machine),
        unicast: run(&unicast),
        level,
    };
    let row = format!(
        "| {name} | {} × 16 | {} | {} | {} | {} | {:.3} | {:.3} |",
        grouped(passes(&pair.multicast, level, 16).words),
        grouped(pair.multicast.cycles),
        grouped(passes(&pair.unicast, level, 1).words),
        grouped(pair.unicast.cycles),
        grouped(words(&pair.unicast, level)),
        pair.unicast.cycles as f64 / pair.multicast.cycles as f64,
        pair.unicast.cycles as f64 / words(&pair.unicast, level) as f64,
    );
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/timing.md");
    let document = std::fs::read_to_string(document).unwrap();
    assert!(document.lines().any(|line| line == row), "docs/timing.md lacks\n{row}");
    pair
}

/// What passes the network with weights for `degree` children.
fn passes(outcome: &Outcome, level: usize, degree: u64) -> Passes {
    let down = &outcome.counts.levels[level].network[Tensor::Weights].down;
    down.get(&degree).copied().unwrap_or_default()
}

/// A number as the document writes it: 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Cycles that everything that goes down the weights' channel occupies it. It is one word per cycle.
fn words(outcome: &Outcome, level: usize) -> u64 {
    let channel = |t: Tensor| {
        outcome.counts.levels[level].network[t]
            .down
            .values()
            .map(|p| p.words)
            .sum::<u64>()
    };
    let name = &outcome.counts.levels[level].name;
    if outcome.occupancy.contains_key(&format!("{name} network down")) {
        Tensor::ALL.into_iter().map(channel).sum()
    } else {
        channel(Tensor::Weights)
    }
}

impl Pair {
    /// Unicast words are Σ degree × multicast words, exactly, and the same elements reach the PEs.
    fn words_add_up(&self) {
        let passes = |o: &Outcome| o.counts.levels[self.level].network[Tensor::Weights].down.clone();
        let (multicast, unicast) = (passes(&self.multicast), passes(&self.unicast));
        assert!(multicast.keys().any(|&degree| degree >= 16), "{multicast:?}");
        assert_eq!(unicast.keys().copied().collect::<Vec<_>>(), [1]);
        assert_eq!(
            unicast[&1].words,
            multicast.iter().map(|(d, p)| d * p.words).sum::<u64>()
        );
        assert_eq!(
            unicast[&1].elements,
            multicast.iter().map(|(d, p)| d * p.elements).sum::<u64>()
        );
        for (a, b) in self.multicast.counts.levels.iter().zip(&self.unicast.counts.levels) {
            let fills = |l: &cyclonest_arch::LevelCounts| l.tensors[Tensor::Weights].fills;
            assert_eq!(fills(a), fills(b), "{}", a.name);
        }
        assert_eq!(self.multicast.busy_cycles, self.unicast.busy_cycles);
    }

    /// Unicast takes its words ÷ width, to 5 %.
    fn is_bound_by_the_network(&self) {
        let bound = words(&self.unicast, self.level);
        assert!(self.unicast.cycles >= bound);
        assert!(
            self.unicast.cycles * 100 <= bound * 105,
            "{} of {bound}",
            self.unicast.cycles
        );
        assert!(self.unicast.cycles > 2 * self.multicast.cycles);
    }
}

fn grid16() -> Accelerator {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/multicast/grid16.ron");
    ron::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The last stage's 3×3 convolution: 2.4 million weights for 49 pixels.
const CONV5: &str = "(bounds: { K: 512, C: 512, P: 7, Q: 7, R: 3, S: 3 },
    padding: (top: 1, bottom: 1, left: 1, right: 1))";
/// The second stage's 3×3 convolution: 36,864 weights for 3,136 pixels.
const CONV2: &str = "(bounds: { K: 64, C: 64, P: 56, Q: 56, R: 3, S: 3 },
    padding: (top: 1, bottom: 1, left: 1, right: 1))";
/// The first convolution: 9,408 weights for 12,544 pixels.
const CONV1: &str = "(bounds: { K: 64, C: 3, P: 112, Q: 112, R: 7, S: 7 }, stride: (2, 2),
    padding: (top: 3, bottom: 2, left: 3, right: 2))";

#[test]
fn a_network_bound_layer_takes_its_unicast_words_over_the_width() {
    let pair = run("conv5 3×3, grid16 | computing, then the network", &grid16(), 0, CONV5,
        "(bounds: { K: 512, C: 512, P: 7, Q: 7, R: 3, S: 3 }, levels: [
            (level: \"Buffer\", temporal: [(K, 256)], spatial: [(P, 4, X), (Q, 4, Y)], keeps: [Weights, Inputs, Outputs]),
            (level: \"PE\", temporal: [(C, 64), (R, 3), (S, 3), (K, 2), (P, 2), (Q, 2)], spatial: [(C, 8, X)],
                keeps: [Weights, Inputs, Outputs])])");
    pair.words_add_up();
    pair.is_bound_by_the_network();
}

#[test]
fn a_compute_bound_layer_does_not_change() {
    let pair = run("conv2 3×3, grid16 | computing", &grid16(), 0, CONV2,
        "(bounds: { K: 64, C: 64, P: 56, Q: 56, R: 3, S: 3 }, levels: [
            (level: \"Buffer\", temporal: [(K, 16)], spatial: [(P, 4, X), (Q, 4, Y)], keeps: [Weights, Inputs, Outputs]),
            (level: \"PE\", temporal: [(C, 8), (R, 3), (S, 3), (K, 4), (P, 14), (Q, 14)], spatial: [(C, 8, X)],
                keeps: [Weights, Inputs, Outputs])])");
    pair.words_add_up();
    // Even the first fill hides behind that of the inputs, which are 16 different tiles either way.
    assert_eq!(pair.unicast.cycles, pair.multicast.cycles);
    let stalled = |o: &Outcome| o.stall_cycles.values().sum::<u64>();
    assert_eq!(stalled(&pair.unicast), stalled(&pair.multicast));
}

#[test]
fn on_simba_a_network_bound_layer_takes_its_unicast_words_over_the_width() {
    let pair = run(
        "conv5 3×3, simba | the network",
        &bundled::load("simba").unwrap(),
        1,
        CONV5,
        "(bounds: { K: 512, C: 512, P: 7, Q: 7, R: 3, S: 3 }, levels: [
            (level: \"DRAM\", temporal: [(K, 16)], keeps: [Weights, Inputs, Outputs]),
            (level: \"GB\", temporal: [(C, 2)], spatial: [(P, 4, X), (Q, 4, Y)], keeps: [Inputs, Outputs]),
            (level: \"IBuf\", spatial: [(K, 8, X)], keeps: [Inputs]),
            (level: \"WBuf\", temporal: [(C, 32), (R, 3), (S, 3)], keeps: [Weights]),
            (level: \"AccBuf\", temporal: [(K, 4), (P, 2), (Q, 2)], spatial: [(C, 8, X)], keeps: [Outputs]),
            (level: \"Reg\", keeps: [Weights])])",
    );
    pair.words_add_up();
    pair.is_bound_by_the_network();
}

#[test]
fn on_simba_a_layer_that_its_inputs_limit_pays_for_its_first_weights_only() {
    let pair = run(
        "conv1 7×7, simba | its inputs",
        &bundled::load("simba").unwrap(),
        1,
        CONV1,
        "(bounds: { K: 64, C: 3, P: 112, Q: 112, R: 7, S: 7 }, levels: [
            (level: \"DRAM\", temporal: [(K, 8), (P, 14)], keeps: [Weights, Inputs, Outputs]),
            (level: \"GB\", temporal: [(Q, 1)], spatial: [(P, 4, X), (Q, 4, Y)], keeps: [Inputs, Outputs]),
            (level: \"IBuf\", spatial: [(K, 8, X)], keeps: [Inputs]),
            (level: \"WBuf\", temporal: [(C, 3), (R, 7)], keeps: [Weights]),
            (level: \"AccBuf\", temporal: [(P, 2), (Q, 28)], spatial: [(S, 7, X)], keeps: [Outputs]),
            (level: \"Reg\", keeps: [Weights])])",
    );
    pair.words_add_up();
    let first = words(&pair.unicast, 1) / 8;
    assert!(pair.unicast.cycles - pair.multicast.cycles <= first);
    assert!(pair.unicast.cycles * 100 <= pair.multicast.cycles * 103);
}
