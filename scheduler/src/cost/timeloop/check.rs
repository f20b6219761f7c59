//! What a nest violates.

use super::nest::{Hardware, Nest, Workload};

/// Every violation, as a sentence that names the level, what it concerns, what is needed and what there is.
pub(super) fn violations(workload: &Workload, hardware: &Hardware, nest: &Nest) -> Vec<String> {
    let mut found = Vec::new();
    if nest.blocks.len() != hardware.levels.len() {
        found.push(format!(
            "the mapping has {} levels, the machine {}",
            nest.blocks.len(),
            hardware.levels.len()
        ));
        return found;
    }
    factors(workload, nest, &mut found);
    if found.is_empty() {
        meshes(hardware, nest, &mut found);
        capacities(workload, hardware, nest, &mut found);
    }
    found
}

/// Factors, with their last-iteration bounds, must give each dimension's bound.
fn factors(workload: &Workload, nest: &Nest, found: &mut Vec<String>) {
    for (d, dimension) in workload.dims.iter().enumerate() {
        let loops = nest
            .blocks
            .iter()
            .flat_map(|b| b.spatial().chain(&b.temporal))
            .filter(|l| l.dim == d);
        let (mut reach, mut product) = (1u64, 1u64);
        for l in loops {
            if l.last == 0 || l.last > l.bound {
                found.push(format!(
                    "dimension {}: a loop of {} ends with {} in its last iteration",
                    dimension.name, l.bound, l.last
                ));
                return;
            }
            reach += product * (l.last - 1);
            product *= l.bound;
        }
        if reach != dimension.bound {
            found.push(format!(
                "dimension {}: the factors of all levels give {reach}, the bound is {}",
                dimension.name, dimension.bound
            ));
        }
    }
    for (t, tensor) in workload.tensors.iter().enumerate() {
        if !nest.blocks.iter().any(|b| b.keeps[t]) {
            found.push(format!("tensor {}: no level keeps it", tensor.name));
        }
    }
}

/// Spatial loops, multiplied from the outermost level inwards, must fit the mesh of every level.
fn meshes(hardware: &Hardware, nest: &Nest, found: &mut Vec<String>) {
    let (mut x, mut y) = (1, 1);
    for l in (0..nest.blocks.len()).rev() {
        let block = &nest.blocks[l];
        x *= block.fanout_x();
        y *= block.fanout() / block.fanout_x();
        let (name, instances, mesh_x) = match l.checked_sub(1).map(|i| &hardware.levels[i]) {
            Some(level) => (&level.name, level.instances, level.mesh_x),
            None => (&hardware.macs.name, hardware.macs.instances, hardware.macs.mesh_x),
        };
        let from = &hardware.levels[l].name;
        for (axis, needed, available) in [('X', x, mesh_x), ('Y', y, instances / mesh_x.max(1))] {
            if needed > available {
                found.push(format!(
                    "level {name}: the spatial loops of {from} and further out need {needed} instances along \
                     {axis}, {available} are available"
                ));
                return;
            }
        }
    }
}

/// The tiles kept in a memory must fit side by side.
fn capacities(workload: &Workload, hardware: &Hardware, nest: &Nest, found: &mut Vec<String>) {
    let mut extents = vec![1u64; workload.dims.len()];
    for (block, level) in nest.blocks.iter().zip(&hardware.levels) {
        for l in block.spatial().chain(&block.temporal) {
            extents[l.dim] = (extents[l.dim] * l.bound).min(workload.dims[l.dim].bound);
        }
        for memory in &level.memories {
            let kept: Vec<(&str, u64)> = workload
                .tensors
                .iter()
                .enumerate()
                .filter(|&(t, _)| block.keeps[t] && memory.units[t] > 0)
                .map(|(t, tensor)| (tensor.name.as_str(), tensor.box_size(&extents) * memory.units[t]))
                .collect();
            let needed: u64 = kept.iter().map(|k| k.1).sum();
            if needed > memory.capacity {
                let parts: Vec<String> = kept.iter().map(|(name, size)| format!("{name} {size}")).collect();
                found.push(format!(
                    "level {}: the tiles need {needed} ({}), {} are available",
                    level.name,
                    parts.join(" + "),
                    memory.capacity
                ));
            }
        }
    }
}
