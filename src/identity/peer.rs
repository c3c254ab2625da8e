//! Callers known by their client certificate: the SPIFFE id that Envoy verified.

use std::collections::HashSet;

use super::{IdentityFault, config::PeerSource, fault::shown};

/// Which SPIFFE ids are accepted.
pub(super) struct PeerRules {
    trust_domains: HashSet<Box<str>>,
    ids: HashSet<Box<str>>,
}

/// A SPIFFE id in its two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpiffeId<'a> {
    pub(super) id: &'a str,
    pub(super) trust_domain: &'a str,
}

impl PeerRules {
    /// Reads the rules; the faults come as (key, index, message).
    pub(super) fn new(source: &PeerSource) -> Result<Self, Vec<(&'static str, usize, String)>> {
        let mut faults = Vec::new();
        for (index, domain) in source.trust_domains.iter().enumerate() {
            if !is_trust_domain(domain) {
                let message =
                    format!("expected a SPIFFE trust domain such as acme.com (lower case, no scheme), got {domain:?}");
                faults.push(("trust_domains", index, message));
            }
        }
        for (index, id) in source.ids.iter().enumerate() {
            if SpiffeId::read(id).is_none() {
                faults.push((
                    "ids",
                    index,
                    format!("expected a SPIFFE id such as spiffe://acme.com/agent, got {id:?}"),
                ));
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let boxed = |texts: &[String]| texts.iter().map(|text| text.as_str().into()).collect();
        Ok(Self { trust_domains: boxed(&source.trust_domains), ids: boxed(&source.ids) })
    }

    /// The caller's SPIFFE id, if it is accepted.
    ///
    /// # Errors
    /// [`IdentityFault::Unidentified`].
    pub(super) fn accept<'a>(&self, uri: Option<&'a str>) -> Result<SpiffeId<'a>, IdentityFault> {
        let refuse = |public, got: Option<&str>| {
            let detail = format!(
                "expected a verified certificate with an accepted SPIFFE id, got {}",
                got.map_or("none".into(), shown)
            );
            Err(IdentityFault::Unidentified { public, detail: detail.into() })
        };
        let Some(uri) = uri.filter(|uri| !uri.is_empty()) else {
            return refuse("the connection carries no verified client certificate with a SPIFFE id", None);
        };
        let Some(id) = SpiffeId::read(uri) else {
            return refuse("the client certificate carries no SPIFFE id", Some(uri));
        };
        let any = self.trust_domains.is_empty() && self.ids.is_empty();
        let accepted = any || self.ids.contains(uri) || self.trust_domains.contains(id.trust_domain);
        if accepted { Ok(id) } else { refuse("the client certificate's SPIFFE id is not accepted here", Some(uri)) }
    }
}

impl<'a> SpiffeId<'a> {
    /// SPIFFE-ID §2: `spiffe://` trust domain and path; no port, user, query, fragment, percent-encoding, empty or dot
    /// segment. Compared byte for byte, so only the one spelling is accepted.
    pub(super) fn read(uri: &'a str) -> Option<Self> {
        const MAX_BYTES: usize = 2048;
        let rest = uri.strip_prefix("spiffe://").filter(|_| uri.len() <= MAX_BYTES)?;
        let (trust_domain, path) = rest.split_once('/').map_or((rest, None), |(domain, path)| (domain, Some(path)));
        let segment = |segment: &str| {
            let plain = segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
            plain && !matches!(segment, "" | "." | "..")
        };
        let good = is_trust_domain(trust_domain) && path.is_none_or(|path| path.split('/').all(segment));
        good.then_some(Self { id: uri, trust_domain })
    }
}

fn is_trust_domain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
    (1..=255).contains(&name.len()) && name.bytes().all(plain)
}

#[cfg(test)]
mod tests;
