//! The eight loop dimensions and a dense map over them.

use std::fmt;
use std::ops::{Index, IndexMut};

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A dimension of the convolution loop nest.
///
/// `O[n,g,k,p,q] += W[g,k,c,r,s] · I[n,g,c,p·stride+r·dilation,q·stride+s·dilation]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Dim {
    /// Batch.
    N,
    /// Groups: a depthwise convolution has G = channels and K = C = 1; a batched GEMM has G = batch.
    G,
    /// Output channels per group.
    K,
    /// Input channels per group (the reduction dimension of a GEMM).
    C,
    /// Output rows.
    P,
    /// Output columns.
    Q,
    /// Filter rows.
    R,
    /// Filter columns.
    S,
}

impl Dim {
    /// Every dimension, in the order of [`DimMap`].
    pub const ALL: [Dim; 8] = [Dim::N, Dim::G, Dim::K, Dim::C, Dim::P, Dim::Q, Dim::R, Dim::S];

    /// True for C, R and S: iterating them adds to the same output.
    #[must_use]
    pub const fn is_reduction(self) -> bool {
        matches!(self, Dim::C | Dim::R | Dim::S)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// One value per [`Dim`], without hashing. In RON and JSON it is a map; missing dimensions take `T::default()`
/// for counters and 1 for [`DimMap<u64>`] read with [`bounds`](DimMap::ones) semantics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DimMap<T>(pub [T; 8]);

impl DimMap<u64> {
    /// The value 1 for every dimension.
    #[must_use]
    pub const fn ones() -> Self {
        DimMap([1; 8])
    }
}

impl<T> DimMap<T> {
    /// Builds a map by calling `f` for every dimension.
    pub fn from_fn(f: impl FnMut(Dim) -> T) -> Self {
        DimMap(Dim::ALL.map(f))
    }

    /// Every dimension with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Dim, &T)> {
        Dim::ALL.into_iter().zip(self.0.iter())
    }
}

impl<T> Index<Dim> for DimMap<T> {
    type Output = T;
    #[inline]
    fn index(&self, dim: Dim) -> &T {
        &self.0[dim as usize]
    }
}

impl<T> IndexMut<Dim> for DimMap<T> {
    #[inline]
    fn index_mut(&mut self, dim: Dim) -> &mut T {
        &mut self.0[dim as usize]
    }
}

impl<T: Serialize> Serialize for DimMap<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(8))?;
        for (dim, value) in self.iter() {
            map.serialize_entry(&dim, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for DimMap<u64> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bounds;
        impl<'de> Visitor<'de> for Bounds {
            type Value = DimMap<u64>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a map from dimensions (N G K C P Q R S) to positive integers")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut map = DimMap::ones();
                let mut seen = [false; 8];
                while let Some(dim) = access.next_key::<Dim>()? {
                    if std::mem::replace(&mut seen[dim as usize], true) {
                        return Err(serde::de::Error::custom(format!("dimension {dim} is given twice")));
                    }
                    map[dim] = access.next_value()?;
                    if map[dim] == 0 {
                        return Err(serde::de::Error::custom(format!(
                            "bound of {dim} is 0; at least 1 is expected"
                        )));
                    }
                }
                Ok(map)
            }
        }
        deserializer.deserialize_map(Bounds)
    }
}
