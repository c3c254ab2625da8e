//! The tables that the service runs with.

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::model::{Denials, Kind, Limits, Screen, Timeouts, Unmatched};
use crate::identity::config::IdentitySource;
use crate::policy::{Policy, Prices, Scopes};
use crate::record::{Record, Recorded};
use crate::upstream::Credential;

/// A configuration without faults.
#[derive(Debug)]
pub struct Compiled {
    /// Where to listen.
    pub listener: Listener,
    /// What happens to a request that no server matches.
    pub unmatched: Unmatched,
    /// Threads that serve calls, at least 1.
    pub worker_threads: usize,
    /// HTTP exchanges open at once on one connection, at least 1.
    pub max_streams: u32,
    /// The servers in the order of the file, at least one, names unique, matchers disjoint.
    pub servers: Vec<CompiledServer>,
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

/// How requests are recognised as a server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matchers {
    /// By the names of Envoy's routes.
    Route(Vec<String>),
    /// By the names of Envoy's clusters.
    Cluster(Vec<String>),
    /// By authority and exact path.
    Authority {
        /// As written; compare them in canonical form.
        authorities: Vec<String>,
        /// As the bytes stand.
        path: String,
    },
}

/// One server without faults.
#[derive(Debug)]
pub struct CompiledServer {
    /// Its name.
    pub name: String,
    /// What it speaks.
    pub kind: Kind,
    /// How its requests are recognised.
    pub matchers: Matchers,
    /// Its public URL as configured: token audience, RFC 9728 `resource`.
    pub resource: String,
    /// Web origins beside the resource's own, as configured.
    pub allowed_origins: Vec<String>,
    /// MCP revisions spoken.
    pub protocol: Vec<String>,
    /// Where its callers' identity comes from.
    pub identity: IdentitySource,
    /// RFC 8414 metadata to serve.
    pub authorization_server: Option<serde_json::Value>,
    /// What forwarded calls carry upstream.
    pub credential: Credential,
    /// The server's own URL.
    pub upstream_url: Option<String>,
    /// Rules and roles; empty for `kind: http`.
    pub policy: Arc<Policy>,
    /// Scopes that matter.
    pub scopes: Arc<Scopes>,
    /// What costs which permission; empty for `kind: http`.
    pub prices: Prices,
    /// Definitions as approved; empty for `kind: http`.
    pub record: Record,
    /// Where and when the definitions were taken.
    pub recorded: Option<Recorded>,
    /// Bounds on what is read.
    pub limits: Limits,
    /// Bounds on waiting.
    pub timeouts: Timeouts,
    /// How refusals look.
    pub denials: Denials,
    /// Whether answers beyond listings are read.
    pub screen: Screen,
}
