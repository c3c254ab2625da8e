//! What the tests of the ladder and of the exchange share: a configuration as an operator writes it, callers, requests.

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::head::{Attributes, Modes};
use super::{Head, Server, Snapshot};
use crate::config;
use crate::identity::{Caller, KeyStores};
use crate::message::headers::{Header, Headers};
use crate::message::json::{Document, Limits};
use crate::policy::{Claims, Email, Label};
use crate::protocol::version::CURRENT;
use crate::record::Digest;
use crate::upstream::book::Sighting;

const CONFIGURATION: &str = "\
listen: {ext_proc: unix:/run/portcullis.sock}
unmatched: deny
servers:
- name: cases
  kind: mcp
  match: {route: [cases, cases-stream]}
  resource: https://mcp.acme.com/mcp
  allowed_origins: [https://app.acme.com]
  identity: {jwt: {issuer: https://auth.acme.com, jwks: https://auth.acme.com/jwks.json, required_scopes: [mcp]}}
  authorization_server: {issuer: https://auth.acme.com}
  upstream: {url: https://vendor.example.com/mcp, credential: {bearer: {file: token}}}
  policy: {file: policy.yaml}
  record: {file: cases.yaml}
  capability_scopes: {\"tool:update\": [cases:write]}
  limits: {request: 64KiB, listing: 64KiB, answer: 128KiB, depth: 16}
  timeouts: {body: 10s, answer: 60s}
  denials: {disclose: explicit, step_up: challenge}
";

const POLICY: &str = "\
roles:
  reader: [cases:read]
  editor: [cases:read, cases:write]
rules:
- match: {domain: acme.com}
  role: reader
- match: {claim: {groups: editors}}
  role: editor
";

const RECORDED: [(&str, &str, Option<&str>, &str); 6] = [
    ("tool:search", "cases:read", None, r#"{"name":"search"}"#),
    ("tool:update", "cases:write", None, r#"{"name":"update"}"#),
    ("prompt:triage", "cases:read", None, r#"{"name":"triage"}"#),
    ("resource:case", "cases:read", Some("cases://case/{id}"), r#"{"name":"case","uriTemplate":"cases://case/{id}"}"#),
    ("resource:index", "cases:read", Some("cases://index"), r#"{"name":"index","uri":"cases://index"}"#),
    ("resource:secret", "cases:write", Some("cases://case/7"), r#"{"name":"secret","uri":"cases://case/7"}"#),
];

/// The instructions that were approved.
pub(crate) const INSTRUCTIONS: &str = "Search first.";

/// A loaded configuration, and the files it may be read from again.
pub(crate) struct World {
    pub(crate) snapshot: Arc<Snapshot>,
    _files: TempDir,
}

/// The configuration with these substitutions; each must find its place. Every definition was seen lately, and stays so
/// for as long as a test may last.
pub(crate) fn world(edits: &[(&str, &str)]) -> World {
    let world = unseen(edits);
    let watched = if world.server().freshness.is_some() { &RECORDED[..] } else { &[] };
    for (label, .., definition) in watched {
        world.sees(label, definition, Instant::now() + Duration::from_hours(24));
    }
    world
}

/// An MCP server whose definitions nobody watches, which no configuration makes.
pub(crate) fn unwatched() -> World {
    let World { snapshot, _files: files } = unseen(&[]);
    let server = Arc::clone(snapshot.servers().first().expect("a server"));
    drop(snapshot);
    let mut server = Arc::into_inner(server).expect("nobody else holds it");
    server.freshness = None;
    let snapshot = Snapshot::new(vec![Arc::new(server)], super::server::Unmatched::Deny).expect("one server");
    World { snapshot: Arc::new(snapshot), _files: files }
}

/// The same before any definition was seen.
pub(crate) fn unseen(edits: &[(&str, &str)]) -> World {
    let mut text = CONFIGURATION.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "expected {from} in the configuration of the tests");
        text = text.replace(from, to);
    }
    let files = tempfile::tempdir().expect("a folder");
    let write = |name: &str, content: &str| fs::write(files.path().join(name), content).expect("a file");
    let digest = |definition: &str| {
        let document = Document::read(definition.into(), Limits { depth: 8, nodes: 100 }).expect("JSON");
        Digest::of(document.root()).expect("canonical").0
    };
    let mut prices = "definitions: cases.json\ncapabilities:\n".to_owned();
    let mut definitions = Vec::new();
    for (label, permission, uri, definition) in RECORDED {
        let uri = uri.map(|uri| format!(", uri: \"{uri}\"")).unwrap_or_default();
        let digest = digest(definition);
        writeln!(prices, "  {label}: {{permission: {permission}, digest: \"{digest}\"{uri}}}").expect("a string grows");
        definitions.push(format!("\"{label}\": {definition}"));
    }
    let definitions = definitions.join(",");
    write("cases.json", &format!("{{\"instructions\": \"{INSTRUCTIONS}\", \"definitions\": {{{definitions}}}}}"));
    write("cases.yaml", &prices);
    write("policy.yaml", POLICY);
    write("token", "service-credential\n");
    write("portcullis.yaml", &text);
    let loaded = config::load(&files.path().join("portcullis.yaml"), &KeyStores::new());
    let serving = loaded.serving.unwrap_or_else(|| panic!("expected no faults, got {:?}", loaded.faults));
    World { snapshot: Arc::new(serving.snapshot), _files: files }
}

impl World {
    /// A listing shows this definition under this label.
    pub(crate) fn sees(&self, label: &str, definition: &str, at: Instant) -> Sighting {
        let freshness = self.server().freshness.as_ref().expect("an MCP server");
        let label: Label = label.parse().expect("a label");
        freshness.observe(label.kind(), label.name(), document(definition).root(), at)
    }

    /// The first server.
    pub(crate) fn server(&self) -> &Arc<Server> {
        self.snapshot.servers().first().expect("a server")
    }

    /// Somebody with these claims and scopes; `ends` is when their identity does.
    pub(crate) fn caller(&self, claims: &str, scopes: &[&str], ends: Option<u64>) -> Arc<Caller> {
        let server = self.server();
        let document = Document::read(claims.into(), Limits { depth: 8, nodes: 100 }).expect("JSON");
        let email = document.root().get("email").and_then(|email| email.as_str());
        let email = email.map(|address| Email { address: address.into(), verified: true });
        let claims = Claims {
            issuer: "https://auth.acme.com".into(),
            subject: "someone".into(),
            email,
            hosted_domain: None,
            client_id: None,
            document: Arc::new(document),
        };
        let principal = server.policy.principal(&claims);
        let scopes = server.scopes.held(scopes.iter().copied());
        Arc::new(Caller { claims, principal, scopes, expires_at: ends, judged_by: u64::MAX })
    }

    /// Somebody who may read.
    pub(crate) fn reader(&self) -> Arc<Caller> {
        self.caller(r#"{"email":"ana@acme.com"}"#, &["mcp"], None)
    }

    /// Somebody who may write, and whose token says so too.
    pub(crate) fn editor(&self) -> Arc<Caller> {
        self.caller(r#"{"email":"bo@acme.com","groups":"editors"}"#, &["mcp", "cases:write"], None)
    }
}

/// Headers from pairs.
pub(crate) fn headers(pairs: &[(&str, &str)]) -> Headers {
    let header = |(name, value): &(&str, &str)| Header::new(name, value.as_bytes());
    Headers::new(pairs.iter().map(header).collect())
}

/// The head of a request on the route `cases`, with these headers behind the pseudo-headers.
pub(crate) fn head(method: &str, path: &str, more: &[(&str, &str)]) -> Head {
    let mut pairs = vec![(":method", method), (":path", path), (":authority", "mcp.acme.com"), (":scheme", "https")];
    pairs.extend_from_slice(more);
    let attributes = Attributes { route: Some("cases".into()), ..Attributes::default() };
    Head {
        headers: headers(&pairs),
        attributes,
        ends: matches!(method, "GET" | "HEAD" | "OPTIONS"),
        modes: Modes::Whole,
    }
}

/// A message with its `_meta`; `members` stand in front in `params`, each with a comma behind it.
pub(crate) fn message(id: Option<&str>, method: &str, members: &str) -> String {
    let id = id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
    format!(
        r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{{{members}"_meta":{{"io.modelcontextprotocol/protocolVersion":"{CURRENT}","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

/// The head of the POST that carries a message of this method about this name.
pub(crate) fn post(method: &str, name: Option<&str>) -> Head {
    let mut pairs =
        vec![("content-type", "application/json"), ("mcp-protocol-version", CURRENT), ("mcp-method", method)];
    pairs.extend(name.map(|name| ("mcp-name", name)));
    head("POST", "/mcp", &pairs)
}

/// A document that was read.
pub(crate) fn document(text: &str) -> Document {
    Document::read(text.as_bytes().to_vec(), Limits { depth: 64, nodes: 1 << 20 }).expect("JSON")
}
