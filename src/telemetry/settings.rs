//! What the configuration's `telemetry` comes to, once its files are read.

use std::path::PathBuf;
use std::time::Duration;

/// Everything that telemetry is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The collector; `None` where only `OTEL_*` variables may name one.
    pub otlp: Option<Otlp>,
    /// Whether audit lines go to standard output.
    pub stdout: bool,
    /// The file that audit lines go to.
    pub file: Option<PathBuf>,
    /// What happens to calls whose audit event would not be kept.
    pub when_full: WhenFull,
    /// What is logged, in the syntax of `RUST_LOG`, which wins.
    pub log: Option<String>,
    /// Whether the last refusals are kept, for the admin page ([`super::recent`]).
    pub recent: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { otlp: None, stdout: true, file: None, when_full: WhenFull::Drop, log: None, recent: false }
    }
}

/// A collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otlp {
    /// Its URL, without a path for one of the signals.
    pub endpoint: String,
    /// How it is spoken to.
    pub protocol: Protocol,
    /// For one export.
    pub timeout: Option<Duration>,
    /// PEM certificates of authorities that it may chain to, besides those of the web.
    pub ca: Option<Vec<u8>>,
}

/// The two encodings of OTLP that are spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// gRPC.
    #[default]
    Grpc,
    /// Protobuf in HTTP requests.
    HttpProtobuf,
}

/// What happens when an audit event would not be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is dropped and counted; calls go on.
    #[default]
    Drop,
    /// New calls are refused as `overloaded`.
    Refuse,
}
