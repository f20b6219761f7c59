//! What the lanes read and update, trip by trip, in closed form: it factors over the dimensions, except that the
//! rows (columns) of the inputs join P and R (Q and S).

use cyclonest_workloads::{Dim, DimMap, Tensor};

use super::{Bursts, InnerLoop, LineClasses};

impl Bursts {
    /// Temporal settings of `dim` that exist for lane 0.
    pub(super) fn trips_of_lane_0(&self, dim: Dim, extent: u64) -> u64 {
        let temporal = |l: &InnerLoop| if l.spatial { Role::Fixed } else { Role::Apart };
        self.groups(dim, temporal).iter().filter(|g| g[0] < extent).count() as u64
    }

    /// Σ over the trips of distinct elements (and of coordinates that no network serves together) that the lanes
    /// exchange with the instances of `from` in the PE, or with its first instance only.
    pub(super) fn lane_accesses(
        &self,
        tensor: Tensor,
        from: usize,
        low: &DimMap<u64>,
        extent: &DimMap<u64>,
        first: bool,
    ) -> u64 {
        let together = &self.together[tensor];
        let role = |l: &InnerLoop| match (l.spatial, l.level < from) {
            (false, _) => Role::Apart,
            (true, true) if first => Role::Fixed,
            (true, true) => Role::Apart,
            (true, false) if together[l.level - self.pe_level] => Role::Together,
            (true, false) => Role::Apart,
        };
        let groups = DimMap::from_fn(|d| {
            let mut groups = self.groups(d, role);
            for group in &mut groups {
                group.retain(|&i| i < extent[d]);
            }
            groups.retain(|g| !g.is_empty());
            groups
        });
        let plain = |d: Dim| -> u64 {
            if tensor.is_relevant(d) {
                groups[d].iter().map(|g| g.len() as u64).sum()
            } else {
                groups[d].len() as u64
            }
        };
        if tensor != Tensor::Inputs {
            return Dim::ALL.iter().map(|&d| plain(d)).product();
        }
        let lines = |classes: &LineClasses, window: Dim, tap: Dim| -> u64 {
            let mut total = 0;
            for windows in &groups[window] {
                for taps in &groups[tap] {
                    total += classes.axis.distinct(windows, low[window], taps, low[tap]);
                }
            }
            total
        };
        [Dim::N, Dim::G, Dim::C, Dim::K]
            .iter()
            .map(|&d| plain(d))
            .product::<u64>()
            * lines(&self.rows, Dim::P, Dim::R)
            * lines(&self.columns, Dim::Q, Dim::S)
    }

    /// Indices of `dim`, a group per setting of the loops that are apart.
    fn groups(&self, dim: Dim, role: impl Fn(&InnerLoop) -> Role) -> Vec<Vec<u64>> {
        let mut groups = vec![vec![0]];
        for l in self.loops.iter().filter(|l| l.dim == dim) {
            let shifted = |g: &Vec<u64>, i: u64| g.iter().map(|x| x + i * l.stride).collect::<Vec<u64>>();
            groups = match role(l) {
                Role::Fixed => groups,
                Role::Apart => groups
                    .iter()
                    .flat_map(|g| (0..l.trips).map(|i| shifted(g, i)))
                    .collect(),
                Role::Together => groups
                    .iter()
                    .map(|g| (0..l.trips).flat_map(|i| shifted(g, i)).collect())
                    .collect(),
            };
        }
        groups
    }
}

/// How the iterations of a loop count.
#[derive(Debug, Clone, Copy)]
enum Role {
    /// Each for itself.
    Apart,
    /// All at once: what they share counts once.
    Together,
    /// Only the first.
    Fixed,
}
