//! Our own requests to an identity provider: small, bounded, to configured addresses only.
//!
//! https everywhere but on loopback, no redirect is followed, an answer has 5 seconds and 1 MiB.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use url::{Host, Url};

use crate::upstream::http::{self as outbound, HttpClient, with_causes};

const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 1024 * 1024;

/// The HTTP client for key sets, discovery and introspection. Clones share its connections.
#[derive(Clone)]
pub(super) struct Fetcher {
    client: HttpClient,
}

/// A good answer.
pub(super) struct Fetched {
    /// The whole body.
    pub(super) body: Bytes,
    /// `max-age` of its `Cache-Control`, seconds.
    pub(super) max_age: Option<u64>,
}

/// Why there is no good answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchFault {
    #[error("expected an answer within 5 s, got none")]
    Timeout,
    #[error("cannot connect or talk to it: {0}")]
    Transport(String),
    #[error("expected HTTP 200, got {0} (redirects are not followed)")]
    Status(StatusCode),
    #[error("expected at most 1 MiB, or a whole answer: {0}")]
    Body(String),
    #[error("expected a URL that can be requested: {0}")]
    Url(String),
}

impl Fetcher {
    pub(super) fn new() -> Self {
        Self { client: outbound::client(TIMEOUT, None) }
    }

    pub(super) async fn get(&self, url: &Url) -> Result<Fetched, FetchFault> {
        self.send(Request::builder().method(Method::GET), url, Bytes::new()).await
    }

    /// POSTs `form` (already encoded) with our own `Authorization`.
    pub(super) async fn post_form(
        &self,
        url: &Url,
        authorization: HeaderValue,
        form: String,
    ) -> Result<Fetched, FetchFault> {
        let request = Request::builder()
            .method(Method::POST)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::AUTHORIZATION, authorization);
        self.send(request, url, form.into()).await
    }

    async fn send(&self, request: http::request::Builder, url: &Url, body: Bytes) -> Result<Fetched, FetchFault> {
        let request = request
            .uri(url.as_str())
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(body))
            .map_err(|error| FetchFault::Url(error.to_string()))?;
        tokio::time::timeout(TIMEOUT, self.exchange(request)).await.map_err(|_| FetchFault::Timeout)?
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Fetched, FetchFault> {
        let answer = self.client.request(request).await.map_err(|error| FetchFault::Transport(with_causes(&error)))?;
        if answer.status() != StatusCode::OK {
            return Err(FetchFault::Status(answer.status()));
        }
        let max_age = answer.headers().get(header::CACHE_CONTROL).and_then(max_age);
        let body = Limited::new(answer.into_body(), MAX_BYTES).collect().await;
        let body = body.map_err(|error| FetchFault::Body(error.to_string()))?.to_bytes();
        Ok(Fetched { body, max_age })
    }
}

/// Checks that `text` is a URL that may be requested: https, or http on loopback; nothing in it but an address.
pub(super) fn requestable(text: &str) -> Result<Url, String> {
    let expected = "expected an absolute https URL (http on loopback only) without user and fragment";
    let url = Url::parse(text).map_err(|error| format!("{expected}, got {text:?}: {error}"))?;
    let secure = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url));
    let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    if secure && plain && url.has_host() { Ok(url) } else { Err(format!("{expected}, got {text:?}")) }
}

/// Whether nothing sent to `url` leaves this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn max_age(value: &HeaderValue) -> Option<u64> {
    let directives = value.to_str().ok()?.split(',');
    directives.filter_map(|directive| directive.trim().split_once('=')).find_map(|(name, seconds)| {
        name.eq_ignore_ascii_case("max-age").then(|| seconds.trim_matches('"').parse().ok())?
    })
}

#[cfg(test)]
mod tests;
