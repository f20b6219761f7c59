//! Silicon and RTL: what the documentation says of the errors holds.

use cyclonest_validation::published::{eyeriss, gemmini};

#[test]
fn the_chip_is_met_within_the_documented_errors() {
    let report = eyeriss::run().unwrap();
    assert_eq!(report.rows.len(), 19);
    let mean = |name: &str| report.means.iter().find(|m| m.network == name).unwrap().simulated;
    // MAESTRO's published error on AlexNet is 4.26 %.
    assert!(mean("alexnet") < 0.0426, "{}", mean("alexnet"));
    assert!(mean("vgg16") < 0.035, "{}", mean("vgg16"));
    assert!(report.pair_error.abs() < 0.03, "{}", report.pair_error);
    for row in &report.rows {
        assert!(row.error().abs() < 0.07, "{row:?}");
        // The rows and columns of CONV3 are published, its traffic is that of CONV4's mapping.
        if !(row.layer == "CONV3" && row.mapping == "published") {
            assert!((row.glb_counted / row.glb_published - 1.0).abs() < 0.01, "{row:?}");
        }
        assert_eq!(row.active_pes.0, row.active_pes.1, "{row:?}");
        assert!(row.glb_bytes <= 25 * 4096, "{row:?}");
    }
}

#[test]
fn the_rtl_is_met_better_than_by_timeloop() {
    // Every fourth record: those left out are as different from each other as those taken.
    let some: Vec<&str> = gemmini::RECORDS.lines().step_by(4).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("some.jsonl");
    std::fs::write(&file, some.join("\n")).unwrap();
    let report = gemmini::run(&[file], 0).unwrap();
    assert_eq!((report.rows.len(), report.failed.len()), (some.len(), 0));
    let of = |name: &str| report.agreement.iter().find(|a| a.0 == name).unwrap().1;
    let (ours, timeloop) = (of("simulation"), of("Timeloop"));
    assert!(ours.mean_error.unwrap().value < timeloop.mean_error.unwrap().value);
    assert!(ours.median_error < timeloop.median_error);
    assert_eq!(report.sensitivity.len(), 5);
}

#[test]
fn a_record_that_cannot_be_read_is_reported_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.jsonl");
    std::fs::write(&file, "{}\n").unwrap();
    let report = gemmini::run(&[&file], 0).unwrap();
    assert!(report.rows.is_empty());
    assert!(
        report.failed[0].contains("broken.jsonl:1: missing field"),
        "{:?}",
        report.failed
    );
    assert!(gemmini::run(&[folder.path().join("none.jsonl")], 0).is_err());
}
