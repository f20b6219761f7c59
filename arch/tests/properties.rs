//! Tiles and rule 7 against plain enumeration, on random problems and mappings.

use std::collections::BTreeSet;

use cyclonest_arch::{Accelerator, Axis, LevelMapping, Loop, Mapping, MappingViolation, SpatialLoop, bundled};
use cyclonest_workloads::{Dim, DimMap, Padding, Pair, Problem, Tensor, TensorSet};
use proptest::prelude::*;

fn problems() -> impl Strategy<Value = Problem> {
    let bounds = (
        1_u64..3,
        1_u64..3,
        1_u64..4,
        1_u64..4,
        1_u64..6,
        1_u64..6,
        1_u64..4,
        1_u64..4,
    );
    let pair = || (1_u64..4, 1_u64..4).prop_map(|(y, x)| Pair(y, x));
    (bounds, pair(), pair(), prop::array::uniform4(0_u64..3)).prop_map(
        |((n, g, k, c, p, q, r, s), stride, dilation, [top, bottom, left, right])| {
            let mut problem = Problem::new(DimMap([n, g, k, c, p, q, r, s]));
            (problem.stride, problem.dilation) = (stride, dilation);
            let extent = problem.padded_extent();
            let fit = |border: u64, extent: u64| if border < extent { border } else { 0 };
            let (top, left) = (fit(top, extent.0), fit(left, extent.1));
            problem.padding = Padding {
                top,
                bottom: fit(bottom, extent.0 - top),
                left,
                right: fit(right, extent.1 - left),
            };
            problem
        },
    )
}

/// Loops of three levels (dimension, trips), outermost first, that need not cover the problem.
fn nests() -> impl Strategy<Value = Vec<Vec<(Dim, u64)>>> {
    let any_loop = (prop::sample::select(Dim::ALL.to_vec()), 1_u64..4);
    prop::collection::vec(prop::collection::vec(any_loop, 0..5), 3)
}

/// A mapping onto small3 whose outermost loops cover what is left of the problem.
fn mapping(problem: &Problem, nest: &[Vec<(Dim, u64)>], keeps: TensorSet) -> Mapping {
    let mut levels: Vec<LevelMapping> = ["DRAM", "GB", "PE"]
        .into_iter()
        .zip(nest)
        .map(|(name, loops)| LevelMapping {
            level: name.into(),
            temporal: loops.iter().map(|&(dim, trips)| Loop(dim, trips)).collect(),
            spatial: Vec::new(),
            keeps: TensorSet::ALL,
        })
        .collect();
    levels[1].spatial = vec![SpatialLoop(Dim::P, 2, Axis::X)];
    levels[2].keeps = keeps;
    let mut mapping = Mapping {
        bounds: problem.bounds,
        levels,
    };
    for dim in Dim::ALL {
        let left = problem.bounds[dim].div_ceil(mapping.trips_within(0, dim));
        mapping.levels[0].temporal.insert(0, Loop(dim, left));
    }
    mapping
}

/// Elements of `tensor` that one position of a tile touches, spelled out.
fn touched(problem: &Problem, low: &DimMap<u64>, extents: &DimMap<u64>, tensor: Tensor) -> usize {
    let range = |dim: Dim| low[dim]..(low[dim] + extents[dim]).min(problem.bounds[dim]);
    let mut elements = BTreeSet::new();
    for g in range(Dim::G) {
        for a in range(if tensor == Tensor::Weights { Dim::K } else { Dim::N }) {
            for b in range(if tensor == Tensor::Outputs { Dim::K } else { Dim::C }) {
                for p in range(Dim::P) {
                    for q in range(Dim::Q) {
                        for r in range(Dim::R) {
                            for s in range(Dim::S) {
                                let (y, x) = match tensor {
                                    Tensor::Weights => (r, s),
                                    Tensor::Outputs => (p, q),
                                    Tensor::Inputs => {
                                        let y = p * problem.stride.0 + r * problem.dilation.0;
                                        let x = q * problem.stride.1 + s * problem.dilation.1;
                                        if !problem.real_rows().contains(&y) || !problem.real_columns().contains(&x) {
                                            continue;
                                        }
                                        (y, x)
                                    }
                                };
                                elements.insert((g, a, b, y, x));
                            }
                        }
                    }
                }
            }
        }
    }
    elements.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_largest_tile_equals_the_largest_of_all_positions(problem in problems(), nest in nests()) {
        let mapping = mapping(&problem, &nest, TensorSet::ALL);
        for level in 1..3 {
            let extents = mapping.tile_extents(&problem, level);
            for tensor in Tensor::ALL {
                // N, G, K and C are largest at 0; P, Q, R and S differ by padding.
                let mut largest = 0;
                let starts = |dim: Dim| (0..problem.bounds[dim]).step_by(extents[dim] as usize);
                for p in starts(Dim::P) {
                    for q in starts(Dim::Q) {
                        for r in starts(Dim::R) {
                            for s in starts(Dim::S) {
                                let low = DimMap([0, 0, 0, 0, p, q, r, s]);
                                largest = largest.max(touched(&problem, &low, &extents, tensor));
                            }
                        }
                    }
                }
                prop_assert_eq!(mapping.tile_elements(&problem, level, tensor), largest as u64);
            }
        }
    }

    #[test]
    fn a_revisit_is_reported_exactly_if_a_lane_comes_back_to_an_output(problem in problems(), nest in nests()) {
        let keeps: TensorSet = [Tensor::Weights, Tensor::Inputs].into_iter().collect();
        let mapping = mapping(&problem, &nest, keeps);
        let arch = unbounded();
        let reported = mapping
            .check(&problem, &arch)
            .iter()
            .any(|v| matches!(v, MappingViolation::Revisited { .. }));
        prop_assert_eq!(reported, comes_back(&problem, &nest[2]));
    }
}

/// small3 without limits of capacity or mesh.
fn unbounded() -> Accelerator {
    let mut arch = bundled::load("small3").unwrap();
    for bank in arch.levels.iter_mut().flat_map(|level| level.banks.iter_mut()) {
        bank.size = cyclonest_arch::Capacity::Unbounded;
    }
    arch
}

/// Runs the loops of one burst in order and watches whether an output comes up again after another one.
fn comes_back(problem: &Problem, loops: &[(Dim, u64)]) -> bool {
    let trips: u64 = loops.iter().map(|l| l.1).product();
    let mut seen = BTreeSet::new();
    let mut last = None;
    for mut trip in 0..trips {
        let mut index = DimMap([0_u64; 8]);
        let mut scale = DimMap([1_u64; 8]);
        for &(dim, trips) in loops.iter().rev() {
            index[dim] += trip % trips * scale[dim];
            scale[dim] *= trips;
            trip /= trips;
        }
        if Dim::ALL.iter().any(|&dim| index[dim] >= problem.bounds[dim]) {
            continue;
        }
        let output = [Dim::N, Dim::G, Dim::K, Dim::P, Dim::Q].map(|dim| index[dim]);
        if last != Some(output) && !seen.insert(output) {
            return true;
        }
        last = Some(output);
    }
    false
}
