//! Changes of the shipped edge configuration, written short.

use serde_json::Value;

use super::{EDGE, parsed};

/// A change of the configuration. Paths begin at the root, or with `H` (the connection manager), `R` (the route of POST
/// calls), `S` (the route of GET calls), `X` (the `ext_proc` filter's configuration), `C` (the server's cluster), `P`
/// (Portcullis's cluster); values are JSON.
pub(super) enum Edit {
    Set(&'static str, &'static str),
    Cut(&'static str),
    /// A new item ahead of the one that the path ends with.
    Add(&'static str, &'static str),
}

pub(super) fn pointer(path: &str) -> String {
    let manager = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
    let routes = format!("{manager}/route_config/virtual_hosts/0/routes");
    let (short, rest) = path.split_at(1);
    match short {
        "H" => format!("{manager}{rest}"),
        "R" => format!("{routes}/1{rest}"),
        "S" => format!("{routes}/0{rest}"),
        "X" => format!("{manager}/http_filters/1/typed_config{rest}"),
        "C" => format!("/static_resources/clusters/0{rest}"),
        "P" => format!("/static_resources/clusters/1{rest}"),
        _ => path.to_owned(),
    }
}

/// A filter of this kind and type; `body` are further fields.
fn expanded(value: &str) -> Value {
    let text = match value.split_once('|') {
        Some((kind, body)) if value.starts_with(|c: char| c.is_ascii_lowercase()) => {
            let (kind, message) = kind.split_once('.').expect("kind.Message");
            format!(
                r#"{{"name": "envoy.filters.http.{kind}", "typed_config": {{"@type": "type.googleapis.com/envoy.extensions.filters.http.{kind}.v3.{message}"{body}}}}}"#
            )
        }
        _ => value.to_owned(),
    };
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(super) fn apply(root: &mut Value, edit: &Edit) {
    let (path, value) = match edit {
        Edit::Set(path, value) | Edit::Add(path, value) => (path, Some(expanded(value))),
        Edit::Cut(path) => (path, None),
    };
    let pointer = pointer(path);
    let (holder, last) = pointer.rsplit_once('/').expect("a path");
    let last = last.replace("~1", "/");
    let holder = root.pointer_mut(holder).unwrap_or_else(|| panic!("nothing at {holder}"));
    match (holder, edit) {
        (Value::Object(map), Edit::Set(..)) => drop(map.insert(last, value.expect("a value"))),
        (Value::Object(map), _) => assert!(map.remove(&last).is_some(), "nothing at {pointer}"),
        (Value::Array(items), edit) => {
            let index: usize = last.parse().expect("an index");
            match edit {
                Edit::Set(..) => items[index] = value.expect("a value"),
                Edit::Add(..) => items.insert(index, value.expect("a value")),
                Edit::Cut(_) => drop(items.remove(index)),
            }
        }
        (other, _) => panic!("cannot edit {other}"),
    }
}

/// What must be found (the first id alone, or with those that follow from the same fault), where, and the fault.
pub(super) struct Seed(pub(super) &'static [&'static str], pub(super) &'static str, pub(super) &'static [Edit]);

pub(super) fn seeded(edits: &[Edit]) -> Value {
    let mut root = parsed(EDGE);
    for edit in edits {
        apply(&mut root, edit);
    }
    root
}
