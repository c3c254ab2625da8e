use std::fs;
use std::path::Path;

use super::{Existing, recording};

const CONFIGURATION: &str = "\
listen: {ext_proc: nonsense}
servers:
- name: cases
  match: {route: cases}
  resource: https://mcp.acme.com/mcp
  identity: {static: {subject: a}}
  upstream: {url: https://v.example/mcp, timeout: 9s, concurrency: 2, credential: passthrough, listing_credential: {bearer: {file: token}}}
  policy: {file: nowhere.yaml}
  record: {file: records/cases.yaml}
- name: web
  kind: http
  match: {route: web}
  resource: https://web.acme.com/
  identity: {static: {subject: a}}
";

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("token"), "s3cret").unwrap();
    fs::write(dir.path().join("portcullis.yaml"), CONFIGURATION).unwrap();
    fs::create_dir(dir.path().join("records")).unwrap();
    dir
}

fn told(dir: &Path, server: Option<&str>) -> Vec<String> {
    let faults = recording(&dir.join("portcullis.yaml"), server).map(drop).expect_err("faults");
    faults.iter().map(|fault| fault.to_string().replace(&format!("{}/", dir.display()), "")).collect()
}

#[test]
fn a_configuration_that_does_not_load_can_still_be_recorded() {
    let dir = folder();
    let found = recording(&dir.path().join("portcullis.yaml"), Some("cases")).expect("enough to list it");
    assert_eq!((found.name.as_str(), found.file), ("cases", dir.path().join("records/cases.yaml")));
    let settings = found.settings;
    assert_eq!(
        (settings.url.as_str(), settings.timeout.as_secs(), settings.concurrency),
        ("https://v.example/mcp", 9, 2)
    );
    assert_eq!(settings.credential.header_value().unwrap(), "Bearer s3cret");
}

#[test]
fn what_keeps_a_server_from_being_listed_is_told() {
    let dir = folder();
    assert!(told(dir.path(), None)[0].ends_with("expected one server, found `cases`, `web`; name one with --server"));
    assert!(told(dir.path(), Some("x"))[0].contains("expected a server `x`, found `cases`, `web`"));
    assert!(
        told(dir.path(), Some("web"))[0]
            .starts_with("portcullis.yaml:11:9: servers[1].kind: expected a server of `kind: mcp`")
    );
    let change = |from: &str, to: &str| {
        assert!(CONFIGURATION.contains(from));
        fs::write(dir.path().join("portcullis.yaml"), CONFIGURATION.replace(from, to)).unwrap();
        told(dir.path(), Some("cases"))
    };
    assert!(change("timeout: 9s", "timeout: 9")[0].contains("servers[0].upstream.timeout: expected a time"));
    assert!(change("https://v.example/mcp", "v.example")[0].contains("servers[0].upstream.url: expected an absolute"));
    assert!(
        change("file: token", "file: gone")[0].contains("servers[0].upstream.listing_credential.bearer: cannot read")
    );
    assert!(
        change("{bearer: {file: token}}", "passthrough")[0]
            .contains("expected `none` or a bearer, found `passthrough`")
    );
    assert!(change("concurrency: 2", "ca: token")[0].contains("servers[0].upstream.ca: expected PEM certificates"));
    assert!(
        change("records/cases.yaml}", "records/cases.yaml, refresh: 500ms}")[0]
            .contains("record.refresh: expected at least 1s")
    );
    assert!(change("  record: {file: records/cases.yaml}\n", "")[0].contains("expected the key `record`"));
}

#[test]
fn a_record_is_read_as_far_as_it_goes() {
    let dir = folder();
    let file = dir.path().join("records/cases.yaml");
    assert!(Existing::read(&file).unwrap().is_none());
    fs::write(
        &file,
        "definitions: cases.json\ncapabilities:\n  a: {permission: read}\n  prompt:b: {permission: TODO}\n",
    )
    .unwrap();
    let found = Existing::read(&file).unwrap().expect("a record");
    let prices: Vec<String> = found
        .approved
        .prices
        .iter()
        .map(|(label, price)| format!("{label} {}", price.as_deref().unwrap_or("-")))
        .collect();
    assert_eq!(prices, ["tool:a read", "prompt:b -"]);
    assert!(found.approved.definitions.is_empty(), "no JSON file yet");
    fs::write(dir.path().join("records/cases.json"), "{\n  \"definitions\": {\"a\": [], \"é\": 1}}").unwrap();
    let faults: Vec<String> = Existing::read(&file).expect_err("faults").iter().map(ToString::to_string).collect();
    assert!(faults[0].ends_with("cases.json:2:24: expected the definition of \"a\" as an object"), "{faults:?}");
    assert!(faults[1].contains("cases.json:2:33: "), "{faults:?}");
    for (text, words) in [
        ("capabilities: {}\n", "expected the key `definitions`"),
        (
            "definitions: x.json\ncapabilities: {a: {}, tool:a: {}}\n",
            "expected each capability once, found tool:a again",
        ),
        ("definitions: x.json\ncapabilities: {'tool:': {}}\n", "found no name"),
        ("definitions: [\n", "expected YAML"),
    ] {
        fs::write(&file, text).unwrap();
        let faults = Existing::read(&file).expect_err(text);
        assert!(faults[0].message.contains(words), "{text}: {faults:?}");
    }
}
