//! From the bytes of a definition to a validator.
//!
//! Schemas come from servers, so they are as hostile as anything else:
//!
//! - one nested deeper than the compiler's stack is refused before it is compiled;
//! - nothing is fetched: a `$ref` that is not answered by the schema itself, or by a meta-schema, does not compile;
//! - the schema is never read by another reader: `{"$serde_json::private::Number": "5"}` stays an object here;
//! - patterns run on an engine that takes time linear in the text, whatever the pattern. What a byte costs still depends on
//!   the pattern's size, so schemas are compiled in the smallest of three classes of size that all their patterns fit, and
//!   the class is what a byte of a string burns.

use jsonschema::{PatternOptions, ValidationError, Validator, options_for};
use serde_json::{Map, Value as Json};

use super::explain::cut;
use super::tape::{Tape, serde_number};
use super::{Schema, Uncompilable, exact};
use crate::message::json::{Kind, Value};

/// Most nesting of a schema. Compiling recurs; a thread of 2 MiB stands more than three times as much.
const DEPTH: usize = 128;
/// Most places at which a schema refers to another: they nest without an instance that nests.
const REFERENCES: usize = 500;

/// Bytes that a compiled pattern may take, and what reading a byte then costs.
const CLASSES: [(usize, u64); 3] = [(16 << 10, 1), (128 << 10, 8), (1 << 20, 64)];

/// Where a schema's dialect is named.
const DIALECT: &str = "$schema";
/// The dialects, without scheme and empty fragment.
const DIALECTS: [&str; 4] = [
    "json-schema.org/draft/2020-12/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft-06/schema",
];
const REFERENCE_KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Compiles `schema`.
pub(super) fn schema(schema: Value<'_>) -> Result<Schema, Uncompilable> {
    dialect(schema)?;
    let mut reader = Reader { references: 0, names: false };
    let json = reader.read(schema, 1)?;
    if reader.references > REFERENCES {
        return Err(fault(
            schema,
            format!("expected at most {REFERENCES} references in a schema, found {}; simplify it", reader.references),
        ));
    }
    let (validator, text) = build(&json).map_err(|error| {
        let at = locate(schema, error.instance_path().as_str());
        fault(at, cut(&format!("expected a JSON Schema, but {error}")))
    })?;
    Ok(Schema { validator, text, names: if reader.names { text } else { 0 } })
}

fn fault(at: Value<'_>, message: String) -> Uncompilable {
    Uncompilable { at: at.span().start, message }
}

/// The validator, in the smallest class, and the cost of a byte.
fn build(json: &Json) -> Result<(Validator<Tape>, u64), ValidationError<'static>> {
    let attempt = |(size, cost): (usize, u64)| {
        let patterns = PatternOptions::regex().size_limit(size).dfa_size_limit(1 << 20);
        let options = options_for::<Tape>().offline().should_validate_formats(true).with_pattern_options(patterns);
        exact::install(options).build(json).map(|validator| (validator, cost))
    };
    let [small, medium, large] = CLASSES;
    attempt(small).or_else(|_| attempt(medium)).or_else(|_| attempt(large))
}

/// The schema's dialect is one that is known here, or not named.
fn dialect(schema: Value<'_>) -> Result<(), Uncompilable> {
    let Some(named) = schema.get(DIALECT) else { return Ok(()) };
    let bare = named.as_str().map(|uri| uri.strip_suffix('#').unwrap_or(uri));
    let bare = bare.and_then(|uri| uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://")));
    if bare.is_some_and(|uri| DIALECTS.contains(&uri)) {
        return Ok(());
    }
    Err(fault(
        named,
        cut(&format!(
            "expected a schema of dialect 2020-12, 2019-09, draft-07 or draft-06, found {}; ask for one of these, or leave \
         `{DIALECT}` out",
            named.raw()
        )),
    ))
}

/// Turns a schema into the form that the validator compiles, member by member.
struct Reader {
    references: usize,
    /// Whether names of members meet patterns.
    names: bool,
}

impl Reader {
    fn read(&mut self, value: Value<'_>, depth: usize) -> Result<Json, Uncompilable> {
        if depth > DEPTH {
            return Err(fault(
                value,
                format!("expected a schema of at most {DEPTH} levels, found a deeper one; flatten it"),
            ));
        }
        Ok(match value.kind() {
            Kind::Null => Json::Null,
            Kind::Bool => Json::Bool(value.as_bool() == Some(true)),
            Kind::String => Json::String(value.as_str().unwrap_or_default().to_owned()),
            Kind::Number => Json::Number(serde_number(value.raw()).ok_or_else(|| {
                fault(value, cut(&format!("expected a number that can be held exactly, found {}", value.raw())))
            })?),
            Kind::Array => Json::Array(
                value.items().map(|item| self.read(item, depth.saturating_add(1))).collect::<Result<_, _>>()?,
            ),
            Kind::Object => {
                let mut members = Map::new();
                for (key, value) in value.entries() {
                    let key = key.as_str().unwrap_or_default();
                    self.references = self.references.saturating_add(usize::from(REFERENCE_KEYWORDS.contains(&key)));
                    self.names |= key == "patternProperties";
                    members.insert(key.to_owned(), self.read(value, depth.saturating_add(1))?);
                }
                Json::Object(members)
            }
        })
    }
}

/// The value under `pointer` (RFC 6901), as far as it leads.
fn locate<'a>(root: Value<'a>, pointer: &str) -> Value<'a> {
    let mut at = root;
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let index = || token.parse().ok().and_then(|index| at.items().nth(index));
        match at.get(&token).or_else(index) {
            Some(inner) => at = inner,
            None => break,
        }
    }
    at
}
