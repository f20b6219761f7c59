//! CoSA's two observations, re-measured in the simulator: what the order of the loops alone changes, and what the
//! choice of the spatial loops alone changes (Huang et al., CoSA, ISCA 2021, section II).

use cyclonest_arch::{Accelerator, Axis, Loop, Mapping, SpatialLoop};
use cyclonest_scheduler::cost::{CostModel, Estimate};
use cyclonest_workloads::{Dim, DimMap, Problem};

use crate::oracle::Simulated;

/// Most variants that are simulated.
pub const MOST: usize = 5_000;

/// One variant of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// What differs: the loops of the levels concerned, outermost first.
    pub name: String,
    /// What the simulator says \[cycles\].
    pub cycles: u64,
    /// What the simulator says \[pJ\].
    pub energy_pj: f64,
    /// The variant.
    pub mapping: Mapping,
}

/// Largest cycles ÷ smallest; `None` without variants.
#[must_use]
pub fn spread(variants: &[Variant]) -> Option<f64> {
    let cycles = || variants.iter().map(|variant| variant.cycles);
    Some(cycles().max()? as f64 / cycles().min()? as f64)
}

/// Every order of the temporal loops of the levels outside the PE level, the rest of `mapping` as it is, fastest
/// first.
///
/// Loops that the same tensors ignore ({N, P, Q}, {K}, {C, R, S}, {G}) stay together in their order: exchanging them
/// moves the same data. Orders that are invalid are left out.
///
/// # Errors
/// If there are more than [`MOST`] orders.
pub fn permutations(problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Vec<Variant>, String> {
    let mut all = vec![(Vec::new(), mapping.clone())];
    for level in 0..arch.event_level() {
        let groups = groups(&mapping.levels[level].temporal);
        if groups.len() < 2 {
            continue;
        }
        let orders = orders(groups.len());
        all = all
            .iter()
            .flat_map(|(names, mapping): &(Vec<String>, Mapping)| {
                orders.iter().map(|order| {
                    let mut permuted = mapping.clone();
                    permuted.levels[level].temporal = order.iter().flat_map(|&g| groups[g].clone()).collect();
                    let mut names = names.clone();
                    names.push(format!(
                        "{}: {}",
                        arch.levels[level].name,
                        temporal(&permuted.levels[level].temporal)
                    ));
                    (names, permuted)
                })
            })
            .collect();
    }
    simulate(problem, arch, all)
}

/// Every choice of spatial loops below the outermost level that fans out, over as many children as `mapping` uses. What
/// a dimension gives up in space it gets in time at the same level, so that the tiles of all levels further out stay as
/// they are, and those further in too. Fastest first.
///
/// # Errors
/// If no level outside the PE level fans out, or there are more than [`MOST`] choices.
pub fn spatial(problem: &Problem, arch: &Accelerator, mapping: &Mapping) -> Result<Vec<Variant>, String> {
    let fans = |&l: &usize| {
        let (x, y) = arch.child_mesh(l);
        x * y > 1
    };
    let level = (0..arch.event_level())
        .find(fans)
        .ok_or_else(|| format!("no level of {} outside its PE level fans out", arch.name))?;
    let own = &mapping.levels[level];
    let mut trips = DimMap::<u64>::ones();
    own.temporal.iter().for_each(|t| trips[t.0] *= t.1);
    own.spatial.iter().for_each(|s| trips[s.0] *= s.1);
    let used: u64 = own.spatial.iter().map(|s| s.1).product();
    let (x, y) = arch.child_mesh(level);
    let allowed = arch.levels[level + 1].spatial.as_ref();
    let dims = |axis: Axis| match (allowed, axis) {
        (Some(dims), Axis::X) => dims.x.clone(),
        (Some(dims), Axis::Y) => dims.y.clone(),
        (None, _) => Dim::ALL.to_vec(),
    };
    let mut all = Vec::new();
    for along_x in factors(&trips, &dims(Axis::X), x) {
        let left = DimMap::from_fn(|dim| trips[dim] / along_x[dim]);
        for along_y in factors(&left, &dims(Axis::Y), y) {
            if product(&along_x) * product(&along_y) != used {
                continue;
            }
            let mut changed = mapping.clone();
            let loops = |axis: Axis, of: &DimMap<u64>| {
                let of = of.iter().filter(|&(_, &trips)| trips > 1);
                of.map(|(dim, &trips)| SpatialLoop(dim, trips, axis))
                    .collect::<Vec<_>>()
            };
            let changed_level = &mut changed.levels[level];
            changed_level.spatial = loops(Axis::X, &along_x);
            changed_level.spatial.extend(loops(Axis::Y, &along_y));
            let in_time = DimMap::from_fn(|dim| left[dim] / along_y[dim]);
            // The order of the mapping; dimensions that it has no loop of go to the inside.
            let mut order: Vec<Dim> = Vec::new();
            for dim in own.temporal.iter().map(|t| t.0).chain(Dim::ALL) {
                if !order.contains(&dim) {
                    order.push(dim);
                }
            }
            changed_level.temporal = order
                .into_iter()
                .map(|dim| Loop(dim, in_time[dim]))
                .filter(|t| t.1 > 1)
                .collect();
            let space: Vec<String> = changed_level
                .spatial
                .iter()
                .map(|s| format!("{}{}", s.0, s.1))
                .collect();
            let name = format!(
                "{}: space {}, time {}",
                arch.levels[level].name,
                space.join(" "),
                temporal(&changed_level.temporal)
            );
            all.push((vec![name], changed));
        }
    }
    simulate(problem, arch, all)
}

/// Simulates the valid ones.
fn simulate(problem: &Problem, arch: &Accelerator, all: Vec<(Vec<String>, Mapping)>) -> Result<Vec<Variant>, String> {
    if all.len() > MOST {
        return Err(format!("{} variants are too many; {MOST} are the most", all.len()));
    }
    let mut variants: Vec<Variant> = all
        .into_iter()
        .filter(|(_, mapping)| mapping.check(problem, arch).is_empty())
        .filter_map(|(names, mapping)| {
            let Estimate { cycles, energy_pj, .. } = Simulated.evaluate(problem, arch, &mapping).ok()?;
            Some(Variant {
                name: names.join("; "),
                cycles: cycles as u64,
                energy_pj,
                mapping,
            })
        })
        .collect();
    variants.sort_by_key(|variant| variant.cycles);
    Ok(variants)
}

/// Loops that the same tensors ignore, in the order of their first.
fn groups(loops: &[Loop]) -> Vec<Vec<Loop>> {
    let class = |dim: Dim| match dim {
        Dim::N | Dim::P | Dim::Q => 0,
        Dim::K => 1,
        Dim::C | Dim::R | Dim::S => 2,
        Dim::G => 3,
    };
    let mut groups: Vec<Vec<Loop>> = Vec::new();
    for &own in loops {
        match groups.iter_mut().find(|group| class(group[0].0) == class(own.0)) {
            Some(group) => group.push(own),
            None => groups.push(vec![own]),
        }
    }
    groups
}

/// All orders of the first `n` numbers.
fn orders(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(n - 1);
    let inserted = shorter.iter().flat_map(|order| {
        (0..n).map(move |place| {
            let mut longer = order.clone();
            longer.insert(place, n - 1);
            longer
        })
    });
    inserted.collect()
}

/// Ways to give divisors of `trips` of the `dims` to an axis of `extent` children.
fn factors(trips: &DimMap<u64>, dims: &[Dim], extent: u64) -> Vec<DimMap<u64>> {
    let mut all = vec![DimMap::ones()];
    for &dim in dims {
        all = all
            .into_iter()
            .flat_map(|chosen: DimMap<u64>| {
                let room = extent / product(&chosen);
                let divisors = (1..=room.min(trips[dim])).filter(|d| trips[dim].is_multiple_of(*d));
                divisors
                    .map(|divisor| {
                        let mut more = chosen;
                        more[dim] = divisor;
                        more
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    all
}

fn product(trips: &DimMap<u64>) -> u64 {
    trips.0.iter().product()
}

fn temporal(loops: &[Loop]) -> String {
    let named: Vec<String> = loops.iter().map(|t| format!("{}{}", t.0, t.1)).collect();
    named.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclonest_scheduler::Request;

    fn mapped() -> (Problem, Accelerator, Mapping) {
        let arch = cyclonest_arch::bundled::load("small3").expect("bundled");
        let problem = Problem::new(DimMap([1, 1, 8, 8, 8, 4, 3, 1]));
        let random = cyclonest_scheduler::by_name("random").expect("random");
        let request = Request {
            budget: Some(3),
            ..Request::new(&problem, &arch)
        };
        let mapping = random.schedule(&request).expect("mapped").mapping;
        (problem, arch, mapping)
    }

    #[test]
    fn orders_change_cycles_and_nothing_else() {
        let (problem, arch, mapping) = mapped();
        let variants = permutations(&problem, &arch, &mapping).expect("few");
        assert!(variants.len() > 1);
        let own = Simulated.evaluate(&problem, &arch, &mapping).expect("simulated").cycles as u64;
        assert!(
            variants.iter().any(|v| v.cycles == own),
            "the mapping itself is one of them"
        );
        assert!(variants.is_sorted_by_key(|v| v.cycles));
        for variant in &variants {
            for (ours, theirs) in variant.mapping.levels.iter().zip(&mapping.levels) {
                assert_eq!((&ours.spatial, ours.keeps), (&theirs.spatial, theirs.keeps));
                let sorted = |loops: &[Loop]| {
                    let mut loops = loops.to_vec();
                    loops.sort_by_key(|l| (l.0 as usize, l.1));
                    loops
                };
                assert_eq!(sorted(&ours.temporal), sorted(&theirs.temporal));
            }
        }
        assert!(spread(&variants).expect("some") >= 1.0);
    }

    #[test]
    fn spatial_choices_use_as_many_pes_and_leave_the_tiles_alone() {
        let (problem, arch, mapping) = mapped();
        let variants = spatial(&problem, &arch, &mapping).expect("few");
        assert!(
            variants
                .iter()
                .any(|v| v.mapping.levels[1].spatial.len() == mapping.levels[1].spatial.len())
        );
        let used = |m: &Mapping| m.levels[1].spatial.iter().map(|s| s.1).product::<u64>();
        for variant in &variants {
            assert_eq!(used(&variant.mapping), used(&mapping));
            for dim in Dim::ALL {
                for level in [1, 2] {
                    assert_eq!(
                        variant.mapping.trips_within(level, dim),
                        mapping.trips_within(level, dim)
                    );
                }
            }
        }
    }
}
