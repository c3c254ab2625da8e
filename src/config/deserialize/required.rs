//! Which keys a struct must have. Serde names the first that is missing; the JSON Schema of the same struct knows all.

use schemars::{JsonSchema, schema_for};
use serde_json::Value;

/// The required keys of the struct called `name` inside of `T`, `field` at least.
pub(super) fn missing<T: JsonSchema>(name: Option<&str>, field: &str) -> Vec<String> {
    let schema = schema_for!(T);
    let root = schema.as_value();
    let own = match name {
        Some(name) if name == T::schema_name() => Some(root),
        Some(name) => root.get("$defs").and_then(|defs| defs.get(name)),
        None => None,
    };
    let required = own.and_then(|schema| schema.get("required")).and_then(Value::as_array);
    let mut fields: Vec<String> =
        required.into_iter().flatten().filter_map(|field| field.as_str().map(str::to_owned)).collect();
    if !fields.iter().any(|known| known == field) {
        fields.push(field.to_owned());
    }
    fields
}
