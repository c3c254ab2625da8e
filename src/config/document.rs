//! Any YAML document, by the reader of our own files: strict and bounded, with a place for everything that is wrong.

use std::path::Path;

use serde_json::Value;

use super::deserialize;
use super::located::Located;
use super::tree::Node;

/// Reads `text`, the content of `file`, as one YAML document of any shape.
///
/// # Errors
/// Everything that is wrong: syntax, a key that is there twice, tags, too many values.
pub fn document(file: &Path, text: &str) -> Result<Value, Vec<Located>> {
    let (root, mut faults) = Node::parse(text);
    let value = root.and_then(|mut root| {
        let (value, more) = deserialize::load::<Value>(&mut root);
        faults.extend(more);
        value
    });
    let told = |fault: super::tree::PlacedFault| Located {
        file: file.to_owned(),
        line: fault.place.line,
        column: fault.place.column,
        message: fault.message,
    };
    match value {
        Some(value) if faults.is_empty() => Ok(value),
        _ => Err(faults.into_iter().map(told).collect()),
    }
}
