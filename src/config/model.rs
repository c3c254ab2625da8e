//! `portcullis.yaml` as types: what each key means, its default, and its JSON Schema, in the order of the file.
//!
//! Required keys whose value can be faulty in many ways are optional here and asked for by [`super::load()`]: their fault
//! must not hide those of everything beside them. Every struct refuses unknown keys. A key exists here only when this version
//! acts on it.

mod envoy;
mod listen;
mod matcher;
mod server;
mod telemetry;
mod values;

#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::Deserialize;

pub use crate::screen::ScreenSource;
pub use envoy::{Envoy, MetadataKey};
pub use listen::{AdminListener, AdminPage, ExtProcListener, Listen, ServerTls, TcpListener};
pub use matcher::Match;
pub use server::{
    AuthorizationServer, Concurrency, Denials, Depth, Disclose, Kind, Limits, Mode, ProtocolVersion, RecordFile,
    Server, StepUp, Timeouts, Upstream,
};
pub use telemetry::{Audit, AuditStdout, Otlp, OtlpProtocol, Telemetry, WhenFull};
pub use values::{
    ByteSize, FileOr, FileReference, Period, PolicyStatus, RefusalCode, UnlistedMethodStatus, UpstreamStatus,
};

/// The configuration of Portcullis: `portcullis.yaml`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "portcullis.yaml")]
pub struct Configuration {
    /// Where Portcullis listens.
    #[schemars(required)]
    pub listen: Option<Listen>,
    /// What Envoy's filter is set to, as far as Portcullis must know it.
    #[serde(default)]
    pub envoy: Envoy,
    /// What happens to a request that no server matches: `deny` (default) refuses it, `pass` forwards it untouched.
    /// Pass is for a sidecar beside an agent, on routes whose processing mode never buffers. On an authority that any
    /// server names, an unmatched path is refused whatever stands here.
    #[serde(default)]
    pub unmatched: Unmatched,
    /// Threads that serve calls. Default 1: a call costs microseconds, and one thread on one core is the quickest.
    #[serde(default = "one")]
    pub worker_threads: NonZeroUsize,
    /// HTTP exchanges that may be open at once; one beyond is answered at once with `overloaded`. A running SSE answer is
    /// one. Default 16384.
    #[serde(default)]
    pub max_streams: MaxStreams,
    /// Bytes that may be held back at one time, of all servers together: answers until they are judged, and calls that wait
    /// for a listing or a gate. Further ones are refused as `overloaded`. Default 256MiB.
    #[serde(default = "held_answers")]
    pub held_answers: ByteSize,
    /// How the process ends when it is told to (SIGTERM, SIGINT).
    #[serde(default)]
    pub drain: DrainSource,
    /// The upstream servers that Portcullis guards, at least one.
    #[schemars(length(min = 1))]
    pub servers: Vec<Server>,
    /// What Portcullis tells about itself.
    #[serde(default)]
    pub telemetry: Telemetry,
}

fn held_answers() -> ByteSize {
    ByteSize::mebibytes(256)
}

fn one() -> NonZeroUsize {
    NonZeroUsize::MIN
}

/// What happens to a request that no server matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unmatched {
    /// Refuse it.
    #[default]
    Deny,
    /// Forward it untouched.
    Pass,
}

/// A bound on concurrent streams, 1 to 1,048,576.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "u32")]
pub struct MaxStreams(#[schemars(range(min = 1, max = 1_048_576))] u32);

impl MaxStreams {
    /// The bound.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for MaxStreams {
    fn default() -> Self {
        Self(16_384)
    }
}

impl TryFrom<u32> for MaxStreams {
    type Error = String;

    fn try_from(value: u32) -> Result<Self, String> {
        match value {
            1..=1_048_576 => Ok(Self(value)),
            _ => Err(format!("expected a number of streams from 1 to 1048576, found {value}")),
        }
    }
}

/// How the process ends. A supervisor must wait longer than `delay` and `timeout` together before it kills.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DrainSource {
    /// How long new exchanges are taken after readiness went off, for whoever health-checks to send no more. Default none:
    /// an Envoy beside it needs no time.
    pub delay: Option<Period>,
    /// How long open exchanges may take to finish after that. What is still open then is refused, or ends with an error.
    /// Default 10s.
    pub timeout: Period,
}

impl Default for DrainSource {
    fn default() -> Self {
        Self { delay: None, timeout: Period::seconds(10) }
    }
}
