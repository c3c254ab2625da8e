use std::path::Path;

use serde_json::Value;

use super::{Schema, schema};
use crate::config::tree::{Content, Node};

const COMMITTED: [(Schema, &str); 4] = [
    (Schema::Configuration, "docs/portcullis.schema.json"),
    (Schema::Policy, "docs/policy.schema.json"),
    (Schema::Record, "docs/record.schema.json"),
    (Schema::Test, "docs/test.schema.json"),
];

#[test]
fn the_committed_schemas_are_up_to_date() {
    for (of, file) in COMMITTED {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        let word = format!("{of:?}").to_lowercase();
        assert!(committed == schema(of), "{file} is not what the code says: run `portcullis schema {word} > {file}`");
    }
}

/// Every key a file may have is explained, and nothing beyond them is let in by an editor that checks the schema.
#[test]
fn every_key_is_described_and_no_other_is_allowed() {
    for (of, file) in COMMITTED {
        let value: Value = serde_json::from_str(&schema(of)).expect("JSON");
        let mut seen = 0;
        walk(&value, &mut |schema| {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
            for (key, property) in properties {
                // The one key of a variant is described by the variant.
                let variant = properties.len() == 1 && schema.get("description").is_some();
                let own = variant || property.get("description").is_some();
                // Keys of a type that is written by hand are described by the key that holds it.
                assert!(
                    own || ["issuer", "file", "bearer"].contains(&key.as_str()),
                    "{file}: `{key}` has no description"
                );
                seen += 1;
            }
            assert!(schema.get("additionalProperties").is_some(), "{file}: {schema}");
        });
        assert!(seen > 3, "{file}");
    }
}

fn walk(value: &Value, visit: &mut impl FnMut(&Value)) {
    visit(value);
    match value {
        Value::Object(members) => members.values().for_each(|value| walk(value, visit)),
        Value::Array(items) => items.iter().for_each(|value| walk(value, visit)),
        _ => {}
    }
}

/// The page about the configuration names every key of its three files, the page about the policy tools those of theirs.
#[test]
fn every_key_is_documented() {
    for (of, _) in COMMITTED {
        let name = if of == Schema::Test { "docs/policy-tools.md" } else { "docs/configuration.md" };
        let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("the page");
        let value: Value = serde_json::from_str(&schema(of)).expect("JSON");
        walk(&value, &mut |schema| {
            for key in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|all| all.keys()) {
                let named = [format!("`{key}"), format!(".{key}"), format!("{key}:")];
                assert!(named.iter().any(|form| page.contains(form)), "{name} does not name `{key}`");
            }
        });
    }
}

/// The examples on that page load as far as their shape goes.
#[test]
fn the_examples_of_the_page_have_the_right_shape() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let mut examples = 0;
    for block in page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        // A part of a server's entry is shown as it stands there.
        let block = if block.starts_with("gates:") {
            let block = block.replace('\n', "\n  ");
            format!("listen: {{ext_proc: unix:/run/a.sock}}\nservers:\n- name: a\n  {block}")
        } else {
            block.to_owned()
        };
        let (root, faults) = Node::parse(&block);
        assert!(faults.is_empty(), "{faults:?}\n{block}");
        let mut root = root.expect("a document");
        let Content::Mapping(_) = &root.content else { panic!("a mapping: {block}") };
        let faults = if root.get("listen").is_some() {
            crate::config::deserialize::load::<crate::config::Configuration>(&mut root).1
        } else if root.get("roles").is_some() {
            crate::config::deserialize::load::<crate::policy::PolicySource>(&mut root).1
        } else {
            crate::config::deserialize::load::<crate::record::RecordSource>(&mut root).1
        };
        assert!(faults.is_empty(), "{faults:?}\n{block}");
        examples += 1;
    }
    assert!(examples >= 3, "one of each file");
}
