//! JSON Web Tokens: header and signature (RFC 7515, 7519, 8725). What the claims must say is [`super::claims`]' part.
//!
//! Both JSON parts go through the strict reader, so a repeated claim refuses instead of meaning one thing here and
//! another at the next reader. The signature is verified over the original bytes. Header members that offer a key
//! (`jwk`, `jku`, `x5u`, `x5c`) are never looked at: keys come from the configured issuer only.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::Algorithm;

use super::{
    IdentityFault, algorithm,
    fault::shown,
    jwk::{Found, KeySet},
};
use crate::message::json::{Document, Kind, Limits};

const HEADER_LIMITS: Limits = Limits { depth: 8, nodes: 200 };
const CLAIMS_LIMITS: Limits = Limits { depth: 32, nodes: 10_000 };

const NOT_A_JWT: &str = "the access token is not a JSON Web Token";

/// A token whose header was read and whose signature was not verified yet.
pub(super) struct Unverified<'t> {
    /// `kid`, when the header has one.
    pub(super) key_id: Option<Box<str>>,
    /// `alg`, one of the accepted.
    pub(super) algorithm: Algorithm,
    /// Header and payload as they stand: what the signature is over.
    signed: &'t str,
    payload: &'t str,
    signature: &'t str,
}

/// What a key set makes of a token.
pub(super) enum Verdict {
    /// The signature holds; these are the claims.
    Verified(Document),
    /// No key for it, but a newer key set may have one.
    UnknownKey,
}

impl<'t> Unverified<'t> {
    /// Takes `token` apart and reads its header.
    ///
    /// # Errors
    /// [`IdentityFault::Invalid`]: not a signed JWT, an algorithm that is not in `accepted`, a `crit` header (nothing
    /// critical is implemented), a `typ` that is not a token's (with `require_typ`: not an access token's).
    pub(super) fn read(token: &'t str, accepted: &[Algorithm], require_typ: bool) -> Result<Self, IdentityFault> {
        let malformed = || IdentityFault::invalid(NOT_A_JWT, "expected three base64url parts with dots between them");
        let (signed, signature) = token.rsplit_once('.').ok_or_else(malformed)?;
        let (header, payload) =
            signed.split_once('.').filter(|(_, payload)| !payload.contains('.')).ok_or_else(malformed)?;
        let header = part(header, HEADER_LIMITS, "header")?;
        let header = header.root();
        if header.get("crit").is_some() {
            return Err(IdentityFault::invalid(
                "the access token has critical extensions",
                "expected no `crit` in the header",
            ));
        }
        let text = |name| match header.get(name).map(|value| value.as_str()) {
            None => Ok(None),
            Some(Some(text)) => Ok(Some(text)),
            Some(None) => Err(IdentityFault::invalid(NOT_A_JWT, format!("expected a string in the header's `{name}`"))),
        };
        check_typ(text("typ")?, require_typ)?;
        let name = text("alg")?.ok_or_else(|| IdentityFault::invalid(NOT_A_JWT, "expected an `alg` in the header"))?;
        let algorithm = algorithm::named(name).filter(|algorithm| accepted.contains(algorithm)).ok_or_else(|| {
            let detail = format!("expected one of the configured algorithms, got {}", shown(name));
            IdentityFault::invalid("the access token is signed with an algorithm that is not accepted", detail)
        })?;
        Ok(Self { key_id: text("kid")?.map(Box::from), algorithm, signed, payload, signature })
    }

    /// Verifies the signature with the key that the header names and reads the claims.
    ///
    /// # Errors
    /// [`IdentityFault::Invalid`]: the key does not fit, the signature does not hold, or the payload is not an object.
    pub(super) fn verify(&self, keys: &KeySet) -> Result<Verdict, IdentityFault> {
        let candidates = match keys.find(self.key_id.as_deref(), self.algorithm) {
            Found::Keys(candidates) => candidates,
            Found::Unknown => return Ok(Verdict::UnknownKey),
            Found::Unfit(reason) => {
                return Err(IdentityFault::invalid("the access token's key does not fit its algorithm", reason));
            }
        };
        let holds = candidates.iter().any(|key| {
            let verified =
                jsonwebtoken::crypto::verify(self.signature, self.signed.as_bytes(), &key.decoding, self.algorithm);
            matches!(verified, Ok(true))
        });
        if holds {
            return part(self.payload, CLAIMS_LIMITS, "payload").map(Verdict::Verified);
        }
        if self.key_id.is_none() {
            // Without an id a rotated key looks like a bad signature.
            return Ok(Verdict::UnknownKey);
        }
        Err(IdentityFault::invalid(
            "the access token's signature does not verify",
            "the key named by `kid` did not make it",
        ))
    }

    /// The refusal for a token for which even the newest key set has no key.
    pub(super) fn unknown_key(&self) -> IdentityFault {
        let detail = match &self.key_id {
            Some(id) => format!("expected a `kid` of the issuer's key set, got {}", shown(id)),
            None => "expected a signature by the issuer's one key for this `alg`; the token has no `kid`".into(),
        };
        IdentityFault::invalid("the access token is signed with an unknown key", detail)
    }
}

/// The claims of a JSON text that somebody else verified (introspection, Envoy).
///
/// # Errors
/// What the strict reader says.
pub(super) fn claims(json: &[u8]) -> Result<Document, String> {
    let document = Document::read(json.to_vec(), CLAIMS_LIMITS).map_err(|fault| fault.to_string())?;
    if document.root().kind() == Kind::Object { Ok(document) } else { Err("expected a JSON object".into()) }
}

fn part(encoded: &str, limits: Limits, name: &str) -> Result<Document, IdentityFault> {
    let invalid = |what: &dyn std::fmt::Display| IdentityFault::invalid(NOT_A_JWT, format!("{name}: {what}"));
    let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|error| invalid(&error))?;
    let document = Document::read(bytes, limits).map_err(|fault| invalid(&fault))?;
    if document.root().kind() == Kind::Object { Ok(document) } else { Err(invalid(&"expected a JSON object")) }
}

/// RFC 9068 §2.1 names access tokens `at+jwt`; most issuers still write `JWT` or nothing. Anything else is a token for
/// another purpose (RFC 8725 §3.11). Media types compare without case.
fn check_typ(typ: Option<&str>, require: bool) -> Result<(), IdentityFault> {
    let is = |name: &str| typ.is_some_and(|typ| typ.eq_ignore_ascii_case(name));
    let access = is("at+jwt") || is("application/at+jwt");
    if access || (!require && (typ.is_none() || is("JWT"))) {
        return Ok(());
    }
    let detail = format!(
        "expected `typ` at+jwt{}, got {}",
        if require { "" } else { ", JWT or none" },
        typ.map_or("none".into(), shown)
    );
    Err(IdentityFault::invalid("the token is not an access token", detail))
}

#[cfg(test)]
mod tests;
