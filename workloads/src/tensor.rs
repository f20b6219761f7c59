//! The three tensors of a layer, dense maps over them, and small sets of them.

use std::fmt;
use std::ops::{Index, IndexMut};

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Dim;

/// A tensor of the layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Tensor {
    /// Filters {G,K,C,R,S}; the second operand of a GEMM.
    Weights,
    /// Input features {N,G,C, y=P·stride+R·dilation, x=Q·stride+S·dilation}.
    Inputs,
    /// Output features {N,G,K,P,Q}; partial sums until the last reduction step.
    Outputs,
}

impl Tensor {
    /// Every tensor, in the order of [`TensorMap`].
    pub const ALL: [Tensor; 3] = [Tensor::Weights, Tensor::Inputs, Tensor::Outputs];

    /// True if moving along `dim` changes which elements of the tensor are touched.
    #[must_use]
    pub const fn is_relevant(self, dim: Dim) -> bool {
        match self {
            Tensor::Weights => matches!(dim, Dim::G | Dim::K | Dim::C | Dim::R | Dim::S),
            Tensor::Inputs => !matches!(dim, Dim::K),
            Tensor::Outputs => matches!(dim, Dim::N | Dim::G | Dim::K | Dim::P | Dim::Q),
        }
    }

    /// The one-letter name used in tables: W, I or O.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Tensor::Weights => 'W',
            Tensor::Inputs => 'I',
            Tensor::Outputs => 'O',
        }
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// One value per [`Tensor`]. In RON and JSON it is a map; tensors that are left out take the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TensorMap<T>(pub [T; 3]);

impl<T> TensorMap<T> {
    /// Builds a map by calling `f` for every tensor.
    pub fn from_fn(f: impl FnMut(Tensor) -> T) -> Self {
        TensorMap(Tensor::ALL.map(f))
    }

    /// Every tensor with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Tensor, &T)> {
        Tensor::ALL.into_iter().zip(self.0.iter())
    }
}

impl<T> Index<Tensor> for TensorMap<T> {
    type Output = T;
    #[inline]
    fn index(&self, tensor: Tensor) -> &T {
        &self.0[tensor as usize]
    }
}

impl<T> IndexMut<Tensor> for TensorMap<T> {
    #[inline]
    fn index_mut(&mut self, tensor: Tensor) -> &mut T {
        &mut self.0[tensor as usize]
    }
}

impl<T: Serialize> Serialize for TensorMap<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        for (tensor, value) in self.iter() {
            map.serialize_entry(&tensor, value)?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for TensorMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Entries<T> {
            type Value = TensorMap<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a map from tensors (Weights, Inputs, Outputs)")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut map = TensorMap::from_fn(|_| T::default());
                let mut seen = TensorSet::EMPTY;
                while let Some(tensor) = access.next_key::<Tensor>()? {
                    if seen.contains(tensor) {
                        return Err(serde::de::Error::custom(format!("tensor {tensor} is given twice")));
                    }
                    seen.insert(tensor);
                    map[tensor] = access.next_value()?;
                }
                Ok(map)
            }
        }
        deserializer.deserialize_map(Entries(std::marker::PhantomData))
    }
}

/// A set of tensors. In RON and JSON it is a list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TensorSet(u8);

impl TensorSet {
    /// No tensor.
    pub const EMPTY: TensorSet = TensorSet(0);
    /// All three tensors.
    pub const ALL: TensorSet = TensorSet(0b111);

    /// True if `tensor` is in the set.
    #[inline]
    #[must_use]
    pub const fn contains(self, tensor: Tensor) -> bool {
        self.0 & (1 << tensor as u8) != 0
    }

    /// Adds `tensor`.
    pub const fn insert(&mut self, tensor: Tensor) {
        self.0 |= 1 << tensor as u8;
    }

    /// Removes `tensor`.
    pub const fn remove(&mut self, tensor: Tensor) {
        self.0 &= !(1 << tensor as u8);
    }

    /// True if no tensor is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The tensors of the set in the order of [`Tensor::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Tensor> {
        Tensor::ALL.into_iter().filter(move |&t| self.contains(t))
    }
}

impl FromIterator<Tensor> for TensorSet {
    fn from_iter<I: IntoIterator<Item = Tensor>>(tensors: I) -> Self {
        let mut set = TensorSet::EMPTY;
        tensors.into_iter().for_each(|t| set.insert(t));
        set
    }
}

impl fmt::Debug for TensorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for TensorSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for TensorSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Tensor>::deserialize(deserializer)?.into_iter().collect())
    }
}
