use cyclonest_testkit::{generate::case, oracle};
#[test]
fn dbg() {
    let seed: u64 = std::env::var("SEED").unwrap().parse().unwrap();
    let c = case(seed);
    println!(
        "{:?} {:?} {:?} {:?}",
        c.problem.bounds, c.problem.stride, c.problem.dilation, c.problem.padding
    );
    for l in &c.mapping.levels {
        println!("{l:?}");
    }
    println!("E {:?} {:?} {:?}", c.arch.event_level, c.arch.compute, c.arch.words);
    for l in &c.arch.levels {
        println!("{} {:?}", l.name, l.mesh);
        for b in &l.banks {
            println!("   {b:?}");
        }
        println!("   {:?}", l.below);
    }
    let o = oracle::simulate(&c.problem, &c.arch, &c.mapping, oracle::Options::default()).unwrap();
    for l in &o.log {
        println!("{l}");
    }
    println!("{:?}\n{:?} {:?}", o.stall_cycles, o.cycles, o.fault);
    let e = cyclonest_sim::simulate(
        &c.problem,
        &c.arch,
        &c.mapping,
        cyclonest_sim::Options {
            check_values: true,
            ..Default::default()
        },
    )
    .unwrap();
    println!("{:?}\n{:?} {:?}", e.stall_cycles, e.cycles, e.values);
}
