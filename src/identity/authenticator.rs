//! The one place that turns what was presented into a caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::Algorithm;

use super::{
    Caller, IdentityFault, Presented, bearer,
    cache::{Cache, Digest},
    claims::{self, Checked, ClaimRules},
    introspection::Introspection,
    jwks::{KeyStore, KeyStores},
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

/// How often keys that could not be had at the start are tried again; the store has its own bound on that.
const FETCH_AGAIN: Duration = Duration::from_secs(5);

/// Turns what was presented into a caller, for one server and one loaded configuration.
pub struct Authenticator {
    pub(super) kind: Kind,
    pub(super) judge: Judge,
    /// Callers that were verified, by this configuration or by an earlier one with the same rules of verification.
    pub(super) cache: Arc<Cache<Caller>>,
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
    policy: Arc<Policy>,
    pub(super) scopes: Arc<Scopes>,
    /// The number of this judge: what another one has judged is judged anew.
    number: u64,
}

impl Judge {
    pub(super) fn new(policy: Arc<Policy>, scopes: Arc<Scopes>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { policy, scopes, number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Authenticator {
    /// `rules` is all that verification goes by, as text.
    pub(super) fn new(kind: Kind, judge: Judge, rules: String, keys: &KeyStores) -> Self {
        Self { kind, judge, cache: keys.verified(rules, CACHED) }
    }

    /// A verified caller who may have been judged by another configuration, as this one judges them; `None` when they were
    /// verified by other rules than this configuration's, so that nothing of it counts here. `verified_by` is whose they are.
    #[must_use]
    pub fn again(&self, caller: &Arc<Caller>, verified_by: &Self) -> Option<Arc<Caller>> {
        match (&self.kind, &verified_by.kind) {
            (Kind::Static(own), Kind::Static(_)) => Some(Arc::clone(own)),
            _ if !Arc::ptr_eq(&self.cache, &verified_by.cache) => None,
            _ => Some(self.judged(Arc::clone(caller))),
        }
    }

    /// A remembered caller. One whom an earlier configuration judged is judged anew: its rules are not ours, and its
    /// permissions are bits of another table.
    fn remembered(&self, digest: &Digest, now: u64) -> Option<Arc<Caller>> {
        let caller = self.cache.get(digest, now, self.generation())?;
        let before = Arc::clone(&caller);
        let caller = self.judged(caller);
        if !Arc::ptr_eq(&before, &caller) {
            self.cache.replace(digest, Arc::clone(&caller));
        }
        Some(caller)
    }

    fn judged(&self, caller: Arc<Caller>) -> Arc<Caller> {
        if caller.judged_by == self.judge.number {
            return caller;
        }
        let scopes = match &self.kind {
            Kind::Peer { scopes, .. } => scopes.clone(),
            _ => self.judge.scopes.held(claims::scopes(&caller.claims.document)),
        };
        Arc::new(self.judge.known(caller.claims.clone(), scopes, caller.expires_at))
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
        self.remembered(&Digest::of(shown), now)
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
        if let Some(caller) = self.remembered(&digest, now) {
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

    /// The future that fetches the issuer's keys, and tries again until they are had once or the authenticator is gone;
    /// `None` when no keys are needed. So the first caller does not wait for them, and readiness does not wait for a call.
    #[must_use]
    pub fn fetch_keys(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let Kind::Jwt(jwt) = &self.kind else { return None };
        let keys = Arc::downgrade(&jwt.keys);
        Some(async move {
            while let Some(keys) = keys.upgrade() {
                if keys.keys(|_| true, unix_now()).await.is_ok() {
                    return;
                }
                drop(keys);
                tokio::time::sleep(FETCH_AGAIN).await;
            }
        })
    }

    /// When the issuer's keys were last fetched, unix seconds. The outer `None`: no keys are needed; the inner: there are
    /// none yet.
    #[must_use]
    pub fn keys_fetched_at(&self) -> Option<Option<u64>> {
        match &self.kind {
            Kind::Jwt(jwt) => Some(jwt.keys.fetched_at()),
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
        Caller { claims, principal, scopes, expires_at, judged_by: self.number }
    }
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
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
