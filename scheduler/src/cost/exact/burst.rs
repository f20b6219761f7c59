//! What the lanes do in a burst (rules 14 and 15).

use cyclonest_arch::Mapping;
use cyclonest_workloads::{Dim, Problem, Tensor};

use super::nest::{Digit, Nest, Role, existing};
use super::tally::Tally;
use super::walk::odometer;
use super::window::AffineAxis;

/// Counts the accesses of the lanes at the PE level `event`.
pub(super) fn count(nest: &Nest, problem: &Problem, mapping: &Mapping, event: usize, tally: &mut Tally) {
    tally.macs = problem.macs();
    let keeps = mapping.levels[event].keeps;
    // Trips of a dimension, lanes in the corner, over all instances and steps.
    let trips = |dim: Dim| {
        existing(nest.inside(0, dim), |d| {
            if d.spatial && d.level >= event {
                Role::ZERO
            } else {
                Role::Free
            }
        })
    };
    let bounds = &nest.bounds;
    for tensor in Tensor::ALL {
        if !keeps.contains(tensor) {
            continue;
        }
        let irrelevant: u64 = Dim::ALL
            .iter()
            .filter(|&&d| !tensor.is_relevant(d))
            .map(|&d| trips(d))
            .product();
        match tensor {
            Tensor::Weights => {
                let size: u64 = Dim::ALL
                    .iter()
                    .filter(|&&d| tensor.is_relevant(d))
                    .map(|&d| bounds[d])
                    .product();
                tally.at(event, tensor).reads += size * irrelevant;
            }
            Tensor::Inputs => {
                let rows = affine_reads(
                    nest,
                    event,
                    &AffineAxis::new(problem.stride.0, problem.dilation.0, &problem.real_rows()),
                    (Dim::P, Dim::R),
                );
                let columns = affine_reads(
                    nest,
                    event,
                    &AffineAxis::new(problem.stride.1, problem.dilation.1, &problem.real_columns()),
                    (Dim::Q, Dim::S),
                );
                tally.at(event, tensor).reads +=
                    bounds[Dim::N] * bounds[Dim::G] * bounds[Dim::C] * rows * columns * irrelevant;
            }
            Tensor::Outputs => {
                let size: u64 = Dim::ALL
                    .iter()
                    .filter(|&&d| tensor.is_relevant(d))
                    .map(|&d| bounds[d])
                    .product();
                let access = tally.at(event, tensor);
                let updates = size * irrelevant;
                access.updates += updates;
                access.reads += updates - access.opened;
            }
        }
    }
}

/// Distinct rows across the lanes, summed over all trips of all bursts of all instances.
fn affine_reads(nest: &Nest, event: usize, axis: &AffineAxis, dims: (Dim, Dim)) -> u64 {
    let outer = |d: &Digit| !d.spatial || d.level < event;
    let (p, r) = (nest.inside(0, dims.0), nest.inside(0, dims.1));
    let lanes = (nest.inside(event, dims.0), nest.inside(event, dims.1));
    let bounds = (nest.bounds[dims.0], nest.bounds[dims.1]);
    let mut sum = 0;
    odometer(p, outer, bounds.0, &mut |p| {
        odometer(r, outer, bounds.1, &mut |r| {
            sum += super::walk::lanes(axis, lanes, (p, r), bounds);
        });
    });
    sum
}
