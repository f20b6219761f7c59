//! Broken inputs: each gives its message with file, line and column, exit code 2, and no output file.

use super::{cyclonest, stderr};

/// Runs `simulate` with an output file and returns the message.
fn rejected(arguments: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let target = folder.path().join("result.json");
    let output = cyclonest(&format!("simulate --format json -o {} {arguments}", target.display()));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("readable").collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    stderr(&output)
}

fn arch(file: &str) -> String {
    rejected(&format!("--arch broken/{file} --network tiny.ron"))
}

fn network(file: &str) -> String {
    rejected(&format!("--arch pair.ron --network broken/{file}"))
}

fn mapping(file: &str) -> String {
    rejected(&format!(
        "--arch pair.ron --network tiny.ron --layer conv1 --mapping broken/{file}"
    ))
}

/// One test per broken file, named like it.
macro_rules! broken {
    ($reader:ident: $($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!($reader(concat!(stringify!($name), ".ron")));
        }
    )*};
}

broken!(arch:
    arch_capacity_overflow, arch_empty, arch_latency_too_large, arch_event_level, arch_event_level_outermost, arch_missing_field, arch_negative, arch_no_home,
    arch_no_levels, arch_no_network, arch_not_utf8, arch_overflow, arch_same_level_twice, arch_several, arch_syntax,
    arch_truncated, arch_unknown_field, arch_unknown_tensor, arch_zero_latency,
);

broken!(network:
    network_circle, network_empty, network_kernel_too_large, network_macs_overflow, network_negative,
    network_nothing_to_multiply, network_overflow, network_syntax, network_unknown_input, network_unknown_operator,
    network_zero_bound,
);

broken!(mapping:
    mapping_level_missing, mapping_mesh_too_small, mapping_other_arch, mapping_other_layer, mapping_over_capacity,
    mapping_revisited, mapping_several, mapping_short_product, mapping_syntax, mapping_unknown_layer,
    mapping_unknown_version, mapping_zero_trips,
);

#[test]
fn onnx_truncated() {
    insta::assert_snapshot!(network("onnx_truncated.onnx"));
}

#[test]
fn onnx_unsupported_operator() {
    insta::assert_snapshot!(network("onnx_unsupported_operator.onnx"));
}

#[test]
fn an_input_shape_for_a_network_that_has_one() {
    insta::assert_snapshot!(rejected("--arch pair.ron --network tiny.ron --input-shape 1x4x6x6"));
}

#[test]
fn every_broken_file_has_a_test() {
    let tested = [include_str!("broken.rs"), include_str!("explore.rs")].concat();
    for entry in std::fs::read_dir(super::inputs().join("broken")).expect("readable") {
        let name = entry.expect("readable").file_name().into_string().expect("UTF-8");
        let stem = name.split('.').next().unwrap_or_default();
        assert!(tested.contains(stem), "{name} is not tested");
    }
}

#[test]
fn a_missing_file() {
    insta::assert_snapshot!(arch("no_such_file.ron"));
}

#[test]
fn a_folder_instead_of_a_file() {
    insta::assert_snapshot!(rejected("--arch ../inputs --network tiny.ron"));
}

#[test]
fn a_network_instead_of_an_accelerator() {
    insta::assert_snapshot!(rejected("--arch tiny.ron --network tiny.ron"));
}

#[test]
fn an_accelerator_instead_of_a_mapping() {
    insta::assert_snapshot!(mapping("../pair.ron"));
}

#[test]
fn layers_without_a_mapping() {
    insta::assert_snapshot!(rejected("--arch pair.ron --network tiny.ron --mapping conv1.ron"));
}

#[test]
fn faults_of_all_files_at_once() {
    insta::assert_snapshot!(rejected(
        "--arch broken/arch_zero_latency.ron --network broken/network_zero_bound.ron \
         --mapping broken/mapping_syntax.ron"
    ));
}

#[test]
fn an_output_folder_that_does_not_exist() {
    let output = cyclonest("simulate --arch pair.ron --network tiny.ron -o nowhere/result.txt");
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(stderr(&output));
}

#[test]
fn check_reports_every_file() {
    let output = cyclonest("check pair.ron broken/arch_several.ron tiny.ron broken/network_empty.ron");
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(format!("{}{}", super::stdout(&output), stderr(&output)));
}
