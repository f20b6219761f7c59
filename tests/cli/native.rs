//! `validate native`, `host` and the scheduler `csa`.

use super::{cyclonest, stderr, stdout};

#[test]
fn a_network_runs_without_any_library_and_every_output_is_right() {
    let output = cyclonest("validate native --network lenet --samples 1 --openblas none.so --onednn none.so");
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(text.contains("OpenBLAS: skipped: "), "{text}");
    assert!(text.contains("oneDNN: skipped: "), "{text}");
    assert!(text.contains("every output is within the error bound"), "{text}");
}

#[test]
fn a_report_is_written_again_from_its_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("native.json");
    let file = file.display();
    let measured = cyclonest(&format!(
        "validate native --network lenet --layer conv1 --samples 1 --openblas none.so --onednn none.so --format json -o {file}"
    ));
    assert_eq!(measured.status.code(), Some(0), "{}", stderr(&measured));
    let csv = stdout(&cyclonest(&format!("validate native --report {file} --format csv")));
    let mut lines = csv.lines();
    assert!(lines.next().expect("a header").starts_with("layer,count,"), "{csv}");
    assert!(lines.all(|line| line.starts_with("lenet:conv1,1,")), "{csv}");
}

#[test]
fn csa_maps_onto_machines_with_the_memories_of_a_cpu_only() {
    let simulated = cyclonest("simulate --arch skylake_x --network lenet --scheduler csa --check-values");
    assert_eq!(simulated.status.code(), Some(0), "{}", stderr(&simulated));
    let refused = cyclonest("simulate --arch small3 --network lenet --scheduler csa");
    assert_eq!(refused.status.code(), Some(1));
    let text = stdout(&refused) + &stderr(&refused);
    assert!(text.contains("registers inside its PE level"), "{text}");
}
