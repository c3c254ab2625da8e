//! The HTTP client of all our own calls: to servers for their listings, to identity providers for their keys.
//!
//! It follows no redirect and speaks to whom it is told to; what may be asked is for its users to bound.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

/// A client with a small pool of connections. Clones share it.
pub(crate) type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Idle connections that are kept per host.
const IDLE: usize = 4;

/// A client that gives a connection `connect` to come up and speaks `tls`; it trusts the web's authorities when that is
/// `None`.
pub(crate) fn client(connect: Duration, tls: Option<ClientConfig>) -> HttpClient {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_connect_timeout(Some(connect));
    let builder = match tls {
        None => HttpsConnectorBuilder::new().with_webpki_roots(),
        Some(tls) => HttpsConnectorBuilder::new().with_tls_config(tls),
    };
    let connector = builder.https_or_http().enable_http1().wrap_connector(http);
    Client::builder(TokioExecutor::new()).pool_max_idle_per_host(IDLE).build(connector)
}

/// TLS that trusts the authorities in a PEM file and no others; `None` when it holds no certificate that can be one.
pub(crate) fn trusting(pem: &[u8]) -> Option<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.ok()?).ok()?;
    }
    if roots.is_empty() {
        return None;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
    Some(config.with_root_certificates(roots).with_no_client_auth())
}

/// An error with its causes: hyper's own text is "client error (Connect)"; what helps an operator stands below it.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
