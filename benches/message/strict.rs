//! A visitor of every value of a JSON text, which keeps nothing of it: what the reader is compared with.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// How many values were visited.
struct Visited(usize);

/// Reads `text` with sonic-rs; the number of values and keys in it.
pub(crate) fn sonic(text: &[u8]) -> usize {
    sonic_rs::from_slice::<Visited>(text).expect("good JSON").0
}

impl<'de> Deserialize<'de> for Visited {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(All)
    }
}

struct All;

impl<'de> Visitor<'de> for All {
    type Value = Visited;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Visited, E> {
        Ok(Visited(1))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Visited, E> {
        Ok(Visited(1))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Visited, E> {
        Ok(Visited(1))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Visited, E> {
        Ok(Visited(1))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Visited, E> {
        Ok(Visited(1))
    }

    fn visit_unit<E: Error>(self) -> Result<Visited, E> {
        Ok(Visited(1))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Visited, A::Error> {
        let mut count = 1;
        while let Some(Visited(more)) = items.next_element()? {
            count += more;
        }
        Ok(Visited(count))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Visited, A::Error> {
        let mut count = 1;
        while let Some((Visited(key), Visited(value))) = members.next_entry()? {
            count += key + value;
        }
        Ok(Visited(count))
    }
}
