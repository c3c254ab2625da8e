//! Rung 6: who is calling. The rung prepares what is verified and words the outcome; verifying is `identity`'s.

use crate::identity::{IdentityFault, Presented};
use crate::refusal::{Reason, Refusal, Rung};

use super::{Head, Server, scope};

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
        jwt_metadata: head.attributes.jwt_claims.as_deref(),
        peer_uri: head.attributes.peer_uri.as_deref(),
    })
}

/// The refusal for an identity that could not be established.
#[must_use]
pub fn refusal(server: &Server, fault: IdentityFault) -> Refusal {
    match fault {
        IdentityFault::Missing => challenge(server, Refusal::new(Reason::TokenMissing, Rung::Token)),
        IdentityFault::Expired => challenge(server, Refusal::new(Reason::TokenExpired, Rung::Token)),
        IdentityFault::Invalid { public, detail } => {
            let refusal = Refusal::new(Reason::TokenInvalid, Rung::Token).message(public).log(detail);
            challenge(server, refusal)
        }
        IdentityFault::Unverifiable { retry_after_seconds } => {
            let mut refusal = Refusal::new(Reason::TokenUnverifiable, Rung::Token);
            refusal.retry_after = Some(retry_after_seconds);
            refusal
        }
    }
}

/// Adds the challenge that tells a client how to get a token; sources without tokens (`peer`, `static`) have none.
fn challenge(server: &Server, mut refusal: Refusal) -> Refusal {
    if server.authenticator.has_challenge() {
        let error = (refusal.reason != Reason::TokenMissing).then_some("invalid_token");
        let description = error.map(|_| refusal.message.as_ref());
        let scopes = scope::names(server, &server.baseline);
        refusal.challenge = Some(server.metadata.challenge(error, description, &scopes));
    }
    refusal
}

fn has_access_token(query: &str) -> bool {
    url::form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "access_token")
}
