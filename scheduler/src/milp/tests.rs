//! The program against enumeration.

use cyclonest_arch::{Accelerator, bundled};
use cyclonest_workloads::{Dim, DimMap, Pair, Problem};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::form::{Form, Formulation, Slot, order};
use super::measure::measure;
use super::terms::Inventory;
use super::weights::Weights;
use crate::Objective;
use crate::space::{Point, Space, primes};

/// Every placement of the prime factors with every choice of innermost classes.
fn enumerate(space: &Space<'_>, visit: &mut impl FnMut(&Point)) {
    let factors: Vec<(Dim, u64)> = space
        .problem
        .bounds
        .iter()
        .flat_map(|(dim, &bound)| primes(bound).into_iter().map(move |p| (dim, p)))
        .collect();
    let mut point = space.origin();
    point.trips[0] = DimMap::ones();
    place(space, &factors, &mut point, visit);
}

fn place(space: &Space<'_>, factors: &[(Dim, u64)], point: &mut Point, visit: &mut impl FnMut(&Point)) {
    let Some((&(dim, prime), rest)) = factors.split_first() else {
        return orders(space, 0, point, visit);
    };
    for level in 0..point.trips.len() {
        point.trips[level][dim] *= prime;
        place(space, rest, point, visit);
        point.trips[level][dim] /= prime;
        for axis in 0..2 {
            point.fan[level][axis][dim] *= prime;
            if space.meshes_hold(point) {
                place(space, rest, point, visit);
            }
            point.fan[level][axis][dim] /= prime;
        }
    }
}

fn orders(space: &Space<'_>, level: usize, point: &mut Point, visit: &mut impl FnMut(&Point)) {
    if level == point.trips.len() {
        if space.fits(point) {
            visit(point);
        }
        return;
    }
    let several = point.trips[level].0.iter().filter(|&&t| t > 1).count() > 1;
    for innermost in if several { vec![0, 1, 2] } else { vec![2] } {
        point.order[level] = order(innermost);
        orders(space, level + 1, point, visit);
    }
}

fn random_problem(rng: &mut ChaCha8Rng) -> Problem {
    loop {
        let mut any = |options: &[u64]| options[rng.random_range(0..options.len())];
        let mut problem = Problem::new(DimMap([
            any(&[1, 1, 2]),
            any(&[1, 1, 2]),
            any(&[1, 2, 3, 4, 8]),
            any(&[1, 2, 3, 4]),
            any(&[1, 2, 4, 5, 6]),
            any(&[1, 2, 3]),
            any(&[1, 1, 3]),
            any(&[1, 1, 2]),
        ]));
        problem.stride = Pair(any(&[1, 1, 2]), any(&[1, 2]));
        let factors: usize = problem.bounds.0.iter().map(|&b| primes(b).len()).sum();
        if (1..=5).contains(&factors) {
            return problem;
        }
    }
}

/// small3 with small buffers, so that capacities matter.
fn machine(rng: &mut ChaCha8Rng) -> Accelerator {
    let mut arch = bundled::load("small3").expect("bundled");
    for level in 1..arch.levels.len() {
        for bank in &mut arch.levels[level].banks {
            bank.size = cyclonest_arch::Capacity::Words(rng.random_range(4..60) * level as u64);
        }
    }
    arch
}

#[test]
fn small_form_big_form_and_enumeration_have_the_same_optimum_in_200_random_cases() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let (mut compared, mut tight) = (0, 0);
    let mut sizes = (0, 0);
    while compared < 200 {
        let (problem, arch) = (random_problem(&mut rng), machine(&mut rng));
        let space = Space::new(&problem, &arch);
        if space.holds.iter().zip(&arch.levels).any(|(holds, level)| {
            level
                .banks
                .iter()
                .any(|bank| bank.holds.iter().any(|t| !holds.contains(t)))
        }) {
            continue;
        }
        let inventory = Inventory::new(&arch, &space.holds);
        let balanced = Weights {
            balance: 0.9,
            offset: 3.0,
            compute: 0.7,
            traffic: 0.2,
            ..Weights::default()
        };
        let weights = [Weights::default(), Weights::cosa(), balanced][compared / 3 % 3].clone();
        let objective = [Objective::Cycles, Objective::Energy, Objective::Edp][compared % 3];
        let formulation = Formulation {
            inventory: &inventory,
            weights: &weights,
            objective,
            bounds: problem.bounds,
            slack: 0.0,
        };
        let form = Form::new(&space, &formulation);
        let mut best = f64::INFINITY;
        let (mut all, mut fitting) = (0_u64, 0_u64);
        enumerate(&space, &mut |point| {
            all += 1;
            if form.admits(point) {
                fitting += 1;
                best = best.min(measure(&space, &inventory, &weights, objective, point));
            }
        });
        let solved = form.program.solve(100_000, 1e-6, &[]).expect("solved");
        let Some(solved) = solved else {
            assert_eq!(fitting, 0, "{problem:?}");
            continue;
        };
        let point = form.point(&solved.values);
        assert!(space.fits(&point), "{problem:?}");
        let own = measure(&space, &inventory, &weights, objective, &point);
        assert!(
            (solved.objective - best).abs() < 1e-4,
            "{problem:?}: {} by the program, {best} by enumeration of {fitting}",
            solved.objective
        );
        assert!(
            (own - best).abs() < 1e-4,
            "{problem:?}: its point has {own}, the best is {best}"
        );
        assert!(solved.objective - solved.bound < 1e-3);
        let big = Form::big(&space, &formulation);
        let large = big
            .program
            .solve(1_000_000, 1e-6, &[])
            .expect("solved")
            .expect("feasible");
        assert!(large.objective - large.bound < 1e-3, "{problem:?}: unproven");
        assert!(
            (large.objective - best).abs() < 1e-4,
            "{problem:?}: {} by the big form, {best} by enumeration",
            large.objective
        );
        sizes.0 += form.program.size().0;
        sizes.1 += big.program.size().0;
        compared += 1;
        tight += u64::from(fitting < all);
    }
    assert!(sizes.1 > sizes.0, "integers of the small and the big form: {sizes:?}");
    assert!(tight > 20, "capacities matter in {tight} cases only");
}

#[test]
fn factors_have_slots_at_every_level_and_axis_that_allows_them() {
    let arch = bundled::load("simba").expect("bundled");
    let problem = Problem::new(DimMap([1, 1, 64, 64, 14, 14, 3, 3]));
    let space = Space::new(&problem, &arch);
    let inventory = Inventory::new(&arch, &space.holds);
    let formulation = Formulation {
        inventory: &inventory,
        weights: &Weights::default(),
        objective: Objective::Cycles,
        bounds: problem.bounds,
        slack: 0.0,
    };
    let form = Form::new(&space, &formulation);
    let slots = |dim: Dim| {
        let factor = form.factors.iter().find(|f| f.dim == dim).expect("a factor");
        factor
            .counts
            .iter()
            .filter(|(slot, _)| matches!(slot, Slot::Spatial(..)))
            .count()
    };
    assert_eq!((slots(Dim::K), slots(Dim::C), slots(Dim::R)), (3, 3, 1));
    let (integers, rows) = form.program.size();
    assert!(integers < 120 && rows < 250, "{integers} integers, {rows} rows");
}

#[test]
fn the_solution_to_begin_with_is_one_of_the_program() {
    for name in ["simba", "nvdla_like", "small3", "eyeriss"] {
        let arch = bundled::load(name).expect("bundled");
        for (bounds, stride) in [
            ([1, 1, 64, 3, 112, 112, 7, 7], 2),
            ([1, 1, 96, 3, 55, 55, 11, 11], 4),
            ([1, 1, 512, 512, 7, 7, 3, 3], 1),
            ([1, 32, 1, 1, 28, 28, 3, 3], 1),
        ] {
            let mut problem = Problem::new(DimMap(bounds));
            problem.stride = Pair(stride, stride);
            let space = Space::new(&problem, &arch);
            let inventory = Inventory::new(&arch, &space.holds);
            let weights = Weights::default();
            let bounds = super::form::padded_bounds(&space);
            let formulation = Formulation {
                inventory: &inventory,
                weights: &weights,
                objective: Objective::Cycles,
                bounds,
                slack: 0.02,
            };
            let form = Form::new(&space, &formulation);
            let start =
                super::start::start(&space, &form, &inventory, &weights, Objective::Cycles, &bounds).expect("a start");
            let integers = form.integers(&start).expect("admitted");
            let begun = form.program.fixed(&integers).solve(1, 1e-3, &[]);
            let begun = begun.expect("solved");
            let begun = begun.unwrap_or_else(|| panic!("{name} {bounds:?}: not a solution"));
            let own = measure(&space, &inventory, &weights, Objective::Cycles, &start);
            assert!(
                (-1e-6..0.2).contains(&(begun.objective - own)),
                "{name} {bounds:?}: {} by the program, {own} by itself",
                begun.objective
            );
        }
    }
}
