//! The record's JSON file and what is made of it: digests, comparisons, schemas.

use portcullis::message::json::{Document, Kind, Limits, Value};
use portcullis::policy::Label;
use portcullis::record::{Definitions, Digest, Record, RecordSource, definitions_file, differences};
use serde_json::{Map, json};

const LIMITS: Limits = Limits { depth: 128, nodes: 1 << 20 };

/// The file.
pub fn check(data: &[u8]) {
    let definitions = match Definitions::read(data.to_vec()) {
        Ok(definitions) => definitions,
        Err(faults) => {
            assert!(
                !faults.is_empty() && faults.iter().all(|fault| fault.at <= data.len() && !fault.message.is_empty())
            );
            return;
        }
    };
    let document = Document::read(data.to_vec(), LIMITS).expect("what a file of definitions is");
    let root = document.root();
    let members: Vec<(&str, Value<'_>)> = root
        .get("definitions")
        .expect("definitions")
        .entries()
        .filter_map(|(key, value)| Some((key.as_str()?, value)))
        .collect();
    let mut priced = Map::new();
    let mut broken = Map::new();
    for (label, definition) in &members {
        let Ok((digest, canonical)) = Digest::of(*definition) else { return };
        assert!(differences(*definition, *definition).is_empty(), "a definition differs from itself");
        let again = Document::read(canonical.clone(), LIMITS).expect("a canonical form is JSON");
        assert_eq!(Digest::of(again.root()).expect("a digest"), (digest, canonical), "a canonical form is its own");
        assert!(differences(*definition, again.root()).is_empty(), "the canonical form says the same");
        otherwise(*definition, digest);
        let entry = |digest: String| {
            let uri = ["uri", "uriTemplate"].into_iter().find_map(|name| definition.get(name)?.as_str());
            let mut entry = json!({"permission": "cases:read", "digest": digest});
            if let Some(uri) = uri.filter(|_| label.starts_with("resource:")) {
                entry["uri"] = uri.into();
            }
            entry
        };
        priced.insert((*label).to_owned(), entry(digest.to_string()));
        broken.insert((*label).to_owned(), entry(flipped(digest)));
    }
    rewritten(root, &members);
    let any = broken.keys().any(|label| label.parse::<Label>().is_ok());
    if let Ok((record, _)) = Record::build(&source(&priced), &definitions) {
        assert!(Record::build(&source(&broken), &definitions).is_err() || !any, "a digest that does not fit loads");
        used(&record);
    }
}

/// A definition that says something else in one of its members has another digest and differs in that member, unless it is one
/// that nobody approves.
fn otherwise(definition: Value<'_>, digest: Digest) {
    const EDITS: [(&str, &str); 5] = [("", ""), ("true", "false"), ("false", "true"), ("null", "0"), ("1", "2")];
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    for (at, (changed, value)) in definition.entries().enumerate().take(8) {
        for (from, to) in EDITS {
            // 0e1 is 0e2.
            let exponent = value.raw().as_bytes().windows(2).any(|two| matches!(two, [b'0'..=b'9', b'e' | b'E']));
            if from == "1" && exponent {
                continue;
            }
            let edited = (!from.is_empty()).then(|| value.raw().replacen(from, to, 1));
            if edited.as_ref().is_some_and(|edited| parsed(edited).is_none() || parsed(edited) == parsed(value.raw())) {
                continue;
            }
            let member = |(index, (key, value)): (usize, (Value<'_>, Value<'_>))| match (index == at, &edited) {
                (false, _) => Some(format!("{}:{}", key.raw(), value.raw())),
                (true, None) => None,
                (true, Some(edited)) => Some(format!("{}:{edited}", key.raw())),
            };
            let members: Vec<String> = definition.entries().enumerate().filter_map(member).collect();
            let Ok(other) = Document::read(format!("{{{}}}", members.join(",")).into_bytes(), LIMITS) else { continue };
            let Ok((another, _)) = Digest::of(other.root()) else { continue };
            let key = changed.as_str().expect("a key");
            let expected: &[&str] = if ["_meta", "icons"].contains(&key) { &[] } else { &[key] };
            assert_eq!(another == digest, expected.is_empty(), "the digest without or with another {key}");
            assert_eq!(differences(definition, other.root()), expected);
            assert_eq!(differences(other.root(), definition), expected);
        }
    }
}

fn source(capabilities: &Map<String, serde_json::Value>) -> RecordSource {
    serde_json::from_value(json!({"definitions": "record.json", "capabilities": capabilities})).expect("a record")
}

fn flipped(digest: Digest) -> String {
    let mut text = digest.to_string();
    let last = if text.pop() == Some('0') { '1' } else { '0' };
    text.push(last);
    text
}

/// The file as `portcullis record` writes it says the same.
fn rewritten(root: Value<'_>, members: &[(&str, Value<'_>)]) {
    let labels: Vec<(Label, Value<'_>)> =
        members.iter().filter_map(|(label, value)| Some((label.parse().ok()?, *value))).collect();
    let mut names: Vec<&Label> = labels.iter().map(|(label, _)| label).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() < labels.len() {
        return;
    }
    let instructions = root.get("instructions").and_then(|text| text.as_str());
    let text = definitions_file(instructions, labels.iter().map(|(label, value)| (label, *value)));
    Definitions::read(text.clone().into_bytes()).expect("what was written can be read");
    let again = Document::read(text.into_bytes(), LIMITS).expect("JSON");
    assert_eq!(again.root().get("instructions").and_then(|text| text.as_str()), instructions);
    for (label, value) in &labels {
        let written = again.root().path(&["definitions", &label.to_string()]).expect("the definition");
        assert_eq!(Digest::of(written), Digest::of(*value), "the digest of {label} survives");
    }
}

/// Its schemas judge anything in bounded time, and the same way twice.
fn used(record: &Record) {
    for (_, entry) in record.entries() {
        let empty = Document::read(b"{}".to_vec(), LIMITS).expect("JSON");
        for schema in [entry.input(), entry.output()].into_iter().flatten().flatten() {
            for instance in [empty.root(), entry.document().root()] {
                assert_eq!(schema.check(instance), schema.check(instance), "one instance, two opinions");
            }
        }
        assert_eq!(entry.document().root().kind(), Kind::Object);
    }
}
