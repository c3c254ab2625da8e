//! The tables that the service runs with.

use std::time::Duration;

use super::Kept;
use crate::config::model::AdminListener;
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
    /// The admin listener, if there is one.
    pub admin: Option<AdminListener>,
    /// What requests are judged by: at least one server, names unique, matchers disjoint.
    pub snapshot: Snapshot,
    /// What the next configuration may take over from this one.
    pub kept: Kept,
    /// By server: where and when its record was taken.
    pub recorded: Vec<Option<Recorded>>,
    /// Threads that serve calls, at least 1.
    pub worker_threads: usize,
    /// HTTP exchanges open at once at least 1.
    pub max_streams: usize,
    /// How the process ends.
    pub drain: Drain,
    /// What is told, and to whom.
    pub telemetry: Settings,
}

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    /// How long new exchanges are taken after readiness went off.
    pub delay: Duration,
    /// How long open exchanges may take to finish then.
    pub timeout: Duration,
}
