//! From the bytes of a definition to a validator.
//!
//! Schemas come from servers, so they are as hostile as anything else. What [`read`] makes sure of aside:
//!
//! - nothing is fetched: a `$ref` that is not answered by the schema itself, or by a meta-schema, does not compile;
//! - patterns run on an engine that takes time linear in the text, whatever the pattern. What a byte costs still depends on
//!   the pattern's size, so schemas are compiled in the smallest of three classes of size that all their patterns fit, and
//!   the class is what reading a byte costs.

use jsonschema::{PatternOptions, ValidationError, Validator, options_for};
use serde_json::Value as Json;

use super::read::{self, fault};
use super::tape::Tape;
use super::{Schema, Uncompilable, exact};
use crate::message::json::Value;

/// Bytes that a compiled pattern may take, and what reading a byte then costs.
const CLASSES: [(usize, u64); 3] = [(16 << 10, 1), (128 << 10, 8), (1 << 20, 64)];

/// Compiles `schema`.
pub(super) fn schema(schema: Value<'_>) -> Result<Schema, Uncompilable> {
    let read = read::schema(schema)?;
    let (validator, text) = build(&read.json).map_err(|error| {
        let at = locate(schema, error.instance_path().as_str());
        fault(at, &format!("expected a JSON Schema, but {error}"))
    })?;
    Ok(Schema { validator, text, names: if read.names { text } else { 0 } })
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
