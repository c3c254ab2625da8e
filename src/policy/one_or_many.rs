//! A configuration value that is one thing or a list of them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, IntoDeserializer, SeqAccess, Visitor, value};

/// One value, or a list of values. May be empty when the list was; who uses it says whether that is a fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T> OneOrMany<T> {
    /// The values in written order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a OneOrMany<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrManyVisitor(PhantomData))
    }
}

/// Hands scalars on to `T`, so that `T`'s own error text is what the reader of a fault sees.
struct OneOrManyVisitor<T>(PhantomData<T>);

/// Builds the one value out of a scalar that the document held.
fn one<'de, T, V, E>(scalar: V) -> Result<OneOrMany<T>, E>
where
    T: Deserialize<'de>,
    V: IntoDeserializer<'de, E>,
    E: serde::de::Error,
{
    T::deserialize(scalar.into_deserializer()).map(|value| OneOrMany(vec![value]))
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrManyVisitor<T> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one value or a list of values")
    }

    fn visit_bool<E: serde::de::Error>(self, scalar: bool) -> Result<Self::Value, E> {
        one(scalar)
    }

    fn visit_i64<E: serde::de::Error>(self, scalar: i64) -> Result<Self::Value, E> {
        one(scalar)
    }

    fn visit_u64<E: serde::de::Error>(self, scalar: u64) -> Result<Self::Value, E> {
        one(scalar)
    }

    fn visit_f64<E: serde::de::Error>(self, scalar: f64) -> Result<Self::Value, E> {
        one(scalar)
    }

    fn visit_str<E: serde::de::Error>(self, scalar: &str) -> Result<Self::Value, E> {
        one(scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(value::SeqAccessDeserializer::new(seq)).map(OneOrMany)
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMany_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }
}
