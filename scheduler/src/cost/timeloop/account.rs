//! From traffic to counts and cycles: bypass, partitions, reads, updates, fills, networks, bandwidth.

use serde::{Deserialize, Serialize};

use super::nest::{Hardware, Nest, Port, Workload};
use super::traffic::{LevelTraffic, Record};

/// Counts of one tensor at one level, of one instance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TensorStats {
    /// Elements of the tensor that belong to one instance over the whole run.
    pub partition: u64,
    /// Elements of one tile.
    pub tile: u64,
    /// Elements read.
    pub reads: u64,
    /// Elements written by the level inside (outputs).
    pub updates: u64,
    /// Elements written by the level outside.
    pub fills: u64,
    /// Partial sums added.
    pub temporal_reductions: u64,
}

/// One storage level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelStats {
    /// Its name.
    pub name: String,
    /// Instances that are used.
    pub instances: u64,
    /// Per tensor; `None` where it bypasses the level.
    pub tensors: Vec<Option<TensorStats>>,
    /// Cycles that the level's ports need.
    pub cycles: u64,
    /// What they are slowed down by: 1 is not at all.
    pub slowdown: f64,
}

/// One tensor on one network, of one instance of the outer level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NetworkTraffic {
    /// Elements that enter.
    pub ingresses: f64,
    /// Additions of partial sums on the way.
    pub spatial_reductions: f64,
    /// Elements × hops.
    pub element_hops: f64,
    /// The largest multicast degree.
    pub max_multicast: u64,
}

/// The network between a level and the next inner one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkStats {
    /// Name of the outer level.
    pub outer: String,
    /// Name of the inner level, or of the MACs.
    pub inner: String,
    /// Instances of the outer level that are used.
    pub instances: u64,
    /// Per tensor.
    pub tensors: Vec<NetworkTraffic>,
}

/// What the model says of a nest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Storage levels, inner to outer.
    pub levels: Vec<LevelStats>,
    /// The network below each of them.
    pub networks: Vec<NetworkStats>,
    /// MACs performed.
    pub computes: u64,
    /// Product of all temporal loops.
    pub compute_cycles: u64,
    /// Latency: the slowest level.
    pub cycles: u64,
    /// Computes ÷ all MAC units ÷ cycles.
    pub utilization: f64,
}

/// One tensor at one level while accesses move outwards.
struct Tile {
    kept: bool,
    partition: u64,
    records: Vec<Record>,
    content: f64,
    /// Accesses of the outer level that fill this one (of one instance).
    share: f64,
}

pub(super) fn account(workload: &Workload, hardware: &Hardware, nest: &Nest, traffic: &[LevelTraffic]) -> Evaluation {
    let mut levels: Vec<LevelStats> = hardware
        .levels
        .iter()
        .enumerate()
        .map(|(l, level)| LevelStats {
            name: level.name.clone(),
            instances: nest.used_instances(Some(l)),
            tensors: Vec::new(),
            cycles: 0,
            slowdown: 1.0,
        })
        .collect();
    let mut networks: Vec<NetworkStats> = (0..levels.len())
        .map(|l| NetworkStats {
            outer: levels[l].name.clone(),
            inner: l
                .checked_sub(1)
                .map_or_else(|| hardware.macs.name.clone(), |i| levels[i].name.clone()),
            instances: levels[l].instances,
            tensors: Vec::new(),
        })
        .collect();
    for (t, tensor) in workload.tensors.iter().enumerate() {
        let tiles = bypassed(t, nest, traffic);
        let outermost = tiles.iter().rposition(|tile| tile.kept);
        for (l, tile) in tiles.iter().enumerate() {
            let outer = outermost == Some(l);
            let partition = tile.partition as f64;
            let stats = tile.kept.then(|| {
                let base = TensorStats {
                    partition: tile.partition,
                    tile: traffic[l].tile[t],
                    reads: tile.content.round() as u64,
                    updates: 0,
                    fills: tile.share as u64,
                    temporal_reductions: 0,
                };
                if !tensor.read_write {
                    return base;
                }
                // The first visit of every output is not read: it starts at zero.
                let again = (tile.content - partition).round().max(0.0) as u64;
                TensorStats {
                    reads: again,
                    updates: tile.content.round() as u64,
                    fills: if outer {
                        tile.share.round() as u64
                    } else {
                        (tile.share - partition).round().max(0.0) as u64
                    },
                    temporal_reductions: again,
                    ..base
                }
            });
            levels[l].tensors.push(stats);
            let reads_back = tensor.read_write && !hardware.levels[l].reduces;
            networks[l].tensors.push(network(tile, reads_back));
        }
    }
    let compute_cycles = nest.temporal_steps();
    for (stats, level) in levels.iter_mut().zip(&hardware.levels) {
        stats.slowdown = slowdown(&level.ports, &stats.tensors, compute_cycles);
        stats.cycles = (compute_cycles as f64 / stats.slowdown).ceil() as u64;
    }
    let cycles = levels.iter().map(|l| l.cycles).max().unwrap_or(0).max(compute_cycles);
    let lanes = traffic[0].records.last().map_or(0.0, |records| {
        records.iter().map(|r| r.accesses * r.multicast as f64).sum::<f64>()
    });
    let computes = (lanes * levels[0].instances as f64).round() as u64;
    Evaluation {
        levels,
        networks,
        computes,
        compute_cycles,
        cycles,
        utilization: computes as f64 / hardware.macs.instances as f64 / cycles as f64,
    }
}

/// Partitions, shares, and then the levels that the tensor bypasses: their demand moves to the next outer level.
fn bypassed(t: usize, nest: &Nest, traffic: &[LevelTraffic]) -> Vec<Tile> {
    let n = traffic.len();
    let mut partition = traffic[n - 1].tile[t];
    let mut partitions = vec![partition; n];
    for l in (0..n - 1).rev() {
        let whole = traffic[l + 1]
            .spatial_tile
            .as_ref()
            .map_or(traffic[l].tile[t], |s| s[t]);
        partition = partition * traffic[l].tile[t] / whole;
        partitions[l] = partition;
    }
    let mut tiles: Vec<Tile> = (0..n)
        .map(|l| {
            let share = traffic.get(l + 1).map_or(0.0, |outer| {
                outer.records[t]
                    .iter()
                    .map(|r| r.accesses * r.multicast as f64 / outer.fanout as f64)
                    .sum()
            });
            Tile {
                kept: nest.blocks[l].keeps[t],
                partition: partitions[l],
                records: traffic[l].records[t].clone(),
                content: traffic[l].records[t].iter().map(|r| r.accesses).sum(),
                share,
            }
        })
        .collect();
    for l in 0..n - 1 {
        if tiles[l].kept {
            continue;
        }
        let demand = tiles[l].content * traffic[l + 1].fanout as f64;
        let delivered: f64 = tiles[l + 1]
            .records
            .iter()
            .map(|r| r.accesses * r.multicast as f64)
            .sum();
        let factor = demand / delivered;
        let outer = &mut tiles[l + 1];
        outer.records.iter_mut().for_each(|r| r.accesses *= factor);
        outer.content = outer.records.iter().map(|r| r.accesses).sum();
    }
    let outermost = tiles.iter().rposition(|tile| tile.kept);
    for (l, tile) in tiles.iter_mut().enumerate() {
        match outermost {
            // Nothing passes outside the outermost level that keeps the tensor.
            Some(o) if l > o => tile.records.clear(),
            Some(o) if l == o => tile.share = 0.0,
            _ => {}
        }
        if !tile.kept {
            tile.partition = 0;
        }
    }
    tiles
}

fn network(tile: &Tile, reads_back: bool) -> NetworkTraffic {
    let again = |r: &Record| {
        if reads_back && tile.kept {
            2.0 * r.accesses - tile.partition as f64
        } else {
            r.accesses
        }
    };
    NetworkTraffic {
        ingresses: tile.records.iter().map(again).sum(),
        spatial_reductions: tile.records.iter().map(|r| (r.multicast - 1) as f64 * r.accesses).sum(),
        element_hops: tile.records.iter().map(|r| again(r) * r.hops / r.scatter as f64).sum(),
        max_multicast: tile.records.iter().map(|r| r.multicast).max().unwrap_or(0),
    }
}

/// min over ports of width ÷ demand per cycle, at most 1. The order of the operations is the original's: its
/// rounding shows (20,481 cycles where 20,480 are needed).
fn slowdown(ports: &[Port], tensors: &[Option<TensorStats>], cycles: u64) -> f64 {
    let cycles = cycles as f64;
    let mut slowdown = 1.0f64;
    for port in ports {
        let demand: f64 = tensors
            .iter()
            .enumerate()
            .filter_map(|(t, s)| s.as_ref().map(|s| (t, s)))
            .map(|(t, s)| {
                let read = s.reads as f64 * port.read_units[t];
                let written = (s.updates + s.fills) as f64 * port.write_units[t];
                (read + written) / cycles
            })
            .sum();
        if port.width < demand {
            slowdown = slowdown.min(port.width / demand);
        }
    }
    slowdown
}
