use std::collections::BTreeMap;

use super::{CapabilitySource, Definitions, Digest, Record, RecordFault, RecordSource};
use crate::message::json::{Document, Limits};
use crate::policy::Label;

const DEFINITIONS: &str = r#"{
  "instructions": "Search \u0062efore you update.",
  "definitions": {
    "search": {"name": "search", "maximum": 9007199254740993, "_meta": {"a": 1}},
    "prompt:triage": {"name": "triage"},
    "resource:case": {"name": "case", "uriTemplate": "cases://case/{id}"},
    "tool:extra": {"name": "extra"}
  }
}"#;

fn digest_of(json: &str) -> Digest {
    let document = Document::read(json.as_bytes().to_vec(), Limits { depth: 64, nodes: 1000 }).expect("JSON");
    Digest::of(document.root()).expect("canonical").0
}

fn definitions(text: &str) -> Definitions {
    Definitions::read(text.as_bytes().to_vec()).expect("definitions")
}

/// The definition that `DEFINITIONS` has under `label`.
fn recorded(label: &str) -> Digest {
    let all = definitions(DEFINITIONS);
    let (_, value) = all.entries().find(|(own, _)| *own == label).expect("recorded");
    Digest::of(value).expect("canonical").0
}

fn capability(permission: &str, digest: Digest, uri: Option<&str>) -> CapabilitySource {
    let text = format!(r#"{{"permission": {permission:?}, "digest": "{digest}"}}"#);
    let mut source: CapabilitySource = serde_json::from_str(&text).expect("capability");
    source.uri = uri.map(str::to_owned);
    source
}

fn source(change: impl FnOnce(&mut BTreeMap<String, CapabilitySource>)) -> RecordSource {
    let mut capabilities = BTreeMap::from([
        ("tool:search".to_owned(), capability("read", recorded("search"), None)),
        ("prompt:triage".to_owned(), capability("read", recorded("prompt:triage"), None)),
        ("resource:case".to_owned(), capability("read", recorded("resource:case"), Some("cases://case/{id}"))),
    ]);
    change(&mut capabilities);
    RecordSource { recorded: None, definitions: "cases.json".into(), capabilities }
}

/// The faults of a changed record, as `path: message` or `byte: message`.
fn faults(change: impl FnOnce(&mut BTreeMap<String, CapabilitySource>)) -> Vec<String> {
    let faults = Record::build(&source(change), &definitions(DEFINITIONS)).expect_err("faults");
    faults.iter().map(shown).collect()
}

fn shown(fault: &RecordFault) -> String {
    match fault {
        RecordFault::Source { path, message } => {
            let keys: Vec<String> = path.iter().map(|segment| format!("{segment:?}")).collect();
            format!("{}: {message}", keys.join(" ").replace("Key(", "").replace([')', '"'], ""))
        }
        RecordFault::Definitions { at, message } => format!("{at}: {message}"),
    }
}

#[test]
fn a_record_keeps_exactly_what_was_approved() {
    let (record, warnings) = Record::build(&source(|_| {}), &definitions(DEFINITIONS)).expect("builds");
    assert_eq!(record.instructions(), Some("Search before you update."));
    assert_eq!(record.len(), 3);
    let entry = record.entry(&"search".parse::<Label>().expect("label")).expect("one entry for both spellings");
    assert!(entry.document().text().contains("9007199254740993"), "no number is rounded");
    assert_eq!(std::str::from_utf8(entry.canonical()), Ok(r#"{"maximum":9007199254740993,"name":"search"}"#));
    assert_eq!(entry.digest(), recorded("search"));
    assert!(record.entry(&"tool:extra".parse().expect("label")).is_none(), "without a price it is not there");
    let warnings: Vec<String> = warnings.iter().map(shown).collect();
    let at = DEFINITIONS.find(r#"{"name": "extra"}"#).expect("there");
    assert_eq!(
        warnings,
        [format!("{at}: tool:extra is recorded but has no price, so it never runs; price it to allow it")]
    );
}

#[test]
fn a_digest_ignores_spelling_and_nothing_else() {
    let same = digest_of(r#"{"b": 1.0, "a": ["é", 100], "_meta": {"x": 1}, "icons": []}"#);
    assert_eq!(same, digest_of("{\"a\":[\"\\u00e9\",1e2],\n\"b\":1}"));
    for different in [
        r#"{"b": 1.5, "a": ["é", 100]}"#,
        r#"{"b": 1, "a": [100, "é"]}"#,
        r#"{"b": true, "a": ["é", 100]}"#,
        r#"{"b": 1, "a": ["é", 100], "c": null}"#,
        r#"{"b": 1, "a": ["é", 100], "inner": {"_meta": 1}}"#,
    ] {
        assert_ne!(same, digest_of(different), "{different}");
    }
    // SHA-256 of the two bytes `{}`, as any tool computes it.
    let empty = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    assert_eq!(digest_of("{}").to_string(), empty);
    assert_eq!(empty.parse(), Ok(digest_of("{}")));
    for malformed in [&empty[1..], &empty[..70], &empty.to_uppercase(), "sha256:", ""] {
        assert!(malformed.parse::<Digest>().is_err(), "{malformed}");
    }
}

#[test]
fn a_digest_that_does_not_fit_refuses() {
    let other = digest_of("{}");
    let told = faults(|all| *all.get_mut("tool:search").expect("there") = capability("read", other, None));
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("capabilities tool:search digest: expected the digest of the recorded definition, sha256:"),
        "{told:?}"
    );
    assert!(told[0].contains(&recorded("search").to_string()) && told[0].contains(&other.to_string()));
}

#[test]
fn a_label_without_a_definition_refuses() {
    let digest = digest_of("{}");
    let told = faults(|all| {
        all.insert("prompt:search".into(), capability("read", digest, None));
    });
    assert!(told[0].starts_with("capabilities prompt:search: expected a definition of prompt:search"), "{told:?}");
}

#[test]
fn a_uri_that_differs_from_the_definition_refuses() {
    let digest = recorded("resource:case");
    let told =
        faults(|all| *all.get_mut("resource:case").expect("there") = capability("read", digest, Some("cases://{id}")));
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("capabilities resource:case uri: expected the definition's own URI `cases://case/{id}`"),
        "{told:?}"
    );
    let digest = recorded("search");
    let told = faults(|all| *all.get_mut("tool:search").expect("there") = capability("read", digest, Some("x://y")));
    assert_eq!(told, ["capabilities tool:search uri: expected a URI on resources only; remove it"]);
}

#[test]
fn a_definition_under_a_foreign_name_refuses() {
    let text =
        r#"{"definitions": {"a": {"name": "b"}, "resource:r": {"name": "r"}, "tool:a": {"name": "a"}, "tool:": {}}}"#;
    let foreign = definitions(text);
    let capabilities = BTreeMap::from([
        ("a".to_owned(), capability("read", digest_of(r#"{"name":"b"}"#), None)),
        ("resource:r".to_owned(), capability("read", digest_of(r#"{"name":"r"}"#), Some("a:b"))),
    ]);
    let source = RecordSource { recorded: None, definitions: "x".into(), capabilities };
    let told: Vec<String> = Record::build(&source, &foreign).expect_err("faults").iter().map(shown).collect();
    assert!(told.iter().any(|fault| fault.contains("found a second definition of tool:a")), "{told:?}");
    assert!(told.iter().any(|fault| fault.contains("found no name")), "{told:?}");
    assert!(told.iter().any(|fault| fault.contains("to have one of `uri` and `uriTemplate`")), "{told:?}");
    let text = r#"{"definitions": {"a": {"name": "b"}}}"#;
    let capabilities = BTreeMap::from([("a".to_owned(), capability("read", digest_of(r#"{"name":"b"}"#), None))]);
    let source = RecordSource { recorded: None, definitions: "x".into(), capabilities };
    let told: Vec<String> = Record::build(&source, &definitions(text)).expect_err("faults").iter().map(shown).collect();
    assert_eq!(told, [r#"22: expected the definition of tool:a to have the name "a""#]);
}

#[test]
fn a_permission_that_nobody_decided_never_loads() {
    let digest = recorded("search");
    for undecided in ["TODO", "", "*"] {
        let text = format!(r#"{{"permission": {undecided:?}, "digest": "{digest}"}}"#);
        let error = serde_json::from_str::<CapabilitySource>(&text).expect_err(undecided).to_string();
        assert!(error.contains("expected the") || error.contains("the name of one permission"), "{error}");
    }
}

#[test]
fn the_shape_of_the_definitions_file_is_checked_whole() {
    let told = |text: &str| -> Vec<(usize, String)> {
        let faults = Definitions::read(text.as_bytes().to_vec()).expect_err(text);
        faults.into_iter().map(|fault| (fault.at, fault.message)).collect()
    };
    assert_eq!(told("[]")[0].1, "expected an object with `instructions` and `definitions`");
    let many = told(r#"{"instructions": null, "extra": 1, "definitions": {"a": [], "b": 1}}"#);
    assert_eq!(many.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [17, 23, 56, 65]);
    assert!(told("{}")[0].1.contains("`definitions`, which is missing"));
    assert_eq!(
        told(r#"{"definitions": {"a": {}, "a": {}}}"#)[0].1,
        "expected JSON, but a key is repeated; remove one of the two"
    );
    assert!(told(r#"{"definitions": {"a": {"n": 01}}}"#)[0].1.starts_with("expected JSON, but"));
}

#[test]
fn a_number_without_canonical_form_refuses() {
    let text = r#"{"definitions": {"a": {"name": "a", "n": 1e99999999999999999999}}}"#;
    let capabilities = BTreeMap::from([("a".to_owned(), capability("read", digest_of("{}"), None))]);
    let source = RecordSource { recorded: None, definitions: "x".into(), capabilities };
    let told: Vec<String> = Record::build(&source, &definitions(text)).expect_err("faults").iter().map(shown).collect();
    assert!(told[0].starts_with("22: ") && told[0].contains("the definition has no digest"), "{told:?}");
}
