//! Who is calling: tokens, key sets, challenges, protected-resource metadata.
//!
//! ```text
//! Presented ──▶ Authenticator ──▶ Caller (claims, principal, scopes)      seen before: one hash, one look
//!                 │ jwt:           bearer → jwt (header, signature) ← jwks (the issuer's keys) → claims
//!                 │ introspection: bearer → the authorization server is asked → claims
//!                 │ envoy_jwt:     Envoy's verified claims → claims
//!                 │ peer:          the verified certificate's SPIFFE id
//!                 └ static:        one fixed caller
//! ```
//!
//! Whatever verified a token, its claims pass the same checks (`claims`), and the policy makes the principal of them
//! once, when the token is first seen. A failure is an [`IdentityFault`]; the ladder gives it its reason, [`challenge`]
//! and [`metadata`] tell the client where a good token is to be had. Nothing is fetched because a token names it.

use crate::policy::{Claims, Principal, ScopeSet};

pub mod challenge;
pub mod config;
pub mod metadata;

mod algorithm;
mod authenticator;
mod bearer;
mod build;
mod cache;
mod claims;
mod discovery;
mod fault;
mod fetch;
mod introspection;
mod jwk;
mod jwks;
mod jwt;
mod peer;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use authenticator::Authenticator;
pub use build::{Fault, Setting};
pub use fault::IdentityFault;
pub use jwks::{KeyStores, Refreshes};

/// Somebody whose identity was verified, and what the policy gives them. Shared by all calls with the same token.
#[derive(Debug)]
pub struct Caller {
    /// What the token, the certificate or the configuration says about them.
    pub claims: Claims,
    /// What the policy makes of it.
    pub principal: Principal,
    /// The scopes that matter to the server and that they hold, implied ones included.
    pub scopes: ScopeSet,
    /// The unix second from which on this identity is not good any more (`exp` and the leeway); `None` when it does not
    /// end by itself.
    pub expires_at: Option<u64>,
    /// Which configuration judged the claims: another one has to judge them anew.
    pub(crate) judged_by: u64,
}

/// What a request brings to prove who is calling. Which part counts is the configuration's choice, never the caller's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Presented<'a> {
    /// The `Authorization` header's value as it came.
    pub authorization: Option<&'a str>,
    /// The claims that Envoy's `jwt_authn` filter put into its dynamic metadata, as JSON text.
    pub jwt_metadata: Option<&'a str>,
    /// The attribute `connection.uri_san_peer_certificate`.
    pub peer_uri: Option<&'a str>,
}
