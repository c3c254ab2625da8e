//! A certificate authority on the spot, and the caller that presents a certificate.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::http1::read_reply;
use super::{Reply, Request};

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

    /// Certificate and key in PEM.
    pub(crate) fn pem(&self) -> (String, String) {
        (self.inner.cert.pem(), self.inner.signing_key.serialize_pem())
    }

    /// The server's side of TLS.
    pub(crate) fn server(&self) -> Arc<rustls::ServerConfig> {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.inner.signing_key.serialize_der()));
        let config = rustls::ServerConfig::builder_with_provider(provider())
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

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// An authority that issues certificates.
pub(crate) struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate of an [`Authority`] with its key.
pub(crate) struct Issued {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Another name than its certificates have: one that issued itself is taken for self-signed.
        params.distinguished_name.push(DnType::CommonName, "test authority");
        let key = KeyPair::generate().expect("a key pair");
        let certificate = params.self_signed(&key).expect("a certificate");
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// Writes its certificate in PEM, for whoever shall trust it.
    pub(crate) fn write_pem(&self, file: &Path) {
        std::fs::write(file, self.certificate.pem()).expect("the certificate is written");
    }

    /// A certificate for these DNS names or IP addresses, and for a URI, a SPIFFE id say.
    pub(crate) fn issue(&self, names: &[&str], uri: Option<&str>) -> Issued {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.subject_alt_names.extend(uri.map(|uri| SanType::URI(uri.try_into().expect("ASCII"))));
        let key = KeyPair::generate().expect("a key pair");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Issued { certificate, key }
    }

    /// Sends a request over TLS to a loopback port that this authority vouches for as `mcp.test`, with a client certificate or
    /// without; nothing when there was no reply.
    pub(crate) fn send(&self, request: &Request, port: u16, as_client: Option<&Issued>) -> Option<Reply> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.der().clone()).expect("an authority");
        let config = rustls::ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("TLS versions")
            .with_root_certificates(roots);
        let config = match as_client {
            Some(client) => {
                config.with_client_auth_cert(vec![client.der()], client.key()).expect("certificate and key")
            }
            None => config.with_no_client_auth(),
        };
        let name = "mcp.test".try_into().expect("a name");
        let session = rustls::ClientConnection::new(Arc::new(config), name).expect("a TLS session");
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let mut stream = rustls::StreamOwned::new(session, stream);
        stream.write_all(&request.bytes()).ok()?;
        read_reply(&mut stream, &mut Vec::new(), request.method == "HEAD")
    }
}

impl Issued {
    /// Writes certificate and key in PEM.
    pub(crate) fn write_pem(&self, certificate: &Path, key: &Path) {
        std::fs::write(certificate, self.certificate.pem()).expect("the certificate is written");
        std::fs::write(key, self.key.serialize_pem()).expect("the key is written");
    }

    fn der(&self) -> CertificateDer<'static> {
        self.certificate.der().clone()
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.serialize_der()))
    }
}
