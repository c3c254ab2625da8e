//! `telemetry`: what Portcullis tells about itself, and to whom.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::values::Period;

/// What Portcullis tells about itself. Metrics are always there for a Prometheus scrape.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// The collector that metrics, traces and audit events are exported to. `OTEL_*` variables win over what stands here,
    /// and are enough without it. Default: none.
    #[serde(default)]
    pub otlp: Option<Otlp>,
    /// One event per decision.
    #[serde(default)]
    pub audit: Audit,
    /// What is logged on standard error, in the syntax of `RUST_LOG`, which wins: `debug`, or
    /// `info,portcullis::gates=debug`. Default `info`.
    #[serde(default)]
    pub log: Option<String>,
}

/// An OpenTelemetry collector.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Otlp {
    /// Its URL, such as `http://otel-collector:4317`; with `http/protobuf` without `/v1/…`, which is added. Headers, secrets
    /// among them, come from `OTEL_EXPORTER_OTLP_HEADERS`.
    pub endpoint: String,
    /// `grpc` (default), usually port 4317, or `http/protobuf`, usually port 4318.
    #[serde(default)]
    pub protocol: OtlpProtocol,
    /// How long one export may take. Default 10s.
    #[serde(default)]
    pub timeout: Option<Period>,
    /// PEM file of the authorities that an https collector's certificate may chain to, relative to this file, instead of the
    /// web's.
    #[serde(default)]
    pub ca: Option<PathBuf>,
}

/// How a collector is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum OtlpProtocol {
    /// gRPC.
    #[default]
    #[serde(rename = "grpc")]
    Grpc,
    /// Protobuf over HTTP.
    #[serde(rename = "http/protobuf")]
    HttpProtobuf,
}

/// Where audit events go, besides a collector.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// `json` (default) writes one line of JSON per decision to standard output; `off` writes none.
    #[serde(default)]
    pub stdout: AuditStdout,
    /// A file that the same lines are appended to, relative to this file. It may be rotated by renaming it. Default: none.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// What happens when events come faster than they can be written, or cannot be written at all: `drop` (default) drops
    /// and counts them; `refuse` refuses new calls as `overloaded` before they are forwarded, so that none goes untold.
    #[serde(default)]
    pub when_full: WhenFull,
}

/// The form of the audit on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuditStdout {
    /// One line of JSON per decision.
    #[default]
    Json,
    /// Nothing.
    Off,
}

/// What happens when an audit event would not be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WhenFull {
    /// It is dropped and counted.
    #[default]
    Drop,
    /// New calls are refused.
    Refuse,
}
