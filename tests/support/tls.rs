//! A certificate authority on the spot.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A self-signed certificate that is its own authority.
pub(crate) struct Certificate {
    inner: rcgen::CertifiedKey<rcgen::KeyPair>,
}

impl Certificate {
    /// One for these names (DNS names or IP addresses).
    pub(crate) fn new(names: &[&str]) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Self { inner: rcgen::generate_simple_self_signed(names).expect("a certificate") }
    }

    /// Writes it in PEM, for a client that shall trust it.
    pub(crate) fn write_pem(&self, file: &Path) {
        std::fs::write(file, self.inner.cert.pem()).expect("the certificate is written");
    }

    /// The server's side of TLS.
    pub(crate) fn server(&self) -> Arc<rustls::ServerConfig> {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.inner.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("TLS versions");
        Arc::new(
            config
                .with_no_client_auth()
                .with_single_cert(vec![self.inner.cert.der().clone()], key)
                .expect("certificate and key fit"),
        )
    }
}
