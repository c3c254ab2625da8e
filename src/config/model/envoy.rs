//! What Envoy's `ext_proc` filter is set to, as far as Portcullis must know it: Envoy does not tell.

use schemars::JsonSchema;
use serde::Deserialize;

use super::values::Period;

/// Settings of Envoy's `ext_proc` filter. They must say what stands in Envoy's own configuration.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Envoy {
    /// Its `message_timeout`: how long it waits for a reply before it answers 504 itself. Default 10s, as in the shipped
    /// files.
    pub message_timeout: Period,
    /// Its `max_message_timeout`, above `message_timeout`: up to this it waits longer when Portcullis asks it to, which it
    /// does for gates whose timeouts may be over what is left of `message_timeout`. Default: no more time is asked for.
    pub max_message_timeout: Option<Period>,
    /// What the dynamic metadata of a verdict (namespace `portcullis`) says beside `decided`, `server`, `decision`, `reason` and
    /// `id`, for access logs, rate limits and other filters of Envoy that read it: any of `method`, `capability`,
    /// `principal`. Default: nothing more, for each costs Envoy about one in a hundred instructions of a call. The audit
    /// event always has them all.
    pub metadata: Vec<MetadataKey>,
}

/// A key of the verdict's dynamic metadata that is said where somebody reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MetadataKey {
    /// The MCP method, `tools/call` for example.
    Method,
    /// The label of what is called: `tool:search_cases`.
    Capability,
    /// The caller, as in the audit event.
    Principal,
}

impl Default for Envoy {
    fn default() -> Self {
        Self { message_timeout: Period::seconds(10), max_message_timeout: None, metadata: Vec::new() }
    }
}
