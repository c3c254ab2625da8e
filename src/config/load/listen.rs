//! The listener: who may dial it decides whether the upstream credential stays ours.

use std::path::Path;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::Context;
use super::documents::bytes;
use super::report::Report;
use crate::config::model::{AdminPage, Configuration, ExtProcListener, Server, ServerTls, TcpListener};
use crate::extproc::listen::{Address, Tls};
use crate::policy::Segment;
use crate::upstream::CredentialSource;

/// The listener that is configured; `None` when it is faulty, which was told.
pub(super) fn compile(
    configuration: &Configuration,
    context: &Context<'_>,
    report: &mut Report,
) -> Option<(Address, Option<Tls>)> {
    let Some(listen) = &configuration.listen else {
        report.missing(context.path, context.root, "listen");
        return None;
    };
    let tcp = match &listen.ext_proc {
        ExtProcListener::Unix(path) => return Some((Address::Unix(path.clone()), None)),
        ExtProcListener::Tcp(tcp) => tcp,
    };
    let address = Address::Tcp(tcp.address);
    if let (Some(tls), false) = (&tcp.tls, tcp.insecure) {
        return material(tls, context, report).map(|tls| (address, Some(tls)));
    }
    match insecure(tcp, configuration) {
        None => Some((address, None)),
        Some((key, message)) => {
            let at = ["listen".into(), "ext_proc".into(), key.into()];
            report.fault(context.path, context.root.locate(&at), &message);
            None
        }
    }
}

/// Looks at the admin listener, if there is one.
pub(super) fn admin(configuration: &Configuration, context: &Context<'_>, report: &mut Report) {
    let Some(admin) = configuration.listen.as_ref().and_then(|listen| listen.admin.as_ref()) else { return };
    let at = |path: &[Segment]| {
        let own: [Segment; 2] = ["listen".into(), "admin".into()];
        context.root.locate(own.iter().chain(path))
    };
    if !admin.address.ip().is_loopback() && !admin.allow_remote {
        let message = format!(
            "expected a loopback address, as 127.0.0.1:9003, found {}, which others can reach without TLS and login; listen \
             on loopback, or write `allow_remote: true`",
            admin.address
        );
        report.fault(context.path, at(&["address".into()]), &message);
    }
    if !admin.address.ip().is_loopback() && admin.page == AdminPage::On {
        let message = "the page names callers to everyone who can reach this address, for there is no login; turn it off, or \
                       see to it that only operators can reach it";
        report.warning(context.path, at(&["page".into()]), message);
    }
    for (index, host) in admin.hosts.iter().enumerate() {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if host.is_empty() || !host.bytes().all(plain) {
            let message = format!("expected a host name without a port, found `{host}`; correct it");
            report.fault(context.path, at(&["hosts".into(), index.into()]), &message);
        }
    }
}

/// Why this listener may not go without TLS: the key that is wrong, and what to do.
fn insecure(tcp: &TcpListener, configuration: &Configuration) -> Option<(&'static str, String)> {
    if tcp.tls.is_some() {
        return Some(("insecure", "expected either `tls` or `insecure: true`, found both; remove one".to_owned()));
    }
    if !tcp.insecure {
        let message = "expected `tls: {cert, key, client_ca}` beside a TCP address, found none: whoever can dial this port \
                       can read the upstream credential and forge attributes; add it, or listen on a Unix socket";
        return Some(("address", message.to_owned()));
    }
    let bearer = |server: &&Server| matches!(server.upstream.credential, CredentialSource::Bearer(_));
    configuration.servers.iter().find(bearer).map(|server| {
        let message = format!(
            "expected `tls` where a server has a credential, found `insecure: true` and a credential on `{}`: whoever can \
             dial this port could read it; add `tls`, or listen on a Unix socket",
            server.name
        );
        ("insecure", message)
    })
}

/// Reads the three PEM files, and sees that each holds what it should: a listener that fails later fails everything.
fn material(tls: &ServerTls, context: &Context<'_>, report: &mut Report) -> Option<Tls> {
    let certificates = |pem: &[u8]| {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        all.is_ok_and(|all| !all.is_empty())
    };
    let key = |pem: &[u8]| PrivateKeyDer::from_pem_slice(pem).is_ok();
    let cert = pem("cert", &tls.cert, "a PEM certificate", certificates, context, report);
    let key = pem("key", &tls.key, "a PEM private key", key, context, report);
    let client_ca = pem("client_ca", &tls.client_ca, "a PEM certificate", certificates, context, report);
    Some(Tls { cert: cert?, key: key?, client_ca: client_ca? })
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
    let pem = bytes(&path, report)?;
    if holds(&pem) {
        return Some(pem);
    }
    let at: [Segment; 4] = ["listen".into(), "ext_proc".into(), "tls".into(), key.into()];
    let message = format!("expected {what} in {}, found none; name another file", path.display());
    report.fault(context.path, context.root.locate(&at), &message);
    None
}
