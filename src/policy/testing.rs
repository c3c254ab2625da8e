//! What the tests of this room share.

use std::sync::Arc;

use crate::message::json::{Document, Limits};

use super::{Claims, Email, PolicySource};

/// Verified claims of `subject` at `https://idp.test` from a JSON text. `email`, `email_verified` and `hd` are taken
/// from it.
pub(super) fn claims(subject: &str, text: &str) -> Claims {
    let limits = Limits { depth: 32, nodes: 100_000 };
    let document = Document::read(text.as_bytes().to_vec(), limits).expect("the test's claims are JSON");
    let read = |key| document.root().get(key).and_then(|value| value.as_str()).map(Arc::from);
    let verified = document.root().get("email_verified").and_then(|value| value.as_bool()) == Some(true);
    Claims {
        issuer: "https://idp.test".into(),
        subject: subject.into(),
        email: read("email").map(|address| Email { address, verified }),
        hosted_domain: read("hd"),
        client_id: None,
        document: Arc::new(document),
    }
}

/// Claims with a verified email.
pub(super) fn person(email: &str) -> Claims {
    claims(email, &format!(r#"{{"email":"{email}","email_verified":true}}"#))
}

/// A policy document from JSON, which is YAML too. Not through `serde_json`: in this build its numbers reach only readers that
/// ask for one (feature `arbitrary_precision`).
pub(super) fn source(text: &str) -> PolicySource {
    serde_saphyr::from_str(text).expect("the test's policy is well formed")
}
