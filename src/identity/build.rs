//! From the `identity:` block to an [`Authenticator`]: everything that can be wrong is found here, all at once.

use std::{path::Path, sync::Arc};

use jsonwebtoken::Algorithm;

use super::{
    KeyStores, algorithm,
    authenticator::{Authenticator, Judge, Jwt, Kind, made_claims},
    claims::ClaimRules,
    config::{ClaimsSource, IdentitySource, IntrospectionSource, JwksSource, JwtSource, PeerSource, StaticSource},
    fetch::requestable,
    introspection::Introspection,
    jwks::Source,
    peer::PeerRules,
};
use crate::policy::{Policy, Scopes, Segment};

/// What an authenticator needs besides its own block.
#[derive(Clone)]
pub struct Setting<'a> {
    /// The server's public URL: the audience of its tokens.
    pub resource: &'a str,
    /// The folder of the configuration file, for relative paths.
    pub base: &'a Path,
    /// The policy that makes principals of claims.
    pub policy: Arc<Policy>,
    /// The scopes that matter to the server.
    pub scopes: Arc<Scopes>,
    /// The key sets of the process.
    pub keys: &'a KeyStores,
}

/// One thing that is wrong with the block: where, from the block's root, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Keys and indices, for example `jwt`, `algorithms`, 0.
    pub path: Vec<Segment>,
    /// What was expected, what came, how to fix it.
    pub message: String,
}

#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, path: &[&str], message: impl Into<String>) {
        let path = path.iter().map(|key| Segment::from(*key)).collect();
        self.0.push(Fault { path, message: message.into() });
    }

    fn add_at(&mut self, path: &[&str], index: usize, message: impl Into<String>) {
        self.add(path, message);
        if let Some(fault) = self.0.last_mut() {
            fault.path.push(Segment::from(index));
        }
    }

    /// `value`, or one more fault.
    fn take<T>(&mut self, path: &[&str], value: Result<T, String>) -> Option<T> {
        value.map_err(|message| self.add(path, message)).ok()
    }
}

impl Authenticator {
    /// Makes the authenticator of one server. Fetches nothing: an issuer that is down must not keep the service down.
    ///
    /// # Errors
    /// All faults of the block.
    pub fn build(source: &IdentitySource, setting: &Setting<'_>) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::default();
        let judge = Judge::new(Arc::clone(&setting.policy), Arc::clone(&setting.scopes));
        let kind = kind(source, setting, &judge, &mut faults);
        match kind {
            Some(kind) if faults.0.is_empty() => {
                // All that verification goes by: the block, and the resource, which is the audience. Derived, so that no key of
                // the block can be forgotten here. Paths in it are relative to a folder that is the process's own.
                let rules = format!("{} {} {source:?}", setting.resource, setting.base.display());
                Ok(Self::new(kind, judge, rules, setting.keys))
            }
            _ => Err(faults.0),
        }
    }
}

fn kind(source: &IdentitySource, setting: &Setting<'_>, judge: &Judge, faults: &mut Faults) -> Option<Kind> {
    let IdentitySource { jwt: source_jwt, introspection: source_introspection, envoy_jwt, peer: source_peer, fixed } =
        source;
    match (source_jwt, source_introspection, envoy_jwt, source_peer, fixed) {
        (Some(source), None, None, None, None) => jwt(source, setting, faults),
        (None, Some(source), None, None, None) => introspection(source, setting, faults),
        (None, None, Some(source), None, None) => {
            let key = "envoy_jwt";
            not_empty(&[key, "payload_key"], &source.payload_key, faults);
            let rules = claim_rules(key, &source.issuer, false, setting, source.claims(), faults);
            Some(Kind::EnvoyJwt { rules, payload_key: source.payload_key.as_str().into() })
        }
        (None, None, None, Some(source), None) => peer(source, setting, faults),
        (None, None, None, None, Some(source)) => fixed_caller(source, judge, faults),
        _ => {
            faults.add(&[], "expected exactly one of `jwt`, `introspection`, `envoy_jwt`, `peer` and `static`");
            None
        }
    }
}

fn jwt(source: &JwtSource, setting: &Setting<'_>, faults: &mut Faults) -> Option<Kind> {
    let algorithms = algorithms(&source.algorithms, faults);
    let rules = claim_rules("jwt", &source.issuer, false, setting, source.claims(), faults);
    let keys = match &source.jwks {
        Some(JwksSource::Url(url)) => faults.take(&["jwt", "jwks"], requestable(url)).map(Source::Url),
        Some(JwksSource::File(path)) => {
            let path = setting.base.join(path);
            let readable =
                std::fs::read(&path).map_err(|error| format!("cannot read the key set {}: {error}", path.display()));
            let usable = readable.and_then(|body| super::jwk::KeySet::read(&body, &algorithms));
            faults.take(&["jwt", "jwks", "file"], usable).map(|_| Source::File(path))
        }
        None => {
            let issuer = requestable(&source.issuer);
            let issuer =
                issuer.map_err(|fault| format!("{fault}; without `jwks` the key set is discovered from the issuer"));
            faults.take(&["jwt", "issuer"], issuer).map(|_| Source::Discovery(source.issuer.clone()))
        }
    };
    let keys = setting.keys.get(keys?, &algorithms);
    Some(Kind::Jwt(Jwt { keys, algorithms: algorithms.into(), require_typ: source.require_typ, rules }))
}

fn algorithms(names: &[String], faults: &mut Faults) -> Vec<Algorithm> {
    const PATH: [&str; 2] = ["jwt", "algorithms"];
    if names.is_empty() {
        faults.add(&PATH, format!("expected at least one of {}", algorithm::NAMES));
    }
    let mut algorithms = Vec::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        match algorithm::named(name) {
            Some(algorithm) if algorithms.contains(&algorithm) => {}
            Some(algorithm) => algorithms.push(algorithm),
            None => {
                let message = format!(
                    "expected one of {}, got {name:?}; symmetric algorithms and `none` are never accepted",
                    algorithm::NAMES
                );
                faults.add_at(&PATH, index, message);
            }
        }
    }
    algorithms
}

fn introspection(source: &IntrospectionSource, setting: &Setting<'_>, faults: &mut Faults) -> Option<Kind> {
    const KEY: &str = "introspection";
    let rules = claim_rules(KEY, &source.issuer, true, setting, source.claims(), faults);
    let endpoint = faults.take(&[KEY, "endpoint"], requestable(&source.endpoint));
    not_empty(&[KEY, "client", "id"], &source.client.id, faults);
    let secret = source.client.secret.read(setting.base).map_err(|fault| fault.to_string());
    let secret = faults.take(&[KEY, "client", "secret"], secret);
    let introspection = Introspection::new(endpoint?, &source.client.id, secret?, setting.keys.fetcher().clone());
    Some(Kind::Introspection(Box::new(introspection), rules))
}

fn peer(source: &PeerSource, setting: &Setting<'_>, faults: &mut Faults) -> Option<Kind> {
    match PeerRules::new(source) {
        Ok(rules) => Some(Kind::Peer { rules, scopes: setting.scopes.held(source.scopes.iter().map(String::as_str)) }),
        Err(found) => {
            for (key, index, message) in found {
                faults.add_at(&["peer", key], index, message);
            }
            None
        }
    }
}

fn fixed_caller(source: &StaticSource, judge: &Judge, faults: &mut Faults) -> Option<Kind> {
    not_empty(&["static", "subject"], &source.subject, faults);
    not_empty(&["static", "issuer"], &source.issuer, faults);
    if let Some(email) = &source.email
        && !email.rsplit_once('@').is_some_and(|(name, domain)| !name.is_empty() && !domain.is_empty())
    {
        faults.add(&["static", "email"], format!("expected an email address, got {email:?}"));
    }
    let claims = made_claims(&source.issuer, &source.subject, source.email.as_deref());
    let claims = faults.take(&["static"], claims)?;
    let scopes = judge.scopes.held(source.scopes.iter().map(String::as_str));
    Some(Kind::Static(Arc::new(judge.known(claims, scopes, None))))
}

fn claim_rules(
    key: &str,
    issuer: &str,
    issuer_may_lack: bool,
    setting: &Setting<'_>,
    source: ClaimsSource<'_>,
    faults: &mut Faults,
) -> ClaimRules {
    not_empty(&[key, "issuer"], issuer, faults);
    not_empty(&[key, "email_claim"], source.email_claim, faults);
    not_empty(&[key, "email_verified_claim"], source.email_verified_claim, faults);
    for (index, audience) in source.audiences.iter().enumerate() {
        if audience.is_empty() {
            faults.add_at(&[key, "audiences"], index, "expected an audience, got an empty text; remove it");
        }
    }
    ClaimRules::new(issuer, issuer_may_lack, setting.resource, source)
}

fn not_empty(path: &[&str], text: &str, faults: &mut Faults) {
    if text.is_empty() {
        faults.add(path, "expected a text that is not empty");
    }
}
