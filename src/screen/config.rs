//! The `screen` block of a server's configuration.

use std::borrow::Cow;

use regex::{RegexBuilder, RegexSet, RegexSetBuilder};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};

#[cfg(test)]
mod tests;

/// Bytes that one compiled pattern may take, and all patterns of a server together. A `\w` that knows all of Unicode takes
/// some 50 KiB.
const PATTERN_SIZE: usize = 1024 * 1024;
const PATTERNS_SIZE: usize = 8 * 1024 * 1024;

/// Whether answers other than listings are read, and what is looked for in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScreenSource {
    /// They are read.
    On(DetectorsSource),
    /// They pass unseen.
    Off,
}

/// What is looked for in the text of answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub struct DetectorsSource {
    /// Regular expressions besides the built-in list for text addressed to the model, of those that are matched in time
    /// linear in the text (no back-references, no look-around). Case counts unless a pattern begins with `(?i)`.
    pub patterns: Vec<PatternSource>,
    /// Characters that people do not see: `notice` (default) puts a notice in front of an answer that has some, `off`
    /// does not look for them.
    pub invisible: Action,
    /// Text addressed to the model, by the built-in list: `notice` (default), or `off`, which leaves `patterns` on.
    pub addressed_to_model: Action,
}

/// What is done about a kind of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Action {
    /// A notice goes in front.
    #[default]
    Notice,
    /// Nothing.
    Off,
}

/// A regular expression that compiles, is small, and does not match the empty text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct PatternSource(String);

impl TryFrom<String> for PatternSource {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let compiled = RegexBuilder::new(&text).size_limit(PATTERN_SIZE).build();
        match compiled {
            Ok(pattern) if pattern.is_match("") => Err(format!(
                "expected a pattern that does not match the empty text, found `{text}`, which would match every answer; \
                 correct it"
            )),
            Ok(_) => Ok(Self(text)),
            Err(regex::Error::CompiledTooBig(most)) => Err(format!(
                "expected a pattern of at most {most} bytes once compiled, found `{text}`; shorten its repetitions, or \
                 put `(?-u)` in front of classes such as `\\w` that need not know all of Unicode"
            )),
            Err(error) => {
                // The library draws the place over several lines; the last one says what is wrong.
                let told = error.to_string();
                let why = told.lines().last().unwrap_or_default().trim_start_matches("error: ");
                Err(format!("expected a regular expression, found `{text}`: {why}; correct it"))
            }
        }
    }
}

impl JsonSchema for PatternSource {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "regex", "minLength": 1})
    }
}

/// Patterns that are small one by one and too large together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected patterns of at most {PATTERNS_SIZE} bytes once compiled, all together; remove or shorten some")]
pub struct TooLarge;

impl DetectorsSource {
    /// All patterns as one automaton; `None` when there are none.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub(super) fn compiled_patterns(&self) -> Result<Option<RegexSet>, TooLarge> {
        if self.patterns.is_empty() {
            return Ok(None);
        }
        let texts = self.patterns.iter().map(|pattern| &pattern.0);
        RegexSetBuilder::new(texts).size_limit(PATTERNS_SIZE).build().map(Some).map_err(|_| TooLarge)
    }
}

impl Default for ScreenSource {
    fn default() -> Self {
        Self::On(DetectorsSource::default())
    }
}

impl<'de> Deserialize<'de> for ScreenSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScreenVisitor)
    }
}

struct ScreenVisitor;

impl<'de> Visitor<'de> for ScreenVisitor {
    type Value = ScreenSource;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("`off`, or a mapping of `patterns`, `invisible` and `addressed_to_model`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ScreenSource, E> {
        match text {
            "off" => Ok(ScreenSource::Off),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ScreenSource, A::Error> {
        DetectorsSource::deserialize(MapAccessDeserializer::new(map)).map(ScreenSource::On)
    }
}

impl JsonSchema for ScreenSource {
    fn schema_name() -> Cow<'static, str> {
        "Screen".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let detectors = generator.subschema_for::<DetectorsSource>();
        json_schema!({"oneOf": [{"const": "off"}, detectors]})
    }
}
