//! The events of a trace add up to the counters of the run.

use std::collections::{BTreeMap, BTreeSet};

use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_scheduler::Request;
use cyclonest_sim::{FastForward, Options, Outcome, simulate_observed};
use cyclonest_workloads::{Dim, DimMap, Problem};
use serde_json::{Value, json};

use super::{Trace, Window};

fn simba() -> Accelerator {
    crate::inputs::arch("simba").expect("bundled")
}

/// A layer small enough that all of its events can be looked at.
fn small() -> Problem {
    let bounds = DimMap::from_fn(|dim| match dim {
        Dim::K => 16,
        Dim::C => 32,
        Dim::P | Dim::Q => 8,
        Dim::R | Dim::S => 3,
        _ => 1,
    });
    Problem::new(bounds)
}

fn mapped(problem: &Problem, arch: &Accelerator) -> Mapping {
    let scheduler = crate::inputs::scheduler("greedy").expect("built in");
    scheduler
        .schedule(&Request::new(problem, arch))
        .expect("has a mapping")
        .mapping
}

/// The small layer.
fn traced(fast_forward: FastForward, window: Option<Window>) -> (Value, Outcome, Accelerator) {
    let (arch, problem) = (simba(), small());
    let mapping = mapped(&problem, &arch);
    run(fast_forward, window, arch, &problem, &mapping)
}

/// Twenty images of the small layer, one after the other.
fn repeated(fast_forward: FastForward, window: Option<Window>) -> (Value, Outcome, Accelerator) {
    let (arch, mut problem) = (simba(), small());
    let mut mapping = mapped(&problem, &arch);
    mapping.levels[0].temporal.insert(0, cyclonest_arch::Loop(Dim::N, 20));
    problem.bounds[Dim::N] = 20;
    mapping.bounds = problem.bounds;
    run(fast_forward, window, arch, &problem, &mapping)
}

fn run(
    fast_forward: FastForward,
    window: Option<Window>,
    arch: Accelerator,
    problem: &Problem,
    mapping: &Mapping,
) -> (Value, Outcome, Accelerator) {
    let options = Options {
        fast_forward,
        ..Options::default()
    };
    let mut text = Vec::new();
    let mut trace = Trace::begin(&mut text, &arch, mapping, window);
    let outcome = simulate_observed(problem, &arch, mapping, options, &mut trace).expect("valid");
    trace.end(json!({}), &outcome).expect("memory can be written");
    (serde_json::from_slice(&text).expect("a trace is JSON"), outcome, arch)
}

fn events(trace: &Value) -> &Vec<Value> {
    trace["traceEvents"].as_array().expect("a list")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a whole number")
}

/// Sums of `dur` by the key of the event.
fn durations(trace: &Value, key: impl Fn(&Value) -> Option<String>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for event in events(trace).iter().filter(|e| e["ph"] == "X") {
        if let Some(key) = key(event) {
            *sums.entry(key).or_default() += number(&event["dur"]);
        }
    }
    sums
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

#[test]
fn bursts_and_stalls_add_up_to_the_pe_cycles_of_the_run() {
    let (trace, outcome, arch) = traced(FastForward::Off, None);
    let busy = durations(&trace, |e| (e["cat"] == "compute").then(String::new));
    assert_eq!(busy[""], outcome.busy_cycles);
    let stalls = durations(&trace, |e| (e["cat"] == "stall").then(|| text(&e["name"])));
    for (reason, cycles) in &outcome.stall_cycles {
        let name = crate::report::reason_name(*reason, &arch);
        if *cycles > 0 && reason.operand().is_some() {
            assert_eq!(stalls.get(&name), Some(cycles), "{name}");
        }
    }
}

#[test]
fn intervals_of_ports_and_networks_add_up_to_their_occupancy() {
    let (trace, outcome, _) = traced(FastForward::Off, None);
    let names: BTreeMap<(u64, u64), String> = events(&trace)
        .iter()
        .filter(|e| e["name"] == "thread_name")
        .map(|e| ((number(&e["pid"]), number(&e["tid"])), text(&e["args"]["name"])))
        .collect();
    let mut tracks: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for event in events(&trace)
        .iter()
        .filter(|e| e["ph"] == "X" && e["args"]["transfer"].is_u64())
    {
        *tracks
            .entry((number(&event["pid"]), number(&event["tid"])))
            .or_default() += number(&event["dur"]);
    }
    // Of the instances of a port or channel, the busiest: `Level bank 0 read port` is `Level 3 bank 0 read port` here.
    let mut busiest: BTreeMap<String, u64> = BTreeMap::new();
    for (track, cycles) in tracks {
        let name = &names[&track];
        let mut words: Vec<&str> = name.split(' ').collect();
        words.remove(1);
        if ["down", "up", "bus"].contains(&words[1]) {
            words.insert(1, "network");
        }
        let most = busiest.entry(words.join(" ")).or_default();
        *most = cycles.max(*most);
    }
    let mut expected = outcome.occupancy.clone();
    expected.retain(|_, cycles| *cycles > 0);
    busiest.retain(|_, cycles| *cycles > 0);
    assert_eq!(busiest, expected);
}

#[test]
fn transfers_add_up_to_traffic_and_bit_hops() {
    let (trace, outcome, arch) = traced(FastForward::Off, None);
    let mut hops: BTreeMap<String, u64> = BTreeMap::new();
    for link in trace["otherData"]["links"].as_array().expect("a list") {
        let key = format!("{} {}", text(&link["network_below"]), text(&link["tensor"]));
        *hops.entry(key).or_default() += number(&link["bits"]);
    }
    let mut transfers = std::collections::BTreeSet::new();
    for event in events(&trace) {
        if let Some(number) = event["args"]["transfer"].as_u64() {
            transfers.insert(number);
        }
    }
    assert_eq!(transfers.len() as u64, outcome.transfers);
    for (level, counts) in arch.levels.iter().zip(&outcome.counts.levels) {
        for (tensor, traffic) in counts.network.iter() {
            let key = format!("{} {tensor}", level.name);
            assert_eq!(hops.get(&key).copied().unwrap_or(0), traffic.bit_hops, "{key}");
        }
    }
}

#[test]
fn a_pe_computes_and_waits_without_gaps_and_the_trace_shows_double_buffering_and_multicast() {
    let (trace, outcome, arch) = traced(FastForward::Off, None);
    let pes = trace["otherData"]["pes"].as_array().expect("a list");
    // Every PE of the machine has its place, whether it has work or not.
    let places: BTreeSet<(u64, u64)> = pes.iter().map(|pe| (number(&pe["x"]), number(&pe["y"]))).collect();
    assert_eq!(places.len(), pes.len());
    assert_eq!(pes.len() as u64, arch.instances(arch.event_level()));
    let computing: u64 = pes.iter().map(|pe| number(&pe["computing_cycles"])).sum();
    assert_eq!(computing, outcome.busy_cycles);
    let mut of: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for event in events(&trace)
        .iter()
        .filter(|e| e["cat"] == "compute" || e["cat"] == "stall")
    {
        let (ts, dur) = (number(&event["ts"]), number(&event["dur"]));
        of.entry(number(&event["tid"])).or_default().push((ts, ts + dur));
    }
    for intervals in of.values_mut() {
        intervals.sort_unstable();
        assert_eq!(intervals[0].0, 0);
        assert!(intervals.windows(2).all(|pair| pair[0].1 == pair[1].0), "{intervals:?}");
    }
    // A transfer that serves several children, and one that arrives while a PE computes what came before.
    let served = |e: &Value| e["args"]["children"].as_u64().unwrap_or(0);
    assert!(events(&trace).iter().any(|e| served(e) > 1), "no multicast");
    let computes = &of[&0];
    assert!(
        events(&trace).iter().any(|e| {
            let ts = e["ts"].as_u64().unwrap_or(0);
            e["args"]["kind"] == "fill" && computes.iter().any(|(from, to)| ts > *from && ts < *to)
        }),
        "nothing is loaded while PE 0 computes"
    );
}

#[test]
fn skipped_stretches_and_what_they_repeat_cover_the_run() {
    let (full, outcome, _) = repeated(FastForward::Off, None);
    let (short, again, _) = repeated(FastForward::Eager, None);
    assert_eq!(outcome.cycles, again.cycles);
    assert!(again.skipped_cycles > 0, "nothing recurs: choose another layer");
    let marks: Vec<&Value> = events(&short).iter().filter(|e| e["cat"] == "skipped").collect();
    let skipped: u64 = marks.iter().map(|e| number(&e["dur"])).sum();
    assert_eq!(skipped, again.skipped_cycles);
    assert_eq!(number(&short["otherData"]["skipped_cycles"]), skipped);
    assert!(events(&short).len() < events(&full).len());
    // Every mark repeats a stretch before it: what the full trace shows in the mark, period by period, is what it shows
    // there.
    let between = |from: u64, to: u64| -> u64 {
        events(&full)
            .iter()
            .filter(|e| e["cat"] == "compute")
            .map(|e| (number(&e["ts"]), number(&e["ts"]) + number(&e["dur"])))
            .map(|(start, end)| end.min(to).saturating_sub(start.max(from)))
            .sum()
    };
    for mark in marks {
        let (from, dur) = (number(&mark["ts"]), number(&mark["dur"]));
        let (like, period, times) = (
            number(&mark["args"]["like_cycle"]),
            number(&mark["args"]["period_cycles"]),
            number(&mark["args"]["times"]),
        );
        assert_eq!(period * times, dur);
        assert_eq!(between(from, from + dur), times * between(like, like + period));
    }
}

#[test]
fn a_window_is_written_whole_and_alone() {
    let (full, outcome, _) = repeated(FastForward::Off, None);
    let window = Window {
        from: outcome.cycles / 3,
        to: outcome.cycles / 2,
    };
    let (part, _, _) = repeated(FastForward::Eager, Some(window));
    let inside = |trace: &Value| -> Vec<String> {
        let mut all: Vec<String> = events(trace)
            .iter()
            .filter(|e| e["ph"] == "X" && e["cat"] != "skipped")
            .filter(|e| {
                let (from, dur) = (number(&e["ts"]), number(&e["dur"]));
                from < window.to && from + dur.max(1) > window.from
            })
            .map(|e| {
                // Transfers are numbered as they are simulated, and skipped ones are not.
                let mut e = e.clone();
                if let Some(args) = e["args"].as_object_mut() {
                    args.remove("transfer");
                }
                e.to_string()
            })
            .collect();
        all.sort();
        all
    };
    let (here, there) = (inside(&part), inside(&full));
    if let Some(at) = (0..here.len().max(there.len())).find(|&i| here.get(i) != there.get(i)) {
        panic!("{:?} in the window, {:?} in the whole", here.get(at), there.get(at));
    }
    let others = events(&part)
        .iter()
        .filter(|e| e["ph"] == "X" && e["cat"] != "skipped")
        .count();
    assert_eq!(others, inside(&part).len());
}

#[test]
fn windows_are_read() {
    assert_eq!("10:20".parse(), Ok(Window { from: 10, to: 20 }));
    for wrong in ["", "10", "20:10", "a:b", "10:10", "-1:5"] {
        assert!(wrong.parse::<Window>().is_err(), "{wrong}");
    }
}
