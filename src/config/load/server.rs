//! One entry of `servers:`, checked and compiled.

mod convert;
mod gates;
mod identity;
mod listing;
mod policy;
mod record;

use std::path::PathBuf;
use std::sync::Arc;

use url::Url;

use super::Context;
use super::kept::KeptServer;
use super::report::Report;
use crate::config::model::{Kind, Mode, ProtocolVersion, ScreenSource, Server};
use crate::config::tree::Node;
use crate::ladder::origin::normal;
use crate::ladder::{self, EnvoyTimeouts};
use crate::policy::Segment;
use crate::record::Recorded;
use crate::screen::Detectors;
use crate::upstream::client::Settings;

/// Keys that mean something on MCP servers only.
const MCP_ONLY: [&str; 8] =
    ["protocol", "policy", "record", "capability_scopes", "limits", "timeouts", "denials", "screen"];

/// Keys of `upstream` that are for our own listings.
const LISTING_ONLY: [&str; 5] = ["url", "listing_credential", "timeout", "concurrency", "ca"];

/// Looks at one server of the configuration.
struct Check<'a> {
    server: &'a Server,
    index: usize,
    context: &'a Context<'a>,
}

impl<'a> Check<'a> {
    /// The node under this server's entry that `path` leads to.
    fn at(&self, path: &[Segment]) -> &'a Node {
        let own = ["servers".into(), self.index.into()];
        self.context.root.locate(own.iter().chain(path))
    }

    fn fault(&self, path: &[Segment], message: &str, report: &mut Report) {
        report.fault(self.context.path, self.at(path), message);
    }

    fn warning(&self, path: &[Segment], message: &str, report: &mut Report) {
        report.warning(self.context.path, self.at(path), message);
    }

    /// A required key that is not there.
    fn missing(&self, path: &[Segment], key: &str, report: &mut Report) {
        report.missing(self.context.path, self.at(path), key);
    }

    /// Whether all that stands under a key of the entry could be read: what is missing there is then really missing.
    fn is_whole(&self, key: &str) -> bool {
        !self.at(&[key.into()]).damaged
    }
}

/// A server without faults, and where its record was taken.
pub(super) struct Built {
    pub(super) server: ladder::Server,
    pub(super) recorded: Option<Recorded>,
    pub(super) kept: KeptServer,
}

/// The tables of a server; `None` when it is faulty, which was told.
pub(super) fn compile(
    server: &Server,
    index: usize,
    envoy: &EnvoyTimeouts,
    context: &Context<'_>,
    report: &mut Report,
) -> Option<Built> {
    let check = Check { server, index, context };
    check.name(report);
    check.matcher(report);
    check.origins(report);
    check.protocol(report);
    check.upstream(report);
    check.limits(report);
    check.kind(report);
    check.authorization_server(report);
    let credential = check.credential(report);
    let screen = check.screen(report);
    let scopes = policy::scopes(&check, report).map(Arc::new);
    let (policy, home) = policy::policy(&check, report);
    let judged = record::record(&check, policy.as_deref(), &home, scopes.as_deref(), report);
    let authenticator = identity::authenticator(&check, policy.as_ref(), scopes.as_ref(), report);
    let metadata = identity::metadata(&check, scopes.as_deref(), report);
    let gates = gates::gates(&check, judged.as_ref().map(|judged| &judged.prices), envoy, report);
    let listing = listing::settings(&check, report);
    let judged = judged?;
    let listing = match server.kind {
        Kind::Mcp => Some(listing::freshness(&check, &judged.record, listing?)?),
        Kind::Http => None,
    };
    let gates = gates?;
    let kept = KeptServer { listing: listing.clone(), gates: gates.clone() };
    let server = ladder::Server {
        name: Arc::from(server.name.as_str()),
        index,
        kind: convert::kind(server.kind),
        matcher: convert::matcher(server.matcher.as_ref()?)?,
        resource: convert::resource(server.resource.as_deref()?)?,
        allowed_origins: server.allowed_origins.iter().map(|origin| normal(origin)).collect(),
        protocol: server.protocol.iter().map(|version| version.as_str().to_owned()).collect(),
        authenticator: authenticator?,
        metadata: metadata?,
        scopes: scopes?,
        policy: policy?,
        prices: judged.prices,
        record: judged.record,
        freshness: listing.map(|(_, freshness)| freshness),
        credential: credential?,
        limits: convert::limits(&server.limits, &server.timeouts),
        denials: convert::denials(&server.denials),
        screen,
        gates: gates.1,
        shadow: server.mode == Mode::Shadow,
    };
    Some(Built { server, recorded: judged.recorded, kept })
}

/// How a server is listed and where its record lies; `None` when that is faulty, which was told.
pub(super) fn recording(
    server: &Server,
    index: usize,
    context: &Context<'_>,
    report: &mut Report,
) -> Option<(Settings, PathBuf)> {
    let check = Check { server, index, context };
    if server.kind == Kind::Http {
        check.fault(&["kind".into()], "expected a server of `kind: mcp`, found `http`, which offers nothing", report);
        return None;
    }
    check.upstream(report);
    check.credential(report);
    let settings = listing::settings(&check, report);
    let Some(record) = &server.record else {
        check.missing(&[], "record", report);
        return None;
    };
    Some((settings?, context.base.join(&record.file)))
}

impl Check<'_> {
    /// The name goes into headers, metadata keys and metric labels.
    fn name(&self, report: &mut Report) {
        let name = &self.server.name;
        let simple = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if name.is_empty() || name.len() > 64 || !simple {
            let message =
                format!("expected 1 to 64 letters, digits, `-`, `_` and `.`, found `{name}`; rename the server");
            self.fault(&["name".into()], &message, report);
        }
    }

    fn matcher(&self, report: &mut Report) {
        let Some(matcher) = &self.server.matcher else { return self.missing(&[], "match", report) };
        for (key, message) in matcher.faults().into_iter().filter(|_| self.is_whole("match")) {
            self.fault(&["match".into(), key.into()], &message, report);
        }
    }

    /// An origin is what a browser sends: scheme, host and, where it is not the default, port.
    fn origins(&self, report: &mut Report) {
        for (index, origin) in self.server.allowed_origins.iter().enumerate() {
            let own = Url::parse(origin).map(|url| url.origin().ascii_serialization());
            if own.as_deref() != Ok(origin.as_str()) || origin == "null" {
                let message = format!(
                    "expected an origin as a browser sends it, as https://app.acme.com (no path, no default port, no `*`), \
                     found `{origin}`; correct it"
                );
                self.fault(&["allowed_origins".into(), index.into()], &message, report);
            }
        }
    }

    fn protocol(&self, report: &mut Report) {
        if self.server.protocol.is_empty() && self.is_whole("protocol") {
            let only = ProtocolVersion::V2026_07_28.as_str();
            let message =
                format!("expected at least one revision, found none; write [\"{only}\"] or leave the key out");
            self.fault(&["protocol".into()], &message, report);
        }
    }

    fn upstream(&self, report: &mut Report) {
        let path = ["upstream".into(), "url".into()];
        match (&self.server.upstream.url, self.server.kind) {
            (None, Kind::Mcp) if self.at(&[]).get("upstream").is_none() => self.missing(&[], "upstream", report),
            (None, Kind::Mcp) => self.missing(&["upstream".into()], "url", report),
            (_, Kind::Http) => {
                for key in LISTING_ONLY.iter().filter(|key| self.at(&["upstream".into()]).get(key).is_some()) {
                    let message = format!("expected `upstream.{key}` on servers of `kind: mcp` only; remove it");
                    self.fault(&["upstream".into(), (*key).into()], &message, report);
                }
            }
            (Some(text), Kind::Mcp) => {
                let url =
                    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
                let plain =
                    |url: &Url| url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
                if !url.as_ref().is_some_and(plain) {
                    let message = format!(
                        "expected an absolute http or https URL without user and fragment, found `{text}`; correct it"
                    );
                    self.fault(&path, &message, report);
                }
            }
        }
    }

    fn limits(&self, report: &mut Report) {
        let limits = &self.server.limits;
        if limits.answer < limits.listing {
            let message = format!(
                "expected at least `listing` ({} bytes), found {} bytes; raise it or lower `listing`",
                limits.listing.bytes(),
                limits.answer.bytes()
            );
            self.fault(&["limits".into(), "answer".into()], &message, report);
        }
    }

    fn kind(&self, report: &mut Report) {
        let entry = self.at(&[]);
        for key in MCP_ONLY {
            let (Some(present), Kind::Http) = (entry.entry(key), self.server.kind) else { continue };
            let message = format!(
                "{}: expected `{key}` on servers of `kind: mcp` only, because plain HTTP has only its \
                 identity and its gates checked; remove it",
                present.node.path
            );
            report.fault_at(self.context.path, present.place, message);
        }
    }

    /// A client that read one issuer here and meets tokens of another is lost.
    fn authorization_server(&self, report: &mut Report) {
        let (Some(document), Some(identity)) = (&self.server.authorization_server, &self.server.identity) else {
            return;
        };
        if !self.is_whole("identity") {
            return;
        }
        let own = document.0.get("issuer").and_then(serde_json::Value::as_str);
        let path = ["authorization_server".into(), "issuer".into()];
        match (own, identity.issuer()) {
            (Some(own), Some(issuer)) if own != issuer => {
                let message =
                    format!("expected the issuer of the identity's tokens, `{issuer}`, found `{own}`; make them equal");
                self.fault(&path, &message, report);
            }
            (_, None) => {
                let message = "expected authorization server metadata only where callers bring tokens (`jwt`, \
                               `introspection`, `envoy_jwt`); remove it";
                self.fault(&path, message, report);
            }
            _ => {}
        }
    }

    /// `None` where answers are not read, and when it is faulty, which was told.
    fn screen(&self, report: &mut Report) -> Option<Detectors> {
        let ScreenSource::On(source) = &self.server.screen else { return None };
        let compiled = Detectors::compile(source);
        if let Err(error) = &compiled {
            self.fault(&["screen".into(), "patterns".into()], &error.to_string(), report);
        }
        compiled.ok()
    }

    fn credential(&self, report: &mut Report) -> Option<crate::upstream::Credential> {
        match self.server.upstream.credential.load(self.context.base) {
            Ok(credential) => Some(credential),
            Err(error) => {
                let path = ["upstream".into(), "credential".into(), "bearer".into()];
                self.fault(&path, &error.to_string(), report);
                None
            }
        }
    }
}
