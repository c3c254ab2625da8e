//! A schema as tools have them, and arguments of about its size.

use portcullis::message::json::{Document, Limits};

pub(crate) const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 200},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "cursor": {"type": ["string", "null"]},
        "filters": {"type": "array", "maxItems": 50, "items": {
            "type": "object",
            "properties": {
                "field": {"enum": ["status", "owner", "age"]},
                "op": {"type": "string", "pattern": "^[a-z]{1,8}$"},
                "values": {"type": "array", "items": {"type": "string"}},
                "weight": {"type": "number", "minimum": 0, "multipleOf": 0.05},
                "strict": {"type": "boolean"}
            },
            "required": ["field", "op"],
            "additionalProperties": false
        }}
    },
    "required": ["query"],
    "additionalProperties": false
}"#;

pub(crate) fn document(text: &str) -> Document {
    Document::read(text.as_bytes().to_vec(), Limits { depth: 64, nodes: 1_000_000 }).expect("a readable document")
}

/// About 1 KiB, `last` behind ten filters.
pub(crate) fn arguments(last: &str) -> Document {
    let filter = r#"{"field":"status","op":"in","values":["open","pending"],"weight":1.25,"strict":true}"#;
    let filters = [filter; 10].join(",");
    document(&format!(r#"{{"query":"open cases","limit":25,"cursor":null,"filters":[{filters},{last}]}}"#))
}
