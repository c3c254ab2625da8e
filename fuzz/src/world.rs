//! A configuration as an operator writes it, loaded from files that are made here.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis::config;
use portcullis::identity::{Caller, KeyStores};
use portcullis::ladder::{Server, Snapshot};
use portcullis::message::json::{Document, Limits};
use portcullis::policy::Label;
use portcullis::record::Digest;
use portcullis::upstream::book::Verdict;
use tempfile::TempDir;

/// Unix seconds at the beginning of every exchange.
pub(crate) const NOW: u64 = 1_800_000_000;

/// Nothing is listening on that port: whatever is asked of it fails at once.
pub(crate) const CONFIGURATION: &str = "\
listen: {ext_proc: unix:/run/portcullis.sock}
unmatched: deny
servers:
- name: cases
  kind: mcp
  match: {route: [cases]}
  resource: https://mcp.acme.com/mcp
  identity: {envoy_jwt: {issuer: https://auth.acme.com, payload_key: acme, required_scopes: [mcp]}}
  authorization_server: {issuer: https://auth.acme.com}
  upstream: {url: http://127.0.0.1:9/mcp, credential: {bearer: {file: token}}}
  policy: {file: policy.yaml}
  record: {file: cases.yaml}
  capability_scopes: {\"tool:update\": [cases:write]}
  limits: {request: 64KiB, listing: 64KiB, answer: 128KiB, depth: 16}
  timeouts: {body: 10s, answer: 60s}
- name: pages
  kind: http
  match: {route: [pages]}
  resource: https://mcp.acme.com/pages
  identity: {static: {subject: someone}}
";

pub(crate) const POLICY: &str = "\
roles:
  reader: [cases:read]
  editor: [cases:read, cases:write]
rules:
- match: {domain: acme.com}
  role: reader
- match: {claim: {groups: editors}}
  role: editor
";

/// Label, permission, URI, definition.
pub(crate) type Recorded = (&'static str, &'static str, Option<&'static str>, &'static str);

pub(crate) const RECORDED: &[Recorded] = &[
    (
        "tool:search",
        "cases:read",
        None,
        r#"{"name":"search","inputSchema":{"type":"object","properties":{"q":{"type":"string"}}},"outputSchema":{"type":"object","required":["n"]}}"#,
    ),
    ("tool:update", "cases:write", None, r#"{"name":"update"}"#),
    ("prompt:triage", "cases:read", None, r#"{"name":"triage"}"#),
    ("resource:case", "cases:read", Some("cases://case/{id}"), r#"{"name":"case","uriTemplate":"cases://case/{id}"}"#),
    ("resource:secret", "cases:write", Some("cases://case/7"), r#"{"name":"secret","uri":"cases://case/7"}"#),
];

/// The files, in a folder of their own.
pub(crate) fn files(configuration: &str, recorded: &[Recorded]) -> TempDir {
    let folder = folder();
    let (yaml, json) = record(recorded);
    let all = [
        ("portcullis.yaml", configuration),
        ("policy.yaml", POLICY),
        ("cases.yaml", &yaml),
        ("cases.json", &json),
        ("token", "service-credential\n"),
    ];
    for (name, content) in all {
        write(folder.path(), name, content);
    }
    folder
}

/// A folder in memory, where the system has one: loading is quick then, and no disk is worn.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

pub(crate) fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) {
    fs::write(folder.join(name), content).expect("a file");
}

/// The two files of the record.
pub(crate) fn record(recorded: &[Recorded]) -> (String, String) {
    let mut prices = "definitions: cases.json\ncapabilities:\n".to_owned();
    let mut definitions = Vec::new();
    for (label, permission, uri, definition) in recorded {
        let uri = uri.map(|uri| format!(", uri: \"{uri}\"")).unwrap_or_default();
        let digest = Digest::of(document(definition).root()).expect("a digest").0;
        prices += &format!("  {label}: {{permission: {permission}, digest: \"{digest}\"{uri}}}\n");
        definitions.push(format!("\"{label}\": {definition}"));
    }
    (prices, format!("{{\"instructions\": \"Search first.\", \"definitions\": {{{}}}}}", definitions.join(",")))
}

pub(crate) fn document(text: &str) -> Document {
    Document::read(text.into(), Limits { depth: 64, nodes: 1 << 16 }).expect("JSON")
}

/// What a thread judges by.
pub(crate) struct World {
    configuration: String,
    recorded: &'static [Recorded],
    pub(crate) snapshot: Arc<Snapshot>,
    /// One that has begun the other way: inputs that begin so in turn load nothing.
    other: Option<Arc<Snapshot>>,
}

impl World {
    pub(crate) fn new(edits: &[(&str, &str)]) -> Self {
        Self::with(edits, RECORDED)
    }

    /// The configuration with these substitutions, each of which must find its place, and this record.
    pub(crate) fn with(edits: &[(&str, &str)], recorded: &'static [Recorded]) -> Self {
        let mut configuration = CONFIGURATION.to_owned();
        for (from, to) in edits {
            assert!(configuration.contains(from), "expected {from} in the configuration");
            configuration = configuration.replace(from, to);
        }
        let snapshot = load(&configuration, recorded);
        Self { configuration, recorded, snapshot, other: None }
    }

    pub(crate) fn server(&self) -> &Arc<Server> {
        self.snapshot.servers().first().expect("a server")
    }

    /// Forgets what the exchange before has shown of the server: `fresh`, or nothing known.
    pub(crate) fn begin(&mut self, fresh: bool) {
        let now = Instant::now();
        let known = |world: &Self| {
            let freshness = world.server().freshness.as_ref().expect("an MCP server");
            let verdict = |(label, ..): &Recorded| freshness.verdict(&label.parse::<Label>().expect("a label"), now);
            world.recorded.iter().map(verdict).collect::<Vec<_>>()
        };
        let as_wanted = if fresh { Verdict::Fresh } else { Verdict::Stale };
        let right = |world: &Self| known(world).iter().all(|verdict| *verdict == as_wanted);
        if right(self) {
            return;
        }
        if let Some(other) = self.other.take() {
            self.other = Some(std::mem::replace(&mut self.snapshot, other));
            if fresh {
                self.see(now);
            }
            if right(self) {
                return;
            }
        } else {
            self.other = Some(Arc::clone(&self.snapshot));
        }
        self.snapshot = load(&self.configuration, self.recorded);
        if fresh {
            self.see(now);
        }
    }

    /// The server is found to offer what was approved.
    pub(crate) fn see(&self, now: Instant) {
        let freshness = self.server().freshness.as_ref().expect("an MCP server");
        for (label, entry) in self.server().record.entries() {
            freshness.observe(label.kind(), label.name(), entry.document().root(), now + Duration::from_hours(24));
        }
    }

    /// Somebody with these claims, who is known until `ends`.
    pub(crate) fn caller(&self, claims: &str, ends: u64) -> Arc<Caller> {
        let claims = format!(
            r#"{{"iss":"https://auth.acme.com","aud":"https://mcp.acme.com/mcp","sub":"someone","exp":{ends},{claims}}}"#
        );
        self.server().authenticator.vouched(&claims, NOW).expect("good claims")
    }
}

fn load(configuration: &str, recorded: &[Recorded]) -> Arc<Snapshot> {
    let folder = files(configuration, recorded);
    let loaded = config::load(&folder.path().join("portcullis.yaml"), &KeyStores::new());
    let serving = loaded.serving.unwrap_or_else(|| panic!("expected no faults, got {:#?}", loaded.faults));
    Arc::new(serving.snapshot)
}
