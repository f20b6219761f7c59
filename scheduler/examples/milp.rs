//! CPU time, nodes and gap of the program of `milp` alone, for every distinct layer of a network on a machine.
//!
//! `cargo run --release -p cyclonest-scheduler --example milp -- simba resnet50`, with `--features highs` for HiGHS.

use std::time::Instant;

use cyclonest_scheduler::{Milp, Request, Scheduler as _};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let arch = arguments.next().unwrap_or_else(|| "simba".into());
    let network = arguments.next().unwrap_or_else(|| "resnet50".into());
    let (Some(arch), Some(network)) = (
        cyclonest_arch::bundled::load(&arch),
        cyclonest_workloads::bundled::load(&network),
    ) else {
        eprintln!("a bundled machine and a bundled network are expected, not {arch} and {network}");
        std::process::exit(2);
    };
    let milp = Milp::default();
    let mut seconds = Vec::new();
    for layer in network.distinct() {
        let request = Request {
            budget: Some(0),
            ..Request::new(&layer.problem, &arch)
        };
        let start = cpu_seconds();
        let found = milp.schedule(&request);
        let spent = cpu_seconds() - start;
        seconds.push(spent);
        match found.map(|found| found.proof) {
            Ok(Some(proof)) => println!(
                "{:24} {spent:8.3} s {:>7} nodes  objective {:8.4}  gap {:.4}{}",
                layer.name,
                proof.nodes.map_or_else(|| "–".into(), |nodes| nodes.to_string()),
                proof.objective,
                proof.gap(),
                if proof.proven { "" } else { "  unproven" }
            ),
            Ok(None) => println!("{:24} {spent:8.3} s", layer.name),
            Err(error) => println!("{:24} {spent:8.3} s  {error}", layer.name),
        }
    }
    seconds.sort_by(f64::total_cmp);
    println!(
        "median {:.3} s, most {:.3} s",
        seconds.get(seconds.len() / 2).copied().unwrap_or(0.0),
        seconds.last().copied().unwrap_or(0.0)
    );
}

/// CPU seconds of this thread; wall-clock seconds where the system does not tell.
fn cpu_seconds() -> f64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let start = START.get_or_init(Instant::now);
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .map_or_else(|| start.elapsed().as_secs_f64(), |ns| ns as f64 * 1e-9)
}
