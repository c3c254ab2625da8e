//! What is guarded: one [`Server`] per upstream, and the [`Snapshot`] of all of them that one request is judged by.

use std::collections::HashMap;
use std::sync::Arc;

use crate::gates::Gates;
use crate::identity::Authenticator;
use crate::identity::metadata::Metadata;
use crate::policy::{Policy, Prices, Scopes};
use crate::record::Record;
use crate::refusal::Denials;
use crate::screen::Detectors;
use crate::telemetry::Known;
use crate::upstream::{Credential, Freshness};

use super::budget::HeldAnswers;
use super::head::normal_authority;
use super::patience::EnvoyTimeouts;

/// The default of [`Snapshot::held_answers`].
const HELD_ANSWERS: usize = 256 * 1024 * 1024;

/// What kind of traffic a server entry guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// MCP: the whole ladder.
    Mcp,
    /// Plain HTTP beside MCP: identity only.
    Http,
}

/// What happens to a request that no server matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmatched {
    /// Refused: `route.unmatched`.
    Deny,
    /// Forwarded untouched.
    Pass,
}

/// How a request is recognised as a server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matcher {
    /// By the names of Envoy's routes.
    Route(Vec<String>),
    /// By the names of Envoy's clusters.
    Cluster(Vec<String>),
    /// By authority and exact path.
    Authority {
        /// Authorities, any form; compared by [`normal_authority`].
        authorities: Vec<String>,
        /// The path as the bytes stand.
        path: String,
    },
}

/// Bounds of one server's traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of a request body.
    pub request: usize,
    /// Most bytes of a listing, of a discovery answer and of one event of a stream.
    pub listing: usize,
    /// Most bytes of any other answer; at least `listing`.
    pub answer: usize,
    /// Most nesting of a request or an answer.
    pub depth: usize,
    /// Milliseconds for a request body to arrive once its headers are here.
    pub body_time: u64,
    /// Milliseconds for an answer that is read to begin once the call was forwarded.
    pub wait_time: u64,
    /// Milliseconds for a held answer, or a held event of a stream, to become complete.
    pub answer_time: u64,
}

/// The public address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The URL as configured: token audience, RFC 9728 `resource`.
    pub url: String,
    /// Its origin (`scheme://authority`), comparable.
    pub origin: String,
    /// Its authority, comparable.
    pub authority: String,
    /// Its scheme.
    pub scheme: String,
}

/// One guarded server.
pub struct Server {
    /// Name in configuration, metrics, audit and dynamic metadata.
    pub name: Arc<str>,
    /// The number of its name in this process, which is where its counters stand: a reload may add servers, take some away
    /// and reorder them, and each goes on counting.
    pub index: usize,
    /// What it guards.
    pub kind: Kind,
    /// How its requests are recognised.
    pub matcher: Matcher,
    /// Its public address.
    pub resource: Resource,
    /// Browser origins beside its own, comparable (lower case, no default port).
    pub allowed_origins: Vec<String>,
    /// Revisions that are spoken.
    pub protocol: Vec<String>,
    /// Who is calling.
    pub authenticator: Authenticator,
    /// The metadata documents that are answered here.
    pub metadata: Metadata,
    /// All scopes that matter.
    pub scopes: Arc<Scopes>,
    /// Rules and roles.
    pub policy: Arc<Policy>,
    /// What costs which permission.
    pub prices: Prices,
    /// Definitions as approved.
    pub record: Record,
    /// Whether what was approved is still what is offered; `None` for plain HTTP, which has no record. An MCP server
    /// without it would have no capability that can be called or listed.
    pub freshness: Option<Arc<Freshness>>,
    /// What is presented upstream instead of the caller's token.
    pub credential: Credential,
    /// Bounds.
    pub limits: Limits,
    /// Wire forms of refusals.
    pub denials: Denials,
    /// What is looked for in answers other than listings; `None` where they are not read.
    pub screen: Option<Detectors>,
    /// External opinions on its calls.
    pub gates: Arc<Gates>,
    /// Shadow mode: refusals of the policy class are recorded, and the call goes on.
    pub shadow: bool,
}

/// Which keys the dynamic metadata of a verdict has beside those that the shipped files read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataKeys {
    /// `method`.
    pub method: bool,
    /// `capability`.
    pub capability: bool,
    /// `principal`.
    pub principal: bool,
}

/// Everything one request is judged by; a reload makes a new one and leaves requests in flight with theirs.
pub struct Snapshot {
    servers: Vec<Arc<Server>>,
    unmatched: Unmatched,
    held_answers: Arc<HeldAnswers>,
    envoy: EnvoyTimeouts,
    metadata: MetadataKeys,
    routes: HashMap<String, usize>,
    clusters: HashMap<String, usize>,
    addresses: HashMap<(String, String), usize>,
    /// Authorities that some server names, with the servers whose resource has that authority.
    authorities: HashMap<String, Vec<usize>>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.servers.iter().map(|server| &*server.name).collect();
        f.debug_struct("Snapshot").field("servers", &names).finish_non_exhaustive()
    }
}

/// Two servers that would both match a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("server {second} matches the same {what} as server {first}: {value}")]
pub struct Overlap {
    /// The earlier server's index.
    pub first: usize,
    /// The later server's index.
    pub second: usize,
    /// `route`, `cluster` or `address`.
    pub what: &'static str,
    /// The name that both match.
    pub value: String,
}

impl Snapshot {
    /// Indexes the servers, so that finding one does not depend on how many there are.
    ///
    /// # Errors
    /// Every pair of servers that would match the same request.
    pub fn new(servers: Vec<Arc<Server>>, unmatched: Unmatched) -> Result<Self, Vec<Overlap>> {
        let mut snapshot = Self {
            servers: Vec::new(),
            unmatched,
            held_answers: Arc::new(HeldAnswers::new(HELD_ANSWERS)),
            envoy: EnvoyTimeouts::default(),
            metadata: MetadataKeys::default(),
            routes: HashMap::new(),
            clusters: HashMap::new(),
            addresses: HashMap::new(),
            authorities: HashMap::new(),
        };
        let mut overlaps = Vec::new();
        for (index, server) in servers.iter().enumerate() {
            snapshot.index(index, server, &mut overlaps);
        }
        snapshot.servers = servers;
        if overlaps.is_empty() { Ok(snapshot) } else { Err(overlaps) }
    }

    fn index(&mut self, index: usize, server: &Server, overlaps: &mut Vec<Overlap>) {
        let mut clash = |first: Option<usize>, what, value: String| {
            if let Some(first) = first.filter(|first| *first != index) {
                overlaps.push(Overlap { first, second: index, what, value });
            }
        };
        self.authorities.entry(server.resource.authority.clone()).or_default().push(index);
        match &server.matcher {
            Matcher::Route(names) => {
                for name in names {
                    clash(self.routes.insert(name.clone(), index), "route", name.clone());
                }
            }
            Matcher::Cluster(names) => {
                for name in names {
                    clash(self.clusters.insert(name.clone(), index), "cluster", name.clone());
                }
            }
            Matcher::Authority { authorities, path } => {
                // Whatever the resource's scheme: a request says `http` to a proxy beside an agent, and its port 80 is no port.
                let schemes = ["http", server.resource.scheme.as_str()];
                for (authority, scheme) in authorities.iter().flat_map(|name| schemes.map(|scheme| (name, scheme))) {
                    let authority = normal_authority(authority, scheme);
                    self.authorities.entry(authority.clone()).or_default();
                    let value = format!("{authority}{path}");
                    clash(self.addresses.insert((authority, path.clone()), index), "address", value);
                }
            }
        }
    }

    /// The same with another bound on the bytes of answers held at one time. Whoever replaces a snapshot by one with the
    /// same bound hands the old one's over, so that the answers it still holds go on counting.
    #[must_use]
    pub fn with_held_answers(mut self, bound: Arc<HeldAnswers>) -> Self {
        self.held_answers = bound;
        self
    }

    /// The same for an Envoy with other timeouts than the shipped ones.
    #[must_use]
    pub fn with_envoy(mut self, timeouts: EnvoyTimeouts) -> Self {
        self.envoy = timeouts;
        self
    }

    /// The same for an Envoy where somebody reads more of a verdict.
    #[must_use]
    pub fn with_metadata(mut self, keys: MetadataKeys) -> Self {
        self.metadata = keys;
        self
    }

    /// What a verdict says for those who read it.
    #[must_use]
    pub fn metadata(&self) -> MetadataKeys {
        self.metadata
    }

    /// How long Envoy waits.
    #[must_use]
    pub fn envoy(&self) -> &EnvoyTimeouts {
        &self.envoy
    }

    /// The bound on the bytes of answers held at one time, 256 MiB unless another was set.
    #[must_use]
    pub fn held_answers(&self) -> &Arc<HeldAnswers> {
        &self.held_answers
    }

    /// What is guarded, by name: the labels of each server's capabilities, which bound those of metrics.
    #[must_use]
    pub fn known(&self) -> Known {
        let labels = |server: &Server| {
            server.prices.capabilities().iter().map(|capability| Arc::clone(&capability.text)).collect()
        };
        self.servers.iter().map(|server| (Arc::clone(&server.name), labels(server))).collect()
    }

    /// All servers in configuration order.
    #[must_use]
    pub fn servers(&self) -> &[Arc<Server>] {
        &self.servers
    }

    /// What happens to a request that no server matches.
    #[must_use]
    pub fn unmatched(&self) -> Unmatched {
        self.unmatched
    }

    /// Whether some server is recognised by route name.
    #[must_use]
    pub fn needs_route(&self) -> bool {
        !self.routes.is_empty()
    }

    /// Whether some server is recognised by cluster name.
    #[must_use]
    pub fn needs_cluster(&self) -> bool {
        !self.clusters.is_empty()
    }

    /// The server behind a route name.
    #[must_use]
    pub fn by_route(&self, name: &str) -> Option<&Arc<Server>> {
        self.servers.get(*self.routes.get(name)?)
    }

    /// The server behind a cluster name.
    #[must_use]
    pub fn by_cluster(&self, name: &str) -> Option<&Arc<Server>> {
        self.servers.get(*self.clusters.get(name)?)
    }

    /// The server at a comparable authority and an exact path.
    #[must_use]
    pub fn by_address(&self, authority: &str, path: &str) -> Option<&Arc<Server>> {
        self.servers.get(*self.addresses.get(&(authority.to_owned(), path.to_owned()))?)
    }

    /// The servers whose resource has this comparable authority; `None` when no server names it at all.
    #[must_use]
    pub fn on_authority(&self, authority: &str) -> Option<impl Iterator<Item = &Arc<Server>>> {
        let indices = self.authorities.get(authority)?;
        Some(indices.iter().filter_map(|index| self.servers.get(*index)))
    }

    /// Whether some server names the host of this comparable authority, under whatever port. Linear in the servers: for
    /// tunnels only.
    #[must_use]
    pub fn on_host(&self, authority: &str) -> bool {
        self.authorities.keys().any(|guarded| without_port(guarded) == without_port(authority))
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}
