//! One spelling for what protobuf's JSON form allows in several: `failureModeAllow`, nulls, `TypedStruct`.

use serde_json::{Map, Value};

/// Fields whose keys are data: names of filters, policies, namespaces.
const MAPS: [&str; 9] = [
    "typed_per_filter_config",
    "typed_extension_protocol_options",
    "policies",
    "filter_metadata",
    "typed_filter_metadata",
    "json_format",
    "providers",
    "requirement_map",
    "static_layer",
];

/// The same configuration with field names as the protos have them, without nulls, and `TypedStruct`s taken for what they
/// carry.
pub(super) fn normal(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(normal).collect()),
        Value::Object(map) => typed(map.into_iter().filter(|(_, value)| !value.is_null()).map(field).collect()),
        plain => plain,
    }
}

fn field((key, value): (String, Value)) -> (String, Value) {
    let key = snake(&key);
    let value = match value {
        Value::Object(map) if MAPS.contains(&key.as_str()) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, normal(value))).collect())
        }
        value => normal(value),
    };
    (key, value)
}

/// Only what can be a field's JSON name is one: `virtualHosts`, not `Cache-Control`.
fn snake(key: &str) -> String {
    let camel = key.starts_with(|c: char| c.is_ascii_lowercase()) && key.chars().all(|c| c.is_ascii_alphanumeric());
    if !camel {
        return key.to_owned();
    }
    let mut snake = String::with_capacity(key.len() + 4);
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// A `TypedStruct` names its type and carries the fields below `value`.
fn typed(mut map: Map<String, Value>) -> Value {
    let wraps = map.get("@type").and_then(Value::as_str).is_some_and(|name| name.ends_with(".TypedStruct"));
    if wraps && let (Some(name), Some(Value::Object(mut carried))) = (map.remove("type_url"), map.remove("value")) {
        carried.insert("@type".to_owned(), name);
        return Value::Object(carried);
    }
    Value::Object(map)
}
