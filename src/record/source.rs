//! The record's YAML file as types: what a person decided about each capability.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected};

use super::Digest;

/// The record of one server: which capabilities it offered, what each costs, and which definition that price is for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "records/*.yaml")]
pub struct RecordSource {
    /// Where and when the definitions were taken.
    #[serde(default)]
    pub recorded: Option<Recorded>,
    /// The JSON file with the definitions, relative to this file.
    pub definitions: PathBuf,
    /// The capabilities by label: `tool:search_cases`, `prompt:triage`, `resource:case`. A bare name is a tool. A
    /// capability that does not stand here is unpriced and never runs.
    pub capabilities: BTreeMap<String, CapabilitySource>,
}

/// Where and when the definitions were taken.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The URL of the server. Another one than the server's `upstream.url` is a warning.
    #[serde(default)]
    pub from: Option<String>,
    /// When, as RFC 3339. For people; shown by `portcullis check`.
    #[serde(default)]
    pub at: Option<String>,
    /// The MCP revision spoken. For people; shown by `portcullis check`.
    #[serde(default)]
    pub protocol: Option<String>,
}

/// What was decided about one capability.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapabilitySource {
    /// Its price: the permission that a call costs. `TODO` never loads: someone must decide.
    pub permission: Permission,
    /// The digest of its definition: `sha256:` and 64 lower-case hexadecimal digits.
    pub digest: Digest,
    /// A resource's URI or URI template, as in its definition. Resources only, and required for them.
    #[serde(default)]
    pub uri: Option<String>,
}

/// The name of a permission that someone decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission(String);

impl Permission {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Permission {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        match name.as_str() {
            "TODO" => Err(D::Error::custom(
                "expected the permission that this capability costs, found `TODO`; nobody decided yet: name a permission \
                 that a role grants, or remove the entry so that the capability never runs",
            )),
            "" | "*" => Err(D::Error::invalid_value(Unexpected::Str(&name), &"the name of one permission")),
            _ => Ok(Self(name)),
        }
    }
}

impl JsonSchema for Permission {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Permission".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "minLength": 1, "not": {"enum": ["TODO", "*"]}})
    }
}
