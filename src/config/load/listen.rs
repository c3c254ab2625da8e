//! The listener: who may dial it decides whether the upstream credential stays ours.

use std::path::Path;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::compiled::{Listener, TlsMaterial};
use super::documents::bytes;
use super::report::Report;
use super::Context;
use crate::config::model::{Configuration, ExtProcListener, ServerTls};
use crate::policy::Segment;
use crate::upstream::CredentialSource;

/// The listener that is configured; `None` when it is faulty, which was told.
pub(super) fn compile(configuration: &Configuration, context: &Context<'_>, report: &mut Report) -> Option<Listener> {
    let tcp = match &configuration.listen.ext_proc {
        ExtProcListener::Unix(path) => return Some(Listener::Unix(path.clone())),
        ExtProcListener::Tcp(tcp) => tcp,
    };
    let at = |key: &str| context.root.locate(&["listen".into(), "ext_proc".into(), key.into()]);
    let mut fault = |key: &str, message: &str| {
        report.fault(context.path, at(key), message);
        None
    };
    match (&tcp.tls, tcp.insecure) {
        (Some(tls), false) => {
            let tls = material(tls, context, report)?;
            Some(Listener::Tcp { address: tcp.address, tls: Some(tls) })
        }
        (Some(_), true) => fault("insecure", "expected either `tls` or `insecure: true`, found both; remove one"),
        (None, false) => fault(
            "address",
            "expected `tls: {cert, key, client_ca}` beside a TCP address, found none: whoever can dial this port can read \
             the upstream credential and forge attributes; add it, or listen on a Unix socket",
        ),
        (None, true) => {
            let bearer = |server: &&_| matches!(credential(server), CredentialSource::Bearer(_));
            match configuration.servers.iter().find(bearer) {
                None => Some(Listener::Tcp { address: tcp.address, tls: None }),
                Some(server) => fault("insecure", &format!(
                    "expected `tls` where a server has a credential, found `insecure: true` and a credential on `{}`: \
                     whoever can dial this port could read it; add `tls`, or listen on a Unix socket",
                    server.name
                )),
            }
        }
    }
}

fn credential(server: &crate::config::model::Server) -> &CredentialSource {
    &server.upstream.credential
}

/// Reads the three PEM files, and sees that each holds what it should: a listener that fails later fails everything.
fn material(tls: &ServerTls, context: &Context<'_>, report: &mut Report) -> Option<TlsMaterial> {
    let certificates = |pem: &[u8]| {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        all.is_ok_and(|all| !all.is_empty())
    };
    let key = |pem: &[u8]| PrivateKeyDer::from_pem_slice(pem).is_ok();
    let cert = pem("cert", &tls.cert, "a PEM certificate", certificates, context, report);
    let key = pem("key", &tls.key, "a PEM private key", key, context, report);
    let client_ca = pem("client_ca", &tls.client_ca, "a PEM certificate", certificates, context, report);
    Some(TlsMaterial { cert: cert?, key: key?, client_ca: client_ca? })
}

fn pem(
    key: &str,
    file: &Path,
    what: &str,
    holds: impl Fn(&[u8]) -> bool,
    context: &Context<'_>,
    report: &mut Report,
) -> Option<Vec<u8>> {
    let path = context.base.join(file);
    let content = bytes(&path, report)?;
    if holds(&content) {
        return Some(content);
    }
    let at: [Segment; 4] = ["listen".into(), "ext_proc".into(), "tls".into(), key.into()];
    let message = format!("expected {what} in {}, found none; name another file", path.display());
    report.fault(context.path, context.root.locate(&at), &message);
    None
}
