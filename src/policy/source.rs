//! The policy document as written. Doc comments of keys become descriptions in its JSON Schema.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use super::one_or_many::OneOrMany;

/// Who may do what: roles grant permissions, rules give roles to callers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicySource {
    /// The catalogue of permissions. When it is given, roles may grant only what it lists; it does not hold `*`.
    #[serde(default, deserialize_with = "written")]
    pub permissions: Option<Vec<String>>,
    /// Roles by name, each with the permissions it grants. `*` stands alone and grants every permission; an empty list
    /// grants nothing.
    pub roles: BTreeMap<String, Vec<String>>,
    /// Rules. Every rule that matches a caller counts, in any order; one that denies leaves the caller nothing. There is
    /// no default rule: a caller whom no rule matches may do nothing.
    pub rules: Vec<RuleSource>,
}

/// One rule: whom it matches and what that gives, or that it denies.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleSource {
    /// Whom the rule matches: all keys that are present must hold. Left out or empty, it matches every authenticated
    /// caller.
    #[serde(default, rename = "match")]
    pub matches: MatchSource,
    /// The role, or a list of roles, that the caller gets.
    #[serde(default)]
    pub role: Option<OneOrMany<String>>,
    /// `true`: the caller gets nothing, whatever other rules say.
    #[serde(default)]
    pub deny: bool,
}

/// Whom a rule matches.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatchSource {
    /// The issuer of the token (`iss`), exactly.
    #[serde(default, deserialize_with = "written")]
    pub issuer: Option<String>,
    /// The subject of the token (`sub`), exactly. Subjects are unique per issuer only: name the issuer too when there is
    /// more than one.
    #[serde(default, deserialize_with = "written")]
    pub sub: Option<String>,
    /// The verified email, without regard to case.
    #[serde(default, deserialize_with = "written")]
    pub email: Option<String>,
    /// The domain of a caller with a verified email, without regard to case: the hosted domain (`hd`) when the token has
    /// one, else what follows the last `@` of the email.
    #[serde(default, deserialize_with = "written")]
    pub domain: Option<String>,
    /// Claims by name or path, each with a value or a list of values of which any may hold. A claim with exactly the
    /// name wins, else the path is followed through objects by its dots. A claim that is an array must contain the
    /// value, any other must equal it.
    #[serde(default, deserialize_with = "written")]
    pub claim: Option<BTreeMap<String, OneOrMany<Scalar>>>,
}

/// The value of a condition or a bound that is written: one without a value (`email:` and nothing behind it) is a mistake, and
/// taken for none it would make a rule match everybody, or lift the bound.
pub(crate) fn written<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A value that a claim is compared with. Types count: the number `1` is not the text `"1"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Text, compared byte for byte.
    Text(String),
    /// A number as decimal text, compared by exact value.
    Number(String),
    /// `true` or `false`.
    Bool(bool),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) | Self::Number(text) => f.write_str(text),
            Self::Bool(value) => write!(f, "{value}"),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

/// The greatest magnitude up to which every integer is a float of its own.
const EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, true or false")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar::Number(value.to_string()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar::Number(value.to_string()))
    }

    /// The shortest decimal that reads back as `value` is what was written, as long as the float could tell it from its
    /// neighbours.
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Scalar, E> {
        if value.abs() < EXACT_FLOAT {
            return Ok(Scalar::Number(value.to_string()));
        }
        Err(E::custom(format_args!(
            "expected a number that is exact, found {value:e}; compare with a text, or with an integer of at most 64 bits"
        )))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(value.to_owned()))
    }
}

impl JsonSchema for Scalar {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Scalar".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

#[cfg(test)]
mod tests;
