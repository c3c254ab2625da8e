//! Rung 6: who is calling. The rung prepares what is verified and words the outcome; verifying is `identity`'s.

use crate::identity::challenge::{Challenge, ChallengeError};
use crate::identity::{IdentityFault, Presented};
use crate::refusal::{Reason, Refusal, Rung};

use super::{Head, Server};

/// What a request presents as its identity.
///
/// # Errors
/// `token.invalid` for a token in the query string, also beside a good header (RFC 6750 §2.3: it ends up in logs).
pub fn presented<'a>(server: &Server, head: &'a Head) -> Result<Presented<'a>, Refusal> {
    if head.query().is_some_and(has_access_token) {
        let text = "An access token in the query string is not accepted: send it in the Authorization header only.";
        return Err(challenge(server, Refusal::new(Reason::TokenInvalid, Rung::Token).message(text)));
    }
    Ok(Presented {
        authorization: head.headers.text("authorization"),
        jwt_metadata: server.authenticator.payload_key().and_then(|key| head.attributes.jwt_payload(key)),
        peer_uri: head.attributes.peer_uri.as_deref(),
    })
}

/// The refusal for an identity that could not be established.
#[must_use]
pub fn refusal(server: &Server, fault: IdentityFault) -> Refusal {
    match fault {
        IdentityFault::Missing => challenge(server, Refusal::new(Reason::TokenMissing, Rung::Token)),
        IdentityFault::Expired { detail } => {
            challenge(server, Refusal::new(Reason::TokenExpired, Rung::Token).log(detail))
        }
        IdentityFault::Invalid { public, detail } => {
            let refusal = Refusal::new(Reason::TokenInvalid, Rung::Token).message(public).log(detail);
            challenge(server, refusal)
        }
        IdentityFault::Unidentified { public, detail } => {
            Refusal::new(Reason::TokenMissing, Rung::Token).message(public).log(detail)
        }
        IdentityFault::Unverifiable { retry_after_seconds, detail } => {
            let mut refusal = Refusal::new(Reason::TokenUnverifiable, Rung::Token).log(detail);
            refusal.retry_after = Some(retry_after_seconds);
            refusal
        }
    }
}

/// Adds the challenge that tells a client how to get a token; sources without tokens (`peer`, `static`) have none.
fn challenge(server: &Server, mut refusal: Refusal) -> Refusal {
    if server.authenticator.challenges() {
        let shown = refusal.reason != Reason::TokenMissing;
        let error = shown.then(|| (ChallengeError::InvalidToken, refusal.message.as_ref()));
        let scopes: Vec<&str> = server.scopes.names(server.scopes.required()).collect();
        let challenge = Challenge { error, scopes: &scopes, resource_metadata: server.metadata.url() };
        refusal.challenge = Some(challenge.header_value());
    }
    refusal
}

fn has_access_token(query: &str) -> bool {
    url::form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "access_token")
}
