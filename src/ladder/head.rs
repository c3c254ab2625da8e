//! The head of a request: what is known before any body.

use crate::message::headers::Headers;

/// What Envoy says about a request beside its headers; a caller cannot spoof these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `xds.route_name`; `None` when Envoy was not asked for it, `""` for a route without a name.
    pub route: Option<String>,
    /// `xds.cluster_name`.
    pub cluster: Option<String>,
    /// `source.address`, with its port: for the audit alone.
    pub source: Option<String>,
    /// `connection.uri_san_peer_certificate`.
    pub peer_uri: Option<String>,
    /// What Envoy's `jwt_authn` filter verified: payload keys with their claims as JSON text.
    pub jwt_payloads: Vec<(String, String)>,
}

impl Attributes {
    /// The claims under one payload key.
    #[must_use]
    pub fn jwt_payload(&self, key: &str) -> Option<&str> {
        self.jwt_payloads.iter().find(|(own, _)| own == key).map(|(_, claims)| claims.as_str())
    }
}

/// How much of an exchange Envoy shows, as it says itself with the first message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Modes {
    /// Envoy did not say (before 1.34, or another proxy).
    #[default]
    Unknown,
    /// The request's body in one message before anything of it is forwarded, the answer's in pieces that are held: what
    /// judging an MCP call takes.
    Whole,
    /// Anything else.
    Other,
}

/// Headers and attributes of one request.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// All headers, pseudo-headers included.
    pub headers: Headers,
    /// Envoy's attributes.
    pub attributes: Attributes,
    /// Whether the message ends here: there is no body.
    pub ends: bool,
    /// How much Envoy shows.
    pub modes: Modes,
}

impl Head {
    /// The HTTP method, empty when there is none that can be read.
    #[must_use]
    pub fn method(&self) -> &str {
        self.headers.text(":method").unwrap_or_default()
    }

    /// Path without query, as the bytes stand.
    #[must_use]
    pub fn path(&self) -> &str {
        self.split().0
    }

    /// What stands behind the first `?`.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.split().1
    }

    fn split(&self) -> (&str, Option<&str>) {
        let path = self.headers.single(":path").and_then(|path| std::str::from_utf8(path).ok()).unwrap_or_default();
        match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path, None),
        }
    }

    /// The authority, comparable: lower case, without the scheme's default port and without a trailing dot.
    #[must_use]
    pub fn authority(&self) -> String {
        let authority = self.headers.text(":authority").or_else(|| self.headers.text("host")).unwrap_or_default();
        let scheme = self.headers.text(":scheme").unwrap_or("https");
        normal_authority(authority, scheme)
    }

    /// Whether the connection is asked to become something else.
    #[must_use]
    pub fn upgrades(&self) -> bool {
        self.method() == "CONNECT" || self.headers.has("upgrade") || self.headers.has(":protocol")
    }

    /// Whether a body is announced: by its length or by chunked coding, or, over HTTP/2, by what follows the headers.
    #[must_use]
    pub fn has_body(&self) -> bool {
        !self.ends
    }
}

/// An authority as it compares. Both default ports go: an edge that speaks TLS may hand the request on as `http`.
///
/// Whatever a resolver or a URL parser would read as the same host and port is the same here, or another spelling of a
/// guarded authority would be nobody's: a user in front, zeros in front of the port, no port behind the colon, dots.
#[must_use]
pub fn normal_authority(authority: &str, scheme: &str) -> String {
    let authority = authority.rsplit_once('@').map_or(authority, |(_, behind)| behind);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if is_host(host) && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (host, port.trim_start_matches('0'))
        }
        _ => (authority, ""),
    };
    let mut normal = host.trim_end_matches('.').to_ascii_lowercase();
    let default = matches!(port, "" | "443") || (port == "80" && scheme.eq_ignore_ascii_case("http"));
    if !default {
        normal.push(':');
        normal.push_str(port);
    }
    normal
}

/// Whether what stands in front of a colon can be a host: an IPv6 address is one in brackets only.
fn is_host(text: &str) -> bool {
    text.ends_with(']') || !text.contains(':')
}
