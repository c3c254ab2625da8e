//! How a server is listed by ourselves.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::Check;
use crate::config::load::documents::bytes;
use crate::config::load::kept::Made;
use crate::config::load::report::Report;
use crate::config::model::Kind;
use crate::policy::Segment;
use crate::record::Record;
use crate::upstream::client::Settings;
use crate::upstream::{Client, Credential, CredentialSource, Freshness, http};

/// Least time for which a match may count.
const LEAST_REFRESH: Duration = Duration::from_secs(1);

/// What our own listings of the server go by; `None` for plain HTTP, and when something is faulty, which was told.
pub(super) fn settings(check: &Check<'_>, report: &mut Report) -> Option<Settings> {
    let upstream = &check.server.upstream;
    if check.server.kind == Kind::Http {
        return None;
    }
    refresh(check, report);
    let credential = credential(check, report);
    let tls = match &upstream.ca {
        None => None,
        Some(file) => Some(tls(check, file, report)?),
    };
    Some(Settings {
        // Its faults were told.
        url: upstream.url.as_deref().and_then(|url| Url::parse(url).ok())?,
        credential: credential?,
        timeout: upstream.timeout.get(),
        page: check.server.limits.listing.bytes(),
        depth: check.server.limits.depth.get(),
        concurrency: upstream.concurrency.get(),
        tls,
    })
}

/// The freshness of what was recorded; `None` when there is no record, which was told. Where the server is listed as it was
/// before a reload, what was learnt goes on: the same freshness while the record is the same, else a new one that knows what
/// the old one did of every capability whose definition is.
pub(super) fn freshness(check: &Check<'_>, record: &Record, settings: Settings) -> Option<(Made, Arc<Freshness>)> {
    let server = check.server;
    let interval = server.record.as_ref()?.refresh.get();
    let ca = server.upstream.ca.as_ref().map(|file| check.context.base.join(file));
    let made = Made::of(&(&server.upstream, server.limits.listing, server.limits.depth), ca.as_deref());
    let before = check.context.before.server(&server.name).and_then(|kept| kept.listing.as_ref());
    let before = before.filter(|(before, _)| *before == made).map(|(_, freshness)| freshness);
    if let Some(same) = before.filter(|before| before.is_about(record, interval)) {
        return Some((made, Arc::clone(same)));
    }
    let client = Client::new(settings);
    let before = before.map(|before| &**before);
    Some((made, Freshness::after(before, Arc::from(server.name.as_str()), record, interval, client)))
}

fn refresh(check: &Check<'_>, report: &mut Report) {
    let Some(record) = &check.server.record else { return };
    if record.refresh.get() < LEAST_REFRESH {
        let message = format!(
            "expected at least 1s, found {:?}; a shorter time would list the server all the while: raise it",
            record.refresh.get()
        );
        check.fault(&["record".into(), "refresh".into()], &message, report);
    }
}

/// What our own listings present.
fn credential(check: &Check<'_>, report: &mut Report) -> Option<Credential> {
    let upstream = &check.server.upstream;
    let path = |key: &str| -> Vec<Segment> { vec!["upstream".into(), key.into()] };
    match (&upstream.listing_credential, &upstream.credential) {
        (Some(CredentialSource::Passthrough), _) => {
            let message = "expected `none` or a bearer, found `passthrough`: no caller stands behind our own listings; name \
                           a credential for them";
            check.fault(&path("listing_credential"), message, report);
            None
        }
        (Some(source), _) => load(check, source, "listing_credential", report),
        (None, CredentialSource::Passthrough) => {
            let message = "expected `listing_credential` beside `credential: passthrough`, found none: our own listings carry \
                           no credential, and where the server wants one every call is refused; name one, or write \
                           `listing_credential: none`";
            check.warning(&path("credential"), message, report);
            Some(Credential::None)
        }
        // Its faults were told where forwarded calls get it.
        (None, source) => source.load(check.context.base).ok(),
    }
}

fn load(check: &Check<'_>, source: &CredentialSource, key: &str, report: &mut Report) -> Option<Credential> {
    match source.load(check.context.base) {
        Ok(credential) => Some(credential),
        Err(fault) => {
            check.fault(&["upstream".into(), key.into(), "bearer".into()], &fault.to_string(), report);
            None
        }
    }
}

/// TLS that trusts the authorities in `file`.
fn tls(check: &Check<'_>, file: &Path, report: &mut Report) -> Option<rustls::ClientConfig> {
    let path = check.context.base.join(file);
    let tls = http::trusting(&bytes(&path, report)?);
    if tls.is_none() {
        let message = format!("expected PEM certificates in {}, found none; name another file", path.display());
        check.fault(&["upstream".into(), "ca".into()], &message, report);
    }
    tls
}
