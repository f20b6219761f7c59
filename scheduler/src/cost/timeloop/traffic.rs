//! What the nest analysis hands to the accounting.

/// Accesses of one multicast degree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Record {
    /// Children that one access serves.
    pub(super) multicast: u64,
    /// Groups of that many children that were served at once.
    pub(super) scatter: u64,
    /// Elements, once per group: of one instance, averaged over the instances.
    pub(super) accesses: f64,
    /// Hops, summed over the groups.
    pub(super) hops: f64,
}

/// Traffic between one storage level and its children, per tensor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LevelTraffic {
    /// Size of the tile of one instance.
    pub(super) tile: Vec<u64>,
    /// Size of the union of the children's tiles; `None` without a fan-out.
    pub(super) spatial_tile: Option<Vec<u64>>,
    /// Accesses by the children.
    pub(super) records: Vec<Vec<Record>>,
    /// Children of one instance.
    pub(super) fanout: u64,
}
