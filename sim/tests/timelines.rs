//! Small timelines worked out by hand from the rules (`tests/data/timelines`, explained in `docs/timelines.md`; the
//! worked example in `docs/timing.md`), against the engine and against the oracle: a misreading that both share shows here.

use std::path::Path;

use cyclonest_arch::{Accelerator, Counts, Mapping};
use cyclonest_sim::{Options, StallReason, Values, simulate};
use cyclonest_testkit::oracle::{self, Stall};
use cyclonest_workloads::{Problem, Tensor, TensorMap};
use serde::Deserialize;

/// A case and what comes out of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Timeline {
    problem: Problem,
    arch: Accelerator,
    mapping: Mapping,
    cycles: u64,
    /// PE-cycles in bursts, and after the last burst.
    busy: u64,
    finished: u64,
    /// Elements read at the outermost level.
    reads: TensorMap<u64>,
}

fn load(name: &str) -> Timeline {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/timelines")
        .join(name)
        .with_extension("ron");
    let text = std::fs::read_to_string(&path).unwrap();
    ron::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn check(name: &str) {
    let t = load(name);
    assert!(t.arch.check().is_empty(), "{name}: {:?}", t.arch.check());
    let reads = |counts: &Counts| TensorMap::from_fn(|tensor: Tensor| counts.levels[0].tensors[tensor].reads);
    let expected = (t.cycles, t.busy, t.finished, t.reads);

    let o = oracle::simulate(&t.problem, &t.arch, &t.mapping, oracle::Options::default()).unwrap();
    assert_eq!(o.fault, None, "{name}");
    let finished = o.stall_cycles.get(&Stall::Finished).copied().unwrap_or(0);
    assert_eq!(
        (o.cycles, o.busy_cycles, finished, reads(&o.counts)),
        expected,
        "{name}, oracle:\n{}",
        o.log.join("\n")
    );

    let options = Options {
        check_values: true,
        ..Options::default()
    };
    let e = simulate(&t.problem, &t.arch, &t.mapping, options).unwrap();
    assert_eq!(e.values, Values::Equal, "{name}");
    let finished = e.stall_cycles.get(&StallReason::Finished).copied().unwrap_or(0);
    assert_eq!(
        (e.cycles, e.busy_cycles, finished, reads(&e.counts)),
        expected,
        "{name}, engine"
    );
}

macro_rules! timelines {
    ($($name:ident)*) => { $(#[test] fn $name() { check(stringify!($name)); })* };
}

timelines! {
    single_slot
    double_slots
    revisited_partial_sums
    shared_port
    multicast_waits_for_all
    unicast
    tree
    chain
    read_modify_write
    clipped_tile
    bypass
    fifo
    no_fifo
    worked_example
}

#[test]
fn the_picture_of_the_worked_example_has_the_occupancy_and_the_stalls_of_the_engine() {
    let t = load("worked_example");
    let e = simulate(&t.problem, &t.arch, &t.mapping, Options::default()).unwrap();
    // Columns of the picture that are not dots.
    let drawn = [
        ("DRAM bank 0 port", 15),
        ("DRAM network down", 11),
        ("GB bank 0 write port", 7),
        ("GB bank 0 read port", 8),
        ("GB network down", 24),
        ("GB network up", 8),
        ("DRAM network up", 4),
    ];
    for (name, cycles) in drawn {
        assert_eq!(e.occupancy[name], cycles, "{name}");
    }
    // Both PEs begin at 14; the last burst ends at 42, the layer at 51.
    assert_eq!(e.fill_stall_cycles.values().sum::<u64>(), 2 * 14);
    assert_eq!(e.drain_cycles, 51 - 42);
    let stalled = |operand| {
        let of = |(reason, cycles): (&StallReason, &u64)| (reason.operand() == Some(operand)).then_some(*cycles);
        e.stall_cycles.iter().filter_map(of).sum::<u64>()
    };
    // PE 0 waits 4 cycles for inputs and 12 for weights, PE 1 2 and 16.
    assert_eq!(
        Tensor::ALL.map(stalled),
        TensorMap::from_fn(|t| match t {
            Tensor::Weights => 12 + 16,
            Tensor::Inputs => 4 + 2,
            Tensor::Outputs => 0,
        })
        .0
    );
}
