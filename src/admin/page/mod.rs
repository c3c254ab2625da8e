//! The page at `/`: one document with its style and script inside, which asks for [`data`] every two seconds.
//!
//! What it shows was partly written by servers and callers, and both may be hostile. So the script puts it in as text only,
//! and the policy below lets nothing run or load but that one style and that one script, whose hashes it names.

mod data;
mod pretty;

#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_FRAME_OPTIONS};
use http::{Response, StatusCode};
use http_body_util::Full;
use sha2::{Digest as _, Sha256};

use super::answer::respond;
use crate::telemetry::counters::Counters;
use crate::telemetry::recent::Recent;

pub(super) use data::{details, live};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What the page shows beside what the rest of the listener knows.
pub struct Page {
    /// The last refusals.
    pub recent: Arc<Recent>,
    /// The decisions.
    pub counters: Arc<Counters>,
    /// Where its clock begins, by which rates are reckoned.
    pub since: Instant,
}

/// The document, and the policy that holds it.
static DOCUMENT: LazyLock<(Bytes, String)> = LazyLock::new(|| {
    let html = include_str!("page.html").replace("{style}", STYLE).replace("{script}", SCRIPT);
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash(SCRIPT),
        hash(STYLE)
    );
    (html.into(), policy)
});

/// The document as an answer.
pub(super) fn document() -> Response<Full<Bytes>> {
    let (html, policy) = &*DOCUMENT;
    let mut response = respond(StatusCode::OK, "text/html; charset=utf-8", html.clone());
    let headers = response.headers_mut();
    // Base64 and ASCII; a policy that could not be said must not leave the page without one.
    let Ok(policy) = HeaderValue::from_str(policy) else {
        return respond(StatusCode::INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", "The page has no policy.\n");
    };
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"));
    response
}
