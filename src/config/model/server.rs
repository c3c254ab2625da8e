//! One entry of `servers:`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::matcher::Match;
use super::values::{ByteSize, FileOr, Period, PolicyStatus, RefusalCode, UnlistedMethodStatus, UpstreamStatus};
use crate::gates::config::GateSource;
use crate::identity::config::IdentitySource;
use crate::policy::{OneOrMany, PolicySource};
use crate::screen::ScreenSource;
use crate::upstream::CredentialSource;

/// One upstream server that Portcullis guards.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Its name, unique here: letters, digits, `-`, `_` and `.`. Audit, metrics and Envoy's second lock know it by this.
    pub name: String,
    /// `mcp` (default): the whole ladder. `http`: plain HTTP, of which only the identity is checked and gates are asked; it
    /// takes `name`, `match`, `resource`, `allowed_origins`, `mode`, `identity`, `authorization_server`,
    /// `upstream.credential`, `gates` and `gates_budget`.
    #[serde(default)]
    pub kind: Kind,
    /// Which of Envoy's requests belong to it.
    #[serde(rename = "match")]
    #[schemars(required)]
    pub matcher: Option<Match>,
    /// Its public URL: what clients dial, the audience of their tokens, the RFC 9728 resource. An absolute https URL
    /// (http on loopback) without query and fragment.
    #[schemars(required)]
    pub resource: Option<String>,
    /// Web origins whose pages may call it, besides the resource's own, as `https://app.acme.com`. Default none. Envoy's
    /// cors filter answers preflights.
    #[serde(default)]
    pub allowed_origins: Vec<String>,
    /// MCP revisions spoken. This version speaks `2026-07-28` only, which is the default.
    #[serde(default = "spoken")]
    pub protocol: Vec<ProtocolVersion>,
    /// `enforce` (default): refusals refuse. `shadow`: what policy and gates would refuse is recorded and forwarded, listings
    /// and answers stay as they are; identity, protocol and unreadable answers are enforced all the same.
    #[serde(default)]
    pub mode: Mode,
    /// Where the identity of its callers comes from.
    #[schemars(required)]
    pub identity: Option<IdentitySource>,
    /// Metadata of the authorization server (RFC 8414), served beside the resource for clients that look there. Any of
    /// RFC 8414's members; `issuer` is required.
    pub authorization_server: Option<AuthorizationServer>,
    /// The server itself; the traffic to it is Envoy's.
    #[serde(default)]
    pub upstream: Upstream,
    /// Roles and rules: `{file: policy.yaml}`, or the content of such a file. Required for `kind: mcp`.
    pub policy: Option<FileOr<PolicySource>>,
    /// The record: prices and definitions as someone approved them. Required for `kind: mcp`.
    pub record: Option<RecordFile>,
    /// Scopes that a capability needs beside `required_scopes`: label to scope or list of scopes. Needs at least one
    /// required scope.
    #[serde(default)]
    pub capability_scopes: BTreeMap<String, OneOrMany<String>>,
    /// External opinions, asked in order after everything else holds; the first objection wins.
    #[serde(default)]
    pub gates: Vec<GateSource>,
    /// What the gates that are enforced may take together. Less than `envoy.message_timeout`, or than
    /// `envoy.max_message_timeout` where that is set. Default 5s.
    #[serde(default = "gates_budget")]
    pub gates_budget: Period,
    /// Bounds on what is read.
    #[serde(default)]
    pub limits: Limits,
    /// Bounds on how long Portcullis waits.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// How refusals look.
    #[serde(default)]
    pub denials: Denials,
    /// What is looked for in the answers of tools, prompts and resources; by default all there is. With `off` they pass
    /// unseen, and no structured answer is held to its `outputSchema`. Listings and `server/discover` are always read.
    #[serde(default)]
    pub screen: ScreenSource,
}

fn gates_budget() -> Period {
    Period::seconds(5)
}

fn spoken() -> Vec<ProtocolVersion> {
    vec![ProtocolVersion::V2026_07_28]
}

/// What a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The Model Context Protocol.
    #[default]
    Mcp,
    /// Plain HTTP.
    Http,
}

/// A revision of MCP that this version speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum ProtocolVersion {
    /// 2026-07-28.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

impl ProtocolVersion {
    /// The revision as it stands on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2026_07_28 => "2026-07-28",
        }
    }
}

/// Whether refusals refuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// They do.
    #[default]
    Enforce,
    /// Those of the policy class are recorded only.
    Shadow,
}

/// RFC 8414 metadata, member by member as configured.
#[derive(Clone, Debug, PartialEq)]
pub struct AuthorizationServer(pub serde_json::Map<String, serde_json::Value>);

impl<'de> Deserialize<'de> for AuthorizationServer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = serde_json::Map::deserialize(deserializer)?;
        match members.get("issuer").and_then(serde_json::Value::as_str) {
            Some(_) => Ok(Self(members)),
            None => Err(D::Error::custom(
                "expected the member `issuer` (RFC 8414 §2), the authorization server's URL; add it",
            )),
        }
    }
}

impl JsonSchema for AuthorizationServer {
    fn schema_name() -> Cow<'static, str> {
        "AuthorizationServer".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {"issuer": {"type": "string", "format": "uri"}},
            "required": ["issuer"],
            "additionalProperties": true
        })
    }
}

/// The upstream server. Everything but `credential` is for our own listings of it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Upstream {
    /// Its URL, an absolute http or https URL. Required for `kind: mcp`; a record that was taken from another URL is a
    /// warning.
    pub url: Option<String>,
    /// What forwarded calls carry as `Authorization` in place of the caller's: `none` (default; the caller's is removed),
    /// `passthrough` (the caller's stays) or `{bearer: {file: …}}` or `{bearer: {env: …}}`.
    pub credential: CredentialSource,
    /// What our own listings carry: `none` or a bearer. Default the `credential`, when that is a bearer.
    pub listing_credential: Option<CredentialSource>,
    /// For one page of our own listings to be there. Default 5s.
    pub timeout: Period,
    /// Lists that are walked at the same time, 1 to 4. Default 4.
    pub concurrency: Concurrency,
    /// A PEM file with the authorities that may vouch for the server, in place of those of the web.
    pub ca: Option<PathBuf>,
}

impl Default for Upstream {
    fn default() -> Self {
        Self {
            url: None,
            credential: CredentialSource::None,
            listing_credential: None,
            timeout: Period::seconds(5),
            concurrency: Concurrency::default(),
            ca: None,
        }
    }
}

/// A number of lists that are walked at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "u8")]
pub struct Concurrency(#[schemars(range(min = 1, max = 4))] u8);

impl Concurrency {
    /// The number.
    #[must_use]
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

impl Default for Concurrency {
    fn default() -> Self {
        Self(4)
    }
}

impl TryFrom<u8> for Concurrency {
    type Error = String;

    fn try_from(value: u8) -> Result<Self, String> {
        match value {
            1..=4 => Ok(Self(value)),
            _ => Err(format!("expected a number of lists from 1 to 4, found {value}")),
        }
    }
}

/// The record's file, and how fresh what it says must be.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordFile {
    /// The path of the record's YAML file, relative to this file. The definitions lie beside it.
    pub file: PathBuf,
    /// How long a capability that matched its record counts as unchanged; then the server is listed again before the next
    /// call of it. At least 1s. Default 60s.
    #[serde(default = "a_minute")]
    pub refresh: Period,
}

fn a_minute() -> Period {
    Period::seconds(60)
}

/// Bounds on what is read. Whatever is over its bound is refused, never cut.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of a request body. Default 1MiB.
    pub request: ByteSize,
    /// Bytes of a listing, or of one event of an SSE answer. Default 1MiB.
    pub listing: ByteSize,
    /// Bytes of any other answer that is read. Default 16MiB.
    pub answer: ByteSize,
    /// Levels of JSON nesting, 8 to 512. Default 64.
    pub depth: Depth,
}

impl Default for Limits {
    fn default() -> Self {
        let (request, listing) = (ByteSize::mebibytes(1), ByteSize::mebibytes(1));
        Self { request, listing, answer: ByteSize::mebibytes(16), depth: Depth::default() }
    }
}

/// Levels of JSON nesting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "u16")]
pub struct Depth(#[schemars(range(min = 8, max = 512))] u16);

impl Depth {
    /// The number of levels.
    #[must_use]
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

impl Default for Depth {
    fn default() -> Self {
        Self(64)
    }
}

impl TryFrom<u16> for Depth {
    type Error = String;

    fn try_from(value: u16) -> Result<Self, String> {
        match value {
            8..=512 => Ok(Self(value)),
            _ => Err(format!("expected a number of levels from 8 to 512, found {value}")),
        }
    }
}

/// Bounds on how long Portcullis waits.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// For a request's body to be there whole once its headers are. Default 10s.
    pub body: Period,
    /// For the server to begin its answer once the call was forwarded. Tools that take longer than this without a sign
    /// of life need a larger value, or an answer that begins at once (a stream of events). Default 5m.
    pub wait: Period,
    /// For an answer that is held back until it was judged to be there whole. Default 60s.
    pub answer: Period,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { body: Period::seconds(10), wait: Period::seconds(300), answer: Period::seconds(60) }
    }
}

/// How refusals look.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Denials {
    /// HTTP status of a policy refusal's JSON-RPC frame: 200 (default) or 403.
    pub policy_status: PolicyStatus,
    /// `explicit` (default) says why; `hidden` answers what the caller may not have like what does not exist.
    pub disclose: Disclose,
    /// `challenge` (default) answers a missing scope with 403 and `WWW-Authenticate`; `frame` with a policy frame, for
    /// agents that cannot ask for more scopes.
    pub step_up: StepUp,
    /// JSON-RPC code of refusals that have none of their own. Default -32000.
    pub code: RefusalCode,
    /// HTTP status for a method on no list: 404 (default) or 400.
    pub unlisted_method_status: UnlistedMethodStatus,
    /// HTTP status of refusals of an upstream's answer: 502 (default), or 200 for clients that drop their session on it.
    pub upstream_status: UpstreamStatus,
}

/// Whether a refusal tells hidden from non-existent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Disclose {
    /// It does.
    #[default]
    Explicit,
    /// It does not.
    Hidden,
}

/// How a missing scope is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StepUp {
    /// HTTP 403 with `WWW-Authenticate`.
    #[default]
    Challenge,
    /// A policy frame.
    Frame,
}
