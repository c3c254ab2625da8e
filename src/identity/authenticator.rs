//! The one place that turns what was presented into a caller.

use std::sync::Arc;

use jsonwebtoken::Algorithm;

use super::{
    Caller, IdentityFault, Presented, bearer,
    cache::{Cache, Digest},
    claims::{self, Checked, ClaimRules},
    introspection::Introspection,
    jwks::KeyStore,
    jwt::{self, Unverified, Verdict},
    peer::{PeerRules, SpiffeId},
};
use crate::{
    message::json::{Document, Limits},
    policy::{Claims, Policy, ScopeSet, Scopes},
};

/// Verified callers that are remembered, per server. The cache promises half of it to those who called last.
const CACHED: usize = 20_000;
/// How long a verified token is good without another look at its signature, seconds.
const CACHED_FOR: u64 = 300;
/// The same for introspected tokens: this bounds how long a revoked one still works, seconds.
const CACHED_INTROSPECTED_FOR: u64 = 60;

/// Turns what was presented into a caller, for one server and one loaded configuration.
pub struct Authenticator {
    pub(super) kind: Kind,
    pub(super) judge: Judge,
    pub(super) cache: Cache<Caller>,
}

/// The five sources of identity.
pub(super) enum Kind {
    Jwt(Jwt),
    Introspection(Box<Introspection>, ClaimRules),
    EnvoyJwt { rules: ClaimRules, payload_key: Box<str> },
    Peer { rules: PeerRules, scopes: ScopeSet },
    Static(Arc<Caller>),
}

/// What [`Kind::Jwt`] needs.
pub(super) struct Jwt {
    pub(super) keys: Arc<KeyStore>,
    pub(super) algorithms: Box<[Algorithm]>,
    pub(super) require_typ: bool,
    pub(super) rules: ClaimRules,
}

/// What the policy makes of claims; the result is remembered with the token, so rules cost nothing the second time.
pub(super) struct Judge {
    pub(super) policy: Arc<Policy>,
    pub(super) scopes: Arc<Scopes>,
}

impl Authenticator {
    pub(super) fn new(kind: Kind, judge: Judge) -> Self {
        Self { kind, judge, cache: Cache::new(CACHED) }
    }

    /// The caller, when that can be told at once: a token that was seen before, or a fixed identity. `None` says
    /// nothing about the token; ask [`Authenticator::authenticate`] then.
    ///
    /// One hash of the token and one look into a map; allocates nothing.
    #[must_use]
    pub fn cached(&self, presented: &Presented<'_>, now: u64) -> Option<Arc<Caller>> {
        if let Kind::Static(caller) = &self.kind {
            return Some(Arc::clone(caller));
        }
        let shown = self.shown(presented).ok()?;
        self.cache.get(&Digest::of(shown), now, self.generation())
    }

    /// The caller that `presented` proves at `now` (unix seconds).
    ///
    /// May wait for the issuer's keys or the authorization server's answer, at most some seconds.
    ///
    /// # Errors
    /// [`IdentityFault`], one variant per reason of rung 6.
    pub async fn authenticate(&self, presented: &Presented<'_>, now: u64) -> Result<Arc<Caller>, IdentityFault> {
        if let Kind::Static(caller) = &self.kind {
            return Ok(Arc::clone(caller));
        }
        let shown = self.shown(presented)?;
        let digest = Digest::of(shown);
        if let Some(caller) = self.cache.get(&digest, now, self.generation()) {
            return Ok(caller);
        }
        let (caller, generation, keep) = match &self.kind {
            Kind::Static(caller) => return Ok(Arc::clone(caller)),
            Kind::Jwt(jwt) => {
                let (document, generation) = jwt.verify(shown, now).await?;
                (self.judge.caller(jwt.rules.check(document, now)?), generation, CACHED_FOR)
            }
            Kind::Introspection(introspection, rules) => {
                let document = introspection.ask(shown).await?;
                (self.judge.caller(rules.check(document, now)?), 0, CACHED_INTROSPECTED_FOR)
            }
            Kind::EnvoyJwt { rules, .. } => {
                let document = jwt::claims(shown.as_bytes())
                    .map_err(|fault| IdentityFault::invalid("the access token's claims cannot be read", fault))?;
                (self.judge.caller(rules.check(document, now)?), 0, CACHED_FOR)
            }
            Kind::Peer { rules, scopes } => {
                let id = rules.accept(Some(shown))?;
                (self.judge.peer(id, scopes)?, 0, CACHED_FOR)
            }
        };
        let caller = Arc::new(caller);
        let dies_at = caller.expires_at.unwrap_or(u64::MAX).min(now.saturating_add(keep));
        self.cache.insert(digest, Arc::clone(&caller), dies_at, generation);
        Ok(caller)
    }

    /// The caller that these claims make, as JSON text, when somebody vouches for them: every check but that of a
    /// signature. With `peer` their `sub` is the certificate's SPIFFE id; with `static` they do not matter.
    ///
    /// For tools that explain a decision ahead of time; no request comes here.
    ///
    /// # Errors
    /// As [`Authenticator::authenticate`].
    pub fn vouched(&self, claims: &str, now: u64) -> Result<Arc<Caller>, IdentityFault> {
        let read = || {
            jwt::claims(claims.as_bytes())
                .map_err(|fault| IdentityFault::invalid("the access token's claims cannot be read", fault))
        };
        let caller = match &self.kind {
            Kind::Static(caller) => return Ok(Arc::clone(caller)),
            Kind::Jwt(Jwt { rules, .. }) | Kind::Introspection(_, rules) | Kind::EnvoyJwt { rules, .. } => {
                self.judge.caller(rules.check(read()?, now)?)
            }
            Kind::Peer { rules, scopes } => {
                let document = read()?;
                let id = document.root().get("sub").and_then(|id| id.as_str());
                self.judge.peer(rules.accept(id)?, scopes)?
            }
        };
        Ok(Arc::new(caller))
    }

    /// The issuer and an audience that claims must name here; `None` where no token is asked for.
    #[must_use]
    pub fn expects(&self) -> Option<(&str, &str)> {
        match &self.kind {
            Kind::Jwt(Jwt { rules, .. }) | Kind::Introspection(_, rules) | Kind::EnvoyJwt { rules, .. } => {
                Some(rules.expects())
            }
            Kind::Peer { .. } | Kind::Static(_) => None,
        }
    }

    /// Whether a caller without identity can be told to get a token; `peer` and `static` have no challenge.
    #[must_use]
    pub fn challenges(&self) -> bool {
        !matches!(self.kind, Kind::Peer { .. } | Kind::Static(_))
    }

    /// Whether the identity is that of the client certificate, [`Presented::peer`].
    #[must_use]
    pub fn reads_peer(&self) -> bool {
        matches!(self.kind, Kind::Peer { .. })
    }

    /// The key of Envoy's `jwt_authn` metadata to hand over in [`Presented::jwt_metadata`]; `None` unless the identity
    /// comes from there.
    #[must_use]
    pub fn payload_key(&self) -> Option<&str> {
        match &self.kind {
            Kind::EnvoyJwt { payload_key, .. } => Some(payload_key),
            _ => None,
        }
    }

    /// The future that follows the file of our own client secret for as long as the authenticator lives; `None` when
    /// there is nothing to follow.
    #[must_use]
    pub fn watch(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        match &self.kind {
            Kind::Introspection(introspection, _) => introspection.watch(),
            _ => None,
        }
    }

    /// What the caller's identity hangs on: the token, the claims or the certificate's URI.
    fn shown<'a>(&self, presented: &Presented<'a>) -> Result<&'a str, IdentityFault> {
        match &self.kind {
            Kind::Jwt(_) | Kind::Introspection(..) => bearer::token(presented.authorization),
            Kind::EnvoyJwt { .. } => presented.jwt_metadata.ok_or(IdentityFault::Missing),
            Kind::Peer { rules, .. } => rules.accept(presented.peer_uri).map(|id| id.id),
            Kind::Static(_) => Ok(""),
        }
    }

    fn generation(&self) -> u64 {
        match &self.kind {
            Kind::Jwt(jwt) => jwt.keys.generation(),
            _ => 0,
        }
    }
}

impl Jwt {
    /// The claims of a token whose signature holds, and the number of the key set that said so.
    async fn verify(&self, token: &str, now: u64) -> Result<(Document, u64), IdentityFault> {
        let unverified = Unverified::read(token, &self.algorithms, self.require_typ)?;
        let id = unverified.key_id.as_deref();
        let no_keys = |fault: super::jwks::NoKeys| IdentityFault::unverifiable(fault.retry_after_seconds, fault.detail);
        let current = self.keys.keys(|keys| keys.knows(id, unverified.algorithm), now).await.map_err(no_keys)?;
        match unverified.verify(&current.keys)? {
            Verdict::Verified(document) => return Ok((document, current.generation)),
            // The id was looked for already; only a token without one gets a second chance with newer keys.
            Verdict::UnknownKey if id.is_some() => return Err(unverified.unknown_key()),
            Verdict::UnknownKey => {}
        }
        let newer = self.keys.keys(|_| false, now).await.map_err(no_keys)?;
        if newer.generation == current.generation {
            return Err(unverified.unknown_key());
        }
        match unverified.verify(&newer.keys)? {
            Verdict::Verified(document) => Ok((document, newer.generation)),
            Verdict::UnknownKey => Err(unverified.unknown_key()),
        }
    }
}

impl Judge {
    fn caller(&self, checked: Checked) -> Caller {
        let scopes = self.scopes.held(claims::scopes(&checked.claims.document));
        self.known(checked.claims, scopes, Some(checked.expires_at))
    }

    fn peer(&self, id: SpiffeId<'_>, scopes: &ScopeSet) -> Result<Caller, IdentityFault> {
        let issuer = format!("spiffe://{}", id.trust_domain);
        let unreadable = |detail: String| IdentityFault::Unidentified {
            public: "the caller cannot be named",
            detail: detail.into(),
        };
        let claims = made_claims(&issuer, id.id, None).map_err(unreadable)?;
        Ok(self.known(claims, scopes.clone(), None))
    }

    /// The caller that these claims make.
    pub(super) fn known(&self, claims: Claims, scopes: ScopeSet, expires_at: Option<u64>) -> Caller {
        let principal = self.policy.principal(&claims);
        Caller { claims, principal, scopes, expires_at }
    }
}

/// Claims that no token carried, in the same form, so that rules on claims see them too.
pub(super) fn made_claims(issuer: &str, subject: &str, email: Option<&str>) -> Result<Claims, String> {
    let mut members = serde_json::Map::new();
    members.insert("iss".into(), issuer.into());
    members.insert("sub".into(), subject.into());
    if let Some(email) = email {
        members.insert("email".into(), email.into());
        members.insert("email_verified".into(), true.into());
    }
    let json = serde_json::Value::from(members).to_string().into_bytes();
    let document = Document::read(json, Limits { depth: 2, nodes: 20 }).map_err(|fault| fault.to_string())?;
    Ok(Claims {
        issuer: issuer.into(),
        subject: subject.into(),
        email: email.map(|address| crate::policy::Email { address: address.into(), verified: true }),
        hosted_domain: None,
        client_id: None,
        document: Arc::new(document),
    })
}
