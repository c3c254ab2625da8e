//! The `gates:` block of a server as types.

use std::path::PathBuf;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};

use super::question::{Intent, Question};
use crate::upstream::SecretSource;

/// One external opinion on calls: a name, how it is asked (exactly one of `ext_authz`, `grpc`, `judge`, `cel`), and when.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateSource {
    /// Its name, unique on this server: letters, digits, `-`, `_` and `.`. Callers read it as `plugin`.
    pub name: String,
    /// `enforce` (default), or `shadow`: asked and recorded, but what it says changes nothing.
    #[serde(default)]
    pub mode: GateMode,
    /// What its failure means: `deny` (default) refuses the call with `gate.unavailable`, `allow` lets it pass.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// The capabilities that it is asked about, as labels. Default: all priced ones.
    pub capabilities: Option<Vec<String>>,
    /// Calls that it may judge at once; further ones wait within their timeout. Default 64.
    #[serde(default)]
    pub concurrency: Slots,
    /// When a failing gate is left alone for a while.
    #[serde(default)]
    pub breaker: BreakerSource,
    /// An Envoy `ext_authz` server over gRPC, such as OPA's Envoy plugin.
    pub ext_authz: Option<ExtAuthzSource>,
    /// A server of our own contract, `portcullis.gate.v1.Gate`.
    pub grpc: Option<GrpcSource>,
    /// A model that judges whether the call is what the user wanted.
    pub judge: Option<JudgeSource>,
    /// A CEL expression over `principal`, `call` and `arguments` that must be true.
    pub cel: Option<String>,
}

/// Whether a gate's objections count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GateMode {
    /// They do.
    #[default]
    Enforce,
    /// They are recorded.
    Shadow,
}

/// What a gate's failure means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The call is refused.
    #[default]
    Deny,
    /// The call passes.
    Allow,
}

/// When a failing gate is left alone.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BreakerSource {
    /// Failures in a row after which it is not asked, 1 to 1000. Default 5.
    pub failures: Failures,
    /// For how long; then one call tries. Default 10s.
    pub open: Span,
}

impl Default for BreakerSource {
    fn default() -> Self {
        Self { failures: Failures(5), open: Span::millis(10_000) }
    }
}

/// `ext_authz`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtAuthzSource {
    /// `unix:/absolute/path`, `http://host:port` or `https://host:port`.
    pub address: String,
    /// PEM certificates that an https address must chain to, in place of the public roots.
    pub ca: Option<PathBuf>,
    /// For one opinion. Default 200ms.
    #[serde(default = "rpc_timeout")]
    pub timeout: Span,
    /// Bytes of arguments that it sees; larger ones are left out whole, and it is told. Default 64KiB.
    #[serde(default = "rpc_arguments")]
    pub arguments: Size,
    /// What becomes of a `WWW-Authenticate` in its denial: `drop` (default), or `pass`, which makes the denial a challenge.
    #[serde(default)]
    pub challenges: Challenges,
}

/// What becomes of a gate's challenge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Challenges {
    /// Nothing.
    #[default]
    Drop,
    /// It reaches the caller.
    Pass,
}

/// `grpc`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrpcSource {
    /// `unix:/absolute/path`, `http://host:port` or `https://host:port`.
    pub address: String,
    /// PEM certificates that an https address must chain to, in place of the public roots.
    pub ca: Option<PathBuf>,
    /// For one opinion. Default 200ms.
    #[serde(default = "rpc_timeout")]
    pub timeout: Span,
    /// Bytes of arguments that it sees; what is larger is cut, and it is told. Default 64KiB.
    #[serde(default = "rpc_arguments")]
    pub arguments: Size,
    /// Where the user's intent is found. Default: none is sent.
    pub intent: Option<IntentSource>,
}

/// `judge`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JudgeSource {
    /// The URL of an OpenAI-compatible chat completions endpoint.
    pub url: String,
    /// The model's name there.
    pub model: String,
    /// The token for it: `{file: …}` or `{env: …}`. Default none.
    pub bearer: Option<SecretSource>,
    /// For one opinion. Default 3s.
    #[serde(default = "judge_timeout")]
    pub timeout: Span,
    /// Where the user's intent is found.
    pub intent: IntentSource,
    /// A call without an intent: `deny` (default) refuses it with `ibac.no_intent`, `allow` lets it pass unjudged. One whose
    /// intent cannot be read, a header that is there twice say, is refused all the same.
    #[serde(default)]
    pub no_intent: OnFailure,
    /// How long a verdict is good for the same principal, intent, capability and arguments. Default: not at all.
    pub cache: Option<Span>,
    /// Whether the caller gets the model's reason, cut to 200 characters. Default false: it is for the audit only.
    #[serde(default)]
    pub disclose_reason: bool,
    /// Bytes of arguments that it sees; of larger ones it sees beginning and end, and is told. Default 16KiB.
    #[serde(default = "judge_arguments")]
    pub arguments: Size,
}

/// Where the user's intent is found: exactly one of three.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct IntentSource {
    /// A request header that the agent sets, lower case.
    pub header: Option<String>,
    /// A key of the message's `params._meta`.
    pub meta: Option<String>,
    /// A claim of the verified token, or the path to one.
    pub claim: Option<String>,
}

impl IntentSource {
    /// The intent behind a call.
    #[must_use]
    pub fn look<'a>(&self, question: &'a Question) -> Intent<'a> {
        match self {
            Self { header: Some(name), .. } => question.header(name),
            Self { meta: Some(key), .. } => question.meta(key),
            Self { claim: Some(name), .. } => question.claim(name),
            _ => Intent::Absent,
        }
    }

    /// The intent behind a call; `None` where the source has none that can be read.
    #[must_use]
    pub fn find<'a>(&self, question: &'a Question) -> Option<&'a str> {
        match self.look(question) {
            Intent::Found(text) => Some(text),
            Intent::Absent | Intent::Unreadable => None,
        }
    }
}

fn rpc_timeout() -> Span {
    Span::millis(200)
}

fn judge_timeout() -> Span {
    Span::millis(3000)
}

fn rpc_arguments() -> Size {
    Size(64 * 1024)
}

fn judge_arguments() -> Size {
    Size(16 * 1024)
}

/// A time, written `50ms`, `3s` or `1m`, at most an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(Duration);

impl Span {
    const fn millis(count: u64) -> Self {
        Self(Duration::from_millis(count))
    }

    /// The time.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// A number of bytes, written `512B`, `16KiB` or `1MiB`, at most 4 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(usize);

impl Size {
    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.0
    }
}

/// A number and its unit.
fn measured(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (digits, unit) = text.split_at_checked(text.find(|c: char| !c.is_ascii_digit())?)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    digits.parse::<u64>().ok()?.checked_mul(*factor).filter(|value| *value > 0)
}

/// A number that is written with its unit.
macro_rules! measure {
    ($type:ident, $parse:expr, $pattern:literal, $expected:literal) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                let parse: fn(&str) -> Option<Self> = $parse;
                parse(&text).ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), &$expected))
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                concat!("Gate", stringify!($type)).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "pattern": $pattern})
            }
        }
    };
}

measure!(
    Span,
    |text| {
        let millis = measured(text, &[("ms", 1), ("s", 1000), ("m", 60_000)])?;
        (millis <= 3_600_000).then(|| Self::millis(millis))
    },
    "^[0-9]+(ms|s|m)$",
    "a time with its unit, above zero and at most 60m, such as 50ms, 3s or 1m"
);
measure!(
    Size,
    |text| {
        let bytes = measured(text, &[("B", 1), ("KiB", 1024), ("MiB", 1024 * 1024)])?;
        usize::try_from(bytes).ok().filter(|bytes| *bytes <= 4 * 1024 * 1024).map(Self)
    },
    "^[0-9]+(B|KiB|MiB)$",
    "a size with its unit, above zero and at most 4MiB, such as 512B or 64KiB"
);

/// A whole number within bounds.
macro_rules! bounded {
    ($(#[$doc:meta])* $type:ident, $default:literal, $low:literal, $high:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
        #[serde(try_from = "u32")]
        pub struct $type(#[schemars(range(min = $low, max = $high))] u32);

        impl $type {
            /// The number.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0
            }
        }

        impl Default for $type {
            fn default() -> Self {
                Self($default)
            }
        }

        impl TryFrom<u32> for $type {
            type Error = String;

            fn try_from(value: u32) -> Result<Self, String> {
                match value {
                    $low..=$high => Ok(Self(value)),
                    _ => Err(format!("expected a number from {} to {}, found {value}", $low, $high)),
                }
            }
        }
    };
}

bounded!(
    /// Failures in a row, 1 to 1000.
    Failures, 5, 1, 1000
);
bounded!(
    /// Calls at once, 1 to 65536.
    Slots, 64, 1, 65536
);
