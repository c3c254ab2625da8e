//! The tables that the service runs with.

use crate::extproc::listen::{Address, Tls};
use crate::ladder::Snapshot;
use crate::record::Recorded;
use crate::telemetry::settings::Settings;

/// A configuration without faults, ready to serve.
pub struct Serving {
    /// Where to listen.
    pub address: Address,
    /// Mutual TLS of a TCP listener; `None` for a Unix socket and for `insecure: true`.
    pub tls: Option<Tls>,
    /// What requests are judged by: at least one server, names unique, matchers disjoint.
    pub snapshot: Snapshot,
    /// By server: where and when its record was taken.
    pub recorded: Vec<Option<Recorded>>,
    /// Threads that serve calls, at least 1.
    pub worker_threads: usize,
    /// HTTP exchanges open at once at least 1.
    pub max_streams: usize,
    /// What is told, and to whom.
    pub telemetry: Settings,
}
