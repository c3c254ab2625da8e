//! The other end of a gRPC gate: a Unix socket or an http(s) address, dialled when it is first needed.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tonic::Request;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

/// For a connection to come up; the gate's own timeout is usually shorter.
const CONNECT: Duration = Duration::from_secs(5);
/// Most bytes of a gate's answer.
pub(super) const ANSWER: usize = 1024 * 1024;

/// A gRPC server that is dialled lazily; a lost connection is dialled again with the next call.
pub(super) struct Peer {
    /// As configured, for whoever reads why a call failed.
    pub(super) address: String,
    endpoint: Endpoint,
    channel: OnceLock<Channel>,
}

impl Peer {
    /// A peer at `unix:/absolute/path`, `http://host:port` or `https://host:port`, without a port 80 or 443; `ca` is PEM
    /// text to verify the last with, in place of the public roots.
    ///
    /// # Errors
    /// What is wrong with the address or the certificates.
    pub(super) fn new(address: &str, ca: Option<&[u8]>) -> Result<Self, String> {
        let expected = "expected `unix:/absolute/path`, `http://host:port` or `https://host:port`";
        let unix = address.strip_prefix("unix:");
        let good = match unix {
            Some(path) => path.starts_with('/') && !path.starts_with("//"),
            None => url::Url::parse(address).is_ok_and(|url| is_origin(&url)),
        };
        if !good {
            return Err(format!("{expected}, found `{address}`; correct it"));
        }
        let secure = address.starts_with("https:");
        if ca.is_some() && !secure {
            return Err("expected `ca` beside an https address only; remove it".to_owned());
        }
        let endpoint = Endpoint::from_shared(address.to_owned()).map_err(|error| format!("{expected}: {error}"))?;
        let endpoint = endpoint
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(5));
        let endpoint = if secure {
            let tls = ClientTlsConfig::new();
            let tls = match ca {
                Some(pem) => tls.ca_certificate(Certificate::from_pem(pem)),
                None => tls.with_webpki_roots(),
            };
            endpoint
                .tls_config(tls)
                .map_err(|error| format!("expected PEM certificates in `ca`: {error}; name another file"))?
        } else {
            endpoint
        };
        Ok(Self { address: address.to_owned(), endpoint, channel: OnceLock::new() })
    }

    /// The channel. Must be called within the runtime that serves.
    pub(super) fn channel(&self) -> Channel {
        self.channel.get_or_init(|| self.endpoint.connect_lazy()).clone()
    }
}

/// A question that tells the gate how long its answer is waited for (`grpc-timeout`), so that it can stop when nobody
/// listens any more.
pub(super) fn timed<T>(message: T, due: Instant) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(due.saturating_duration_since(Instant::now()));
    request
}

/// Scheme, host and port and nothing else.
fn is_origin(url: &url::Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none()
}
