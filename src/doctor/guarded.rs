//! What Portcullis's own configuration says that Envoy's must fit.

use std::time::Duration;

use crate::config::Serving;
use crate::extproc::listen::Address;
use crate::ladder::server::{Matcher, Unmatched};
use crate::ladder::{Kind, Server, head::normal_authority};
use crate::upstream::Credential;

/// The parts of a loaded configuration that matter to Envoy.
pub struct Guarded {
    pub(super) servers: Vec<Guard>,
    /// `unmatched: pass`.
    pub(super) passes: bool,
    pub(super) max_streams: u64,
    pub(super) address: Address,
}

/// One server.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Guard {
    pub(super) name: String,
    pub(super) matcher: Matcher,
    pub(super) scheme: String,
    /// `limits.request`; `None` where no body is read.
    pub(super) request: Option<u64>,
    /// What its enforced gates may take together.
    pub(super) gates: Duration,
    /// The caller's own token goes upstream.
    pub(super) passthrough: bool,
    /// It is called with a token of ours.
    pub(super) credential: bool,
    pub(super) envoy_jwt: bool,
    pub(super) peer: bool,
}

impl Guarded {
    /// What `serving` needs of Envoy.
    #[must_use]
    pub fn of(serving: &Serving) -> Self {
        Self {
            servers: serving.snapshot.servers().iter().map(|server| Guard::of(server)).collect(),
            passes: serving.snapshot.unmatched() == Unmatched::Pass,
            max_streams: u64::try_from(serving.max_streams).unwrap_or(u64::MAX),
            address: serving.address.clone(),
        }
    }
}

impl Guard {
    fn of(server: &Server) -> Self {
        Self {
            name: server.name.to_string(),
            matcher: server.matcher.clone(),
            scheme: server.resource.scheme.clone(),
            request: (server.kind == Kind::Mcp).then(|| u64::try_from(server.limits.request).unwrap_or(u64::MAX)),
            gates: server.gates.enforced_time(),
            passthrough: matches!(server.credential, Credential::Passthrough),
            credential: matches!(server.credential, Credential::Bearer(_)),
            envoy_jwt: server.authenticator.payload_key().is_some(),
            peer: server.authenticator.reads_peer(),
        }
    }

    /// Whether requests of this authority, as a virtual host's domain names it, can be this server's.
    pub(super) fn has_domain(&self, domain: &str) -> bool {
        let Matcher::Authority { authorities, .. } = &self.matcher else { return false };
        let wanted = normal_authority(domain, &self.scheme);
        authorities.iter().any(|authority| {
            let own = normal_authority(authority, &self.scheme);
            own == wanted || wildcard(domain, &own)
        })
    }
}

/// Envoy's domains: `*`, `*.example.com`, `example.*`.
fn wildcard(domain: &str, authority: &str) -> bool {
    let domain = domain.to_ascii_lowercase();
    match (domain.strip_prefix('*'), domain.strip_suffix('*')) {
        (Some(end), _) => authority.ends_with(end),
        (_, Some(start)) => authority.starts_with(start),
        _ => false,
    }
}
