//! Short forms in RON: `3` for `(3, 3)`, and `1` or `(1, 2)` for a border that is the same on opposite sides.

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};

use crate::{Padding, Pair};

/// `3` or `(rows, columns)`.
pub(super) mod pair {
    use serde::{Deserializer, Serialize, Serializer};

    use super::{Pair, PairVisitor};

    pub(in super::super) fn serialize<S: Serializer>(pair: &Pair, serializer: S) -> Result<S::Ok, S::Error> {
        if pair.0 == pair.1 {
            serializer.serialize_u64(pair.0)
        } else {
            (pair.0, pair.1).serialize(serializer)
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pair, D::Error> {
        deserializer.deserialize_any(PairVisitor)
    }
}

/// `1`, `(rows, columns)` or `(top: 0, bottom: 1, left: 0, right: 1)`.
pub(super) mod padding {
    use serde::{Deserializer, Serialize, Serializer};

    use super::{Padding, PaddingVisitor};

    pub(in super::super) fn serialize<S: Serializer>(padding: &Padding, serializer: S) -> Result<S::Ok, S::Error> {
        if padding.top != padding.bottom || padding.left != padding.right {
            padding.serialize(serializer)
        } else if padding.top == padding.left {
            serializer.serialize_u64(padding.top)
        } else {
            (padding.top, padding.left).serialize(serializer)
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Padding, D::Error> {
        deserializer.deserialize_any(PaddingVisitor)
    }
}

struct PairVisitor;

impl<'de> Visitor<'de> for PairVisitor {
    type Value = Pair;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number or a pair (rows, columns) of numbers, none negative")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Pair, E> {
        Ok(Pair(value, value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Pair, A::Error> {
        let rows = seq.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let columns = seq.next_element()?.ok_or_else(|| A::Error::invalid_length(1, &self))?;
        Ok(Pair(rows, columns))
    }
}

struct PaddingVisitor;

impl<'de> Visitor<'de> for PaddingVisitor {
    type Value = Padding;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a number, a pair (rows, columns), or (top: …, bottom: …, left: …, right: …), none negative"
        )
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Padding, E> {
        Ok(symmetric(Pair(value, value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Padding, A::Error> {
        let rows = seq.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let columns = seq.next_element()?.ok_or_else(|| A::Error::invalid_length(1, &self))?;
        Ok(symmetric(Pair(rows, columns)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Padding, A::Error> {
        const SIDES: [&str; 4] = ["top", "bottom", "left", "right"];
        let mut sides = [None; 4];
        while let Some(key) = map.next_key::<String>()? {
            let side = SIDES
                .iter()
                .position(|&side| side == key)
                .ok_or_else(|| A::Error::unknown_field(&key, &SIDES))?;
            if sides[side].replace(map.next_value()?).is_some() {
                return Err(A::Error::duplicate_field(SIDES[side]));
            }
        }
        let [top, bottom, left, right] = sides.map(Option::unwrap_or_default);
        Ok(Padding {
            top,
            bottom,
            left,
            right,
        })
    }
}

/// The same border above and below, and the same left and right.
pub(crate) const fn symmetric(Pair(rows, columns): Pair) -> Padding {
    Padding {
        top: rows,
        bottom: rows,
        left: columns,
        right: columns,
    }
}
