//! Mappings: reading, writing and what makes them valid.

use cyclonest_arch::{Mapping, Mappings, bundled};
use cyclonest_workloads::{Dim, DimMap, Padding, Problem};

const RESNET_CONV: &str = include_str!("data/simba_mapping.ron");

/// A 3×3 convolution of ResNet-50's first stage.
fn conv() -> Problem {
    let mut problem = Problem::new(DimMap([1, 1, 64, 64, 56, 56, 3, 3]));
    problem.padding = Padding {
        top: 1,
        bottom: 1,
        left: 1,
        right: 1,
    };
    problem
}

fn mapping() -> Mapping {
    Mappings::from_ron(RESNET_CONV).unwrap().layers["layer1.0.conv2"].clone()
}

#[test]
fn a_valid_mapping_has_no_violation() {
    assert_eq!(mapping().check(&conv(), &bundled::load("simba").unwrap()), []);
}

#[test]
fn mappings_survive_writing_and_reading() {
    let mappings = Mappings::from_ron(RESNET_CONV).unwrap();
    assert_eq!(Mappings::from_ron(&mappings.to_ron()).unwrap(), mappings);
    assert_eq!(Mapping::from_ron(&mapping().to_ron()).unwrap(), mapping());
}

#[test]
fn tiles_are_clipped_and_leave_padding_out() {
    use cyclonest_workloads::Tensor::{Inputs, Outputs, Weights};
    let (mapping, conv) = (mapping(), conv());
    // GB: 2 output rows see 4 input rows; 58 columns with padding, 56 without.
    assert_eq!(mapping.tile_elements(&conv, 1, Inputs), 64 * 4 * 56);
    assert_eq!(mapping.tile_elements(&conv, 1, Outputs), 64 * 2 * 56);
    assert_eq!(mapping.tile_elements(&conv, 3, Weights), 2 * 16 * 9);
    assert_eq!(mapping.tile_extents(&conv, 0)[Dim::P], 56);
}
