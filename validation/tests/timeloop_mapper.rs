//! The record of Timeloop's mapper is one of the layers that we map.

use cyclonest_workloads::{Dim, bundled};

const RECORD: &str = include_str!("../data/timeloop_mapper_simba_resnet50.csv");

#[test]
fn timeloop_s_mapper_was_run_on_every_layer_shape_of_resnet50() {
    let mut shapes: Vec<Vec<u64>> = bundled::load("resnet50")
        .expect("bundled")
        .distinct()
        .iter()
        .map(|layer| {
            let dims = [Dim::K, Dim::C, Dim::P, Dim::Q, Dim::R, Dim::S];
            let mut shape: Vec<u64> = dims.map(|dim| layer.problem.bounds[dim]).to_vec();
            shape.push(layer.problem.stride.0);
            shape
        })
        .collect();
    let mut recorded: Vec<Vec<u64>> = Vec::new();
    for line in RECORD.lines().skip(1) {
        let fields: Vec<f64> = line.split(',').map(|f| f.parse().expect("a number")).collect();
        assert_eq!(fields.len(), 14, "{line}");
        let (macs, lanes) = (fields[..6].iter().product::<f64>(), 1024.0);
        for cycles in [fields[7], fields[10]] {
            assert!(cycles >= macs / lanes, "{line}: more MACs than lanes allow");
        }
        recorded.push(fields[..7].iter().map(|&f| f as u64).collect());
    }
    shapes.sort();
    recorded.sort();
    assert_eq!(recorded, shapes);
}
