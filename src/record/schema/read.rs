//! A schema as the validator compiles it, made member by member from the tape.
//!
//! Known attacks and the defence against each:
//!
//! - **A schema nested deeper than the compiler's stack**: refused before it is compiled.
//! - **Another reader that sees something else** (`{"$serde_json::private::Number": "5"}`): no other one reads it.
//! - **Branches that double without looking at the instance** (`allOf` twice the same `$ref`, sixty times over, with `{}` at
//!   the end): budgets count looks, so every schema that branches, and every one that a branch leads to, gets a `type` that
//!   any value has, which is looked at first. References that lead to something that is no schema, and so has none, do not
//!   compile.

use serde_json::{Map, Value as Json, json};

use super::Uncompilable;
use super::explain::cut;
use super::tape::serde_number;
use crate::message::json::{Kind, Value};

/// Most nesting of a schema. Compiling recurs; a thread of 2 MiB stands more than three times as much.
const DEPTH: usize = 128;
/// Most places at which a schema refers to another: they nest without an instance that nests.
const REFERENCES: usize = 500;

/// Where a schema's dialect is named.
const DIALECT: &str = "$schema";
/// The dialects, without scheme and empty fragment.
const DIALECTS: [&str; 4] = [
    "json-schema.org/draft/2020-12/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft-06/schema",
];

/// Keywords that apply other schemas to the same instance.
const BRANCHES: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
const REFERENCE_KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords whose members are named by the schema's author and are schemas.
const MAPS: [&str; 7] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
    "dependentRequired",
];
/// Keywords that hold values, not schemas.
const DATA: [&str; 2] = ["const", "enum"];

/// What was read.
pub(super) struct Read {
    pub(super) json: Json,
    /// Whether names of members meet patterns.
    pub(super) names: bool,
}

/// Reads a whole schema.
pub(super) fn schema(schema: Value<'_>) -> Result<Read, Uncompilable> {
    let mut reader = Reader { references: 0, names: false };
    let json = reader.read(schema, Place::Schema, 1)?;
    if reader.references > REFERENCES {
        let found = reader.references;
        let message = format!("expected at most {REFERENCES} references in a schema, found {found}; simplify it");
        return Err(fault(schema, &message));
    }
    Ok(Read { json, names: reader.names })
}

/// A fault at a value of the schema.
pub(super) fn fault(at: Value<'_>, message: &str) -> Uncompilable {
    Uncompilable { at: at.span().start, message: cut(message) }
}

/// What a value of the schema is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A schema, a list of schemas, or something under a keyword that is not known here.
    Schema,
    /// A schema that another one applies to its own instance, or a list of such.
    Branch,
    /// Schemas by name.
    Map,
    /// A value to compare with.
    Data,
}

impl Place {
    /// What stands under `key`.
    fn under(self, key: &str) -> Self {
        match self {
            Self::Data => Self::Data,
            Self::Schema | Self::Branch if DATA.contains(&key) => Self::Data,
            Self::Schema | Self::Branch if MAPS.contains(&key) => Self::Map,
            Self::Schema | Self::Branch if BRANCHES.contains(&key) => Self::Branch,
            Self::Map | Self::Schema | Self::Branch => Self::Schema,
        }
    }

    fn is_schema(self) -> bool {
        matches!(self, Self::Schema | Self::Branch)
    }
}

struct Reader {
    references: usize,
    names: bool,
}

impl Reader {
    fn read(&mut self, value: Value<'_>, place: Place, depth: usize) -> Result<Json, Uncompilable> {
        if depth > DEPTH {
            let message = format!("expected a schema of at most {DEPTH} levels, found a deeper one; flatten it");
            return Err(fault(value, &message));
        }
        Ok(match value.kind() {
            Kind::Null => Json::Null,
            Kind::Bool => boolean(value.as_bool() == Some(true), place),
            Kind::String => Json::String(value.as_str().unwrap_or_default().to_owned()),
            Kind::Number => Json::Number(serde_number(value.raw()).ok_or_else(|| {
                fault(value, &format!("expected a number that can be held exactly, found {}", value.raw()))
            })?),
            Kind::Array => {
                let item = |item| self.read(item, place, depth.saturating_add(1));
                Json::Array(value.items().map(item).collect::<Result<_, _>>()?)
            }
            Kind::Object => Json::Object(self.members(value, place, depth)?),
        })
    }

    fn members(&mut self, object: Value<'_>, place: Place, depth: usize) -> Result<Map<String, Json>, Uncompilable> {
        let mut members = Map::new();
        for (key, value) in object.entries() {
            let key = key.as_str().unwrap_or_default();
            if place.is_schema() {
                self.keyword(key, value)?;
            }
            let value = self.read(value, place.under(key), depth.saturating_add(1))?;
            members.insert(key.to_owned(), value);
        }
        let branches = |members: &Map<String, Json>| {
            BRANCHES.iter().chain(&REFERENCE_KEYWORDS).any(|keyword| members.contains_key(*keyword))
        };
        if place == Place::Branch || (place == Place::Schema && branches(&members)) {
            members.entry("type").or_insert_with(any_type);
        }
        Ok(members)
    }

    fn keyword(&mut self, key: &str, value: Value<'_>) -> Result<(), Uncompilable> {
        self.names |= key == "patternProperties";
        if key == DIALECT {
            dialect(value)?;
        }
        let Some(reference) = value.as_str().filter(|_| REFERENCE_KEYWORDS.contains(&key)) else { return Ok(()) };
        self.references = self.references.saturating_add(1);
        if leads_to_schema(reference) {
            return Ok(());
        }
        let found = value.raw();
        Err(fault(value, &format!("expected a reference to a schema, found {found}, which leads to something else")))
    }
}

/// `type` with every type.
fn any_type() -> Json {
    json!(["array", "boolean", "null", "number", "object", "string"])
}

/// A boolean, which where it is a branch becomes a schema that means the same and looks at its instance.
fn boolean(value: bool, place: Place) -> Json {
    match (place, value) {
        (Place::Branch, true) => json!({"type": any_type()}),
        (Place::Branch, false) => json!({"not": {"type": any_type()}}),
        _ => Json::Bool(value),
    }
}

/// Whether a reference with a JSON Pointer for a fragment leads to where schemas stand. Other fragments name an anchor, which
/// only a schema has.
fn leads_to_schema(reference: &str) -> bool {
    let Some((_, fragment)) = reference.split_once('#') else { return true };
    let Some(pointer) = percent_decoded(fragment) else { return false };
    let Some(tokens) = pointer.strip_prefix('/') else { return true };
    tokens.split('/').fold(Place::Schema, Place::under).is_schema()
}

/// A fragment without its percent-encoding (RFC 6901 §6); `None` for one that is malformed, or encodes a slash, which may or
/// may not separate.
fn percent_decoded(fragment: &str) -> Option<String> {
    let mut parts = fragment.split('%');
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let byte = u8::from_str_radix(digits, 16).ok().filter(|byte| *byte != b'/')?;
        out.push(byte);
        out.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(out).ok()
}

/// A named dialect is one that is known here.
fn dialect(named: Value<'_>) -> Result<(), Uncompilable> {
    let bare = named.as_str().map(|uri| uri.strip_suffix('#').unwrap_or(uri));
    let bare = bare.and_then(|uri| uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://")));
    if bare.is_some_and(|uri| DIALECTS.contains(&uri)) {
        return Ok(());
    }
    let found = named.raw();
    Err(fault(
        named,
        &format!(
            "expected a schema of dialect 2020-12, 2019-09, draft-07 or draft-06, found {found}; ask for one of these, or \
             leave `{DIALECT}` out"
        ),
    ))
}
