//! The record's JSON file as text: what was served, one member or item a line, so that a difference reads well.
//!
//! White space is all that changes: numbers, escapes and the order of members stay the bytes that came.

#[cfg(test)]
mod tests;

use super::digest::LEFT_OUT;
use crate::message::json::{Kind, Value};
use crate::message::write;
use crate::policy::Label;

/// The text of a definitions file: the instructions, then each definition under its label in the order given, less
/// `_meta` and `icons`.
#[must_use]
pub fn definitions_file<'a>(
    instructions: Option<&str>,
    definitions: impl IntoIterator<Item = (&'a Label, Value<'a>)>,
) -> String {
    let mut out = "{\n".to_owned();
    if let Some(instructions) = instructions {
        out.push_str("  \"instructions\": ");
        out.push_str(&quoted(instructions));
        out.push_str(",\n");
    }
    out.push_str("  \"definitions\": {");
    let mut any = false;
    for (label, definition) in definitions {
        out.push_str(if any { ",\n    " } else { "\n    " });
        any = true;
        out.push_str(&quoted(&label.to_string()));
        out.push_str(": ");
        pretty(definition, &LEFT_OUT, 2, &mut out);
    }
    out.push_str(if any { "\n  }\n}\n" } else { "}\n}\n" });
    out
}

/// A value on one line, without white space outside of its strings.
#[must_use]
pub fn compact(value: Value<'_>) -> String {
    let mut out = String::with_capacity(value.raw().len());
    write_compact(value, &mut out);
    out
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    write::string(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
}

/// Members of an object, items of an array, each with its key when it has one.
fn children<'a>(value: Value<'a>, without: &'a [&str]) -> impl Iterator<Item = (Option<Value<'a>>, Value<'a>)> {
    let stays = |key: Value<'_>| !key.as_str().is_some_and(|key| without.contains(&key));
    let members = value.entries().filter(move |(key, _)| stays(*key)).map(|(key, value)| (Some(key), value));
    members.chain(value.items().map(|item| (None, item)))
}

/// As deep as the reader of the document allowed, which is not deep.
fn pretty(value: Value<'_>, without: &[&str], level: usize, out: &mut String) {
    let (open, close) = match value.kind() {
        Kind::Object => ('{', '}'),
        Kind::Array => ('[', ']'),
        _ => return out.push_str(value.raw()),
    };
    out.push(open);
    let mut any = false;
    for (key, child) in children(value, without) {
        out.push_str(if any { ",\n" } else { "\n" });
        any = true;
        out.push_str(&"  ".repeat(level.saturating_add(1)));
        if let Some(key) = key {
            out.push_str(key.raw());
            out.push_str(": ");
        }
        pretty(child, &[], level.saturating_add(1), out);
    }
    if any {
        out.push('\n');
        out.push_str(&"  ".repeat(level));
    }
    out.push(close);
}

fn write_compact(value: Value<'_>, out: &mut String) {
    let (open, close) = match value.kind() {
        Kind::Object => ('{', '}'),
        Kind::Array => ('[', ']'),
        _ => return out.push_str(value.raw()),
    };
    out.push(open);
    for (index, (key, child)) in children(value, &[]).enumerate() {
        if index > 0 {
            out.push(',');
        }
        if let Some(key) = key {
            out.push_str(key.raw());
            out.push(':');
        }
        write_compact(child, out);
    }
    out.push(close);
}
