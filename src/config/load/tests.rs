use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::{Loaded, load};
use crate::identity::KeyStores;
use crate::message::json::{Document, Limits};
use crate::record::Digest;

mod faults;
mod listener;

/// A folder with a configuration that has no fault, until a test makes one.
pub(super) struct Folder {
    dir: TempDir,
}

const PORTCULLIS: &str = "\
listen: {ext_proc: unix:/run/portcullis.sock}
servers:
- name: cases
  match: {route: [cases, cases-stream]}
  resource: https://mcp.acme.com/mcp
  identity:
    jwt:
      issuer: https://auth.acme.com
      jwks: https://auth.acme.com/jwks.json
      required_scopes: [mcp]
  authorization_server: {issuer: https://auth.acme.com}
  upstream:
    url: https://vendor.example.com/mcp
    credential: {bearer: {file: token}}
  policy: {file: policy.yaml}
  record: {file: records/cases.yaml}
  capability_scopes: {update: cases:write}
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

const DEFINITIONS: &str = "\
{
  \"instructions\": \"Search first.\",
  \"definitions\": {
    \"tool:search\": {\"name\": \"search\"},
    \"tool:update\": {\"name\": \"update\"},
    \"resource:case\": {\"name\": \"case\", \"uriTemplate\": \"cases://case/{id}\"}
  }
}
";

fn record() -> String {
    let digest = |definition: &str| {
        let document = Document::read(definition.into(), Limits { depth: 8, nodes: 100 }).expect("JSON");
        Digest::of(document.root()).expect("canonical").0
    };
    let (search, update) = (digest(r#"{"name":"search"}"#), digest(r#"{"name":"update"}"#));
    let case = digest(r#"{"name":"case","uriTemplate":"cases://case/{id}"}"#);
    format!(
        "recorded: {{from: https://vendor.example.com/mcp, at: 2026-11-30T09:00:00Z}}\n\
         definitions: cases.json\n\
         capabilities:\n\
         \u{20} search: {{permission: cases:read, digest: \"{search}\"}}\n\
         \u{20} tool:update: {{permission: cases:write, digest: \"{update}\"}}\n\
         \u{20} resource:case: {{permission: cases:read, digest: \"{case}\", uri: \"cases://case/{{id}}\"}}\n"
    )
}

impl Folder {
    pub(super) fn new() -> Self {
        let folder = Self { dir: tempfile::tempdir().expect("a folder") };
        fs::create_dir(folder.path("records")).expect("a folder");
        let files = [
            ("portcullis.yaml", PORTCULLIS),
            ("policy.yaml", POLICY),
            ("records/cases.yaml", &record()),
            ("records/cases.json", DEFINITIONS),
            ("token", "secret\n"),
        ];
        for (name, content) in files {
            folder.write(name, content);
        }
        folder
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).expect("a file");
    }

    /// Replaces the one place in a file that reads `from`.
    pub(super) fn replace(&self, name: &str, from: &str, to: &str) -> &Self {
        let content = fs::read_to_string(self.path(name)).expect("a file");
        assert_eq!(content.matches(from).count(), 1, "{from} in {content}");
        self.write(name, &content.replace(from, to));
        self
    }

    pub(super) fn load(&self) -> Loaded {
        load(&self.path("portcullis.yaml"), &KeyStores::new())
    }

    /// Everything that is told, with names relative to the folder.
    fn told(&self, of: impl Fn(Loaded) -> Vec<super::Located>) -> Vec<String> {
        let prefix = format!("{}/", self.dir.path().display());
        of(self.load()).iter().map(|located| located.to_string().replace(&prefix, "")).collect()
    }

    pub(super) fn faults(&self) -> Vec<String> {
        let told = self.told(|loaded| {
            assert_eq!(loaded.serving.is_none(), !loaded.faults.is_empty(), "either faults or something to serve");
            loaded.faults
        });
        for fault in &told {
            assert!(["expected", "not available", "cannot read"].iter().any(|words| fault.contains(words)), "{fault}");
        }
        told
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.told(|loaded| {
            assert!(loaded.faults.is_empty(), "{:?}", loaded.faults);
            loaded.warnings
        })
    }
}

#[test]
fn a_good_configuration_loads_without_a_word() {
    let folder = Folder::new();
    assert_eq!(folder.faults(), [""; 0]);
    assert_eq!(folder.warnings(), [""; 0]);
    let Loaded { serving, files, .. } = folder.load();
    let serving = serving.expect("something to serve");
    let [server] = serving.snapshot.servers() else { panic!("one server") };
    assert_eq!((&*server.name, server.resource.origin.as_str()), ("cases", "https://mcp.acme.com"));
    assert!(serving.snapshot.by_route("cases-stream").is_some());
    assert_eq!(server.record.instructions(), Some("Search first."));
    assert_eq!(server.record.len(), 3);
    assert_eq!(server.prices.tool("update").map(|tool| &*tool.permission_name), Some("cases:write"));
    let needed = server.prices.tool("update").map(|tool| server.scopes.names(&tool.scopes).collect::<Vec<_>>());
    assert_eq!(needed, Some(vec!["cases:write"]), "a bare name in capability_scopes is the tool");
    assert_eq!(
        server.credential.header_value().map(|value| value.as_bytes().to_vec()),
        Some(b"Bearer secret".to_vec())
    );
    assert!(server.metadata.document("/.well-known/oauth-protected-resource/mcp").is_some());
    assert!(server.metadata.document("/.well-known/oauth-authorization-server").is_some());
    let names: Vec<_> = files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
    for name in ["portcullis.yaml", "policy.yaml", "cases.yaml", "cases.json"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn five_faults_in_one_file_are_five_located_messages() {
    let folder = Folder::new();
    folder
        .replace(
            "portcullis.yaml",
            "listen: {ext_proc: unix:/run/portcullis.sock}\n",
            "listen: {ext_proc: tcp}\nunmatched: allow\n",
        )
        .replace(
            "portcullis.yaml",
            "  resource: https://mcp.acme.com/mcp\n",
            "  resource: http://mcp.acme.com/mcp?a=b\n  limts: {request: 1MiB}\n",
        )
        .replace("portcullis.yaml", "  capability_scopes: {update: cases:write}\n", "  limits: {request: 1MB}\n");
    assert_eq!(
        folder.faults(),
        [
            "portcullis.yaml:1:20: listen.ext_proc: expected `unix:/absolute/path` or `{address: …, tls: {…}}`, found `tcp`",
            "portcullis.yaml:2:12: unmatched: expected one of `deny`, `pass`, found `allow`",
            "portcullis.yaml:6:13: servers[0].resource: expected an absolute https URL (http on loopback only) without user, query \
         and fragment, got \"http://mcp.acme.com/mcp?a=b\": its scheme is another; correct the URL",
            "portcullis.yaml:7:3: servers[0].limts: expected a known key, found `limts`; did you mean `limits`?",
            "portcullis.yaml:19:21: servers[0].limits.request: expected a size with its unit, such as 64KiB or 1MiB, of at \
         most 1GiB, found `1MB`",
        ]
    );
}

#[test]
fn a_file_that_is_not_there_is_a_fault_of_its_own() {
    let folder = Folder::new();
    for name in ["policy.yaml", "records/cases.json", "token"] {
        fs::remove_file(folder.path(name)).expect("there");
    }
    let faults = folder.faults();
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(faults[0].starts_with("policy.yaml:1:1: expected a file that can be read"), "{faults:?}");
    assert!(faults[1].starts_with("portcullis.yaml:14:26: servers[0].upstream.credential.bearer"), "{faults:?}");
    assert!(faults[2].starts_with("records/cases.json:1:1: expected a file that can be read"), "{faults:?}");
    fs::remove_file(folder.path("portcullis.yaml")).expect("there");
    assert_eq!(folder.faults().len(), 1);
}

#[test]
fn plain_http_needs_an_identity_and_nothing_of_mcp() {
    let folder = Folder::new();
    folder.write(
        "portcullis.yaml",
        "\
listen: {ext_proc: unix:/run/portcullis.sock}
unmatched: pass
servers:
- name: web
  kind: http
  match: {cluster: web}
  resource: http://127.0.0.1:8080/
  identity: {peer: {trust_domains: [acme.com]}}
",
    );
    assert_eq!(folder.warnings(), [""; 0]);
    let serving = folder.load().serving.expect("something to serve");
    let server = serving.snapshot.by_cluster("web").expect("the server");
    assert!(server.record.is_empty() && server.prices.capabilities().is_empty());
    folder.replace(
        "portcullis.yaml",
        "  kind: http\n",
        "  kind: http\n  screen: off\n  policy: {file: policy.yaml}\n  upstream: {url: http://a}\n",
    );
    let faults = folder.faults();
    assert_eq!(faults.len(), 3, "{faults:?}");
    for (fault, start) in
        faults.iter().zip(["portcullis.yaml:6:3: servers[0].screen:", "portcullis.yaml:7:3:", "portcullis.yaml:8:19:"])
    {
        assert!(fault.starts_with(start) && fault.contains("`kind: mcp` only"), "{fault}");
    }
}

#[test]
fn what_nothing_costs_is_a_warning_unless_another_server_has_it() {
    let folder = Folder::new();
    folder.replace("policy.yaml", "  reader: [cases:read]", "  reader: [cases:read, cases:audit]");
    let warnings = folder.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("policy.yaml:2:") && warnings[0].contains("cases:audit"), "{warnings:?}");

    let record = fs::read_to_string(folder.path("records/cases.yaml")).expect("there");
    let other = record.replace("search: {permission: cases:read", "search: {permission: cases:audit");
    folder.write("records/other.yaml", &other);
    let second = PORTCULLIS[PORTCULLIS.find("- name").expect("there")..]
        .replace("name: cases", "name: other")
        .replace("[cases, cases-stream]", "other")
        .replace("records/cases.yaml", "records/other.yaml");
    folder.write("portcullis.yaml", &format!("{PORTCULLIS}{second}"));
    assert_eq!(folder.warnings(), [""; 0], "each permission is the price of something somewhere");
}

#[test]
fn a_recorded_definition_without_a_price_and_a_foreign_record_are_warnings() {
    let folder = Folder::new();
    folder
        .replace(
            "records/cases.json",
            "\"tool:search\":",
            "\"tool:extra\": {\"name\": \"extra\"},\n    \"tool:search\":",
        )
        .replace("records/cases.yaml", "from: https://vendor.example.com/mcp", "from: https://other.example.com/mcp");
    assert_eq!(
        folder.warnings(),
        [
            "records/cases.json:4:19: tool:extra is recorded but has no price, so it never runs; price it to allow it",
            "records/cases.yaml:1:18: recorded.from: the record was taken from `https://other.example.com/mcp`, but `cases` \
         forwards to `https://vendor.example.com/mcp`; record that server, or correct the one that is wrong",
        ]
    );
}

/// Whoever forwards callers' tokens has to say what our own listings carry.
#[test]
fn pass_through_without_a_listing_credential_is_a_warning() {
    let folder = Folder::new();
    folder.replace("portcullis.yaml", "credential: {bearer: {file: token}}", "credential: passthrough");
    let warnings = folder.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("portcullis.yaml:14:17: servers[0].upstream.credential: "), "{warnings:?}");
    folder.replace("portcullis.yaml", "passthrough", "passthrough\n    listing_credential: none");
    assert_eq!(folder.warnings(), [""; 0]);
    let server = folder.load().serving.expect("something to serve").snapshot.servers()[0].clone();
    assert!(server.freshness.is_some(), "what was recorded is kept fresh");
    // Keys that are for our own listings mean nothing where nothing is listed.
    folder.write(
        "portcullis.yaml",
        "\
listen: {ext_proc: unix:/run/portcullis.sock}
servers:
- name: web
  kind: http
  match: {cluster: web}
  resource: http://127.0.0.1:8080/
  identity: {peer: {trust_domains: [acme.com]}}
  upstream: {timeout: 5s, concurrency: 1, ca: x, listing_credential: none}
",
    );
    let faults = folder.faults();
    assert_eq!(faults.len(), 4, "{faults:?}");
    assert!(faults.iter().all(|fault| fault.contains("on servers of `kind: mcp` only")), "{faults:?}");
}
