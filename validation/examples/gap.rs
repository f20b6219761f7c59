//! Where the model `exact` misses: collects simulations into a file, and judges the model against them.
//!
//! `gap collect MACHINE SCHEDULER [N]` prints one JSON line per simulated mapping: all distinct layers of all bundled
//! networks, or N random mappings of each of 20 layers. `gap judge FILE…` prints the errors.

use std::collections::BTreeMap;

use cyclonest_arch::{Accelerator, Mapping, bundled};
use cyclonest_scheduler::cost::exact::Evaluator;
use cyclonest_scheduler::{Request, by_name};
use cyclonest_sim::{FastForward, Options, simulate};
use cyclonest_workloads::Problem;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Record {
    id: String,
    machine: String,
    problem: Problem,
    mapping: Mapping,
    cycles: u64,
    busy: u64,
    pes: u64,
    events: u64,
    stalls: BTreeMap<String, u64>,
    occupancy: BTreeMap<String, u64>,
}

const LAYERS: [(&str, &str); 20] = [
    ("resnet50", "conv1"),
    ("resnet50", "layer1.0.conv2"),
    ("resnet50", "layer1.0.conv3"),
    ("resnet50", "layer2.0.conv2"),
    ("resnet50", "layer2.1.conv1"),
    ("resnet50", "layer3.1.conv2"),
    ("resnet50", "layer4.1.conv2"),
    ("resnet50", "layer4.0.downsample.0"),
    ("vgg16", "conv1_1"),
    ("vgg16", "conv3_2"),
    ("vgg16", "conv5_1"),
    ("alexnet", "conv1"),
    ("alexnet", "conv2"),
    ("mobilenet_v2", "3"),
    ("mobilenet_v2", "4"),
    ("mobilenet_v2", "20"),
    ("mobilenet_v2", "21"),
    ("googlenet", "10"),
    ("bert_base", "0"),
    ("resnext50_32x4d", "7"),
];

fn layers() -> Vec<(String, Problem)> {
    let mut seen = std::collections::BTreeSet::new();
    let mut all = Vec::new();
    for name in cyclonest_workloads::bundled::names() {
        let network = cyclonest_workloads::bundled::load(name).expect("bundled");
        for layer in network.distinct() {
            if seen.insert(layer.problem.clone()) {
                all.push((format!("{name}/{}", layer.name), layer.problem));
            }
        }
    }
    all
}

fn chosen() -> Vec<(String, Problem)> {
    let of = |(network, layer): (&str, &str)| {
        let bundled = cyclonest_workloads::bundled::load(network).expect("bundled");
        let distinct = bundled.distinct();
        let index = layer.parse::<usize>().ok();
        let found = match index {
            Some(i) => &distinct[i.min(distinct.len() - 1)],
            None => distinct.iter().find(|l| l.names.iter().any(|n| n == layer)).unwrap_or(&distinct[distinct.len() / 2]),
        };
        (format!("{network}/{}", found.name), found.problem.clone())
    };
    LAYERS.into_iter().map(of).collect()
}

fn steps(arch: &Accelerator, mapping: &Mapping) -> u64 {
    let outside = &mapping.levels[..arch.event_level()];
    outside.iter().flat_map(|l| l.temporal.iter().map(|t| t.1).chain(l.spatial.iter().map(|s| s.1))).product()
}

fn emit(id: String, machine: &str, arch: &Accelerator, problem: &Problem, mapping: Mapping) {
    let options = Options {
        fast_forward: FastForward::On,
        ..Options::default()
    };
    let outcome = match simulate(problem, arch, &mapping, options) {
        Ok(outcome) => outcome,
        Err(error) => return eprintln!("{id}: {error}"),
    };
    let record = Record {
        id,
        machine: machine.into(),
        problem: problem.clone(),
        mapping,
        cycles: outcome.cycles,
        busy: outcome.busy_cycles,
        pes: outcome.pes,
        events: outcome.events,
        stalls: outcome.stall_cycles.iter().map(|(k, v)| (k.to_string(), *v)).collect(),
        occupancy: outcome.occupancy,
    };
    println!("{}", serde_json::to_string(&record).expect("plain data"));
}

fn collect(machine: &str, scheduler: &str, n: Option<u64>, most: u64) {
    let arch = bundled::load(machine).expect("bundled");
    let mut skipped = 0;
    match n {
        None => {
            let s = by_name(scheduler).expect("registered");
            for (id, problem) in layers() {
                match s.schedule(&Request::new(&problem, &arch)) {
                    Ok(scheduled) if steps(&arch, &scheduled.mapping) <= most => emit(id, machine, &arch, &problem, scheduled.mapping),
                    Ok(_) => skipped += 1,
                    Err(error) => eprintln!("{id}: {error}"),
                }
            }
        }
        Some(n) => {
            let s = by_name("random").expect("registered");
            for (id, problem) in chosen() {
                for seed in 0..n {
                    let request = Request {
                        budget: Some(1),
                        seed,
                        ..Request::new(&problem, &arch)
                    };
                    match s.schedule(&request) {
                        Ok(scheduled) if steps(&arch, &scheduled.mapping) <= most => {
                            emit(format!("{id}#{seed}"), machine, &arch, &problem, scheduled.mapping);
                        }
                        Ok(_) => skipped += 1,
                        Err(error) => eprintln!("{id}: {error}"),
                    }
                }
            }
        }
    }
    eprintln!("{skipped} skipped");
}

fn tau(pairs: &[(f64, f64)]) -> f64 {
    let (mut sum, mut n) = (0.0, 0.0);
    for i in 0..pairs.len() {
        for j in 0..i {
            let a = (pairs[i].0 - pairs[j].0).signum() * f64::from(u8::from(pairs[i].0 != pairs[j].0));
            let b = (pairs[i].1 - pairs[j].1).signum() * f64::from(u8::from(pairs[i].1 != pairs[j].1));
            sum += a * b;
            n += 1.0;
        }
    }
    if n > 0.0 { sum / n } else { 1.0 }
}

fn summary(title: &str, rows: &[(f64, f64)]) {
    let n = rows.len() as f64;
    let errors: Vec<f64> = rows.iter().map(|(e, s)| (e - s) / s * 100.0).collect();
    let mean = errors.iter().map(|e| e.abs()).sum::<f64>() / n;
    let bias = errors.iter().sum::<f64>() / n;
    let max = errors.iter().fold(0.0_f64, |a, e| a.max(e.abs()));
    let over = errors.iter().filter(|e| e.abs() > 20.0).count();
    let avg = rows.iter().map(|r| r.1).sum::<f64>() / n;
    let total: f64 = rows.iter().map(|r| (r.1 - avg).powi(2)).sum();
    let rest: f64 = rows.iter().map(|r| (r.1 - r.0).powi(2)).sum();
    println!(
        "{title}: n {n} mean |e| {mean:.2}% bias {bias:+.2}% max {max:.1}% >20%: {over} R² {:.4}",
        1.0 - rest / total
    );
}

fn judge(files: &[String]) {
    let worst: usize = std::env::var("WORST").ok().and_then(|w| w.parse().ok()).unwrap_or(10);
    let only = std::env::var("ONLY").ok();
    for file in files {
        let text = std::fs::read_to_string(file).expect("readable");
        let mut rows = Vec::new();
        let mut evaluator = Evaluator::new();
        let mut arches = BTreeMap::new();
        for line in text.lines() {
            let Ok(r) = serde_json::from_str::<Record>(line) else { continue };
            if only.as_ref().is_some_and(|o| !r.id.contains(o.as_str())) {
                continue;
            }
            let arch = arches
                .entry(r.machine.clone())
                .or_insert_with(|| bundled::load(&r.machine).expect("bundled"));
            if let Err(error) = evaluator.evaluate(&r.problem, arch, &r.mapping) {
                println!("{}: {error}", r.id);
                continue;
            }
            let parts = evaluator.parts(arch);
            rows.push((evaluator.cycles(), parts, r));
        }
        let pairs: Vec<(f64, f64)> = rows.iter().map(|r| (r.0, r.2.cycles as f64)).collect();
        summary(file, &pairs);
        let stalled: Vec<(f64, f64)> = rows
            .iter()
            .filter(|r| r.1[0].1 < 0.8 * r.2.cycles as f64)
            .map(|r| (r.0, r.2.cycles as f64))
            .collect();
        summary("  computing < 80 %", &stalled);
        if rows.first().is_some_and(|r| r.2.id.contains('#')) {
            let mut by: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
            for r in &rows {
                by.entry(r.2.id.split('#').next().unwrap_or("")).or_default().push((r.0, r.2.cycles as f64));
            }
            for (layer, pairs) in by {
                summary(&format!("  tau {:.3} {layer}", tau(&pairs)), &pairs);
            }
        }
        rows.sort_by(|a, b| {
            let e = |r: &(f64, Vec<(String, f64)>, Record)| ((r.0 - r.2.cycles as f64) / r.2.cycles as f64).abs();
            e(b).total_cmp(&e(a))
        });
        for (cycles, parts, r) in rows.iter().take(worst) {
            let parts: Vec<String> = parts.iter().map(|p| format!("{} {:.0}", p.0, p.1)).collect();
            println!(
                "  {:+.1}% {} sim {} est {cycles:.0}: {}",
                (cycles / r.cycles as f64 - 1.0) * 100.0,
                r.id,
                r.cycles,
                parts.join(", ")
            );
            if std::env::var("DETAIL").is_ok() {
                for level in &r.mapping.levels {
                    let loops: Vec<String> = level.temporal.iter().map(|t| format!("{}{}", t.0, t.1)).collect();
                    let spatial: Vec<String> = level.spatial.iter().map(|t| format!("{}{}{:?}", t.0, t.1, t.2)).collect();
                    let keeps: String = level.keeps.iter().map(|t| t.letter()).collect();
                    println!("      {:8} [{}] {{{}}} keeps {keeps}", level.level, loops.join(" "), spatial.join(" "));
                }
                println!("      {:?}", r.problem);
                println!("      busy {:.3}", r.busy as f64 / (r.pes * r.cycles) as f64);
                let mut stalls: Vec<_> = r.stalls.iter().map(|(k, v)| (v, k)).collect();
                stalls.sort_by(|a, b| b.cmp(a));
                for (v, k) in stalls.iter().take(6) {
                    println!("      {k} {:.3}", **v as f64 / (r.pes * r.cycles) as f64);
                }
                let mut occ: Vec<_> = r.occupancy.iter().map(|(k, v)| (v, k)).collect();
                occ.sort_by(|a, b| b.cmp(a));
                for (v, k) in occ.iter().take(5) {
                    println!("      occ {k} {v}");
                }
            }
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("collect") => collect(
            &args[1],
            &args[2],
            args.get(3).and_then(|n| n.parse().ok()).filter(|&n| n > 0),
            args.get(4).and_then(|n| n.parse().ok()).unwrap_or(u64::MAX),
        ),
        Some("judge") => judge(&args[1..]),
        _ => eprintln!("gap collect MACHINE SCHEDULER [N [MOST]] | gap judge FILE…"),
    }
}
