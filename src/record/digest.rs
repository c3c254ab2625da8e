//! The digest of a definition: what a price is bound to, because a name says nothing about what a tool does.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected};
use sha2::{Digest as _, Sha256};

use crate::message::json::Value;
use crate::message::write::canonical_without;

/// Top-level members of a definition that are no part of what was approved.
pub(super) const LEFT_OUT: [&str; 2] = ["_meta", "icons"];

/// SHA-256 of a definition's canonical form, written `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

/// A definition holds a number whose exponent no 64 bits hold, so it has no canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected numbers with exponents of at most 64 bits")]
pub struct DigestError;

/// Text that is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `sha256:` and 64 lower-case hexadecimal digits")]
pub struct MalformedDigest;

impl Digest {
    /// The digest of a definition and the canonical form it was taken over: without `_meta` and `icons` at the top, object
    /// keys sorted by their UTF-8 bytes, no white space, minimal escapes, numbers by value (authz-semantics: object keys
    /// unordered, arrays ordered, `1.0` = `1`, absent ≠ `null`).
    ///
    /// # Errors
    /// [`DigestError`]: a number has no canonical form.
    pub fn of(definition: Value<'_>) -> Result<(Self, Vec<u8>), DigestError> {
        let canonical = canonical(definition)?;
        Ok((Self(Sha256::digest(&canonical).into()), canonical))
    }
}

/// The canonical form alone, for who only shows it.
///
/// # Errors
/// As [`Digest::of`].
pub fn canonical(definition: Value<'_>) -> Result<Vec<u8>, DigestError> {
    let mut canonical = Vec::with_capacity(definition.raw().len());
    canonical_without(definition, &LEFT_OUT, &mut canonical).map_err(|_| DigestError)?;
    Ok(canonical)
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = MalformedDigest;

    fn from_str(text: &str) -> Result<Self, MalformedDigest> {
        let hex = text.strip_prefix("sha256:").filter(|hex| hex.len() == 64).ok_or(MalformedDigest)?;
        let mut digest = [0; 32];
        for (byte, pair) in digest.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            let [high, low] = pair else { return Err(MalformedDigest) };
            *byte = nibble(*high)? << 4 | nibble(*low)?;
        }
        Ok(Self(digest))
    }
}

fn nibble(digit: u8) -> Result<u8, MalformedDigest> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(MalformedDigest),
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let expected = "`sha256:` and 64 lower-case hexadecimal digits";
        text.parse().map_err(|MalformedDigest| D::Error::invalid_value(Unexpected::Str(&text), &expected))
    }
}

impl JsonSchema for Digest {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"})
    }
}
