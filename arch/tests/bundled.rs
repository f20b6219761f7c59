//! The machines that come with the crate are sound, and say where every constant comes from.

use cyclonest_arch::{Accelerator, bundled};

#[test]
fn every_bundled_machine_reads_and_is_sound() {
    for name in bundled::names() {
        let text = bundled::text(name).unwrap();
        let arch = Accelerator::from_ron(text)
            .unwrap_or_else(|faults| panic!("{}", cyclonest_arch::render(&format!("{name}.ron"), text, &faults)));
        assert_eq!(arch.name, name);
    }
}

#[test]
fn every_constant_of_a_bundled_machine_has_a_source() {
    for name in bundled::names() {
        let arch = bundled::load(name).unwrap();
        assert_eq!(arch.unsourced(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_constant_without_a_source_is_noticed() {
    let mut arch = bundled::load("small3").unwrap();
    arch.sources.remove("PE");
    assert!(arch.unsourced().contains(&"PE.Weights.latency".to_string()));
}

#[test]
fn machines_survive_writing_and_reading() {
    for name in bundled::names() {
        let arch = bundled::load(name).unwrap();
        assert_eq!(Accelerator::from_ron(&arch.to_ron()).unwrap(), arch);
    }
}

#[test]
fn simba_has_the_published_sizes() {
    let arch = bundled::load("simba").unwrap();
    let instances: Vec<(&str, u64)> = arch
        .levels
        .iter()
        .enumerate()
        .map(|(i, l)| (l.name.as_str(), arch.instances(i)))
        .collect();
    assert_eq!(
        instances,
        [
            ("DRAM", 1),
            ("GB", 1),
            ("IBuf", 16),
            ("WBuf", 128),
            ("AccBuf", 128),
            ("Reg", 1024)
        ]
    );
    assert_eq!(arch.lanes(), 1024);
}
