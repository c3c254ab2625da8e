//! From a text to a configuration, or to the line and column where it stops being one.

use std::path::Path;

use serde_json::Value;

use super::normal::normal;
use crate::config::{self, Located};

/// Most bytes that are read. A dump of a large mesh has some tens of MiB.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Up to here, JSON is held against the strict YAML reader too, which finds keys that are there twice.
const STRICT: usize = 4 * 1024 * 1024;
/// What one of these keys stands for is an Envoy configuration.
const ROOTS: [&str; 5] = ["static_resources", "dynamic_resources", "configs", "resources", "admin"];

/// Reads a bootstrap, a dump of the admin endpoint, or a list of xDS resources. `name` is for the messages.
///
/// # Errors
/// What keeps it from being read, by line and column.
pub fn read(name: &Path, text: &str) -> Result<Value, Vec<Located>> {
    let one = |line, column, message: String| vec![Located { file: name.to_owned(), line, column, message }];
    if text.len() > MAX_BYTES {
        return Err(one(
            1,
            1,
            format!("expected at most {MAX_BYTES} bytes, found {}; give a smaller file", text.len()),
        ));
    }
    let value =
        if text.trim_start().starts_with('{') { json(name, text, &one)? } else { config::document(name, text)? };
    let value = normal(value);
    if ROOTS.iter().any(|key| value.get(key).is_some()) {
        return Ok(value);
    }
    let keys: Vec<&str> = value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).take(5).collect();
    let found = if keys.is_empty() { "none of these keys".to_owned() } else { format!("`{}`", keys.join("`, `")) };
    let expected = "expected an Envoy bootstrap (`static_resources`, `dynamic_resources`) or an answer of /config_dump (`configs`)";
    Err(one(
        1,
        1,
        format!("{expected}, found {found}; give Envoy's configuration, or the address of its admin endpoint"),
    ))
}

/// JSON, else YAML that begins with a brace.
fn json(name: &Path, text: &str, one: &impl Fn(usize, usize, String) -> Vec<Located>) -> Result<Value, Vec<Located>> {
    let error = match serde_json::from_str::<Value>(text) {
        Ok(value) if text.len() > STRICT => return Ok(value),
        Ok(value) => {
            let strict = config::document(name, text);
            let twice = |faults: &[Located]| faults.iter().any(|fault| fault.message.contains("each key once"));
            return strict.err().filter(|faults| twice(faults)).map_or(Ok(value), Err);
        }
        Err(error) => error,
    };
    let yaml = name.extension().is_none_or(|extension| extension != "json");
    if yaml && let Ok(value) = config::document(name, text) {
        return Ok(value);
    }
    Err(one(error.line(), error.column(), format!("expected JSON, but {error}; correct it")))
}
