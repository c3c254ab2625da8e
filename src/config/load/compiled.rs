//! The tables that the service runs with.

use std::path::PathBuf;
use std::sync::Arc;

use crate::ladder::Snapshot;
use crate::record::Recorded;

/// A configuration without faults.
pub struct Compiled {
    /// Where to listen.
    pub listener: Listener,
    /// What requests are judged by: at least one server, names unique, matchers disjoint.
    pub snapshot: Arc<Snapshot>,
    /// By server: where and when its record was taken.
    pub recorded: Vec<Option<Recorded>>,
    /// Threads that serve calls, at least 1.
    pub worker_threads: usize,
    /// HTTP exchanges open at once on one connection, at least 1.
    pub max_streams: u32,
    /// Whether decisions are written to standard output.
    pub audit: bool,
}

/// Where to listen, with everything that needs reading read.
#[derive(Clone, Debug)]
pub enum Listener {
    /// A Unix socket at this absolute path.
    Unix(PathBuf),
    /// TCP with mutual TLS; `None` is `insecure: true`.
    Tcp {
        /// Address and port.
        address: std::net::SocketAddr,
        /// PEM files, read and parsed once.
        tls: Option<TlsMaterial>,
    },
}

/// The content of the listener's PEM files.
#[derive(Clone)]
pub struct TlsMaterial {
    /// Certificate chain.
    pub cert: Vec<u8>,
    /// Private key.
    pub key: Vec<u8>,
    /// Authority of client certificates.
    pub client_ca: Vec<u8>,
}

impl std::fmt::Debug for TlsMaterial {
    /// The private key is for the listener only.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TlsMaterial")
    }
}
